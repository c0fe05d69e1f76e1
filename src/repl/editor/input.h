// Pending input, for the code that edits a cell: keys, screen, pastes.
#ifndef LT_REPL_EDITOR_INPUT_H
#define LT_REPL_EDITOR_INPUT_H

#include <stdbool.h>

// Returns whether more input is available without waiting, as in a paste.
bool lt_input_pending(void);

// Blocks until there is input while a cell is edited; returns false after Ctrl-C or an error. It
// calls the function that lt_input_set_wait has set, since the code that reads cells also handles
// signals; returns false without one.
bool lt_input_wait(void);
void lt_input_set_wait(bool (*wait)(void));

#endif
