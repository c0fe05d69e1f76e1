/* accel.h: what every accelerator shares: the caching allocator, pinned memory of the host,
 * streams, events, the current device and stream. No vendor's type stands here: a vendor's folder
 * fills an lt_AccelDriver, calls lt_accel_attach once, and has those members of its lt_Backend
 * that this folder can fill filled.
 *
 *   attach.c      the state of one vendor: which devices are ready, the members that are filled in
 *   blocks.c      what the allocator keeps its blocks in: the ordered set, the map by address
 *   allocator.c   blocks, segments and their statistics, by PyTorch's rules
 *   pinned.c      memory of the host that the device copies by itself
 *   streams.c     streams, what is current in a thread
 *   events.c      events
 *   report.c      who holds the memory; the message of an allocation that failed
 *
 * Thread safe. The order of locks: allocator or pinned, then events, then driver; nothing here
 * calls the host program while it holds one.
 */
#ifndef LT_ACCEL_H
#define LT_ACCEL_H

#include "kernel.h"

#include <pthread.h>

typedef enum lt_DriverStatus {
  LT_DRIVER_OK,
  LT_DRIVER_NO_MEMORY, /* the driver's code for it has been cleared */
  LT_DRIVER_NOT_READY, /* of queries */
  LT_DRIVER_FAILED     /* with the reason in the error slot */
} lt_DriverStatus;

/* The driver's calls, raw: no caching, no statistics, no current stream. Handles are the vendor's.
 * Each selects the device itself. A NULL stream handle is the device's default stream. */
typedef struct lt_AccelDriver {
  int (*count)(char *why, size_t why_size);
  /* Called once for each device, before anything else is asked of it. */
  bool (*initialize)(int index);
  lt_DriverStatus (*memory_new)(int index, size_t nbytes, void **out); /* aligned to 512 bytes */
  lt_DriverStatus (*memory_free)(int index, void *memory);
  lt_DriverStatus (*memory_info)(int index, size_t *free, size_t *total);
  lt_DriverStatus (*host_new)(size_t nbytes, void **out);
  lt_DriverStatus (*host_free)(void *memory);
  /* priority: 0, or negative: sooner; cut to what there is. `given`: what it became. */
  lt_DriverStatus (*stream_new)(int index, int priority, void **out, int *given);
  lt_DriverStatus (*stream_free)(int index, void *stream);
  lt_DriverStatus (*stream_query)(int index, void *stream);
  lt_DriverStatus (*stream_synchronize)(int index, void *stream);
  lt_DriverStatus (*stream_wait_event)(int index, void *stream, void *event);
  lt_DriverStatus (*event_new)(int index, bool timing, void **out);
  lt_DriverStatus (*event_free)(int index, void *event);
  lt_DriverStatus (*event_record)(int index, void *event, void *stream);
  lt_DriverStatus (*event_query)(int index, void *event);
  lt_DriverStatus (*event_synchronize)(int index, void *event);
  lt_DriverStatus (*event_elapsed)(void *from, void *to, double *milliseconds);
  lt_DriverStatus (*synchronize)(int index);
  /* Puts a fill with one byte on a stream. May be NULL: then LUTRA_MEMORY_DEBUG poisons nothing. */
  lt_DriverStatus (*memory_fill)(int index, void *memory, int byte, size_t nbytes, void *stream);
  /* Is the driver still there? After the program's end has begun it may not be: then nothing is
   * given back any more. */
  bool (*alive)(void);
} lt_AccelDriver;

#define LT_ACCEL_MAX 16 /* devices of one vendor */

/* Fills these members of `backend`, whose others the vendor has filled:
 *   count (at most LT_ACCEL_MAX are used) index_current index_set_current own
 *   memory, but for copy, fill_zero and can_access_peer; streams
 * A vendor may put a function of its own before one of them (look for faults, then wait), by
 * keeping the member's value.
 * The driver must live as long as the program. False when memory is out. */
bool lt_accel_attach(lt_Backend *backend, const lt_AccelDriver *driver);

/* The vendor's handle of a stream: NULL for the default stream (and for a NULL argument). */
void *lt_accel_native(const lt_Stream *stream);
/* Makes a device ready (once); false with the reason. Every way to a device leads through it. */
bool lt_accel_ready(const lt_Backend *backend, int index);
/* Was it made ready? Asks nothing of the driver. */
bool lt_accel_is_ready(const lt_Backend *backend, int index);
/* The program ends: from now on frees do nothing. Called by a vendor's destructor. */
void lt_accel_shutdown(const lt_Backend *backend);
/* Takes back what attach did: returns all memory, streams and events to the driver. Nothing of the
 * backend may be in use. For tests, and for a shared object that is unloaded. */
void lt_accel_detach(lt_Backend *backend);

/* ---- inside this folder ---------------------------------------------------------------------- */

typedef struct lt_Accel lt_Accel;             /* of one vendor */
typedef struct lt_Allocator lt_Allocator;     /* of one device: allocator.c */
typedef struct lt_PinnedCache lt_PinnedCache; /* of one vendor: pinned.c */
typedef struct lt_EventCache lt_EventCache;   /* of one vendor: events.c */

/* A stream lives as long as somebody can put work on it (`users`: its owner, threads in which it is
 * current). The struct lives longer, for storages that were allocated on it. */
typedef struct lt_AccelStream {
  lt_Stream base;
  void *native; /* NULL: the device's default stream */
  int priority;
  uint64_t id; /* never used again; 0: the default stream */
  atomic_int users, refs;
  struct lt_AccelStream *next; /* in its vendor's list, while it has users */
} lt_AccelStream;

struct lt_Accel {
  lt_Backend *backend;
  const lt_AccelDriver *driver;
  int slot;        /* among all vendors here: its place in what is current in a thread */
  uint64_t serial; /* never used again */
  atomic_bool ready[LT_ACCEL_MAX];
  lt_Allocator *allocator[LT_ACCEL_MAX]; /* of devices that are ready */
  lt_AccelStream default_stream[LT_ACCEL_MAX];
  pthread_mutex_t streams_lock;
  lt_AccelStream *streams; /* that work can be put on, but for the default ones */
  lt_PinnedCache *pinned;
  lt_EventCache *events;
  atomic_bool shut;
};

static inline lt_Accel *lt_accel_of(const lt_Backend *b) { return b->own; }
/* Can the driver be called, or has the end of the program begun? */
bool lt_accel_usable(const lt_Accel *accel);
/* "cuda:1", for messages: in a ring of buffers. */
const char *lt_accel_name(const lt_Backend *b, int index);
/* The vendor with this place, if it is still the one that it was; else NULL. */
lt_Accel *lt_accel_at(int slot, uint64_t serial);

/* streams.c */
void lt_accel_fill_streams(lt_Backend *backend);
static inline lt_AccelStream *lt_accel_stream(lt_Accel *accel, int index, lt_Stream *stream) {
  return stream ? (lt_AccelStream *)stream : &accel->default_stream[index];
}
/* Keep the struct, not the stream. */
void lt_accel_stream_retain(lt_AccelStream *s);
void lt_accel_stream_release(lt_AccelStream *s);

/* events.c: native events without timing are kept for the next who needs one. */
void lt_accel_fill_events(lt_Backend *backend);
lt_EventCache *lt_event_cache_new(void);
void lt_event_cache_free(lt_Accel *accel);
lt_DriverStatus lt_event_take(lt_Accel *accel, int index, void **native);
void lt_event_give(lt_Accel *accel, int index, void *native);

/* pinned.c */
void lt_accel_fill_pinned(lt_Backend *backend);
lt_PinnedCache *lt_pinned_new(void);
void lt_pinned_free(lt_Accel *accel);

/* report.c */
void lt_accel_fill_reports(lt_Backend *backend);

#endif
