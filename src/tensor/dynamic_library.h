/* dynamic_library.h: optional libraries, which are loaded when they are first used. */
#ifndef LT_DYNAMIC_LIBRARY_H
#define LT_DYNAMIC_LIBRARY_H

#include <stdbool.h>

/* Loads the first library of `names`, a list that ends with NULL, for which read(library) returns
 * true: it finds the functions. Returns false when there is none, or when the environment variable
 * `variable` is "0". Libraries are never unloaded: they may have started threads. */
bool lt_library_load(const char *variable, const char *const *names, bool (*read)(void *library));

/* Writes the address of a function of the library to *function, a pointer to a function; returns
 * false, with NULL there, when the library lacks it. */
bool lt_library_find(void *library, const char *name, void *function);

#endif
