// Lua's tokens, in text that may be incomplete or wrong. Source: Lua 5.4 Reference Manual, section
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
  LT_TOKEN_BAD, // a byte that starts no token, or an unfinished string
  LT_TOKEN_KINDS
};

extern const char *const lt_token_names[LT_TOKEN_KINDS]; // "name", "keyword", ...

struct lt_token {
  enum lt_token_kind kind;
  size_t first, after; // its bytes are text[first .. after - 1]
};

// Returns the token that starts at byte `at`, which must be less than `size`. Every text has a
// token: the result is never empty, and the tokens in order cover the input.
struct lt_token lt_lexer_next(const char *text, size_t size, size_t at);

#endif
