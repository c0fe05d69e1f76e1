/* softmax.c: softmax and log_softmax along a dimension, and their gradients. Rows where the dimension is the last, else
 * blocks of columns; halves are worked on in float32. */
#include "structured.h"
#include "rows.h"

#define WIDTH 128

/* The loops by dtype and by whether it is the logarithm. */
#define FORWARD(T, F)                                                                              \
  static void forward_##F(const T *x, T *y, lt_Lines l, bool log) {                                \
    const lt_RowKernels *k = lt_rows();                                                            \
    if (l.inner == 1) {                                                                            \
      void (*row)(const T *, T *, int64_t) = log ? k->log_softmax_##F : k->softmax_##F;            \
      int team = lt_team(4 * l.outer * l.n, l.outer);                                              \
      _Pragma("omp parallel for schedule(static) num_threads(team)")                               \
      for (int64_t i = 0; i < l.outer; i++)                                                        \
        if (!lt_stopped()) row(x + i * l.n, y + i * l.n, l.n);                                     \
      return;                                                                                      \
    }                                                                                              \
    int64_t blocks = (l.inner + WIDTH - 1) / WIDTH;                                                \
    int team = lt_team(4 * l.outer * l.n * l.inner, l.outer * blocks);                             \
    _Pragma("omp parallel for schedule(static) num_threads(team)")                                 \
    for (int64_t t = 0; t < l.outer * blocks; t++) {                                               \
      int64_t j = t % blocks * WIDTH, at = t / blocks * l.n * l.inner + j;                         \
      int64_t width = l.inner - j < WIDTH ? l.inner - j : WIDTH;                                   \
      if (!lt_stopped()) k->softmax_columns_##F(x + at, y + at, l.n, l.inner, width, log);         \
    }                                                                                              \
  }                                                                                                \
  static void backward_##F(const T *g, const T *y, T *dx, lt_Lines l, bool log) {                  \
    const lt_RowKernels *k = lt_rows();                                                            \
    if (l.inner == 1) {                                                                            \
      void (*row)(const T *, const T *, T *, int64_t) =                                            \
          log ? k->log_softmax_backward_##F : k->softmax_backward_##F;                             \
      int team = lt_team(2 * l.outer * l.n, l.outer);                                              \
      _Pragma("omp parallel for schedule(static) num_threads(team)")                               \
      for (int64_t i = 0; i < l.outer; i++)                                                        \
        if (!lt_stopped()) row(g + i * l.n, y + i * l.n, dx + i * l.n, l.n);                       \
      return;                                                                                      \
    }                                                                                              \
    int64_t blocks = (l.inner + WIDTH - 1) / WIDTH;                                                \
    int team = lt_team(2 * l.outer * l.n * l.inner, l.outer * blocks);                             \
    _Pragma("omp parallel for schedule(static) num_threads(team)")                                 \
    for (int64_t t = 0; t < l.outer * blocks; t++) {                                               \
      int64_t j = t % blocks * WIDTH, at = t / blocks * l.n * l.inner + j;                         \
      int64_t width = l.inner - j < WIDTH ? l.inner - j : WIDTH;                                   \
      if (!lt_stopped())                                                                           \
        k->softmax_backward_columns_##F(g + at, y + at, dx + at, l.n, l.inner, width, log);        \
    }                                                                                              \
  }

FORWARD(float, f32)
FORWARD(double, f64)

static bool forward(lt_Call *c, bool log) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *y = x ? lt_output_open(out, work) : NULL;
  if (y) {
    lt_Lines l = lt_lines(out->ndim, out->shape, dim);
    if (work == LT_float64)
      forward_f64(lt_tensor_data(x), lt_tensor_data(y), l, log);
    else
      forward_f32(lt_tensor_data(x), lt_tensor_data(y), l, log);
  }
  lt_release(x);
  return lt_output_close(out, y) && (!lt_stopped() || lt_fail("interrupted"));
}

static bool backward(lt_Call *c, bool log) {
  lt_Tensor *grad = lt_in(c, 0), *result = lt_in(c, 1), *out = c->out[0];
  int dim = lt_arg_dim(c, 2, result);
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Dtype work = lt_work_dtype(out->dtype);
  lt_Tensor *g = lt_as_contiguous(grad, work), *y = lt_as_contiguous(result, work);
  lt_Tensor *dx = g && y ? lt_output_open(out, work) : NULL;
  if (dx) {
    lt_Lines l = lt_lines(out->ndim, out->shape, dim);
    if (work == LT_float64)
      backward_f64(lt_tensor_data(g), lt_tensor_data(y), lt_tensor_data(dx), l, log);
    else
      backward_f32(lt_tensor_data(g), lt_tensor_data(y), lt_tensor_data(dx), l, log);
  }
  lt_release(g);
  lt_release(y);
  return lt_output_close(out, dx) && (!lt_stopped() || lt_fail("interrupted"));
}

bool lt_cpu_softmax(lt_Call *c) { return forward(c, false); }
bool lt_cpu_log_softmax(lt_Call *c) { return forward(c, true); }
bool lt_cpu__softmax_backward(lt_Call *c) { return backward(c, false); }
bool lt_cpu__log_softmax_backward(lt_Call *c) { return backward(c, true); }
