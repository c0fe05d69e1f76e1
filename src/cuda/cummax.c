/* cummax.c: running maxima and minima along a dimension, with the index of each. */
#include "cuda.h"
#include "scan.h"

/* Plans the pieces, allocates scratch memory for them and launches the kernels. */
static bool cumulate(lt_Call *c, bool largest) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0], *scratch = NULL;
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  lt_Tensor *x = lt_as_contiguous(self, self->dtype);
  if (!x) return false;
  lt_CudaExtremes s = {.largest = largest,
                       .is_float = lt_dtype_is_float(x->dtype),
                       .x = lt_tensor_data(x),
                       .dtype = x->dtype,
                       .values = lt_tensor_data(out),
                       .indices = lt_tensor_data(c->out[1]),
                       .outer = 1,
                       .n = x->ndim ? x->shape[dim] : 1,
                       .inner = 1};
  for (int d = 0; d < dim; d++) s.outer *= x->shape[d];
  for (int d = dim + 1; d < x->ndim; d++) s.inner *= x->shape[d];
  lt_cuda_extremes_plan(&s);
  bool ok = true;
  if (s.pieces > 1) {
    int64_t size = s.outer * s.inner * s.pieces;
    scratch = lt_empty(LT_int64, c->device, 1, &size);
    ok = scratch != NULL;
    if (ok) s.scratch = lt_tensor_data(scratch);
  }
  ok = ok && lt_cuda_launch_ok(lt_cuda_launch_extremes(&s, lt_cuda_stream(c)));
  lt_release(scratch);
  lt_release(x);
  return ok;
}

bool lt_cuda_cummax(lt_Call *c) { return cumulate(c, true); }
bool lt_cuda_cummin(lt_Call *c) { return cumulate(c, false); }
