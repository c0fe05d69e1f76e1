/* trace.h: what the core does, told while it happens: ops, copies, waits, memory.
 *
 * A tracer is told of each event of its thread when the event has ended, so that what happened
 * inside an event comes before it. Events of a thread are nested or apart, never crossed: each
 * knows how many are around it and how much of its time went to those inside it.
 *
 * A tracer may be asked as well: before a copy, which does not take place when it says no.
 *
 * With no tracer, which is nearly always, an event costs one branch that is predicted. A tracer
 * hears the thread that added it and no other, so nothing here needs a lock. */
#ifndef LT_TRACE_H
#define LT_TRACE_H

#include "core.h"

typedef enum lt_TraceKind {
  LT_TRACE_OP,
  LT_TRACE_REGION, /* a part of a program that is no op: a pass of backward, the host's own */
  LT_TRACE_COPY,   /* of bytes from one device to another, or between two of one type */
  LT_TRACE_WAIT,   /* the host waited for a device, a stream, an event or a copy under way */
  LT_TRACE_ALLOC,  /* memory of a device became a storage's; has no length */
  LT_TRACE_FREE,   /* and was given back */
  LT_TRACE_MARK,   /* an event was put behind the work of a stream; has no length, as the next */
  LT_TRACE_AFTER,  /* a stream was told to go on after an event */
  LT_TRACE_KINDS
} lt_TraceKind;

/* What does not apply is 0. */
typedef struct lt_TraceEvent {
  lt_TraceKind kind;
  lt_OpId op;       /* of LT_TRACE_OP and LT_TRACE_ALLOC; LT_NO_OP: none of the table */
  const char *name; /* of an op, a region, a wait, of the op that allocates: good during the call */
  lt_Device
      device;     /* where it ran, what was waited for, whose memory it is; of a copy: the target */
  lt_Device from; /* of a copy */
  const lt_Stream *stream; /* to compare, no more; NULL where there is none */
  const lt_Stream *theirs; /* of a copy between two devices: the source's, which it holds up too */
  const lt_Event *mark;    /* to compare, no more: what was put, or waited for */
  int64_t bytes; /* of a kernel's results, copied, allocated or freed; composites and views: 0 */
  bool in_place; /* of an op */
  bool kernel;   /* of an op: it calculates, and is no view and no composite */
  bool failed;
  bool blocking;             /* of a copy: the host waited for it */
  bool pinned;               /* of a copy: the host's memory is pinned */
  bool way_back;             /* of a copy: it is the gradient of one, of x:to or x:copy_ */
  const lt_Storage *storage; /* to compare, no more: of an allocation and a free; what a copy and an
                                op read */
  const lt_Storage *target;  /* of a copy, NULL: a number of the host's; of an op's first result */
  int64_t offset;            /* its first byte: in a copy's source, in the target of an op */
  uint64_t digest;           /* of the bytes copied from or to the host, where a tracer wants it */
  lt_Dtype dtype;            /* of the first result, with its shape; ndim -1: there is none */
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  int64_t begin, end; /* nanoseconds of a clock that never goes back */
  int64_t inside;     /* of them, in other events within this one */
  int depth;          /* how many events are around it */
  const char *where;  /* the host's line that the outermost event is of, or "" */
} lt_TraceEvent;

typedef enum lt_TraceAnswer { LT_TRACE_NO_OPINION, LT_TRACE_MAY, LT_TRACE_MAY_NOT } lt_TraceAnswer;

typedef struct lt_Tracer {
  /* Must call no op, and cannot fail. The event is good until it returns. May be NULL. */
  void (*tell)(void *context, const lt_TraceEvent *event);
  /* May this copy take place? The newest tracer with an opinion decides; who says no sets the
   * error. Calls no op. May be NULL. */
  lt_TraceAnswer (*may_copy)(void *context, const lt_TraceEvent *planned);
  void *context;
  bool wait;   /* each kernel and copy is waited for, so that its time is that of the work */
  bool where;  /* asks the host for its line (lt_memory_on_where) */
  bool digest; /* of copies */
  struct lt_Tracer *next;
} lt_Tracer;

/* Adds a tracer of this thread; it stays the caller's, and in place, until it is removed. */
void lt_trace_add(lt_Tracer *tracer);
/* Nothing happens when it is not there. */
void lt_trace_remove(lt_Tracer *tracer);

/* An event that is going on; lives on the stack of the function that it is about. */
typedef struct lt_TraceSpan {
  lt_TraceEvent event; /* to be filled in before the end */
  struct lt_TraceSpan *around;
  char where[64];
} lt_TraceSpan;

static inline bool lt_tracing(void) { return __builtin_expect(lt_thread()->tracers != NULL, 0); }

/* Opens a span if somebody listens; every span that was opened is to be ended. */
void lt_trace_open_(lt_TraceSpan *span, lt_TraceKind kind);
static inline bool lt_trace_begin(lt_TraceSpan *span, lt_TraceKind kind) {
  if (!lt_tracing()) return false;
  lt_trace_open_(span, kind);
  return true;
}
/* Tells of it. Returns ok. */
bool lt_trace_end(lt_TraceSpan *span, bool ok);
/* Ends it without a word, if it has not ended. */
void lt_trace_forget(lt_TraceSpan *span);

/* What a copy is going to do. */
typedef struct lt_TraceCopy {
  lt_Device to, from;
  const lt_Storage *target, *source;
  int64_t offset;
  const void *host; /* memory of the host that is read or written, or NULL */
  size_t nbytes;
  const lt_Stream *stream, *theirs;
  bool blocking, pinned;
} lt_TraceCopy;

/* Fills in the span of a copy and asks whether it may take place: if not, ends the span without a
 * word and returns false with the reason. */
bool lt_trace_plan(lt_TraceSpan *span, const lt_TraceCopy *copy);
/* Ends that span. Returns ok, or false when the copy was to be waited for and that failed. */
bool lt_trace_copied(lt_TraceSpan *span, const lt_TraceCopy *copy, bool ok);

/* Ends the span of a wait for an event. Returns ok. */
bool lt_trace_waited(lt_TraceSpan *span, const char *name, const lt_Event *event, bool ok);

/* Waits for the device if a tracer wants that of what ran there. False with the reason. */
bool lt_trace_settle(lt_Device device);

/* The memory of a storage was allocated, or is about to be freed. */
void lt_trace_memory_(const lt_Storage *s, bool allocated);
static inline void lt_trace_memory(const lt_Storage *s, bool allocated) {
  if (lt_tracing()) lt_trace_memory_(s, allocated);
}

/* The order of streams: LT_TRACE_MARK or LT_TRACE_AFTER. */
void lt_trace_order_(lt_TraceKind kind, const lt_Stream *stream, const lt_Event *event);
static inline void lt_trace_order(lt_TraceKind kind, const lt_Stream *stream,
                                  const lt_Event *event) {
  if (lt_tracing()) lt_trace_order_(kind, stream, event);
}

/* Blocks the host until an event is done. Returns false with the reason. */
bool lt_event_synchronize(lt_Event *event);

/* Has the program used this device? Of devices with memory of their own; loads nothing. */
bool lt_device_in_use(lt_Device device);

/* Nanoseconds of the clock of events. */
int64_t lt_trace_now(void);

#endif
