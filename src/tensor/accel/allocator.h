/* allocator.h: the caching allocator of one device. */
#ifndef LT_ACCEL_ALLOCATOR_H
#define LT_ACCEL_ALLOCATOR_H

#include "blocks.h"

#include <pthread.h>

#define LT_BLOCK_ROUND   ((size_t)512)
#define LT_SMALL_LIMIT   ((size_t)1 << 20)  /* requests up to this come from the small pool */
#define LT_SMALL_SEGMENT ((size_t)2 << 20)  /* of the small pool */
#define LT_LARGE_SEGMENT ((size_t)20 << 20) /* of the large pool, for requests below ... */
#define LT_LARGE_LIMIT   ((size_t)10 << 20) /* ... this; above: */
#define LT_LARGE_ROUND   ((size_t)2 << 20)  /* a multiple of this */

struct lt_Allocator {
  pthread_mutex_t lock; /* of all that follows */
  lt_Accel *accel;
  int index;
  bool debug;   /* no cache, segments or rounding, for memory checkers; memory is poisoned */
  size_t limit; /* of reserved bytes; SIZE_MAX: none */
  lt_BlockSet free_set[2]; /* large, small */
  lt_BlockMap held;        /* by tensors */
  lt_Block *waiting;       /* freed, with uses that have not happened yet; the oldest first */
  lt_Block *waiting_last;  /* of them, if there are any */
  uint64_t recorded;       /* uses so far */
  lt_Segment *segments;
  lt_Block *spare; /* structs */
  lt_MemoryStats stats;
};

lt_Allocator *lt_allocator_new(lt_Accel *accel, int index);
/* Nothing may be in use; gives all memory back where the driver is still there. */
void lt_allocator_delete(lt_Allocator *a);

/* nbytes > 0. `pool`: 0, or a private pool, whose blocks nobody else gets. NULL with the reason,
 * which is marked as one of memory when that is what there is too little of. */
void *lt_allocator_alloc(lt_Allocator *a, uint32_t pool, size_t nbytes, lt_AccelStream *stream);
/* Memory that is not from here is left alone. Never fails; the error slot stays as it is. */
void lt_allocator_free(lt_Allocator *a, void *memory);
/* Work put on `stream`, which is not the block's own, uses it up to now. */
bool lt_allocator_record(lt_Allocator *a, const void *memory, lt_AccelStream *stream);
/* Gives whole free segments back. `wait`: first waits for all work, and counts as a retry. */
bool lt_allocator_release(lt_Allocator *a, bool wait);
/* The stream is about to end: its blocks become the default stream's, behind the work on it. */
void lt_allocator_adopt(lt_Allocator *a, lt_AccelStream *ending);
/* Of the device's total memory, 0 to 1. */
bool lt_allocator_limit(lt_Allocator *a, double fraction);

#endif
