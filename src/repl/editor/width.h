// The width of characters on a terminal.
#ifndef LT_REPL_EDITOR_WIDTH_H
#define LT_REPL_EDITOR_WIDTH_H

#include <stddef.h>

// Sets LC_CTYPE from the environment, and nothing else: numbers keep their decimal point. Without a
// locale in the environment UTF-8 is assumed, as terminals do.
void lt_width_locale(void);

// Decodes the character at text[0]; `size` must be positive. Sets *width to its columns (0 for a
// combining character, -1 for a control character or an invalid byte) and returns its size in
// bytes, at least 1.
size_t lt_width_next(const char *text, size_t size, int *width);

#endif
