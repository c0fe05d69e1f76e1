/* text_files.c: the module "lutra.files", for Lua code that saves text files: atomic replacement of
 * a file (src/tensor/io/replace.h), and queries about paths and folders. The functions raise no
 * error about a file: they return nil and "PATH: why".
 *
 * It is separate from "lutra.core" because the prompt also saves its files without that. */
#define _GNU_SOURCE
#include "core.h"
#include "io/replace.h"
#include "lutra_lua.h"
#include "path.h"

#include <dirent.h>
#include <errno.h>
#include <lauxlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- paths ----------------------------------------------------------------------------------- */

/* Pushes a string of n bytes in quotes, escaped as in Lua source; cut after 60 bytes. */
static void push_quoted(lua_State *L, const char *s, size_t n) {
  enum { MOST = 60 };
  luaL_Buffer text;
  char code[8];
  luaL_buffinit(L, &text);
  luaL_addchar(&text, '"');
  for (size_t i = 0; i < n && i < MOST; i++) {
    unsigned char c = (unsigned char)s[i];
    bool plain = c >= ' ' && c != 127 && c != '"' && c != '\\';
    bool digit = i + 1 < n && s[i + 1] >= '0' && s[i + 1] <= '9';
    if (!plain) snprintf(code, sizeof code, digit ? "\\%03u" : "\\%u", (unsigned)c);
    if (plain)
      luaL_addchar(&text, s[i]);
    else
      luaL_addstring(&text, c == '"' ? "\\\"" : c == '\\' ? "\\\\" : code);
  }
  luaL_addstring(&text, n > MOST ? "\"..." : "\"");
  luaL_pushresult(&text);
}

const char *lt_lua_to_path(lua_State *L, int i) {
  size_t n;
  luaL_checktype(L, i, LUA_TSTRING);
  const char *path = lua_tolstring(L, i, &n);
  if (!memchr(path, 0, n)) return path;
  push_quoted(L, path, n);
  return NULL;
}

int lt_lua_no_path(lua_State *L) {
  lua_pushnil(L);
  lua_pushfstring(L, "%s: expected a path without NUL bytes", lua_tostring(L, -2));
  return 2;
}

static int push_error(lua_State *L) {
  lua_pushnil(L);
  lua_pushstring(L, lt_error());
  return 2;
}

/* path(text) -> text | nil, reason: checks that it can be passed to io.open */
static int check_path(lua_State *L) {
  if (!lt_lua_to_path(L, 1)) return lt_lua_no_path(L);
  lua_settop(L, 1);
  return 1;
}

/* kind(path) -> "file", "folder" or "other" (a device, a pipe, a socket), after following links;
 * nil for nothing, also where that cannot be determined */
static int kind_of(lua_State *L) {
  struct stat s;
  const char *path = lt_lua_to_path(L, 1);
  if (!path || stat(path, &s) != 0)
    lua_pushnil(L);
  else
    lua_pushstring(L, S_ISDIR(s.st_mode) ? "folder" : S_ISREG(s.st_mode) ? "file" : "other");
  return 1;
}

/* ---- folders --------------------------------------------------------------------------------- */

static const char folder_name[] = "lutra.folder";

/* Closes a folder; its userdata holds a DIR *, or NULL when closed. */
static int folder_close(lua_State *L) {
  DIR **folder = luaL_checkudata(L, 1, folder_name);
  if (*folder) closedir(*folder);
  *folder = NULL;
  return 0;
}

/* Returns whether base/name is a folder, after following links. */
static bool is_folder(const char *base, const char *name) {
  struct stat s;
  char path[4096];
  return snprintf(path, sizeof path, "%s/%s", base, name) < (int)sizeof path &&
         stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* list(folder) -> list of names, not sorted, with a / after those of folders; without . and .. |
 * nil, reason */
static int list(lua_State *L) {
  const char *path = lt_lua_to_path(L, 1);
  if (!path) return lt_lua_no_path(L);
  DIR **folder = lua_newuserdatauv(L, sizeof *folder, 0);
  *folder = NULL;
  luaL_setmetatable(L, folder_name);
  lua_toclose(L, -1);
  lua_newtable(L);
  if (!(*folder = opendir(path))) {
    const char *why = strerror(errno);
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, why);
    return 2;
  }
  lua_Integer n = 0;
  for (struct dirent *entry; (entry = readdir(*folder));) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
    lua_pushfstring(L, "%s%s", name, is_folder(path, name) ? "/" : "");
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

/* make(folder) -> true | nil, reason: creates a folder and those above it that do not exist */
static int make_folder(lua_State *L) {
  const char *path = lt_lua_to_path(L, 1);
  if (!path) return lt_lua_no_path(L);
  size_t n = strlen(path);
  char *part = lua_newuserdatauv(L, n + 1, 0);
  int failed = 0;
  for (size_t i = 1; i <= n; i++) {
    if (path[i] != '/' && path[i] != 0) continue;
    memcpy(part, path, i);
    part[i] = 0;
    failed = mkdir(part, 0777) == 0 || errno == EEXIST ? 0 : errno;
  }
  struct stat s;
  if (!failed && (stat(path, &s) != 0 || !S_ISDIR(s.st_mode))) failed = n ? ENOTDIR : ENOENT;
  if (failed) {
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, strerror(failed));
    return 2;
  }
  lua_pushboolean(L, 1);
  return 1;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* process() -> the id of this process, the name of the host */
static int process(lua_State *L) {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0 || !host[0]) strcpy(host, "localhost");
  lua_pushinteger(L, getpid());
  lua_pushstring(L, host);
  return 2;
}

/* now() -> seconds since 1970, with a fraction */
static int now(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + (lua_Number)t.tv_nsec / 1e9);
  return 1;
}

/* ---- saving ---------------------------------------------------------------------------------- */

static const char type_name[] = "lutra.replacement";

static lt_Replacement *replacement_at_1(lua_State *L) {
  lt_Replacement *r = luaL_checkudata(L, 1, type_name);
  luaL_argcheck(L, r->file, 1, "the stream is closed");
  return r;
}

/* replace(path) -> a replacement, which writes to a temporary file | nil, reason */
static int replace(lua_State *L) {
  const char *path = lt_lua_to_path(L, 1);
  if (!path) return lt_lua_no_path(L);
  lt_Replacement *r = lua_newuserdatauv(L, sizeof *r, 0);
  *r = (lt_Replacement){0};
  luaL_setmetatable(L, type_name);
  return lt_replace_open(r, NULL, path) ? 1 : push_error(L);
}

/* check(path) -> true | nil, reason: checks that replace could start; changes nothing */
static int check(lua_State *L) {
  const char *path = lt_lua_to_path(L, 1);
  if (!path) return lt_lua_no_path(L);
  if (!lt_replace_check(NULL, path)) return push_error(L);
  lua_pushboolean(L, 1);
  return 1;
}

/* replacement:write(text...) -> false when it failed; commit returns the reason */
static int replacement_write(lua_State *L) {
  lt_Replacement *r = replacement_at_1(L);
  for (int i = 2; i <= lua_gettop(L); i++) {
    size_t n;
    const char *text = luaL_checklstring(L, i, &n);
    lt_replace_write(r, text, n);
  }
  lua_pushboolean(L, !r->why);
  return 1;
}

/* replacement:commit() -> true | nil, reason. Replaces the file atomically. */
static int replacement_commit(lua_State *L) {
  if (!lt_replace_commit(replacement_at_1(L), true)) return push_error(L);
  lua_pushboolean(L, 1);
  return 1;
}

/* Ends a replacement that was not committed: the file stays unchanged. */
static int replacement_abandon(lua_State *L) {
  lt_Replacement *r = luaL_checkudata(L, 1, type_name);
  if (r->file) (void)lt_replace_commit(r, false);
  return 0;
}

int luaopen_lutra_files(lua_State *L) {
  static const luaL_Reg functions[] = {{"path", check_path},  {"kind", kind_of},    {"list", list},
                                       {"make", make_folder}, {"process", process}, {"now", now},
                                       {"replace", replace},  {"check", check},     {NULL, NULL}};
  static const luaL_Reg methods[] = {
      {"write", replacement_write}, {"commit", replacement_commit}, {NULL, NULL}};
  static const luaL_Reg meta[] = {
      {"__gc", replacement_abandon}, {"__close", replacement_abandon}, {NULL, NULL}};
  static const luaL_Reg folder_meta[] = {
      {"__gc", folder_close}, {"__close", folder_close}, {NULL, NULL}};
  luaL_newmetatable(L, folder_name);
  luaL_setfuncs(L, folder_meta, 0);
  lua_pop(L, 1);
  luaL_newmetatable(L, type_name);
  luaL_setfuncs(L, meta, 0);
  luaL_newlib(L, methods);
  lua_setfield(L, -2, "__index");
  lua_pop(L, 1);
  luaL_newlib(L, functions);
  return 1;
}
