/* accel.h: what every accelerator shares: the caching allocator, pinned memory of the host,
 * streams, events, the current device and stream. No vendor's type stands here: a vendor's folder
 * fills an lt_AccelDriver, calls lt_accel_attach once, and has those members of its lt_Backend
 * that this folder can fill filled.
 *
 *   allocator.c   blocks, segments and their statistics, by PyTorch's rules
 *   pinned.c      memory of the host that the device copies by itself
 *   streams.c     streams, events, what is current in a thread
 *   report.c      the message of an allocation that failed
 *
 * Thread safe. The order of locks: allocator, then driver; nothing here calls the host program
 * while it holds one.
 */
#ifndef LT_ACCEL_H
#define LT_ACCEL_H

#include "core.h"

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
  /* Is the driver still there? After the program's end has begun it may not be: then nothing is
   * given back any more. */
  bool (*alive)(void);
} lt_AccelDriver;

#define LT_ACCEL_MAX 16 /* devices of one vendor */

/* Fills these members of `backend`, whose others the vendor has filled:
 *   count index_current index_set_current alloc free memory_* host_* stream_* event_* synchronize
 *   record_stream own
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

/* ---- inside this folder ---------------------------------------------------------------------- */

typedef struct lt_Allocator lt_Allocator;     /* of one device: allocator.c */
typedef struct lt_PinnedCache lt_PinnedCache; /* of one vendor: pinned.c */

typedef struct lt_Accel {
  const lt_Backend *backend;
  const lt_AccelDriver *driver;
  lt_Allocator *allocator[LT_ACCEL_MAX];
  lt_PinnedCache *pinned;
  void *streams; /* streams.c's */
  atomic_bool shut;
} lt_Accel;

static inline lt_Accel *lt_accel_of(const lt_Backend *b) { return b->own; }

#endif
