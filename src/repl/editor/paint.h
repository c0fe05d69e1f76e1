// Syntax colours of the edited text: one number for each byte.
#ifndef LT_REPL_EDITOR_PAINT_H
#define LT_REPL_EDITOR_PAINT_H

#include "lexer.h"

// 0: no colour; then the kinds of tokens plus 1; then these:
enum {
  LT_PAINT_NONE = 0,
  LT_PAINT_TOKEN = 1,
  LT_PAINT_MATCH = LT_PAINT_TOKEN + LT_TOKEN_KINDS, // the pair of brackets at the cursor
  LT_PAINT_FOUND,                                   // the match of a search
  LT_PAINT_COMMAND,                                 // a command, :word
  LT_PAINTS
};

// Fills paint[0 .. size - 1]. `point` is the cursor; a value over `size` highlights no brackets.
void lt_paint(const char *text, size_t size, size_t point, unsigned char *paint);

#endif
