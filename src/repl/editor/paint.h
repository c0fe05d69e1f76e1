// The colours of a text that is being typed: one number a byte.
#ifndef LT_REPL_EDITOR_PAINT_H
#define LT_REPL_EDITOR_PAINT_H

#include "lexer.h"

// 0 is no colour; the kinds of tokens are theirs plus 1; then these.
enum {
  LT_PAINT_NONE = 0,
  LT_PAINT_TOKEN = 1,
  LT_PAINT_MATCH = LT_PAINT_TOKEN + LT_TOKEN_KINDS, // a bracket at the cursor and its other half
  LT_PAINT_FOUND,                                   // what a search found
  LT_PAINT_COMMAND,                                 // :word
  LT_PAINTS
};

// Fills paint[0 .. size - 1]. `point` is the cursor, or more than size to match no brackets.
void lt_paint(const char *text, size_t size, size_t point, unsigned char *paint);

#endif
