/* margin.c: hinge losses of rows of scores, for one class of each row or for several. Classes are
 * counted from 1. Sums are computed in float64. */
#include "kernel_support.h"

/* The arguments, as contiguous tensors: the scores and weights in the working dtype. */
typedef struct Margins {
  const void *x, *weight;
  const int64_t *target;
  void *out;
  int64_t classes, p;
  double margin;
  atomic_bool *failed; /* set when memory is out */
} Margins;

#define MARGINS(T, F)                                                                              \
  /* Computes rows from..to of _multi_margin_loss. */                                              \
  static void multi_##F(void *context, int64_t from, int64_t to) {                                 \
    const Margins *m = context;                                                                    \
    const T *weight = m->weight;                                                                   \
    T margin = (T)m->margin;                                                                       \
    for (int64_t i = from; i < to && !lt_stopped(); i++) {                                         \
      const T *x = (const T *)m->x + i * m->classes;                                               \
      int64_t y = m->target[i] - LT_INDEX_BASE;                                                    \
      T own = margin - x[y], w = weight ? weight[y] : 1;                                           \
      double sum = 0;                                                                              \
      for (int64_t j = 0; j < m->classes; j++) {                                                   \
        T v = own + x[j];                                                                          \
        v = v < 0 || j == y ? 0 : v;                                                               \
        sum += (double)(m->p == 2 ? v * v : v);                                                    \
      }                                                                                            \
      ((T *)m->out)[i] = (T)(sum * (double)w / (double)m->classes);                                \
    }                                                                                              \
  }                                                                                                \
  /* Computes rows from..to of _multilabel_margin_loss. */                                         \
  static void multilabel_##F(void *context, int64_t from, int64_t to) {                            \
    const Margins *m = context;                                                                    \
    bool *listed = malloc((size_t)m->classes);                                                     \
    if (!listed) atomic_store(m->failed, true);                                                    \
    for (int64_t i = from; i < to && listed && !lt_stopped(); i++) {                               \
      const T *x = (const T *)m->x + i * m->classes;                                               \
      const int64_t *y = m->target + i * m->classes;                                               \
      double sum = 0;                                                                              \
      memset(listed, 0, (size_t)m->classes);                                                       \
      for (int64_t k = 0; k < m->classes && y[k] >= 1; k++) listed[y[k] - LT_INDEX_BASE] = true;   \
      for (int64_t k = 0; k < m->classes && y[k] >= 1 && !lt_stopped(); k++) {                     \
        T own = 1 - x[y[k] - LT_INDEX_BASE];                                                       \
        for (int64_t j = 0; j < m->classes; j++) {                                                 \
          T v = own + x[j];                                                                        \
          sum += (double)(v < 0 || listed[j] ? 0 : v);                                             \
        }                                                                                          \
      }                                                                                            \
      ((T *)m->out)[i] = (T)(sum / (double)m->classes);                                            \
    }                                                                                              \
    free(listed);                                                                                  \
  }
MARGINS(float, f32)
MARGINS(double, f64)

/* Checks that the targets of a row of `width`, up to the first below `least`, are classes. */
static bool check_targets(const lt_Tensor *target, int64_t classes, int64_t least) {
  int64_t width = target->ndim == 2 ? target->shape[1] : 1;
  const int64_t *y = lt_tensor_data(target);
  for (int64_t i = 0; i < target->numel; i++) {
    if (y[i] < least) {
      i += width - 1 - i % width;
      continue;
    }
    if (y[i] < 1 || y[i] > classes)
      return lt_bad_index("target", target->ndim, target->shape, i, y[i], classes, false);
  }
  return true;
}

/* Runs f32 or f64 for all rows. */
static bool run(lt_Call *c, lt_Tensor *weights, Margins *m, int64_t least, lt_RangeFn f32,
                lt_RangeFn f64) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Dtype work = lt_work_dtype(self->dtype);
  lt_Tensor *x = lt_as_contiguous(self, work), *y = lt_as_contiguous(lt_in(c, 1), LT_int64),
            *weight = weights ? lt_as_contiguous(weights, work) : NULL,
            *out = lt_output_open(c->out[0], work);
  atomic_bool failed = false;
  int64_t classes = self->shape[1];
  bool ok = x && y && out && (weight || !weights) && check_targets(y, classes, least);
  if (ok && classes > 0) {
    m->x = lt_tensor_data(x);
    m->weight = weight ? lt_tensor_data(weight) : NULL;
    m->target = lt_tensor_data(y);
    m->out = lt_tensor_data(out);
    m->classes = classes;
    m->failed = &failed;
    lt_share(2 * self->numel, self->shape[0], work == LT_float64 ? f64 : f32, m);
  } else if (ok && out->numel > 0) {
    memset(lt_tensor_data(out), 0, (size_t)out->numel * lt_dtype_size(work));
  }
  lt_release(x);
  lt_release(y);
  lt_release(weight);
  ok = ok && (!atomic_load(&failed) || lt_fail_memory());
  return lt_output_close(c->out[0], out) && ok && lt_check_interrupt();
}

/* _multi_margin_loss (self, target, weight?, p, margin) */
bool lt_cpu__multi_margin_loss(lt_Call *c) {
  Margins m = {.p = c->arg[3].i, .margin = c->arg[4].f};
  return run(c, lt_in(c, 2), &m, INT64_MIN, multi_f32, multi_f64);
}

/* _multilabel_margin_loss (self, target) */
bool lt_cpu__multilabel_margin_loss(lt_Call *c) {
  Margins m = {.p = 1};
  return run(c, NULL, &m, 1, multilabel_f32, multilabel_f64);
}
