/* lutra_lua.h: the interface for C programs that embed Lua and Lutra.
 *
 * Both open functions follow the convention of lua_CFunction: they push one table and return 1, and
 * they raise a Lua error on failure. A Lua state, and all of its coroutines, must be used and
 * closed on one OS thread. */
#ifndef LUTRA_LUA_H
#define LUTRA_LUA_H

#include <lua.h>

/* Opens the module "lutra.core": tensors and all ops. Register it through luaL_requiref or
 * package.preload, so that `require "lutra"` finds it. A second call in the same Lua state returns
 * the same module. The shared object that contains it is never unloaded. */
int luaopen_lutra_core(lua_State *L);

/* Opens the module "lutra.files", which replaces files atomically and reads folders. It requires
 * nothing of "lutra.core"; luaopen_lutra_core opens it and stores it in package.loaded. */
int luaopen_lutra_files(lua_State *L);

/* Registry key (its address) through which an embedding program declares coroutines that run code
 * on behalf of other coroutines. The value in the registry is a table with weak keys: stand-in ->
 * represented coroutine. Modes such as those of lt.no_grad belong to a coroutine; a stand-in reads
 * and sets the modes of the coroutine that it represents. */
extern const char lt_lua_stand_ins;

#endif
