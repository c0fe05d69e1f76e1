/* loss.c: negative log likelihood of rows of log probabilities, and its gradient. Classes are
 * counted from 1; rows whose class is ignore_index are skipped. Sums are computed in float64. */
#include "kernel_support.h"

/* The arguments of forward and backward, as contiguous tensors of the working dtype. */
typedef struct Rows {
  lt_Tensor *target, *weight;
  int64_t n, classes, ignore;
  bool mean, none;
} Rows;

static void rows_close(Rows *r) {
  lt_release(r->target);
  lt_release(r->weight);
}

/* Reads the arguments from `first` on and checks every class, before anything is written. */
static bool rows_open(lt_Call *c, int first, Rows *r) {
  const lt_Tensor *self = lt_in(c, first);
  lt_Tensor *target = lt_in(c, first + 1), *weight = lt_in(c, first + 2);
  r->n = self->shape[0];
  r->classes = self->shape[1];
  r->ignore = c->arg[first + 4].i;
  r->mean = strcmp(c->arg[first + 3].string, "mean") == 0;
  r->none = strcmp(c->arg[first + 3].string, "none") == 0;
  r->weight = weight ? lt_as_contiguous(weight, lt_work_dtype(weight->dtype)) : NULL;
  r->target = lt_as_contiguous(target, LT_int64);
  bool ok = r->target && (r->weight || !weight);
  const int64_t *t = ok ? lt_tensor_data(r->target) : NULL;
  for (int64_t i = 0; ok && i < r->n; i++)
    if (t[i] != r->ignore && (t[i] < 1 || t[i] > r->classes))
      ok = lt_bad_target(i, t[i], r->classes, r->ignore);
  if (!ok) rows_close(r);
  return ok;
}

#define LOSS(T, F)                                                                                 \
  static void forward_##F(const T *x, const Rows *r, T *out, T *total) {                           \
    const int64_t *target = lt_tensor_data(r->target);                                             \
    const T *weight = r->weight ? lt_tensor_data(r->weight) : NULL;                                \
    double sum = 0, all = 0;                                                                       \
    for (int64_t i = 0; i < r->n; i++) {                                                           \
      int64_t t = target[i] - LT_INDEX_BASE;                                                       \
      bool ignored = target[i] == r->ignore;                                                       \
      double w = ignored ? 0 : weight ? (double)weight[t] : 1;                                     \
      double loss = ignored ? 0 : -w * (double)x[i * r->classes + t];                              \
      if (r->none) out[i] = (T)loss;                                                               \
      sum += loss;                                                                                 \
      all += w;                                                                                    \
    }                                                                                              \
    if (!r->none) out[0] = (T)(r->mean ? sum / all : sum);                                         \
    *total = (T)all;                                                                               \
  }                                                                                                \
  /* The total weight is computed again: the result of forward may be rounded to float16. */       \
  static void backward_##F(const T *grad, const Rows *r, T *dx) {                                  \
    const int64_t *target = lt_tensor_data(r->target);                                             \
    const T *weight = r->weight ? lt_tensor_data(r->weight) : NULL;                                \
    double all = 0;                                                                                \
    for (int64_t i = 0; i < r->n; i++)                                                             \
      if (target[i] != r->ignore) all += weight ? (double)weight[target[i] - LT_INDEX_BASE] : 1;   \
    for (int64_t i = 0; i < r->n && !lt_stopped(); i++) {                                          \
      int64_t t = target[i] - LT_INDEX_BASE;                                                       \
      memset(dx + i * r->classes, 0, (size_t)r->classes * sizeof *dx);                             \
      if (target[i] == r->ignore) continue;                                                        \
      T g = r->none ? grad[i] : r->mean ? grad[0] / (T)all : grad[0];                              \
      dx[i * r->classes + t] = -g * (weight ? weight[t] : 1);                                      \
    }                                                                                              \
  }

LOSS(float, f32)
LOSS(double, f64)

bool lt_cpu__nll_loss(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  Rows r;
  if (!rows_open(c, 0, &r)) return false;
  lt_Dtype work = lt_work_dtype(self->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work);
  lt_Tensor *out = lt_output_open(c->out[0], work), *total = lt_output_open(c->out[1], work);
  bool ok = x && out && total;
  if (ok && work == LT_float64)
    forward_f64(lt_tensor_data(x), &r, lt_tensor_data(out), lt_tensor_data(total));
  else if (ok)
    forward_f32(lt_tensor_data(x), &r, lt_tensor_data(out), lt_tensor_data(total));
  lt_release(x);
  rows_close(&r);
  ok = lt_output_close(c->out[0], out) && ok;
  return lt_output_close(c->out[1], total) && ok;
}

bool lt_cpu__nll_loss_backward(lt_Call *c) {
  Rows r;
  if (!rows_open(c, 1, &r)) return false;
  lt_Dtype work = lt_work_dtype(c->out[0]->dtype);
  lt_Tensor *grad = lt_as_contiguous(lt_in(c, 0), work), *dx = lt_output_open(c->out[0], work);
  bool ok = grad && dx;
  if (ok && c->out[0]->numel > 0) {
    if (work == LT_float64)
      backward_f64(lt_tensor_data(grad), &r, lt_tensor_data(dx));
    else
      backward_f32(lt_tensor_data(grad), &r, lt_tensor_data(dx));
  }
  lt_release(grad);
  rows_close(&r);
  return lt_output_close(c->out[0], dx) && ok;
}
