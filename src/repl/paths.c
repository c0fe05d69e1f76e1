// Finds the Lua half of Lutra relative to the program, so that a tree can be moved as a whole.
// Invariant: only folders that hold lutra/repl/init.lua are ever put on package.path.
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

// PATH_MAX is a promise of few systems; a longer path is treated as not found.
enum { path_size = 4096 };

// Searches $PATH for `name`, as the shell did that started us.
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

// The program's file, symbolic links followed, or NULL. To be freed.
static char *program_file(const char *argv0) {
  static const char *const kernel_links[] = {"/proc/self/exe", "/proc/curproc/file"};
  for (size_t i = 0; i < sizeof kernel_links / sizeof *kernel_links; i++) {
    char *file = realpath(kernel_links[i], NULL);
    if (file) return file;
  }
  if (!argv0 || !*argv0) return NULL;
  return strchr(argv0, '/') ? realpath(argv0, NULL) : in_search_path(argv0);
}

// `base`/`below` as a real path when it holds the Lua files, else NULL. To be freed.
static char *library(const char *base, const char *below) {
  char path[path_size];
  int n = snprintf(path, sizeof path, "%s/%s/lutra/repl/init.lua", base, below);
  if (n <= 0 || n >= path_size || access(path, R_OK) != 0) return NULL;
  (void)snprintf(path, sizeof path, "%s/%s", base, below);
  return realpath(path, NULL);
}

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

void lt_repl_set_path(lua_State *L, const char *argv0) {
  char *lib = find_library(argv0);
  if (!lib) return;
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "path");
  lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", lib, lib, luaL_optstring(L, -1, ""));
  lua_setfield(L, -3, "path");
  lua_pop(L, 2);
  free(lib);
}
