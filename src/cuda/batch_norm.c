/* batch_norm.c: batch norm (Ioffe and Szegedy 2015) and its gradients. */
#include "batch_norm.h"
#include "accel/operand.h"
#include "cuda.h"

static void set_sizes(lt_CudaBatchNorm *k, const lt_Tensor *x) {
  k->dtype = (int)x->dtype;
  k->images = x->shape[0];
  k->channels = x->shape[1];
  k->n = 1;
  for (int d = 2; d < x->ndim; d++) k->n *= x->shape[d];
}

static int dtype_of(const lt_Tensor *t) { return t ? (int)t->dtype : LT_float32; }

bool lt_cuda__batch_norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  bool ok = true, training = c->arg[5].b;
  if (!lt_cuda_begin(c)) return false;
  if (!training &&
      !(lt_copy_into(c->out[1], lt_in(c, 3), false) && lt_copy_into(c->out[2], lt_in(c, 4), false)))
    return false;
  if (c->out[1]->numel == 0) return true;
  lt_Tensor *x = lt_as_contiguous(self, self->dtype),
            *w = lt_operand_floats_or_nil(lt_in(c, 1), self->dtype, &ok),
            *b = lt_operand_floats_or_nil(lt_in(c, 2), self->dtype, &ok);
  ok = ok && x;
  if (ok) {
    lt_CudaBatchNorm k = {.x = lt_tensor_data(x),
                          .weight = lt_operand_data(w),
                          .bias = lt_operand_data(b),
                          .y = lt_tensor_data(c->out[0]),
                          .mean = lt_tensor_data(c->out[1]),
                          .var = lt_tensor_data(c->out[2]),
                          .weight_dtype = dtype_of(w),
                          .bias_dtype = dtype_of(b),
                          .eps = c->arg[6].f,
                          .training = training};
    set_sizes(&k, self);
    ok = lt_cuda_launch_ok(lt_cuda_launch_batch_norm(&k, lt_cuda_stream(c)));
  }
  lt_release(x);
  lt_release(w);
  lt_release(b);
  return ok;
}

bool lt_cuda__batch_norm_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1);
  lt_Dtype work = lt_dtype_accumulate(self->dtype);
  bool ok = true;
  if (!lt_cuda_begin(c)) return false;
  lt_Tensor *g = lt_operand_floats(lt_in(c, 0), self->dtype),
            *x = lt_as_contiguous(self, self->dtype),
            *w = lt_operand_floats_or_nil(lt_in(c, 2), self->dtype, &ok),
            *mean = lt_as_contiguous(lt_in(c, 3), work), *var = lt_as_contiguous(lt_in(c, 4), work);
  ok = ok && g && x && mean && var;
  if (ok) {
    lt_CudaBatchNorm k = {.g = lt_tensor_data(g),
                          .x = lt_tensor_data(x),
                          .weight = lt_operand_data(w),
                          .y = lt_tensor_data(c->out[0]),
                          .mean = lt_tensor_data(mean),
                          .var = lt_tensor_data(var),
                          .dweight = lt_tensor_data(c->out[1]),
                          .dbias = lt_tensor_data(c->out[2]),
                          .g_dtype = (int)g->dtype,
                          .weight_dtype = dtype_of(w),
                          .eps = c->arg[6].f,
                          .training = c->arg[5].b};
    set_sizes(&k, self);
    ok = lt_cuda_launch_ok(lt_cuda_launch_batch_norm_backward(&k, lt_cuda_stream(c)));
  }
  lt_release(g);
  lt_release(x);
  lt_release(w);
  lt_release(mean);
  lt_release(var);
  return ok;
}
