/* ctc.c: connectionist temporal classification (Graves et al. 2006): the negative log likelihood of
 * targets under log probabilities {T, N, C}, and its gradient.
 *
 * The path of a target of S labels has 2 S + 1 positions: its labels with blanks around them. The
 * forward variables alpha and the backward variables beta are the logarithms of the probabilities
 * of the paths that end, and begin, at a position at a time; both include that of their time. The
 * instances are shared among threads, and each is computed in a fixed order. */
#include "kernel_support.h"
#include "opids.h"
#include "vector.h"

#include <math.h>

/* The arguments of both calls, as contiguous tensors. */
typedef struct Instances {
  lt_Tensor *logp, *labels, *inputs, *targets, *alpha, *grad;
  int64_t times, n, classes, width; /* width: of alpha: 2 S + 1 for the longest target */
  int64_t blank;                    /* from 0 */
  bool zero_infinity;
  void *loss, *dx, *scratch; /* scratch: 4 * width elements for each instance */
} Instances;

static void close_instances(Instances *s) {
  lt_release(s->logp);
  lt_release(s->labels);
  lt_release(s->inputs);
  lt_release(s->targets);
}

/* Reads the arguments from `first` on, and checks each label of the targets. */
static bool open_instances(const lt_Call *c, int first, Instances *s) {
  lt_Tensor *self = lt_in(c, first), *labels = lt_in(c, first + 1);
  *s = (Instances){.times = self->shape[0],
                   .n = self->shape[1],
                   .classes = self->shape[2],
                   .width = 2 * labels->shape[1] + 1,
                   .blank = c->arg[first + 4].i - LT_INDEX_BASE};
  s->logp = lt_as_contiguous(self, lt_work_dtype(self->dtype));
  s->labels = lt_as_contiguous(labels, LT_int64);
  s->inputs = lt_as_contiguous(lt_in(c, first + 2), LT_int64);
  s->targets = lt_as_contiguous(lt_in(c, first + 3), LT_int64);
  bool ok = s->logp && s->labels && s->inputs && s->targets;
  for (int64_t i = 0; ok && i < s->n; i++) {
    const int64_t *row = (const int64_t *)lt_tensor_data(s->labels) + i * labels->shape[1];
    int64_t times = ((const int64_t *)lt_tensor_data(s->inputs))[i],
            count = ((const int64_t *)lt_tensor_data(s->targets))[i];
    if (times < 0 || times > s->times || count < 0 || count > labels->shape[1])
      ok = lt_fail("expected lengths from 0 to %lld and %lld, got %lld and %lld",
                   (long long)s->times, (long long)labels->shape[1], (long long)times,
                   (long long)count);
    for (int64_t k = 0; ok && k < count; k++)
      if (row[k] < LT_INDEX_BASE || row[k] >= s->classes + LT_INDEX_BASE)
        ok = lt_fail("expected labels from 1 to %lld for argument 'targets', got %lld",
                     (long long)s->classes, (long long)row[k]);
  }
  if (!ok) close_instances(s);
  return ok;
}

/* One instance: `count` labels, from 1; log probabilities that are `step` apart in time. */
#define CTC(T, F, M, D)                                                                            \
  typedef struct Path_##F {                                                                        \
    const int64_t *label;                                                                          \
    int64_t count, times, step, blank;                                                             \
    const T *logp;                                                                                 \
  } Path_##F;                                                                                      \
  static Path_##F path_##F(const Instances *s, int64_t i) {                                        \
    int64_t longest = (s->width - 1) / 2;                                                          \
    return (Path_##F){(const int64_t *)lt_tensor_data(s->labels) + i * longest,                    \
                      ((const int64_t *)lt_tensor_data(s->targets))[i],                            \
                      ((const int64_t *)lt_tensor_data(s->inputs))[i],                             \
                      s->n * s->classes,                                                           \
                      s->blank,                                                                    \
                      (const T *)lt_tensor_data(s->logp) + i * s->classes};                        \
  }                                                                                                \
  static int64_t class_##F(const Path_##F *p, int64_t at) {                                        \
    return at % 2 == 0 ? p->blank : p->label[at / 2] - LT_INDEX_BASE;                              \
  }                                                                                                \
  /* Returns whether a path may go to `at` from two positions before.   */                         \
  static bool skips_##F(const Path_##F *p, int64_t at) {                                           \
    if (at % 2 == 0 || at < 2) return false;                                                       \
    int64_t own = class_##F(p, at);                                                                \
    return own != p->blank && own != class_##F(p, at - 2);                                         \
  }                                                                                                \
  /* Returns log(e^a + e^b + e^c). */                                                              \
  static T add_##F(T a, T b, T c) {                                                                \
    T most = a > b ? a : b;                                                                        \
    most = most > c ? most : c;                                                                    \
    if (most == -(T)INFINITY && a == a && b == b && c == c) return most;                           \
    T sum = 0;                                                                                     \
    sum += a == most ? 1 : a == -(T)INFINITY ? 0 : exp##M(a - most);                               \
    sum += b == most ? 1 : b == -(T)INFINITY ? 0 : exp##M(b - most);                               \
    sum += c == most ? 1 : c == -(T)INFINITY ? 0 : exp##M(c - most);                               \
    return most + log##M(sum);                                                                     \
  }                                                                                                \
  static T likelihood_##F(const Path_##F *p, const T *alpha, int64_t step) {                       \
    if (p->times == 0) return p->count == 0 ? 0 : -(T)INFINITY;                                    \
    const T *last = alpha + (p->times - 1) * step;                                                 \
    return add_##F(last[2 * p->count], p->count > 0 ? last[2 * p->count - 1] : -(T)INFINITY,       \
                   -(T)INFINITY);                                                                  \
  }                                                                                                \
  /* Computes alpha of n positions from that before. scratch: 4 n elements. */                     \
  /* The difference of two -inf counts as 0: their sum remains -inf. */                            \
  static void advance_##F(const Path_##F *p, int64_t n, const T *before, T *scratch, T *alpha) {   \
    T *own = scratch, *one = own + n, *two = one + n, *most = two + n;                             \
    for (int64_t k = 0; k < n; k++) {                                                              \
      T a = before[k], b = k > 0 ? before[k - 1] : -(T)INFINITY,                                   \
        c = skips_##F(p, k) ? before[k - 2] : -(T)INFINITY, m = a > b ? a : b;                     \
      m = m > c ? m : c;                                                                           \
      own[k] = a == m ? 0 : a - m;                                                                 \
      one[k] = b == m ? 0 : b - m;                                                                 \
      two[k] = c == m ? 0 : c - m;                                                                 \
      most[k] = m;                                                                                 \
    }                                                                                              \
    lt_vector_op(LT_OP_exp, D, 3 * n, scratch, scratch, NULL);                                     \
    for (int64_t k = 0; k < n; k++) own[k] = own[k] + one[k] + two[k];                             \
    lt_vector_op(LT_OP_log, D, n, own, own, NULL);                                                 \
    for (int64_t k = 0; k < n; k++) alpha[k] = most[k] + own[k];                                   \
  }                                                                                                \
  static void forward_##F(void *context, int64_t from, int64_t to) {                               \
    const Instances *s = context;                                                                  \
    int64_t step = s->n * s->width;                                                                \
    for (int64_t i = from; i < to; i++) {                                                          \
      Path_##F p = path_##F(s, i);                                                                 \
      int64_t n = 2 * p.count + 1;                                                                 \
      T *alpha = (T *)lt_tensor_data(s->alpha) + i * s->width;                                     \
      for (int64_t t = 0; t < p.times && !lt_stopped(); t++) {                                     \
        T *now = alpha + t * step;                                                                 \
        const T *value = p.logp + t * p.step;                                                      \
        if (t > 0)                                                                                 \
          advance_##F(&p, n, now - step, (T *)s->scratch + 4 * i * s->width, now);                 \
        else                                                                                       \
          for (int64_t k = 0; k < n; k++) now[k] = k < 2 ? 0 : -(T)INFINITY;                       \
        for (int64_t k = 0; k < n; k++) now[k] += value[class_##F(&p, k)];                         \
      }                                                                                            \
      for (int64_t t = 0; t < s->times; t++) /* what is not part of a path */                      \
        for (int64_t k = t < p.times ? n : 0; k < s->width; k++)                                   \
          alpha[t * step + k] = -(T)INFINITY;                                                      \
      ((T *)s->loss)[i] = 0 - likelihood_##F(&p, alpha, step);                                     \
    }                                                                                              \
  }                                                                                                \
  /* Computes g times e^x less the probability of each class at each time given the target. */     \
  static void backward_##F(void *context, int64_t from, int64_t to) {                              \
    const Instances *s = context;                                                                  \
    int64_t step = s->n * s->width;                                                                \
    for (int64_t i = from; i < to; i++) {                                                          \
      Path_##F p = path_##F(s, i);                                                                 \
      const T *alpha = (const T *)lt_tensor_data(s->alpha) + i * s->width;                         \
      T *beta = (T *)s->scratch + 2 * i * s->width, *dx = (T *)s->dx + i * s->classes;             \
      T total = likelihood_##F(&p, alpha, step), g = ((const T *)lt_tensor_data(s->grad))[i];      \
      int64_t times = s->zero_infinity && total == -(T)INFINITY ? 0 : p.times, n = 2 * p.count;    \
      for (int64_t t = s->times - 1; t >= times; t--)                                              \
        memset(dx + t * p.step, 0, (size_t)s->classes * sizeof(T));                                \
      for (int64_t t = times - 1; t >= 0 && !lt_stopped(); t--) {                                  \
        const T *value = p.logp + t * p.step, *later = beta + (t + 1) % 2 * s->width;              \
        T *now = beta + t % 2 * s->width, *row = dx + t * p.step;                                  \
        for (int64_t k = 0; k < s->classes; k++) row[k] = exp##M(value[k]);                        \
        for (int64_t k = 0; k <= n; k++) {                                                         \
          T sum = k >= n - 1 ? 0 : -(T)INFINITY, v = value[class_##F(&p, k)];                      \
          if (t < times - 1)                                                                       \
            sum = add_##F(later[k], k < n ? later[k + 1] : -(T)INFINITY,                           \
                          k + 2 <= n && skips_##F(&p, k + 2) ? later[k + 2] : -(T)INFINITY);       \
          now[k] = sum + v;                                                                        \
          T joint = alpha[t * step + k] + now[k];                                                  \
          if (joint != -(T)INFINITY) row[class_##F(&p, k)] -= exp##M(joint - v - total);           \
        }                                                                                          \
        for (int64_t k = 0; k < s->classes; k++) row[k] *= g;                                      \
      }                                                                                            \
    }                                                                                              \
  }

CTC(float, f32, f, LT_float32)
CTC(double, f64, , LT_float64)

static bool open_scratch(Instances *s, lt_Dtype work) {
  s->scratch = malloc((size_t)(4 * s->n * s->width + 1) * lt_dtype_size(work));
  return s->scratch || lt_fail_memory();
}

/* _ctc_loss (log_probs, targets, input_lengths, target_lengths, blank): loss, alpha */
bool lt_cpu__ctc_loss(lt_Call *c) {
  Instances s;
  if (!open_instances(c, 0, &s)) return false;
  lt_Dtype work = s.logp->dtype;
  lt_Tensor *loss = lt_output_open(c->out[0], work);
  s.alpha = lt_output_open(c->out[1], work);
  bool ok = loss && s.alpha && open_scratch(&s, work);
  if (ok) {
    s.loss = lt_tensor_data(loss);
    lt_share(s.times * s.n * s.width * 32, s.n, work == LT_float64 ? forward_f64 : forward_f32, &s);
  }
  free(s.scratch);
  close_instances(&s);
  ok = lt_output_close(c->out[0], loss) && ok;
  return lt_output_close(c->out[1], s.alpha) && ok;
}

/* _ctc_loss_backward (grad, log_probs, targets, input_lengths, target_lengths, blank,
 * zero_infinity, alpha) */
bool lt_cpu__ctc_loss_backward(lt_Call *c) {
  Instances s;
  if (!open_instances(c, 1, &s)) return false;
  lt_Dtype work = s.logp->dtype;
  lt_Tensor *dx = lt_output_open(c->out[0], work);
  s.grad = lt_as_contiguous(lt_in(c, 0), work);
  s.alpha = lt_as_contiguous(lt_in(c, 7), work);
  s.zero_infinity = c->arg[6].b;
  bool ok = dx && s.grad && s.alpha && open_scratch(&s, work);
  if (ok) {
    s.dx = lt_tensor_data(dx);
    lt_share(s.times * s.n * (s.width * 40 + s.classes * 8), s.n,
             work == LT_float64 ? backward_f64 : backward_f32, &s);
  }
  free(s.scratch);
  lt_release(s.grad);
  lt_release(s.alpha);
  close_instances(&s);
  return lt_output_close(c->out[0], dx) && ok;
}
