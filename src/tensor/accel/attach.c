/* attach.c: the state of a vendor's accelerators, and the backend's functions for memory. A device
 * is initialized when it is first used; before that only the number of devices is queried. */
#include "allocator.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
/* The attached vendors, by slot. */
static lt_Accel *table[LT_MAX_DEVICE_TYPES];
static uint64_t last_serial;
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;

const char *lt_accel_name(const lt_Backend *b, int index) {
  static _Thread_local char ring[4][40];
  static _Thread_local unsigned at;
  char *text = ring[at++ % 4];
  if (b->numbered)
    snprintf(text, sizeof ring[0], "%.20s:%d", b->name, index);
  else
    snprintf(text, sizeof ring[0], "%.30s", b->name);
  return text;
}

lt_Accel *lt_accel_at(int slot, uint64_t serial) {
  pthread_mutex_lock(&table_lock);
  lt_Accel *accel = table[slot] && table[slot]->serial == serial ? table[slot] : NULL;
  pthread_mutex_unlock(&table_lock);
  return accel;
}

bool lt_accel_usable(const lt_Accel *accel) {
  return !atomic_load_explicit(&accel->shut, memory_order_relaxed) && accel->driver->alive();
}

/* ---- initializing devices -------------------------------------------------------------------- */

bool lt_accel_is_ready(const lt_Backend *b, int index) {
  return index >= 0 && index < LT_ACCEL_MAX &&
         atomic_load_explicit(&lt_accel_of(b)->ready[index], memory_order_acquire);
}

/* Initializes a device and creates its allocator. */
static bool make_ready(lt_Accel *accel, int index) {
  const lt_Backend *b = accel->backend;
  char why[256] = "";
  int n = accel->driver->count(why, sizeof why);
  if (index < 0 || index >= n || index >= LT_ACCEL_MAX)
    return lt_error_set("expected a device that is available, got \"%s\" (%d available)%s%s",
                        lt_accel_name(b, index), n, why[0] ? ": " : "", why);
  if (!accel->driver->initialize(index)) return false;
  accel->allocator[index] = lt_allocator_new(accel, index);
  if (!accel->allocator[index]) return false;
  atomic_store_explicit(&accel->ready[index], true, memory_order_release);
  return true;
}

bool lt_accel_ready(const lt_Backend *b, int index) {
  lt_Accel *accel = lt_accel_of(b);
  if (atomic_load_explicit(&accel->shut, memory_order_relaxed))
    return lt_error_set(
        "cannot use \"%s\": the program is ending and the driver is already shut down",
        lt_accel_name(b, index));
  if (lt_accel_is_ready(b, index)) return true;
  pthread_mutex_lock(&ready_lock);
  bool ok = lt_accel_is_ready(b, index) || make_ready(accel, index);
  pthread_mutex_unlock(&ready_lock);
  return ok;
}

/* ---- the backend's members ------------------------------------------------------------------- */

/* Initializes the device on its first allocation. The stream must belong to the device. */
static void *alloc(const lt_Backend *self, int index, size_t nbytes, lt_Stream *stream) {
  lt_Accel *accel = lt_accel_of(self);
  if (!lt_accel_ready(self, index)) return NULL;
  if (stream && (stream->backend != self || stream->index != index))
    return lt_error_set("%s: cannot allocate: the stream is on \"%s\", the memory on \"%s\"",
                        lt_user_op(), lt_accel_name(stream->backend, stream->index),
                        lt_accel_name(self, index));
  return lt_allocator_alloc(accel->allocator[index], lt_capture_pool(self, index), nbytes,
                            lt_accel_stream(accel, index, stream));
}

/* The allocator finds the size and the stream by the address. */
static void release(const lt_Backend *self, int index, void *memory, size_t nbytes,
                    lt_Stream *stream) {
  (void)nbytes;
  (void)stream;
  lt_Accel *accel = lt_accel_of(self);
  if (memory && lt_accel_usable(accel) && lt_accel_is_ready(self, index))
    lt_allocator_free(accel->allocator[index], memory);
}

/* A device that was never initialized has nothing to release. */
static bool memory_release(const lt_Backend *self, int index) {
  return !lt_accel_is_ready(self, index) ||
         lt_allocator_release(lt_accel_of(self)->allocator[index], false);
}

static bool memory_retry(const lt_Backend *self, int index) {
  return !lt_accel_is_ready(self, index) ||
         lt_allocator_release(lt_accel_of(self)->allocator[index], true);
}

static bool memory_limit(const lt_Backend *self, int index, double fraction) {
  return lt_accel_ready(self, index) &&
         lt_allocator_limit(lt_accel_of(self)->allocator[index], fraction);
}

static bool memory_info(const lt_Backend *self, int index, int64_t *free_bytes, int64_t *total) {
  size_t f = 0, t = 0;
  if (!lt_accel_ready(self, index) ||
      lt_accel_of(self)->driver->memory_info(index, &f, &t) != LT_DRIVER_OK)
    return false;
  *free_bytes = (int64_t)f;
  *total = (int64_t)t;
  return true;
}

/* Records that a stream uses memory: of pinned memory by a pending event, of other memory in its
 * allocator; in a capture in the graph. */
static bool record_stream(lt_Storage *storage, lt_Stream *stream) {
  if (!storage->data || !stream) return true;
  const lt_Backend *b = stream->backend;
  lt_Graph *graph = lt_capture_of(b, stream->index);
  if (graph && lt_capture_includes(b, stream->index, stream))
    return lt_capture_keep(graph, storage, stream);
  if (storage->pinned) {
    lt_storage_set_pending(storage, stream, true);
    return true;
  }
  lt_Accel *accel = lt_accel_of(b);
  int index = storage->device.index;
  return !lt_accel_is_ready(b, index) ||
         (lt_accel_ready(b, stream->index) &&
          lt_allocator_record(accel->allocator[index], storage->data, (lt_AccelStream *)stream));
}

/* ---- attaching ------------------------------------------------------------------------------- */

/* Returns everything to the driver, and frees the state. */
static void accel_free(lt_Accel *accel) {
  lt_graphs_free(accel);
  if (accel->pinned) lt_pinned_free(accel);
  for (int i = 0; i < LT_ACCEL_MAX; i++)
    if (accel->allocator[i]) lt_allocator_delete(accel->allocator[i]);
  if (accel->events) lt_event_cache_free(accel);
  pthread_mutex_destroy(&accel->streams_lock);
  pthread_mutex_destroy(&accel->graphs_lock);
  free(accel);
}

/* Fills in the members of the backend that this folder implements. */
static void fill(lt_Backend *b) {
  b->count = lt_accel_of(b)->driver->count;
  b->memory.alloc = alloc;
  b->memory.free = release;
  b->memory.release = memory_release;
  b->memory.retry = memory_retry;
  b->memory.limit = memory_limit;
  b->memory.info = memory_info;
  b->memory.is_ready = lt_accel_is_ready;
  b->memory.record_stream = record_stream;
  lt_accel_fill_streams(b);
  lt_accel_fill_events(b);
  lt_accel_fill_graphs(b);
  lt_accel_fill_pinned(b);
  lt_accel_fill_reports(b);
}

bool lt_accel_attach(lt_Backend *backend, const lt_AccelDriver *driver) {
  lt_Accel *accel = calloc(1, sizeof *accel);
  if (!accel) return lt_error_memory("%s: out of memory", backend->name);
  accel->backend = backend;
  accel->driver = driver;
  pthread_mutex_init(&accel->streams_lock, NULL);
  pthread_mutex_init(&accel->graphs_lock, NULL);
  for (int i = 0; i < LT_ACCEL_MAX; i++) accel->default_stream[i].base = (lt_Stream){backend, i};
  accel->pinned = lt_pinned_new();
  accel->events = lt_event_cache_new();
  pthread_mutex_lock(&table_lock);
  accel->slot = 0;
  while (accel->slot < LT_MAX_DEVICE_TYPES && table[accel->slot]) accel->slot++;
  bool ok = accel->pinned && accel->events && accel->slot < LT_MAX_DEVICE_TYPES;
  if (ok) {
    accel->serial = ++last_serial;
    table[accel->slot] = accel;
  }
  pthread_mutex_unlock(&table_lock);
  if (!ok) {
    accel_free(accel);
    return lt_error_memory("%s: cannot register another accelerator", backend->name);
  }
  backend->own = accel;
  fill(backend);
  return true;
}

void lt_accel_shutdown(const lt_Backend *backend) {
  if (backend->own) atomic_store(&lt_accel_of(backend)->shut, true);
}

void lt_accel_detach(lt_Backend *backend) {
  lt_Accel *accel = lt_accel_of(backend);
  if (!accel) return;
  pthread_mutex_lock(&table_lock);
  table[accel->slot] = NULL;
  pthread_mutex_unlock(&table_lock);
  accel_free(accel);
  backend->own = NULL;
}
