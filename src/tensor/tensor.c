/* tensor.c: a tensor is a geometry (dtype, shape, strides, offset) on a storage. */
#include "trace.h"

static lt_Tensor *tensor_new(lt_Dtype dtype, int64_t offset, int64_t numel, int ndim,
                             const int64_t *shape) {
  lt_Tensor *t = lt_pool_take(LT_POOL_TENSOR, sizeof *t);
  if (!t) {
    lt_error_set("%s: out of memory", lt_user_op());
    lt_thread()->memory_error = true;
    return NULL;
  }
  atomic_init(&t->refs, 1);
  t->dtype = dtype;
  t->ndim = ndim;
  t->requires_grad = false;
  t->inference = lt_thread()->inference_on;
  t->offset = offset;
  t->numel = numel;
  t->meta = NULL;
  for (int i = 0; i < ndim; i++) t->shape[i] = shape[i];
  return t;
}

lt_Tensor *lt_empty(lt_Dtype dtype, lt_Device device, int ndim, const int64_t *shape) {
  int64_t numel;
  if (!lt_shape_numel(lt_user_op(), ndim, shape, &numel)) return NULL;
  lt_Tensor *t = tensor_new(dtype, 0, numel, ndim, shape);
  if (!t) return NULL;
  lt_Thread *thread = lt_thread();
  thread->making = (lt_Making){dtype, ndim, shape};
  t->storage = lt_storage_new(device, (size_t)numel * lt_dtype_size(dtype));
  thread->making.shape = NULL;
  if (!t->storage) {
    lt_pool_give(LT_POOL_TENSOR, t);
    return NULL;
  }
  lt_shape_strides(ndim, shape, t->strides);
  return t;
}

lt_Tensor *lt_tensor_on(lt_Storage *storage, lt_Dtype dtype, int64_t offset, int ndim,
                        const int64_t *shape, const int64_t *strides) {
  int64_t numel;
  if (!lt_shape_numel(lt_user_op(), ndim, shape, &numel)) return NULL;
  lt_Tensor *t = tensor_new(dtype, offset, numel, ndim, shape);
  if (!t) return NULL;
  for (int i = 0; i < ndim; i++) t->strides[i] = strides[i];
  t->storage = lt_storage_retain(storage);
  return t;
}

lt_Tensor *lt_scalar_tensor(lt_Scalar s, lt_Dtype dtype) {
  char element[16];
  if (!lt_scalar_store(s, dtype, element)) return NULL;
  lt_Tensor *t = lt_empty(dtype, lt_cpu(), 0, NULL);
  if (t) memcpy(t->storage->data, element, lt_dtype_size(dtype));
  return t;
}

lt_Tensor *lt_retain(lt_Tensor *t) {
  if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  return t;
}

void lt_release(lt_Tensor *t) {
  if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
  if (t->meta) lt_autograd_meta_free(t->meta);
  lt_storage_release(t->storage);
  lt_pool_give(LT_POOL_TENSOR, t);
}

bool lt_tensor_is_contiguous(const lt_Tensor *t) {
  int64_t n = 1;
  if (t->numel <= 1) return true;
  for (int i = t->ndim - 1; i >= 0; i--) {
    if (t->shape[i] == 1) continue;
    if (t->strides[i] != n) return false;
    n *= t->shape[i];
  }
  return true;
}

bool lt_tensor_item(const lt_Tensor *t, lt_Scalar *out) {
  char element[16];
  if (t->numel != 1) {
    lt_error_set("item: wants a tensor of one element, got the shape %s",
                 lt_shape_text(t->ndim, t->shape));
    return false;
  }
  const lt_Backend *b = lt_backend_of(t);
  if (!b->has_data) {
    lt_error_set("item: a %s tensor has no data", b->name);
    return false;
  }
  if (b->host_memory) {
    *out = lt_scalar_load(t->dtype, lt_tensor_data(t));
    return true;
  }
  size_t n = lt_dtype_size(t->dtype);
  lt_Device from = lt_tensor_device(t);
  lt_Stream *stream = lt_stream_of(t);
  lt_TraceSpan span;
  bool traced = lt_trace_begin(&span, LT_TRACE_COPY);
  lt_TraceCopy plan;
  if (traced) {
    plan = (lt_TraceCopy){.to = lt_cpu(),
                          .from = from,
                          .source = t->storage,
                          .offset = t->offset * (int64_t)n,
                          .host = element,
                          .nbytes = n,
                          .stream = stream,
                          .blocking = true};
    if (!lt_trace_plan(&span, &plan)) return false;
  }
  bool ok = b->copy(lt_cpu(), element, from, lt_tensor_data(t), n, stream, false);
  if (traced) ok = lt_trace_copied(&span, &plan, ok);
  if (!ok) return false;
  *out = lt_scalar_load(t->dtype, element);
  return true;
}

bool lt_tensor_set_data(lt_Tensor *t, lt_Tensor *data) {
  if (t->meta && !lt_tensor_is_leaf(t)) {
    lt_error_set("set_data: the tensor is a result of %s: only leaves can be given other data",
                 lt_tensor_grad_fn_name(t));
    return false;
  }
  if (t->requires_grad && !lt_dtype_is_float(data->dtype)) {
    lt_error_set("set_data: the tensor requires grad, so its data must be floats, got %s",
                 lt_dtype_name(data->dtype));
    return false;
  }
  lt_Storage *old = t->storage;
  t->storage = lt_storage_retain(data->storage);
  t->dtype = data->dtype;
  t->ndim = data->ndim;
  t->offset = data->offset;
  t->numel = data->numel;
  memcpy(t->shape, data->shape, sizeof t->shape[0] * (size_t)data->ndim);
  memcpy(t->strides, data->strides, sizeof t->strides[0] * (size_t)data->ndim);
  lt_storage_release(old);
  return true;
}

bool lt_tensor_free(lt_Tensor *t) {
  lt_Storage *none = lt_storage_new(lt_tensor_device(t), 0);
  if (!none) return false;
  lt_storage_release(t->storage);
  t->storage = none;
  t->offset = 0;
  t->numel = 0;
  t->ndim = 1;
  t->shape[0] = 0;
  t->strides[0] = 1;
  if (t->meta) lt_autograd_meta_free(t->meta);
  t->meta = NULL;
  t->requires_grad = false;
  return true;
}

void lt_tensor_touch(lt_Tensor *t) {
  atomic_fetch_add_explicit(&t->storage->version, 1, memory_order_relaxed);
}

unsigned lt_tensor_version(const lt_Tensor *t) {
  return atomic_load_explicit(&t->storage->version, memory_order_relaxed);
}

lt_Tensor *lt_as_contiguous(lt_Tensor *t, lt_Dtype dtype) {
  if (!t) return NULL;
  if (t->dtype == dtype && lt_tensor_is_contiguous(t)) return lt_retain(t);
  lt_Tensor *copy = lt_empty(dtype, lt_tensor_device(t), t->ndim, t->shape);
  if (copy && !lt_copy_into(copy, t, false)) {
    lt_release(copy);
    return NULL;
  }
  return copy;
}

/* ---- other geometries, for kernels ------------------------------------------------------------ */

lt_Tensor *lt_expanded(lt_Tensor *t, int ndim, const int64_t *shape) {
  int64_t strides[LT_MAX_DIMS];
  int missing = ndim - t->ndim;
  for (int d = 0; d < ndim; d++) {
    int s = d - missing;
    strides[d] = s < 0 || (t->shape[s] == 1 && shape[d] != 1) ? 0 : t->strides[s];
  }
  return lt_geometry(t, 0, ndim, shape, strides);
}

lt_Tensor *lt_geometry(lt_Tensor *t, int64_t offset, int ndim, const int64_t *shape,
                       const int64_t *strides) {
  return lt_tensor_on(t->storage, t->dtype, t->offset + offset, ndim, shape, strides);
}

lt_Tensor *lt_expanded_contiguous(lt_Tensor *t, lt_Dtype dtype, int ndim, const int64_t *shape) {
  lt_Tensor *wide = lt_expanded(t, ndim, shape);
  if (!wide) return NULL;
  lt_Tensor *dense = lt_as_contiguous(wide, dtype);
  lt_release(wide);
  return dense;
}
