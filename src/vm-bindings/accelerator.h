/* accelerator.h: what accelerator.c and device_memory.c share, beside bindings.h. */
#ifndef LT_BINDINGS_ACCELERATOR_H
#define LT_BINDINGS_ACCELERATOR_H

#include "bindings.h"

/* The type whose name is at i; an error when there is none. */
int lt_lua_device_type(lua_State *L, int i);
/* The device whose full name is at i. */
lt_Device lt_lua_full_device(lua_State *L, int i);
/* Puts the functions about memory into the table on top (device_memory.c). */
void lt_lua_set_memory(lua_State *L);

#endif
