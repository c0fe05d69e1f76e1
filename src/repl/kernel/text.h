// A growing string for the texts of messages. After a failed allocation it is `failed`, and stays
// as it was.
#ifndef LT_REPL_KERNEL_TEXT_H
#define LT_REPL_KERNEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct lt_text {
  char *data; // not terminated by NUL
  size_t size, room;
  bool failed;
};

void lt_text_add(struct lt_text *, const char *data, size_t size);
void lt_text_add_string(struct lt_text *, const char *);

// Appends `data` as a JSON string in quotes; each byte that is not part of a UTF-8 character
// becomes U+FFFD.
void lt_text_add_json(struct lt_text *, const char *data, size_t size);

void lt_text_free(struct lt_text *);

// Returns the number of bytes at the end of `data` that begin a UTF-8 character and do not complete
// it: 0 to 3.
size_t lt_text_unfinished(const char *data, size_t size);

#endif
