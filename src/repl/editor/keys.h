// Commands for keys that readline lacks, or that behave differently in a cell of several lines.
#ifndef LT_REPL_EDITOR_KEYS_H
#define LT_REPL_EDITOR_KEYS_H

#include <stdbool.h>

// Registers the names of the commands, for .inputrc. Call it before rl_initialize, which reads that
// file.
void lt_keys_name(void);

// Binds the commands in the emacs, vi insertion and vi command keymaps to every key that has
// readline's own function for the same purpose; other bindings of .inputrc stay. Call it for each
// prompt, since readline binds the terminal's own keys (stty) again.
void lt_keys_bind(void);

// Returns whether a search is running: the line is its pattern or result, not the edited text.
bool lt_keys_searching(void);

// Applies changes that depend on the text after a key: removes bytes that readline cannot handle,
// and adjusts the indentation of the line. Call it after each key.
void lt_keys_after(void);

#endif
