/* group_norm.c: group norm (Wu and He 2018) and its gradients. A group of channels of one instance
 * is computed by one thread. float16 and bfloat16 are computed in float32. */
#include "kernel_support.h"
#include "rows.h"

#include <math.h>

/* A call in the working dtype, on {instances, groups, channels of a group, n} elements. */
typedef struct Work {
  const void *g, *x, *w, *b;
  void *y, *mean, *var; /* backward: y is the input's gradient */
  double *sums;         /* backward: of each channel, sum(g) and sum(g (x - mean)) */
  double eps;
  int64_t instances, groups, channels, n;
} Work;

/* The gradients are those of batch norm (batch_norm.c), with sums over the channels of a group. */
#define NORM(T, F)                                                                                 \
  static void forward_##F(void *context, int64_t from, int64_t to) {                               \
    const Work *k = context;                                                                       \
    int64_t size = k->channels * k->n;                                                             \
    for (int64_t i = from; i < to && !lt_stopped(); i++) {                                         \
      const T *x = (const T *)k->x + i * size, *w = k->w, *b = k->b;                               \
      T mean = 0, squares = 0, *y = (T *)k->y + i * size;                                          \
      if (size) lt_rows()->moments_##F(x, size, &mean, &squares);                                  \
      T var = size ? squares / (T)size : 0;                                                        \
      ((T *)k->mean)[i] = mean;                                                                    \
      ((T *)k->var)[i] = var;                                                                      \
      T rstd = (T)(1 / sqrt((double)var + k->eps));                                                \
      for (int64_t j = 0, c = i % k->groups * k->channels; j < k->channels; j++, c++)              \
        lt_rows()->affine_##F(x + j * k->n, mean, w ? rstd * w[c] : rstd, b ? b[c] : 0, k->n,      \
                              y + j * k->n);                                                       \
    }                                                                                              \
  }                                                                                                \
  static void backward_##F(void *context, int64_t from, int64_t to) {                              \
    const Work *k = context;                                                                       \
    int64_t size = k->channels * k->n;                                                             \
    for (int64_t i = from; i < to && !lt_stopped(); i++) {                                         \
      const T *g = (const T *)k->g + i * size, *x = (const T *)k->x + i * size;                    \
      const T *w = k->w ? (const T *)k->w + i % k->groups * k->channels : NULL;                    \
      T mean = ((const T *)k->mean)[i], *dx = (T *)k->y + i * size;                                \
      double rstd = 1 / sqrt((double)((const T *)k->var)[i] + k->eps), sum = 0, product = 0;       \
      double *sums = k->sums + 2 * i * k->channels;                                                \
      for (int64_t j = 0; j < k->channels; j++) {                                                  \
        T s, p;                                                                                    \
        lt_rows()->norm_sums_##F(g + j * k->n, x + j * k->n, mean, k->n, &s, &p);                  \
        sums[2 * j] = s;                                                                           \
        sums[2 * j + 1] = p * rstd;                                                                \
        sum += s * (double)(w ? w[j] : 1);                                                         \
        product += p * (double)(w ? w[j] : 1);                                                     \
      }                                                                                            \
      T b = (T)(-rstd * rstd * rstd * product / (double)size),                                     \
        d = (T)(-rstd * sum / (double)size);                                                       \
      for (int64_t j = 0; j < k->channels; j++)                                                    \
        lt_rows()->norm_gradient_##F(g + j * k->n, x + j * k->n, mean, (T)(rstd * (w ? w[j] : 1)), \
                                     b, d, k->n, dx + j * k->n);                                   \
    }                                                                                              \
  }                                                                                                \
  /* Adds up the sums of all instances, in order. */                                               \
  static void parameters_##F(const Work *k, T *dw, T *db) {                                        \
    int64_t all = k->groups * k->channels;                                                         \
    for (int64_t c = 0; c < all; c++) {                                                            \
      double sum = 0, product = 0;                                                                 \
      for (int64_t i = 0; i < k->instances; i++) {                                                 \
        sum += k->sums[2 * (i * all + c)];                                                         \
        product += k->sums[2 * (i * all + c) + 1];                                                 \
      }                                                                                            \
      dw[c] = (T)product;                                                                          \
      db[c] = (T)sum;                                                                              \
    }                                                                                              \
  }

NORM(float, f32)
NORM(double, f64)

static void set_sizes(Work *k, const lt_Tensor *x, int64_t groups) {
  k->instances = x->shape[0];
  k->groups = groups;
  k->channels = x->shape[1] / groups;
  k->n = 1;
  for (int d = 2; d < x->ndim; d++) k->n *= x->shape[d];
}

bool lt_cpu__group_norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Dtype work = lt_work_dtype(self->dtype);
  bool ok = true;
  lt_Tensor *x = lt_as_contiguous(self, work), *w = lt_optional(c, 1, work, &ok),
            *b = lt_optional(c, 2, work, &ok), *y = lt_output_open(c->out[0], work);
  ok = ok && x && y;
  if (ok) {
    Work k = {.x = lt_data_of(x),
              .w = lt_data_of(w),
              .b = lt_data_of(b),
              .y = lt_data_of(y),
              .mean = lt_data_of(c->out[1]),
              .var = lt_data_of(c->out[2]),
              .eps = c->arg[4].f};
    set_sizes(&k, self, c->arg[3].i);
    lt_share(2 * self->numel, k.instances * k.groups,
             work == LT_float64 ? forward_f64 : forward_f32, &k);
  }
  lt_release(x);
  lt_release(w);
  lt_release(b);
  return lt_output_close(c->out[0], y) && ok;
}

bool lt_cpu__group_norm_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1);
  lt_Dtype work = lt_work_dtype(self->dtype);
  bool ok = true;
  lt_Tensor *g = lt_as_contiguous(lt_in(c, 0), work), *x = lt_as_contiguous(self, work),
            *w = lt_optional(c, 2, work, &ok), *mean = lt_as_contiguous(lt_in(c, 3), work),
            *var = lt_as_contiguous(lt_in(c, 4), work), *dx = lt_output_open(c->out[0], work);
  ok = ok && g && x && mean && var && dx;
  if (ok) {
    Work k = {.g = lt_data_of(g),
              .x = lt_data_of(x),
              .w = lt_data_of(w),
              .y = lt_data_of(dx),
              .mean = lt_data_of(mean),
              .var = lt_data_of(var),
              .eps = c->arg[6].f};
    set_sizes(&k, self, c->arg[5].i);
    bool wide = work == LT_float64;
    k.sums = malloc((size_t)(2 * self->shape[0] * self->shape[1] + 1) * sizeof *k.sums);
    if (!k.sums) ok = lt_fail_memory();
    if (ok) {
      lt_share(3 * self->numel, k.instances * k.groups, wide ? backward_f64 : backward_f32, &k);
      if (wide)
        parameters_f64(&k, lt_data_of(c->out[1]), lt_data_of(c->out[2]));
      else
        parameters_f32(&k, lt_data_of(c->out[1]), lt_data_of(c->out[2]));
    }
    free(k.sums);
  }
  lt_release(g);
  lt_release(x);
  lt_release(w);
  lt_release(mean);
  lt_release(var);
  return lt_output_close(c->out[0], dx) && ok;
}
