// The Jupyter kernel:
//
//   libraries.c  loads ZeroMQ and the library of signatures
//   text.c       growing strings, and JSON strings
//   message.c    the wire format
//   captured.c   captures stdout and stderr
//   channels.c   the sockets and the thread that serves them
//   module.c     all of it as the Lua module "lutra.repl.channels"
//
// What a request means is decided in lib/lutra/repl/kernel/.
#ifndef LT_REPL_KERNEL_H
#define LT_REPL_KERNEL_H

#include <lua.h>

// Opens the module "lutra.repl.channels": pushes its table and returns 1.
int luaopen_lutra_repl_channels(lua_State *L);

#endif
