/* elementwise_loop.c: elementwise loops and copies. Operands are broadcast, and their dimensions
 * reordered and merged, until one of the few layouts of device.h remains; then the device runs the
 * loop. Copies between dtypes and layouts are such loops; copies between devices are here, too. */
#include "trace.h"
#include "opids.h"

/* ---- overlap --------------------------------------------------------------------------------- */

bool lt_tensor_overlaps_itself(const lt_Tensor *t) {
  if (t->numel <= 1 || lt_tensor_is_contiguous(t)) return false;
  int order[LT_MAX_DIMS], n = 0;
  for (int i = 0; i < t->ndim; i++) { /* insertion sort by stride, ascending */
    if (t->shape[i] == 1) continue;
    int k = n++;
    for (; k > 0 && t->strides[order[k - 1]] > t->strides[i]; k--) order[k] = order[k - 1];
    order[k] = i;
  }
  int64_t reach = 0; /* the offset of the last element in the dimensions before */
  for (int k = 0; k < n; k++) {
    if (t->strides[order[k]] <= reach) return true;
    reach += (t->shape[order[k]] - 1) * t->strides[order[k]];
  }
  return false;
}

/* Returns the offset of t's last element in its storage. */
static int64_t last_element(const lt_Tensor *t) {
  int64_t last = t->offset;
  for (int i = 0; i < t->ndim; i++) last += (t->shape[i] - 1) * t->strides[i];
  return last;
}

/* Returns true when the tensors are the same elements in the same order. */
static bool same_geometry(const lt_Tensor *a, const lt_Tensor *b) {
  if (a->dtype != b->dtype || a->offset != b->offset || a->ndim != b->ndim) return false;
  for (int i = 0; i < a->ndim; i++)
    if (a->shape[i] != b->shape[i] || (a->strides[i] != b->strides[i] && a->shape[i] > 1))
      return false;
  return true;
}

/* The strides of two tensors in bytes, the largest first, each once; the last is 1. */
typedef struct Grid {
  int n;
  int64_t stride[2 * LT_MAX_DIMS + 1];
} Grid;

/* Adds t's strides to the grid. */
static void add_strides(Grid *g, const lt_Tensor *t) {
  for (int d = 0; d < t->ndim; d++) {
    int64_t s = t->strides[d] * (int64_t)lt_dtype_size(t->dtype);
    int k = 0;
    if (t->shape[d] == 1 || s == 0) continue;
    while (g->stride[k] > s) k++;
    if (g->stride[k] == s) continue;
    memmove(&g->stride[k + 1], &g->stride[k], (size_t)(g->n++ - k) * sizeof *g->stride);
    g->stride[k] = s;
  }
}

/* Computes the bytes of t as a box in the grid: those at sum(i[k] * stride[k]) after byte `from`,
 * for all i[k] from low[k] to high[k]. Returns false when different i may give the same byte. */
static bool box_of(const Grid *g, const lt_Tensor *t, int64_t from, int64_t *low, int64_t *high) {
  int64_t size = (int64_t)lt_dtype_size(t->dtype), rest = t->offset * size - from, reach = 0;
  for (int k = 0; k < g->n; rest %= g->stride[k++]) {
    low[k] = high[k] = rest / g->stride[k];
    for (int d = 0; d < t->ndim; d++)
      if (t->strides[d] * size == g->stride[k]) high[k] += t->shape[d] - 1;
  }
  high[g->n - 1] += size - 1;
  for (int k = g->n - 1; k >= 0; reach += high[k] * g->stride[k], k--)
    if (reach >= g->stride[k]) return false;
  return true;
}

/* Returns true when two tensors share no byte although their ranges overlap, such as two columns of
 * one matrix: as boxes of one grid they are disjoint in some dimension. */
static bool interleaved(const lt_Tensor *a, const lt_Tensor *b, int64_t from) {
  enum { MOST = 2 * LT_MAX_DIMS + 1 };
  Grid g = {1, {1}};
  int64_t alow[MOST], ahigh[MOST], blow[MOST], bhigh[MOST];
  add_strides(&g, a);
  add_strides(&g, b);
  if (!box_of(&g, a, from, alow, ahigh) || !box_of(&g, b, from, blow, bhigh)) return false;
  for (int k = 0; k < g.n; k++)
    if (ahigh[k] < blow[k] || bhigh[k] < alow[k]) return true;
  return false;
}

bool lt_tensor_overlaps(const lt_Tensor *a, const lt_Tensor *b) {
  if (a->storage != b->storage || !a->numel || !b->numel || same_geometry(a, b)) return false;
  int64_t asize = (int64_t)lt_dtype_size(a->dtype), bsize = (int64_t)lt_dtype_size(b->dtype);
  int64_t abegin = a->offset * asize, bbegin = b->offset * bsize;
  return abegin < (last_element(b) + 1) * bsize && bbegin < (last_element(a) + 1) * asize &&
         !interleaved(a, b, abegin < bbegin ? abegin : bbegin);
}

/* ---- collapsing ------------------------------------------------------------------------------ */

/* The dimensions of a loop, and the operands with a stride for each dimension. */
typedef struct Dims {
  int ndim;
  int64_t *shape;
  int count;
  lt_Operand *operand;
} Dims;

/* Returns true when dimension i should be inside of dimension j. The first operand whose strides
 * differ decides; the outputs come first. */
static bool inside(const Dims *d, int i, int j) {
  for (int k = 0; k < d->count; k++) {
    int64_t a = d->operand[k].strides[i], b = d->operand[k].strides[j];
    if (a == 0 || b == 0 || a == b) continue;
    return a < b;
  }
  return false;
}

/* Swaps two dimensions in the shape and in all operands. */
static void swap_dims(const Dims *d, int i, int j) {
  int64_t n = d->shape[i];
  d->shape[i] = d->shape[j];
  d->shape[j] = n;
  for (int k = 0; k < d->count; k++) {
    int64_t s = d->operand[k].strides[i];
    d->operand[k].strides[i] = d->operand[k].strides[j];
    d->operand[k].strides[j] = s;
  }
}

/* Overwrites dimension `to` by dimension `from`. */
static void move_dim(const Dims *d, int from, int to) {
  d->shape[to] = d->shape[from];
  for (int k = 0; k < d->count; k++) d->operand[k].strides[to] = d->operand[k].strides[from];
}

/* Returns true when two neighbouring dimensions are one run of memory in every operand. */
static bool mergeable(const Dims *d, int outer, int inner) {
  for (int k = 0; k < d->count; k++)
    if (d->operand[k].strides[outer] != d->operand[k].strides[inner] * d->shape[inner])
      return false;
  return true;
}

bool lt_operands_collapse(int *ndim, int64_t *shape, int count, lt_Operand *operand) {
  Dims d = {*ndim, shape, count, operand};
  int n = 0;
  for (int i = 0; i < d.ndim; i++) { /* remove dimensions of size 1 */
    if (shape[i] == 0) return false;
    if (shape[i] == 1) continue;
    if (n != i) move_dim(&d, i, n);
    n++;
  }
  d.ndim = n;
  for (int i = 1; i < n; i++) /* insertion sort, the smallest strides innermost */
    for (int k = i; k > 0 && inside(&d, k - 1, k); k--) swap_dims(&d, k - 1, k);
  for (int i = n - 2; i >= 0; i--) { /* merge neighbours */
    if (!mergeable(&d, i, i + 1)) continue;
    shape[i + 1] *= shape[i];
    for (int k = i; k < d.ndim - 1; k++) move_dim(&d, k + 1, k);
    d.ndim--;
  }
  if (d.ndim == 0) { /* one element */
    d.ndim = 1;
    shape[0] = 1;
    for (int k = 0; k < count; k++)
      operand[k].strides[0] = (int64_t)lt_dtype_size(operand[k].dtype);
  }
  *ndim = d.ndim;
  return true;
}

/* Classifies the strides of a collapsed loop. */
static lt_Layout layout_of(const lt_Loop *l) {
  bool dense = true, simple = true;
  int last = l->ndim - 1;
  for (int k = 0; k <= l->inputs; k++) {
    int64_t s = l->operand[k].strides[last];
    bool is_dense = s == (int64_t)lt_dtype_size(l->operand[k].dtype);
    dense &= is_dense;
    simple &= is_dense || (s == 0 && k > 0);
  }
  if (l->ndim == 1 && dense) return LT_LAYOUT_CONTIGUOUS;
  if (l->ndim == 1 && simple) return LT_LAYOUT_SCALAR;
  return simple ? LT_LAYOUT_INNER : LT_LAYOUT_GENERAL;
}

void lt_loop_collapse(lt_Loop *l) {
  if (lt_operands_collapse(&l->ndim, l->shape, l->inputs + 1, l->operand)) {
    l->layout = layout_of(l);
  } else {
    l->layout = LT_LAYOUT_EMPTY;
    l->numel = 0;
  }
}

/* ---- building -------------------------------------------------------------------------------- */

/* Sets operand k to t, broadcast to the loop's shape. Dimensions are aligned at the end. */
static void set_operand(lt_Loop *l, int k, const lt_Tensor *t) {
  lt_Operand *o = &l->operand[k];
  int64_t size = (int64_t)lt_dtype_size(t->dtype);
  int lead = l->ndim - t->ndim;
  o->data = lt_tensor_data(t);
  o->dtype = t->dtype;
  o->host = !lt_device_equal(lt_tensor_device(t), l->device);
  for (int i = 0; i < lead; i++) o->strides[i] = 0;
  for (int i = 0; i < t->ndim; i++)
    o->strides[lead + i] = t->shape[i] == 1 ? 0 : t->strides[i] * size;
}

/* Returns true when every operand is contiguous and has the output's shape, or is one element: then
 * there is nothing to collapse. The usual case. */
static bool flat(const lt_Tensor *out, int n, const lt_Arg *inputs) {
  if (!lt_tensor_is_contiguous(out)) return false;
  for (int i = 0; i < n; i++) {
    if (inputs[i].kind != LT_ARG_TENSOR) continue;
    const lt_Tensor *t = inputs[i].tensor;
    if (t->numel == 1 && out->numel != 1) continue;
    if (!lt_shape_equal(t->ndim, t->shape, out->ndim, out->shape) || !lt_tensor_is_contiguous(t))
      return false;
  }
  return true;
}

/* Sets up the loop for operands that `flat` accepted, as one dimension. */
static void flatten(lt_Loop *l, const lt_Tensor *out, int n, const lt_Arg *inputs) {
  l->ndim = 1;
  l->shape[0] = out->numel;
  l->layout = out->numel ? LT_LAYOUT_CONTIGUOUS : LT_LAYOUT_EMPTY;
  l->operand[0].data = lt_tensor_data(out);
  l->operand[0].dtype = out->dtype;
  l->operand[0].host = false;
  l->operand[0].strides[0] = (int64_t)lt_dtype_size(out->dtype);
  for (int i = 0; i < n; i++) {
    lt_Operand *o = &l->operand[i + 1];
    if (inputs[i].kind == LT_ARG_TENSOR) {
      const lt_Tensor *t = inputs[i].tensor;
      o->data = lt_tensor_data(t);
      o->dtype = t->dtype;
      o->host = !lt_device_equal(lt_tensor_device(t), l->device);
      o->strides[0] = t->numel == out->numel ? (int64_t)lt_dtype_size(t->dtype) : 0;
    } else {
      o->strides[0] = 0;
    }
    if (o->strides[0] == 0 && l->layout == LT_LAYOUT_CONTIGUOUS)
      l->layout = out->numel == 1 ? LT_LAYOUT_CONTIGUOUS : LT_LAYOUT_SCALAR;
  }
}

bool lt_number_store(lt_Scalar s, lt_Dtype compute, void *element) {
  if (lt_dtype_category(compute) == LT_INTEGER) {
    int64_t v = lt_scalar_to_int(s);
    if (compute == LT_int32) v = (int32_t)v;
    s = lt_scalar_int(v);
  }
  return lt_scalar_store(s, compute, element);
}

bool lt_loop_run(lt_OpId op, lt_Tensor *out, lt_Dtype compute, int n, const lt_Arg *inputs,
                 lt_Scalar a, lt_Scalar b) {
  const lt_Backend *backend = lt_backend_of(out);
  if (!backend->has_data || out->numel == 0) return true;
  lt_Loop l;
  /* memory for number operands */
  _Alignas(LT_MAX_ELEMENT) char numbers[3][LT_MAX_ELEMENT];
  l.op = op;
  l.compute = compute;
  l.inputs = n;
  l.numel = out->numel;
  l.a = a;
  l.b = b;
  l.device = lt_tensor_device(out);
  l.stream = backend->streams.current ? backend->streams.current(backend, l.device.index) : NULL;
  bool is_flat = flat(out, n, inputs);
  if (is_flat) {
    flatten(&l, out, n, inputs);
  } else {
    l.ndim = out->ndim;
    memcpy(l.shape, out->shape, sizeof *l.shape * (size_t)out->ndim);
    set_operand(&l, 0, out);
  }
  for (int i = 0; i < n; i++) {
    lt_Operand *o = &l.operand[i + 1];
    if (inputs[i].kind == LT_ARG_SCALAR) {
      if (!lt_number_store(inputs[i].scalar, compute, numbers[i])) return false;
      o->data = numbers[i];
      o->dtype = compute;
      o->host = true;
      if (is_flat) {
        if (out->numel == 1) o->strides[0] = (int64_t)lt_dtype_size(compute);
      } else {
        memset(o->strides, 0, sizeof *o->strides * (size_t)l.ndim);
      }
    } else if (!is_flat) {
      set_operand(&l, i + 1, inputs[i].tensor);
    }
  }
  if (!is_flat) lt_loop_collapse(&l);
  return backend->kernels.elementwise(&l);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Tells the allocator that the copy's stream uses the source's memory, if that was allocated on
 * another stream. */
static void note_source(const lt_Backend *origin, const lt_Tensor *source) {
  lt_Stream *stream = origin->memory.record_stream ? lt_stream_of(source) : NULL;
  if (stream && source->storage->stream && source->storage->stream != stream)
    origin->memory.record_stream(source->storage, stream);
}

/* Copies n bytes by the backend of `device`, on its current stream. A non-blocking copy from or to
 * pinned memory may still be running at the return: then the storage has a pending event. */
static bool copy_by(lt_Device device, const lt_Backend *b, lt_Tensor *out, const lt_Tensor *source,
                    size_t n, bool non_blocking) {
  lt_Device to = lt_tensor_device(out), from = lt_tensor_device(source);
  lt_Stream *stream = b->streams.current ? b->streams.current(b, device.index) : NULL;
  bool to_host = to.type == LT_DEVICE_cpu;
  lt_Storage *host = to_host ? out->storage : source->storage;
  bool queued = non_blocking && stream && host->pinned;
  lt_TraceSpan span;
  bool traced = lt_trace_begin(&span, LT_TRACE_COPY);
  void *target = queued ? lt_tensor_place(out) : lt_tensor_data(out);
  const void *origin = queued ? lt_tensor_place(source) : lt_tensor_data(source);
  const void *bytes = to_host ? target : origin;
  lt_TraceCopy plan;
  if (traced) {
    plan = (lt_TraceCopy){.to = to,
                          .from = from,
                          .target = out->storage,
                          .source = source->storage,
                          .offset = source->offset * (int64_t)lt_dtype_size(source->dtype),
                          .host = queued && host->pending_writes ? NULL : bytes,
                          .nbytes = n,
                          .stream = stream,
                          .source_stream = to.type == from.type ? lt_stream_current(from) : NULL,
                          .blocking = !non_blocking && to.type != from.type,
                          .pinned = host->pinned};
    if (!lt_trace_plan(&span, &plan)) return false;
  }
  if (queued) lt_storage_wait_pending(host, stream, to_host);
  bool ok = b->memory.copy(to, target, from, origin, n, stream, non_blocking);
  if (traced) ok = lt_trace_copied(&span, &plan, ok);
  if (!ok) return false;
  if (queued) lt_storage_set_pending(host, stream, to_host);
  return true;
}

/* Copies contiguous bytes from one device to another; through the CPU when neither backend can copy
 * to the other's memory. */
static bool copy_bytes(lt_Tensor *out, const lt_Tensor *source, bool non_blocking) {
  lt_Device to = lt_tensor_device(out), from = lt_tensor_device(source);
  const lt_Backend *target = lt_backend_of(out), *origin = lt_backend_of(source);
  size_t n = (size_t)out->numel * lt_dtype_size(out->dtype);
  if (!origin->has_data)
    return lt_fail("cannot copy a tensor on \"%s\": it has no data", origin->name);
  if (!target->has_data || n == 0) return true;
  bool ok;
  if (to.type == from.type || from.type == LT_DEVICE_cpu) {
    ok = copy_by(to, target, out, source, n, non_blocking);
  } else if (to.type == LT_DEVICE_cpu) {
    ok = copy_by(from, origin, out, source, n, non_blocking);
  } else {
    lt_Tensor *host = lt_empty(out->dtype, lt_cpu(), out->ndim, out->shape);
    ok = host && copy_bytes(host, source, false) && copy_bytes(out, host, false);
    lt_release(host);
  }
  note_source(origin, source);
  return ok;
}

/* Returns the range of memory that t fills, as one dimension. NULL when memory is out. */
static lt_Tensor *as_row(const lt_Tensor *t) {
  return lt_geometry((lt_Tensor *)t, 0, 1, &t->numel, (int64_t[]){1});
}

/* Copies between devices: casts and gathers to contiguous memory on the source's device, sends the
 * bytes, and scatters on the target's device. So the fewest bytes are sent. Where the source's
 * device does not have the target's dtype, the cast is the target's. */
static bool copy_across(lt_Tensor *out, const lt_Tensor *source, bool non_blocking) {
  if (!lt_backend_of(source)->has_data) return copy_bytes(out, source, non_blocking);
  if (!lt_backend_of(out)->has_data) return true;
  if (!lt_tensor_is_contiguous(out) && lt_same_order(out, source)) {
    lt_Tensor *to = as_row(out), *from = as_row(source);
    bool ok = to && from && copy_across(to, from, non_blocking);
    lt_release(from);
    lt_release(to);
    return ok;
  }
  bool cast_there = !lt_device_has_dtype(lt_tensor_device(source).type, out->dtype);
  lt_Tensor *packed =
      lt_as_contiguous((lt_Tensor *)source, cast_there ? source->dtype : out->dtype);
  if (!packed) return false;
  bool direct = !cast_there && lt_tensor_is_contiguous(out) && packed->numel == out->numel;
  lt_Tensor *landed =
      direct ? lt_retain(out)
             : lt_empty(packed->dtype, lt_tensor_device(out), packed->ndim, packed->shape);
  bool ok = landed && copy_bytes(landed, packed, non_blocking && direct);
  if (ok && !direct) ok = lt_copy_into(out, landed, false);
  lt_release(landed);
  lt_release(packed);
  return ok;
}

bool lt_check_conversion(lt_Dtype to, lt_Dtype from) {
  if (!lt_dtype_is_complex(from) || lt_dtype_is_complex(to) || to == LT_bool) return true;
  return lt_fail("cannot convert \"%s\" to \"%s\": this would discard the imaginary parts\nhint: "
                 "x.real, x.imag or x:abs()",
                 lt_dtype_name(from), lt_dtype_name(to));
}

bool lt_copy_into(lt_Tensor *out, const lt_Tensor *source, bool non_blocking) {
  if (out == source) return true;
  if (!lt_check_conversion(out->dtype, source->dtype)) return false;
  if (lt_bools_are_loose(source)) {
    size_t mark = lt_scope_open();
    lt_Tensor *copy = lt_bools_copy(source);
    bool ok = copy && lt_copy_into(out, copy, false);
    lt_scope_close(mark, NULL);
    return ok;
  }
  if (!lt_device_equal(lt_tensor_device(out), lt_tensor_device(source)))
    return copy_across(out, source, non_blocking);
  lt_Dtype compute = lt_copy_compute(out->dtype, source->dtype);
  lt_Arg in = lt_arg_tensor((lt_Tensor *)source);
  if (lt_tensor_overlaps(out, source)) {
    lt_Tensor *copy =
        lt_empty(source->dtype, lt_tensor_device(source), source->ndim, source->shape);
    bool ok = copy && lt_copy_into(copy, source, false) && lt_copy_into(out, copy, false);
    lt_release(copy);
    return ok;
  }
  return lt_loop_run(LT_OP_copy, out, compute, 1, &in, lt_scalar_int(0), lt_scalar_int(0));
}
