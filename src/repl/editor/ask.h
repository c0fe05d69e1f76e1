// Questions that the editor has for the Lua half (lib/lutra/repl/editor.lua). Each is a call that
// cannot fail: where there is no answer, or an error instead of one, the editor goes on without.
#ifndef LT_REPL_EDITOR_ASK_H
#define LT_REPL_EDITOR_ASK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lua_State lua_State;

// Whom to ask: the table at `index`, which must stay there until lt_ask_end. Its fields are
// functions of the text and how many of its bytes are before the cursor, and `colors`.
void lt_ask_begin(lua_State *L, int index);
void lt_ask_end(void);

// The SGR parameters for each number of paint.h; NULL when there are to be no colours.
const char *const *lt_ask_colors(void);

// unfinished(text) -> true when a cell goes on
bool lt_ask_unfinished(const char *text, size_t size);

// Calls the field `name`, which gives a string or nil. The answer is to be freed; NULL for nil.
char *lt_ask_text(const char *name, const char *text, size_t size, size_t point);

// What Tab is to do: replace the bytes from .. to - 1 by `text`, and show `list` (NULL: nothing).
struct lt_completion {
  size_t from, to;
  char *text, *list; // to be freed
};

// complete(text, point) -> first, last, new text, list or nil; nothing when there are no candidates
bool lt_ask_complete(const char *text, size_t size, size_t point, struct lt_completion *answer);

#endif
