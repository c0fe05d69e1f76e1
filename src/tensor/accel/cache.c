/* cache.c: the folder of the cache of compiled kernels. */
#define _GNU_SOURCE
#include "cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

bool lt_cache_folder(const char *name, char *path, size_t size, bool make) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  int n = cache && cache[0] == '/' ? snprintf(path, size, "%s/lutra/%s", cache, name)
          : home && home[0] == '/' ? snprintf(path, size, "%s/.cache/lutra/%s", home, name)
                                   : -1;
  if (n < 0 || (size_t)n >= size) return false;
  for (char *at = path + 1; make && *at; at++) {
    if (*at != '/') continue;
    *at = 0;
    mkdir(path, 0700);
    *at = '/';
  }
  return !make || mkdir(path, 0700) == 0 || errno == EEXIST;
}
