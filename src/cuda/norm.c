/* norm.c: layer norm (Ba, Kiros and Hinton 2016) and its gradients. */
#include "cuda.h"
#include "norm.h"
#include "accel/operand.h"

/* Returns the number of elements of the last `normalized` dims. */
static int64_t row_size(const lt_Tensor *t, int64_t normalized) {
  int64_t n = 1;
  for (int d = t->ndim - (int)normalized; d < t->ndim; d++) n *= t->shape[d];
  return n;
}

bool lt_cuda__layer_norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Tensor *mean = c->out[1], *rstd = c->out[2];
  bool ok = true;
  if (!lt_cuda_begin(c)) return false;
  lt_Tensor *x = lt_as_contiguous(self, self->dtype),
            *w = lt_operand_floats_or_nil(lt_in(c, 2), self->dtype, &ok),
            *b = lt_operand_floats_or_nil(lt_in(c, 3), self->dtype, &ok);
  ok = ok && x;
  if (ok) {
    lt_CudaNorm k = {.x = lt_tensor_data(x),
                     .weight = lt_operand_data(w),
                     .bias = lt_operand_data(b),
                     .y = lt_tensor_data(c->out[0]),
                     .mean = lt_tensor_data(mean),
                     .rstd = lt_tensor_data(rstd),
                     .dtype = self->dtype,
                     .rows = mean->numel,
                     .n = row_size(self, c->arg[1].i),
                     .eps = c->arg[4].f};
    ok = lt_cuda_launch_ok(lt_cuda_launch_layer_norm(&k, lt_cuda_stream(c)));
  }
  lt_release(x);
  lt_release(w);
  lt_release(b);
  return ok;
}

/* Allocates scratch memory for the sums of the pieces, and launches. The tensors are contiguous. */
static bool run_backward(const lt_Call *c, lt_CudaNormBackward *k) {
  k->pieces = lt_cuda_norm_pieces(k->rows, k->n);
  int64_t sums = 2 * k->pieces * k->n;
  lt_Tensor *part = lt_empty(lt_dtype_accumulate((lt_Dtype)k->dtype), c->device, 1, &sums);
  if (!part) return false;
  k->part = lt_tensor_data(part);
  bool ok =
      k->n == 0 || lt_cuda_launch_ok(lt_cuda_launch_layer_norm_backward(k, lt_cuda_stream(c)));
  lt_release(part);
  return ok;
}

bool lt_cuda__layer_norm_backward(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 1);
  lt_Dtype work = lt_dtype_accumulate(self->dtype);
  bool ok = true;
  if (!lt_cuda_begin(c)) return false;
  lt_Tensor *g = lt_operand_floats(lt_in(c, 0), self->dtype),
            *x = lt_as_contiguous(self, self->dtype);
  lt_Tensor *mean = lt_as_contiguous(lt_in(c, 3), work),
            *rstd = lt_as_contiguous(lt_in(c, 4), work);
  lt_Tensor *w = lt_operand_floats_or_nil(lt_in(c, 5), self->dtype, &ok);
  ok = ok && g && x && mean && rstd;
  if (ok) {
    lt_CudaNormBackward k = {.g = lt_tensor_data(g),
                             .x = lt_tensor_data(x),
                             .weight = lt_operand_data(w),
                             .mean = lt_tensor_data(mean),
                             .rstd = lt_tensor_data(rstd),
                             .dx = lt_tensor_data(c->out[0]),
                             .dweight = lt_tensor_data(c->out[1]),
                             .dbias = lt_tensor_data(c->out[2]),
                             .g_dtype = g->dtype,
                             .dtype = self->dtype,
                             .rows = mean->numel,
                             .n = row_size(self, c->arg[2].i)};
    ok = run_backward(c, &k);
  }
  lt_release(g);
  lt_release(x);
  lt_release(mean);
  lt_release(rstd);
  lt_release(w);
  return ok;
}
