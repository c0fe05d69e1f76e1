/* blocks.c: the data structures of the allocator. The ordered set is a treap: a search tree in
 * which each node also has a random priority, higher than those below it; so it stays shallow for
 * any order of insertions. The map is a hash table with chains. Inserting and removing allocate
 * nothing, except when the table grows, which may fail without harm. */
#include "blocks.h"

/* Returns true when b comes before this (pool, stream, size, address). */
static bool before(const lt_Block *b, uint32_t pool, uint64_t stream, size_t size,
                   const char *address) {
  const lt_Segment *s = b->segment;
  if (s->pool != pool) return s->pool < pool;
  if (s->stream->id != stream) return s->stream->id < stream;
  if (b->size != size) return b->size < size;
  return (uintptr_t)b->address < (uintptr_t)address;
}

static bool block_before(const lt_Block *b, const lt_Block *key) {
  return before(b, key->segment->pool, key->segment->stream->id, key->size, key->address);
}

void lt_block_set_add(lt_BlockSet *set, lt_Block *b) {
  set->random = set->random * 1664525u + 1013904223u;
  b->priority = set->random ^ set->random >> 15;
  lt_Block **link = &set->root;
  while (*link && (*link)->priority >= b->priority)
    link = block_before(*link, b) ? &(*link)->right : &(*link)->left;
  /* Split the subtree below into the blocks before b and those after it. */
  lt_Block *rest = *link, **less = &b->left, **more = &b->right;
  *link = b;
  while (rest) {
    if (block_before(rest, b)) {
      *less = rest;
      less = &rest->right;
      rest = rest->right;
    } else {
      *more = rest;
      more = &rest->left;
      rest = rest->left;
    }
  }
  *less = *more = NULL;
}

void lt_block_set_remove(lt_BlockSet *set, lt_Block *b) {
  lt_Block **link = &set->root;
  while (*link != b) link = block_before(*link, b) ? &(*link)->right : &(*link)->left;
  lt_Block *less = b->left, *more = b->right;
  while (less && more) {
    if (less->priority > more->priority) {
      *link = less;
      link = &less->right;
      less = less->right;
    } else {
      *link = more;
      link = &more->left;
      more = more->left;
    }
  }
  *link = less ? less : more;
  b->left = b->right = NULL;
}

lt_Block *lt_block_set_fit(const lt_BlockSet *set, uint32_t pool, uint64_t stream, size_t size) {
  lt_Block *best = NULL;
  for (lt_Block *b = set->root; b;) {
    if (before(b, pool, stream, size, NULL)) {
      b = b->right;
    } else {
      best = b;
      b = b->left;
    }
  }
  return best && best->segment->pool == pool && best->segment->stream->id == stream ? best : NULL;
}

/* ---- by address ------------------------------------------------------------------------------ */

bool lt_block_map_open(lt_BlockMap *map) {
  *map = (lt_BlockMap){.room = 256};
  map->bucket = calloc(map->room, sizeof *map->bucket);
  return map->bucket != NULL;
}

void lt_block_map_close(lt_BlockMap *map) {
  free(map->bucket);
  map->bucket = NULL;
}

/* Returns the bucket of an address. Blocks are multiples of 512 bytes, so the low 9 bits are
 * dropped. */
static lt_Block **bucket_of(lt_Block **bucket, size_t room, const void *address) {
  return &bucket[(uint64_t)((uintptr_t)address >> 9) * 0x9E3779B97F4A7C15u >> 32 & (room - 1)];
}

/* Doubles the table. When memory is out, the chains get longer instead. */
static void grow(lt_BlockMap *map) {
  size_t room = 2 * map->room;
  lt_Block **bucket = calloc(room, sizeof *bucket);
  if (!bucket) return;
  for (size_t i = 0; i < map->room; i++) {
    while (map->bucket[i]) {
      lt_Block *b = map->bucket[i], **to = bucket_of(bucket, room, b->address);
      map->bucket[i] = b->chain;
      b->chain = *to;
      *to = b;
    }
  }
  free(map->bucket);
  map->bucket = bucket;
  map->room = room;
}

void lt_block_map_add(lt_BlockMap *map, lt_Block *b) {
  if (map->count >= map->room) grow(map);
  lt_Block **to = bucket_of(map->bucket, map->room, b->address);
  b->chain = *to;
  *to = b;
  map->count++;
}

/* Returns the link to the block with this address, or the link at the end of its chain. */
static lt_Block **place_of(const lt_BlockMap *map, const void *address) {
  lt_Block **link = bucket_of(map->bucket, map->room, address);
  while (*link && (*link)->address != address) link = &(*link)->chain;
  return link;
}

lt_Block *lt_block_map_find(const lt_BlockMap *map, const void *address) {
  return *place_of(map, address);
}

lt_Block *lt_block_map_take(lt_BlockMap *map, const void *address) {
  lt_Block **link = place_of(map, address), *b = *link;
  if (!b) return NULL;
  *link = b->chain;
  b->chain = NULL;
  map->count--;
  return b;
}
