/* infer_index.c: indexing by index tensors and masks.
 *
 * Only shapes and dtypes are checked here. The index values are data, which the kernels check
 * before they write anything. */
#include "infer.h"

/* Checks an index tensor of at most one dimension and returns its number of indices. */
static bool check_index_vector(const lt_Call *c, int i, int64_t *count) {
  if (!lt_check_index(c, i) || !lt_check_ndim(c, i, 0, 1)) return false;
  *count = lt_in(c, i)->numel;
  return true;
}

/* index_select (self, dim, index) */
bool lt_infer_index_select(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t count, shape[LT_MAX_DIMS];
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !check_index_vector(c, 2, &count)) return false;
  if (self->ndim == 0 && count != 1)
    return lt_fail("expected one index for argument 'index', as self has no dimensions, got %lld",
                   (long long)count);
  memcpy(shape, self->shape, sizeof shape);
  if (self->ndim) shape[dim] = count;
  lt_spec(c, 0, self->dtype, self->ndim, shape);
  return true;
}

/* Checks that each size of index is at most that of t, except in dim (-1: no exception). */
static bool check_index_inside(const lt_Tensor *index, const lt_Tensor *t, const char *who,
                               int dim) {
  int n = index->ndim ? index->ndim : 1, m = t->ndim ? t->ndim : 1;
  if (n != m)
    return lt_fail("expected the same number of dimensions for index and %s, got %s and %s", who,
                   lt_text(index), lt_text(t));
  for (int d = 0; d < n; d++)
    if (d != dim && lt_size_at(index, d) > lt_size_at(t, d))
      return lt_fail(
          "expected an index no larger than %s %s for argument 'index', got %s: dim %d is larger",
          who, lt_text(t), lt_text(index), d + 1);
  return true;
}

/* gather (self, dim, index) */
bool lt_infer_gather(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *index = lt_in(c, 2);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !lt_check_index(c, 2)) return false;
  if (index->numel && !check_index_inside(index, self, "self", dim)) return false;
  lt_spec(c, 0, self->dtype, index->ndim, index->shape);
  return true;
}

/* Checks that argument i, if it is a number, fits self's dtype. */
static bool number_fits(const lt_Call *c, int i) {
  char element[16];
  return c->arg[i].kind != LT_ARG_SCALAR ||
         lt_scalar_store(c->arg[i].scalar, lt_in(c, 0)->dtype, element);
}

/* _scatter (self, dim, index, src: tensor or number), scatter_add (self, dim, index, src),
 * _scatter_reduce (self, dim, index, src, reduce) */
bool lt_infer_scatter(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *index = lt_in(c, 2), *src = lt_in(c, 3);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !lt_check_index(c, 2)) return false;
  if (src && !lt_check_same_dtype(c, 0, 3)) return false;
  if (!number_fits(c, 3)) return false;
  if (index->numel && !check_index_inside(index, self, "self", dim)) return false;
  if (index->numel && src && !check_index_inside(index, src, "src", -1)) return false;
  lt_spec_like(c, 0, self);
  return true;
}

/* index_add, index_copy (self, dim, index, source, ...) */
bool lt_infer_index_update(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *source = lt_in(c, 3);
  int64_t count, shape[LT_MAX_DIMS];
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !check_index_vector(c, 2, &count) || !lt_check_same_dtype(c, 0, 3)) return false;
  memcpy(shape, self->shape, sizeof shape);
  shape[dim] = count;
  int ndim = self->ndim ? self->ndim : 1;
  bool one = source->ndim == 0 && count == 1 && ndim == 1; /* a 0-d source for one index */
  bool same = lt_shape_equal(source->ndim, source->shape, ndim, shape);
  if (!one && !same)
    return lt_fail("expected shape %s for argument 'source' (%lld indices in dim %d of %s), got %s",
                   lt_shape_text(ndim, shape), (long long)count, dim + 1, lt_text(self),
                   lt_text(source));
  lt_spec_like(c, 0, self);
  return true;
}

/* index_fill (self, dim, index, value) */
bool lt_infer_index_fill(lt_Call *c) {
  int64_t count;
  if (lt_dim(c->arg[1].i, lt_in(c, 0)->ndim) < 0 || !check_index_vector(c, 2, &count) ||
      !number_fits(c, 3) || (lt_in(c, 3) && !lt_check_ndim(c, 3, 0, 0)))
    return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* ---- several index tensors ------------------------------------------------------------------- */

/* Computes the shape to which the index tensors are broadcast. */
static bool broadcast_indices(const lt_Call *c, int *ndim, int64_t *shape) {
  *ndim = 0;
  for (int k = 0; k < c->arg[1].count; k++) {
    const lt_Tensor *t = c->arg[1].tensors[k];
    if (lt_dtype_category(t->dtype) != LT_INTEGER || t->dtype == LT_uint8)
      return lt_fail("expected dtype \"bool\" or \"int64\" for index %d, got \"%s\"", k + 1,
                     lt_dtype_name(t->dtype));
    if (!lt_shape_broadcast(ndim, shape, t->ndim, t->shape))
      return lt_fail("cannot broadcast index %d of shape %s with the ones before it, %s", k + 1,
                     lt_text(t), lt_shape_text(*ndim, shape));
  }
  return true;
}

/* Checks that there is a dim for each index tensor, in ascending order. */
static bool check_indexed_dims(const lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int n = c->arg[1].count;
  if (n == 0 || n != c->arg[2].count)
    return lt_fail("expected %d index tensors, one for each dim, got %d", c->arg[2].count, n);
  for (int k = 0; k < n; k++) {
    int64_t d = c->arg[2].ints[k];
    if (d < 0 || d >= self->ndim)
      return lt_fail("expected the dims of self, 0 to %d, for argument 'dims', got %lld",
                     self->ndim - 1, (long long)d);
    if (k > 0 && d <= c->arg[2].ints[k - 1])
      return lt_fail("expected the indexed dims in ascending order, got dim %lld out of order",
                     (long long)d + 1);
  }
  return true;
}

/* Computes the shape of self indexed in these dims. The common shape of the indices replaces the
 * dims if they are neighbours, and comes first if they are not (NumPy's rule). */
static bool indexed_shape(const lt_Call *c, int *ndim, int64_t *shape) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t common[LT_MAX_DIMS];
  int n = c->arg[1].count, width;
  const int64_t *dims = c->arg[2].ints;
  if (!check_indexed_dims(c) || !broadcast_indices(c, &width, common)) return false;
  if (!lt_check_rank(self->ndim - n + width)) return false;
  bool some = true;
  for (int d = 0; d < width; d++) some = some && common[d] != 0;
  bool neighbours = dims[n - 1] - dims[0] == n - 1;
  int place = neighbours ? (int)dims[0] : 0, out = 0, k = 0;
  for (int d = 0; d <= self->ndim; d++) {
    if (d == place)
      for (int w = 0; w < width; w++) shape[out++] = common[w];
    if (d == self->ndim) break;
    if (k < n && dims[k] == d) {
      if (some && self->shape[d] == 0)
        return lt_fail("cannot index dim %d of %s: it is empty", d + 1, lt_text(self));
      k++;
    } else {
      shape[out++] = self->shape[d];
    }
  }
  *ndim = out;
  return true;
}

/* _index (self, indices, dims) */
bool lt_infer_index(lt_Call *c) {
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  if (!indexed_shape(c, &ndim, shape)) return false;
  lt_spec(c, 0, lt_in(c, 0)->dtype, ndim, shape);
  return true;
}

/* _index_put (self, indices, dims, values, accumulate) */
bool lt_infer_index_put(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *values = lt_in(c, 3);
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  if (!indexed_shape(c, &ndim, shape)) return false;
  if (!lt_check_expands("values", values->ndim, values->shape, "the indices", ndim, shape))
    return false;
  if (!lt_check_same_dtype(c, 0, 3)) return false;
  lt_spec_like(c, 0, self);
  return true;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Prepares a result whose shape depends on the data: the kernel allocates it. */
static bool shape_is_data(lt_Call *c, lt_Dtype dtype) {
  if (lt_tensor_is_meta(lt_in(c, 0)))
    return lt_fail(
        "cannot infer the shape of the result: it depends on the data, and a meta tensor has none");
  c->spec[0].dtype = dtype;
  c->spec[0].device = c->device;
  c->nout = 0;
  return true;
}

/* masked_select (self, mask) */
bool lt_infer_masked_select(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *mask = lt_in(c, 1);
  if (!lt_check_mask(c, 1)) return false;
  int ndim = self->ndim;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, self->shape, sizeof shape);
  if (!lt_shape_broadcast(&ndim, shape, mask->ndim, mask->shape))
    return lt_fail("cannot broadcast self %s and mask %s together", lt_text(self), lt_text(mask));
  return shape_is_data(c, self->dtype);
}

/* nonzero (self), _bincount (self, minlength) */
bool lt_infer_nonzero(lt_Call *c) { return shape_is_data(c, LT_int64); }
bool lt_infer_bincount(lt_Call *c) { return shape_is_data(c, LT_int64); }

/* _histc (self, bins, low, high) */
bool lt_infer_histc(lt_Call *c) {
  enum { MOST = 1 << 24 }; /* bins that float32 counts exactly */
  const lt_Tensor *self = lt_in(c, 0);
  if (self->dtype != LT_float32 && self->dtype != LT_float64)
    return lt_fail("expected dtype \"float32\" or \"float64\" for argument 'self', got \"%s\"",
                   lt_dtype_name(self->dtype));
  if (c->arg[1].i < 1 || c->arg[1].i > MOST)
    return lt_fail("expected an integer from 1 to %d for argument 'bins', got %lld", MOST,
                   (long long)c->arg[1].i);
  lt_spec(c, 0, self->dtype, 1, &c->arg[1].i);
  return true;
}

/* masked_scatter (self, mask, source): self and mask are broadcast */
bool lt_infer_masked_scatter(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *mask = lt_in(c, 1);
  if (!lt_check_mask(c, 1) || !lt_check_same_dtype(c, 0, 2)) return false;
  int ndim = self->ndim;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, self->shape, sizeof(int64_t) * (size_t)ndim);
  if (!lt_shape_broadcast(&ndim, shape, mask->ndim, mask->shape))
    return lt_fail("cannot broadcast mask %s and self %s to one shape",
                   lt_shape_text(mask->ndim, mask->shape), lt_shape_text(self->ndim, self->shape));
  lt_spec(c, 0, self->dtype, ndim, shape);
  return true;
}

/* ---- embedding ------------------------------------------------------------------------------- */

/* embedding (weight, input, padding_idx): afterwards padding_idx is 1-based, 0 for none. */
bool lt_infer_embedding(lt_Call *c) {
  const lt_Tensor *weight = lt_in(c, 0), *input = lt_in(c, 1);
  if (!lt_check_ndim(c, 0, 2, 2) || !lt_check_index(c, 1) || !lt_check_rank(input->ndim + 1))
    return false;
  int64_t rows = weight->shape[0], *padding = &c->arg[2].i;
  if (*padding < -rows || *padding > rows)
    return lt_fail(
        "expected an index from 1 to %lld, a row of weight, for argument 'padding_idx', got %lld",
        (long long)rows, (long long)*padding);
  if (*padding < 0) *padding += rows + LT_INDEX_BASE;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, input->shape, sizeof shape);
  shape[input->ndim] = weight->shape[1];
  lt_spec(c, 0, weight->dtype, input->ndim + 1, shape);
  return true;
}

/* _embedding_sum (weight, input, index, bags, factors?) */
bool lt_infer_embedding_sum(lt_Call *c) {
  if (!lt_check_ndim(c, 0, 2, 2) || !lt_check_ndim(c, 1, 1, 1) || !lt_check_index(c, 1) ||
      !lt_check_index(c, 2) || !lt_check_same_shape(c, 2, 1) || !lt_check_count(c, 3))
    return false;
  if (lt_in(c, 4) && (!lt_check_same_dtype(c, 4, 0) || !lt_check_same_shape(c, 4, 1))) return false;
  int64_t shape[2] = {c->arg[3].i, lt_in(c, 0)->shape[1]};
  lt_spec(c, 0, lt_in(c, 0)->dtype, 2, shape);
  return true;
}

/* _embedding_backward (grad, input, num_embeddings, padding_idx) */
bool lt_infer_embedding_backward(lt_Call *c) {
  const lt_Tensor *grad = lt_in(c, 0), *input = lt_in(c, 1);
  if (!lt_check_float(c, 0) || !lt_check_index(c, 1) || !lt_check_count(c, 2)) return false;
  if (grad->ndim != input->ndim + 1 ||
      !lt_shape_equal(input->ndim, grad->shape, input->ndim, input->shape))
    return lt_fail("expected one row for each index in input %s for argument 'grad', got %s",
                   lt_text(input), lt_text(grad));
  int64_t shape[2] = {c->arg[2].i, grad->shape[grad->ndim - 1]};
  lt_spec(c, 0, grad->dtype, 2, shape);
  return true;
}
