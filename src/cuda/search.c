/* search.c: binary search for many values in sorted rows. */
#include "cuda.h"
#include "search.h"

/* _searchsorted (sorted_sequence, self, right) */
bool lt_cuda__searchsorted(lt_Call *c) {
  lt_Tensor *sequence = lt_in(c, 0), *out = c->out[0];
  if (!lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  lt_Tensor *sorted = lt_as_contiguous(sequence, sequence->dtype),
            *values = lt_as_contiguous(lt_in(c, 1), sequence->dtype);
  bool ok = sorted && values;
  if (ok) {
    lt_CudaSearch s = {.sorted = lt_tensor_data(sorted),
                       .values = lt_tensor_data(values),
                       .dtype = sequence->dtype,
                       .is_float = lt_dtype_is_float(sequence->dtype),
                       .one_row = sequence->ndim == 1,
                       .right = c->arg[2].b,
                       .out = lt_tensor_data(out),
                       .n = sequence->shape[sequence->ndim - 1],
                       .each = out->ndim ? out->shape[out->ndim - 1] : 1,
                       .count = out->numel};
    ok = lt_cuda_launch_ok(lt_cuda_launch_search(&s, lt_cuda_stream(c)));
  }
  lt_release(sorted);
  lt_release(values);
  return ok;
}
