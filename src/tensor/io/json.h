/* json.h: the subset of JSON that the headers of tensor files use: a parser of memory, and an
 * encoder of strings. */
#ifndef LT_IO_JSON_H
#define LT_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A parser: the current position in a string. The first error is stored in `wrong`; after it every
 * function fails. */
typedef struct lt_Json {
  const char *at, *end, *start;
  const char *wrong; /* what was expected; NULL: no error */
} lt_Json;

/* Returns true when the bytes are valid UTF-8 (no surrogates, no overlong forms). */
bool lt_utf8_valid(const char *s, size_t n);

/* Skips blanks and reads this character; fails when another comes next. */
bool lt_json_take(lt_Json *j, char c);
/* Skips blanks. Reads this character and returns true if it comes next, otherwise returns false. */
bool lt_json_try(lt_Json *j, char c);
/* Skips blanks. Returns true at the end of the string. */
bool lt_json_done(lt_Json *j);
/* Reads a string and returns it unescaped; the caller frees it. Fails on a NUL character. */
char *lt_json_string(lt_Json *j);
/* Reads an integer from 0 to 2^64 - 1. */
bool lt_json_number(lt_Json *j, uint64_t *n);

/* Formats a name from a file for a message: in quotes, control characters as "?", shortened when
 * long. In a ring of buffers: valid until the message is complete. */
const char *lt_json_show(const char *name);

/* Writes s, escaped and in quotes, to out (NULL: only counts). Returns the number of bytes. */
size_t lt_json_quote(char *out, const char *s);

#endif
