// The module "lutra.repl.host": functions that lib/lutra/repl/ needs and Lua lacks. Each wraps a
// function of repl.h or POSIX; none makes decisions.
#define _XOPEN_SOURCE 700
#include "repl.h"
#include "editor/ask.h"
#include "editor/input.h"
#include "editor/lexer.h"
#include "editor/library.h"
#include "vm-bindings/path.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Returns the coroutine at index 1; raises an error for one that runs or waits for another, which
// can be neither resumed nor reset.
static lua_State *suspended_at(lua_State *L) {
  lua_Debug ar;
  lua_State *co = lua_tothread(L, 1);
  luaL_argexpected(L, co, 1, "coroutine");
  luaL_argcheck(L, lua_status(co) != LUA_OK || !lua_getstack(co, 0, &ar), 1,
                "the coroutine is running");
  return co;
}

// resume(co, ...) -> true, results... | false, error | nil, reason; nil: the coroutine yielded, by
// itself or because it ignored Ctrl-C. It stands in for the caller: modes that it sets outside of a
// scope persist when it has ended.
static int host_resume(lua_State *L) {
  lua_State *co = suspended_at(L);
  int nargs = lua_gettop(L) - 1, nres = 0;
  if (!lua_checkstack(co, nargs)) return luaL_error(L, "too many arguments to resume");
  lt_repl_stand_in(L, co);
  lua_xmove(L, co, nargs);
  lt_repl_state_reserve(L);
  int status = lt_repl_resume(L, co, nargs, &nres);
  if (status == LUA_ERRMEM) lt_repl_state_release_reserve(L);
  if (status == LUA_OK) {
    luaL_checkstack(L, nres + 1, "too many results");
    lua_pushboolean(L, 1);
    lua_xmove(co, L, nres);
    return nres + 1;
  }
  // The result reports the presses to L; they must not stop what L does next, such as a command
  // around a cell.
  bool pressed = lt_repl_interrupts() > 0;
  lt_repl_interrupt_clear();
  if (status == LUA_YIELD) {
    lua_pushnil(L);
    lua_pushstring(L, pressed ? "interrupted" : "attempt to yield from outside a coroutine");
    return 2;
  }
  lua_pushboolean(L, 0);
  lua_xmove(co, L, 1);
  return 2;
}

// reset(co): closes the pending <close> variables of a failed or abandoned coroutine.
static int host_reset(lua_State *L) {
  lua_State *co = suspended_at(L);
  (void)lt_repl_reset(L, co);
  return 0;
}

// readline(prompt, editor) -> text | nil, "eof" | nil, "interrupt". `editor` is the table of
// callbacks of editor/ask.h, or nil.
static int host_readline(lua_State *L) {
  const char *prompt = luaL_checkstring(L, 1);
  char *line = NULL;
  lua_settop(L, 2);
  if (lua_istable(L, 2)) lt_ask_begin(L, 2);
  lua_State *suspended =
      lt_repl_interrupt_suspend(); // a breakpoint reads a line during a computation
  enum lt_repl_read result = lt_repl_readline(prompt, &line);
  lt_repl_interrupt_resume(suspended);
  lt_ask_end();
  if (result == LT_REPL_LINE) {
    lua_pushstring(L, line);
    free(line);
    return 1;
  }
  lua_pushnil(L);
  lua_pushstring(L, result == LT_REPL_EOF ? "eof" : "interrupt");
  return 2;
}

static int host_add_history(lua_State *L) {
  lt_editor_history_add(luaL_checkstring(L, 1));
  return 0;
}

// editor() -> "readline 8.2" | "none: TERM is dumb" ...
static int host_editor(lua_State *L) {
  lua_pushstring(L, lt_editor_name());
  return 1;
}

// reads_cells() -> whether readline reads whole cells
static int host_reads_cells(lua_State *L) {
  lua_pushboolean(L, lt_repl_reads_cells());
  return 1;
}

// token(text, at) -> kind and last index of the token that starts at index `at` | nil at the end
static int host_token(lua_State *L) {
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  lua_Integer at = luaL_checkinteger(L, 2);
  luaL_argcheck(L, at >= 1, 2, "expected a 1-based position");
  if ((size_t)at > size) return 0;
  struct lt_token t = lt_lexer_next(text, size, (size_t)at - 1);
  lua_pushstring(L, lt_token_names[t.kind]);
  lua_pushinteger(L, (lua_Integer)t.after);
  return 2;
}

// interrupts() -> number of Ctrl-C since clear_interrupts()
static int host_interrupts(lua_State *L) {
  lua_pushinteger(L, lt_repl_interrupts());
  return 1;
}

// keep(boolean) -> the former value: whether no number of Ctrl-C ends the program
static int host_keep(lua_State *L) {
  lua_pushboolean(L, lt_repl_interrupt_keep(lua_toboolean(L, 1)));
  return 1;
}

static int host_clear_interrupts(lua_State *L) {
  (void)L;
  lt_repl_interrupt_clear();
  return 0;
}

// isatty(fd) -> boolean
static int host_isatty(lua_State *L) {
  lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
  return 1;
}

// pending() -> whether more input is available already, as in a paste
static int host_pending(lua_State *L) {
  lua_pushboolean(L, lt_input_pending());
  return 1;
}

static int failure(lua_State *L, const char *path) {
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(errno));
  return 2;
}

// Creates the missing folders above `path`, accessible to the owner only.
static bool make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    int made = mkdir(path, 0700);
    *slash = '/';
    if (made != 0 && errno != EEXIST) return false;
  }
  return true;
}

static bool write_all(int fd, const char *text, size_t size) {
  while (size) {
    ssize_t n = write(fd, text, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text += n;
    size -= (size_t)n;
  }
  return true;
}

// append(path, text) -> true | nil, reason: appends to a file that only its owner can read, in one
// write so that sessions do not interleave.
static int host_append(lua_State *L) {
  size_t size;
  const char *path = lt_lua_to_path(L, 1), *text = luaL_checklstring(L, 2, &size);
  if (!path) return lt_lua_no_path(L);
  char *folders = lua_newuserdatauv(L, strlen(path) + 1, 0);
  strcpy(folders, path);
  if (!make_folders(folders)) return failure(L, path);
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return failure(L, path);
  bool ok = fchmod(fd, 0600) == 0 && write_all(fd, text, size);
  if (close(fd) != 0 || !ok) return failure(L, path);
  lua_pushboolean(L, 1);
  return 1;
}

int luaopen_lutra_repl_host(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"resume", host_resume},
      {"reset", host_reset},
      {"readline", host_readline},
      {"add_history", host_add_history},
      {"editor", host_editor},
      {"reads_cells", host_reads_cells},
      {"token", host_token},
      {"interrupts", host_interrupts},
      {"clear_interrupts", host_clear_interrupts},
      {"keep", host_keep},
      {"isatty", host_isatty},
      {"pending", host_pending},
      {"append", host_append},
      {NULL, NULL},
  };
  luaL_newlib(L, functions);
  lt_repl_open_system(L);
  lt_repl_open_debug_hook(L);
  lua_getglobal(L, "os"); // execute: Lua's function, before interrupt.c replaces it
  lua_getfield(L, -1, "execute");
  lua_setfield(L, -3, "execute");
  lua_pop(L, 1);
  lua_newtable(L); // sources: chunk name -> text of code that is in no file, for tracebacks
  lua_setfield(L, -2, "sources");
  return 1;
}
