// Layout of text in the rows of a terminal: the prompt, lines indented below it, wrapped at the
// edge, coloured, and the position of the cursor. Writes to no terminal.
#ifndef LT_REPL_EDITOR_LAYOUT_H
#define LT_REPL_EDITOR_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>

// A row. It is self-contained: it sets its colours and resets them.
struct lt_row {
  size_t start, size; // range of its bytes in those of the layout
  int width;          // columns that it occupies
  bool wraps;         // the line continues in the next row
};

struct lt_layout {
  char *bytes;
  size_t size, capacity;
  struct lt_row *rows;
  size_t count, row_capacity;
  size_t cursor_row;
  int cursor_column;
};

struct lt_layout_input {
  // may contain readline's markers \1 ... \2 around invisible characters
  const char *prompt;
  const char *text;           // lines are separated by \n
  size_t size, point;         // the cursor is before text[point]
  const unsigned char *paint; // for each byte of text the number of its code, 0 for none; or NULL
  const char *const *codes;   // SGR parameters for each number
  int columns;
};

// Computes the layout of the input, which replaces the contents of `layout`. When out of memory
// there are fewer rows. The memory is reused by later calls.
void lt_layout_build(struct lt_layout *layout, const struct lt_layout_input *input);

// Appends a row of text in the default colour, cut at `columns`.
void lt_layout_line(struct lt_layout *layout, const char *text, size_t size, int columns);

// Appends a copy of a row of another layout.
void lt_layout_copy(struct lt_layout *layout, const struct lt_layout *from,
                    const struct lt_row *row);

// Returns the indentation of lines: the prompt's width, or 0 if that is over half of the terminal.
int lt_layout_indent(const char *prompt, int columns);

#endif
