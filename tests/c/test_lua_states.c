/* test_lua_states.c: several Lua states on one thread. Each has its own modes and defaults, and the
 * core's callbacks go to the running state, in whatever order states are opened and closed. */
#include "check.h"
#include "core.h"
#include "vm-bindings/lutra_lua.h"

#include <lauxlib.h>
#include <lualib.h>

/* where() -> the core's description of the running line; pressed() -> the state that it would ask
 * for memory, as a lightuserdata, or nil */
static int where(lua_State *L) {
  char text[64];
  lt_memory_where(text, sizeof text);
  lua_pushstring(L, text);
  return 1;
}

static int pressed(lua_State *L) {
  const lt_Thread *th = lt_thread();
  if (th->pressure)
    lua_pushlightuserdata(L, th->pressure_context);
  else
    lua_pushnil(L);
  return 1;
}

/* press() -> true when memory could be freed */
static int press(lua_State *L) {
  lt_Thread *th = lt_thread();
  lua_pushboolean(L, th->pressure && th->pressure(th->pressure_context, 1));
  return 1;
}

static lua_State *open_state(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  luaL_requiref(L, "lutra.core", luaopen_lutra_core, 0);
  lua_setglobal(L, "lt");
  lua_register(L, "where", where);
  lua_register(L, "pressed", pressed);
  lua_register(L, "press", press);
  return L;
}

/* Runs code and returns its last result as a string; "failed: ..." on an error. Valid until the
 * next call. */
static const char *run(lua_State *L, const char *code) {
  static char text[512];
  bool ok =
      luaL_loadbuffer(L, code, strlen(code), "=code") == LUA_OK && lua_pcall(L, 0, 1, 0) == LUA_OK;
  const char *result = luaL_tolstring(L, -1, NULL);
  snprintf(text, sizeof text, "%s%s", ok ? "" : "failed: ", result);
  lua_settop(L, 0);
  return text;
}

static void modes_are_independent(void) {
  lua_State *a = open_state(), *b = open_state();
  run(a,
      "lt.set_default_dtype 'float64'; lt.set_default_device 'meta'; lt.set_grad_enabled(false); "
      "lt.set_fallback(true)");
  const char *all =
      "return lt.ones(1).dtype .. ' ' .. lt.ones(1).device .. ' ' .. "
      "tostring(lt.is_grad_enabled()) .. ' ' .. tostring(lt.is_inference_mode_enabled())";
  CHECK_STR(run(a, "return tostring(lt.get_fallback())"), "true");
  CHECK_STR(run(b, "return tostring(lt.get_fallback())"), "false");
  CHECK_STR(run(b, all), "float32 cpu true false");
  CHECK_STR(run(a, all), "float64 meta false false");
  run(b, "lt._scope_inference(true)");
  CHECK_STR(run(a, all), "float64 meta false false");
  CHECK_STR(run(b, all), "float32 cpu true true");
  lua_close(a);
  CHECK_STR(run(b, all), "float32 cpu true true");
  a = open_state();
  CHECK_STR(run(a, all), "float32 cpu true false");
  CHECK_STR(run(b, all), "float32 cpu true true");
  lua_close(a);
  lua_close(b);
}

static void modes_of_the_program_are_restored(void) {
  CHECK(lt_grad_set_enabled(false));
  CHECK(lt_dtype_set_default(LT_float64));
  lua_State *L = open_state();
  CHECK_STR(run(L, "return tostring(lt.is_grad_enabled()) .. lt.get_default_dtype()"),
            "falsefloat64");
  run(L, "lt.set_default_dtype 'float16'; lt._scope_inference(true); lt.set_grad_enabled(true)");
  lua_close(L);
  CHECK(!lt_grad_set_enabled(true));
  CHECK(!lt_inference_enabled());
  CHECK_INT(lt_dtype_default(), LT_float64);
  lt_dtype_set_default(LT_float32);
}

static void callbacks_go_to_the_running_state(void) {
  lua_State *a = open_state(), *b = open_state();
  CHECK_STR(run(a, "lt.ones(1)\nreturn where()"), "code:2");
  CHECK_STR(run(b, "lt.ones(1)\n\nreturn where()"), "code:3");
  char first[64];
  snprintf(first, sizeof first, "%s", run(a, "lt.ones(1) return pressed()"));
  CHECK(strcmp(first, "nil") != 0);
  CHECK(strcmp(first, run(b, "lt.ones(1) return pressed()")) != 0);
  CHECK_STR(run(a, "lt.ones(1) return pressed()"), first);
  lua_close(b);
  CHECK_STR(run(a, "lt.ones(1) return pressed()"), first);
  CHECK_STR(run(a, "lt.ones(1)\nreturn where()"), "code:2");
  CHECK_STR(run(a, "for i = 1, 10 do lt.ones(1000) end return press()"), "true");
  lua_close(a);
  char text[64];
  lt_memory_where(text, sizeof text);
  CHECK_STR(text, "");
  CHECK(lt_thread()->pressure == NULL && lt_thread()->host == NULL);
}

/* Closed in the order in which they were opened; the second is closed while the first is the
 * host. */
static void any_order_of_closing(void) {
  lua_State *a = open_state(), *b = open_state(), *c = open_state();
  run(a, "x = lt.ones(2)");
  run(b, "x = lt.ones(2)");
  run(a, "x = x + 1");
  lua_close(b);
  CHECK_STR(run(a, "lt.ones(1)\nreturn where()"), "code:2");
  CHECK_STR(run(c, "lt.ones(1)\nreturn where()"), "code:2");
  lua_close(a);
  CHECK_STR(run(c, "lt.ones(1)\nreturn where()"), "code:2");
  lua_close(c);
}

static char kept[128]; /* the argument of `keep` */

static int keep_text(lua_State *L) {
  snprintf(kept, sizeof kept, "%s", luaL_tolstring(L, 2, NULL));
  return 0;
}

/* A closed state runs the finalizers of objects older than Lutra last. */
static void finalizers_after_the_end(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "keep", keep_text);
  run(L, "late = setmetatable({}, {__gc = function() keep(pcall(lt.ones, 3)) end})");
  luaL_requiref(L, "lutra.core", luaopen_lutra_core, 0);
  lua_setglobal(L, "lt");
  run(L, "lt.ones(1)");
  lua_close(L);
  CHECK_STR(kept, "lutra: cannot call a function: the Lua state is being closed");
  CHECK(lt_thread()->host == NULL && lt_thread()->pressure == NULL && lt_grad_enabled());
}

/* One state runs another from a C function. */
static int run_other(lua_State *L) {
  lua_State *other = lua_touserdata(L, lua_upvalueindex(1));
  run(other, "lt.set_grad_enabled(false); lt.ones(1)");
  return 0;
}

static void nested_states(void) {
  lua_State *a = open_state(), *b = open_state();
  lua_pushlightuserdata(a, b);
  lua_pushcclosure(a, run_other, 1);
  lua_setglobal(a, "run_other");
  CHECK_STR(run(a, "lt.ones(1); run_other(); return tostring(lt.is_grad_enabled())"), "true");
  CHECK_STR(run(a, "run_other()\nlt.ones(1)\nreturn where()"), "code:3");
  CHECK_STR(run(b, "return tostring(lt.is_grad_enabled())"), "false");
  lua_close(b);
  lua_close(a);
}

/* A recorder records its own state only. */
static void recorders_are_independent(void) {
  lua_State *a = open_state(), *b = open_state();
  run(a, "r = lt._trace.record {where = true}");
  run(b, "lt.ones(1); lt.ones(2)");
  CHECK_STR(run(a, "return (r:count())"), "0");
  run(a, "lt.zeros(3)");
  CHECK_STR(run(a, "return r:event(1, {}).where"), "code:1");
  lua_close(a);
  run(b, "lt.ones(1)");
  lua_close(b);
  CHECK(lt_thread()->tracers == NULL);
}

int main(void) {
  RUN(modes_are_independent);
  RUN(modes_of_the_program_are_restored);
  RUN(callbacks_go_to_the_running_state);
  RUN(any_order_of_closing);
  RUN(finalizers_after_the_end);
  RUN(nested_states);
  RUN(recorders_are_independent);
  return check_end();
}
