/* cache.h: the folder in which compiled kernels are kept for later runs. */
#ifndef LT_ACCEL_CACHE_H
#define LT_ACCEL_CACHE_H

#include <stdbool.h>
#include <stddef.h>

#define LT_CACHE_PATH 3000 /* bytes for a path in the cache */

/* Writes the path of a folder of the cache, $XDG_CACHE_HOME/lutra/<name> or ~/.cache/lutra/<name>,
 * and, with `make`, creates it. Returns false, without an error, where there is none (no home
 * folder) or it cannot be created. */
bool lt_cache_folder(const char *name, char *path, size_t size, bool make);

#endif
