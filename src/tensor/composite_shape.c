/* composite_shape.c: shape ops and parts of tensors, computed by views. */
#include "infer.h"

/* reshape (self, shape) */
bool lt_composite_reshape(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int ndim;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  if (!lt_view_shape(self->numel, self->ndim, self->shape, &c->arg[1], &ndim, shape)) return false;
  if (!lt_view_strides(self, ndim, shape, strides)) self = lt_do(copy, LT_ARG(self));
  return lt_result_set(c, lt_do_view(self, ndim, shape));
}

/* flatten (self, start_dim, end_dim) */
bool lt_composite_flatten(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int first = lt_dim(c->arg[1].i, self->ndim),
      last = first < 0 ? -1 : lt_dim(c->arg[2].i, self->ndim);
  if (first < 0 || last < 0) return false;
  if (first > last)
    return lt_fail("expected a start_dim of at most end_dim (%d), got %d", last + 1, first + 1);
  if (self->ndim == 0) return lt_result_set(c, lt_do_view(self, 1, (int64_t[]){1}));
  if (first == last) return lt_result_set(c, self);
  int64_t shape[LT_MAX_DIMS], merged;
  if (!lt_shape_numel(NULL, last - first + 1, self->shape + first, &merged)) return false;
  int ndim = 0;
  for (int d = 0; d < self->ndim; d++)
    if (d <= first || d > last) shape[ndim++] = d == first ? merged : self->shape[d];
  int64_t strides[LT_MAX_DIMS];
  if (lt_is_unobserved(c) && lt_view_strides(self, ndim, shape, strides))
    return lt_result_set(c, lt_do_view(self, ndim, shape)); /* as reshape does */
  return lt_result_set(c, lt_do_reshape(self, ndim, shape));
}

/* unflatten (self, dim, sizes) */
bool lt_composite_unflatten(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim), n;
  int64_t parts[LT_MAX_DIMS], shape[LT_MAX_DIMS], size = dim < 0 ? 0 : lt_size_at(self, dim);
  if (dim < 0) return false;
  if (c->arg[2].count == 0)
    return lt_fail("expected the sizes to split dim %d into for argument 'sizes', got none",
                   dim + 1);
  if (!lt_view_shape(size, 1, &size, &c->arg[2], &n, parts)) return false;
  if (!lt_check_rank(self->ndim - 1 + n)) return false;
  int ndim = 0;
  for (int d = 0; d < (self->ndim ? self->ndim : 1); d++) {
    if (d != dim) shape[ndim++] = self->shape[d];
    for (int k = 0; d == dim && k < n; k++) shape[ndim++] = parts[k];
  }
  return lt_result_set(c, lt_do_view(self, ndim, shape));
}

/* t (self) */
bool lt_composite_t(lt_Call *c) {
  if (!lt_check_ndim(c, 0, 0, 2)) return false;
  if (lt_in(c, 0)->ndim < 2) return lt_result_set(c, lt_in(c, 0));
  return lt_result_set(c, lt_do(transpose, c->arg[0], LT_ARG(0), LT_ARG(1)));
}

bool lt_composite_swapaxes(lt_Call *c) {
  return lt_result_set(c, lt_do_(LT_OP_transpose, false, c->arg, 3, 0));
}

/* movedim (self, source, destination): the dims of `source` move to the dims of `destination`, the
 * others keep their order. */
bool lt_composite_movedim(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int n = c->arg[1].count, ndim = self->ndim;
  unsigned taken, placed;
  if (c->arg[2].count != n)
    return lt_fail("expected as many dims for argument 'destination' as for 'source' (%d), got %d",
                   n, c->arg[2].count);
  if (n == 0 || ndim == 0) return lt_result_set(c, lt_in(c, 0));
  if (!lt_dims(&c->arg[1], ndim, &taken) || !lt_dims(&c->arg[2], ndim, &placed)) return false;
  int64_t order[LT_MAX_DIMS] = {0};
  for (int k = 0; k < n; k++)
    order[lt_dim(c->arg[2].ints[k], ndim)] = lt_dim(c->arg[1].ints[k], ndim);
  for (int to = 0, from = 0; to < ndim; to++) {
    if (placed >> to & 1) continue;
    while (taken >> from & 1) from++;
    order[to] = from++;
  }
  return lt_result_set(c, lt_do(permute, c->arg[0], LT_INTS(order, ndim)));
}

bool lt_composite_expand_as(lt_Call *c) {
  return lt_result_set(c, lt_do(expand, c->arg[0], LT_INTS(lt_in(c, 1)->shape, lt_in(c, 1)->ndim)));
}

bool lt_composite_view_as(lt_Call *c) {
  return lt_result_set(c, lt_do_view(lt_in(c, 0), lt_in(c, 1)->ndim, lt_in(c, 1)->shape));
}

bool lt_composite_reshape_as(lt_Call *c) {
  return lt_result_set(c, lt_do_reshape(lt_in(c, 0), lt_in(c, 1)->ndim, lt_in(c, 1)->shape));
}

bool lt_composite_broadcast_to(lt_Call *c) {
  return lt_result_set(c, lt_do(expand, c->arg[0], c->arg[1]));
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Returns the dim in argument i of a tensor that is divided; -1 with an error when the tensor has
 * no dimensions. */
static int divided_dim(const lt_Call *c, int i) {
  const lt_Tensor *self = lt_in(c, 0);
  if (self->ndim) return lt_dim(c->arg[i].i, self->ndim);
  lt_fail("expected a tensor of at least 1 dim for argument 'self', got 0 dims");
  return -1;
}

/* Reads an index, an integer or a 0-d integer tensor of 1-based indices, as a 0-based one. */
static bool read_position(const lt_Call *c, int i, int64_t *position) {
  lt_Scalar s;
  const lt_Tensor *t = lt_in(c, i);
  *position = c->arg[i].i;
  if (!t) return true;
  if (t->ndim != 0 || lt_dtype_category(t->dtype) != LT_INTEGER)
    return lt_fail("expected an integer or a 0-d integer tensor for argument '%s', got a tensor of "
                   "shape %s and dtype \"%s\"",
                   lt_arg_name(c, i), lt_text(t), lt_dtype_name(t->dtype));
  if (!lt_tensor_item((lt_Tensor *)t, &s)) return false;
  if (s.i == 0)
    return lt_fail("expected a 1-based index for argument '%s', got 0", lt_arg_name(c, i));
  *position = s.i > 0 ? s.i - LT_INDEX_BASE : s.i;
  return true;
}

/* narrow (self, dim, start, length) */
bool lt_composite_narrow(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int dim = divided_dim(c, 1);
  int64_t start;
  if (dim < 0 || !lt_check_count(c, 3) || !read_position(c, 2, &start)) return false;
  int64_t length = c->arg[3].i, size = self->shape[dim];
  int64_t first = start < 0 ? start + size : start;
  if (first < 0 || first > size || length > size - first)
    return lt_fail("cannot narrow dim %d of %s to %lld element%s from index %lld: out of range",
                   dim + 1, lt_text(self), (long long)length, length == 1 ? "" : "s",
                   lt_dim_shown(start));
  return lt_result_set(c, lt_do_slice(lt_in(c, 0), dim, first, length));
}

/* Divides dim into parts of these sizes, which must add up to its size. */
static bool split_by_sizes(lt_Call *c, int dim) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t sum = 0, size = self->shape[dim];
  for (int k = 0; k < c->arg[1].count; k++) {
    int64_t part = c->arg[1].ints[k];
    if (part < 0)
      return lt_fail("expected an integer of at least 0 for argument 'split_size[%d]', got %lld",
                     k + 1, (long long)part);
    if (part > size - sum) sum = INT64_MAX; /* past the end, whatever follows */
    if (sum != INT64_MAX)
      sum += part;
    else
      break;
  }
  if (sum != size)
    return lt_fail(
        "expected sizes that add up to %lld, the size of dim %d of %s, for argument 'split_size'",
        (long long)size, dim + 1, lt_text(self));
  return lt_result_set_pieces(c, lt_in(c, 0), dim, c->arg[1].count, c->arg[1].ints, 0);
}

/* split (self, split_size, dim): one number is the size of every part, a list has the size of
 * each. */
bool lt_composite_split(lt_Call *c) {
  int dim = divided_dim(c, 2);
  if (dim < 0) return false;
  if (c->arg[1].count != 1) return split_by_sizes(c, dim);
  int64_t each = c->arg[1].ints[0], size = lt_in(c, 0)->shape[dim];
  if (each < 0 || (each == 0 && size != 0))
    return lt_fail("expected an integer of at least 1 for argument 'split_size', got %lld",
                   (long long)each);
  int64_t n = size == 0 ? 1 : (size - 1) / each + 1;
  return lt_result_set_pieces(c, lt_in(c, 0), dim, n, NULL, each);
}

/* chunk (self, chunks, dim) */
bool lt_composite_chunk(lt_Call *c) {
  int64_t chunks = c->arg[1].i;
  int dim = divided_dim(c, 2);
  if (dim < 0) return false;
  if (chunks < 1)
    return lt_fail("expected an integer of at least 1 for argument 'chunks', got %lld",
                   (long long)chunks);
  int64_t size = lt_in(c, 0)->shape[dim];
  if (size == 0) return lt_result_set_pieces(c, lt_in(c, 0), dim, chunks, NULL, 0);
  int64_t each = (size - 1) / chunks + 1;
  return lt_result_set_pieces(c, lt_in(c, 0), dim, (size - 1) / each + 1, NULL, each);
}

/* unbind (self, dim) */
bool lt_composite_unbind(lt_Call *c) {
  int dim = divided_dim(c, 1);
  if (dim < 0) return false;
  int64_t n = lt_in(c, 0)->shape[dim];
  if (!lt_result_list_open(c, n)) return false;
  for (int64_t i = 0; i < n; i++)
    if (!lt_result_list_add(c, lt_do(select, c->arg[0], LT_ARG(dim), LT_ARG(i)))) return false;
  return true;
}
