// One function for each kind of token; it returns the end of the token, or `at` when no such token
// starts there. Invariant: no byte at or after `size` is read.
#include "lexer.h"

#include <stdbool.h>
#include <string.h>

const char *const lt_token_names[LT_TOKEN_KINDS] = {
    [LT_TOKEN_NAME] = "name",     [LT_TOKEN_KEYWORD] = "keyword", [LT_TOKEN_NUMBER] = "number",
    [LT_TOKEN_STRING] = "string", [LT_TOKEN_OP] = "op",           [LT_TOKEN_COMMENT] = "comment",
    [LT_TOKEN_SPACE] = "space",   [LT_TOKEN_BAD] = "bad"};

struct input {
  const char *text;
  size_t size;
};

// Returns the byte at `at`, or 0 behind the end.
static char get(struct input in, size_t at) { return at < in.size ? in.text[at] : '\0'; }

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_one_of(char c, const char *set) { return c && strchr(set, c); }

static bool is_keyword(const char *word, size_t size) {
  static const char *const keywords[] = {"and",   "break", "do",       "else", "elseif", "end",
                                         "false", "for",   "function", "goto", "if",     "in",
                                         "local", "nil",   "not",      "or",   "repeat", "return",
                                         "then",  "true",  "until",    "while"};
  if (size < 2 || size > 8) return false;
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (keywords[i][0] == word[0] && strlen(keywords[i]) == size &&
        !memcmp(keywords[i], word, size))
      return true;
  return false;
}

static size_t space(struct input in, size_t at) {
  while (at < in.size && is_space(in.text[at])) at++;
  return at;
}

static size_t word(struct input in, size_t at) {
  if (!is_letter(get(in, at))) return at;
  while (is_letter(get(in, at)) || is_digit(get(in, at))) at++;
  return at;
}

// Scans [==[ ... ]==]. An unfinished one extends to the end of the text, and *closed is false.
static size_t long_bracket(struct input in, size_t at, bool *closed) {
  size_t i = at + 1;
  if (get(in, at) != '[') return at;
  while (get(in, i) == '=') i++;
  if (get(in, i) != '[') return at;
  size_t level = i - at - 1;
  for (i++; i < in.size; i++) {
    if (in.text[i] != ']') continue;
    size_t j = i + 1;
    while (get(in, j) == '=') j++;
    if (j - i - 1 == level && get(in, j) == ']') {
      *closed = true;
      return j + 1;
    }
    i = j - 1;
  }
  *closed = false;
  return in.size;
}

// Scans a quoted string; one without a closing quote ends at the end of the line, and *closed is
// false.
static size_t quoted(struct input in, size_t at, bool *closed) {
  char quote = get(in, at);
  if (quote != '"' && quote != '\'') return at;
  *closed = false;
  for (size_t i = at + 1; i < in.size; i++) {
    char c = in.text[i];
    if (c == quote) {
      *closed = true;
      return i + 1;
    }
    if (c == '\n') return i;
    if (c == '\\') i = get(in, i + 1) == 'z' ? space(in, i + 2) - 1 : i + 1;
  }
  return in.size;
}

// Scans a number as Lua's own lexer does: all letters, digits and points that follow belong to it.
static size_t number(struct input in, size_t at) {
  if (!is_digit(get(in, at + (get(in, at) == '.')))) return at;
  const char *exponent = get(in, at) == '0' && is_one_of(get(in, at + 1), "xX") ? "pP" : "eE";
  for (;;) {
    char c = get(in, at);
    if (is_one_of(c, exponent) && is_one_of(get(in, at + 1), "+-"))
      at += 2;
    else if (is_letter(c) || is_digit(c) || c == '.')
      at++;
    else
      return at;
  }
}

static size_t operator(struct input in, size_t at) {
  static const char *const longer[] = {"...", "<<", ">>", "//", "==", "~=", "<=", ">=", "::", ".."};
  for (size_t i = 0; i < sizeof longer / sizeof *longer; i++) {
    size_t n = strlen(longer[i]);
    if (at + n <= in.size && memcmp(in.text + at, longer[i], n) == 0) return at + n;
  }
  return at + is_one_of(get(in, at), "+-*/%^#&~|<>=(){}[];:,.");
}

static size_t comment(struct input in, size_t at) {
  bool closed;
  if (get(in, at) != '-' || get(in, at + 1) != '-') return at;
  size_t after = long_bracket(in, at + 2, &closed);
  if (after > at + 2) return after;
  while (after < in.size && in.text[after] != '\n') after++;
  return after;
}

struct lt_token lt_lexer_next(const char *text, size_t size, size_t at) {
  struct input in = {text, size};
  struct lt_token t = {LT_TOKEN_SPACE, at, space(in, at)};
  if (t.after > at) return t;
  if ((t.after = word(in, at)) > at) {
    t.kind = is_keyword(text + at, t.after - at) ? LT_TOKEN_KEYWORD : LT_TOKEN_NAME;
    return t;
  }
  t.kind = LT_TOKEN_COMMENT;
  if ((t.after = comment(in, at)) > at) return t;
  t.kind = LT_TOKEN_NUMBER;
  if ((t.after = number(in, at)) > at) return t;
  bool closed = true;
  if ((t.after = long_bracket(in, at, &closed)) == at) t.after = quoted(in, at, &closed);
  t.kind = closed ? LT_TOKEN_STRING : LT_TOKEN_BAD;
  if (t.after > at) return t;
  t.kind = LT_TOKEN_OP;
  if ((t.after = operator(in, at)) > at) return t;
  return (struct lt_token){LT_TOKEN_BAD, at, at + 1};
}
