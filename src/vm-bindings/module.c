/* module.c: opens the module "lutra.core": creates the state and calls the open function of each
 * part. lib/lutra.lua builds the module that users see from it. */
#define _GNU_SOURCE
#include "bindings.h"

#include <dlfcn.h>

#define STATE "lutra.state"

static int state_gc(lua_State *L) {
  lt_Lua *S = luaL_checkudata(L, 1, STATE);
  /* A direct call by a program does nothing: the collector is not running finalizers then. */
  if (lua_gc(L, LUA_GCISRUNNING) != 1) lt_lua_end_state(S);
  return 0;
}

/* Creates the weak table of the boxes that lt_lua_push_same returns again. */
static void open_cache(lua_State *L, lt_Lua *S) {
  lua_newtable(L);
  lua_newtable(L);
  lua_pushliteral(L, "v");
  lua_setfield(L, -2, "__mode");
  lua_setmetatable(L, -2);
  S->cache_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* Records the iterator of ipairs, the only function that may read one past the end of a tensor. */
static void find_ipairs(lua_State *L, lt_Lua *S) {
  lua_getglobal(L, "ipairs");
  if (lua_isfunction(L, -1)) {
    lua_newtable(L);
    lua_call(L, 1, 1);
  }
  S->ipairs_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

/* _library(source): sets the location of the library's Lua files, from debug.getinfo(1, "S").source
 * of lutra.lua. Errors are raised at the nearest line outside of these files. */
static int set_library(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  const char *source = luaL_checkstring(L, 1), *end = strrchr(source, '.');
  size_t n = end ? (size_t)(end - source) : 0;
  if (source[0] == '@' && n < sizeof S->root) {
    memcpy(S->root, source, n);
    S->root[n] = 0;
  }
  return 0;
}

/* _explain(f): registers the function that is called when an error is about two tensors on
 * different devices: f(a, memory of a, b, memory of b), identities as _identity and _memory return
 * them. It returns a table with the fields of lt_TensorLabel for each, and lines to append to the
 * message. */
static int set_explain(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_unref(L, LUA_REGISTRYINDEX, S->explain_ref);
  lua_settop(L, 1);
  S->explain_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

/* _error_path(f): registers the function that is called when an error is raised: f() returns what
 * is put before its message, the path of the module that is being called, or nil. */
static int set_error_path(lua_State *L) {
  lt_Lua *S = lt_lua_state(L);
  luaL_checktype(L, 1, LUA_TFUNCTION);
  luaL_unref(L, LUA_REGISTRYINDEX, S->path_ref);
  lua_settop(L, 1);
  S->path_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}

/* _identity(x) -> a lightuserdata that identifies the tensor x; nil when x is no tensor */
static int identity_of(lua_State *L) {
  lua_settop(L, 1);
  const lt_Box *box = lt_lua_to_box(L, 1);
  if (box && box->tensor)
    lua_pushlightuserdata(L, box->tensor);
  else
    lua_pushnil(L);
  return 1;
}

/* _memory(x) -> a lightuserdata that identifies x's storage, and its size in bytes; nil and 0 when
 * x was freed */
static int memory_of(lua_State *L) {
  const lt_Box *box = lt_lua_to_box(L, 1);
  if (box && lt_lua_is_freed(box)) {
    lua_pushnil(L);
    lua_pushinteger(L, 0);
    return 2;
  }
  lt_Storage *storage = lt_lua_check(L, 1, "_memory", "x")->storage;
  lua_pushlightuserdata(L, storage);
  lua_pushinteger(L, (lua_Integer)storage->nbytes);
  return 2;
}

/* Opens all parts. Runs as a closure with the two common upvalues, like every function of the
 * module; the table of the module is at index 1. */
static int open_parts(lua_State *L) {
  static const luaL_Reg own[] = {{"_library", set_library},       {"_explain", set_explain},
                                 {"_error_path", set_error_path}, {"_identity", identity_of},
                                 {"_memory", memory_of},          {NULL, NULL}};
  lua_newtable(L); /* the table of methods */
  lua_newtable(L); /* the table of every op by its own name, internal ones included */
  lua_pushvalue(L, lua_upvalueindex(LT_UP_META));
  lt_lua_enter(L, lt_lua_state(L));
  lt_lua_open_state(L, 1, 2);
  lt_lua_open_box(L, 2, 1);
  lt_lua_open_operators(L, 4);
  lt_lua_open_ops(L, 1, 2, 3);
  lt_lua_open_errors(L, 1, 2);
  lt_lua_open_create(L, 1, 2);
  lt_lua_open_complex(L, 1, 2);
  lt_lua_open_print(L, 1, 2);
  lt_lua_open_methods(L, 1, 2);
  lt_lua_open_hooks(L, 1, 2);
  lt_lua_open_autograd(L, 1, 2);
  lt_lua_open_graph(L, 1, 2);
  lt_lua_open_random(L, 1, 2);
  lt_lua_open_devices(L, 1, 2);
  lt_lua_open_accelerator(L, 1, 2);
  lt_lua_open_describe(L, 1, 2);
  lt_lua_open_signature(L, 1, 2);
  lt_lua_open_files(L, 1, 2);
  lt_lua_open_sources(L, 1, 2);
  lt_lua_open_images(L, 1, 2);
  lt_lua_open_trace(L, 1, 2);
  lt_lua_open_kernel(L, 1, 2);
  lt_lua_open_recorder(L, 1, 2);
  lt_lua_open_program(L, 1, 2);
  lt_lua_open_plan(L, 1, 2);
  lt_lua_open_workers(L, 1, 2);
  lt_lua_open_communication(L, 1, 2);
  lua_settop(L, 3);
  lua_setfield(L, 1, "_ops");
  lua_setfield(L, 1, "_methods");
  lt_lua_setfuncs(L, own);
  lua_pushliteral(L, LT_VERSION);
  lua_setfield(L, 1, "_VERSION");
  lt_lua_open_memory(L, lt_lua_state(L));
  return 1;
}

/* Prevents unloading. Lua unloads C modules when a state is closed, but threads of OpenMP and of
 * the BLAS library may still wait in code of this one. */
static void stay_loaded(void) {
  Dl_info info;
  union {
    lua_CFunction function;
    void *address;
  } self = {luaopen_lutra_core};
  if (dladdr(self.address, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
}

int luaopen_lutra_core(lua_State *L) {
  static const char key = 0; /* key of the module: opened once for each Lua state */
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &key) == LUA_TTABLE) return 1;
  stay_loaded();
  if (!lt_environment_check()) return luaL_error(L, "%s", lt_error());
  luaL_requiref(L, "lutra.files", luaopen_lutra_files, 0);
  lua_pop(L, 1);
  lt_Lua *S = lua_newuserdatauv(L, sizeof *S, 0);
  memset(S, 0, sizeof *S);
  S->pending_ref = S->explain_ref = S->path_ref = S->summary_ref = LUA_NOREF;
  luaL_newmetatable(L, STATE);
  lua_pushcfunction(L, state_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  lt_lua_begin_state(L, S);
  open_cache(L, S);
  find_ipairs(L, S);
  lua_newtable(L); /* the metatable of boxes */
  lua_pushcclosure(L, open_parts, 2);
  lua_newtable(L);
  lua_call(L, 1, 1);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
  return 1;
}
