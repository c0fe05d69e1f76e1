// Lua's tokens, for text that may be unfinished or wrong. Source: the Lua 5.4 reference manual,
// 3.1.
#ifndef LT_REPL_EDITOR_LEXER_H
#define LT_REPL_EDITOR_LEXER_H

#include <stddef.h>

enum lt_token_kind {
  LT_TOKEN_NAME,
  LT_TOKEN_KEYWORD,
  LT_TOKEN_NUMBER,
  LT_TOKEN_STRING,
  LT_TOKEN_OP,
  LT_TOKEN_COMMENT,
  LT_TOKEN_SPACE,
  LT_TOKEN_BAD, // what is no token, and a string without its end
  LT_TOKEN_KINDS
};

extern const char *const lt_token_names[LT_TOKEN_KINDS]; // "name", "keyword", ...

struct lt_token {
  enum lt_token_kind kind;
  size_t first, after; // its bytes are text[first .. after - 1]
};

// The token that starts at `at`, which is less than `size`. Never fails and never is empty, so the
// tokens' texts, in order, are the input.
struct lt_token lt_lexer_next(const char *text, size_t size, size_t at);

#endif
