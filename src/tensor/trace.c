/* trace.c: implements trace.h. The open spans of a thread are a list, from the innermost to the
 * outermost. */
#include "trace.h"

#include <time.h>

int64_t lt_trace_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void lt_trace_add(lt_Tracer *tracer) {
  lt_Thread *th = lt_thread();
  tracer->next = th->tracers;
  th->tracers = tracer;
}

void lt_trace_remove(lt_Tracer *tracer) {
  lt_Tracer **place = &lt_thread()->tracers;
  while (*place && *place != tracer) place = &(*place)->next;
  if (*place) *place = tracer->next;
}

/* Reports an event to all tracers of the thread. */
static void emit(const lt_Thread *th, const lt_TraceEvent *event) {
  for (lt_Tracer *t = th->tracers; t; t = t->next)
    if (t->on_event) t->on_event(t->context, event);
}

/* Returns true when a tracer has set `digest`. */
static bool needs_digest(const lt_Thread *th) {
  for (const lt_Tracer *t = th->tracers; t; t = t->next)
    if (t->digest) return true;
  return false;
}

/* Returns true when a tracer has set `where`. */
static bool needs_where(const lt_Thread *th) {
  for (const lt_Tracer *t = th->tracers; t; t = t->next)
    if (t->where) return true;
  return false;
}

void lt_trace_open_(lt_TraceSpan *span, lt_TraceKind kind) {
  lt_Thread *th = lt_thread();
  lt_TraceSpan *around = th->span;
  span->event = (lt_TraceEvent){.kind = kind, .ndim = -1, .dtype = LT_DTYPE_NONE, .where = ""};
  span->around = around;
  span->event.depth = around ? around->event.depth + 1 : 0;
  if (around) {
    span->event.where = around->event.where;
  } else if (needs_where(th)) {
    lt_memory_where(span->where, sizeof span->where);
    span->event.where = span->where;
  }
  th->span = span;
  span->event.begin = lt_trace_now();
}

bool lt_trace_begin_op(lt_TraceSpan *span, const char *name) {
  if (!lt_trace_begin(span, LT_TRACE_OP)) return false;
  for (const lt_Tracer *t = lt_thread()->tracers; t; t = t->next)
    if (t->on_begin) t->on_begin(t->context, name);
  return true;
}

/* The span need not be the innermost: a region of the host may not have been ended, because of an
 * error. */
void lt_trace_cancel(lt_TraceSpan *span) {
  lt_TraceSpan **place = &lt_thread()->span;
  while (*place && *place != span) place = &(*place)->around;
  if (*place) *place = span->around;
}

/* The time that tracers take is counted as `inside` of the outer span, so that no event includes it
 * in its own time. */
bool lt_trace_end(lt_TraceSpan *span, bool ok) {
  lt_Thread *th = lt_thread();
  lt_TraceEvent *e = &span->event;
  e->end = lt_trace_now();
  e->failed = !ok;
  lt_trace_cancel(span);
  emit(th, e);
  if (span->around) span->around->event.inside += lt_trace_now() - e->begin;
  return ok;
}

bool lt_trace_synchronize(lt_Device device) {
  for (const lt_Tracer *t = lt_thread()->tracers; t; t = t->next) {
    if (!t->wait) continue;
    const lt_Backend *b = lt_device_backend(device.type);
    return b &&
           (!b->asynchronous || !b->streams.device_synchronize ||
            (lt_wait_device(b, device.index) && b->streams.device_synchronize(b, device.index)));
  }
  return true;
}

/* Hashes bytes, a word at a time: equal bytes have equal hashes, different ones rarely do. Never
 * 0. */
static uint64_t digest_of(const void *bytes, size_t n) {
  const uint64_t factor = 0x9E3779B97F4A7C15u;
  const char *p = bytes;
  uint64_t h = n * factor + 1;
  while (n > 0) {
    uint64_t word = 0;
    size_t size = n < sizeof word ? n : sizeof word;
    memcpy(&word, p, size);
    h = (h ^ word) * factor;
    h ^= h >> 29;
    p += size;
    n -= size;
  }
  return h ? h : 1;
}

uint64_t lt_trace_digest(const void *bytes, size_t n) {
  return needs_digest(lt_thread()) ? digest_of(bytes, n) : 0;
}

bool lt_trace_may(lt_TraceSpan *span) {
  for (const lt_Tracer *t = lt_thread()->tracers; t; t = t->next) {
    lt_TraceAnswer answer =
        t->may_copy ? t->may_copy(t->context, &span->event) : LT_TRACE_NO_OPINION;
    if (answer == LT_TRACE_MAY) return true;
    if (answer == LT_TRACE_MAY_NOT) {
      lt_trace_cancel(span);
      return false;
    }
  }
  return true;
}

bool lt_trace_plan(lt_TraceSpan *span, const lt_TraceCopy *copy) {
  const lt_Thread *th = lt_thread();
  lt_TraceEvent *e = &span->event;
  e->name = "copy";
  e->device = copy->to;
  e->from = copy->from;
  e->bytes = (int64_t)copy->nbytes;
  e->stream = copy->stream;
  e->source_stream = copy->source_stream;
  e->blocking = copy->blocking;
  e->pinned = copy->pinned;
  e->backward_copy = th->backward_copy;
  e->storage = copy->source;
  e->target = copy->target;
  e->offset = copy->offset;
  if (!lt_trace_may(span)) return false;
  if (copy->from.type == LT_DEVICE_cpu && copy->host)
    e->digest = lt_trace_digest(copy->host, copy->nbytes);
  e->begin = lt_trace_now();
  return true;
}

/* A copy to the host that is still running gets no digest: its bytes are not there yet. */
bool lt_trace_copied(lt_TraceSpan *span, const lt_TraceCopy *copy, bool ok) {
  bool to_host = copy->to.type == LT_DEVICE_cpu;
  if (ok && !copy->blocking) ok = lt_trace_synchronize(to_host ? copy->from : copy->to);
  if (ok && to_host && copy->blocking && copy->host)
    span->event.digest = lt_trace_digest(copy->host, copy->nbytes);
  return lt_trace_end(span, ok);
}

lt_Device lt_trace_device(const lt_Backend *b, int index) {
  int type = lt_device_type_count() - 1;
  while (type > 0 && lt_device_loaded(type) != b) type--;
  return (lt_Device){(uint8_t)type, (uint8_t)index};
}

bool lt_trace_waited(lt_TraceSpan *span, const char *name, const lt_Event *event, bool ok) {
  span->event.name = name;
  span->event.mark = event;
  span->event.device = lt_trace_device(event->backend, event->index);
  return lt_trace_end(span, ok);
}

bool lt_event_synchronize(lt_Event *event) {
  lt_TraceSpan span;
  bool traced = lt_trace_begin(&span, LT_TRACE_WAIT);
  bool ok = lt_wait_event(event) && event->backend->streams.event_synchronize(event);
  return traced ? lt_trace_waited(&span, "event", event, ok) : ok;
}

bool lt_stream_synchronize(lt_Stream *stream) {
  const lt_Backend *b = stream->backend;
  lt_TraceSpan span;
  if (!lt_trace_begin(&span, LT_TRACE_WAIT))
    return lt_wait_stream(stream) && b->streams.synchronize(stream);
  span.event.name = "stream";
  span.event.device = lt_trace_device(b, stream->index);
  span.event.stream = stream;
  return lt_trace_end(&span, lt_wait_stream(stream) && b->streams.synchronize(stream));
}

bool lt_fetch_count(const lt_Call *c, int64_t *count, const int64_t *from) {
  const lt_Backend *b = lt_device_loaded(c->device.type);
  lt_TraceSpan span;
  bool traced = lt_trace_begin(&span, LT_TRACE_WAIT);
  bool ok = b->memory.copy(lt_cpu(), count, c->device, from, sizeof *count, c->stream, false);
  if (!traced) return ok;
  span.event.name = "count";
  span.event.device = c->device;
  span.event.stream = c->stream;
  return lt_trace_end(&span, ok);
}

void lt_trace_memory_(const lt_Storage *s, bool allocated) {
  const lt_Thread *th = lt_thread();
  char where[64] = "";
  int op = allocated && th->user_op ? lt_op_find(th->user_op) : -1;
  lt_TraceEvent e = {.kind = allocated ? LT_TRACE_ALLOC : LT_TRACE_FREE,
                     .op = op < 0 ? LT_NO_OP : op,
                     .name = allocated && th->user_op ? lt_user_op() : NULL,
                     .ndim = -1,
                     .dtype = LT_DTYPE_NONE,
                     .device = s->device,
                     .storage = s,
                     .bytes = (int64_t)s->nbytes,
                     .where = where};
  if (th->span) {
    e.where = th->span->event.where;
    e.depth = th->span->event.depth + 1;
  } else if (allocated &&
             needs_where(th)) { /* frees may come from a garbage collector, at any line */
    lt_memory_where(where, sizeof where);
  }
  e.begin = e.end = lt_trace_now();
  emit(th, &e);
}

void lt_trace_order_(lt_TraceKind kind, const lt_Stream *stream, const lt_Event *event) {
  const lt_Thread *th = lt_thread();
  lt_TraceEvent e = {.kind = kind,
                     .ndim = -1,
                     .dtype = LT_DTYPE_NONE,
                     .device = lt_trace_device(stream->backend, stream->index),
                     .stream = stream,
                     .mark = event,
                     .where = th->span ? th->span->event.where : "",
                     .depth = th->span ? th->span->event.depth + 1 : 0};
  e.begin = e.end = lt_trace_now();
  emit(th, &e);
}

bool lt_device_in_use(lt_Device device) {
  const lt_Backend *b = lt_device_loaded(device.type);
  return b && !b->host_memory && b->has_data &&
         (!b->memory.is_ready || b->memory.is_ready(b, device.index));
}
