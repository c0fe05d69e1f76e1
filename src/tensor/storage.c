/* storage.c: reference-counted memory of a device. All bytes are counted, so that a host's garbage
 * collector can be charged for them. When an allocation fails, the host is asked to free memory and
 * the allocation is tried again before it becomes an error.
 *
 * Invariant: host memory that a queued copy still uses has the copy's event in `pending`, until the
 * host has synchronized with that event. If `pending` is NULL, the host may read and write the
 * memory. */
#include "refs.h"
#include "trace.h"

#include <pthread.h>

static _Atomic int64_t live_bytes;

int64_t lt_memory_live(void) { return atomic_load_explicit(&live_bytes, memory_order_relaxed); }

void lt_memory_on_pressure(lt_PressureFn fn, void *context) {
  lt_Thread *t = lt_thread();
  t->pressure = fn;
  t->pressure_context = context;
}

/* Asks the host to free memory. Returns true when the allocation should be tried again. Not
 * re-entered: an allocation inside of the callback fails at once. The running call and the error
 * slot are saved around the callback, because finalizers may call ops. */
static bool relieve(size_t nbytes) {
  lt_Thread *t = lt_thread();
  if (!t->pressure || t->in_pressure) return false;
  const char *op = t->user_op;
  bool in_place = t->user_in_place;
  lt_AllocationInfo allocating = t->allocating;
  lt_ErrorSlot kept;
  lt_error_keep(&kept);
  t->in_pressure = true;
  t->user_op = NULL;
  bool again = t->pressure(t->pressure_context, nbytes);
  t->user_op = op;
  t->user_in_place = in_place;
  t->allocating = allocating;
  t->in_pressure = false;
  lt_error_restore(&kept);
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

/* Sets the final error of an allocation. `collected`: the bytes that the host's garbage collector
 * has freed before. */
static void *no_memory(lt_Device device, size_t nbytes, int64_t collected) {
  const lt_Backend *b = lt_device_backend(device.type);
  const double MiB = 1048576.0;
  char reason[300], report[1500] = "";
  snprintf(reason, sizeof reason, "%s", lt_error());
  if (b->memory.report) b->memory.report(b, device.index, nbytes, collected, report, sizeof report);
  if (report[0])
    return lt_error_memory("%s: out of memory on \"%s\": cannot allocate %.2f MiB\n%s",
                           lt_user_op(), lt_device_name(device), (double)nbytes / MiB, report);
  return lt_error_memory(
      "%s: out of memory on \"%s\": cannot allocate %.2f MiB; tensors hold %.2f MiB%s%s",
      lt_user_op(), lt_device_name(device), (double)nbytes / MiB, (double)lt_memory_live() / MiB,
      reason[0] ? "; " : "", reason);
}

/* Returns the bytes that tensors hold on a device; if the device does not count them, on all
 * devices. */
static int64_t held_on(const lt_Backend *b, lt_Device device) {
  lt_MemoryStats stats;
  if (!b->memory.stats || !b->memory.stats(b, device.index, &stats)) return lt_memory_live();
  return stats.allocated_bytes[LT_POOL_ALL].current;
}

/* Returns true when an allocation failed because memory is out. Backends without a cache do not
 * report the kind of failure. */
static bool is_out(const lt_Backend *b) { return !b->memory.retry || lt_error_is_memory(); }

/* Allocates when neither the cache nor the driver has memory left. First the host's garbage
 * collector runs, as long as it frees something. Then the device is synchronized, so that blocks
 * that queued work used become free, and the cache is returned to the driver. Any failure other
 * than out-of-memory ends this at once. */
static void *alloc_hard(const lt_Backend *b, lt_Device device, size_t nbytes, lt_Stream *stream) {
  void *p = NULL;
  int64_t before = held_on(b, device);
  for (int round = 0; round < 4 && !p && is_out(b) && relieve(nbytes); round++)
    p = b->memory.alloc(b, device.index, nbytes, stream);
  if (p || !is_out(b)) return p;
  int64_t collected = before - held_on(b, device);
  if (b->memory.retry) {
    if (!b->memory.retry(b, device.index)) return NULL;
    p = b->memory.alloc(b, device.index, nbytes, stream);
    if (p || !is_out(b)) return p;
  }
  return no_memory(device, nbytes, collected > 0 ? collected : 0);
}

/* Allocates memory of a device. A success leaves the error slot unchanged: if an earlier call of a
 * chain failed, its error stays. */
static void *device_alloc(const lt_Backend *b, lt_Device device, size_t nbytes, lt_Stream *stream) {
  lt_ErrorSlot kept;
  lt_error_keep(&kept);
  lt_error_clear();
  void *p = b->memory.alloc(b, device.index, nbytes, stream);
  if (!p) p = alloc_hard(b, device, nbytes, stream);
  if (!p) return NULL;
  lt_error_restore(&kept);
  return p;
}

/* A storage of the CPU with its memory in the same block, which comes from the thread's pool. For
 * scalars and other tiny tensors, which are created by the million. */
typedef struct TinyStorage {
  lt_Storage base;
  _Alignas(16) char memory[64];
} TinyStorage;

enum {
  TINY = sizeof((TinyStorage *)0)->memory,
  SMALL = 4096, /* the memory of small storages of the CPU follows the struct */
  POOLED = 512, /* small storages of so many bytes come from a pool, too */
  ALIGNMENT = 64
};

/* Returns true when the memory of s is in the block of the struct. */
static bool is_small(const lt_Storage *s) {
  return s->device.type == LT_DEVICE_cpu && s->nbytes <= SMALL && !s->release;
}

/* Allocates a storage and, if it is small, its memory. NULL when memory is out. */
static lt_Storage *storage_alloc(bool small, size_t nbytes) {
  if (!small) return malloc(sizeof(lt_Storage));
  if (nbytes <= TINY) return lt_pool_take(LT_POOL_STORAGE, sizeof(TinyStorage));
  if (nbytes <= POOLED)
    return lt_pool_take(LT_POOL_SMALL_STORAGE, sizeof(lt_Storage) + ALIGNMENT + POOLED);
  return malloc(sizeof(lt_Storage) + ALIGNMENT + nbytes);
}

/* Returns the memory of a small storage. */
static void *small_memory(lt_Storage *s) {
  if (s->nbytes == 0) return NULL;
  if (s->nbytes <= TINY) return ((TinyStorage *)s)->memory;
  char *end = (char *)(s + 1);
  return end + (ALIGNMENT - (uintptr_t)end % ALIGNMENT) % ALIGNMENT;
}

/* Frees the struct, and the memory of a small storage. */
static void storage_free(lt_Storage *s) {
  if (!is_small(s) || s->nbytes > POOLED)
    free(s);
  else
    lt_pool_give(s->nbytes <= TINY ? LT_POOL_STORAGE : LT_POOL_SMALL_STORAGE, s);
}

/* Returns the memory to its backend. */
static void give_back(const lt_Storage *s) {
  const lt_Backend *b = lt_device_backend(s->device.type);
  b->memory.free(b, s->device.index, s->data, s->nbytes, s->stream);
}

lt_Storage *lt_storage_new(lt_Device device, size_t nbytes) {
  const lt_Backend *backend = lt_device_backend(device.type);
  if (!backend) return NULL;
  const lt_Storage start = {.device = device, .nbytes = nbytes};
  bool small = is_small(&start);
  lt_Storage *s = storage_alloc(small, nbytes);
  if (!s && relieve(nbytes)) s = storage_alloc(small, nbytes);
  if (!s) return no_memory(device, nbytes, 0);
  *s = start;
  atomic_init(&s->refs, 1);
  if (small) {
    s->data = small_memory(s);
  } else if (backend->has_data && nbytes) {
    s->stream = backend->streams.current ? backend->streams.current(backend, device.index) : NULL;
    s->data = device_alloc(backend, device, nbytes, s->stream);
    if (!s->data) {
      free(s);
      return NULL;
    }
  }
  if (s->data) {
    atomic_fetch_add_explicit(&live_bytes, (int64_t)nbytes, memory_order_relaxed);
    lt_trace_memory(s, true);
  }
  return s;
}

lt_Storage *lt_storage_on(void *data, size_t nbytes, void (*release)(lt_Storage *self),
                          void *owner) {
  lt_Storage *s = malloc(sizeof *s);
  if (!s) return no_memory(lt_cpu(), sizeof *s, 0);
  *s = (lt_Storage){
      .device = lt_cpu(), .nbytes = nbytes, .data = data, .release = release, .owner = owner};
  atomic_init(&s->refs, 1);
  atomic_fetch_add_explicit(&live_bytes, (int64_t)nbytes, memory_order_relaxed);
  lt_trace_memory(s, true);
  return s;
}

lt_Storage *lt_storage_retain(lt_Storage *s) {
  if (s) atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
  return s;
}

/* Frees pinned memory. A pending copy may still use it: the backend takes over its event, and keeps
 * the block until the copy is done. */
static void release_pinned(lt_Storage *s) {
  const lt_Backend *b = s->owner;
  b->memory.host_free(b, s->data, s->nbytes, atomic_exchange(&s->pending, NULL));
}

static void settle(lt_Storage *s, bool may_stop);

void lt_storage_release(lt_Storage *s) {
  if (!s || lt_refs_drop(&s->refs) != 1) return;
  lt_Event *e = atomic_load_explicit(&s->pending, memory_order_relaxed);
  /* release_pinned passes the event to the backend. In all other cases block: the memory must not
   * be reused before the copy is done. */
  if (e && (s->release != release_pinned || e->backend != s->owner)) settle(s, false);
  if (s->data) {
    atomic_fetch_sub_explicit(&live_bytes, (int64_t)s->nbytes, memory_order_relaxed);
    lt_trace_memory(s, false);
    if (s->release)
      s->release(s);
    else if (!is_small(s))
      give_back(s);
  }
  storage_free(s);
}

/* ---- pinned host memory ---------------------------------------------------------------------- */

/* Allocates pinned memory; tries once more after the host has freed memory. */
static void *pinned_alloc(const lt_Backend *b, size_t nbytes) {
  lt_ErrorSlot kept;
  lt_error_keep(&kept);
  lt_error_clear();
  void *p = b->memory.host_alloc(b, nbytes);
  if (!p && lt_error_is_memory() && relieve(nbytes)) p = b->memory.host_alloc(b, nbytes);
  if (!p) return lt_error_is_memory() ? no_memory(lt_cpu(), nbytes, 0) : NULL;
  lt_error_restore(&kept);
  return p;
}

lt_Storage *lt_storage_new_pinned(int device_type, size_t nbytes) {
  const lt_Backend *b = lt_device_backend(device_type);
  if (!b) return NULL;
  if (!b->memory.host_alloc)
    return lt_error_set("%s: cannot pin memory for \"%s\": it has no pinned memory", lt_user_op(),
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
    s->data = pinned_alloc(b, nbytes);
    if (!s->data) {
      free(s);
      return NULL;
    }
    atomic_fetch_add_explicit(&live_bytes, (int64_t)nbytes, memory_order_relaxed);
    lt_trace_memory(s, true);
  }
  return s;
}

/* ---- pending copies -------------------------------------------------------------------------- */

/* Returns one of 16 locks, by the storage's address. It protects `pending`: of two threads that
 * synchronize with the same copy, neither destroys the event while the other uses it. */
static pthread_mutex_t *lock_of(const lt_Storage *s) {
#define FOUR                                                                                       \
  PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,                 \
      PTHREAD_MUTEX_INITIALIZER
  static pthread_mutex_t locks[16] = {FOUR, FOUR, FOUR, FOUR};
#undef FOUR
  return &locks[(uint64_t)(uintptr_t)s * 0x9E3779B97F4A7C15u >> 60];
}

/* Blocks until the pending copy is done. With may_stop, Ctrl-C ends that, and the copy stays
 * pending. */
static void settle(lt_Storage *s, bool may_stop) {
  pthread_mutex_t *lock = lock_of(s);
  pthread_mutex_lock(lock);
  lt_Event *e = atomic_load(&s->pending);
  if (e) {
    lt_TraceSpan span;
    bool traced = lt_trace_begin(&span, LT_TRACE_WAIT);
    bool ok = (!may_stop || lt_wait_event(e));
    bool over = ok;
    if (ok) ok = e->backend->streams.event_synchronize(e);
    if (traced) lt_trace_waited(&span, "copy", e, ok);
    if (over) {
      atomic_store(&s->pending, NULL);
      atomic_store(&s->pending_writes, false);
      e->backend->streams.event_destroy(e);
    }
  }
  pthread_mutex_unlock(lock);
}

void lt_storage_synchronize(lt_Storage *s) { settle(s, true); }

/* Makes the stream wait for an event; if it cannot (another backend), blocks the host instead. */
static void put_behind(lt_Stream *stream, lt_Event *e) {
  const lt_Backend *b = e->backend;
  if (b != stream->backend || !b->streams.wait_event || !b->streams.wait_event(stream, e))
    b->streams.event_synchronize(e);
}

/* Makes `stream` wait for the pending event e, so that one event recorded there stands for both
 * copies. Returns e if it can be recorded on that stream; otherwise destroys it and returns
 * NULL. */
static lt_Event *carry_on(lt_Event *e, lt_Stream *stream) {
  const lt_Backend *b = e->backend;
  put_behind(stream, e);
  if (b == stream->backend && e->index == stream->index) return e;
  b->streams.event_destroy(e);
  return NULL;
}

/* In a capture the host blocks: the graph cannot wait for work outside of it. */
void lt_storage_wait_pending(lt_Storage *s, lt_Stream *stream, bool writes) {
  if (lt_thread()->capturing) {
    settle(s, true);
    return;
  }
  pthread_mutex_t *lock = lock_of(s);
  pthread_mutex_lock(lock);
  lt_Event *e = atomic_load(&s->pending);
  if (e && (writes || atomic_load(&s->pending_writes))) put_behind(stream, e);
  pthread_mutex_unlock(lock);
}

/* In a capture the copy does not run: the graph keeps the storage, and marks it at each replay. */
void lt_storage_set_pending(lt_Storage *s, lt_Stream *stream, bool writes) {
  const lt_Backend *b = stream->backend;
  if (b->graphs.is_capturing && lt_thread()->capturing && b->graphs.is_capturing(stream)) {
    b->memory.record_stream(s, stream);
    return;
  }
  pthread_mutex_t *lock = lock_of(s);
  pthread_mutex_lock(lock);
  lt_Event *e = atomic_load(&s->pending);
  atomic_store(&s->pending_writes, writes || (e && atomic_load(&s->pending_writes)));
  if (e) e = carry_on(e, stream);
  if (!e) e = b->streams.event_create(b, stream->index, false);
  if (e && !b->streams.event_record(e, stream)) {
    b->streams.event_destroy(e);
    e = NULL;
  }
  if (!e) b->streams.synchronize(stream);
  atomic_store(&s->pending, e);
  pthread_mutex_unlock(lock);
}
