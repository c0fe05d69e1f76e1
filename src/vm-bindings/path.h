/* path.h: paths that come from Lua. A string of Lua may hold NUL bytes, which C would take for the
 * end of the path: another file would be opened than the one that was named. */
#ifndef LT_BINDINGS_PATH_H
#define LT_BINDINGS_PATH_H

#include <lua.h>

/* The path at index i of the stack, a string; NULL, with it pushed as Lua would write it, where it
 * has a NUL byte. */
const char *lt_lua_to_path(lua_State *L, int i);

/* For functions that return nil and "PATH: why": returns those, of what lt_lua_to_path pushed. */
int lt_lua_no_path(lua_State *L);

#endif
