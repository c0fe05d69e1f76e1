// The end of a process that is a rank of a job: communication is ended when the program succeeds,
// also by os.exit. After a failure the process ends at once: closing the Lua state could wait for
// ranks that wait for this one, while mpirun ends the job when a rank ends with a status.
//
// Invariant: nothing is loaded, and nothing changes, for a program without lt.distributed.
#define _XOPEN_SOURCE 700
#include "repl.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Returns whether the program has loaded the part of lt.distributed that starts communication.
static bool is_used(lua_State *L) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  bool used = lua_getfield(L, -1, "lutra.distributed.groups") == LUA_TTABLE;
  lua_pop(L, 2);
  return used;
}

// Calls ending.run(failed) of lib/lutra/distributed; returns its result, or raises its error.
static int run_ending(lua_State *L) {
  lua_settop(L, 1);
  lt_repl_private_require(L);
  lua_pushliteral(L, "lutra.distributed.ending");
  lua_call(L, 1, 1);
  lua_getfield(L, -1, "run");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

bool lt_repl_job_end(lua_State *L, bool failed, bool *at_once) {
  *at_once = false;
  if (!is_used(L)) return true;
  lua_pushcfunction(L, run_ending);
  lua_pushboolean(L, failed);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) return false;
  *at_once = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return true;
}

void lt_repl_exit_at_once(int status) {
  fflush(NULL);
  _exit(status);
}

// Replaces os.exit (upvalue 1): ends communication first.
static int os_exit(lua_State *L) {
  int status = EXIT_SUCCESS;
  if (lua_isboolean(L, 1))
    status = lua_toboolean(L, 1) ? EXIT_SUCCESS : EXIT_FAILURE;
  else
    status = (int)luaL_optinteger(L, 1, EXIT_SUCCESS);
  bool at_once = false;
  if (!lt_repl_job_end(L, status != EXIT_SUCCESS, &at_once)) return lua_error(L);
  if (at_once) lt_repl_exit_at_once(status);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, 0);
  return 0;
}

void lt_repl_job_open(lua_State *L) {
  lua_getglobal(L, "os");
  lua_getfield(L, -1, "exit");
  lua_pushcclosure(L, os_exit, 1);
  lua_setfield(L, -2, "exit");
  lua_pop(L, 1);
}
