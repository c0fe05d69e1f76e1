// Locates Lutra's Lua files relative to the program, so that a tree can be moved as a whole.
// Invariant: only folders that contain lutra/repl/init.lua are added to package.path.
#define _XOPEN_SOURCE 700
#include "repl.h"

#include <lauxlib.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LT_PREFIX
#define LT_PREFIX "/usr/local"
#endif

// Few systems guarantee PATH_MAX; a longer path is treated as not found.
enum { path_size = 4096 };

// Searches $PATH for `name`, as the shell that started the program did. The caller frees the
// result.
static char *in_search_path(const char *name) {
  const char *path = getenv("PATH");
  char file[path_size];
  while (path && *path) {
    size_t len = strcspn(path, ":");
    int n = snprintf(file, sizeof file, "%.*s/%s", (int)len, len ? path : ".", name);
    if (n > 0 && n < path_size && access(file, X_OK) == 0) return realpath(file, NULL);
    path += len + (path[len] == ':');
  }
  return NULL;
}

// Returns the path of the program's file with symbolic links resolved, or NULL. The caller frees
// it.
static char *program_file(const char *argv0) {
  static const char *const kernel_links[] = {"/proc/self/exe", "/proc/curproc/file"};
  for (size_t i = 0; i < sizeof kernel_links / sizeof *kernel_links; i++) {
    char *file = realpath(kernel_links[i], NULL);
    if (file) return file;
  }
  if (!argv0 || !*argv0) return NULL;
  return strchr(argv0, '/') ? realpath(argv0, NULL) : in_search_path(argv0);
}

char *lt_repl_program(const char *argv0) {
  if (!argv0 || !*argv0) return program_file(argv0);
  char *found = NULL, path[path_size];
  if (*argv0 == '/') {
    found = access(argv0, X_OK) == 0 ? strdup(argv0) : NULL;
  } else if (!strchr(argv0, '/')) {
    found = in_search_path(argv0);
  } else if (getcwd(path, sizeof path)) {
    size_t n = strlen(path);
    int added = snprintf(path + n, sizeof path - n, "/%s", argv0);
    if (added > 0 && (size_t)added < sizeof path - n) found = realpath(path, NULL);
  }
  return found ? found : program_file(argv0);
}

// Returns `base`/`below` as an absolute path if it contains the Lua files, else NULL. The caller
// frees it.
static char *library(const char *base, const char *below) {
  char path[path_size];
  int n = snprintf(path, sizeof path, "%s/%s/lutra/repl/init.lua", base, below);
  if (n <= 0 || n >= path_size || access(path, R_OK) != 0) return NULL;
  (void)snprintf(path, sizeof path, "%s/%s", base, below);
  return realpath(path, NULL);
}

// Returns the folder of the Lua files, searched in the order that repl.h lists; NULL if there is
// none. The caller frees it.
static char *find_library(const char *argv0) {
  char *lib = NULL, *file = program_file(argv0);
  char *slash = file ? strrchr(file, '/') : NULL;
  if (slash) {
    *slash = '\0';
    lib = library(file, "../lib");
    if (!lib) lib = library(file, "../share/lua/5.4");
  }
  free(file);
  return lib ? lib : library(LT_PREFIX, "share/lua/5.4");
}

// Pushes `path` with the patterns of LUTRA_PATH in front, or inserted where these contain ";;".
static void push_with_user(lua_State *L, const char *path) {
  const char *user = getenv("LUTRA_PATH");
  const char *place = user ? strstr(user, ";;") : NULL;
  if (!user || !*user) {
    lua_pushstring(L, path);
    return;
  }
  if (!place) {
    lua_pushfstring(L, "%s;%s", user, path);
    return;
  }
  lua_pushlstring(L, user, (size_t)(place - user));
  lua_pushfstring(L, "%s%s%s%s%s", lua_tostring(L, -1), place > user ? ";" : "", path,
                  place[2] ? ";" : "", place + 2);
  lua_remove(L, -2);
}

// Pushes the path of `first`, then that of `second`.
static const char *push_joined(lua_State *L, const char *first, const char *second) {
  return lua_pushfstring(L, "%s%s%s", first, *first && *second ? ";" : "", second);
}

// Pushes the patterns of a folder: none where its name has a character with a meaning in patterns.
static const char *push_patterns(lua_State *L, const char *folder) {
  if (strpbrk(folder, ";?")) return lua_pushliteral(L, "");
  return lua_pushfstring(L, "%s/?.lua;%s/?/init.lua", folder, folder);
}

// Pushes the file of the module of that name in `path`, or nil; returns it.
static const char *push_module(lua_State *L, const char *name, size_t length, const char *path) {
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "searchpath");
  lua_pushlstring(L, name, length);
  lua_pushstring(L, path);
  lua_call(L, 2, 1);
  lua_remove(L, -2);
  return lua_tostring(L, -1);
}

// Returns whether `path` holds a module with the name of the script that is not the script itself.
static bool is_module(lua_State *L, const char *script, const char *path) {
  const char *slash = strrchr(script, '/'), *name = slash ? slash + 1 : script;
  const char *file = push_module(L, name, strcspn(name, "."), path);
  char *found = file ? realpath(file, NULL) : NULL, *own = realpath(script, NULL);
  bool other = found && !(own && strcmp(found, own) == 0);
  free(found);
  free(own);
  lua_pop(L, 1);
  return other;
}

// Pushes `path` with the folder of the script in front. The folder comes last where it would hide a
// module: a script tests/busted.lua may require the module busted, and one beside a file lutra.lua
// the library.
static const char *push_with_script(lua_State *L, const char *script, const char *path) {
  const char *slash = strrchr(script, '/'), *folder = ".";
  if (slash) folder = lua_pushlstring(L, script, slash > script ? (size_t)(slash - script) : 1);
  const char *patterns = push_patterns(L, folder);
  bool last = is_module(L, script, path) || push_module(L, "lutra", 5, patterns);
  return last ? push_joined(L, path, patterns) : push_joined(L, patterns, path);
}

void lt_repl_set_path(lua_State *L, const char *argv0, const char *script) {
  char *lib = find_library(argv0);
  lua_getglobal(L, "package");
  int package = lua_gettop(L);
  lua_getfield(L, package, "path");
  const char *path = luaL_optstring(L, -1, "");
  if (lib) path = push_joined(L, push_patterns(L, lib), path);
  free(lib);
  if (script) path = push_with_script(L, script, path);
  push_with_user(L, path);
  lua_setfield(L, package, "path");
  lua_settop(L, package - 1);
}
