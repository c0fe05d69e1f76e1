/* blocks.h: the allocator's data structures: segments (memory reserved from the driver), and the
 * blocks into which they are divided.
 *
 * Invariant: the blocks of a segment are a list in order of address that covers it without gaps.
 * Each block is in exactly one of three containers: a free block in an ordered set, a block that a
 * tensor holds in the map by address, a freed block that other streams still use in the list of
 * waiting blocks. */
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
  uint64_t when;   /* a counter: the events of one stream are done in the order of it */
  void *event;
} lt_BlockUse;

/* The tensor and the line of the program that a block was allocated for. */
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
  lt_Block *left, *right; /* in the set, which is a treap */
  uint32_t priority;      /* in the treap */
  lt_Block *chain;        /* next in the map's bucket, in the waiting list, of spare structs */
  lt_BlockUse *uses;      /* NULL for a free block */
  lt_AccelStream *maker;  /* the stream of the allocation, retained until the block is freed */
  lt_BlockNote note;
};

struct lt_Segment {
  char *address;
  size_t size;
  bool small;
  uint32_t pool;          /* 0, or a private pool */
  lt_AccelStream *stream; /* of all its blocks */
  lt_Block *first;
  lt_Segment *prev, *next; /* in the list of the device's segments */
};

/* A set of free blocks, ordered by (pool, stream, size, address). */
typedef struct lt_BlockSet {
  lt_Block *root;
  uint32_t random;
} lt_BlockSet;
void lt_block_set_add(lt_BlockSet *set, lt_Block *b);
void lt_block_set_remove(lt_BlockSet *set, lt_Block *b);
/* Returns the smallest free block of at least `size` bytes of this pool and stream, or NULL. */
lt_Block *lt_block_set_fit(const lt_BlockSet *set, uint32_t pool, uint64_t stream, size_t size);

/* A hash table, by address, of the blocks that tensors hold. */
typedef struct lt_BlockMap {
  lt_Block **bucket;
  size_t count, room; /* room: a power of two */
} lt_BlockMap;
/* Initializes a map; false, without an error, when memory is out. */
bool lt_block_map_open(lt_BlockMap *map);
/* Frees the table, not the blocks. */
void lt_block_map_close(lt_BlockMap *map);
/* Adds a block. Never fails: when the table cannot grow, its buckets get longer. */
void lt_block_map_add(lt_BlockMap *map, lt_Block *b);
/* Return the block at an address, or NULL; lt_block_map_take also removes it. */
lt_Block *lt_block_map_find(const lt_BlockMap *map, const void *address);
lt_Block *lt_block_map_take(lt_BlockMap *map, const void *address);

#endif
