// Movement by lines: within the cell, and at its first and last line through the history.
#ifndef LT_REPL_EDITOR_HISTORY_WALK_H
#define LT_REPL_EDITOR_HISTORY_WALK_H

#include <stdbool.h>
#include <stddef.h>

// Return the start of the line that contains byte `at`, and its end: the index of its newline or of
// the end of the text.
size_t lt_walk_line_start(size_t at);
size_t lt_walk_line_end(size_t at);

// Moves the cursor one character to the left, over combining characters. The cursor must not be at
// the start of the text.
void lt_walk_left(void);

// Commands of readline: move a line up or down, in the same column. Up from the first line and down
// from the last line, they go to the entry of the history that begins with the text that was before
// the cursor when the walk began.
int lt_walk_up(int count, int key);
int lt_walk_down(int count, int key);

// Returns whether the last key was part of an incremental search, so the line is its result.
bool lt_walk_searched(void);

#endif
