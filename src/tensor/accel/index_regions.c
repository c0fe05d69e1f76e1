/* index_regions.c: builds regions from index tensors; see index_regions.h.
 *
 * Invariant: of a region without elements only the count is used, and its indices are not read.
 */
#include "accel/index_regions.h"

/* Writes strides that are valid for every dim, also for dims of size 1, whose own are arbitrary. */
static void strides_of(const lt_Tensor *t, int64_t *strides) {
  if (lt_tensor_is_contiguous(t))
    lt_shape_strides(t->ndim, t->shape, strides);
  else
    memcpy(strides, t->strides, sizeof *strides * (size_t)t->ndim);
}

/* Adds a dimension to the region: its size, and its strides in self and in the index. */
static void add_dim(lt_IndexRegion *p, int64_t size, int64_t self, int64_t index) {
  p->shape[p->ndim] = size;
  p->self[p->ndim] = self;
  p->index[p->ndim++] = index;
  p->count *= size;
}

/* Converts the index tensor to checked indices and stores them, and their flag, in x. */
static bool open_indices(lt_Call *c, lt_Indexed *x, lt_Tensor *index, int64_t n, bool negative,
                         const char *name) {
  x->indices = x->driver->check(c, index, n, negative, name, &x->bad);
  if (!x->indices) return false;
  x->p.at = lt_tensor_data(x->indices);
  x->n = n;
  return true;
}

/* Completes a region: `other` becomes contiguous, in the region's own order. */
static bool finish(lt_Indexed *x) {
  lt_shape_strides(x->p.ndim, x->p.shape, x->p.other);
  return true;
}

bool lt_index_line(lt_Call *c, const lt_IndexDriver *driver, lt_Indexed *x, const lt_Tensor *self,
                   int dim, lt_Tensor *index, const char *name) {
  int64_t strides[LT_MAX_DIMS], k = index->numel;
  *x = (lt_Indexed){
      .driver = driver, .p.count = 1, .p.step = 0, .outer = 1, .length = k, .inner = 1};
  if (!open_indices(c, x, index, self->ndim ? self->shape[dim] : 1, false, name)) return false;
  strides_of(self, strides);
  for (int d = 0; d < self->ndim; d++)
    add_dim(&x->p, d == dim ? k : self->shape[d], d == dim ? 0 : strides[d], d == dim);
  if (self->ndim == 0)
    add_dim(&x->p, k, 0, 1);
  else
    x->p.step = strides[dim];
  return finish(x);
}

bool lt_index_each(lt_Call *c, const lt_IndexDriver *driver, lt_Indexed *x, const lt_Tensor *self,
                   int dim, lt_Tensor *index) {
  int64_t strides[LT_MAX_DIMS] = {0}, along[LT_MAX_DIMS];
  *x = (lt_Indexed){.driver = driver, .p.count = 1, .outer = 1, .length = 1, .inner = 1};
  if (!open_indices(c, x, index, self->ndim ? self->shape[dim] : 1, false, "index")) return false;
  strides_of(self, strides);
  lt_shape_strides(index->ndim, index->shape, along);
  for (int d = 0; d < index->ndim; d++) {
    add_dim(&x->p, index->shape[d], d == dim ? 0 : strides[d], along[d]);
    *(d < dim ? &x->outer : d > dim ? &x->inner : &x->length) *= index->shape[d];
  }
  x->p.step = strides[dim];
  return finish(x);
}

/* ---- several indices (NumPy's rules) --------------------------------------------------------- */

/* Adds up several index tensors to one offset for each element of their common shape, in units of
 * x->p.step. The flags of all checks are joined in x->flag. */
static bool sum_indices(lt_Call *c, lt_Indexed *x, const lt_Tensor *self, const lt_Arg *indices,
                        const int64_t *dims, const int64_t *strides) {
  lt_IndexRegion common = {.count = 1};
  for (int k = 0; k < indices->count; k++)
    lt_shape_broadcast(&common.ndim, common.shape, indices->tensors[k]->ndim,
                       indices->tensors[k]->shape);
  for (int d = 0; d < common.ndim; d++) common.count *= common.shape[d];
  const int64_t flag_size = LT_INDEX_FLAG;
  x->indices = lt_empty(LT_int64, c->device, common.ndim, common.shape);
  x->flag = x->indices ? lt_empty(LT_uint8, c->device, 1, &flag_size) : NULL;
  if (!x->flag) return false;
  x->bad = lt_tensor_data(x->flag);
  x->n = 1;
  for (int k = 0; k < indices->count; k++) {
    lt_Tensor *index = indices->tensors[k];
    int64_t n = self->shape[dims[k]], along[LT_MAX_DIMS],
            mult = n > 1 ? strides[dims[k]] / x->p.step : 0;
    lt_IndexRegion p = common;
    const void *bad;
    lt_Tensor *at = x->driver->check(c, index, n, true, "index", &bad);
    if (!at) return false;
    lt_shape_strides(index->ndim, index->shape, along);
    for (int d = 0; d < index->ndim; d++)
      if (index->shape[d] > 1) p.index[common.ndim - index->ndim + d] = along[d];
    p.at = lt_tensor_data(at);
    lt_region_collapse(&p);
    bool ok = p.count == 0 || x->driver->add(c, &p, mult, k == 0, bad, lt_tensor_data(x->flag),
                                             lt_tensor_data(x->indices));
    lt_release(at);
    if (!ok) return false;
    x->n += (n - 1) * mult;
  }
  x->p.at = lt_tensor_data(x->indices);
  return true;
}

/* Computes the indices, in units of x->p.step. The error of a bad index is reported as that of
 * x[index] where the user called no op by name: then the op is an internal one. */
static bool open_several(lt_Call *c, lt_Indexed *x, const lt_Tensor *self, const lt_Arg *indices,
                         const int64_t *dims, const int64_t *strides) {
  lt_UserOp now = lt_user_op_get();
  bool ok;
  if (now.name && now.name[0] == '_') lt_user_op_set((lt_UserOp){"index", false});
  if (indices->count == 1)
    ok = open_indices(c, x, indices->tensors[0], self->shape[dims[0]], true, "index");
  else
    ok = sum_indices(c, x, self, indices, dims, strides);
  lt_user_op_set(now);
  if (!ok) lt_index_close(x);
  return ok;
}

bool lt_index_several(lt_Call *c, const lt_IndexDriver *driver, lt_Indexed *x,
                      const lt_Tensor *self, const lt_Arg *indices, const int64_t *dims) {
  int n = indices->count, first = (int)dims[0], last = (int)dims[n - 1];
  bool neighbours = last - first == n - 1, dense = lt_tensor_is_contiguous(self);
  int64_t strides[LT_MAX_DIMS], along[LT_MAX_DIMS];
  *x = (lt_Indexed){.driver = driver, .p.count = 1, .outer = 1, .inner = 1};
  strides_of(self, strides);
  /* In contiguous memory every stride is a multiple of the last one. */
  x->p.step = n == 1 || (dense && self->numel > 0) ? strides[last] : 1;
  if (!open_several(c, x, self, indices, dims, strides)) return false;
  const lt_Tensor *at = x->indices;
  x->length = at->numel;
  lt_shape_strides(at->ndim, at->shape, along);
  for (int d = 0, k = 0, place = neighbours ? first : 0; d <= self->ndim; d++) {
    if (d == place)
      for (int w = 0; w < at->ndim; w++) add_dim(&x->p, at->shape[w], 0, along[w]);
    if (d == self->ndim) break;
    if (k < n && dims[k] == d)
      k++;
    else
      add_dim(&x->p, self->shape[d], strides[d], 0);
  }
  return finish(x);
}

void lt_index_close(lt_Indexed *x) {
  lt_release(x->indices);
  lt_release(x->flag);
  x->indices = x->flag = NULL;
}

/* ---- geometry -------------------------------------------------------------------------------- */

void lt_index_other(lt_Indexed *x, const lt_Tensor *t) {
  int64_t strides[LT_MAX_DIMS];
  int missing = x->p.ndim - t->ndim; /* negative where a 0-d index counts as {1} */
  strides_of(t, strides);
  for (int d = 0; d < x->p.ndim; d++) {
    int s = d - missing;
    x->p.other[d] = s < 0 || t->shape[s] == 1 ? 0 : strides[s];
  }
}

void lt_region_collapse(lt_IndexRegion *p) {
  int n = 0; /* dimensions that are left; the next one may be merged into the last of them */
  for (int d = 0; d < p->ndim; d++) {
    int64_t size = p->shape[d];
    if (size == 1) continue;
    if (n > 0 && p->self[n - 1] == p->self[d] * size && p->index[n - 1] == p->index[d] * size &&
        p->other[n - 1] == p->other[d] * size) {
      size *= p->shape[--n];
    }
    p->shape[n] = size;
    p->self[n] = p->self[d];
    p->index[n] = p->index[d];
    p->other[n++] = p->other[d];
  }
  p->ndim = n;
}

lt_IndexRegion lt_region_part(const lt_IndexRegion *p, bool of_index) {
  lt_IndexRegion part = {.count = 1};
  for (int d = 0; d < p->ndim; d++) {
    if (p->shape[d] == 1 || (p->index[d] != 0) != of_index) continue;
    part.shape[part.ndim] = p->shape[d];
    part.self[part.ndim] = p->self[d];
    part.other[part.ndim++] = p->other[d];
    part.count *= p->shape[d];
  }
  lt_region_collapse(&part);
  return part;
}

bool lt_region_index_is_last(const lt_IndexRegion *p) {
  int last = p->ndim - 1;
  while (last > 0 && p->shape[last] == 1) last--;
  return last >= 0 && p->index[last] != 0;
}

bool lt_index_number(lt_Scalar s, lt_Dtype dtype, char value[16]) {
  _Alignas(LT_MAX_ELEMENT) char number[LT_MAX_ELEMENT];
  size_t size = lt_dtype_size(dtype);
  if (!lt_scalar_store(s, dtype, number)) return false;
  for (size_t i = 0; i < 16; i++) value[i] = number[i % size];
  return true;
}

lt_IndexLayout lt_index_layout(const lt_Tensor *t, int ndim, const int64_t *shape) {
  lt_Indexed x = {.p.ndim = ndim};
  lt_IndexLayout layout;
  memcpy(x.p.shape, shape, sizeof *shape * (size_t)ndim);
  lt_index_other(&x, t);
  lt_region_collapse(&x.p);
  layout.ndim = x.p.ndim;
  memcpy(layout.shape, x.p.shape, sizeof layout.shape);
  memcpy(layout.strides, x.p.other, sizeof layout.strides);
  return layout;
}

/* Returns true when all offsets are multiples of r elements. */
static bool fits_unit(const lt_IndexRegion *p, int64_t r, bool other) {
  int last = p->ndim - 1;
  if (p->shape[last] % r || p->step % r) return false;
  for (int d = 0; d < last; d++)
    if (p->self[d] % r || (other && p->other[d] % r)) return false;
  return true;
}

int lt_region_widen(lt_IndexRegion *p, size_t size, const void *self, const void *other) {
  int last = p->ndim - 1, unit = 16;
  if (last < 0 || p->index[last] != 0 || p->self[last] != 1 || (other && p->other[last] != 1))
    return (int)size;
  uintptr_t address = (uintptr_t)self | (uintptr_t)other;
  while (unit > (int)size &&
         (address % (uintptr_t)unit || !fits_unit(p, unit / (int64_t)size, other)))
    unit /= 2;
  int64_t r = unit / (int64_t)size;
  p->shape[last] /= r;
  p->count /= r;
  p->step /= r;
  for (int d = 0; d < last; d++) {
    p->self[d] /= r;
    p->other[d] /= r;
  }
  return unit;
}

/* ---- reading a region ------------------------------------------------------------------------ */

/* Reads the region of argument 0 into the first output and closes x. Where argument 0 has no
 * elements, every index was out of range, and the call has already failed. */
static bool take(lt_Call *c, lt_Indexed *x) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  const void *from = lt_tensor_data(self);
  void *to = lt_tensor_data(out);
  bool ok = true;
  if (out->numel > 0 && self->numel > 0) {
    lt_region_collapse(&x->p);
    int unit = lt_region_widen(&x->p, lt_dtype_size(self->dtype), from, to);
    ok = x->driver->take(c, &x->p, unit, from, to);
  }
  lt_index_close(x);
  return ok;
}

bool lt_take_line(lt_Call *c, const lt_IndexDriver *driver, int64_t dim, lt_Tensor *index,
                  const char *name) {
  lt_Tensor *self = lt_in(c, 0);
  int d = lt_dim(dim, self->ndim);
  lt_Indexed x;
  return d >= 0 && driver->begin(c) && lt_index_line(c, driver, &x, self, d, index, name) &&
         take(c, &x);
}

bool lt_take_each(lt_Call *c, const lt_IndexDriver *driver, int64_t dim, lt_Tensor *index) {
  lt_Tensor *self = lt_in(c, 0);
  int d = lt_dim(dim, self->ndim);
  lt_Indexed x;
  return d >= 0 && driver->begin(c) && lt_index_each(c, driver, &x, self, d, index) && take(c, &x);
}

bool lt_take_several(lt_Call *c, const lt_IndexDriver *driver, const lt_Arg *indices,
                     const int64_t *dims) {
  lt_Indexed x;
  return driver->begin(c) && lt_index_several(c, driver, &x, lt_in(c, 0), indices, dims) &&
         take(c, &x);
}
