/* tensor.c: tensors: a geometry (dtype, shape, strides, offset) on a storage. Creating and
 * releasing them, reading one element, freeing their memory early, and other geometries for
 * kernels. */
#include "autograd/autograd.h"
#include "recorder.h"
#include "refs.h"
#include "trace.h"

/* Allocates a tensor and sets every member but storage and strides. NULL with an error. */
static lt_Tensor *tensor_new(lt_Dtype dtype, int64_t offset, int64_t numel, int ndim,
                             const int64_t *shape) {
  lt_Tensor *t = lt_pool_take(LT_POOL_TENSOR, sizeof *t);
  if (!t) {
    lt_fail_memory();
    return NULL;
  }
  atomic_init(&t->refs, 1);
  t->dtype = dtype;
  t->ndim = ndim;
  t->requires_grad = false;
  t->inference = lt_thread()->inference_on;
  t->freed = LT_LIVE;
  t->hooked = false;
  t->offset = offset;
  t->numel = numel;
  t->meta = NULL;
  for (int i = 0; i < ndim; i++) t->shape[i] = shape[i];
  return t;
}

bool lt_check_device_dtype(lt_Device device, lt_Dtype dtype) {
  if (lt_device_has_dtype(device.type, dtype)) return true;
  const char *narrow = lt_dtype_is_complex(dtype) ? "complex64" : "float32";
  return lt_fail("cannot use dtype \"%s\" on \"%s\": the device does not have it\nhint: "
                 "dtype = \"%s\", or x:to(\"%s\") first",
                 lt_dtype_name(dtype), lt_device_name(device), narrow, narrow);
}

lt_Tensor *lt_empty(lt_Dtype dtype, lt_Device device, int ndim, const int64_t *shape) {
  int64_t numel;
  if (device.type != LT_DEVICE_cpu && !lt_check_device_dtype(device, dtype)) return NULL;
  if (!lt_shape_numel(NULL, ndim, shape, &numel)) return NULL;
  lt_Tensor *t = tensor_new(dtype, 0, numel, ndim, shape);
  if (!t) return NULL;
  lt_Thread *thread = lt_thread();
  thread->allocating = (lt_AllocationInfo){dtype, ndim, shape};
  t->storage = lt_storage_new(device, (size_t)numel * lt_dtype_size(dtype));
  thread->allocating.shape = NULL;
  if (!t->storage) {
    lt_pool_give(LT_POOL_TENSOR, t);
    return NULL;
  }
  lt_shape_strides(ndim, shape, t->strides);
  if (__builtin_expect(thread->recorder != NULL, 0) && thread->recorder->captures &&
      device.type != LT_DEVICE_meta && !lt_record_created(thread->recorder, t)) {
    lt_release(t);
    return NULL;
  }
  return t;
}

lt_Tensor *lt_tensor_on(lt_Storage *storage, lt_Dtype dtype, int64_t offset, int ndim,
                        const int64_t *shape, const int64_t *strides) {
  int64_t numel;
  if (!lt_shape_numel(NULL, ndim, shape, &numel)) return NULL;
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
  if (!t) return NULL;
  int before = atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
  if (before == 1 && t->hooked) lt_hooks_notify(t->meta);
  return t;
}

void lt_release(lt_Tensor *t) {
  if (!t) return;
  bool hooked = t->hooked; /* read before t may be gone */
  int before = lt_refs_drop(&t->refs);
  if (before > 1) {
    if (hooked && before == 2) lt_hooks_notify(t->meta);
    return;
  }
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
  if (!lt_tensor_usable(t, "item", "self")) return false;
  lt_recorder_refuse("it reads the value of a tensor");
  if (t->numel != 1) {
    lt_error_set("item: expected a tensor of one element for argument 'self', got shape %s",
                 lt_shape_text(t->ndim, t->shape));
    return false;
  }
  const lt_Backend *b = lt_backend_of(t);
  if (!b->has_data) {
    lt_error_set("item: cannot read a tensor on \"%s\": it has no data", b->name);
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
  bool ok = b->memory.copy(lt_cpu(), element, from, lt_tensor_data(t), n, stream, false);
  if (traced) ok = lt_trace_copied(&span, &plan, ok);
  if (!ok) return false;
  *out = lt_scalar_load(t->dtype, element);
  return true;
}

/* ---- operands in use, and tensors that are freed --------------------------------------------- */

/* Returns the base of an operand that is a view. The base is in use, too: autograd changes the
 * history of both. */
static lt_Tensor *base_of(const lt_Tensor *operand) {
  return operand && operand->meta ? operand->meta->base : NULL;
}

/* Returns true when t is the operand or its base. */
static bool is_or_sees(const lt_Tensor *operand, const lt_Tensor *t) {
  return operand == t || base_of(operand) == t;
}

/* Returns true when an argument is t, or a view of it. */
static bool holds(const lt_Arg *a, const lt_Tensor *t) {
  if (a->kind == LT_ARG_TENSOR) return is_or_sees(a->tensor, t);
  for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
    if (is_or_sees(a->tensors[k], t)) return true;
  return false;
}

bool lt_tensor_in_use(const lt_Tensor *t) {
  for (const lt_Use *use = lt_thread()->use; use; use = use->outer)
    for (int i = 0; i < use->nargs; i++)
      if (holds(&use->args[i], t)) return true;
  return false;
}

/* The storage of every freed tensor: it has no memory, and its first reference is never
 * released. */
static lt_Storage empty_storage = {.refs = 1, .device = {LT_DEVICE_cpu, 0}};

/* Makes t an empty tensor. All of it is changed before memory is released, because a hook that is
 * forgotten may run code of the host. */
static void free_now(lt_Tensor *t) {
  lt_Storage *storage = t->storage;
  lt_AutogradMeta *meta = t->meta;
  t->freed = LT_FREED;
  t->storage = lt_storage_retain(&empty_storage);
  t->offset = 0;
  t->numel = 0;
  t->ndim = 1;
  t->shape[0] = 0;
  t->strides[0] = 1;
  t->meta = NULL;
  t->requires_grad = t->hooked = false;
  if (meta) lt_autograd_meta_free(meta);
  lt_storage_release(storage);
}

/* Frees t if lt_tensor_free was called on it meanwhile and no running call uses it. */
static void free_one(lt_Thread *th, lt_Tensor *t) {
  if (!t || t->freed != LT_FREED_AT_EXIT || lt_tensor_in_use(t)) return;
  th->frees_at_exit--;
  free_now(t);
}

/* Frees an operand and its base; the base first, because the operand refers to it. */
static void free_at_exit(lt_Thread *th, lt_Tensor *operand) {
  free_one(th, base_of(operand));
  free_one(th, operand);
}

void lt_use_free(lt_Thread *th, const lt_Use *use) {
  for (int i = 0; i < use->nargs; i++) {
    const lt_Arg *a = &use->args[i];
    if (a->kind == LT_ARG_TENSOR) free_at_exit(th, a->tensor);
    for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++) free_at_exit(th, a->tensors[k]);
  }
}

bool lt_tensor_free(lt_Tensor *t) {
  if (t->freed != LT_LIVE) return t->freed == LT_FREED;
  if (lt_tensor_in_use(t)) {
    t->freed = LT_FREED_AT_EXIT;
    lt_thread()->frees_at_exit++;
    return false;
  }
  free_now(t);
  return true;
}

bool lt_tensor_usable(const lt_Tensor *t, const char *op, const char *argument) {
  if (!t || t->freed != LT_FREED) return true;
  lt_error_set("%s: expected a tensor for argument '%s', got a tensor that was freed (x:free())",
               op ? op : lt_user_op(), argument);
  return false;
}

bool lt_arg_usable(const lt_Arg *a, const char *name) {
  if (a->kind == LT_ARG_TENSOR) return lt_tensor_usable(a->tensor, NULL, name);
  for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
    if (a->tensors[k] && a->tensors[k]->freed == LT_FREED)
      return lt_fail(
          "expected a tensor for argument '%s[%d]', got a tensor that was freed (x:free())", name,
          k + 1);
  return true;
}

bool lt_tensor_set_data(lt_Tensor *t, lt_Tensor *data) {
  if (!lt_tensor_usable(t, "set_data", "self") || !lt_tensor_usable(data, "set_data", "data"))
    return false;
  if (lt_tensor_in_use(t)) {
    lt_error_set("set_data: cannot replace the data: a running call uses the tensor");
    return false;
  }
  if (t->meta && !lt_tensor_is_leaf(t)) {
    lt_error_set(
        "set_data: cannot replace the data: the tensor is not a leaf, it is a result of %s",
        lt_tensor_grad_fn_name(t));
    return false;
  }
  if (t->requires_grad && !lt_dtype_has_gradient(data->dtype)) {
    lt_error_set("set_data: expected a float dtype for argument 'data', as the tensor requires "
                 "grad, got \"%s\"",
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

/* ---- versions, contiguous copies ------------------------------------------------------------- */

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

/* ---- other geometries, for kernels ----------------------------------------------------------- */

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
