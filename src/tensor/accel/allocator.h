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

/* A private pool that graphs use. */
typedef struct lt_PrivatePool {
  struct lt_PrivatePool *next;
  uint32_t id;
  int users;
} lt_PrivatePool;

struct lt_Allocator {
  pthread_mutex_t lock; /* protects all that follows */
  lt_Accel *accel;
  int index;
  bool debug;   /* no cache, segments or rounding, for memory checkers; memory is poisoned */
  size_t limit; /* of reserved bytes; SIZE_MAX: none */
  lt_BlockSet free_set[2]; /* free blocks of the large and of the small pool */
  lt_BlockMap held;        /* blocks that tensors hold */
  lt_Block *waiting;       /* list of freed blocks that queued work still uses, oldest first */
  lt_Block *waiting_last;  /* the last of them; valid when there is one */
  uint64_t recorded;       /* number of uses recorded so far */
  lt_Segment *segments;
  lt_PrivatePool *pools; /* list of those in use */
  lt_Block *spare;       /* list of unused structs */
  lt_MemoryStats stats;
};

/* Creates the allocator of a device; NULL with an error when memory is out. */
lt_Allocator *lt_allocator_new(lt_Accel *accel, int index);
/* Frees the allocator, and returns all memory to the driver if that is still loaded. No block may
 * be in use. */
void lt_allocator_delete(lt_Allocator *a);

/* Allocates nbytes > 0 for work on `stream`. `pool`: 0, or a private pool, whose blocks no other
 * request gets. NULL with an error, which is of kind LT_ERROR_MEMORY when memory is out. */
void *lt_allocator_alloc(lt_Allocator *a, uint32_t pool, size_t nbytes, lt_AccelStream *stream);
/* Frees a block; ignores memory that this allocator does not hold. Never fails, and keeps the error
 * slot. */
void lt_allocator_free(lt_Allocator *a, void *memory);
/* Records that the work queued so far on `stream`, which is not the block's own, uses a block. The
 * block is not reused before that work is done. */
bool lt_allocator_record(lt_Allocator *a, const void *memory, lt_AccelStream *stream);
/* Returns segments that are completely free to the driver. `wait`: blocks on all work first, so
 * that more of them are, and counts as a retry in the statistics. */
bool lt_allocator_release(lt_Allocator *a, bool wait);
/* Count the users of a private pool. When the last one closes it, its free segments are returned to
 * the driver, and the others become ordinary memory; all work on the device must be done then. */
bool lt_allocator_pool_open(lt_Allocator *a, uint32_t pool);
void lt_allocator_pool_close(lt_Allocator *a, uint32_t pool);
/* Returns the pool of a block that a tensor holds, 0 for an ordinary one or other memory. */
uint32_t lt_allocator_pool_of(lt_Allocator *a, const void *memory);
/* Moves the blocks of a stream that is about to be destroyed to the default stream, which is made
 * to wait for the work on it. */
void lt_allocator_adopt(lt_Allocator *a, lt_AccelStream *ending);
/* Limits the reserved memory to a fraction, from 0 to 1, of the device's total memory. */
bool lt_allocator_limit(lt_Allocator *a, double fraction);

#endif
