// Bracketed paste: pastes that the terminal marks as such.
#ifndef LT_REPL_EDITOR_PASTE_H
#define LT_REPL_EDITOR_PASTE_H

// The command for the start of a paste: reads and inserts all of it, whatever its size, and
// executes nothing. Ctrl-C stops the reading.
int lt_paste(int count, int key);

#endif
