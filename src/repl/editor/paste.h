// A paste that the terminal marks as one (bracketed paste).
#ifndef LT_REPL_EDITOR_PASTE_H
#define LT_REPL_EDITOR_PASTE_H

// The key that starts it: inserts all of it, whatever its size, and executes nothing. Ctrl-C ends
// waiting for the rest.
int lt_paste(int count, int key);

#endif
