// A pen writes characters into rows; a character that does not fit starts a new row. Invariant: no
// row is wider than `columns`, and a character and its combining characters are in the same row.
#include "layout.h"
#include "width.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAB = 8 };

struct pen {
  struct lt_layout *layout;
  const struct lt_layout_input *input;
  int indent;
  unsigned char code; // current colour of the row
};

// Makes room for `needed` elements of `size` bytes; false when out of memory.
static bool grow(void **memory, size_t *capacity, size_t needed, size_t size) {
  if (needed <= *capacity) return true;
  size_t more = needed + needed / 2 + 64;
  void *grown = realloc(*memory, more * size);
  if (!grown) return false;
  *memory = grown;
  *capacity = more;
  return true;
}

static struct lt_row *last_row(struct lt_layout *l) { return &l->rows[l->count - 1]; }

static void put(struct lt_layout *l, const char *bytes, size_t size, int width) {
  if (!l->count || !grow((void **)&l->bytes, &l->capacity, l->size + size, 1)) return;
  memcpy(l->bytes + l->size, bytes, size);
  l->size += size;
  last_row(l)->size += size;
  last_row(l)->width += width;
}

static bool add_row(struct lt_layout *l) {
  if (!grow((void **)&l->rows, &l->row_capacity, l->count + 1, sizeof *l->rows)) return false;
  l->rows[l->count++] = (struct lt_row){.start = l->size};
  return true;
}

// ---- the pen

static int column(const struct pen *p) { return p->layout->count ? last_row(p->layout)->width : 0; }

// Switches the colour of the following characters.
static void set_code(struct pen *p, unsigned char code) {
  if (code && !*p->input->codes[code]) code = 0;
  if (code == p->code) return;
  if (p->code) put(p->layout, "\033[0m", 4, 0);
  p->code = code;
  if (!code) return;
  char text[32];
  int n = snprintf(text, sizeof text, "\033[%.20sm", p->input->codes[code]);
  put(p->layout, text, (size_t)n, 0);
}

// Starts a row. A row that continues a line keeps the colour; a new line is indented.
static void new_row(struct pen *p, bool wraps) {
  unsigned char code = p->code;
  set_code(p, 0);
  if (p->layout->count) last_row(p->layout)->wraps = wraps;
  if (!add_row(p->layout)) return;
  if (wraps)
    set_code(p, code);
  else
    for (int i = 0; i < p->indent; i++) put(p->layout, " ", 1, 1);
}

static void draw(struct pen *p, const char *bytes, size_t size, int width) {
  if (column(p) + width > p->input->columns) new_row(p, true);
  put(p->layout, bytes, size, width);
}

static void set_cursor(struct pen *p) {
  p->layout->cursor_row = p->layout->count ? p->layout->count - 1 : 0;
  p->layout->cursor_column = column(p);
}

// Writes spaces up to the next tab stop, counted from the indentation, but not over the edge.
static void draw_tab(struct pen *p) {
  int n = TAB - (column(p) + TAB * p->input->columns - p->indent) % TAB;
  if (n > p->input->columns - column(p)) n = p->input->columns - column(p);
  for (int i = 0; i < n; i++) draw(p, " ", 1, 1);
}

// Writes a replacement for a control character (^X) or an invalid byte (?).
static void draw_other(struct pen *p, unsigned char c) {
  char text[2] = {'^', (char)(c ^ 0x40)};
  if (c < 0x20 || c == 0x7F)
    draw(p, text, 2, 2);
  else
    draw(p, "?", 1, 1);
}

static unsigned char paint_at(const struct lt_layout_input *in, size_t at) {
  return in->paint ? in->paint[at] : 0;
}

// Returns the number of characters from `at` on that have one byte, one column and the same colour
// and fit into the row, up to the cursor. They are written at once.
static size_t plain_run(const struct pen *p, size_t at) {
  const struct lt_layout_input *in = p->input;
  size_t end = in->point >= at && in->point < in->size ? in->point : in->size, first = at;
  size_t room = (size_t)(in->columns - column(p));
  if (end - at > room) end = at + room;
  unsigned char paint = paint_at(in, at);
  while (at < end && in->text[at] >= 0x20 && in->text[at] < 0x7F && paint_at(in, at) == paint) at++;
  return at - first;
}

// Writes the text with its colours, and records the position of the cursor.
static void draw_text(struct pen *p) {
  const struct lt_layout_input *in = p->input;
  for (size_t at = 0; at < in->size;) {
    size_t run = plain_run(p, at);
    if (run > 0) {
      set_code(p, paint_at(in, at));
      put(p->layout, in->text + at, run, (int)run);
      at += run;
      continue;
    }
    int width;
    size_t n = lt_width_next(in->text + at, in->size - at, &width);
    bool line_end = in->text[at] == '\n', cursor = at == in->point;
    int needs = line_end ? cursor : width < 0 ? 1 : width;
    if (column(p) + needs > in->columns) new_row(p, true);
    if (cursor) set_cursor(p);
    set_code(p, line_end ? 0 : paint_at(in, at));
    if (line_end)
      new_row(p, false);
    else if (in->text[at] == '\t')
      draw_tab(p);
    else if (width < 0)
      draw_other(p, (unsigned char)in->text[at]);
    else
      draw(p, in->text + at, n, width);
    at += n;
  }
  set_code(p, 0);
  if (in->point < in->size) return;
  if (column(p) >= in->columns) new_row(p, true);
  set_cursor(p);
}

// Returns the width of a prompt. If p is not NULL, writes the prompt.
static int prompt_width(const char *prompt, struct pen *p) {
  int total = 0;
  bool hidden = false;
  for (size_t size = strlen(prompt), at = 0; at < size;) {
    int width;
    size_t n = lt_width_next(prompt + at, size - at, &width);
    if (prompt[at] == '\1' || prompt[at] == '\2') {
      hidden = prompt[at] == '\1';
    } else if (hidden || width >= 0) {
      int seen = hidden ? 0 : width;
      total += seen;
      if (p) draw(p, prompt + at, n, seen);
    }
    at += n;
  }
  return total;
}

int lt_layout_indent(const char *prompt, int columns) {
  int width = prompt_width(prompt, NULL);
  return width * 2 > columns ? 0 : width;
}

void lt_layout_build(struct lt_layout *layout, const struct lt_layout_input *input) {
  struct pen pen = {.layout = layout, .input = input};
  pen.indent = lt_layout_indent(input->prompt, input->columns);
  layout->size = layout->count = 0;
  if (!add_row(layout)) return;
  (void)prompt_width(input->prompt, &pen);
  draw_text(&pen);
}

void lt_layout_line(struct lt_layout *layout, const char *text, size_t size, int columns) {
  if (!add_row(layout)) return;
  for (size_t at = 0; at < size;) {
    int width;
    size_t n = lt_width_next(text + at, size - at, &width);
    if (last_row(layout)->width + width > columns) break;
    if (width >= 0) put(layout, text + at, n, width);
    at += n;
  }
}

void lt_layout_copy(struct lt_layout *layout, const struct lt_layout *from,
                    const struct lt_row *row) {
  if (!add_row(layout)) return;
  put(layout, from->bytes + row->start, row->size, row->width);
  last_row(layout)->wraps = row->wraps;
}
