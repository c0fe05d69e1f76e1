// Queries that the editor makes to Lua (lib/lutra/repl/editor.lua). None of them fails: without an
// answer, or after an error in Lua, the editor continues with a default.
#ifndef LT_REPL_EDITOR_ASK_H
#define LT_REPL_EDITOR_ASK_H

#include <stdbool.h>
#include <stddef.h>

typedef struct lua_State lua_State;

// Sets the table that answers queries: at stack index `index` of L, where it must stay until
// lt_ask_end. Its fields are functions of the text and the number of its bytes before the cursor,
// and `colors`.
void lt_ask_begin(lua_State *L, int index);
// Ends this; later queries return their defaults.
void lt_ask_end(void);

// Returns the SGR parameters for each number of paint.h; NULL when colours are off.
const char *const *lt_ask_colors(void);

// Calls unfinished(text): returns whether the cell continues. Default: false.
bool lt_ask_unfinished(const char *text, size_t size);

// Calls the function in the field `name`, which returns a string or nil. Returns a copy of the
// string, which the caller frees; NULL for nil and by default.
char *lt_ask_text(const char *name, const char *text, size_t size, size_t point);

// The effect of Tab: replaces the bytes from .. to - 1 by `text`, and shows `list` (NULL: nothing).
struct lt_completion {
  size_t from, to;
  char *text, *list; // freed by the caller
};

// Calls complete(text, point) -> first, last, new text, list or nil; nothing without candidates.
// Returns whether there is a completion; only then *answer holds strings to be freed.
bool lt_ask_complete(const char *text, size_t size, size_t point, struct lt_completion *answer);

#endif
