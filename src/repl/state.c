// state.c: the program's Lua state, with an allocator that suits a language of many small objects.
//
// Lua tells the size of a block when it frees it, so blocks need no header: those of up to LARGEST
// bytes come from chunks, by size class, and wait in their class's list for the next. Lua's
// collector frees in bursts; malloc's caches hold a few blocks of a size, these lists hold all.
// Larger blocks are malloc's. One state runs in one thread, so nothing is locked. When the core
// gives free memory back to the system, chunks of which no block is in use are freed.
//
// So that the prompt can go on when memory is out, some is kept in reserve, which the code that ran
// out does not get: it is given up after that code has ended, and taken again before the next.
//
// The invariant: a block of class c is (c + 1) * STEP bytes, and in no list while it is in use.
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
  STEP = 16,                    // bytes between size classes, and the alignment of blocks
  LARGEST = LT_DEBUG ? 0 : 256, // of the blocks kept in classes; sanitizers want to see each one
  CLASSES = 256 / STEP,
  CHUNK = 64 << 10, // bytes taken from malloc at a time, and their alignment
  RESERVE = 4 << 20 // bytes that are kept back
};

struct chunk {
  struct chunk *next;
  size_t cut, idle; // bytes that were cut into blocks; of those in lists, while they are counted
  _Alignas(STEP) char memory[];
};

#define ROOM (CHUNK - offsetof(struct chunk, memory))

struct heap {
  void *free[CLASSES];  // each block's first word names the next
  struct chunk *chunks; // the newest first; blocks are cut from its end
  size_t left;          // bytes of it that are not cut yet
  void *reserve;        // or NULL
};

static size_t class_of(size_t size) { return (size - 1) / STEP; }

static void *cut(struct heap *h, size_t size) {
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

static struct chunk *chunk_of(void *block) {
  return (struct chunk *)((uintptr_t)block & ~(uintptr_t)(CHUNK - 1));
}

static bool is_idle(const struct heap *h, const struct chunk *c) {
  return c != h->chunks && c->idle == c->cut; // the newest is still being cut
}

// Leaves blocks of idle chunks out of a list.
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

// Frees the chunks of which no block is in use: an lt_TrimFn.
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

static void *take(struct heap *h, size_t size) {
  size_t class = class_of(size);
  void *block = h->free[class];
  if (!block) return cut(h, (class + 1) * STEP);
  memcpy(&h->free[class], block, sizeof block);
  return block;
}

static void give(struct heap *h, void *block, size_t size) {
  size_t class = class_of(size);
  memcpy(block, &h->free[class], sizeof block);
  h->free[class] = block;
}

// lua_Alloc. `from` is the block's size (when there is no block: a type, which does not matter).
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
    other = is_small ? take(heap, size) : malloc(size);
    if (!other) return size < from ? block : NULL; // Lua counts on shrinking; a larger block serves
    if (block) memcpy(other, block, from < size ? from : size);
  }
  if (was_small)
    give(heap, block, from);
  else
    free(block);
  return other;
}

// As luaL_newstate's: "@on" and "@off" switch, other messages are told when they are on.
static void warn(void *on, const char *message, int more) {
  static bool inside; // the message goes on
  bool *told = on;
  if (!inside && !more && message[0] == '@') {
    if (strcmp(message, "@on") == 0) *told = true;
    if (strcmp(message, "@off") == 0) *told = false;
    return;
  }
  if (*told) fprintf(stderr, "%s%s%s", inside ? "" : "Lua warning: ", message, more ? "" : "\n");
  inside = more != 0;
}

static int panic(lua_State *L) {
  const char *message = lua_tostring(L, -1);
  fprintf(stderr, "lutra: an error outside of any call: %s\n", message ? message : "no message");
  return 0;
}

struct state {
  struct heap heap;
  bool warnings;
};

static struct heap *heap_of(lua_State *L) {
  void *owner;
  lua_getallocf(L, &owner);
  return owner; // a state begins with its heap
}

void lt_repl_state_reserve(lua_State *L) {
  struct heap *h = heap_of(L);
  if (!h->reserve) h->reserve = malloc(RESERVE);
}

void lt_repl_state_relieve(lua_State *L) {
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
  // A new cycle when the heap has grown by half, not doubled: what hangs on dead boxes is large,
  // and is used again sooner, while it is still in the processor's caches (measured: with
  // gradients, a + b on one element takes 295 ns, not 420).
  lua_gc(L, LUA_GCINC, 150, 0, 0);
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
