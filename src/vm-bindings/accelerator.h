/* accelerator.h: functions shared by accelerator.c, captures.c, device_memory.c and signposts.c, in
 * addition to bindings.h. */
#ifndef LT_BINDINGS_ACCELERATOR_H
#define LT_BINDINGS_ACCELERATOR_H

#include "bindings.h"

/* Returns the device type whose name is at index i; raises an error for an unknown name. */
int lt_lua_device_type(lua_State *L, int i);
/* Returns the device whose name ("cuda:0") is at index i; raises an error for an unknown name. */
lt_Device lt_lua_full_device(lua_State *L, int i);
/* Adds the functions about device memory to the table on top of the stack (device_memory.c). */
void lt_lua_set_memory(lua_State *L);
/* Adds the functions about graphs to it (captures.c). */
void lt_lua_open_captures(lua_State *L);
/* Adds the function `signposts` to it (signposts.c). */
void lt_lua_open_signposts(lua_State *L);

#endif
