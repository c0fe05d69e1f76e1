/* view.c: views: a new geometry on the same storage. No kernel runs, no memory is allocated, and
 * dispatch records the gradient.
 *
 * Invariant: a view addresses only elements of its storage. Most views rearrange or leave out
 * self's elements, so this follows; as_strided checks it. */
#include "infer.h"

/* Sets the result: a tensor on self's storage with this dtype and geometry. */
static bool set_view_as(lt_Call *c, lt_Dtype dtype, int64_t offset, int ndim, const int64_t *shape,
                        const int64_t *strides) {
  c->out[0] = lt_tensor_on(lt_in(c, 0)->storage, dtype, offset, ndim, shape, strides);
  c->nout = 1;
  return c->out[0] != NULL;
}

/* Sets the result with self's dtype. */
static bool set_view(lt_Call *c, int64_t offset, int ndim, const int64_t *shape,
                     const int64_t *strides) {
  return set_view_as(c, lt_in(c, 0)->dtype, offset, ndim, shape, strides);
}

/* A geometry that is computed from self's step by step. */
typedef struct Geometry {
  int ndim;
  int64_t offset;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
} Geometry;

/* Sets g to t's geometry, as far as it has dimensions. */
static inline void take_geometry(Geometry *g, const lt_Tensor *t) {
  g->ndim = t->ndim;
  g->offset = t->offset;
  for (int d = 0; d < t->ndim; d++) {
    g->shape[d] = t->shape[d];
    g->strides[d] = t->strides[d];
  }
}

static bool set_geometry(lt_Call *c, const Geometry *g) {
  return set_view(c, g->offset, g->ndim, g->shape, g->strides);
}

/* Moves the first element by `count` strides. An empty tensor has no first element, and its strides
 * may be too large for the product. */
static void advance(Geometry *g, const lt_Tensor *self, int64_t count, int64_t stride) {
  if (self->numel) g->offset += count * stride;
}

/* Multiplies the stride of dim by `step`. A product that overflows is possible only if the dim has
 * at most one element, and then the stride does not matter. */
static void widen(Geometry *g, int dim, int64_t step) {
  int64_t wide;
  if (!__builtin_mul_overflow(g->strides[dim], step, &wide) && wide <= INT64_MAX / 16)
    g->strides[dim] = wide;
}

/* Removes a dimension, whatever its size. */
static void remove_dim(Geometry *g, int dim) {
  g->ndim--;
  for (int d = dim; d < g->ndim; d++) {
    g->shape[d] = g->shape[d + 1];
    g->strides[d] = g->strides[d + 1];
  }
}

/* ---- another shape --------------------------------------------------------------------------- */

bool lt_view_shape(int64_t numel, int from_ndim, const int64_t *from, const lt_Arg *sizes,
                   int *ndim, int64_t *shape) {
  if (sizes->count > LT_MAX_DIMS)
    return lt_fail("expected at most %d sizes, got %d", LT_MAX_DIMS, sizes->count);
  int n = *ndim = sizes->count, open = -1;
  int64_t known = 1;
  for (int d = 0; d < n; d++) {
    shape[d] = sizes->ints[d];
    if (shape[d] == -1 && open >= 0)
      return lt_fail("expected at most one size of -1, got %s", lt_shape_text(n, sizes->ints));
    if (shape[d] == -1) {
      open = d;
      shape[d] = 1;
    }
  }
  if (!lt_shape_numel(NULL, n, shape, &known)) return false;
  if (open >= 0 && known == 0 && numel == 0)
    return lt_fail("cannot infer the size -1 in %s: any size fits", lt_shape_text(n, sizes->ints));
  if (open >= 0 && known > 0 && numel % known != 0)
    return lt_fail("cannot view %s of %lld element%s as %s: cannot infer the size -1, because %lld "
                   "is not a multiple of %lld",
                   lt_shape_text(from_ndim, from), (long long)numel, numel == 1 ? "" : "s",
                   lt_shape_text(n, sizes->ints), (long long)numel, (long long)known);
  if (open >= 0 ? known == 0 : numel != known)
    return lt_fail("cannot view %s of %lld element%s as %s: the number of elements differs",
                   lt_shape_text(from_ndim, from), (long long)numel, numel == 1 ? "" : "s",
                   lt_shape_text(n, sizes->ints));
  if (open >= 0) shape[open] = numel / known;
  return true;
}

/* Goes from the last dimension to the first. Dimensions of t that follow one another without a
 * gap form a chunk, whose elements are `step` apart; the new dimensions must cover each chunk
 * exactly. */
bool lt_view_strides(const lt_Tensor *t, int ndim, const int64_t *shape, int64_t *strides) {
  if (t->numel == 0 || t->ndim == 0) {
    lt_shape_strides(ndim, shape, strides);
    return true;
  }
  int next = ndim - 1; /* the new dimension whose stride is computed next */
  int64_t step = t->strides[t->ndim - 1], chunk = 1, filled = 1;
  for (int d = t->ndim - 1; d >= 0; d--) {
    chunk *= t->shape[d];
    bool ends = d == 0 || (t->shape[d - 1] != 1 && t->strides[d - 1] != chunk * step);
    if (!ends) continue;
    while (next >= 0 && (filled < chunk || shape[next] == 1)) {
      strides[next] = filled * step;
      filled *= shape[next--];
    }
    if (filled != chunk) return false;
    if (d > 0) step = t->strides[d - 1];
    chunk = filled = 1;
  }
  return next < 0;
}

/* view (self, size) */
bool lt_view_view(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int ndim;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  if (!lt_view_shape(self->numel, self->ndim, self->shape, &c->arg[1], &ndim, shape)) return false;
  if (!lt_view_strides(self, ndim, shape, strides))
    return lt_fail("cannot view %s as %s: its strides require a copy\nhint: x:reshape(...)",
                   lt_text(self), lt_shape_text(ndim, shape));
  return set_view(c, self->offset, ndim, shape, strides);
}

/* Changes the last dimension of g from elements of `from` bytes to smaller ones of `to` bytes. */
static bool divide_elements(lt_Call *c, Geometry *g, int64_t from, int64_t to) {
  int64_t factor = from / to, last = g->ndim - 1;
  if (g->shape[last] > 1 && g->strides[last] != 1)
    return lt_fail(
        "cannot view %s as smaller elements: expected a stride of 1 in the last dim, got "
        "%lld\nhint: x:contiguous()",
        lt_text(lt_in(c, 0)), (long long)g->strides[last]);
  for (int d = 0; d < last; d++) widen(g, d, factor);
  g->shape[last] *= factor;
  g->strides[last] = 1;
  g->offset *= factor;
  return true;
}

/* Changes the last dimension of g from elements of `from` bytes to larger ones of `to` bytes. */
static bool join_elements(lt_Call *c, Geometry *g, int64_t from, int64_t to) {
  int64_t factor = to / from, last = g->ndim - 1;
  bool fits = g->shape[last] % factor == 0 && g->offset % factor == 0 && g->strides[last] == 1;
  for (int d = 0; d < last; d++) {
    fits = fits && g->strides[d] % factor == 0;
    g->strides[d] /= factor;
  }
  if (!fits)
    return lt_fail("cannot view %s as elements of %lld bytes: expected a contiguous last dim, and "
                   "its size, the other strides and the offset divisible by %lld",
                   lt_text(lt_in(c, 0)), (long long)to, (long long)factor);
  g->shape[last] /= factor;
  g->strides[last] = 1;
  g->offset /= factor;
  return true;
}

/* _view (self, dtype) */
bool lt_view__view(lt_Call *c) {
  Geometry g;
  take_geometry(&g, lt_in(c, 0));
  lt_Dtype dtype = c->arg[1].dtype;
  int64_t from = (int64_t)lt_dtype_size(lt_in(c, 0)->dtype), to = (int64_t)lt_dtype_size(dtype);
  if (from != to && g.ndim == 0)
    return lt_fail("cannot view a 0-d \"%s\" tensor as \"%s\": the sizes of the elements differ",
                   lt_dtype_name(lt_in(c, 0)->dtype), lt_dtype_name(dtype));
  if (from > to && !divide_elements(c, &g, from, to)) return false;
  if (from < to && !join_elements(c, &g, from, to)) return false;
  if (dtype != lt_in(c, 0)->dtype && (dtype == LT_bool || lt_in(c, 0)->dtype == LT_bool))
    lt_bools_loosen(lt_in(c, 0)->storage);
  return set_view_as(c, dtype, g.offset, g.ndim, g.shape, g.strides);
}

/* expand (self, size) */
bool lt_view_expand(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int ndim = c->arg[1].count, lead = ndim - self->ndim;
  const int64_t *sizes = c->arg[1].ints;
  if (!lt_check_rank(ndim)) return false;
  if (lead < 0)
    return lt_fail("cannot expand %s to %s: it has more than %d dimension%s", lt_text(self),
                   lt_shape_text(ndim, sizes), ndim, ndim == 1 ? "" : "s");
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS], numel;
  for (int d = 0; d < ndim; d++) {
    int64_t old = d < lead ? 1 : self->shape[d - lead];
    if (d < lead && sizes[d] == -1)
      return lt_fail("cannot keep the size of dim %d of %s (-1): the dimension is new", d + 1,
                     lt_shape_text(ndim, sizes));
    shape[d] = sizes[d] == -1 ? old : sizes[d];
    if (shape[d] != old && old != 1)
      return lt_fail("cannot expand %s to %s: dim %d has size %lld, only size 1 can be repeated",
                     lt_text(self), lt_shape_text(ndim, sizes), d - lead + 1, (long long)old);
    strides[d] = d < lead || shape[d] != old ? 0 : self->strides[d - lead];
  }
  if (!lt_shape_numel(NULL, ndim, shape, &numel)) return false;
  return set_view(c, self->offset, ndim, shape, strides);
}

/* as_strided (self, size, stride, storage_offset?) */
bool lt_view_as_strided(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int ndim;
  int64_t shape[LT_MAX_DIMS], last, offset = lt_given(c, 3) ? c->arg[3].i : self->offset;
  const int64_t *strides = c->arg[2].ints;
  bool empty = false;
  if (!lt_check_sizes(&c->arg[1], &ndim, shape)) return false;
  if (c->arg[2].count != ndim)
    return lt_fail("expected one stride for each size (%d), got %d", ndim, c->arg[2].count);
  if (offset < 0)
    return lt_fail("expected an integer of at least 0 for argument 'storage_offset', got %lld",
                   (long long)offset);
  last = offset;
  for (int d = 0; d < ndim; d++) {
    int64_t reach;
    if (strides[d] < 0)
      return lt_fail("expected an integer of at least 0 for argument 'stride[%d]', got %lld", d + 1,
                     (long long)strides[d]);
    if (shape[d] == 0) empty = true;
    if (strides[d] > INT64_MAX / 16 ||
        (shape[d] > 1 && (__builtin_mul_overflow(shape[d] - 1, strides[d], &reach) ||
                          __builtin_add_overflow(last, reach, &last))))
      return lt_fail("cannot view the storage: sizes %s with strides %s overflow int64",
                     lt_shape_text(ndim, shape), lt_shape_text(ndim, strides));
  }
  int64_t room = (int64_t)(self->storage->nbytes / lt_dtype_size(self->dtype));
  if (!empty && last >= room)
    return lt_fail("cannot view the storage: sizes %s with strides %s from offset %lld reach "
                   "element %llu, the storage has %lld",
                   lt_shape_text(ndim, shape), lt_shape_text(ndim, strides), (long long)offset,
                   (unsigned long long)last + 1, (long long)room);
  return set_view(c, offset, ndim, shape, strides);
}

/* ---- the order of dimensions ----------------------------------------------------------------- */

/* transpose (self, dim0, dim1) */
bool lt_view_transpose(lt_Call *c) {
  Geometry g;
  take_geometry(&g, lt_in(c, 0));
  int a = lt_dim(c->arg[1].i, g.ndim), b = a < 0 ? -1 : lt_dim(c->arg[2].i, g.ndim);
  if (a < 0 || b < 0) return false;
  if (g.ndim == 0) return set_geometry(c, &g);
  int64_t size = g.shape[a], stride = g.strides[a];
  g.shape[a] = g.shape[b], g.strides[a] = g.strides[b];
  g.shape[b] = size, g.strides[b] = stride;
  return set_geometry(c, &g);
}

/* permute (self, dims) */
bool lt_view_permute(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int n = lt_given(c, 1) ? c->arg[1].count : 0;
  if (n != self->ndim)
    return lt_fail("expected each of the %d dimension%s of %s once, got %d dim%s", self->ndim,
                   self->ndim == 1 ? "" : "s", lt_text(self), n, n == 1 ? "" : "s");
  Geometry g;
  take_geometry(&g, self);
  unsigned seen;
  if (n && !lt_dims(&c->arg[1], n, &seen)) return false;
  for (int d = 0; d < n; d++) {
    int from = lt_dim(c->arg[1].ints[d], n);
    g.shape[d] = self->shape[from];
    g.strides[d] = self->strides[from];
  }
  return set_geometry(c, &g);
}

/* ---- dimensions of size 1 -------------------------------------------------------------------- */

/* squeeze (self, dims?) */
bool lt_view_squeeze(lt_Call *c) {
  Geometry g;
  take_geometry(&g, lt_in(c, 0));
  unsigned mask = 0; /* an empty list of dims squeezes none */
  bool none = lt_given(c, 1) && c->arg[1].count == 0;
  if (!none && !lt_dims(&c->arg[1], g.ndim, &mask)) return false;
  for (int d = g.ndim - 1; d >= 0; d--)
    if ((mask >> d & 1) && g.shape[d] == 1) remove_dim(&g, d);
  return set_geometry(c, &g);
}

/* unsqueeze (self, dim) */
bool lt_view_unsqueeze(lt_Call *c) {
  Geometry g;
  take_geometry(&g, lt_in(c, 0));
  int dim = lt_dim(c->arg[1].i, g.ndim + 1);
  if (dim < 0 || !lt_check_rank(g.ndim + 1)) return false;
  int64_t stride = 1;
  if (dim < g.ndim && __builtin_mul_overflow(g.shape[dim], g.strides[dim], &stride)) stride = 1;
  for (int d = g.ndim++; d > dim; d--) {
    g.shape[d] = g.shape[d - 1];
    g.strides[d] = g.strides[d - 1];
  }
  g.shape[dim] = 1;
  g.strides[dim] = stride;
  return set_geometry(c, &g);
}

/* ---- parts of dimensions --------------------------------------------------------------------- */

/* select (self, dim, index): the index is 0-based here, or negative. */
bool lt_view_select(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (self->ndim == 0) return lt_fail("expected at least 1 dimension for argument 'self', got 0");
  Geometry g;
  take_geometry(&g, self);
  int dim = lt_dim(c->arg[1].i, g.ndim);
  if (dim < 0) return false;
  int64_t at = c->arg[2].i, size = g.shape[dim];
  if (at < -size || at >= size)
    return lt_fail(
        "cannot index dim %d of %s with %lld: the index is out of range, the size is %lld", dim + 1,
        lt_text(self), lt_dim_shown(at), (long long)size);
  advance(&g, self, at < 0 ? at + size : at, g.strides[dim]);
  remove_dim(&g, dim);
  return set_geometry(c, &g);
}

/* _slice (self, dim, first, count, step): first is 0-based. */
bool lt_view__slice(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (self->ndim == 0) return lt_fail("expected at least 1 dimension for argument 'self', got 0");
  Geometry g;
  take_geometry(&g, self);
  int dim = lt_dim(c->arg[1].i, g.ndim);
  if (dim < 0) return false;
  int64_t first = c->arg[2].i, count = c->arg[3].i, step = c->arg[4].i, size = g.shape[dim];
  if (step < 1)
    return lt_fail("expected an integer of at least 1 for argument 'step', got %lld",
                   (long long)step);
  bool inside = first >= 0 && count >= 0 && first <= size &&
                (count == 0 || (first < size && (count - 1) <= (size - 1 - first) / step));
  if (!inside)
    return lt_fail(
        "cannot take %lld elements from index %lld, %lld apart, of dim %d of %s: out of range",
        (long long)count, (long long)((uint64_t)first + 1), (long long)step, dim + 1,
        lt_text(self));
  if (count > 0) advance(&g, self, first, g.strides[dim]);
  g.shape[dim] = count;
  widen(&g, dim, step);
  return set_geometry(c, &g);
}

/* diagonal (self, offset, dim1, dim2) */
bool lt_view_diagonal(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!lt_check_ndim(c, 0, 2, LT_MAX_DIMS)) return false;
  int64_t offset = c->arg[1].i;
  int a = lt_dim(c->arg[2].i, self->ndim), b = a < 0 ? -1 : lt_dim(c->arg[3].i, self->ndim);
  if (a < 0 || b < 0) return false;
  if (a == b)
    return lt_fail("expected two different dims for dim1 and dim2, got dim %d twice", a + 1);
  Geometry g;
  take_geometry(&g, self);
  int64_t rows = g.shape[a], columns = g.shape[b], stride = g.strides[a] + g.strides[b];
  bool outside = offset >= columns || offset <= -rows;
  if (!outside && offset >= 0) advance(&g, self, offset, g.strides[b]);
  if (!outside && offset < 0) advance(&g, self, -offset, g.strides[a]);
  int64_t height = offset < 0 ? rows + (outside ? -rows : offset) : rows;
  int64_t width = offset > 0 ? columns - (outside ? columns : offset) : columns;
  remove_dim(&g, a > b ? a : b);
  remove_dim(&g, a > b ? b : a);
  g.shape[g.ndim] = height < width ? height : width;
  g.strides[g.ndim++] = stride;
  return set_geometry(c, &g);
}

/* unfold (self, dimension, size, step) */
bool lt_view_unfold(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  Geometry g;
  take_geometry(&g, self);
  int dim = lt_dim(c->arg[1].i, g.ndim);
  int64_t size = c->arg[2].i, step = c->arg[3].i;
  if (dim < 0 || !lt_check_count(c, 2) || !lt_check_rank(g.ndim + 1)) return false;
  if (step < 1)
    return lt_fail("expected an integer of at least 1 for argument 'step', got %lld",
                   (long long)step);
  int64_t room = lt_size_at(self, dim), stride = g.ndim ? g.strides[dim] : 1;
  if (size > room)
    return lt_fail("expected at most the size of dim %d of %s for argument 'size', got %lld",
                   dim + 1, lt_text(self), (long long)size);
  if (g.ndim > 0) {
    g.shape[dim] = (room - size) / step + 1;
    widen(&g, dim, step);
  }
  g.shape[g.ndim] = size;
  g.strides[g.ndim++] = stride;
  return set_geometry(c, &g);
}

/* ---- the same geometry ----------------------------------------------------------------------- */

bool lt_view_detach(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  return set_view(c, self->offset, self->ndim, self->shape, self->strides);
}

bool lt_view__alias(lt_Call *c) { return lt_view_detach(c); }

/* ---- complex numbers ------------------------------------------------------------------------- */

/* view_as_real (self): {..., 2} */
bool lt_view_view_as_real(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!lt_check_complex(c, 0) || !lt_check_rank(self->ndim + 1)) return false;
  Geometry g;
  take_geometry(&g, self);
  for (int d = 0; d < g.ndim; d++) widen(&g, d, 2);
  g.shape[g.ndim] = 2;
  g.strides[g.ndim++] = 1;
  return set_view_as(c, lt_dtype_real(self->dtype), 2 * self->offset, g.ndim, g.shape, g.strides);
}

/* view_as_complex (self {..., 2}) */
bool lt_view_view_as_complex(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (self->dtype != LT_float32 && self->dtype != LT_float64)
    return lt_fail("expected dtype \"float32\" or \"float64\" for argument 'self', got \"%s\"",
                   lt_dtype_name(self->dtype));
  int last = self->ndim - 1;
  if (last < 0 || self->shape[last] != 2)
    return lt_fail("expected a last dimension of size 2 for argument 'self', got shape %s",
                   lt_text(self));
  Geometry g;
  take_geometry(&g, self);
  bool pairs = g.strides[last] == 1 && g.offset % 2 == 0;
  for (int d = 0; d < last; d++) {
    pairs = pairs && (g.strides[d] % 2 == 0 || g.shape[d] <= 1);
    g.strides[d] /= 2;
  }
  if (!pairs && self->numel)
    return lt_fail("expected pairs that are contiguous in memory for argument 'self', got strides "
                   "%s and offset %lld\nhint: self:contiguous()",
                   lt_shape_text(self->ndim, self->strides), (long long)self->offset);
  lt_Dtype dtype = lt_dtype_complex(self->dtype);
  return set_view_as(c, dtype, g.offset / 2, last, g.shape, g.strides);
}
