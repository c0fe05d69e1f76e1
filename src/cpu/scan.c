/* scan.c: cumulative sums and products along a dimension. Floats are accumulated in float64;
 * integers wrap. */
#include "kernel_support.h"

#define WIDTH 64 /* columns processed together */

#define SCAN(NAME, T, ACC, JOIN, FIRST)                                                            \
  static void columns_##NAME(const T *x, T *y, int64_t n, int64_t stride, int64_t width) {         \
    ACC a[WIDTH];                                                                                  \
    for (int64_t j = 0; j < width; j++) a[j] = FIRST;                                              \
    for (int64_t i = 0; i < n && !lt_stopped_at(i); i++)                                           \
      for (int64_t j = 0; j < width; j++) {                                                        \
        a[j] = JOIN(a[j], (ACC)x[i * stride + j]);                                                 \
        y[i * stride + j] = (T)a[j];                                                               \
      }                                                                                            \
  }                                                                                                \
  static void row_##NAME(const T *x, T *y, int64_t n) {                                            \
    ACC a = FIRST;                                                                                 \
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)                                     \
      for (; i < end; i++) {                                                                       \
        a = JOIN(a, (ACC)x[i]);                                                                    \
        y[i] = (T)a;                                                                               \
      }                                                                                            \
  }                                                                                                \
  static void blocks_##NAME(const T *x, T *y, lt_Lines l, int64_t first, int64_t last) {           \
    int64_t blocks = (l.inner + WIDTH - 1) / WIDTH;                                                \
    for (int64_t t = first; t < last && !lt_stopped(); t++) {                                      \
      int64_t j = t % blocks * WIDTH, at = t / blocks * l.n * l.inner + j;                         \
      if (l.inner == 1)                                                                            \
        row_##NAME(x + at, y + at, l.n);                                                           \
      else                                                                                         \
        columns_##NAME(x + at, y + at, l.n, l.inner, l.inner - j < WIDTH ? l.inner - j : WIDTH);   \
    }                                                                                              \
  }                                                                                                \
  static void scan_##NAME(const T *x, T *y, lt_Lines l) {                                          \
    int64_t count = l.outer * ((l.inner + WIDTH - 1) / WIDTH);                                     \
    LT_IN_TEAM(lt_team(l.outer *l.n *l.inner, count), count, blocks_##NAME(x, y, l, first, last)); \
  }

#define ADD(a, b)   ((a) + (b))
#define TIMES(a, b) ((a) * (b))
SCAN(sum_f32, float, double, ADD, 0)
SCAN(sum_f64, double, double, ADD, 0)
SCAN(sum_i64, int64_t, uint64_t, ADD, 0)
SCAN(prod_f32, float, double, TIMES, 1)
SCAN(prod_f64, double, double, TIMES, 1)
SCAN(prod_i64, int64_t, uint64_t, TIMES, 1)

/* Runs cumsum or cumprod. */
static bool scan(lt_Call *c, bool product) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  if (out->numel == 0) return true;
  lt_Dtype work = lt_work_dtype(out->dtype);
  /* self is cast to the dtype argument before anything is summed */
  lt_Tensor *cast = lt_given(c, 2) ? lt_as_contiguous(self, c->arg[2].dtype) : lt_retain(self);
  lt_Tensor *x = lt_as_contiguous(cast, work), *y = x ? lt_output_open(out, work) : NULL;
  lt_release(cast);
  if (y) {
    lt_Lines l = lt_lines(out->ndim, out->shape, dim);
    const void *from = lt_tensor_data(x);
    void *to = lt_tensor_data(y);
    if (work == LT_float32)
      (product ? scan_prod_f32 : scan_sum_f32)(from, to, l);
    else if (work == LT_float64)
      (product ? scan_prod_f64 : scan_sum_f64)(from, to, l);
    else
      (product ? scan_prod_i64 : scan_sum_i64)(from, to, l);
  }
  lt_release(x);
  return lt_output_close(out, y);
}

bool lt_cpu_cumsum(lt_Call *c) { return scan(c, false); }
bool lt_cpu_cumprod(lt_Call *c) { return scan(c, true); }
