/* path.h: file paths passed from Lua. A Lua string may contain NUL bytes, where C would cut the
 * path and open a different file than the one named; such strings are refused. */
#ifndef LT_BINDINGS_PATH_H
#define LT_BINDINGS_PATH_H

#include <lua.h>

/* Returns the path at stack index i, which must be a string (otherwise raises an error); it stays
 * valid while that value is on the stack. Returns NULL if it contains a NUL byte, and pushes the
 * path as a quoted Lua string, for the message. */
const char *lt_lua_to_path(lua_State *L, int i);

/* Pushes nil and "PATH: why" and returns 2, the results of a function that failed. Call it after
 * lt_lua_to_path returned NULL, with the quoted path on top of the stack. */
int lt_lua_no_path(lua_State *L);

#endif
