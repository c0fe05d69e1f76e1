/* index_update.c: ops that write by index: _scatter, scatter_add, index_add, index_copy,
 * index_fill, _index_put, _embedding_backward. The output is contiguous and holds self's values. A
 * call with an index out of range changes nothing, because the kernels that write read the report
 * of the check before them.
 *
 * Where several elements of the index select the same element (a cell, see index_update.h), the
 * last write wins, and sums have the same rounding on every run. Such elements are found by
 * comparing all elements of a line where it is short, else by a mark in each cell or by sorting. */
#include "index_update.h"
#include "loops.h"
#include "sort.h"

static lt_MpsLines lines_of(const lt_Indexed *x) {
  return (lt_MpsLines){x->outer, x->length, x->inner, x->n};
}
static int64_t count_of(const lt_MpsLines *l) { return l->outer * l->length * l->inner; }

/* Returns true when it is cheap to compare every element of the index with all of its line. */
static bool is_near(const lt_MpsLines *l) {
  int64_t count = count_of(l);
  return l->length <= 32 || (count <= 1 << 20 && l->length * count <= 1 << 20);
}

/* Queues a kernel of lines, with one element to a thread or a few. */
static bool launch_lines(lt_Call *c, const char *kernel, const lt_MpsLines *l, bool alone,
                         const void *data[3], int count) {
  lt_MpsLaunch launch = {
      .file = "index_update", .kernel = kernel, .count = count, .arguments = l, .size = sizeof *l};
  memcpy(launch.data, data, sizeof *data * (size_t)count);
  return (alone ? lt_mps_launch_each_alone : lt_mps_launch_each)(c, launch, count_of(l));
}

/* ---- which elements share a cell ------------------------------------------------------------- */

/* Returns the elements of the index as items sorted by cell. One reference; NULL on failure. */
static lt_Tensor *order_cells(lt_Call *c, const lt_MpsLines *l, const int64_t *at) {
  lt_Tensor *items = lt_mps_items(c, count_of(l), true);
  if (!items) return NULL;
  const void *data[3] = {at, lt_tensor_data(items)};
  bool near = is_near(l);
  if (!launch_lines(c, near ? "order_near" : "cells", l, near, data, 2)) {
    lt_release(items);
    return NULL;
  }
  return near ? items : lt_mps_sort_items(c, items, 1, count_of(l), true);
}

/* Sets keep[e] to 1 for the elements of the index that are the last of their cell, by marks in the
 * cells. */
static bool keep_noted(lt_Call *c, const lt_MpsLines *l, const int64_t *at, uint8_t *keep) {
  int64_t cells = l->outer * l->inner * l->n;
  lt_Tensor *notes = lt_empty(LT_int32, c->device, 1, &cells);
  if (!notes) return false;
  void *marks = lt_tensor_data(notes);
  bool ok = lt_mps_fill_zero(c->device.index, marks, (size_t)cells * 4, c->stream) &&
            launch_lines(c, "note_cells", l, false, (const void *[3]){at, marks}, 2) &&
            launch_lines(c, "keep_noted", l, false, (const void *[3]){at, marks, keep}, 3);
  lt_release(notes);
  return ok;
}

static bool keep_ordered(lt_Call *c, const lt_MpsLines *l, const int64_t *at, uint8_t *keep) {
  lt_Tensor *items = order_cells(c, l, at);
  bool ok = items && launch_lines(c, "keep_ordered", l, false,
                                  (const void *[3]){lt_tensor_data(items), keep}, 2);
  lt_release(items);
  return ok;
}

/* Returns a byte for each element of the index, 1 where it is the last of its cell, in the way that
 * is fastest for its size. One reference; NULL on failure. Marks have 32 bits. */
static lt_Tensor *last_of_cells(lt_Call *c, const lt_MpsLines *l, const int64_t *at) {
  int64_t count = count_of(l);
  lt_Tensor *keep = lt_empty(LT_uint8, c->device, 1, &count);
  if (!keep) return NULL;
  uint8_t *to = lt_tensor_data(keep);
  bool ok;
  if (is_near(l))
    ok = launch_lines(c, "keep_near", l, true, (const void *[3]){at, to}, 2);
  else if (l->outer * l->inner * l->n <= 4 * count && count < (int64_t)UINT32_MAX)
    ok = keep_noted(c, l, at, to);
  else
    ok = keep_ordered(c, l, at, to);
  if (ok) return keep;
  lt_release(keep);
  return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Queues the kernel that writes `from`, or the value where it is NULL, to the region x of `to`.
 * `keep` may be NULL: no element is selected twice. */
static bool launch_put(lt_Call *c, lt_Indexed *x, lt_Tensor *to, const lt_Tensor *from,
                       const char *value, lt_Tensor *keep) {
  const void *source = from ? lt_tensor_data(from) : NULL;
  lt_region_collapse(&x->p);
  int unit = lt_region_widen(&x->p, lt_dtype_size(to->dtype), lt_tensor_data(to), source);
  lt_MpsPut args = {.p = x->p};
  if (value) memcpy(args.value, value, sizeof args.value);
  lt_MpsLaunch launch = {
      .file = "index_update",
      .kernel = "index_put",
      .constants = {unit, from != NULL, keep != NULL},
      .data = {x->p.at, lt_tensor_data(to), source, keep ? lt_tensor_data(keep) : NULL, x->bad},
      .count = 5,
      .arguments = &args,
      .size = sizeof args};
  return lt_mps_launch_each(c, launch, x->p.count);
}

/* Writes `from` (or the value, where it is NULL) to the region x. Closes x. */
static bool put(lt_Call *c, lt_Indexed *x, const lt_Tensor *from, const char *value) {
  lt_Tensor *to = c->out[0], *keep = NULL;
  bool ok = true, repeats = from && from->numel > 1 && x->length > 1;
  if (x->p.count > 0 && to->numel > 0) {
    if (from) lt_index_other(x, from);
    lt_MpsLines lines = lines_of(x);
    if (repeats) keep = last_of_cells(c, &lines, x->p.at);
    ok = (keep || !repeats) && launch_put(c, x, to, from, value, keep);
    lt_release(keep);
  }
  lt_index_close(x);
  return ok;
}

bool lt_mps__scatter(lt_Call *c) {
  lt_Tensor *out = c->out[0], *src = lt_in(c, 3);
  int dim = lt_dim(c->arg[1].i, out->ndim);
  char value[16];
  lt_Indexed x;
  if (dim < 0 || (!src && !lt_index_number(c->arg[3].scalar, out->dtype, value))) return false;
  return lt_mps_begin(c) && lt_index_each(c, &lt_mps_index_driver, &x, out, dim, lt_in(c, 2)) &&
         put(c, &x, src, src ? NULL : value);
}

bool lt_mps_index_copy(lt_Call *c) {
  int dim = lt_dim(c->arg[1].i, c->out[0]->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_mps_begin(c) &&
         lt_index_line(c, &lt_mps_index_driver, &x, c->out[0], dim, lt_in(c, 2), "index") &&
         put(c, &x, lt_in(c, 3), NULL);
}

bool lt_mps_index_fill(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, out->ndim);
  char value[16];
  lt_Scalar number;
  lt_Indexed x;
  return dim >= 0 && lt_number_of(c, 3, &number) && lt_index_number(number, out->dtype, value) &&
         lt_mps_begin(c) &&
         lt_index_line(c, &lt_mps_index_driver, &x, out, dim, lt_in(c, 2), "index") &&
         put(c, &x, NULL, value);
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Adds scale * from to the region x of `to`, with `from` broadcast to the region. `skip` is an
 * index that is ignored, or -1. Does not close x. */
static bool add_to(lt_Call *c, lt_Indexed *x, lt_Tensor *to, const lt_Tensor *from, lt_Scalar scale,
                   int64_t skip) {
  if (x->p.count == 0 || to->numel == 0) return true;
  lt_MpsLines lines = lines_of(x);
  lt_index_other(x, from);
  lt_MpsAdd args = {.lines = lt_region_part(&x->p, true),
                    .columns = lt_region_part(&x->p, false),
                    .step = x->p.step,
                    .skip = skip,
                    .scale_int = lt_scalar_to_int(scale),
                    .scale = (float)lt_scalar_to_double(scale),
                    .lines_inside = lt_region_index_is_last(&x->p)};
  lt_Tensor *items = x->length > 1 ? order_cells(c, &lines, x->p.at) : NULL;
  if (x->length > 1 && !items) return false;
  lt_MpsLaunch launch = {.file = "index_update",
                         .kernel = "index_add",
                         .constants = {(int)to->dtype, items != NULL},
                         .data = {x->p.at, lt_tensor_data(to), lt_tensor_data(from),
                                  items ? lt_tensor_data(items) : NULL, x->bad},
                         .count = 5,
                         .arguments = &args,
                         .size = sizeof args};
  bool ok = lt_mps_launch_each_alone(c, launch, args.lines.count * args.columns.count);
  lt_release(items);
  return ok;
}

static bool add(lt_Call *c, lt_Indexed *x, const lt_Tensor *from, lt_Scalar scale) {
  bool ok = add_to(c, x, c->out[0], from, scale, -1);
  lt_index_close(x);
  return ok;
}

bool lt_mps_scatter_add(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, out->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_mps_begin(c) &&
         lt_index_each(c, &lt_mps_index_driver, &x, out, dim, lt_in(c, 2)) &&
         add(c, &x, lt_in(c, 3), lt_scalar_int(1));
}

bool lt_mps_index_add(lt_Call *c) {
  int dim = lt_dim(c->arg[1].i, c->out[0]->ndim);
  lt_Indexed x;
  return dim >= 0 && lt_mps_begin(c) &&
         lt_index_line(c, &lt_mps_index_driver, &x, c->out[0], dim, lt_in(c, 2), "index") &&
         add(c, &x, lt_in(c, 3), c->arg[4].scalar);
}

bool lt_mps__index_put(lt_Call *c) {
  lt_Indexed x;
  if (!lt_mps_begin(c) ||
      !lt_index_several(c, &lt_mps_index_driver, &x, c->out[0], &c->arg[1], c->arg[2].ints))
    return false;
  return c->arg[4].b ? add(c, &x, lt_in(c, 3), lt_scalar_int(1)) : put(c, &x, lt_in(c, 3), NULL);
}

/* Adds the rows of grad, selected by index, to zeros. */
bool lt_mps__embedding_backward(lt_Call *c) {
  lt_Tensor *grad = lt_in(c, 0), *out = c->out[0];
  int64_t n = out->shape[1], k = lt_in(c, 1)->numel, shape[2] = {k, n};
  lt_Indexed x;
  if (out->numel == 0) return true;
  if (!lt_mps_begin(c) || !lt_index_line(c, &lt_mps_index_driver, &x, out, 0, lt_in(c, 1), "input"))
    return false;
  lt_Tensor *dense = lt_as_contiguous(grad, grad->dtype), *rows = NULL;
  if (dense) {
    int64_t strides[2] = {n, 1};
    rows = lt_tensor_on(dense->storage, dense->dtype, dense->offset, 2, shape, strides);
  }
  bool ok = rows &&
            lt_mps_fill_zero(c->device.index, lt_tensor_data(out),
                             (size_t)out->numel * lt_dtype_size(out->dtype), c->stream) &&
            add_to(c, &x, out, rows, lt_scalar_int(1), c->arg[3].i - LT_INDEX_BASE);
  lt_release(rows);
  lt_release(dense);
  lt_index_close(&x);
  return ok;
}
