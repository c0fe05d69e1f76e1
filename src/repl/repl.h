// The program's own parts, each a small file:
//
//   main.c       arguments, and what they ask for: a script, code, stdin, the prompt
//   paths.c      where the Lua half of Lutra lies, from where the program lies
//   private_globals.c        globals of Lutra's own, whatever a program does to its
//   interrupt.c  Ctrl-C: stops Lua code wherever it is, keeps the session
//   lineread.c   one cell from a person, or one line where the machine has no readline
//   editor/      editing a cell: readline's own screen and keys, Lua's tokens and colours
//   host.c       what the Lua half (lib/lutra/repl/) needs from C, as one module
//   system.c     its part that is folders and the terminal
//
// Reading cells, running them, printing and tracebacks are Lua: lib/lutra/repl/.
#ifndef LT_REPL_H
#define LT_REPL_H

#include <stdbool.h>
#include <lua.h>

// ---- paths.c

// Puts Lutra's own Lua folder in front of package.path, and before it the patterns of LUTRA_PATH
// (with ";;" in them for what follows). The folder is looked for, in order: ../lib beside the
// program (a build tree), ../share/lua/5.4 (an installed tree), the prefix of the build. Where none
// is there `require` says what it tried.
void lt_repl_set_path(lua_State *L, const char *argv0);

// ---- private_globals.c

// From now on modules called lutra or lutra.* are loaded with globals of their own, copies of what
// the globals are now. Called once, after lt_repl_set_path and before any code of the user's.
void lt_repl_own_open(lua_State *L);

// Pushes the `require` of those modules, which finds them wherever they were found at the start.
void lt_repl_own_require(lua_State *L);

// ---- interrupt.c

// Takes over SIGINT for this thread, and replaces coroutine.resume and coroutine.wrap by versions
// that tell the handler which coroutine runs. With `keep` false (a script) the second Ctrl-C kills
// the process, as everywhere; with `keep` true (the prompt) no number of them does.
void lt_repl_interrupt_install(lua_State *L, bool keep);

// Resumes `co` with `nargs` values from its stack as lua_resume does, open to Ctrl-C. On return
// `nres` values are on co's stack. LUA_YIELD is how a computation that swallowed the first Ctrl-C
// ends: `co` is to be reset, not resumed.
int lt_repl_resume(lua_State *L, lua_State *co, int nargs, int *nres);

// `co` runs code for L: a script, a cell. The modes of tensors that it sets, such as that no
// gradients are recorded, are L's, and stay when it has ended.
void lt_repl_stand_in(lua_State *L, lua_State *co);

// lua_resetthread(co), open to Ctrl-C: closes its pending <close> variables.
int lt_repl_reset(lua_State *L, lua_State *co);

// How many times Ctrl-C came since the last lt_repl_interrupt_clear.
int lt_repl_interrupts(void);
void lt_repl_interrupt_clear(void);

// While a person is asked something in the middle of a computation: Ctrl-C is for the question, and
// stops nothing. Returns what go_on wants.
lua_State *lt_repl_interrupt_hold(void);
void lt_repl_interrupt_go_on(lua_State *held);

// Changes `keep` of install; returns what it was.
bool lt_repl_interrupt_keep(bool keep);

// ---- lineread.c

enum lt_repl_read { LT_REPL_LINE, LT_REPL_EOF, LT_REPL_INTERRUPT };

// Does lt_repl_readline read whole cells, of several lines?
bool lt_repl_reads_cells(void);

// Reads a cell, or one line where there is no editor for cells, without the newline at its end.
// *line is to be freed by the caller and set only with LT_REPL_LINE.
enum lt_repl_read lt_repl_readline(const char *prompt, char **line);

// ---- state.c

// A Lua state with an allocator of its own; NULL without memory. Closed by its own function.
lua_State *lt_repl_state_open(void);
void lt_repl_state_close(lua_State *L);

// Keep some memory back from the code that is going to run, and give it up again when that code has
// ended without memory, so that its end can be told.
void lt_repl_state_reserve(lua_State *L);
void lt_repl_state_relieve(lua_State *L);

// ---- host.c

// Opens the module "lutra.repl.host", which is also left in package.loaded.
int luaopen_lutra_repl_host(lua_State *L);

// ---- system.c

// Adds its functions to the table at the top of the stack.
void lt_repl_open_system(lua_State *L);

#endif
