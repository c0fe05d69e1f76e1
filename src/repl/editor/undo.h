// The lists of changes that undo reads, and the library's mistakes with them.
//
// To look through the history, the library puts the line aside with its list of changes, and shares
// a list between the line, the line aside and an entry of the history. In readline 8.2 it frees
// some of those lists while another owner still has them. Here the line aside loses its list before
// that can happen: such a list costs some bytes, and the changes of the line aside cannot be
// undone.
#ifndef LT_REPL_EDITOR_UNDO_H
#define LT_REPL_EDITOR_UNDO_H

// After each key, before the library handles the next: no list has two owners of which one is
// aside.
void lt_undo_after_key(void);

// At the end of a line: the library frees the list of the line itself, not the one aside.
void lt_undo_forget_aside(void);

#endif
