/* loss.c: the negative log likelihood of rows of log probabilities, and its gradient. Classes count
 * from 1; rows whose class is ignore_index do not contribute. A class out of range is found by the
 * device. */
#include "cuda.h"
#include "loss.h"
#include "accel/operand.h"

/* The tensors that forward and backward share. */
typedef struct Rows {
  lt_Tensor *target, *weight, *part;
} Rows;

static void rows_close(Rows *r) {
  lt_release(r->target);
  lt_release(r->weight);
  lt_release(r->part);
}

/* Fills *k from the arguments; argument `first` is self. Returns false on failure, with nothing to
 * release; else the caller calls rows_close. */
static bool rows_open(lt_Call *c, int first, Rows *r, lt_CudaNll *k) {
  const lt_Tensor *self = lt_in(c, first);
  if (self->ndim != 2)
    return lt_fail("expected 2 dimensions for argument 'self', got %d", self->ndim);
  lt_Tensor *target = lt_in(c, first + 1), *weight = lt_in(c, first + 2);
  const char *reduction = c->arg[first + 3].string;
  *k = (lt_CudaNll){.dtype = self->dtype,
                    .size = lt_dtype_size(self->dtype),
                    .n = self->shape[0],
                    .classes = self->shape[1],
                    .ignore = c->arg[first + 4].i,
                    .reduction = !strcmp(reduction, "mean")   ? LT_CUDA_AVERAGE
                                 : !strcmp(reduction, "none") ? LT_CUDA_EACH
                                                              : LT_CUDA_TOTAL};
  lt_FaultNote note = {.kind = LT_FAULT_TARGET,
                       .argument = "target",
                       .n = k->classes,
                       .ignore = k->ignore,
                       .ndim = target->ndim};
  memcpy(note.shape, target->shape, sizeof note.shape);
  int64_t parts = lt_cuda_nll_parts(k->n);
  bool ok = true;
  r->target = lt_as_contiguous(target, target->dtype);
  r->weight = lt_operand_floats_or_nil(weight, self->dtype, &ok);
  r->part = lt_empty(LT_float64, c->device, 1, &parts);
  if (!ok || !r->target || !r->part || !lt_cuda_fault_open(c, &note, &k->fault)) {
    rows_close(r);
    return false;
  }
  k->target = lt_tensor_data(r->target);
  k->target_dtype = target->dtype;
  k->weight = lt_operand_data(r->weight);
  k->weight_dtype = r->weight ? r->weight->dtype : self->dtype;
  k->part = lt_tensor_data(r->part);
  return true;
}

bool lt_cuda__nll_loss(lt_Call *c) {
  Rows r;
  lt_CudaNll k;
  if (!lt_cuda_begin(c) || !rows_open(c, 0, &r, &k)) return false;
  lt_Tensor *x = lt_as_contiguous(lt_in(c, 0), lt_in(c, 0)->dtype);
  bool ok = x != NULL;
  if (ok) {
    k.x = lt_tensor_data(x);
    k.out = lt_tensor_data(c->out[0]);
    k.total = lt_tensor_data(c->out[1]);
    ok = lt_cuda_launch_ok(lt_cuda_launch_nll(&k, lt_cuda_stream(c)));
  }
  lt_release(x);
  rows_close(&r);
  return ok;
}

bool lt_cuda__nll_loss_backward(lt_Call *c) {
  Rows r;
  lt_CudaNll k;
  if (!lt_cuda_begin(c)) return false;
  if (c->out[0]->numel == 0) return true;
  if (!rows_open(c, 1, &r, &k)) return false;
  lt_Tensor *grad = lt_operand_floats(lt_in(c, 0), k.dtype);
  bool ok = grad != NULL;
  if (ok) {
    k.grad = lt_tensor_data(grad);
    k.grad_dtype = grad->dtype;
    k.out = lt_tensor_data(c->out[0]);
    ok = lt_cuda_launch_ok(lt_cuda_launch_nll_backward(&k, lt_cuda_stream(c)));
  }
  lt_release(grad);
  rows_close(&r);
  return ok;
}
