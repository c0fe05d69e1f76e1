/* infer_move.c: ops that join, copy and rearrange elements. */
#include "infer.h"

/* Returns true for a tensor of shape {0}, which cat accepts among tensors of any shape, like an
 * empty list. */
static bool is_empty_list(const lt_Tensor *t) { return t->ndim == 1 && t->shape[0] == 0; }

/* Checks that `t`, tensor k (0-based) of the list, has the sizes of `first` except in dim. */
static bool check_sizes_match(const lt_Tensor *first, const lt_Tensor *t, int k, int dim) {
  if (t->ndim != first->ndim)
    return lt_fail("expected %d dimension%s for argument 'tensors[%d]', as in %s, got %s",
                   first->ndim, first->ndim == 1 ? "" : "s", k + 1, lt_text(first), lt_text(t));
  for (int d = 0; d < t->ndim; d++)
    if (d != dim && t->shape[d] != first->shape[d])
      return lt_fail("expected the sizes of %s except in dim %d for argument 'tensors[%d]', got "
                     "%s: dim %d differs",
                     lt_text(first), dim + 1, k + 1, lt_text(t), d + 1);
  return true;
}

/* cat (tensors, dim) */
bool lt_infer_cat(lt_Call *c) {
  int n = c->arg[0].count;
  lt_Tensor *const *list = c->arg[0].tensors;
  if (n == 0)
    return lt_fail("expected at least one tensor for argument 'tensors', got an empty list");
  const lt_Tensor *first = NULL;
  lt_Dtype dtype = list[0]->dtype;
  for (int k = 0; k < n; k++) {
    if (list[k]->ndim == 0)
      return lt_fail("expected at least 1 dimension for argument 'tensors[%d]', got 0\nhint: "
                     "lt.stack(tensors)",
                     k + 1);
    if (!first && !is_empty_list(list[k])) first = list[k];
    dtype = lt_dtype_promote(dtype, list[k]->dtype);
  }
  if (!first) first = list[0];
  int dim = lt_dim(c->arg[1].i, first->ndim);
  if (dim < 0) return false;
  int64_t shape[LT_MAX_DIMS], numel;
  memcpy(shape, first->shape, sizeof shape);
  shape[dim] = 0;
  for (int k = 0; k < n; k++) {
    if (is_empty_list(list[k])) continue;
    if (!check_sizes_match(first, list[k], k, dim)) return false;
    if (__builtin_add_overflow(shape[dim], list[k]->shape[dim], &shape[dim]))
      return lt_fail("cannot join: dim %d of the result does not fit int64", dim + 1);
  }
  if (!lt_shape_numel(NULL, first->ndim, shape, &numel)) return false;
  lt_spec(c, 0, dtype, first->ndim, shape);
  return true;
}

/* _to_copy (self, device, dtype, non_blocking) */
bool lt_infer_to_copy(lt_Call *c) {
  if (!lt_check_conversion(c->arg[2].dtype, lt_in(c, 0)->dtype)) return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  c->spec[0].device = c->arg[1].device;
  c->spec[0].dtype = c->arg[2].dtype;
  return true;
}

/* _copy (self, source, non_blocking) */
bool lt_infer_copy(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *source = lt_in(c, 1);
  if (!lt_check_conversion(self->dtype, source->dtype) ||
      !lt_check_expands("source", source->ndim, source->shape, "self", self->ndim, self->shape))
    return false;
  lt_spec_like(c, 0, self);
  return true;
}

/* triu, tril (self, diagonal) */
bool lt_infer_triangle(lt_Call *c) {
  if (!lt_check_ndim(c, 0, 2, LT_MAX_DIMS)) return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* flip (self, dims) */
bool lt_infer_flip(lt_Call *c) {
  unsigned mask;
  if (!lt_dims(&c->arg[1], lt_in(c, 0)->ndim, &mask)) return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* roll (self, shifts, dims): a shift for each dim, or, without dims, one for the flattened
 * tensor. */
bool lt_infer_roll(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int shifts = c->arg[1].count, dims = c->arg[2].count;
  if (dims == 0 && shifts != 1)
    return lt_fail("expected one shift, or as many dims as shifts, got %d shifts", shifts);
  if (dims != 0 && dims != shifts)
    return lt_fail("expected as many shifts as dims (%d), got %d", dims, shifts);
  for (int i = 0; i < dims; i++)
    if (lt_dim(c->arg[2].ints[i], self->ndim) < 0) return false;
  lt_spec_like(c, 0, self);
  return true;
}
