// The parts of the program `lutra` outside of the library:
//
//   main.c             arguments, and running a script, code, stdin or the prompt
//   paths.c            locates the library's Lua files relative to the program
//   private_globals.c  gives the library's Lua modules globals that programs cannot change
//   interrupt.c        Ctrl-C: stops running Lua code and keeps the session
//   debug_hook.c       the hook of a notebook's debugger
//   lineread.c         reads one cell from a terminal, or one line without GNU readline
//   editor/            editing of a cell: screen and keys on top of readline, Lua's tokens, colours
//   kernel/            the channels of the Jupyter kernel, and the thread that serves them
//   host.c             the C functions that lib/lutra/repl/ calls, as one module
//   system.c           its functions for folders and the terminal
//   processes.c        the functions of the launcher of a job, as one module
//   job_end.c          the end of a process that is a rank of a job
//   state.c            the Lua state and its allocator
//
// Reading, running and printing of cells, and tracebacks are in Lua: lib/lutra/repl/.
//
// All functions must be called on the main thread, the one that runs Lua.
#ifndef LT_REPL_H
#define LT_REPL_H

#include <stdbool.h>
#include <lua.h>

// ---- paths.c

// Puts in front of package.path the folder of Lutra's Lua files, before it the folder of `script`
// (NULL for none; last where another folder has a module of the script's name), and before that the
// patterns of LUTRA_PATH (where these contain ";;", the rest of the path goes there). The first
// folder is the first that exists of: ../lib beside the program (a build tree), ../share/lua/5.4
// (an installed tree), the prefix of the build. Without one, package.path has no such entry and
// `require` reports what it tried.
void lt_repl_set_path(lua_State *L, const char *argv0, const char *script);

// Returns the absolute path with which other programs can start this one, or NULL. A path that
// `argv0` names is preferred to that of the running file: a script may start the program with a
// dynamic loader of its own. Call it before the current folder changes. The caller frees it.
char *lt_repl_program(const char *argv0);

// ---- private_globals.c

// Loads modules named lutra or lutra.* with private globals from now on, copies of the current
// globals. Call it once, after lt_repl_set_path and before any user code runs.
void lt_repl_private_globals_open(lua_State *L);

// Pushes the `require` of those modules. It finds them through the package.path of the start, too.
void lt_repl_private_require(lua_State *L);

// ---- interrupt.c

// Installs the handler of SIGINT for this thread, and replaces coroutine.resume, coroutine.wrap and
// os.execute by versions that work with it. `keep` false (a script): the second Ctrl-C kills the
// process; true (the prompt): no number of them does. May be called again.
void lt_repl_interrupt_install(lua_State *L, bool keep);

// Resumes `co` with `nargs` values from its stack as lua_resume does; Ctrl-C can interrupt it. On
// return *nres values are on co's stack. LUA_YIELD also is the result of a computation that caught
// the first Ctrl-C and was abandoned at the second: `co` must then be reset, not resumed.
int lt_repl_resume(lua_State *L, lua_State *co, int nargs, int *nres);

// Declares that `co` runs code on behalf of L: a script or a cell. The modes of tensors that it
// sets, such as disabled gradients, are L's modes, and persist when it has ended. Raises an error
// when out of memory.
void lt_repl_stand_in(lua_State *L, lua_State *co);

// Resets `co` as lua_resetthread does, closing its pending <close> variables; Ctrl-C can interrupt
// them. Returns the status.
int lt_repl_reset(lua_State *L, lua_State *co);

// Returns the number of Ctrl-C since the last lt_repl_interrupt_clear.
int lt_repl_interrupts(void);
// Resets that number, and a pending request to the core to stop.
void lt_repl_interrupt_clear(void);

// Suspends interrupts while the user answers a question during a computation: Ctrl-C then is
// counted but stops no Lua code. Returns the value to pass to lt_repl_interrupt_resume, which ends
// this.
lua_State *lt_repl_interrupt_suspend(void);
void lt_repl_interrupt_resume(lua_State *suspended);

// Sets `keep` as passed to lt_repl_interrupt_install; returns the former value.
bool lt_repl_interrupt_keep(bool keep);

// ---- debug_hook.c

// Sets the hook of an attached debugger in L, or removes that of a debugger that was detached. It
// changes no other hook and raises no error.
void lt_repl_debug_follow(lua_State *L);

// Adds the functions of debug_hook.c to the table on top of the stack.
void lt_repl_open_debug_hook(lua_State *L);

// ---- lineread.c

// The outcome of reading: a line or cell, the end of input, or Ctrl-C.
enum lt_repl_read { LT_REPL_LINE, LT_REPL_EOF, LT_REPL_INTERRUPT };

// Returns whether lt_repl_readline reads whole cells, of several lines.
bool lt_repl_reads_cells(void);

// Reads a cell, or one line without an editor for cells, without the newline at its end. Sets *line
// only with LT_REPL_LINE; the caller frees it. Clears the count of Ctrl-C.
enum lt_repl_read lt_repl_readline(const char *prompt, char **line);

// ---- state.c

// Returns a new Lua state with its own allocator (state.c), NULL when out of memory. Only
// lt_repl_state_close may close it.
lua_State *lt_repl_state_open(void);
void lt_repl_state_close(lua_State *L);

// Reserves some memory before user code runs, and releases it after the code has run out of memory,
// so that the error can be reported. Neither fails: without memory there is no reserve.
void lt_repl_state_reserve(lua_State *L);
void lt_repl_state_release_reserve(lua_State *L);

// ---- host.c

// Opens the module "lutra.repl.host": pushes its table and returns 1. Raises an error on failure.
int luaopen_lutra_repl_host(lua_State *L);

// ---- processes.c

// Opens the module "lutra.repl.processes": pushes its table and returns 1.
int luaopen_lutra_repl_processes(lua_State *L);

// ---- job_end.c

// Replaces os.exit by a version that ends communication between ranks first.
void lt_repl_job_open(lua_State *L);

// Ends communication at the end of a program that has started some; `failed`: it ends with an error
// or a status. Sets *at_once if the process must end by lt_repl_exit_at_once, without closing L. On
// failure pushes the message and returns false.
bool lt_repl_job_end(lua_State *L, bool failed, bool *at_once);

// Flushes all files and ends the process with this status; runs nothing else.
void lt_repl_exit_at_once(int status);

// ---- system.c

// Adds the functions of system.c to the table on top of the stack.
void lt_repl_open_system(lua_State *L);

#endif
