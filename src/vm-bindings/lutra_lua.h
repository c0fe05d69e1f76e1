/* lutra_lua.h: what a program that embeds Lua and Lutra needs to know. */
#ifndef LUTRA_LUA_H
#define LUTRA_LUA_H

#include <lua.h>

/* Opens the module "lutra.core": tensors and all ops. Call it through luaL_requiref or
 * package.preload, so that `require "lutra"` finds it. */
int luaopen_lutra_core(lua_State *L);

/* Opens the module "lutra.files", files that are saved as a whole. luaopen_lutra_core leaves it in
 * package.loaded, too. */
int luaopen_lutra_files(lua_State *L);

/* Where a program that runs code in coroutines of its own says so, since modes such as lt.no_grad's
 * belong to a coroutine: its address is the key in the registry of a table with weak keys,
 * coroutine -> the one for which it stands in, whose modes it then has and sets. */
extern const char lt_lua_stand_ins;

#endif
