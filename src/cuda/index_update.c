/* index_update.c: ops that write by index: _scatter, scatter_add, _scatter_reduce, index_add,
 * index_copy, index_fill, _index_put, _embedding_backward. The output is contiguous and holds
 * self's values. A call with an index out of range changes nothing, because the kernels that write
 * read the flag of the check before them.
 *
 * Where several elements of the index select the same element (a cell, see index_update.h), the
 * last write wins, and sums have the same rounding on every run. Such elements are found by
 * comparing all elements of a line where it is short, else by a mark in each cell or by sorting. */
#include "index_update.h"
#include "sort.h"

static lt_CudaLines lines_of(const lt_Indexed *x) {
  return (lt_CudaLines){x->outer, x->length, x->inner, x->n, x->p.at};
}
static int64_t count_of(const lt_CudaLines *l) { return l->outer * l->length * l->inner; }

/* Returns true when it is cheap to compare every element of the index with all of its line. */
static bool is_near(const lt_CudaLines *l) {
  int64_t count = count_of(l);
  return l->length <= 32 || (count <= 1 << 20 && l->length * count <= 1 << 20);
}

static lt_Tensor *new_scratch(lt_Call *c, lt_Dtype dtype, int64_t n) {
  return lt_empty(dtype, c->device, 1, &n);
}

/* ---- which elements share a cell ------------------------------------------------------------- */

/* Sorts the elements of the index by cell, in `order`, with their cells. Both are int64. */
static bool sort_cells(lt_Call *c, const lt_CudaLines *l, lt_Tensor *cells, lt_Tensor *order) {
  int64_t count = count_of(l), most = l->outer * l->inner * l->n - 1;
  int bits = most > 1 ? 64 - __builtin_clzll((unsigned long long)most) : 1;
  cudaStream_t stream = lt_cuda_stream(c);
  size_t size = 0;
  lt_Tensor *keys = new_scratch(c, LT_int64, count), *values = new_scratch(c, LT_int64, count);
  bool ok = keys && values &&
            lt_cuda_launch_ok(
                lt_cuda_launch_cells(l, lt_tensor_data(keys), lt_tensor_data(values), stream)) &&
            lt_cuda_launch_ok(
                lt_cuda_sort_pairs_u64(NULL, &size, NULL, NULL, NULL, NULL, count, bits, stream));
  lt_Tensor *scratch = ok ? new_scratch(c, LT_uint8, (int64_t)size) : NULL;
  ok = scratch && lt_cuda_launch_ok(lt_cuda_sort_pairs_u64(
                      lt_tensor_data(scratch), &size, lt_tensor_data(keys), lt_tensor_data(cells),
                      lt_tensor_data(values), lt_tensor_data(order), count, bits, stream));
  lt_release(scratch);
  lt_release(keys);
  lt_release(values);
  return ok;
}

/* Allocates and fills `cells` and `order`, as sort_cells does. The caller releases both, also on
 * failure. */
static bool order_cells(lt_Call *c, const lt_CudaLines *l, lt_Tensor **cells, lt_Tensor **order) {
  *cells = new_scratch(c, LT_int64, count_of(l));
  *order = new_scratch(c, LT_int64, count_of(l));
  if (!*cells || !*order) return false;
  if (is_near(l))
    return lt_cuda_launch_ok(lt_cuda_launch_order_near(l, lt_tensor_data(*cells),
                                                       lt_tensor_data(*order), lt_cuda_stream(c)));
  return sort_cells(c, l, *cells, *order);
}

/* Sets keep[e] to 1 for the elements of the index that are the last of their cell, by marks in the
 * cells. */
static bool keep_noted(lt_Call *c, const lt_CudaLines *l, uint8_t *keep) {
  lt_Tensor *notes = new_scratch(c, LT_int64, l->outer * l->inner * l->n);
  bool ok = notes &&
            lt_cuda_ok(cudaMemsetAsync(lt_tensor_data(notes), 0, notes->storage->nbytes,
                                       lt_cuda_stream(c)),
                       "clear flags") &&
            lt_cuda_launch_ok(
                lt_cuda_launch_keep_noted(l, lt_tensor_data(notes), keep, lt_cuda_stream(c)));
  lt_release(notes);
  return ok;
}

/* Returns a byte for each element of the index, 1 where it is the last of its cell, in the way that
 * is fastest for its size. One reference; NULL on failure. */
static lt_Tensor *last_of_cells(lt_Call *c, const lt_CudaLines *l) {
  int64_t count = count_of(l);
  lt_Tensor *keep = new_scratch(c, LT_uint8, count), *cells = NULL, *order = NULL;
  if (!keep) return NULL;
  uint8_t *to = lt_tensor_data(keep);
  bool ok;
  if (is_near(l)) {
    ok = lt_cuda_launch_ok(lt_cuda_launch_keep_near(l, to, lt_cuda_stream(c)));
  } else if (l->outer * l->inner * l->n <= 4 * count) {
    ok = keep_noted(c, l, to);
  } else {
    ok = order_cells(c, l, &cells, &order) &&
         lt_cuda_launch_ok(lt_cuda_launch_keep_ordered(lt_tensor_data(cells), lt_tensor_data(order),
                                                       count, to, lt_cuda_stream(c)));
    lt_release(cells);
    lt_release(order);
  }
  if (ok) return keep;
  lt_release(keep);
  return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Writes `from` (or the value, where it is NULL) to the region x. Closes x. */
static bool put(lt_Call *c, lt_Indexed *x, const lt_Tensor *from, const char *value) {
  static const _Alignas(16) char none[16];
  lt_Tensor *to = c->out[0], *keep = NULL;
  bool ok = true, repeats = from && from->numel > 1 && x->length > 1;
  if (x->p.count > 0 && to->numel > 0) {
    if (from) lt_index_other(x, from);
    lt_CudaLines lines = lines_of(x);
    if (repeats) keep = last_of_cells(c, &lines);
    const void *source = from ? lt_tensor_data(from) : NULL;
    lt_region_collapse(&x->p);
    int unit = lt_region_widen(&x->p, lt_dtype_size(to->dtype), lt_tensor_data(to), source);
    ok = (keep || !repeats) && lt_cuda_launch_ok(lt_cuda_launch_put(
                                   &x->p, lt_tensor_data(to), source, value ? value : none, unit,
                                   keep ? lt_tensor_data(keep) : NULL, x->bad, lt_cuda_stream(c)));
    lt_release(keep);
  }
  lt_index_close(x);
  return ok;
}

bool lt_cuda__scatter(lt_Call *c) {
  lt_Tensor *out = c->out[0], *src = lt_in(c, 3);
  int dim = lt_dim(c->arg[1].i, out->ndim);
  _Alignas(16) char value[16];
  lt_Indexed x;
  if (dim < 0 || (!src && !lt_index_number(c->arg[3].scalar, out->dtype, value))) return false;
  return lt_cuda_begin(c) && lt_index_each(c, &lt_cuda_index_driver, &x, out, dim, lt_in(c, 2)) &&
         put(c, &x, src, value);
}

bool lt_cuda_index_copy(lt_Call *c) {
  int dim = lt_dim(c->arg[1].i, c->out[0]->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_cuda_begin(c) &&
         lt_index_line(c, &lt_cuda_index_driver, &x, c->out[0], dim, lt_in(c, 2), "index") &&
         put(c, &x, lt_in(c, 3), NULL);
}

bool lt_cuda_index_fill(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, out->ndim);
  _Alignas(16) char value[16];
  lt_Scalar number;
  lt_Indexed x;
  return dim >= 0 && lt_number_of(c, 3, &number) && lt_index_number(number, out->dtype, value) &&
         lt_cuda_begin(c) &&
         lt_index_line(c, &lt_cuda_index_driver, &x, out, dim, lt_in(c, 2), "index") &&
         put(c, &x, NULL, value);
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Returns the part of a region as a pair: the dimensions of the index, or the others. */
static lt_CudaPair part_of(const lt_IndexRegion *p, bool of_index) {
  lt_IndexRegion part = lt_region_part(p, of_index);
  lt_CudaPair pair = {.ndim = part.ndim, .count = part.count};
  memcpy(pair.shape, part.shape, sizeof pair.shape);
  memcpy(pair.self, part.self, sizeof pair.self);
  memcpy(pair.other, part.other, sizeof pair.other);
  return pair;
}

/* Groups columns by four elements where they are dense and aligned in both tensors. Returns false,
 * with nothing changed, where they are not. */
static bool group_columns(lt_CudaAdd *a) {
  lt_CudaPair *c = &a->columns;
  int last = c->ndim - 1;
  size_t unit = 4 * lt_dtype_size((lt_Dtype)a->dtype);
  if (!lt_dtype_is_float((lt_Dtype)a->dtype) || a->dtype == LT_float64 || last < 0) return false;
  if (c->self[last] != 1 || c->other[last] != 1 || c->shape[last] % 4 || a->step % 4) return false;
  if (((uintptr_t)a->to | (uintptr_t)a->from) % unit) return false;
  for (int d = 0; d < last; d++)
    if (c->self[d] % 4 || c->other[d] % 4) return false;
  for (int d = 0; d < a->lines.ndim; d++)
    if (a->lines.self[d] % 4 || a->lines.other[d] % 4) return false;
  c->self[last] = c->other[last] = 4;
  c->shape[last] /= 4;
  c->count /= 4;
  return true;
}

/* Adds `from` to the region x of `to`, or folds it in another way (fold < 0: adds). */
static bool add_or_fold(lt_Call *c, lt_Indexed *x, lt_Tensor *to, const lt_Tensor *from,
                        lt_Scalar scale, int64_t skip, int fold) {
  if (x->p.count == 0 || to->numel == 0) return true;
  lt_Tensor *cells = NULL, *order = NULL;
  lt_CudaLines lines = lines_of(x);
  lt_index_other(x, from);
  lt_CudaAdd a = {.lines = part_of(&x->p, true),
                  .columns = part_of(&x->p, false),
                  .at = x->p.at,
                  .step = x->p.step,
                  .to = lt_tensor_data(to),
                  .from = lt_tensor_data(from),
                  .dtype = to->dtype,
                  .skip = skip,
                  .lines_inside = lt_region_index_is_last(&x->p),
                  .scale = lt_scalar_to_double(scale),
                  .scale_int = lt_scalar_to_int(scale),
                  .bad = x->bad};
  a.by_four = fold < 0 && group_columns(&a);
  bool ok = true;
  if (x->length > 1) {
    ok = order_cells(c, &lines, &cells, &order);
    if (ok) a.cells = lt_tensor_data(cells), a.order = lt_tensor_data(order);
  }
  cudaStream_t stream = lt_cuda_stream(c);
  ok = ok && lt_cuda_launch_ok(fold < 0 ? lt_cuda_launch_add(&a, stream)
                                        : lt_cuda_launch_fold(&a, fold, stream));
  lt_release(cells);
  lt_release(order);
  return ok;
}

bool lt_cuda_index_add_to(lt_Call *c, lt_Indexed *x, lt_Tensor *to, const lt_Tensor *from,
                          lt_Scalar scale, int64_t skip) {
  return add_or_fold(c, x, to, from, scale, skip, -1);
}

static bool add(lt_Call *c, lt_Indexed *x, const lt_Tensor *from, lt_Scalar scale) {
  bool ok = lt_cuda_index_add_to(c, x, c->out[0], from, scale, -1);
  lt_index_close(x);
  return ok;
}

bool lt_cuda_scatter_add(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, out->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_cuda_begin(c) &&
         lt_index_each(c, &lt_cuda_index_driver, &x, out, dim, lt_in(c, 2)) &&
         add(c, &x, lt_in(c, 3), lt_scalar_int(1));
}

bool lt_cuda__scatter_reduce(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  const char *how = c->arg[4].string;
  int dim = lt_dim(c->arg[1].i, out->ndim);
  int fold = !strcmp(how, "prod")   ? LT_FOLD_PROD
             : !strcmp(how, "amax") ? LT_FOLD_AMAX
                                    : LT_FOLD_AMIN;
  lt_Indexed x;
  if (dim < 0 || !lt_cuda_begin(c) ||
      !lt_index_each(c, &lt_cuda_index_driver, &x, out, dim, lt_in(c, 2)))
    return false;
  bool ok = add_or_fold(c, &x, out, lt_in(c, 3), lt_scalar_int(1), -1, fold);
  lt_index_close(&x);
  return ok;
}

bool lt_cuda_index_add(lt_Call *c) {
  int dim = lt_dim(c->arg[1].i, c->out[0]->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_cuda_begin(c) &&
         lt_index_line(c, &lt_cuda_index_driver, &x, c->out[0], dim, lt_in(c, 2), "index") &&
         add(c, &x, lt_in(c, 3), c->arg[4].scalar);
}

bool lt_cuda__index_put(lt_Call *c) {
  lt_Indexed x;
  if (!lt_cuda_begin(c) ||
      !lt_index_several(c, &lt_cuda_index_driver, &x, c->out[0], &c->arg[1], c->arg[2].ints))
    return false;
  return c->arg[4].b ? add(c, &x, lt_in(c, 3), lt_scalar_int(1)) : put(c, &x, lt_in(c, 3), NULL);
}

/* Adds the rows of grad, selected by index, to zeros. */
bool lt_cuda__embedding_backward(lt_Call *c) {
  lt_Tensor *grad = lt_in(c, 0), *out = c->out[0];
  int64_t n = out->shape[1], k = lt_in(c, 1)->numel, shape[2] = {k, n};
  lt_Indexed x;
  if (out->numel == 0) return true;
  if (!lt_cuda_begin(c) ||
      !lt_index_line(c, &lt_cuda_index_driver, &x, out, 0, lt_in(c, 1), "input"))
    return false;
  lt_Tensor *dense = lt_as_contiguous(grad, grad->dtype), *rows = NULL;
  if (dense) {
    int64_t strides[2] = {n, 1};
    rows = lt_tensor_on(dense->storage, dense->dtype, dense->offset, 2, shape, strides);
  }
  bool ok =
      rows &&
      lt_cuda_ok(cudaMemsetAsync(lt_tensor_data(out), 0,
                                 (size_t)out->numel * lt_dtype_size(out->dtype), lt_cuda_stream(c)),
                 "clear the gradient") &&
      lt_cuda_index_add_to(c, &x, out, rows, lt_scalar_int(1), c->arg[3].i - LT_INDEX_BASE);
  lt_release(rows);
  lt_release(dense);
  lt_index_close(&x);
  return ok;
}
