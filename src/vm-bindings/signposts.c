/* signposts.c: marks each op for the profiler of the operating system (lt.mps.profiler), by the
 * function `mark` of a backend.
 *
 * Invariant: each interval that a started object has opened is closed by it: it is started and
 * stopped between ops, never inside one. */
#include "accelerator.h"
#include "trace.h"

#define SIGNPOSTS "lutra.signposts"

typedef struct Signposts {
  lt_Tracer tracer;
  const lt_Backend *backend;
  bool intervals, on;
} Signposts;

static void on_begin(void *context, const char *name) {
  const Signposts *s = context;
  if (s->intervals) s->backend->mark(name);
}

/* Without intervals an op is one instant, at its end. */
static void on_event(void *context, const lt_TraceEvent *event) {
  const Signposts *s = context;
  if (event->kind != LT_TRACE_OP) return;
  if (!s->intervals) s->backend->mark(event->name);
  s->backend->mark(NULL);
}

static int signposts_stop(lua_State *L) {
  Signposts *s = luaL_checkudata(L, 1, SIGNPOSTS);
  if (s->on) lt_trace_remove(&s->tracer);
  s->on = false;
  return 0;
}

/* signposts(device, intervals, wait) -> an object with stop(); nil where the device has no marks.
 * intervals: each op is an interval, otherwise an instant. wait: the host blocks on each op, so
 * that its interval includes the work of the device. */
static int signposts_new(lua_State *L) {
  lt_Device d = lt_lua_full_device(L, 1);
  const lt_Backend *b = lt_device_backend(d.type);
  if (!b->mark) return 0;
  bool intervals = lua_toboolean(L, 2), wait = lua_toboolean(L, 3);
  Signposts *s = lua_newuserdatauv(L, sizeof *s, 0);
  *s = (Signposts){.tracer = {.on_begin = on_begin, .on_event = on_event, .wait = wait},
                   .backend = b,
                   .intervals = intervals,
                   .on = true};
  s->tracer.context = s;
  luaL_setmetatable(L, SIGNPOSTS);
  lt_trace_add(&s->tracer);
  return 1;
}

void lt_lua_open_signposts(lua_State *L) {
  static const luaL_Reg meta[] = {
      {"__gc", signposts_stop}, {"__close", signposts_stop}, {NULL, NULL}};
  static const luaL_Reg own[] = {{"stop", signposts_stop}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"signposts", signposts_new}, {NULL, NULL}};
  luaL_newmetatable(L, SIGNPOSTS);
  lt_lua_setfuncs(L, meta);
  lua_newtable(L);
  lt_lua_setfuncs(L, own);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  lt_lua_setfuncs(L, functions);
}
