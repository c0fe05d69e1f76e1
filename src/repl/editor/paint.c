// One pass over the tokens with a stack of the open brackets. Brackets deeper than the stack are
// not matched.
#include "paint.h"

#include <stdbool.h>
#include <string.h>

enum { DEPTH = 1000 };

struct brackets {
  size_t open[DEPTH];
  size_t depth;
  size_t point; // the cursor
  size_t at[2]; // the pair with an end under the cursor, else with an end before it
  bool under, found;
};

static char closer(char c) { return c == '(' ? ')' : c == '[' ? ']' : c == '{' ? '}' : '\0'; }

// Matches a closing bracket, and records the pair if one end is at the cursor.
static void close_bracket(struct brackets *b, const char *text, size_t at) {
  if (b->depth == 0) return;
  size_t open = b->depth <= DEPTH ? b->open[b->depth - 1] : at;
  b->depth--;
  if (closer(text[open]) != text[at]) return;
  bool under = open == b->point || at == b->point;
  bool before = open + 1 == b->point || at + 1 == b->point;
  if (!(under || (before && !b->under))) return;
  b->at[0] = open;
  b->at[1] = at;
  b->under = under;
  b->found = true;
}

static void visit_bracket(struct brackets *b, const char *text, size_t at) {
  if (closer(text[at])) {
    if (b->depth < DEPTH) b->open[b->depth] = at;
    b->depth++;
  } else if (strchr(")]}", text[at])) {
    close_bracket(b, text, at);
  }
}

// Colours the command prefix of a line (:word, !, ?) and returns the index at which Lua code
// starts.
static size_t command(const char *text, size_t size, unsigned char *paint) {
  size_t at = 0, first;
  while (at < size && (text[at] == ' ' || text[at] == '\t')) at++;
  first = at;
  if (at == size || !strchr(":!?", text[at])) return 0;
  if (text[at] == '!') return size;
  at++;
  while (text[first] == ':' && at < size && text[at] > ' ') at++;
  memset(paint + first, LT_PAINT_COMMAND, at - first);
  return at;
}

static int color(const char *text, struct lt_token t) {
  if (t.kind != LT_TOKEN_BAD) return LT_PAINT_TOKEN + (int)t.kind;
  return strchr("\"'[", text[t.first]) ? LT_PAINT_TOKEN + LT_TOKEN_STRING : LT_PAINT_NONE;
}

void lt_paint(const char *text, size_t size, size_t point, unsigned char *paint) {
  struct brackets b = {.point = point};
  memset(paint, LT_PAINT_NONE, size);
  for (size_t at = command(text, size, paint); at < size;) {
    struct lt_token t = lt_lexer_next(text, size, at);
    memset(paint + t.first, color(text, t), t.after - t.first);
    if (t.kind == LT_TOKEN_OP && t.after == t.first + 1) visit_bracket(&b, text, t.first);
    at = t.after;
  }
  if (b.found && point <= size) paint[b.at[0]] = paint[b.at[1]] = LT_PAINT_MATCH;
}
