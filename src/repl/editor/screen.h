// The terminal's contents while a cell is edited. Invariant: after lt_screen_draw the terminal
// shows the library's line and its contents are recorded, so that the next draw writes only the
// rows that differ.
#ifndef LT_REPL_EDITOR_SCREEN_H
#define LT_REPL_EDITOR_SCREEN_H

// Starts a prompt at the start of a row: below the last output if that did not end its line.
void lt_screen_begin(void);

// Shows the current line. Does nothing outside of lt_screen_begin and lt_screen_end.
void lt_screen_draw(void);

// Shows the whole text, even of a cell taller than the terminal, then `mark`, and moves the cursor
// to the row below.
void lt_screen_end(const char *mark);

// Moves the cursor to the row below the text, for output of others.
void lt_screen_below(void);

// Ends the prompt without output: at the end of input.
void lt_screen_leave(void);

// Sets the lines below the text, until the next call; NULL for none. Lines without room are cut.
// The text is copied.
void lt_screen_footer(const char *text);

// To be called when the terminal's size has changed; clears the terminal; forgets its contents
// because others wrote to it.
void lt_screen_resized(void);
void lt_screen_clear(void);
void lt_screen_forget(void);

#endif
