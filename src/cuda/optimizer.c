/* optimizer.c: one step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019) in one
 * pass over memory; the formula stands in cpu/optimizer.c.
 */
#include "cuda.h"
#include "operand.h"
#include "optimizer.h"

#include <math.h>

/* The numbers of a step that are the same for all elements. */
static lt_CudaAdam step_numbers(const lt_Call *c) {
  double t = c->arg[4].f, lr = c->arg[5].f, beta1 = c->arg[6].f, beta2 = c->arg[7].f,
         decay = c->arg[9].f;
  bool decoupled = c->arg[10].b;
  return (lt_CudaAdam){.sign = c->arg[11].b ? -1 : 1,
                       .decay = decoupled ? 0 : decay,
                       .shrink = decoupled ? 1 - lr * decay : 1,
                       .beta1 = beta1,
                       .beta2 = beta2,
                       .eps = c->arg[8].f,
                       .size = lr / (1 - pow(beta1, t)),
                       .root = 1 / sqrt(1 - pow(beta2, t))};
}

bool lt_cuda__adamw_step(lt_Call *c) {
  lt_Tensor *self = c->out[0], *exp_avg = lt_in(c, 2), *exp_avg_sq = lt_in(c, 3);
  if (!lt_cuda_begin(c)) return false;
  if (self->numel == 0) return true;
  lt_Tensor *g = lt_as_contiguous(lt_in(c, 1), self->dtype),
            *m = lt_as_contiguous(exp_avg, self->dtype),
            *v = lt_as_contiguous(exp_avg_sq, self->dtype);
  bool ok = g && m && v;
  if (ok) {
    lt_CudaAdam k = step_numbers(c);
    k.p = lt_tensor_data(self);
    k.g = lt_tensor_data(g);
    k.m = lt_tensor_data(m);
    k.v = lt_tensor_data(v);
    k.dtype = self->dtype;
    k.n = self->numel;
    ok = lt_cuda_ran(lt_cuda_launch_adam(&k, lt_cuda_stream(c)));
  }
  lt_release(g);
  if (!ok) {
    lt_release(m);
    lt_release(v);
    return false;
  }
  ok = lt_cuda_output_close(exp_avg, m);
  return lt_cuda_output_close(exp_avg_sq, v) && ok;
}
