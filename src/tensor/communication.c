/* communication.c: the calls of communicators: their names and sizes, and their trace events. */
#include "trace.h"

const char *lt_comm_kind_name(lt_CommKind kind) {
#define ROW(name) #name,
  static const char *const names[] = {LT_COMM_KINDS(ROW)};
#undef ROW
  return names[kind];
}

const char *lt_comm_reduction_name(lt_CommReduction reduction) {
#define ROW(name) #name,
  static const char *const names[] = {LT_COMM_REDUCTIONS(ROW)};
#undef ROW
  return names[reduction];
}

bool lt_comm_is_message(lt_CommKind kind) { return kind == LT_COMM_send || kind == LT_COMM_recv; }

bool lt_comm_has_root(lt_CommKind kind) {
  return kind == LT_COMM_broadcast || kind == LT_COMM_reduce || kind == LT_COMM_gather ||
         kind == LT_COMM_scatter;
}

bool lt_comm_reduces(lt_CommKind kind) {
  return kind == LT_COMM_all_reduce || kind == LT_COMM_reduce || kind == LT_COMM_reduce_scatter;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Returns the elements that an all_to_all exchanges with the other ranks: those of `counts`, or
 * `count` for each. */
static int64_t exchanged(const int64_t *counts, int64_t count, int rank, int size) {
  if (!counts) return count * (size - 1);
  int64_t sum = 0;
  for (int i = 0; i < size; i++) sum += i == rank ? 0 : counts[i];
  return sum;
}

void lt_comm_bytes(const lt_CommCall *c, int rank, int size, int64_t *sent, int64_t *received) {
  int64_t own = c->count, others = c->count * (size - 1), in = 0, out = 0;
  bool is_root = c->peer == rank;
  switch (c->kind) {
  case LT_COMM_broadcast:
    *(is_root ? &in : &out) = own;
    break;
  case LT_COMM_all_reduce:
    in = out = own;
    break;
  case LT_COMM_reduce:
    *(is_root ? &out : &in) = own;
    break;
  case LT_COMM_all_gather:
    in = own, out = others;
    break;
  case LT_COMM_gather:
    is_root ? (out = others) : (in = own);
    break;
  case LT_COMM_scatter:
    is_root ? (in = others) : (out = own);
    break;
  case LT_COMM_reduce_scatter:
    in = others, out = own;
    break;
  case LT_COMM_all_to_all:
    in = exchanged(c->input_counts, own, rank, size);
    out = exchanged(c->output_counts, own, rank, size);
    break;
  case LT_COMM_send:
    in = own;
    break;
  case LT_COMM_recv:
    out = own;
    break;
  case LT_COMM_barrier:
  case LT_COMM_KIND_COUNT:
    break;
  }
  int64_t element = size > 1 && c->kind != LT_COMM_barrier ? (int64_t)lt_dtype_size(c->dtype) : 0;
  *sent = in * element;
  *received = out * element;
}

int64_t lt_comm_link_bytes(const lt_CommCall *c, int rank, int size) {
  int64_t sent, received;
  lt_comm_bytes(c, rank, size, &sent, &received);
  switch (c->kind) {
  case LT_COMM_all_reduce:
    return 2 * (size - 1) * sent / size;
  case LT_COMM_gather:
  case LT_COMM_scatter:
    return size > 1 ? c->count * (size - 1) * (int64_t)lt_dtype_size(c->dtype) : 0;
  default:
    return sent > received ? sent : received;
  }
}

/* ---- calls ----------------------------------------------------------------------------------- */

lt_Communicator *lt_comm_create(const lt_Backend *backend, int index, const lt_CommPlan *plan) {
  lt_Communicator *communicator = backend->communication.create(index, plan);
  if (communicator) {
    communicator->number = plan->number;
    communicator->calls = 0;
  }
  return communicator;
}

/* Fills in an event about a call. */
static void describe(lt_TraceEvent *e, const lt_Communicator *m, const lt_CommCall *call,
                     int64_t sequence, bool now) {
  lt_TraceComm *comm = &e->comm;
  bool peered = lt_comm_has_root(call->kind) || lt_comm_is_message(call->kind);
  e->name = lt_comm_kind_name(call->kind);
  e->device = e->from = lt_trace_device(m->backend, m->index);
  *comm = (lt_TraceComm){.size = m->size,
                         .rank = m->rank,
                         .group = m->number,
                         .sequence = sequence,
                         .peer = peered ? call->peer : -1,
                         .now = now,
                         .tag = lt_comm_is_message(call->kind) ? call->tag : 0,
                         .link_bytes = lt_comm_link_bytes(call, m->rank, m->size)};
  if (lt_comm_reduces(call->kind)) comm->reduction = lt_comm_reduction_name(call->reduction);
  lt_comm_bytes(call, m->rank, m->size, &comm->sent, &comm->received);
  if (call->kind == LT_COMM_barrier) return;
  e->bytes = call->count * (int64_t)lt_dtype_size(call->dtype);
  if (call->input_counts) e->bytes = comm->sent > comm->received ? comm->sent : comm->received;
  e->dtype = call->dtype;
  e->ndim = call->ndim;
  memcpy(e->shape, call->shape, sizeof e->shape);
}

/* Adds the work to an event. Its times are valid, and other threads do not write them, once it is
 * done. */
static void describe_work(lt_TraceEvent *e, lt_Work *work) {
  e->comm.work = work;
  if (!work->communicator->backend->communication.is_done(work)) return;
  e->comm.arrived = work->arrived;
  e->comm.finished = work->finished;
}

/* Returns the memory of `count` elements that a call reads, or NULL. */
static const void *input_of(const lt_CommCall *call) {
  bool in_place = call->kind == LT_COMM_broadcast || call->kind == LT_COMM_all_reduce ||
                  call->kind == LT_COMM_reduce;
  return call->input_counts ? NULL : call->input ? call->input : in_place ? call->output : NULL;
}

/* Begins the span of a call, and asks the tracers whether it may be made. Hashes an input in the
 * host's memory. */
static bool plan_call(lt_TraceSpan *span, const lt_Communicator *m, const lt_CommCall *call,
                      int64_t sequence, bool now) {
  lt_TraceEvent *e = &span->event;
  describe(e, m, call, sequence, now);
  e->stream = call->stream;
  e->blocking = now && m->backend->host_memory;
  if (!lt_trace_may(span)) return false;
  const void *input = input_of(call);
  if (input && m->backend->host_memory)
    e->digest = lt_trace_digest(input, (size_t)call->count * lt_dtype_size(call->dtype));
  e->begin = lt_trace_now();
  return true;
}

/* Reports the calls of a work after its first as events without duration. */
static void report_others(lt_Work *work, const lt_CommCall *calls, int count, bool now) {
  for (int i = 1; i < count; i++) {
    lt_TraceSpan span;
    if (!lt_trace_begin(&span, LT_TRACE_COLLECTIVE)) return;
    describe(&span.event, work->communicator, &calls[i], 0, now);
    span.event.stream = calls[i].stream;
    describe_work(&span.event, work);
    lt_trace_end(&span, true);
  }
}

lt_Work *lt_comm_submit(lt_Communicator *m, const lt_CommCall *calls, int count, bool now) {
  int64_t sequence = lt_comm_is_message(calls[0].kind) ? 0 : m->calls + 1;
  lt_TraceSpan span;
  bool traced = lt_trace_begin(&span, LT_TRACE_COLLECTIVE);
  if (traced && !plan_call(&span, m, &calls[0], sequence, now)) return NULL;
  lt_Work *work = m->backend->communication.submit(m, calls, count, now);
  if (work) {
    work->first = calls[0];
    work->first.input_counts = work->first.output_counts = NULL;
    work->first.stream = NULL;
    work->first.label = "";
    work->sequence = sequence;
    if (sequence) m->calls = sequence;
  }
  if (!traced) return work;
  if (work) describe_work(&span.event, work);
  lt_trace_end(&span, work != NULL);
  if (work) report_others(work, calls, count, now);
  return work;
}

bool lt_comm_wait(lt_Work *work, double timeout) {
  const lt_Communicator *m = work->communicator;
  lt_TraceSpan span;
  if (!lt_trace_begin(&span, LT_TRACE_WAIT)) return m->backend->communication.wait(work, timeout);
  describe(&span.event, m, &work->first, work->sequence, false);
  span.event.bytes = 0; /* the collective has them */
  span.event.blocking = m->backend->host_memory;
  bool ok = m->backend->communication.wait(work, timeout);
  describe_work(&span.event, work);
  return lt_trace_end(&span, ok);
}
