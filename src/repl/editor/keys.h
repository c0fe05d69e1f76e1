// What keys do that readline does otherwise, or not at all.
#ifndef LT_REPL_EDITOR_KEYS_H
#define LT_REPL_EDITOR_KEYS_H

#include <stdbool.h>

// Makes their names known to .inputrc. Before rl_initialize, which reads it.
void lt_keys_name(void);

// Binds them, in the emacs, vi insertion and vi command keymaps, wherever a key has readline's own
// function for the same purpose; what .inputrc says stays. To be
// called for each prompt, since readline binds the terminal's own keys (stty) anew.
void lt_keys_bind(void);

// The line is what a search looks for, not what is edited.
bool lt_keys_searching(void);

// To be called after each key, for what depends on the whole word that was typed.
void lt_keys_after(void);

#endif
