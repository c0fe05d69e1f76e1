/* json.h: the few pieces of JSON that file headers are made of, read from memory and written to a
 * file. */
#ifndef LT_IO_JSON_H
#define LT_IO_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in a text. The first failure is kept in `wrong`; what follows it fails at once. */
typedef struct lt_Json {
  const char *at, *end, *start;
  const char *wrong; /* NULL: all is well */
} lt_Json;

/* Is it valid UTF-8 (no surrogates, no overlong forms)? */
bool lt_utf8_valid(const char *s, size_t n);

/* Skips blanks, then takes this character, or fails. */
bool lt_json_take(lt_Json *j, char c);
/* Skips blanks; true, and past it, when this character comes next. */
bool lt_json_try(lt_Json *j, char c);
/* Skips blanks; true when nothing is left. */
bool lt_json_done(lt_Json *j);
/* A string, unescaped; malloc'ed. It may not hold NUL. NULL on failure. */
char *lt_json_string(lt_Json *j);
/* A whole number >= 0 that fits 64 bits. */
bool lt_json_number(lt_Json *j, uint64_t *n);

/* A name from a file for a message: in quotes, control characters as "?", cut when long. In a ring
 * of buffers, good for the message that is being made. */
const char *lt_json_show(const char *name);

/* Writes s, escaped and in quotes, at out (NULL: only counts); returns how many bytes that are. */
size_t lt_json_quote(char *out, const char *s);

#endif
