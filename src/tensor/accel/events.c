/* events.c: events, and a cache of the driver's events without timing. Such an event can return to
 * the cache as soon as no host code refers to it, even if it is not done: a stream that waits for
 * it has stored what to wait for, and recording it again does not change that. */
#include "accel.h"
#include "trace.h"

#include <pthread.h>

/* An event of the host: a driver's event, and whether it was ever recorded. */
typedef struct Event {
  lt_Event base;
  void *native;
  bool timing;
  atomic_bool recorded;
  _Atomic uint64_t capture; /* number of the capture that its last record is part of; 0: none */
} Event;

#define KEPT 256 /* events that are cached for each device; more are destroyed */
struct lt_EventCache {
  pthread_mutex_t lock;
  int count[LT_ACCEL_MAX];
  void *kept[LT_ACCEL_MAX][KEPT];
};

lt_EventCache *lt_event_cache_new(void) {
  lt_EventCache *cache = calloc(1, sizeof *cache);
  if (cache) pthread_mutex_init(&cache->lock, NULL);
  return cache;
}

lt_DriverStatus lt_event_take(lt_Accel *accel, int index, void **native) {
  lt_EventCache *cache = accel->events;
  pthread_mutex_lock(&cache->lock);
  int n = cache->count[index];
  if (n) *native = cache->kept[index][cache->count[index] = n - 1];
  pthread_mutex_unlock(&cache->lock);
  return n ? LT_DRIVER_OK : accel->driver->event_new(index, false, native);
}

void lt_event_give(lt_Accel *accel, int index, void *native) {
  lt_EventCache *cache = accel->events;
  pthread_mutex_lock(&cache->lock);
  bool room = cache->count[index] < KEPT;
  if (room) cache->kept[index][cache->count[index]++] = native;
  pthread_mutex_unlock(&cache->lock);
  if (!room && lt_accel_usable(accel)) accel->driver->event_free(index, native);
}

/* Returns the cached events to the driver. */
static void empty(lt_Accel *accel) {
  lt_EventCache *cache = accel->events;
  for (int i = 0; i < LT_ACCEL_MAX; i++)
    while (cache->count[i]) accel->driver->event_free(i, cache->kept[i][--cache->count[i]]);
}

void lt_event_cache_free(lt_Accel *accel) {
  if (lt_accel_usable(accel)) empty(accel);
  pthread_mutex_destroy(&accel->events->lock);
  free(accel->events);
}

/* ---- the backend's members ------------------------------------------------------------------- */

static lt_Event *event_new(const lt_Backend *self, int index, bool timing) {
  lt_Accel *accel = lt_accel_of(self);
  if (!lt_accel_ready(self, index)) return NULL;
  Event *e = calloc(1, sizeof *e);
  if (!e) return lt_error_memory("Event: out of memory");
  e->base = (lt_Event){self, index};
  e->timing = timing;
  atomic_init(&e->recorded, false);
  lt_DriverStatus status = timing ? accel->driver->event_new(index, true, &e->native)
                                  : lt_event_take(accel, index, &e->native);
  if (status == LT_DRIVER_OK) return &e->base;
  free(e);
  if (status == LT_DRIVER_NO_MEMORY)
    lt_error_memory("Event: cannot create an event on \"%s\": out of memory",
                    lt_accel_name(self, index));
  return NULL;
}

/* Events without timing return to the cache, even before they are done. */
static void event_free(lt_Event *event) {
  if (!event) return;
  Event *e = (Event *)event;
  lt_Accel *accel = lt_accel_of(event->backend);
  if (lt_accel_usable(accel)) {
    if (e->timing)
      accel->driver->event_free(event->index, e->native);
    else
      lt_event_give(accel, event->index, e->native);
  }
  free(e);
}

static bool event_record(lt_Event *event, lt_Stream *stream) {
  Event *e = (Event *)event;
  if (stream && (stream->backend != event->backend || stream->index != event->index))
    return lt_error_set(
        "record: expected a Stream of \"%s\", where the event is, got one of \"%s\"",
        lt_accel_name(event->backend, event->index), lt_accel_name(stream->backend, stream->index));
  if (!lt_accel_ready(event->backend, event->index)) return false;
  uint64_t capture = stream && lt_capture_includes(event->backend, event->index, stream)
                         ? lt_capture_number(event->backend)
                         : 0;
  if (lt_accel_of(event->backend)
          ->driver->event_record(event->index, e->native, lt_accel_native(stream)) != LT_DRIVER_OK)
    return false;
  atomic_store(&e->capture, capture);
  atomic_store(&e->recorded, true);
  if (stream) lt_trace_order(LT_TRACE_MARK, stream, event);
  return true;
}

/* Returns true when there may be something to wait for: the event was recorded, and the driver is
 * still loaded. */
static bool is_pending(const lt_Event *event) {
  return atomic_load(&((const Event *)event)->recorded) &&
         lt_accel_usable(lt_accel_of(event->backend));
}

/* Fails for an event that was recorded in a capture: it marks a place in a graph, not in time. */
static bool is_outside(const lt_Event *event, const char *what) {
  if (!atomic_load(&((const Event *)event)->capture)) return true;
  char text[120];
  snprintf(text, sizeof text, "%s an event that was recorded in the capture", what);
  return lt_capture_allows(event->backend, event->index, text, NULL) &&
         lt_error_set("cannot %s an event that was recorded while a graph was captured", what);
}

/* As with streams, an event counts as done after a failure of the driver. */
static bool event_query(lt_Event *event) {
  return !is_pending(event) || !is_outside(event, "query") ||
         lt_accel_of(event->backend)->driver->event_query(event->index, ((Event *)event)->native) !=
             LT_DRIVER_NOT_READY;
}

static bool event_synchronize(lt_Event *event) {
  return !is_pending(event) ||
         (is_outside(event, "synchronize with") &&
          lt_accel_of(event->backend)
                  ->driver->event_synchronize(event->index, ((Event *)event)->native) ==
              LT_DRIVER_OK);
}

/* Fails when the wait would be one of a capture for work outside of it, of work outside of a
 * capture for it, or of another device for a capture, which has a private pool on its own device
 * only. Otherwise sets *graph to the capture of which the stream becomes a part, or NULL. */
static bool check_capture(const lt_Stream *stream, const lt_Event *event, lt_Graph **graph) {
  uint64_t capture = atomic_load(&((const Event *)event)->capture);
  bool own = capture && capture == lt_capture_number(stream->backend);
  *graph = own ? lt_capture_of(event->backend, event->index) : NULL;
  if (own)
    return stream->index == event->index ||
           lt_capture_allows(event->backend, event->index, "use a stream of another device", NULL);
  if (capture) return is_outside(event, "wait for");
  return !lt_capture_includes(stream->backend, stream->index, stream) ||
         lt_capture_allows(stream->backend, stream->index, "wait for work outside of the capture",
                           "make the streams wait for each other before the capture");
}

/* Streams and events of different devices of one vendor can be combined. */
static bool stream_wait_event(lt_Stream *stream, lt_Event *event) {
  Event *e = (Event *)event;
  if (stream->backend != event->backend)
    return lt_error_set(
        "wait_event: expected an Event of the stream's device type (\"%s\"), got one of \"%s\"",
        lt_accel_name(stream->backend, stream->index), lt_accel_name(event->backend, event->index));
  lt_Graph *graph;
  if (!atomic_load(&e->recorded)) return true;
  if (!lt_accel_ready(stream->backend, stream->index) || !check_capture(stream, event, &graph) ||
      lt_accel_of(stream->backend)
              ->driver->stream_wait_event(stream->index, lt_accel_native(stream), e->native) !=
          LT_DRIVER_OK)
    return false;
  if (graph) lt_capture_join(graph, (lt_AccelStream *)stream);
  lt_trace_order(LT_TRACE_AFTER, stream, event);
  return true;
}

/* Both events must have been created with timing, recorded, and done. */
static bool event_elapsed(lt_Event *from, lt_Event *to, double *milliseconds) {
  const char *const names[] = {"first", "second"};
  Event *const both[] = {(Event *)from, (Event *)to};
  if (from->backend != to->backend || from->index != to->index)
    return lt_error_set("elapsed_time: cannot measure between two devices: the first event is of "
                        "\"%s\", the second of \"%s\"",
                        lt_accel_name(from->backend, from->index),
                        lt_accel_name(to->backend, to->index));
  const lt_AccelDriver *d = lt_accel_of(from->backend)->driver;
  for (int i = 0; i < 2; i++) {
    if (!both[i]->timing)
      return lt_error_set("elapsed_time: cannot read the time of the %s event: it was created "
                          "without timing\nhint: lt.Event{enable_timing = true}",
                          names[i]);
    if (!atomic_load(&both[i]->recorded))
      return lt_error_set(
          "elapsed_time: cannot read the time of the %s event: it was never recorded", names[i]);
    if (!is_outside(&both[i]->base, "read the time of")) return false;
    lt_DriverStatus status = d->event_query(from->index, both[i]->native);
    if (status == LT_DRIVER_NOT_READY)
      return lt_error_set("elapsed_time: cannot read the time of the %s event: it has not "
                          "completed\nhint: event:synchronize()",
                          names[i]);
    if (status != LT_DRIVER_OK) return false;
  }
  return d->event_elapsed(both[0]->native, both[1]->native, milliseconds) == LT_DRIVER_OK;
}

void lt_accel_fill_events(lt_Backend *b) {
  b->streams.event_create = event_new;
  b->streams.event_destroy = event_free;
  b->streams.event_record = event_record;
  b->streams.event_query = event_query;
  b->streams.event_synchronize = event_synchronize;
  b->streams.event_elapsed = event_elapsed;
  b->streams.wait_event = stream_wait_event;
}
