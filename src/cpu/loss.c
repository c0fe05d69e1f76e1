/* loss.c: negative log likelihood of rows of log probabilities, cross entropy of rows of scores,
 * and their gradients. The scores are {N, C}, or {N, C, P}: then those of a row are P apart.
 * Classes are counted from 1; rows whose class is ignore_index are skipped. Sums are computed in
 * float64. */
#include "kernel_support.h"
#include "rows.h"

/* The arguments of forward and backward, as contiguous tensors of the working dtype. */
typedef struct Rows {
  lt_Tensor *target, *weight;
  int64_t n, classes, ignore;
  int64_t inner; /* rows whose scores are side by side: P */
  bool mean, none;
} Rows;

/* Returns the index of the first score of row i. */
static int64_t row_at(const Rows *r, int64_t i) {
  return r->inner == 1 ? i * r->classes : i / r->inner * r->classes * r->inner + i % r->inner;
}

static void rows_close(Rows *r) {
  lt_release(r->target);
  lt_release(r->weight);
}

/* Reads the arguments from `first` on and checks every class, before anything is written. */
static bool rows_open(lt_Call *c, int first, Rows *r) {
  const lt_Tensor *self = lt_in(c, first);
  lt_Tensor *target = lt_in(c, first + 1), *weight = lt_in(c, first + 2);
  r->inner = self->ndim == 3 ? self->shape[2] : 1;
  r->n = self->shape[0] * r->inner;
  r->classes = self->shape[1];
  r->ignore = c->arg[first + 4].i;
  r->mean = strcmp(c->arg[first + 3].string, "mean") == 0;
  r->none = strcmp(c->arg[first + 3].string, "none") == 0;
  r->weight = weight ? lt_as_contiguous(weight, lt_work_dtype(weight->dtype)) : NULL;
  r->target = lt_as_contiguous(target, LT_int64);
  bool ok = r->target && (r->weight || !weight);
  const int64_t *t = ok ? lt_tensor_data(r->target) : NULL;
  uint64_t wrong = 0;
  for (int64_t i = 0; ok && i < r->n; i++)
    wrong |= (t[i] != r->ignore) & ((uint64_t)t[i] - 1 >= (uint64_t)r->classes);
  for (int64_t i = 0; ok && wrong && i < r->n; i++)
    if (t[i] != r->ignore && (t[i] < 1 || t[i] > r->classes))
      ok = lt_bad_target(target->ndim, target->shape, i, t[i], r->classes, r->ignore);
  if (!ok) rows_close(r);
  return ok;
}

#define LOSS(T, F)                                                                                 \
  static void forward_##F(const T *x, const Rows *r, T *out, T *total) {                           \
    const int64_t *target = lt_tensor_data(r->target);                                             \
    const T *weight = r->weight ? lt_tensor_data(r->weight) : NULL;                                \
    double sum = 0, all = 0;                                                                       \
    int64_t at = 0, column = 0;                                                                    \
    for (int64_t i = 0; i < r->n; i++) {                                                           \
      bool ignored = target[i] == r->ignore;                                                       \
      int64_t t = ignored ? 0 : target[i] - LT_INDEX_BASE;                                         \
      double w = ignored ? 0 : weight ? (double)weight[t] : 1;                                     \
      double loss = ignored ? 0 : -w * (double)x[at + column + t * r->inner];                      \
      if (r->none) out[i] = (T)loss;                                                               \
      sum += loss;                                                                                 \
      if (++column == r->inner) column = 0, at += r->classes * r->inner;                           \
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
    const int64_t numel = r->n * r->classes;                                                       \
    LT_IN_TEAM(lt_team(numel, numel), numel,                                                       \
               memset(dx + first, 0, (size_t)(last - first) * sizeof *dx));                        \
    for (int64_t i = 0; i < r->n && !lt_stopped(); i++) {                                          \
      if (target[i] == r->ignore) continue;                                                        \
      int64_t t = target[i] - LT_INDEX_BASE;                                                       \
      T g = r->none ? grad[i] : r->mean ? grad[0] / (T)all : grad[0];                              \
      dx[row_at(r, i) + t * r->inner] = -g * (weight ? weight[t] : 1);                             \
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

/* ---- cross entropy --------------------------------------------------------------------------- */

/* The tensors of a call, in the working dtype: n rows of scores x; the largest x of each row, and
 * log(sum(e^(x - it))). */
typedef struct Scores {
  const Rows *r;
  const void *x;
  void *peak, *log_sum;
  void *logp;       /* forward: log softmax of the target in each row */
  void *scale, *dx; /* backward: the loss's gradient times the weight in each row, and the result */
  const void *grad, *total;
} Scores;

/* Returns how many of the rows i..to - 1 are processed as columns at once. */
static int64_t columns_from(const Rows *r, int64_t i, int64_t to) {
  int64_t w = r->inner - i % r->inner;
  w = w < to - i ? w : to - i;
  return w < LT_FOLD_WIDTH ? w : LT_FOLD_WIDTH;
}

#define ENTROPY(T, F)                                                                              \
  /* Processes rows from..to. */                                                                   \
  static void score_##F(void *context, int64_t from, int64_t to) {                                 \
    const Scores *s = context;                                                                     \
    int64_t n = s->r->classes;                                                                     \
    const int64_t *target = lt_tensor_data(s->r->target);                                          \
    const T *x = s->x;                                                                             \
    T *peak = s->peak, *log_sum = s->log_sum, *logp = s->logp;                                     \
    if (s->r->inner == 1)                                                                          \
      lt_rows()->log_sums_##F(x + from * n, to - from, n, peak + from, log_sum + from);            \
    else                                                                                           \
      for (int64_t i = from, w; i < to && !lt_stopped(); i += w) {                                 \
        w = columns_from(s->r, i, to);                                                             \
        lt_rows()->log_sums_columns_##F(x + row_at(s->r, i), n, s->r->inner, w, peak + i,          \
                                        log_sum + i);                                              \
      }                                                                                            \
    for (int64_t i = from; i < to; i++)                                                            \
      logp[i] = target[i] == s->r->ignore                                                          \
                    ? 0                                                                            \
                    : (x[row_at(s->r, i) + (target[i] - LT_INDEX_BASE) * s->r->inner] - peak[i]) - \
                          log_sum[i];                                                              \
  }                                                                                                \
  static void descend_##F(void *context, int64_t from, int64_t to) {                               \
    const Scores *s = context;                                                                     \
    const Rows *r = s->r;                                                                          \
    int64_t n = r->classes;                                                                        \
    const int64_t *target = lt_tensor_data(r->target);                                             \
    const T *weight = r->weight ? lt_tensor_data(r->weight) : NULL, *grad = s->grad;               \
    T *scale = s->scale, *dx = s->dx;                                                              \
    const T *peak = s->peak, *log_sum = s->log_sum, total = *(const T *)s->total;                  \
    for (int64_t i = from; i < to; i++) {                                                          \
      T g = r->none ? grad[i] : r->mean ? grad[0] / total : grad[0];                               \
      scale[i] =                                                                                   \
          target[i] == r->ignore ? 0 : g * (weight ? weight[target[i] - LT_INDEX_BASE] : 1);       \
    }                                                                                              \
    if (r->inner == 1)                                                                             \
      lt_rows()->cross_entropy_backward_##F((const T *)s->x + from * n, peak + from,               \
                                            log_sum + from, scale + from, to - from, n,            \
                                            dx + from * n);                                        \
    else                                                                                           \
      for (int64_t i = from, w, at; i < to && !lt_stopped(); i += w) {                             \
        w = columns_from(r, i, to), at = row_at(r, i);                                             \
        lt_rows()->cross_entropy_backward_columns_##F((const T *)s->x + at, peak + i, log_sum + i, \
                                                      scale + i, n, r->inner, w, dx + at);         \
      }                                                                                            \
    for (int64_t i = from; i < to; i++)                                                            \
      if (target[i] != r->ignore)                                                                  \
        dx[row_at(r, i) + (target[i] - LT_INDEX_BASE) * r->inner] -= scale[i];                     \
  }                                                                                                \
  /* Reduces the losses of rows, from the log probability of each row's class. */                  \
  static void reduce_##F(const T *logp, const Rows *r, T *out, T *total) {                         \
    const int64_t *target = lt_tensor_data(r->target);                                             \
    const T *weight = r->weight ? lt_tensor_data(r->weight) : NULL;                                \
    double sum = 0, all = 0;                                                                       \
    for (int64_t i = 0; i < r->n; i++) {                                                           \
      bool ignored = target[i] == r->ignore;                                                       \
      double w = ignored ? 0 : weight ? (double)weight[target[i] - LT_INDEX_BASE] : 1;             \
      double loss = ignored ? 0 : -w * (double)logp[i];                                            \
      if (r->none) out[i] = (T)loss;                                                               \
      sum += loss;                                                                                 \
      all += w;                                                                                    \
    }                                                                                              \
    if (!r->none) out[0] = (T)(r->mean ? sum / all : sum);                                         \
    *total = (T)all;                                                                               \
  }

ENTROPY(float, f32)
ENTROPY(double, f64)

/* Points s to the numbers of each row in `sums`, {2, N}. */
static void set_sums(Scores *s, lt_Tensor *sums) {
  s->peak = lt_tensor_data(sums);
  s->log_sum = (char *)s->peak + (size_t)s->r->n * lt_dtype_size(sums->dtype);
}

/* Computes the loss of the rows in x. Returns false with the error set. */
static bool entropy(const Rows *r, lt_Tensor *x, lt_Tensor *out, lt_Tensor *sums,
                    lt_Tensor *total) {
  bool wide = x->dtype == LT_float64;
  Scores s = {.r = r, .x = lt_tensor_data(x)};
  set_sums(&s, sums);
  if (!(s.logp = calloc((size_t)r->n + 1, lt_dtype_size(x->dtype)))) return lt_fail_memory();
  if (x->numel > 0) lt_share(4 * x->numel, r->n, wide ? score_f64 : score_f32, &s);
  if (wide)
    reduce_f64(s.logp, r, lt_tensor_data(out), lt_tensor_data(total));
  else
    reduce_f32(s.logp, r, lt_tensor_data(out), lt_tensor_data(total));
  free(s.logp);
  return true;
}

bool lt_cpu__cross_entropy(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  Rows r;
  if (!rows_open(c, 0, &r)) return false;
  lt_Dtype work = lt_work_dtype(self->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *out = lt_output_open(c->out[0], work);
  bool ok = x && out && entropy(&r, x, out, c->out[1], c->out[2]);
  lt_release(x);
  rows_close(&r);
  return lt_output_close(c->out[0], out) && ok;
}

bool lt_cpu__cross_entropy_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1), *out = c->out[0];
  Rows r;
  if (!rows_open(c, 1, &r)) return false;
  lt_Dtype work = lt_work_dtype(self->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *grad = lt_as_contiguous(lt_in(c, 0), work),
            *sums = lt_as_contiguous(lt_in(c, 6), work),
            *total = lt_as_contiguous(lt_in(c, 7), work), *dx = lt_output_open(out, work);
  void *scale = calloc((size_t)r.n + 1, lt_dtype_size(work));
  bool ok = x && grad && sums && total && dx && (scale || lt_fail_memory());
  if (ok && x->numel > 0) {
    Scores s = {.r = &r,
                .x = lt_tensor_data(x),
                .scale = scale,
                .dx = lt_tensor_data(dx),
                .grad = lt_tensor_data(grad),
                .total = lt_tensor_data(total)};
    set_sums(&s, sums);
    lt_share(4 * x->numel, r.n, work == LT_float64 ? descend_f64 : descend_f32, &s);
  }
  free(scale);
  lt_release(x);
  lt_release(grad);
  lt_release(sums);
  lt_release(total);
  rows_close(&r);
  return lt_output_close(out, dx) && ok;
}
