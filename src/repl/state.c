// state.c: the program's Lua state, with an allocator for the many small objects of Lua.
//
// Lua passes the size of a block when it frees it, so blocks have no header. Blocks of up to
// LARGEST bytes are cut from chunks, by size class; a freed block goes to the free list of its
// class. Lua's collector frees in bursts, and while malloc's caches hold a few blocks of a size,
// these lists hold all. Larger blocks are malloc's. A state is used by one thread, so there is no
// locking. When the core returns free memory to the system, chunks without a block in use are
// freed.
//
// So that the prompt survives a computation that runs out of memory, some memory is reserved while
// it runs: released after it has ended, and reserved again before the next.
//
// Invariant: a block of class c has (c + 1) * STEP bytes, and is in no list while it is in use.
#include "repl.h"

#include "../tensor/lutra.h"

#include <lauxlib.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif

enum {
  STEP = 16, // bytes between size classes, and the alignment of blocks
  // largest block kept in a class; none under sanitizers, which track each block
  LARGEST = LT_DEBUG ? 0 : 256,
  CLASSES = 256 / STEP,
  CHUNK = 64 << 10, // bytes allocated at a time, and their alignment
  RESERVE = 4 << 20 // bytes of the reserve
};

struct chunk {
  struct chunk *next;
  size_t cut, idle; // bytes cut into blocks; bytes of those in free lists, during a trim
  _Alignas(STEP) char memory[];
};

#define ROOM (CHUNK - offsetof(struct chunk, memory))

struct heap {
  void *free[CLASSES];  // free lists; the first word of a block points to the next
  struct chunk *chunks; // newest first; blocks are cut from the end of the newest
  size_t left;          // bytes of the newest chunk not yet cut
  void *reserve;        // the reserve, or NULL
};

static size_t class_of(size_t size) { return (size - 1) / STEP; }

// Cuts a block from the newest chunk, or from a new one; NULL when out of memory.
static void *cut_block(struct heap *h, size_t size) {
  if (h->left < size) {
    struct chunk *c = aligned_alloc(CHUNK, CHUNK);
    if (!c) return NULL;
    if (h->chunks) h->chunks->cut = ROOM - h->left;
    *c = (struct chunk){.next = h->chunks};
    h->chunks = c;
    h->left = ROOM;
  }
  h->left -= size;
  return h->chunks->memory + h->left;
}

// Returns the chunk of a block: chunks are aligned to their size.
static struct chunk *chunk_of(void *block) {
  return (struct chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK - 1));
}

static bool is_idle(const struct heap *h, const struct chunk *c) {
  return c != h->chunks && c->idle == c->cut; // blocks are still cut from the newest
}

// Removes the blocks of idle chunks from a free list.
static void filter(const struct heap *h, void **list) {
  void *block = *list, **link = list;
  while (block) {
    void *next;
    memcpy(&next, block, sizeof next);
    if (!is_idle(h, chunk_of(block))) {
      memcpy(link, &block, sizeof block);
      link = block;
    }
    block = next;
  }
  memcpy(link, &block, sizeof block);
}

// Frees the chunks without a block in use. An lt_TrimFn.
static void trim(void *heap) {
  struct heap *h = heap;
  for (struct chunk *c = h->chunks; c; c = c->next) c->idle = 0;
  for (size_t class = 0; class < CLASSES; class ++)
    for (void *block = h->free[class]; block; memcpy(&block, block, sizeof block))
      chunk_of(block)->idle += (class + 1) * STEP;
  for (size_t class = 0; class < CLASSES; class ++) filter(h, &h->free[class]);
  for (struct chunk **at = &h->chunks; *at;) {
    struct chunk *c = *at;
    if (is_idle(h, c)) {
      *at = c->next;
      free(c);
    } else {
      at = &c->next;
    }
  }
}

static void *pop_block(struct heap *h, size_t size) {
  size_t class = class_of(size);
  void *block = h->free[class];
  if (!block) return cut_block(h, (class + 1) * STEP);
  memcpy(&h->free[class], block, sizeof block);
  return block;
}

static void push_block(struct heap *h, void *block, size_t size) {
  size_t class = class_of(size);
  memcpy(block, &h->free[class], sizeof block);
  h->free[class] = block;
}

// Implements lua_Alloc. `from` is the block's size, or a type when there is no block.
static void *allocate(void *heap, void *block, size_t from, size_t size) {
  if (!block) from = 0;
  bool was_small = from > 0 && from <= LARGEST, is_small = size > 0 && size <= LARGEST;
  if (!was_small && !is_small) {
    if (size) return realloc(block, size);
    free(block);
    return NULL;
  }
  if (was_small && is_small && class_of(from) == class_of(size)) return block;
  void *other = NULL;
  if (size) {
    other = is_small ? pop_block(heap, size) : malloc(size);
    // Lua requires that shrinking succeeds; a larger block will do
    if (!other) return size < from ? block : NULL;
    if (block) memcpy(other, block, from < size ? from : size);
  }
  if (was_small)
    push_block(heap, block, from);
  else
    free(block);
  return other;
}

// Prints warnings as luaL_newstate's function does: "@on" and "@off" are switches, other messages
// are printed while they are on.
static void warn(void *on, const char *message, int more) {
  static bool inside; // a part of a message was printed
  bool *enabled = on;
  if (!inside && !more && message[0] == '@') {
    if (strcmp(message, "@on") == 0) *enabled = true;
    if (strcmp(message, "@off") == 0) *enabled = false;
    return;
  }
  if (*enabled)
    fprintf(stderr, "%s%s%s", inside ? "" : "lutra: warning: ", message, more ? "" : "\n");
  inside = more != 0;
}

static int panic(lua_State *L) {
  const char *message = lua_tostring(L, -1);
  fprintf(stderr, "lutra: unprotected error: %s\n", message ? message : "no message");
  return 0;
}

struct state {
  struct heap heap;
  bool warnings;
};

static struct heap *heap_of(lua_State *L) {
  void *owner;
  lua_getallocf(L, &owner);
  return owner; // the heap is the first member of the state
}

void lt_repl_state_reserve(lua_State *L) {
  struct heap *h = heap_of(L);
  if (!h->reserve) h->reserve = malloc(RESERVE);
}

void lt_repl_state_release_reserve(lua_State *L) {
  struct heap *h = heap_of(L);
  free(h->reserve);
  h->reserve = NULL;
}

lua_State *lt_repl_state_open(void) {
  struct state *s = calloc(1, sizeof *s);
  lua_State *L = s ? lua_newstate(allocate, s) : NULL;
  if (!L) {
    free(s);
    return NULL;
  }
  lt_memory_on_trim(trim, &s->heap);
  lua_atpanic(L, panic);
  lua_setwarnf(L, warn, &s->warnings);
  // Start a cycle of the collector when the heap has grown by half, not doubled: dead boxes hold
  // large tensors, whose memory is then reused sooner, while it is still in the processor's caches
  // (measured: with gradients, a + b on one element takes 295 ns, not 420).
  lua_gc(L, LUA_GCINC, 150, 0, 0);
  // When glibc has freed a block of this size, it returns the end of its heap to the system only if
  // twice as much is free. Otherwise, what the collector frees is returned and requested again.
  lt_repl_state_reserve(L);
  lt_repl_state_release_reserve(L);
  return L;
}

void lt_repl_state_close(lua_State *L) {
  void *owner;
  lua_getallocf(L, &owner);
  struct state *s = owner;
  lua_close(L);
  lt_memory_on_trim(NULL, NULL);
  free(s->heap.reserve);
  while (s->heap.chunks) {
    struct chunk *next = s->heap.chunks->next;
    free(s->heap.chunks);
    s->heap.chunks = next;
  }
  free(s);
}
