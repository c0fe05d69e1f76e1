// How much of a terminal's row a character takes.
#ifndef LT_REPL_EDITOR_WIDTH_H
#define LT_REPL_EDITOR_WIDTH_H

#include <stddef.h>

// Sets LC_CTYPE, and nothing else, from the environment: numbers go on being written with a point.
// Where the environment names no locale, UTF-8 is assumed, as terminals do.
void lt_width_locale(void);

// Reads the character at text[0], of `size` > 0 bytes: sets *width to its columns (0 for one that
// combines with the one before, -1 for a control character or a byte that is none) and returns its
// bytes, at least 1.
size_t lt_width_next(const char *text, size_t size, int *width);

#endif
