/* norm.c: layer norm (Ba, Kiros and Hinton 2016) and its gradients. Rows are the last dimensions;
 * float16 and bfloat16 are computed in float32: rows of at most LONGEST elements are converted one
 * after another, so that they stay in the cache. The gradients of weight and bias are summed over a
 * fixed number of pieces of rows, which are then added in order, so that they do not depend on the
 * number of threads. */
#include "cpu.h"
#include "kernel_support.h"
#include "rows.h"
#include "vector.h"

#define LONGEST (1 << 18) /* elements of a row of float16 that is converted by itself */
#define PIECES  16        /* largest number of partial sums for the gradients of weight and bias */

/* Returns the number of elements of the last `normalized` dims. */
static int64_t row_size(const lt_Tensor *t, int64_t normalized) {
  int64_t n = 1;
  for (int d = t->ndim - (int)normalized; d < t->ndim; d++) n *= t->shape[d];
  return n;
}

/* The arguments and results of a call, in the working dtype. */
typedef struct Work {
  const void *g, *x, *w, *b;
  void *y, *mean, *rstd, *part; /* backward: y is the input's gradient, part the partial sums */
  double eps;
  int64_t rows, n, pieces;
  lt_Dtype dtype; /* of x and y; the others have the working dtype */
} Work;

#define NORM(T, F)                                                                                 \
  /* Processes rows from..to. */                                                                   \
  static void forward_##F(void *context, int64_t from, int64_t to) {                               \
    const Work *k = context;                                                                       \
    for (int64_t i = from; i < to; i++)                                                            \
      lt_rows()->layer_norm_##F((const T *)k->x + i * k->n, k->w, k->b, (T)k->eps, k->n,           \
                                (T *)k->y + i * k->n, (T *)k->mean + i, (T *)k->rstd + i);         \
  }                                                                                                \
  /* Processes pieces from..to of the rows. */                                                     \
  static void backward_##F(void *context, int64_t from, int64_t to) {                              \
    const Work *k = context;                                                                       \
    const T *mean = k->mean, *rstd = k->rstd;                                                      \
    int64_t n = k->n;                                                                              \
    for (int64_t p = from; p < to; p++) {                                                          \
      T *pw = (T *)k->part + 2 * p * n, *pb = pw + n;                                              \
      int64_t end = k->rows * (p + 1) / k->pieces;                                                 \
      for (int64_t i = k->rows * p / k->pieces; i < end && !lt_stopped(); i++)                     \
        lt_rows()->layer_norm_backward_##F((const T *)k->g + i * n, (const T *)k->x + i * n, k->w, \
                                           mean[i], rstd[i], n, (T *)k->y + i * n, pw, pb);        \
    }                                                                                              \
  }                                                                                                \
  /* Adds the partial sums to dw and db. */                                                        \
  static void join_##F(const Work *k, T *dw, T *db) {                                              \
    const T *part = k->part;                                                                       \
    int64_t n = k->n;                                                                              \
    for (int64_t j = 0; j < n; j++) {                                                              \
      T sw = 0, sb = 0;                                                                            \
      for (int64_t p = 0; p < k->pieces; p++) {                                                    \
        sw += part[2 * p * n + j];                                                                 \
        sb += part[(2 * p + 1) * n + j];                                                           \
      }                                                                                            \
      dw[j] = sw;                                                                                  \
      db[j] = sb;                                                                                  \
    }                                                                                              \
  }

NORM(float, f32)
NORM(double, f64)

/* Processes rows from..to of float16 or bfloat16; `row` has room for one. */
static void forward_half(const Work *k, float *row, int64_t from, int64_t to) {
  int64_t size = (int64_t)lt_dtype_size(k->dtype);
  for (int64_t i = from; i < to && !lt_stopped(); i++) {
    lt_vector_load(LT_float32, k->n, row, k->dtype, (const char *)k->x + i * k->n * size, size);
    lt_rows()->layer_norm_f32(row, k->w, k->b, (float)k->eps, k->n, row, (float *)k->mean + i,
                              (float *)k->rstd + i);
    lt_vector_store(LT_float32, k->n, k->dtype, (char *)k->y + i * k->n * size, size, row);
  }
}

/* Processes all rows of float16 or bfloat16, with room for a row in each thread. */
static bool forward_halves(const Work *k) {
  int team = lt_team(2 * k->rows * k->n, k->rows);
  size_t bytes = (size_t)team * (size_t)k->n * sizeof(float);
  float *rows = bytes ? lt_cpu_scratch(bytes) : NULL;
  if (bytes && !rows) return lt_fail_memory();
  LT_IN_TEAM(team, team, {
    for (int64_t m = first; m < last; m++)
      forward_half(k, rows + m * k->n, k->rows * m / team, k->rows * (m + 1) / team);
  });
  if (rows) lt_cpu_free(NULL, 0, rows, bytes, NULL);
  return true;
}

bool lt_cpu__layer_norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Dtype work = lt_work_dtype(self->dtype);
  int64_t n = row_size(self, c->arg[1].i);
  lt_Dtype dtype = work == LT_float32 && n <= LONGEST ? self->dtype : work;
  bool ok = true;
  lt_Tensor *x = lt_as_contiguous(self, dtype), *w = lt_optional(c, 2, work, &ok),
            *b = lt_optional(c, 3, work, &ok);
  lt_Tensor *y = lt_output_open(c->out[0], dtype), *mean = lt_output_open(c->out[1], work);
  lt_Tensor *rstd = lt_output_open(c->out[2], work);
  ok = ok && x && y && mean && rstd;
  if (ok) {
    Work k = {.x = lt_data_of(x),
              .w = lt_data_of(w),
              .b = lt_data_of(b),
              .y = lt_data_of(y),
              .mean = lt_data_of(mean),
              .rstd = lt_data_of(rstd),
              .eps = c->arg[4].f,
              .rows = mean->numel,
              .n = n,
              .dtype = dtype};
    if (dtype != work)
      ok = forward_halves(&k);
    else
      lt_share(2 * k.rows * k.n, k.rows, work == LT_float64 ? forward_f64 : forward_f32, &k);
  }
  lt_release(x);
  lt_release(w);
  lt_release(b);
  ok = lt_output_close(c->out[0], y) && ok;
  ok = lt_output_close(c->out[1], mean) && ok;
  return lt_output_close(c->out[2], rstd) && ok;
}

/* Computes the gradients of the input, and of weight and bias. */
static bool run_backward(Work *k, lt_Dtype work, void *dw, void *db) {
  k->pieces = k->rows * k->n < LT_GRAIN ? 1 : k->rows < PIECES ? k->rows : PIECES;
  k->part = calloc((size_t)(2 * k->pieces * k->n + 1), lt_dtype_size(work));
  if (!k->part) return lt_fail_memory();
  lt_share(2 * k->rows * k->n, k->pieces, work == LT_float64 ? backward_f64 : backward_f32, k);
  if (work == LT_float64)
    join_f64(k, dw, db);
  else
    join_f32(k, dw, db);
  free(k->part);
  return true;
}

bool lt_cpu__layer_norm_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1);
  lt_Dtype work = lt_work_dtype(self->dtype);
  bool ok = true;
  lt_Tensor *g = lt_as_contiguous(lt_in(c, 0), work), *x = lt_as_contiguous(self, work);
  lt_Tensor *mean = lt_as_contiguous(lt_in(c, 3), work),
            *rstd = lt_as_contiguous(lt_in(c, 4), work);
  lt_Tensor *w = lt_optional(c, 5, work, &ok);
  lt_Tensor *dx = lt_output_open(c->out[0], work), *dw = lt_output_open(c->out[1], work);
  lt_Tensor *db = lt_output_open(c->out[2], work);
  ok = ok && g && x && mean && rstd && dx && dw && db;
  if (ok) {
    Work k = {.g = lt_data_of(g),
              .x = lt_data_of(x),
              .w = lt_data_of(w),
              .y = lt_data_of(dx),
              .mean = lt_data_of(mean),
              .rstd = lt_data_of(rstd),
              .rows = mean->numel,
              .n = row_size(self, c->arg[2].i)};
    ok = run_backward(&k, work, lt_data_of(dw), lt_data_of(db));
  }
  lt_release(g);
  lt_release(x);
  lt_release(mean);
  lt_release(rstd);
  lt_release(w);
  ok = lt_output_close(c->out[0], dx) && ok;
  ok = lt_output_close(c->out[1], dw) && ok;
  return lt_output_close(c->out[2], db) && ok;
}
