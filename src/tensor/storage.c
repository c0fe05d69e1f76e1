/* storage.c: reference-counted memory of a device. Every byte is counted, so that a host's collector can see it; an
 * allocation that fails asks the host to free memory, and tries again, before it becomes an error. */
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
  lt_thread()->error[0] = 0;
  void *p = backend->alloc(device.index, nbytes, stream);
  if (!p && relieve(nbytes)) p = backend->alloc(device.index, nbytes, stream);
  return p ? p : no_memory(device, nbytes);
}

/* Small memory of the CPU lies behind its own storage: one malloc for both. */
#define INLINE_LIMIT 512
typedef struct SmallStorage {
  lt_Storage base;
  _Alignas(16) char memory[];
} SmallStorage;

lt_Storage *lt_storage_new(lt_Device device, size_t nbytes) {
  const lt_Backend *backend = lt_device_backend(device.type);
  if (!backend) return NULL;
  bool small = device.type == LT_DEVICE_cpu && nbytes <= INLINE_LIMIT;
  lt_Storage *s = malloc(small ? sizeof(SmallStorage) + nbytes : sizeof *s);
  if (!s) return no_memory(device, nbytes);
  *s = (lt_Storage){.device = device, .nbytes = nbytes};
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
    bool small = s->data == (void *)((SmallStorage *)s)->memory;
    if (s->release) {
      s->release(s);
    } else if (!small) {
      lt_device_backend(s->device.type)->free(s->device.index, s->data, s->nbytes, s->stream);
    }
  }
  free(s);
}
