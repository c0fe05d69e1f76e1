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

void lt_memory_on_where(lt_WhereFn fn, void *context) {
  lt_Thread *t = lt_thread();
  t->where = fn;
  t->where_context = context;
}

void lt_memory_where(char *text, size_t size) {
  const lt_Thread *t = lt_thread();
  text[0] = 0;
  if (t->where) t->where(t->where_context, text, size);
}

/* The last word: `collected` bytes were freed by the host's collector. */
static void *no_memory(lt_Device device, size_t nbytes, int64_t collected) {
  const lt_Backend *b = lt_device_backend(device.type);
  char reason[300], report[1500] = "";
  snprintf(reason, sizeof reason, "%s", lt_error());
  if (b->memory_report) b->memory_report(b, device.index, nbytes, collected, report, sizeof report);
  return lt_error_memory(
      "%s: out of memory on %s: tried to allocate %.2f MiB; %.2f MiB are held by tensors%s%s%s%s",
      lt_user_op(), lt_device_name(device), (double)nbytes / 1048576.0,
      (double)lt_memory_live() / 1048576.0, reason[0] ? "; " : "", reason, report[0] ? "\n" : "",
      report);
}

/* Memory, by all means there are, from the cheapest on: what is free or can be had from the driver;
 * what the host's collector holds on to; what is cached in pieces, once all work is done. Only
 * running out of memory goes this way; any other failure is one at once. */
static void *device_alloc(const lt_Backend *b, lt_Device device, size_t nbytes, lt_Stream *stream) {
  char *reason = lt_thread()->error, first = reason[0];
  int64_t collected = 0;
  reason[0] = 0; /* shows whether the backend gives one */
  lt_thread()->memory_error = false;
  void *p = b->alloc(b, device.index, nbytes, stream);
  if (!p && b->memory_retry && !lt_error_is_memory()) return NULL;
  if (!p) {
    int64_t before = lt_memory_live();
    if (relieve(nbytes)) p = b->alloc(b, device.index, nbytes, stream);
    collected = before - lt_memory_live();
  }
  if (!p && b->memory_retry && b->memory_retry(b, device.index))
    p = b->alloc(b, device.index, nbytes, stream);
  if (!p) return no_memory(device, nbytes, collected > 0 ? collected : 0);
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

static void give_back(const lt_Storage *s) {
  const lt_Backend *b = lt_device_backend(s->device.type);
  b->free(b, s->device.index, s->data, s->nbytes, s->stream);
}

lt_Storage *lt_storage_new(lt_Device device, size_t nbytes) {
  const lt_Backend *backend = lt_device_backend(device.type);
  if (!backend) return NULL;
  const lt_Storage start = {.device = device, .nbytes = nbytes};
  bool small = is_small(&start);
  lt_Storage *s = small ? lt_pool_take(LT_POOL_STORAGE, sizeof(SmallStorage)) : malloc(sizeof *s);
  if (!s) return no_memory(device, nbytes, 0);
  *s = start;
  atomic_init(&s->refs, 1);
  if (small) {
    s->data = nbytes ? ((SmallStorage *)s)->memory : NULL;
  } else if (backend->has_data && nbytes) {
    s->stream = backend->stream_current ? backend->stream_current(backend, device.index) : NULL;
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
      give_back(s);
  }
  storage_free(s);
}

/* ---- memory of the host that devices copy by themselves -------------------------------------- */

/* The copy that is under way uses the memory until its event: who keeps the block waits for it. */
static void release_pinned(lt_Storage *s) {
  const lt_Backend *b = s->owner;
  b->host_free(b, s->data, s->nbytes, atomic_exchange(&s->pending, NULL));
}

lt_Storage *lt_storage_new_pinned(int device_type, size_t nbytes) {
  const lt_Backend *b = lt_device_backend(device_type);
  if (!b) return NULL;
  if (!b->host_alloc)
    return lt_error_set("%s: %s has no pinned memory", lt_user_op(),
                        lt_device_type_name(device_type));
  lt_Storage *s = malloc(sizeof *s);
  if (!s) return no_memory(lt_cpu(), nbytes, 0);
  *s = (lt_Storage){.device = lt_cpu(),
                    .nbytes = nbytes,
                    .release = release_pinned,
                    .owner = (void *)b,
                    .pinned = true};
  atomic_init(&s->refs, 1);
  if (nbytes) {
    s->data = b->host_alloc(b, nbytes);
    if (!s->data && relieve(nbytes)) s->data = b->host_alloc(b, nbytes);
    if (!s->data) {
      free(s);
      return no_memory(lt_cpu(), nbytes, 0);
    }
    atomic_fetch_add_explicit(&live_bytes, (int64_t)nbytes, memory_order_relaxed);
  }
  return s;
}

void lt_storage_settle(lt_Storage *s) {
  lt_Event *e = atomic_exchange(&s->pending, NULL);
  if (!e) return;
  e->backend->event_synchronize(e);
  e->backend->event_free(e);
}

void lt_storage_pend(lt_Storage *s, lt_Stream *stream) {
  const lt_Backend *b = stream->backend;
  lt_Event *e = atomic_exchange(&s->pending, NULL);
  /* Two copies, maybe on two streams: the later event stands for both. */
  if (e && (e->backend != b || e->index != stream->index || !b->stream_wait_event(stream, e))) {
    e->backend->event_synchronize(e);
    e->backend->event_free(e);
    e = NULL;
  }
  if (!e) e = b->event_new(b, stream->index, false);
  if (e && b->event_record(e, stream)) {
    atomic_store(&s->pending, e);
    return;
  }
  if (e) b->event_free(e);
  b->stream_synchronize(stream);
}
