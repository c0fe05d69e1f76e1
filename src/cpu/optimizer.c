/* optimizer.c: one step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019) in one
 * pass over memory:
 *
 *   d = +-grad [+ weight_decay p]          the gradient; the decay is added unless it is decoupled
 *   m = beta1 m + (1 - beta1) d            moving averages of the gradient and of its square
 *   v = beta2 v + (1 - beta2) d^2
 *   p = p [(1 - lr weight_decay)] - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
 */
#include "structured.h"
#include "rows.h"

#include <math.h>

typedef struct Step {
  void *p, *m, *v;
  const void *g;
  const lt_AdamStep *numbers;
} Step;

static void step_f32(void *context, int64_t from, int64_t to) {
  const Step *s = context;
  lt_rows()->adamw_f32((float *)s->p + from, (const float *)s->g + from, (float *)s->m + from,
                       (float *)s->v + from, to - from, s->numbers);
}

static void step_f64(void *context, int64_t from, int64_t to) {
  const Step *s = context;
  lt_rows()->adamw_f64((double *)s->p + from, (const double *)s->g + from, (double *)s->m + from,
                       (double *)s->v + from, to - from, s->numbers);
}

bool lt_cpu__adamw_step(lt_Call *c) {
  lt_Tensor *self = c->out[0], *exp_avg = lt_in(c, 2), *exp_avg_sq = lt_in(c, 3);
  lt_Dtype work = lt_work_dtype(self->dtype);
  double t = c->arg[4].f, lr = c->arg[5].f, beta1 = c->arg[6].f, beta2 = c->arg[7].f,
         decay = c->arg[9].f;
  bool decoupled = c->arg[10].b;
  lt_AdamStep step = {.sign = c->arg[11].b ? -1 : 1,
                      .decay = decoupled ? 0 : decay,
                      .shrink = decoupled ? 1 - lr * decay : 1,
                      .beta1 = beta1,
                      .beta2 = beta2,
                      .eps = c->arg[8].f,
                      .size = lr / (1 - pow(beta1, t)),
                      .root = 1 / sqrt(1 - pow(beta2, t))};
  if (self->numel == 0) return true;
  lt_Tensor *p = lt_update_open(self, work), *g = lt_as_contiguous(lt_in(c, 1), work);
  lt_Tensor *m = lt_update_open(exp_avg, work), *v = lt_update_open(exp_avg_sq, work);
  bool ok = p && g && m && v;
  if (ok) {
    Step s = {lt_tensor_data(p), lt_tensor_data(m), lt_tensor_data(v), lt_tensor_data(g), &step};
    lt_share(2 * self->numel, self->numel, work == LT_float64 ? step_f64 : step_f32, &s);
  } else {
    lt_release(p);
    lt_release(m);
    lt_release(v);
  }
  lt_release(g);
  if (!ok) return false;
  ok = lt_output_close(exp_avg, m);
  ok = lt_output_close(exp_avg_sq, v) && ok;
  return lt_output_close(self, p) && ok;
}
