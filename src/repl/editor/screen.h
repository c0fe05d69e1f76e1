// What stands on the terminal while a cell is edited. Invariant: `lt_screen_draw` leaves the
// terminal showing the library's line, and knows what it shows, so that the next draw writes only
// the rows that are different.
#ifndef LT_REPL_EDITOR_SCREEN_H
#define LT_REPL_EDITOR_SCREEN_H

// A new prompt, at the start of a row: where output did not end its line, below it.
void lt_screen_begin(void);

// Shows the line as it is now. Nothing happens outside of lt_screen_begin and lt_screen_end.
void lt_screen_draw(void);

// Shows the whole line, also of a cell taller than the terminal, then `mark`; leaves the cursor
// below.
void lt_screen_end(const char *mark);

// The cursor below all of it, for what others are going to write.
void lt_screen_below(void);

// Ends it without a trace: at the end of input.
void lt_screen_leave(void);

// Lines below the text, until the next call; NULL: none. They are cut where there is no room.
void lt_screen_footer(const char *text);

// The terminal has another size; its contents were cleared; something else was written to it.
void lt_screen_resized(void);
void lt_screen_clear(void);
void lt_screen_forget(void);

#endif
