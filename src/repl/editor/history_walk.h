// Moving by lines: within the cell, and beyond its first and last line through the history.
#ifndef LT_REPL_EDITOR_HISTORY_WALK_H
#define LT_REPL_EDITOR_HISTORY_WALK_H

#include <stdbool.h>
#include <stddef.h>

// Where the line that holds `at` starts, and where its newline (or the end of the text) is.
size_t lt_walk_line_start(size_t at);
size_t lt_walk_line_end(size_t at);

// The cursor a character to the left, with what combines with it. It is not at the start of the
// text.
void lt_walk_left(void);

// A line up or down, in the same column. From the first line up, and from the last line down, to
// the entry of the history that begins with what was before the cursor when the walk began.
int lt_walk_up(int count, int key);
int lt_walk_down(int count, int key);

// The line is what an incremental search has just found.
bool lt_walk_searched(void);

#endif
