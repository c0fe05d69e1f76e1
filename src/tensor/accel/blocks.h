/* blocks.h: what the allocator keeps: segments, which are pieces of memory that the driver gave,
 * and the blocks that they are cut into. The blocks of a segment are a list in order of address and
 * tile it. A block is in exactly one place: free in an ordered set; held by a tensor in the map by
 * address; freed but used by other streams, in the list of those that wait. */
#ifndef LT_ACCEL_BLOCKS_H
#define LT_ACCEL_BLOCKS_H

#include "accel.h"

typedef struct lt_Segment lt_Segment;
typedef struct lt_Block lt_Block;

/* The last use of a block on a stream other than its own. */
typedef struct lt_BlockUse {
  struct lt_BlockUse *next;
  uint64_t stream; /* its id */
  int index;       /* device of the stream and of the event */
  uint64_t when;   /* counts up: of one stream, what was recorded first happens first */
  void *event;
} lt_BlockUse;

/* What a block was made for. */
typedef struct lt_BlockNote {
  lt_Dtype dtype;
  int ndim;
  int64_t shape[LT_MAX_DIMS];
  char where[64];
} lt_BlockNote;

struct lt_Block {
  char *address;
  size_t size, requested;
  int state; /* LT_BLOCK_FREE ... of lt_MemoryBlock */
  lt_Segment *segment;
  lt_Block *prev, *next;  /* neighbours in the segment */
  lt_Block *left, *right; /* in the set */
  uint32_t priority;      /* in the set */
  lt_Block *chain;        /* in the map, among those that wait, among spare structs */
  lt_BlockUse *uses;      /* of a free block: none */
  lt_AccelStream *maker;  /* the stream that the allocation named, kept until the block is freed */
  lt_BlockNote note;
};

struct lt_Segment {
  char *address;
  size_t size;
  bool small;
  uint32_t pool;          /* 0, or a graph's own: blocks of different pools never meet */
  lt_AccelStream *stream; /* of all its blocks */
  lt_Block *first;
  lt_Segment *prev, *next; /* of the device */
};

/* Free blocks ordered by (pool, stream, size, address). */
typedef struct lt_BlockSet {
  lt_Block *root;
  uint32_t random;
} lt_BlockSet;
void lt_block_set_add(lt_BlockSet *set, lt_Block *b);
void lt_block_set_remove(lt_BlockSet *set, lt_Block *b);
/* The smallest free block of at least `size` bytes of this pool and stream, or NULL. */
lt_Block *lt_block_set_fit(const lt_BlockSet *set, uint32_t pool, uint64_t stream, size_t size);

/* Blocks that tensors hold, by address. */
typedef struct lt_BlockMap {
  lt_Block **bucket;
  size_t count, room; /* room: a power of two */
} lt_BlockMap;
bool lt_block_map_open(lt_BlockMap *map); /* false: no memory */
void lt_block_map_close(lt_BlockMap *map);
void lt_block_map_add(lt_BlockMap *map, lt_Block *b); /* never fails */
lt_Block *lt_block_map_find(const lt_BlockMap *map, const void *address);
lt_Block *lt_block_map_take(lt_BlockMap *map, const void *address); /* and removes it */

#endif
