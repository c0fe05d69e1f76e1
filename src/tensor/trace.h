/* trace.h: events about what the core does: ops, copies, waits, memory.
 *
 * A tracer is a callback that gets each event of its thread when the event has ended, so the events
 * inside another event are reported before it. Events of a thread are nested or disjoint, never
 * interleaved: each has its depth, and the part of its time that was spent in events inside it.
 *
 * A tracer can also forbid a copy before it starts.
 *
 * Without a tracer, the usual case, an event costs one predicted branch. A tracer only gets events
 * of the thread that added it, so nothing here needs a lock. */
#ifndef LT_TRACE_H
#define LT_TRACE_H

#include "core.h"

typedef enum lt_TraceKind {
  LT_TRACE_OP,
  LT_TRACE_REGION, /* a part of a program that is no op: a backward pass, a region of the host's */
  LT_TRACE_COPY,   /* of bytes from one device to another */
  LT_TRACE_WAIT,   /* the host was blocked on a device, a stream, an event or a pending copy */
  LT_TRACE_ALLOC,  /* memory was allocated for a storage; begin and end are equal */
  LT_TRACE_FREE,   /* memory of a storage was freed; likewise */
  LT_TRACE_MARK,   /* an event was recorded on a stream; likewise */
  LT_TRACE_AFTER,  /* a stream was made to wait for an event; likewise */
  LT_TRACE_COLLECTIVE, /* a call of a communicator was submitted: a collective or a message */
  LT_TRACE_KINDS
} lt_TraceKind;

/* What an event tells about a call of a communicator (communication.h). */
typedef struct lt_TraceComm {
  int size;              /* ranks of the group; 0: the event is not about such a call */
  int rank;              /* of this process, in the group */
  int group;             /* the number of the communicator */
  int64_t sequence;      /* of a collective: the same on all ranks of the group; 0: a message */
  int peer, tag;         /* the root, or the other rank of a message (-1: any); -1: there is none */
  const char *reduction; /* its name, or NULL */
  int64_t sent, received;    /* payload of this rank in bytes (lt_comm_bytes) */
  int64_t link_bytes;        /* that a ring moves over its busiest link (lt_comm_link_bytes) */
  int64_t arrived, finished; /* when the last rank arrived, and when the transfer was done, as
                                begin and end are; 0: not known */
  bool now;                  /* the caller waits at once: without async_op */
  const lt_Work *work;       /* may only be compared, with that of the wait for it */
} lt_TraceComm;

/* An event. Members that do not apply are 0. Addresses of streams, events and storages may only be
 * compared. */
typedef struct lt_TraceEvent {
  lt_TraceKind kind;
  lt_OpId op;       /* of LT_TRACE_OP and LT_TRACE_ALLOC; LT_NO_OP: not an op of the table */
  const char *name; /* of an op, a region, a wait, a collective, the allocating op; valid during
                       the callback */
  /* Of an op: where it ran. Of a wait: what the host was blocked on. Of memory: its device. Of a
   * copy: the target. */
  lt_Device device;
  lt_Device from;                 /* of a copy: the source */
  const lt_Stream *stream;        /* NULL where there is none */
  const lt_Stream *source_stream; /* of a copy between two devices: the source's, also blocked */
  const lt_Event *mark;           /* that was recorded or is waited on */
  int64_t bytes; /* of a kernel's results, copied, allocated or freed; of `count` elements of a
                    collective, whatever the number of ranks; composites and views: 0 */
  bool in_place; /* of an op */
  bool kernel;   /* of an op: it is neither a view nor a composite */
  bool failed;
  bool blocking;             /* of a copy: the host was blocked until it was done */
  bool pinned;               /* of a copy: the host's memory is pinned */
  bool backward_copy;        /* of a copy: made by the backward of x:to or x:copy_ */
  const lt_Storage *storage; /* allocated or freed; read by a copy or an op */
  const lt_Storage *target;  /* of an op's first result; of a copy (NULL: a number on the host) */
  int64_t offset;            /* in bytes: in a copy's source, in the target of an op */
  uint64_t digest;           /* hash of the bytes copied from or to the host, if requested */
  lt_Dtype dtype;            /* of the first result, with its shape; ndim -1: there is none */
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  int64_t begin, end; /* nanoseconds of a monotonic clock */
  int64_t inside;     /* nanoseconds of them in events inside this one */
  int depth;          /* number of events around it */
  const char *where;  /* the host's line of the outermost event, or "" */
  lt_TraceComm comm;  /* of a collective, and of the wait for its work */
} lt_TraceEvent;

/* A tracer's answer to whether a copy may take place. */
typedef enum lt_TraceAnswer { LT_TRACE_NO_OPINION, LT_TRACE_MAY, LT_TRACE_MAY_NOT } lt_TraceAnswer;

typedef struct lt_Tracer {
  /* Invoked for each event, which is valid until it returns. Must not call an op. May be NULL. */
  void (*on_event)(void *context, const lt_TraceEvent *event);
  /* Invoked when an op begins, with its name. Its end is an event of kind
   * LT_TRACE_OP. Must not call an op. May be NULL. */
  void (*on_begin)(void *context, const char *name);
  /* Decides whether a copy or a collective may take place; the newest tracer with an opinion wins.
   * One that answers LT_TRACE_MAY_NOT sets the error. Must not call an op. May be NULL. */
  lt_TraceAnswer (*may_copy)(void *context, const lt_TraceEvent *planned);
  void *context;
  bool wait;   /* block on each kernel and copy, so that its time includes the device's work */
  bool where;  /* fill in `where`, by lt_memory_on_where's callback */
  bool digest; /* fill in `digest` */
  struct lt_Tracer *next;
} lt_Tracer;

/* Adds a tracer of this thread. The caller owns it; it must stay at its address until it is
 * removed. */
void lt_trace_add(lt_Tracer *tracer);
/* Removes a tracer of this thread. Does nothing when it was not added. */
void lt_trace_remove(lt_Tracer *tracer);

/* An event that has begun; lives on the stack of the function that the event is about. */
typedef struct lt_TraceSpan {
  lt_TraceEvent event; /* to be filled in before the end */
  struct lt_TraceSpan *around;
  char where[64];
} lt_TraceSpan;

/* Returns true when this thread has a tracer. */
static inline bool lt_tracing(void) { return __builtin_expect(lt_thread()->tracers != NULL, 0); }

/* Begins a span and returns true; returns false, and does nothing, when there is no tracer. Every
 * span that began must end, by lt_trace_end or lt_trace_cancel. */
void lt_trace_open_(lt_TraceSpan *span, lt_TraceKind kind);
static inline bool lt_trace_begin(lt_TraceSpan *span, lt_TraceKind kind) {
  if (!lt_tracing()) return false;
  lt_trace_open_(span, kind);
  return true;
}
/* Begins the span of an op, as lt_trace_begin does, and tells the tracers. */
bool lt_trace_begin_op(lt_TraceSpan *span, const char *name);
/* Ends a span and reports its event to the tracers. Returns ok. */
bool lt_trace_end(lt_TraceSpan *span, bool ok);
/* Ends a span, unless it has ended, without reporting it. */
void lt_trace_cancel(lt_TraceSpan *span);

/* A planned copy. */
typedef struct lt_TraceCopy {
  lt_Device to, from;
  const lt_Storage *target, *source;
  int64_t offset;
  const void *host; /* the host memory that is read or written, or NULL */
  size_t nbytes;
  const lt_Stream *stream, *source_stream;
  bool blocking, pinned;
} lt_TraceCopy;

/* Asks the tracers whether the planned event of a span may take place. If not, cancels the span and
 * returns false with the error. */
bool lt_trace_may(lt_TraceSpan *span);
/* Fills in the span of a copy and asks the tracers whether it may take place. If not, cancels the
 * span and returns false with the error. */
bool lt_trace_plan(lt_TraceSpan *span, const lt_TraceCopy *copy);
/* Ends the span of a copy. Returns ok, or false when a tracer requires blocking and that failed. */
bool lt_trace_copied(lt_TraceSpan *span, const lt_TraceCopy *copy, bool ok);

/* Ends the span of a wait for an event. Returns ok. */
bool lt_trace_waited(lt_TraceSpan *span, const char *name, const lt_Event *event, bool ok);

/* Returns a hash of bytes of the host, never 0; 0 when no tracer has set `digest`. */
uint64_t lt_trace_digest(const void *bytes, size_t n);

/* Returns the device of a stream, an event or a communicator. */
lt_Device lt_trace_device(const lt_Backend *backend, int index);

/* Blocks until the device's work is done if a tracer has set `wait`. Fails when that work did. */
bool lt_trace_synchronize(lt_Device device);

/* Reports that the memory of a storage was allocated, or is about to be freed. */
void lt_trace_memory_(const lt_Storage *s, bool allocated);
static inline void lt_trace_memory(const lt_Storage *s, bool allocated) {
  if (lt_tracing()) lt_trace_memory_(s, allocated);
}

/* Reports how streams are ordered: LT_TRACE_MARK or LT_TRACE_AFTER. */
void lt_trace_order_(lt_TraceKind kind, const lt_Stream *stream, const lt_Event *event);
static inline void lt_trace_order(lt_TraceKind kind, const lt_Stream *stream,
                                  const lt_Event *event) {
  if (lt_tracing()) lt_trace_order_(kind, stream, event);
}

/* Blocks the host until an event is done. Fails on Ctrl-C, and when the work before it failed. */
bool lt_event_synchronize(lt_Event *event);

/* Returns true when the program has used this device, which has its own memory. Loads nothing. */
bool lt_device_in_use(lt_Device device);

#endif
