/* memory.c: Lua's collector knows what tensors weigh.
 *
 * Lua sees a box of a few bytes where a gigabyte may hang on it. So the weight (bytes of live
 * storages, and half a kilobyte of headers a tensor) is watched: every batch of growth is
 * charged to the collector as if Lua had allocated it, and when the weight has grown by a budget
 * since the last complete collection, there is another one. The budget grows with what stays
 * alive and with Lua's own heap, as the pause of Lua's collector does, so that the cost of
 * collecting stays a small part of the cost of allocating.
 *
 * The invariant: weight <= what is reachable + budget + one batch, whatever the collector's
 * mode. */
#include "bindings.h"

enum { SMALLEST_BUDGET = 64 << 20 };

static int64_t heap_bytes(lua_State *L) { return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024; }

static void set_base(lua_State *L, lt_Lua *S, int64_t weight) {
  S->base = weight;
  S->budget = SMALLEST_BUDGET;
  if (S->base / 2 > S->budget) S->budget = S->base / 2;
  if (4 * heap_bytes(L) > S->budget) S->budget = 4 * heap_bytes(L);
}

void lt_lua_collect(lua_State *L, lt_Lua *S, int64_t weight) {
  if (S->collecting) return; /* a finalizer made a tensor */
  S->collecting = true;
  if (weight < S->base) set_base(L, S, weight);
  int64_t grown = weight - S->base;
  if (grown > S->budget) {
    lua_gc(L, LUA_GCCOLLECT);
    set_base(L, S, lt_lua_weight(S));
  } else {
    /* The share of the budget that was used, in bytes of Lua's heap: a whole budget is a whole
     * heap. */
    int64_t share = heap_bytes(L) / 1024 * (weight - S->mark) / S->budget;
    lua_gc(L, LUA_GCSTEP, (int)(share > INT32_MAX / 2048 ? INT32_MAX / 2048 : share + 1));
  }
  S->mark = lt_lua_weight(S);
  S->collecting = false;
}

/* The core ran out of memory: what only the collector holds on to may make room. */
static bool under_pressure(void *context, size_t wanted) {
  lt_Lua *S = context;
  (void)wanted;
  if (!S->L || S->collecting) return false;
  int64_t before = lt_memory_live();
  S->collecting = true;
  lua_gc(S->L, LUA_GCCOLLECT);
  S->collecting = false;
  set_base(S->L, S, lt_lua_weight(S));
  S->mark = S->base;
  return lt_memory_live() < before;
}

void lt_lua_open_memory(lua_State *L, lt_Lua *S) {
  set_base(L, S, lt_lua_weight(S));
  S->mark = S->base;
  lt_memory_on_pressure(under_pressure, S);
  lt_memory_on_where(lt_lua_where, S);
}
