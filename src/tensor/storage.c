/* storage.c: reference-counted memory of a device. Every byte is counted, so that a host's
 * collector can see it; an allocation that fails asks the host to free memory, and tries again,
 * before it becomes an error. */
#include "core.h"

static _Atomic int64_t live_bytes;

int64_t lt_memory_live(void) { return atomic_load_explicit(&live_bytes, memory_order_relaxed); }

void lt_memory_on_pressure(lt_PressureFn fn, void *context) {
  lt_Thread *t = lt_thread();
  t->pressure = fn;
  t->pressure_context = context;
}

/* The host's chance to free something. Not entered again from inside itself. */
static bool relieve(size_t wanted) {
  lt_Thread *t = lt_thread();
  if (!t->pressure || t->in_pressure) return false;
  t->in_pressure = true;
  bool again = t->pressure(t->pressure_context, wanted);
  t->in_pressure = false;
  return again;
}

static void *no_memory(lt_Device device, size_t nbytes) {
  char reason[300];
  snprintf(reason, sizeof reason, "%s", lt_error());
  lt_error_set(
      "%s: out of memory on %s: tried to allocate %.2f MiB; %.2f MiB are held by tensors%s%s",
      lt_user_op(), lt_device_name(device), (double)nbytes / 1048576.0,
      (double)lt_memory_live() / 1048576.0, reason[0] ? "; " : "", reason);
  lt_thread()->memory_error = true;
  return NULL;
}

static void *device_alloc(const lt_Backend *backend, lt_Device device, size_t nbytes,
                          lt_Stream *stream) {
  char *reason = lt_thread()->error, first = reason[0];
  reason[0] = 0; /* shows whether the backend gives one */
  void *p = backend->alloc(device.index, nbytes, stream);
  if (!p && relieve(nbytes)) p = backend->alloc(device.index, nbytes, stream);
  if (!p) return no_memory(device, nbytes);
  if (!reason[0]) reason[0] = first; /* a chain of ops that failed before keeps its reason */
  return p;
}

/* Small memory of the CPU lies behind its own storage, in a block from the thread's pool. */
typedef struct SmallStorage {
  lt_Storage base;
  _Alignas(16) char memory[64];
} SmallStorage;

static bool is_small(const lt_Storage *s) {
  return s->device.type == LT_DEVICE_cpu && s->nbytes <= sizeof((SmallStorage *)0)->memory &&
         !s->release;
}

static void storage_free(lt_Storage *s) {
  if (is_small(s))
    lt_pool_give(LT_POOL_STORAGE, s);
  else
    free(s);
}

lt_Storage *lt_storage_new(lt_Device device, size_t nbytes) {
  const lt_Backend *backend = lt_device_backend(device.type);
  if (!backend) return NULL;
  const lt_Storage start = {.device = device, .nbytes = nbytes};
  bool small = is_small(&start);
  lt_Storage *s = small ? lt_pool_take(LT_POOL_STORAGE, sizeof(SmallStorage)) : malloc(sizeof *s);
  if (!s) return no_memory(device, nbytes);
  *s = start;
  atomic_init(&s->refs, 1);
  if (small) {
    s->data = nbytes ? ((SmallStorage *)s)->memory : NULL;
  } else if (backend->has_data && nbytes) {
    s->stream = backend->stream_current ? backend->stream_current(device.index) : NULL;
    s->data = device_alloc(backend, device, nbytes, s->stream);
    if (!s->data) {
      free(s);
      return NULL;
    }
  }
  if (s->data) atomic_fetch_add_explicit(&live_bytes, (int64_t)nbytes, memory_order_relaxed);
  return s;
}

lt_Storage *lt_storage_retain(lt_Storage *s) {
  if (s) atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return s;
}

void lt_storage_release(lt_Storage *s) {
  if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  if (s->data) {
    atomic_fetch_sub_explicit(&live_bytes, (int64_t)s->nbytes, memory_order_relaxed);
    if (s->release)
      s->release(s);
    else if (!is_small(s))
      lt_device_backend(s->device.type)->free(s->device.index, s->data, s->nbytes, s->stream);
  }
  storage_free(s);
}
