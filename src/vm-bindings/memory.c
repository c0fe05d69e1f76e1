/* memory.c: makes Lua's collector account for the memory of tensors.
 *
 * Lua sees a box of a few bytes where a gigabyte may be attached. So this file tracks the weight of
 * all tensors: the bytes of live storages, and half a kilobyte of headers for each tensor.
 *
 * After each batch of growth there is a step of the collector (pace.h). In its generational mode,
 * which this module selects, a step finds the tensors that were created and dropped since the last
 * one, in about a microsecond: results then reuse a few blocks of memory, which are still in the
 * processor's caches. In the incremental mode the batch is charged as if Lua had allocated it.
 *
 * The registers of a Lua function are in use until they are written again, so with a step after
 * each op the first operand of `x * x + 7 * y` would become old: hence the gap between two steps.
 * `x + y` in a loop then works with 2 blocks of memory, `x * x + 7 * y` with 4.
 *
 * When the weight has grown by a budget since the last complete collection, there is another one.
 * The budget grows with the memory that stays alive and with Lua's own heap, as the pause of Lua's
 * collector does, so collecting stays a small part of the cost of allocating.
 *
 * Freed memory stays with the process for later tensors; after a cycle of the collector that
 * finalized very many boxes it is returned to the system.
 *
 * Invariant: weight <= reachable weight + budget + one batch, in every mode of the collector. */
#include "bindings.h"
#include "trace.h"

enum {
  SMALLEST_BUDGET = 52 << 20, /* some 64 MiB with what is in use then, rounded up to classes */
  FINALIZER_TIME = 150,       /* nanoseconds to finalize a box, whenever that is */
};

static int64_t heap_bytes(lua_State *L) { return (int64_t)lua_gc(L, LUA_GCCOUNT) * 1024; }

/* Starts a new budget: at least SMALLEST_BUDGET, half of the live weight, and three times Lua's
 * heap. */
static void set_base(lua_State *L, lt_Lua *S, int64_t weight) {
  S->base = weight;
  S->budget = SMALLEST_BUDGET;
  if (S->base / 2 > S->budget) S->budget = S->base / 2;
  if (3 * heap_bytes(L) > S->budget) S->budget = 3 * heap_bytes(L);
}

/* Counts a step from `begin` on that finalized this many boxes, after growth by `grown`. */
static void count_step(lt_Lua *S, int64_t begin, int64_t finalized, int64_t grown) {
  int64_t end = lt_trace_now();
  lt_StepCost cost = {.time = end - S->step_end,
                      .step = end - begin,
                      .finalizers = finalized * FINALIZER_TIME,
                      .grown = grown};
  S->step_end = end;
  lt_batch_count(&S->batch, &cost, S->budget / 4);
}

/* Runs a step of the collector after the weight has grown by `grown` since the last one; none when
 * the program has stopped it. */
static void step(lua_State *L, lt_Lua *S, int64_t grown) {
  if (!lua_gc(L, LUA_GCISRUNNING)) return;
  int64_t begin = lt_trace_now(), cycles = S->cycles, boxes = S->boxes;
  lua_gc(L, LUA_GCSTEP, 0);
  if (S->cycles == cycles) { /* in the middle of a cycle: the mode is incremental */
    /* The share of the budget that was used, as a share of Lua's heap: a whole budget pays for a
     * pass over the whole heap. */
    int64_t share = heap_bytes(L) / 1024 * grown / S->budget;
    lua_gc(L, LUA_GCSTEP, (int)(share > INT32_MAX / 2048 ? INT32_MAX / 2048 : share + 1));
  }
  count_step(S, begin, boxes - S->boxes, grown);
}

/* Runs a complete collection. When it frees most of the growth of many boxes, they were old: the
 * gap becomes wider. */
static void collect_all(lua_State *L, lt_Lua *S) {
  int64_t before = lt_lua_weight(S) - S->base;
  lua_gc(L, LUA_GCCOLLECT);
  int64_t weight = lt_lua_weight(S);
  if (2 * (weight - S->base) < before && S->created - S->completed > S->gap.boxes)
    lt_gap_widen(&S->gap);
  S->completed = S->created;
  lt_gap_begin(&S->gap, weight);
  set_base(L, S, weight);
}

void lt_lua_collect(lua_State *L, lt_Lua *S, int64_t weight) {
  if (S->collecting) return; /* called again by a finalizer that creates a tensor */
  if (weight < S->base) set_base(L, S, weight);
  bool spent = weight - S->base > S->budget;
  if (!spent && S->created - S->stepped < S->gap.next) return;
  S->collecting = true;
  int64_t grown = weight - S->mark;
  step(L, S, grown);
  lt_gap_count(&S->gap, lt_lua_weight(S), grown);
  if (lt_lua_weight(S) - S->base > S->budget) collect_all(L, S);
  S->mark = lt_lua_weight(S);
  S->interval = S->created - S->stepped;
  S->stepped = S->created;
  S->collecting = false;
}

/* Called by the core when it is out of memory: frees tensors that only the collector still refers
 * to. */
bool lt_lua_under_pressure(void *context, size_t requested) {
  lt_Lua *S = context;
  (void)requested;
  if (S->collecting || !lt_lua_is_running(S)) return false;
  int64_t before = lt_memory_live();
  S->collecting = true;
  lua_State *L = S->L;
  lua_gc(L, LUA_GCCOLLECT);
  S->collecting = false;
  lt_lua_enter(L, S); /* a finalizer may have run a coroutine */
  set_base(L, S, lt_lua_weight(S));
  S->mark = S->base;
  return lt_memory_live() < before;
}

/* ---- free memory ----------------------------------------------------------------------------- */

/* Boxes that a cycle must finalize before memory is returned. Fewer small tensors reach the budget
 * first (SMALLEST_BUDGET), unless the program keeps very many. */
enum { TRIM_LEAST = 1 << 18 };

/* Called once in each cycle of the collector or step of its generational mode, after the sweep, as
 * the finalizer of an unreachable object, and creates the next such object; with any other object
 * it does nothing. Trimming costs time in a program that finalizes as many tensors in every cycle
 * and needs the memory again at once: so a trim doubles the number required for the next one, and
 * each cycle without one lowers it by an eighth. */
static int cycle_ended(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  if (!S->watcher || lua_touserdata(L, 1) != S->watcher || !lua_getmetatable(L, 1)) return 0;
  bool many = S->finalized >= S->trim_least;
  if (many || S->trim_again) lt_memory_trim();
  S->trim_least = many ? 2 * S->finalized : S->trim_least - S->trim_least / 8;
  if (S->trim_least < TRIM_LEAST) S->trim_least = TRIM_LEAST;
  S->trim_again = many;
  S->finalized = 0;
  S->cycles++;
  S->watcher = lua_newuserdatauv(L, 0, 0);
  lua_insert(L, -2);
  lua_setmetatable(L, -2);
  return 0;
}

/* Creates the first of the objects whose finalizer is cycle_ended. */
static void watch_cycles(lua_State *L, lt_Lua *S) {
  static const luaL_Reg finalizer = {"__gc", cycle_ended};
  S->watcher = lua_newuserdatauv(L, 0, 0);
  lua_createtable(L, 0, 1);
  lt_lua_function(L, &finalizer);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lua_pop(L, 1);
}

void lt_lua_open_memory(lua_State *L, lt_Lua *S) {
  S->trim_least = TRIM_LEAST;
  lt_batch_init(&S->batch);
  lt_gap_init(&S->gap);
  S->step_end = lt_trace_now();
  lua_gc(L, LUA_GCGEN, 0, 0);
  watch_cycles(L, S);
  set_base(L, S, lt_lua_weight(S));
  S->mark = S->base;
}
