// Workarounds for readline's undo lists.
//
// When the user moves through the history, the library saves the edited line with its undo list,
// and shares a list between the line, the saved line and an entry of the history. Readline 8.2
// frees some of those lists while another owner still uses them. Here the saved line loses its list
// before that can happen: the list leaks a few bytes, and the changes of the saved line cannot be
// undone.
#ifndef LT_REPL_EDITOR_UNDO_H
#define LT_REPL_EDITOR_UNDO_H

// Removes the undo list from the saved line if it has another owner. Call it after each key, before
// the library handles the next.
void lt_undo_after_key(void);

// Removes the undo list from the saved line. Call it at the end of a line, where the library frees
// only the list of the line itself.
void lt_undo_forget_saved(void);

#endif
