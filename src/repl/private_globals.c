// private_globals.c: gives the library's Lua modules private globals, which programs cannot change.
//
// All modules of a Lua state share one table of globals: after `table = {}` or `error = 0.3` at the
// prompt, or package.path = "", the prompt itself would fail. So modules named lutra or lutra.* are
// loaded with private globals: copies of Lua's, made before any user code runs.
//
// Invariant: in these globals, _G is the program's table of globals, and package.path,
// package.searchers and other fields that a program may set are the program's; all else is a copy.
// Methods of strings are the exception: there is one metatable for all strings, so they are found
// in the program's `string`.
#include "repl.h"

#include <lauxlib.h>
#include <string.h>

static const char key_globals = 0; // registry key of the private globals
static const char key_package = 0; // registry key of the program's `package`

static void push_private_globals(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &key_globals); }

static bool is_library_module(const char *module) {
  return strncmp(module, "lutra", 5) == 0 && (module[5] == '\0' || module[5] == '.');
}

// Pushes a shallow copy of the table at `from`.
static void push_copy(lua_State *L, int from) {
  from = lua_absindex(L, from);
  lua_newtable(L);
  lua_pushnil(L);
  while (lua_next(L, from)) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
}

// Pushes the file name of a module, searched with `path`; nil if it is not found.
static void push_file(lua_State *L, const char *module, const char *path) {
  push_private_globals(L);
  lua_getfield(L, -1, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushstring(L, module);
  lua_pushstring(L, path);
  lua_call(L, 2, 1);
  lua_replace(L, -3);
  lua_pop(L, 1);
}

// Implements a searcher of package.searchers for modules of Lutra: searches package.path, then the
// path of the start (upvalue 1).
static int search(lua_State *L) {
  const char *module = luaL_checkstring(L, 1);
  if (!is_library_module(module)) return 0;
  lua_settop(L, 1);
  lua_rawgetp(L, LUA_REGISTRYINDEX, &key_package);
  lua_pushliteral(L, "path");
  lua_rawget(L, 2);
  if (lua_type(L, 3) == LUA_TSTRING)
    push_file(L, module, lua_tostring(L, 3));
  else
    lua_pushnil(L);
  if (lua_isnil(L, -1)) push_file(L, module, lua_tostring(L, lua_upvalueindex(1)));
  if (lua_isnil(L, -1)) return 0;
  const char *file = lua_tostring(L, -1);
  if (luaL_loadfile(L, file) != LUA_OK)
    return luaL_error(L, "error loading module '%s' from file '%s':\n\t%s", module, file,
                      lua_tostring(L, -1));
  push_private_globals(L);
  lua_setupvalue(L, -2, 1);
  lua_insert(L, -2);
  return 2;
}

// Pushes the loader of a module of Lutra and its second argument: from package.preload, where the
// namespaces of ops are, else from a file, by `search` (upvalue 1). Pushes nil, nil if none exists.
// The stack holds the module's name and two more values.
static void push_loader(lua_State *L, const char *module) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  if (is_library_module(module) && lua_getfield(L, -1, module) == LUA_TFUNCTION) {
    lua_replace(L, -2);
    lua_pushliteral(L, ":preload:");
    return;
  }
  lua_settop(L, 3);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, 1);
  lua_call(L, 1, 2);
}

// Implements `require` for Lutra's modules: as Lua's (upvalue 2), but changes that a program makes
// to `package` do not hide these modules. Upvalue 1 is `search`.
static int private_require(lua_State *L) {
  const char *module = luaL_checkstring(L, 1);
  lua_settop(L, 1);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, 2, module);
  if (lua_toboolean(L, -1)) return 1;
  push_loader(L, module); // index 4: the loader, 5: its file name
  if (!lua_isfunction(L, 4)) {
    lua_pushvalue(L, lua_upvalueindex(2));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
  }
  lua_pushvalue(L, 4);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 5);
  lua_call(L, 2, 1);
  if (!lua_isnil(L, -1)) lua_setfield(L, 2, module);
  if (lua_getfield(L, 2, module) == LUA_TNIL) {
    lua_pushboolean(L, 1);
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, module);
  }
  return 1;
}

// Inserts `search` before the searchers of files; leaves it on the stack.
static void add_searcher(lua_State *L, int package) {
  lua_getfield(L, package, "path");
  lua_pushcclosure(L, search, 1);
  lua_getfield(L, package, "searchers");
  for (lua_Integer i = luaL_len(L, -1); i >= 2; i--) {
    lua_rawgeti(L, -1, i);
    lua_rawseti(L, -2, i + 1);
  }
  lua_pushvalue(L, -2);
  lua_rawseti(L, -2, 2);
  lua_pop(L, 1);
}

// Pushes a `package` whose constant fields are copies; all other fields are the program's.
static void push_package(lua_State *L, int package) {
  static const char *const fixed[] = {"loaded", "preload", "searchpath", "config"};
  lua_newtable(L);
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
    lua_getfield(L, package, fixed[i]);
    lua_setfield(L, -2, fixed[i]);
  }
  lua_newtable(L);
  lua_pushvalue(L, package);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
}

void lt_repl_private_globals_open(lua_State *L) {
  int top = lua_gettop(L);
  lua_pushglobaltable(L);
  push_copy(L, -1); // top + 2
  lua_pushnil(L);
  while (lua_next(L, top + 1)) {
    bool library = lua_istable(L, -1) && !lua_rawequal(L, -1, top + 1);
    if (library) {
      push_copy(L, -1);
      lua_setfield(L, top + 2, lua_tostring(L, -3));
    }
    lua_pop(L, 1);
  }
  lua_getglobal(L, "package"); // top + 3
  push_package(L, top + 3);
  lua_setfield(L, top + 2, "package");
  add_searcher(L, top + 3);
  lua_getglobal(L, "require");
  lua_pushcclosure(L, private_require, 2);
  lua_setfield(L, top + 2, "require");
  lua_rawsetp(L, LUA_REGISTRYINDEX, &key_package);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &key_globals);
  lua_settop(L, top);
}

void lt_repl_private_require(lua_State *L) {
  push_private_globals(L);
  lua_getfield(L, -1, "require");
  lua_replace(L, -2);
}
