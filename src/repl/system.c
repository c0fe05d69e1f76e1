// The functions of "lutra.repl.host" for the operating system: the current folder, the
// program and the terminal.
#define _XOPEN_SOURCE   700
#define _DEFAULT_SOURCE // struct winsize
#include "repl.h"

#include "../tensor/lutra.h"
#include "editor/width.h"
#include "vm-bindings/path.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static int failure(lua_State *L, const char *path) {
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(errno));
  return 2;
}

// chdir(path) -> true | nil, reason
static int system_chdir(lua_State *L) {
  const char *path = lt_lua_to_path(L, 1);
  if (!path) return lt_lua_no_path(L);
  if (chdir(path) != 0) return failure(L, path);
  lua_pushboolean(L, 1);
  return 1;
}

// getcwd() -> path | nil, reason
static int system_getcwd(lua_State *L) {
  char *path = realpath(".", NULL);
  if (!path) return failure(L, ".");
  lua_pushstring(L, path);
  free(path);
  return 1;
}

// program(argv0) -> the absolute path of this program | nil: see lt_repl_program
static int system_program(lua_State *L) {
  char *path = lt_repl_program(luaL_optstring(L, 1, NULL));
  lua_pushstring(L, path);
  free(path);
  return 1;
}

// is_macos() -> whether this is macOS
static int system_is_macos(lua_State *L) {
#ifdef __APPLE__
  lua_pushboolean(L, 1);
#else
  lua_pushboolean(L, 0);
#endif
  return 1;
}

// emulate(devices) -> true | nil, reason: emulates devices that are not in use, as --emulate
static int system_emulate(lua_State *L) {
  lua_pushboolean(L, lt_device_emulate(luaL_checkstring(L, 1)));
  if (lua_toboolean(L, -1)) return 1;
  lua_pushnil(L);
  lua_pushstring(L, lt_error());
  return 2;
}

// terminal_size() -> columns, rows | nil: of the terminal on stdout, else on stderr or stdin
static int system_terminal_size(lua_State *L) {
  static const int files[] = {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    struct winsize size;
    if (ioctl(files[i], TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
      lua_pushinteger(L, size.ws_col);
      lua_pushinteger(L, size.ws_row);
      return 2;
    }
  }
  lua_pushnil(L);
  return 1;
}

// character(text, at) -> bytes and columns of the character that starts at byte `at`; columns as
// lt_width_next returns them: -1 for a character that must not be written as it is
static int system_character(lua_State *L) {
  static bool known; // whether the locale of the environment is set
  size_t size;
  const char *text = luaL_checklstring(L, 1, &size);
  lua_Integer at = luaL_checkinteger(L, 2);
  luaL_argcheck(L, at >= 1 && (size_t)at <= size, 2, "expected the position of a character");
  if (!known) lt_width_locale();
  known = true;
  int columns;
  lua_pushinteger(L, (lua_Integer)lt_width_next(text + at - 1, size - (size_t)at + 1, &columns));
  lua_pushinteger(L, columns);
  return 2;
}

void lt_repl_open_system(lua_State *L) {
  static const luaL_Reg functions[] = {{"chdir", system_chdir},
                                       {"getcwd", system_getcwd},
                                       {"program", system_program},
                                       {"is_macos", system_is_macos},
                                       {"emulate", system_emulate},
                                       {"character", system_character},
                                       {"terminal_size", system_terminal_size},
                                       {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}
