// From a text to the rows of a terminal: prompt, lines indented under it, wrapped at the edge,
// coloured, and where the cursor stands in them. Writes to no terminal.
#ifndef LT_REPL_EDITOR_LAYOUT_H
#define LT_REPL_EDITOR_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

// A row is complete in itself: it sets its colours and takes them back.
struct lt_row {
  size_t start, size; // its bytes, in those of the layout
  int width;          // columns that are written
  bool wraps;         // the line goes on in the next row
};

struct lt_layout {
  char *bytes;
  size_t size, capacity;
  struct lt_row *rows;
  size_t count, room;
  size_t cursor_row;
  int cursor_column;
};

struct lt_layout_input {
  const char *prompt;         // may hold readline's marks \1 ... \2 around what is not seen
  const char *text;           // its lines end in \n
  size_t size, point;         // the cursor is before text[point]
  const unsigned char *paint; // a number for each byte of text: its code, 0 for none; or NULL
  const char *const *codes;   // the parameters of SGR for a number
  int columns;
};

// Lays the text out anew. Without memory the rows end early.
void lt_layout_build(struct lt_layout *layout, const struct lt_layout_input *input);

// Adds a row that is text as it is, cut at `columns`.
void lt_layout_line(struct lt_layout *layout, const char *text, size_t size, int columns);

// Adds a copy of a row of another layout.
void lt_layout_copy(struct lt_layout *layout, const struct lt_layout *from,
                    const struct lt_row *row);

// How far from its start lines are indented: the prompt's width, less on a narrow terminal.
int lt_layout_indent(const char *prompt, int columns);

#endif
