/* accel.h: the parts that all accelerators share: the caching allocator, pinned host memory,
 * streams, events, the current device and stream. No vendor's types are used here: a vendor's
 * folder fills in an lt_AccelDriver and calls lt_accel_attach once, which fills in the members of
 * its lt_Backend that are implemented here.
 *
 *   attach.c      the state of one vendor: which devices are initialized, the backend's members
 *   blocks.c      the allocator's data structures: an ordered set, a map by address
 *   allocator.c   blocks, segments and their statistics, by PyTorch's rules
 *   pinned.c      the cache of pinned host memory
 *   streams.c     streams, and the current stream of each thread
 *   events.c      events
 *   graphs.c      graphs: captures, what they keep, replays
 *   report.c      snapshots of the memory; the message of an allocation that failed
 *   launches.c    the launches that the message of a device's error names (launches.h)
 *   fault.c       messages about bad values that only the device can see (fault.h)
 *   cache.c       the folder of compiled kernels
 *
 * Thread safe. Locks are taken in this order: allocator or pinned, events, driver. Invariant: no
 * callback of the host runs while one of them is held.
 */
#ifndef LT_ACCEL_H
#define LT_ACCEL_H

#include "kernel.h"

#include <pthread.h>

typedef enum lt_DriverStatus {
  LT_DRIVER_OK,
  LT_DRIVER_NO_MEMORY, /* out of memory; the driver's error state has been cleared */
  LT_DRIVER_NOT_READY, /* of queries: the work is still running */
  LT_DRIVER_FAILED     /* with the error in the slot */
} lt_DriverStatus;

/* The driver's calls, without caching, statistics or a current stream. Handles are the vendor's.
 * Each call selects the device itself. A NULL stream handle is the device's default stream. */
typedef struct lt_AccelDriver {
  int (*count)(char *why, size_t why_size);
  /* Initializes a device; called once, before any other call for it but count. */
  bool (*initialize)(int index);
  lt_DriverStatus (*memory_new)(int index, size_t nbytes, void **out); /* aligned to 512 bytes */
  lt_DriverStatus (*memory_free)(int index, void *memory);
  lt_DriverStatus (*memory_info)(int index, size_t *free, size_t *total);
  lt_DriverStatus (*host_new)(size_t nbytes, void **out);
  lt_DriverStatus (*host_free)(void *memory);
  /* priority: 0, or negative: higher priority; clamped to the device's range. `given`: the
   * result. */
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
  /* Queues a fill with one byte. May be NULL: then LUTRA_MEMORY_DEBUG does not poison memory. */
  lt_DriverStatus (*memory_fill)(int index, void *memory, int byte, size_t nbytes, void *stream);
  /* Graphs; all NULL: not supported. While a stream captures, memory_new, host_new and the
   * functions for other streams and events keep working. capture_end always ends the capture of the
   * stream; *graph is ready to be launched, NULL on failure. */
  lt_DriverStatus (*capture_begin)(int index, void *stream);
  lt_DriverStatus (*capture_end)(int index, void *stream, void **graph);
  lt_DriverStatus (*is_capturing)(int index, void *stream, bool *out);
  lt_DriverStatus (*graph_launch)(int index, void *graph, void *stream);
  lt_DriverStatus (*graph_free)(int index, void *graph);
  /* Returns false once the driver has been unloaded, at the end of the process: then nothing is
   * returned to it any more. */
  bool (*alive)(void);
} lt_AccelDriver;

#define LT_ACCEL_MAX 16 /* devices of one vendor */

/* Fills in these members of `backend`; the vendor has filled in the others:
 *   count (at most LT_ACCEL_MAX are used) index_current index_set_current own
 *   memory, except copy, fill_zero and can_access_peer; streams
 * A vendor may wrap one of them (to check for faults first, for example): it saves the member's
 * value, and stores a function that calls it. The driver must live as long as the process. Fails
 * when memory is out. */
bool lt_accel_attach(lt_Backend *backend, const lt_AccelDriver *driver);

/* Returns the vendor's handle of a stream: NULL for the default stream, and for a NULL argument. */
void *lt_accel_native(const lt_Stream *stream);
/* Initializes a device if that has not been done. Every function that uses a device calls it
 * first. */
bool lt_accel_ready(const lt_Backend *backend, int index);
/* Returns true when the device has been initialized. Does not call the driver. */
bool lt_accel_is_ready(const lt_Backend *backend, int index);
/* Makes every later free do nothing, because the process ends. Called by a vendor's destructor. */
void lt_accel_shutdown(const lt_Backend *backend);
/* Undoes lt_accel_attach: returns all memory, streams and events to the driver. Nothing of the
 * backend may be in use. For tests, and for a shared object that is unloaded. */
void lt_accel_detach(lt_Backend *backend);

/* ---- for the vendor's kernels, during a capture ---------------------------------------------- */

/* Returns the graph that this thread captures on the device; NULL: it captures none there. */
lt_Graph *lt_capture_of(const lt_Backend *backend, int index);
/* Fails when this thread captures on the device: `what` cannot be captured ("copy to the host").
 * The capture then fails, too. `hint` may be NULL. */
bool lt_capture_allows(const lt_Backend *backend, int index, const char *what, const char *hint);
/* Keeps host memory of host_alloc, to which captured work refers, until the graph is freed. Takes
 * it over, also on failure. */
bool lt_capture_keep_host(lt_Graph *graph, void *memory, size_t nbytes);
/* Returns device memory with two numbers: the default generator's seed, and the position of the
 * first of the random numbers that a replay draws. *position is that of the next n, relative to it.
 * NULL on failure. */
const uint64_t *lt_capture_random(lt_Graph *graph, lt_Device device, uint64_t n,
                                  uint64_t *position);
/* Returns memory of the device for work on `stream` that lives as long as the graph; for the same
 * stream always the same memory. NULL on failure. */
void *lt_capture_workspace(lt_Graph *graph, lt_Stream *stream, size_t nbytes);

/* ---- inside this folder ---------------------------------------------------------------------- */

typedef struct lt_Accel lt_Accel;             /* of one vendor */
typedef struct lt_Allocator lt_Allocator;     /* of one device: allocator.c */
typedef struct lt_PinnedCache lt_PinnedCache; /* of one vendor: pinned.c */
typedef struct lt_EventCache lt_EventCache;   /* of one vendor: events.c */

/* A stream. The vendor's stream is destroyed when it has no users left (its owner, and the threads
 * in which it is current): then nothing can be queued on it. The struct lives until the storages
 * that were allocated on it are freed. */
typedef struct lt_AccelStream {
  lt_Stream base;
  void *native; /* NULL: the device's default stream */
  int priority;
  uint64_t id; /* unique in the process; 0: the default stream */
  atomic_int users, refs;
  struct lt_AccelStream *next; /* in its vendor's list, while it has users */
} lt_AccelStream;

struct lt_Accel {
  lt_Backend *backend;
  const lt_AccelDriver *driver;
  int slot;        /* its index in tables of all attached vendors */
  uint64_t serial; /* unique in the process: tells it from a former vendor of the same slot */
  atomic_bool ready[LT_ACCEL_MAX];
  lt_Allocator *allocator[LT_ACCEL_MAX]; /* of initialized devices */
  lt_AccelStream default_stream[LT_ACCEL_MAX];
  pthread_mutex_t streams_lock;
  lt_AccelStream *streams; /* list of the streams with users, except the default ones */
  lt_PinnedCache *pinned;
  lt_EventCache *events;
  pthread_mutex_t graphs_lock;
  bool capturing[LT_ACCEL_MAX];   /* a capture is underway */
  struct lt_AccelGraph *deferred; /* list of graphs to be freed after the captures underway */
  atomic_bool shut;
};

static inline lt_Accel *lt_accel_of(const lt_Backend *b) { return b->own; }
/* Returns false when the process is ending: then the driver must not be called. */
bool lt_accel_usable(const lt_Accel *accel);
/* Formats a device's name, "cuda:1", for a message, in a ring of per-thread buffers. */
const char *lt_accel_name(const lt_Backend *b, int index);
/* Returns the vendor in a slot if it has this serial, otherwise NULL. */
lt_Accel *lt_accel_at(int slot, uint64_t serial);

/* streams.c. The functions lt_accel_fill_* fill in a file's members of the backend. */
void lt_accel_fill_streams(lt_Backend *backend);
static inline lt_AccelStream *lt_accel_stream(lt_Accel *accel, int index, lt_Stream *stream) {
  return stream ? (lt_AccelStream *)stream : &accel->default_stream[index];
}
/* Count references to the struct. They do not keep the vendor's stream. */
void lt_accel_stream_retain(lt_AccelStream *s);
void lt_accel_stream_release(lt_AccelStream *s);

/* events.c: a cache of the vendor's events without timing, because creating one is slow. */
void lt_accel_fill_events(lt_Backend *backend);
lt_EventCache *lt_event_cache_new(void);
void lt_event_cache_free(lt_Accel *accel);
/* Takes an event from the cache, or creates one. */
lt_DriverStatus lt_event_take(lt_Accel *accel, int index, void **native);
/* Returns an event to the cache. */
void lt_event_give(lt_Accel *accel, int index, void *native);

/* graphs.c */
void lt_accel_fill_graphs(lt_Backend *backend);
/* Returns the private pool from which this thread allocates on the device; 0: none. */
uint32_t lt_capture_pool(const lt_Backend *backend, int index);
/* Returns true when this thread captures and the stream is part of the capture. */
bool lt_capture_includes(const lt_Backend *backend, int index, const lt_Stream *stream);
/* Keeps a storage that captured work uses on `stream`, until the graph is freed, where the graph's
 * pool does not do that. */
bool lt_capture_keep(lt_Graph *graph, lt_Storage *storage, const lt_Stream *stream);
/* Keeps a stream that has become part of the capture until the capture ends. */
void lt_capture_join(lt_Graph *graph, lt_AccelStream *stream);
/* Returns a number for the capture that this thread makes, unique in the process; 0: none. */
uint64_t lt_capture_number(const lt_Backend *backend);
/* Returns true when any thread captures on the device: then it cannot be synchronized. */
bool lt_capture_underway(lt_Accel *accel, int index);
/* Frees the graphs that wait for the end of captures. */
void lt_graphs_free(lt_Accel *accel);
/* streams.c: count users of a stream, which is destroyed when the last one is dropped. */
void lt_accel_stream_use(lt_AccelStream *s);
void lt_accel_stream_drop(lt_Accel *accel, lt_AccelStream *s);

/* pinned.c: the cache of pinned host memory of a vendor. */
void lt_accel_fill_pinned(lt_Backend *backend);
lt_PinnedCache *lt_pinned_new(void);
void lt_pinned_free(lt_Accel *accel);

/* report.c */
void lt_accel_fill_reports(lt_Backend *backend);

#endif
