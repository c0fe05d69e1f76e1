/* softmax.c: softmax and log_softmax along a dimension, and their gradients: by rows if the
 * dimension is the last, else by blocks of columns; few columns are copied to rows. float16 and
 * bfloat16 are computed in float32: rows of at most LONGEST elements are converted a few at a time,
 * and so stay in the cache. */
#include "cpu.h"
#include "kernel_support.h"
#include "rows.h"
#include "vector.h"

#define WIDTH   128
#define NARROW  16        /* fewer columns are copied to rows */
#define SOME    4096      /* elements of short rows that are converted together */
#define LONGEST (1 << 18) /* elements of a row that is converted by itself */

/* The arguments of a call: rows, or blocks of `width` columns. */
typedef struct Work {
  const void *x, *g; /* forward: the input; backward: the result and its gradient */
  void *y;
  lt_Lines l;
  int64_t blocks, width;
  bool log;
  lt_Dtype dtype; /* of all three */
} Work;

/* Defines the functions that process rows, or blocks of columns, from..to. */
#define SOFTMAX(T, F)                                                                              \
  static void forward_##F(void *context, int64_t from, int64_t to) {                               \
    const Work *w = context;                                                                       \
    const lt_RowKernels *k = lt_rows();                                                            \
    int64_t n = w->l.n, inner = w->l.inner;                                                        \
    if (inner == 1) {                                                                              \
      k->softmax_##F((const T *)w->x + from * n, (T *)w->y + from * n, to - from, n, w->log);      \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t t = from; t < to && !lt_stopped(); t++) {                                         \
      int64_t j = t % w->blocks * w->width, at = t / w->blocks * n * inner + j;                    \
      const T *x = (const T *)w->x + at;                                                           \
      T *y = (T *)w->y + at;                                                                       \
      k->softmax_columns_##F(x, y, n, inner, inner - j < w->width ? inner - j : w->width, w->log); \
    }                                                                                              \
  }                                                                                                \
  static void backward_##F(void *context, int64_t from, int64_t to) {                              \
    const Work *w = context;                                                                       \
    const lt_RowKernels *k = lt_rows();                                                            \
    int64_t n = w->l.n, inner = w->l.inner;                                                        \
    if (inner == 1) {                                                                              \
      k->softmax_backward_##F((const T *)w->g + from * n, (const T *)w->x + from * n,              \
                              (T *)w->y + from * n, to - from, n, w->log);                         \
      return;                                                                                      \
    }                                                                                              \
    for (int64_t t = from; t < to && !lt_stopped(); t++) {                                         \
      int64_t j = t % w->blocks * w->width, at = t / w->blocks * n * inner + j;                    \
      const T *y = (const T *)w->x + at, *g = (const T *)w->g + at;                                \
      T *dx = (T *)w->y + at;                                                                      \
      k->softmax_backward_columns_##F(g, y, dx, n, inner,                                          \
                                      inner - j < w->width ? inner - j : w->width, w->log);        \
    }                                                                                              \
  }

SOFTMAX(float, f32)
SOFTMAX(double, f64)

/* Processes rows from..to of float16 or bfloat16; x and g have room for SOME elements, and for a
 * row. */
static void half_rows(const Work *w, float *x, float *g, int64_t from, int64_t to) {
  const lt_RowKernels *k = lt_rows();
  int64_t n = w->l.n, together = n < SOME ? SOME / n : 1, size = (int64_t)lt_dtype_size(w->dtype);
  for (int64_t r = from, m; r < to && !lt_stopped(); r += m) {
    m = to - r < together ? to - r : together;
    int64_t at = r * n * size;
    lt_vector_load(LT_float32, m * n, x, w->dtype, (const char *)w->x + at, size);
    if (w->g) {
      lt_vector_load(LT_float32, m * n, g, w->dtype, (const char *)w->g + at, size);
      k->softmax_backward_f32(g, x, x, m, n, w->log);
    } else {
      k->softmax_f32(x, x, m, n, w->log);
    }
    lt_vector_store(LT_float32, m * n, w->dtype, (char *)w->y + at, size, x);
  }
}

/* Processes all rows of float16 or bfloat16, with room for a few in each thread. */
static bool all_half_rows(const Work *w, int64_t work) {
  int64_t rows = w->l.outer, n = w->l.n, some_rows = rows * n < SOME ? rows * n : SOME,
          room = n > some_rows ? n : some_rows, each = w->g ? 2 * room : room;
  int team = lt_team(work, rows);
  size_t bytes = (size_t)(team * each) * sizeof(float);
  float *some = lt_cpu_scratch(bytes);
  if (!some) return lt_fail_memory();
  LT_IN_TEAM(team, team, {
    for (int64_t m = first; m < last; m++)
      half_rows(w, some + m * each, some + m * each + room, rows * m / team, rows * (m + 1) / team);
  });
  lt_cpu_free(NULL, 0, some, bytes, NULL);
  return true;
}

/* Returns the dtype in which a result is computed: that of `out` if its rows are converted a few at
 * a time. */
static lt_Dtype dtype_for(const lt_Tensor *out, int dim) {
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  bool half = out->dtype == LT_float16 || out->dtype == LT_bfloat16;
  return half && l.inner == 1 && l.n <= LONGEST ? out->dtype : lt_work_dtype(out->dtype);
}

/* Computes y (backward: from g and the result x). All tensors are contiguous and of one dtype. An
 * exponential counts as several elements of work. Returns false with the error set. */
static bool run(lt_Tensor *x, lt_Tensor *g, lt_Tensor *y, int dim, bool log) {
  Work w = {.x = lt_tensor_data(x),
            .g = g ? lt_tensor_data(g) : NULL,
            .y = lt_tensor_data(y),
            .log = log,
            .dtype = y->dtype};
  w.l = lt_lines(y->ndim, y->shape, dim);
  w.width = w.l.inner < WIDTH ? w.l.inner : WIDTH;
  w.blocks = (w.l.inner + w.width - 1) / w.width;
  int64_t work = (g ? 2 : 4) * y->numel;
  if (lt_work_dtype(y->dtype) != y->dtype) return all_half_rows(&w, work);
  bool wide = y->dtype == LT_float64;
  lt_RangeFn range = g ? (wide ? backward_f64 : backward_f32) : wide ? forward_f64 : forward_f32;
  lt_share(work, w.l.outer * w.blocks, range, &w);
  return true;
}

/* Computes y (backward: the gradient, from `grad` and the result `self`) along dim. */
static bool along(lt_Tensor *self, lt_Tensor *grad, lt_Tensor *out, int dim, bool log) {
  lt_Dtype work = dtype_for(out, dim);
  lt_Tensor *x = lt_as_contiguous(self, work), *g = grad ? lt_as_contiguous(grad, work) : NULL,
            *y = x && (g || !grad) ? lt_output_open(out, work) : NULL;
  bool ok = y && run(x, g, y, dim, log);
  lt_release(x);
  lt_release(g);
  return lt_output_close(out, y) && ok;
}

/* Does so with few columns, which do not fill vectors: on copies that have dim last. */
static bool by_rows(lt_Tensor *self, lt_Tensor *grad, lt_Tensor *out, int dim, bool log) {
  lt_Tensor *to = lt_dim_last(out, dim), *x = lt_lines_along(self, dim),
            *g = grad ? lt_lines_along(grad, dim) : NULL,
            *y = to ? lt_empty(out->dtype, lt_cpu(), to->ndim, to->shape) : NULL;
  bool ok =
      y && x && (g || !grad) && along(x, g, y, y->ndim - 1, log) && lt_copy_into(to, y, false);
  lt_release(to);
  lt_release(x);
  lt_release(g);
  lt_release(y);
  return ok;
}

static bool softmax(lt_Tensor *self, lt_Tensor *grad, lt_Tensor *out, int dim, bool log) {
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  bool narrow = l.inner > 1 && l.inner < NARROW;
  return (narrow ? by_rows : along)(self, grad, out, dim, log);
}

/* Runs softmax or log_softmax. */
static bool forward(lt_Call *c, bool log) {
  lt_Tensor *self = lt_in(c, 0);
  return softmax(self, NULL, c->out[0], lt_arg_dim(c, 1, self), log);
}

/* Runs the gradient of softmax or log_softmax, from the gradient of the result and the result. */
static bool backward(lt_Call *c, bool log) {
  lt_Tensor *result = lt_in(c, 1);
  return softmax(result, lt_in(c, 0), c->out[0], lt_arg_dim(c, 2, result), log);
}

bool lt_cpu_softmax(lt_Call *c) { return forward(c, false); }
bool lt_cpu_log_softmax(lt_Call *c) { return forward(c, true); }
bool lt_cpu__softmax_backward(lt_Call *c) { return backward(c, false); }
bool lt_cpu__log_softmax_backward(lt_Call *c) { return backward(c, true); }
