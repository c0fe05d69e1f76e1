/* streams.c: streams, and the current device and stream of each thread.
 *
 * Each device has a default stream, whose native handle is NULL and which is never destroyed. Any
 * other stream is destroyed when its owner has freed it and no thread has it as its current one;
 * then memory that was allocated on it moves to the default stream. Its struct stays until the last
 * such memory is freed, so that an address never refers to two streams. */
#include "allocator.h"

static _Atomic uint64_t last_id;

/* ---- the current device and stream ----------------------------------------------------------- */

/* The current device and streams of a thread, for one vendor. */
typedef struct Current {
  uint64_t serial; /* of the vendor: lt_Accel.serial */
  int device;
  lt_AccelStream *stream[LT_ACCEL_MAX]; /* NULL: the default stream; others count as a user */
} Current;
static _Thread_local Current current[LT_MAX_DEVICE_TYPES];

static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

/* Returns this thread's state for a vendor; resets it when it belongs to a former vendor of the
 * slot. */
static Current *current_of(const lt_Accel *accel) {
  Current *c = &current[accel->slot];
  if (c->serial != accel->serial) *c = (Current){.serial = accel->serial};
  return c;
}

/* Removes a thread that ends from the users of its current streams. */
static void forget_current(void *unused) {
  (void)unused;
  for (int slot = 0; slot < LT_MAX_DEVICE_TYPES; slot++) {
    lt_Accel *accel = lt_accel_at(slot, current[slot].serial);
    for (int i = 0; accel && i < LT_ACCEL_MAX; i++)
      if (current[slot].stream[i]) lt_accel_stream_drop(accel, current[slot].stream[i]);
    current[slot] = (Current){0};
  }
}

static void make_key(void) { pthread_key_create(&thread_end, forget_current); }

/* ---- lifetime -------------------------------------------------------------------------------- */

/* Returns true for the default stream of a device, which has no counts: it is never destroyed. */
static bool is_default(const lt_AccelStream *s) { return s->id == 0; }

void lt_accel_stream_retain(lt_AccelStream *s) {
  if (!is_default(s)) atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void lt_accel_stream_release(lt_AccelStream *s) {
  if (is_default(s)) return;
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) free(s);
}

/* Adds a stream to the vendor's list. */
static void enlist(lt_Accel *accel, lt_AccelStream *s) {
  pthread_mutex_lock(&accel->streams_lock);
  s->next = accel->streams;
  accel->streams = s;
  pthread_mutex_unlock(&accel->streams_lock);
}

/* Removes a stream from the vendor's list. */
static void unlist(lt_Accel *accel, const lt_AccelStream *s) {
  pthread_mutex_lock(&accel->streams_lock);
  lt_AccelStream **link = &accel->streams;
  while (*link && *link != s) link = &(*link)->next;
  if (*link) *link = s->next;
  pthread_mutex_unlock(&accel->streams_lock);
}

void lt_accel_stream_use(lt_AccelStream *s) {
  if (!is_default(s)) atomic_fetch_add(&s->users, 1);
}

void lt_accel_stream_drop(lt_Accel *accel, lt_AccelStream *s) {
  if (is_default(s) || atomic_fetch_sub(&s->users, 1) != 1) return;
  unlist(accel, s);
  if (lt_accel_usable(accel)) {
    lt_allocator_adopt(accel->allocator[s->base.index], s);
    accel->driver->stream_free(s->base.index, s->native);
  }
  s->native = NULL;
  lt_accel_stream_release(s);
}

static lt_Stream *stream_new(const lt_Backend *self, int index, int priority) {
  lt_Accel *accel = lt_accel_of(self);
  if (!lt_accel_ready(self, index)) return NULL;
  lt_AccelStream *s = calloc(1, sizeof *s);
  if (!s) return lt_error_memory("Stream: out of memory");
  s->base = (lt_Stream){self, index};
  lt_DriverStatus status = accel->driver->stream_new(index, priority, &s->native, &s->priority);
  if (status != LT_DRIVER_OK) {
    free(s);
    if (status == LT_DRIVER_NO_MEMORY)
      lt_error_memory("Stream: cannot create a stream on \"%s\": out of memory",
                      lt_accel_name(self, index));
    return NULL;
  }
  s->id = atomic_fetch_add(&last_id, 1) + 1;
  atomic_init(&s->users, 1);
  atomic_init(&s->refs, 1);
  enlist(accel, s);
  return &s->base;
}

static void stream_free(lt_Stream *stream) {
  if (stream) lt_accel_stream_drop(lt_accel_of(stream->backend), (lt_AccelStream *)stream);
}

/* ---- the backend's members ------------------------------------------------------------------- */

static lt_Stream *stream_default(const lt_Backend *self, int index) {
  return index >= 0 && index < LT_ACCEL_MAX ? &lt_accel_of(self)->default_stream[index].base : NULL;
}

static lt_Stream *stream_current(const lt_Backend *self, int index) {
  if (index < 0 || index >= LT_ACCEL_MAX) return NULL;
  lt_AccelStream *s = current_of(lt_accel_of(self))->stream[index];
  return s ? &s->base : stream_default(self, index);
}

/* Makes a stream the current one of this thread, which then counts as one of its users. NULL means
 * the default stream. */
static bool stream_set_current(const lt_Backend *self, int index, lt_Stream *stream) {
  lt_Accel *accel = lt_accel_of(self);
  if (index < 0 || index >= LT_ACCEL_MAX)
    return lt_error_set("set_stream: expected a device that is available, got \"%s\"",
                        lt_accel_name(self, index));
  if (stream && (stream->backend != self || stream->index != index))
    return lt_error_set("set_stream: expected a Stream of \"%s\", got one of \"%s\"",
                        lt_accel_name(self, index), lt_accel_name(stream->backend, stream->index));
  lt_AccelStream **place = &current_of(accel)->stream[index], *old = *place;
  lt_AccelStream *s =
      stream && !is_default((lt_AccelStream *)stream) ? (lt_AccelStream *)stream : NULL;
  if (s) {
    atomic_fetch_add(&s->users, 1);
    pthread_once(&thread_end_once, make_key);
    pthread_setspecific(thread_end, current);
  }
  *place = s;
  if (old) lt_accel_stream_drop(accel, old);
  return true;
}

static int index_current(const lt_Backend *self) { return current_of(lt_accel_of(self))->device; }

/* Sets the current device of this thread. Does not initialize it. */
static bool index_set_current(const lt_Backend *self, int index) {
  char why[256] = "";
  int n = self->count(why, sizeof why);
  if (index < 0 || index >= n || index >= LT_ACCEL_MAX)
    return lt_error_set(
        "set_device: expected a device that is available, got \"%s\" (%d available)%s%s",
        lt_accel_name(self, index), n, why[0] ? ": " : "", why);
  current_of(lt_accel_of(self))->device = index;
  return true;
}

static int stream_priority(const lt_Stream *s) {
  return s ? ((const lt_AccelStream *)s)->priority : 0;
}

void *lt_accel_native(const lt_Stream *s) { return s ? ((const lt_AccelStream *)s)->native : NULL; }

/* Returns true when a device has no work: it was never initialized, or its driver is unloaded. */
static bool is_idle(const lt_Backend *b, int index) {
  return !lt_accel_is_ready(b, index) || !lt_accel_usable(lt_accel_of(b));
}

/* What the host cannot do with a stream or an event during a capture, and why. */
#define LATER "call it before or after the capture"

/* Fails when the stream is part of this thread's capture. */
static bool may_ask(const lt_Stream *s, const char *what) {
  return !lt_capture_includes(s->backend, s->index, s) ||
         lt_capture_allows(s->backend, s->index, what, LATER);
}

/* After a failure of the driver this returns true, so that polling ends; the next call for the
 * device reports the failure. */
static bool stream_query(lt_Stream *s) {
  return is_idle(s->backend, s->index) || !may_ask(s, "query the stream") ||
         lt_accel_of(s->backend)->driver->stream_query(s->index, lt_accel_native(s)) !=
             LT_DRIVER_NOT_READY;
}

static bool stream_synchronize(lt_Stream *s) {
  return is_idle(s->backend, s->index) ||
         (may_ask(s, "synchronize the stream") &&
          lt_accel_of(s->backend)->driver->stream_synchronize(s->index, lt_accel_native(s)) ==
              LT_DRIVER_OK);
}

/* Returns true when all streams of a device are done. */
static bool device_query(const lt_Backend *self, int index) {
  lt_Accel *accel = lt_accel_of(self);
  if (lt_capture_of(self, index)) return true; /* synchronize will fail */
  if (!stream_query(stream_default(self, index))) return false;
  pthread_mutex_lock(&accel->streams_lock);
  lt_AccelStream *s = accel->streams;
  while (s && (s->base.index != index || stream_query(&s->base))) s = s->next;
  pthread_mutex_unlock(&accel->streams_lock);
  return !s;
}

static bool synchronize(const lt_Backend *self, int index) {
  return is_idle(self, index) || (lt_capture_allows(self, index, "synchronize the device", LATER) &&
                                  lt_accel_of(self)->driver->synchronize(index) == LT_DRIVER_OK);
}

void lt_accel_fill_streams(lt_Backend *b) {
  b->index_current = index_current;
  b->index_set_current = index_set_current;
  b->streams.create = stream_new;
  b->streams.destroy = stream_free;
  b->streams.get_default = stream_default;
  b->streams.current = stream_current;
  b->streams.set_current = stream_set_current;
  b->streams.priority = stream_priority;
  b->streams.native = lt_accel_native;
  b->streams.query = stream_query;
  b->streams.synchronize = stream_synchronize;
  b->streams.device_query = device_query;
  b->streams.device_synchronize = synchronize;
}
