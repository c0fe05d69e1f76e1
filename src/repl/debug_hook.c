// The hook of a notebook's debugger: calls a Lua function at the lines where a program may have to
// stop, and every few milliseconds, so that the debugger's requests are answered while a cell runs.
//
// A hook belongs to one coroutine. This one is set in every coroutine that runs while a debugger is
// attached: a new coroutine inherits it from its creator, lt_repl_resume sets it in the others, and
// interrupt.c restores it after an interrupt.
//
// Lines are events only while there are breakpoints or a step, as each event costs time. A line is
// first looked up in a set of line numbers, whatever the file; the Lua function decides. Where it
// answers that another file has the breakpoint, the place is remembered and skipped.
//
// Invariant: the function is not called while it runs, so that code it evaluates does not stop.
// A hook has no argument, so its state is file-scope: one process, one debugger.
#define _XOPEN_SOURCE 700
#include "repl.h"

#include <lauxlib.h>
#include <limits.h>
#include <string.h>
#include <time.h>

enum {
  LINES = 1 << 12,        // line numbers are stored modulo LINES
  INSTRUCTIONS = 1000,    // between two looks at the clock
  POLL_NS = 10 * 1000000, // between two polls
  PLACES = 256,           // that are remembered
  LONGEST = 64,           // name of a chunk in a place, in bytes
};

// A line without a breakpoint whose number one elsewhere has.
struct place {
  int line; // 0: none
  char chunk[LONGEST];
};

static struct {
  int function;                // its reference in the registry, or LUA_NOREF: not attached
  bool inside;                 // the function runs
  int breakpoints;             // number of lines in `lines`
  unsigned char lines[LINES];  // whether there may be a breakpoint
  struct place others[PLACES]; // by the line's number
  int depth;                   // a step: stop at a line with at most this many calls below it; or 0
  lua_State *stepping;         // the coroutine of the step, whose depth counts
  struct timespec polled;
} debugger = {.function = LUA_NOREF};

static bool is_attached(void) { return debugger.function != LUA_NOREF; }

static int wanted_mask(void) {
  bool lines = debugger.breakpoints || debugger.depth;
  return LUA_MASKCOUNT | (lines ? LUA_MASKLINE : 0);
}

// Calls the function with the reason, "line" or "poll", and the line. Returns whether the line has
// no breakpoint. Passes on its error.
static bool call(lua_State *L, const char *reason, int line) {
  luaL_checkstack(L, 4, NULL);
  lua_rawgeti(L, LUA_REGISTRYINDEX, debugger.function);
  lua_pushstring(L, reason);
  lua_pushinteger(L, line);
  debugger.inside = true;
  int status = lua_pcall(L, 2, 1, 0);
  debugger.inside = false;
  if (status != LUA_OK) lua_error(L);
  bool none = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return none;
}

// Returns whether the time for a poll has come.
static bool must_poll(void) {
  struct timespec now, last = debugger.polled;
  clock_gettime(CLOCK_MONOTONIC, &now);
  long long ns = (long long)(now.tv_sec - last.tv_sec) * 1000000000 + now.tv_nsec - last.tv_nsec;
  if (ns >= 0 && ns < POLL_NS) return false;
  debugger.polled = now;
  return true;
}

// Returns whether a step may end at a line of L.
static bool may_end_step(lua_State *L) {
  lua_Debug ar;
  if (!debugger.depth) return false;
  // In another coroutine the function decides: it may be called by the one of the step or not.
  return debugger.depth == INT_MAX || L != debugger.stepping ||
         !lua_getstack(L, debugger.depth, &ar);
}

// Handles a line event.
static void at_line(lua_State *L, lua_Debug *ar) {
  bool steps = may_end_step(L);
  if (!steps && !debugger.lines[ar->currentline % LINES]) return;
  lua_getinfo(L, "S", ar);
  struct place *other = &debugger.others[ar->currentline % PLACES];
  bool known = other->line == ar->currentline && strcmp(other->chunk, ar->source) == 0;
  if (known && !steps) return;
  int line = ar->currentline;
  if (!call(L, "line", line) || ar->srclen >= LONGEST || known) return;
  other->line = line;
  memcpy(other->chunk, ar->source, ar->srclen + 1);
}

static void debug_hook(lua_State *L, lua_Debug *ar) {
  if (debugger.inside) return;
  bool line = ar->event == LUA_HOOKLINE;
  if (is_attached() && line) at_line(L, ar);
  if (is_attached() && !line && must_poll()) call(L, "poll", 0);
  lt_repl_debug_follow(L);
}

void lt_repl_debug_follow(lua_State *L) {
  lua_Hook hook = lua_gethook(L);
  if (hook && hook != debug_hook) return;
  if (!is_attached()) {
    if (hook) lua_sethook(L, NULL, 0, 0);
    return;
  }
  if (!hook || lua_gethookmask(L) != wanted_mask())
    lua_sethook(L, debug_hook, wanted_mask(), INSTRUCTIONS);
}

// Makes the change of what is an event effective in the running coroutine at once; in others it is
// at their next event. A coroutine that runs no user code has no hook.
static void apply(lua_State *L) {
  if (lua_gethook(L) == debug_hook) lt_repl_debug_follow(L);
}

// debug_hook(function) attaches a debugger; debug_hook() detaches it. function(reason, line) is
// called in a hook of the running coroutine: reason "line" at a line that may be a stop, "poll"
// every 10 ms or so. It returns true when the line has no breakpoint, which then holds until
// debug_lines is called.
static int host_debug_hook(lua_State *L) {
  bool attach = !lua_isnoneornil(L, 1);
  if (attach) luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_unref(L, LUA_REGISTRYINDEX, debugger.function);
  memset(&debugger, 0, sizeof debugger);
  debugger.function = LUA_NOREF;
  if (attach) {
    lua_settop(L, 1);
    debugger.function = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  apply(L);
  return 0;
}

// debug_lines(list): the numbers of the lines with breakpoints, in any file.
static int host_debug_lines(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  memset(debugger.lines, 0, sizeof debugger.lines);
  memset(debugger.others, 0, sizeof debugger.others);
  debugger.breakpoints = 0;
  for (lua_Integer i = 1; lua_rawgeti(L, 1, i) != LUA_TNIL; i++) {
    lua_Integer line = luaL_checkinteger(L, -1);
    if (line > 0) debugger.lines[line % LINES] = 1;
    debugger.breakpoints++;
    lua_pop(L, 1);
  }
  apply(L);
  return 0;
}

// debug_step(co, calls): reports lines of coroutine `co` with at most `calls` calls below them
// (nil: all lines), and all lines of other coroutines. debug_step() ends this.
static int host_debug_step(lua_State *L) {
  debugger.stepping = lua_isnoneornil(L, 1) ? NULL : lua_tothread(L, 1);
  debugger.depth = 0;
  if (lua_isnoneornil(L, 1)) return 0;
  luaL_argexpected(L, debugger.stepping, 1, "coroutine");
  debugger.depth = lua_isnoneornil(L, 2) ? INT_MAX : (int)luaL_checkinteger(L, 2) + 1;
  apply(L);
  return 0;
}

void lt_repl_open_debug_hook(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"debug_hook", host_debug_hook},
      {"debug_lines", host_debug_lines},
      {"debug_step", host_debug_step},
      {NULL, NULL},
  };
  luaL_setfuncs(L, functions, 0);
}
