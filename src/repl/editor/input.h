// Input that has not been read yet, for what edits a cell: the keys, the screen, pastes.
#ifndef LT_REPL_EDITOR_INPUT_H
#define LT_REPL_EDITOR_INPUT_H

#include <stdbool.h>

// More input waits already: a paste, not a person who thinks.
bool lt_input_pending(void);

// Waits for input while a cell is edited, by the function that lt_input_set_wait was given; false
// when Ctrl-C or an error came instead. Whoever reads cells also answers signals, so it brings that
// function.
bool lt_input_wait(void);
void lt_input_set_wait(bool (*wait)(void));

#endif
