/* norm.c: layer norm (Ba, Kiros and Hinton 2016) and its gradients. Rows are the last dimensions; halves are worked on
 * in float32. The gradients of weight and bias are summed over fixed pieces of rows, which are then added in order, so
 * that they do not depend on the number of threads. */
#include "structured.h"
#include "rows.h"

#define PIECES 16 /* at most, that the gradients of weight and bias are summed in */

static lt_Tensor *optional(lt_Call *c, int i, lt_Dtype work, bool *ok) {
  lt_Tensor *t = lt_in(c, i), *dense = t ? lt_as_contiguous(t, work) : NULL;
  if (t && !dense) *ok = false;
  return dense;
}
static void *data(lt_Tensor *t) { return t ? lt_tensor_data(t) : NULL; }

/* Elements of the last `normalized` dims. */
static int64_t row_size(const lt_Tensor *t, int64_t normalized) {
  int64_t n = 1;
  for (int d = t->ndim - (int)normalized; d < t->ndim; d++) n *= t->shape[d];
  return n;
}

#define NORM(T, F)                                                                                 \
  static void forward_##F(const T *x, const T *w, const T *b, T eps, int64_t rows, int64_t n,      \
                          T *y, T *mean, T *rstd) {                                                \
    const lt_RowKernels *k = lt_rows();                                                            \
    _Pragma("omp parallel for schedule(static) num_threads(lt_team(2 * rows * n, rows))")          \
    for (int64_t i = 0; i < rows; i++)                                                             \
      k->layer_norm_##F(x + i * n, w, b, eps, n, y + i * n, mean + i, rstd + i);                   \
  }                                                                                                \
  static bool backward_##F(const T *g, const T *x, const T *w, const T *mean, const T *rstd,       \
                           int64_t rows, int64_t n, T *dx, T *dw, T *db) {                         \
    const lt_RowKernels *k = lt_rows();                                                            \
    int64_t pieces = rows < PIECES ? (rows > 0 ? rows : 1) : PIECES;                               \
    if (rows * n < LT_GRAIN) pieces = 1;                                                           \
    T *part = calloc((size_t)(2 * pieces * n), sizeof *part);                                      \
    if (!part) return lt_fail("out of memory");                                                    \
    _Pragma("omp parallel for schedule(static) num_threads(lt_team(2 * rows * n, pieces))")        \
    for (int64_t p = 0; p < pieces; p++) {                                                         \
      T *pw = part + 2 * p * n, *pb = pw + n;                                                      \
      for (int64_t i = rows * p / pieces; i < rows * (p + 1) / pieces; i++)                        \
        k->layer_norm_backward_##F(g + i * n, x + i * n, w, mean[i], rstd[i], n, dx + i * n, pw,   \
                                   pb);                                                            \
    }                                                                                              \
    for (int64_t j = 0; j < n; j++) {                                                              \
      T sw = 0, sb = 0;                                                                            \
      for (int64_t p = 0; p < pieces; p++) {                                                       \
        sw += part[2 * p * n + j];                                                                 \
        sb += part[(2 * p + 1) * n + j];                                                           \
      }                                                                                            \
      dw[j] = sw;                                                                                  \
      db[j] = sb;                                                                                  \
    }                                                                                              \
    free(part);                                                                                    \
    return true;                                                                                   \
  }

NORM(float, f32)
NORM(double, f64)

bool lt_cpu__layer_norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Dtype work = lt_work_dtype(self->dtype);
  bool ok = true;
  int64_t n = row_size(self, c->arg[1].i), rows = c->out[1]->numel;
  lt_Tensor *x = lt_as_contiguous(self, work), *w = optional(c, 2, work, &ok),
            *b = optional(c, 3, work, &ok);
  lt_Tensor *y = lt_output_open(c->out[0], work), *mean = lt_output_open(c->out[1], work);
  lt_Tensor *rstd = lt_output_open(c->out[2], work);
  ok = ok && x && y && mean && rstd;
  if (ok && work == LT_float64)
    forward_f64(data(x), data(w), data(b), c->arg[4].f, rows, n, data(y), data(mean), data(rstd));
  else if (ok)
    forward_f32(data(x), data(w), data(b), (float)c->arg[4].f, rows, n, data(y), data(mean),
                data(rstd));
  lt_release(x);
  lt_release(w);
  lt_release(b);
  ok = lt_output_close(c->out[0], y) && ok;
  ok = lt_output_close(c->out[1], mean) && ok;
  return lt_output_close(c->out[2], rstd) && ok;
}

bool lt_cpu__layer_norm_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1);
  lt_Dtype work = lt_work_dtype(self->dtype);
  bool ok = true;
  int64_t n = row_size(self, c->arg[2].i), rows = lt_in(c, 3)->numel;
  lt_Tensor *g = lt_as_contiguous(lt_in(c, 0), work), *x = lt_as_contiguous(self, work);
  lt_Tensor *mean = lt_as_contiguous(lt_in(c, 3), work),
            *rstd = lt_as_contiguous(lt_in(c, 4), work);
  lt_Tensor *w = optional(c, 5, work, &ok);
  lt_Tensor *dx = lt_output_open(c->out[0], work), *dw = lt_output_open(c->out[1], work);
  lt_Tensor *db = lt_output_open(c->out[2], work);
  ok = ok && g && x && mean && rstd && dx && dw && db;
  if (ok && work == LT_float64)
    ok = backward_f64(data(g), data(x), data(w), data(mean), data(rstd), rows, n, data(dx),
                      data(dw), data(db));
  else if (ok)
    ok = backward_f32(data(g), data(x), data(w), data(mean), data(rstd), rows, n, data(dx),
                      data(dw), data(db));
  lt_release(g);
  lt_release(x);
  lt_release(mean);
  lt_release(rstd);
  lt_release(w);
  ok = lt_output_close(c->out[0], dx) && ok;
  ok = lt_output_close(c->out[1], dw) && ok;
  return lt_output_close(c->out[2], db) && ok;
}
