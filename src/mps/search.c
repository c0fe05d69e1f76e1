/* search.c: binary search for many values in sorted rows. */
#include "search.h"
#include "loops.h"

/* _searchsorted (sorted_sequence, self, right) */
bool lt_mps__searchsorted(lt_Call *c) {
  lt_Tensor *sequence = lt_in(c, 0), *out = c->out[0];
  if (!lt_mps_begin(c)) return false;
  if (out->numel == 0) return true;
  lt_Tensor *sorted = lt_as_contiguous(sequence, sequence->dtype),
            *values = lt_as_contiguous(lt_in(c, 1), sequence->dtype);
  bool ok = sorted && values;
  if (ok) {
    lt_MpsSearch s = {.n = sequence->shape[sequence->ndim - 1],
                      .each = out->ndim ? out->shape[out->ndim - 1] : 1,
                      .count = out->numel,
                      .one_row = sequence->ndim == 1,
                      .right = c->arg[2].b};
    lt_MpsLaunch launch = {
        .file = "search",
        .kernel = "search",
        .constants = {sequence->dtype, lt_dtype_is_float(sequence->dtype)},
        .data = {lt_tensor_data(sorted), lt_tensor_data(values), lt_tensor_data(out)},
        .count = 3,
        .arguments = &s,
        .size = sizeof s};
    ok = lt_mps_launch_each(c, launch, out->numel);
  }
  lt_release(sorted);
  lt_release(values);
  return ok;
}
