// Rows are compared with those on the terminal, and all output is written at once. Cursor movements
// are relative to the cursor's row, because the row of the prompt on the terminal is not known. A
// cell taller than the terminal is shown through a window that follows the cursor.
#define _XOPEN_SOURCE   700
#define _DEFAULT_SOURCE // struct winsize
#include "screen.h"
#include "ask.h"
#include "input.h"
#include "layout.h"
#include "library.h"
#include "paint.h"
#include "width.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct lt_layout next;  // layout of the whole text and the footer
static struct lt_layout shown; // the rows on the terminal, and its cursor
static size_t window;          // first visible row of `next`
static size_t used_rows;       // rows of the terminal in use, from the prompt's on
static int columns, rows;      // size of the terminal
static bool active;            // between begin and end
static char *footer;
static unsigned char *paint;
static size_t paint_capacity;

// ---- output

static struct {
  char *bytes;
  size_t size, capacity;
} out;

// Appends output, which flush writes at once. Output is dropped when out of memory.
static void emit(const char *bytes, size_t size) {
  if (out.size + size > out.capacity) {
    size_t room = (out.size + size) * 2;
    char *grown = realloc(out.bytes, room);
    if (!grown) return;
    out.bytes = grown;
    out.capacity = room;
  }
  memcpy(out.bytes + out.size, bytes, size);
  out.size += size;
}

__attribute__((format(printf, 1, 2))) static void emitf(const char *format, ...) {
  char text[32];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  emit(text, (size_t)n);
}

static void flush(void) {
  fflush(stdout);
  for (size_t at = 0; at < out.size;) {
    ssize_t n = write(STDOUT_FILENO, out.bytes + at, out.size - at);
    if (n < 0 && errno != EINTR && errno != EAGAIN) break;
    if (n > 0) at += (size_t)n;
  }
  out.size = 0;
}

// ---- layout

static void read_size(void) {
  struct winsize size = {0};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) size.ws_col = 0;
  columns = size.ws_col >= 2 ? size.ws_col : 80;
  rows = size.ws_row >= 1 ? size.ws_row : 24;
}

// Returns the message that the library shows in place of the prompt (a search, a numeric argument),
// or NULL.
static const char *message(void) {
  const char *shows = *lt_rl.rl_display_prompt;
  return shows && shows != *lt_rl.rl_prompt ? shows : NULL;
}

// Highlights the match of an incremental search, which the library reports only in its message:
// (reverse-i-search)`text':
static void paint_found(size_t size, size_t point) {
  const char *text = message(), *from = text ? strchr(text, '`') : NULL;
  const char *to = from ? strrchr(from, '\'') : NULL;
  if (!to || strncmp(text, "(failed", 7) == 0) return;
  size_t n = (size_t)(to - from - 1);
  if (point + n <= size) memset(paint + point, LT_PAINT_FOUND, n);
}

// Computes the layout of the text. `last`: for the last time, without a cursor.
static void build_layout(bool last) {
  size_t size = (size_t)*lt_rl.rl_end, point = (size_t)*lt_rl.rl_point;
  if (size > paint_capacity) {
    free(paint);
    paint_capacity = size * 2;
    paint = malloc(paint_capacity);
    if (!paint) paint_capacity = 0;
  }
  bool colors = paint && lt_ask_colors();
  if (colors) {
    lt_paint(*lt_rl.rl_line_buffer, size, last ? size + 2 : point, paint);
    paint_found(size, point);
  }
  struct lt_layout_input input = {.prompt = *lt_rl.rl_prompt ? *lt_rl.rl_prompt : "",
                                  .text = *lt_rl.rl_line_buffer,
                                  .size = size,
                                  .point = last ? size : point,
                                  .paint = colors ? paint : NULL,
                                  .codes = lt_ask_colors(),
                                  .columns = columns};
  lt_layout_build(&next, &input);
}

// Appends the lines below the text: the library's message and the footer. At least half of the rows
// are left for the text.
static void build_footer(void) {
  size_t most = (size_t)rows / 2, n = 0;
  if (message() && n++ < most) lt_layout_line(&next, message(), strlen(message()), columns);
  for (const char *line = footer; line && *line && n < most; n++) {
    size_t size = strcspn(line, "\n");
    lt_layout_line(&next, line, size, columns);
    line += size + (line[size] == '\n');
  }
}

// ---- the terminal

// The column after a row as wide as the terminal: terminals differ.
enum { UNKNOWN = -1 };

// Moves the cursor of the terminal.
static void go_to(size_t row, int column) {
  if (shown.cursor_column == UNKNOWN || (column == 0 && shown.cursor_column != 0)) {
    emit("\r", 1);
    shown.cursor_column = 0;
  }
  if (row < shown.cursor_row) emitf("\033[%zuA", shown.cursor_row - row);
  if (row > shown.cursor_row) emitf("\033[%zuB", row - shown.cursor_row);
  if (column > shown.cursor_column) emitf("\033[%dC", column - shown.cursor_column);
  if (column < shown.cursor_column) emitf("\033[%dD", shown.cursor_column - column);
  shown.cursor_row = row;
  shown.cursor_column = column;
}

// Creates rows up to `row` on the terminal, by line feeds.
static void open_row(size_t row) {
  if (row < used_rows) return;
  go_to(used_rows - 1, 0);
  for (; used_rows <= row; used_rows++) emit("\r\n", 2);
  shown.cursor_row = row;
}

// The part of a row that is on the terminal already: its bytes, columns, and the colour at its end.
struct same {
  size_t size;
  int width;
  const char *code;
  size_t code_size;
};

static size_t escape_size(const char *bytes, size_t size) {
  size_t n = 0;
  while (n < size && bytes[n] != 'm') n++;
  return n < size ? n + 1 : n;
}

// Returns the common prefix of two rows. It ends before a character that differs, or whose
// combining characters differ.
static struct same compare(const struct lt_row *old, const struct lt_row *row) {
  const char *a = shown.bytes + old->start, *b = next.bytes + row->start;
  struct same same = {0, 0, "", 0}, at = same;
  while (at.size < row->size) {
    int width = 0;
    bool escape = b[at.size] == '\033';
    size_t left = row->size - at.size;
    size_t n = escape ? escape_size(b + at.size, left) : lt_width_next(b + at.size, left, &width);
    if (escape || width > 0) same = at; // the character before is complete
    if (at.size + n > old->size || memcmp(a + at.size, b + at.size, n) != 0) return same;
    if (escape) {
      at.code = b + at.size;
      at.code_size = n;
    }
    at.size += n;
    at.width += width;
  }
  return at.size < old->size && (a[at.size] & 0x80) ? same : at;
}

// Makes row i of the terminal show this row; writes only what differs.
static void write_row(size_t i, const struct lt_row *row) {
  static const struct lt_row empty;
  const struct lt_row *old = i < shown.count ? &shown.rows[i] : &empty;
  struct same same = compare(old, row);
  if (same.size == row->size && same.size == old->size && i < used_rows) return;
  open_row(i);
  go_to(i, same.width);
  emit(same.code, same.code_size);
  emit(next.bytes + row->start + same.size, row->size - same.size);
  shown.cursor_column = row->width < columns ? row->width : UNKNOWN;
  if (row->width < old->width) emit("\033[K", 3);
}

// Scrolls the window so that the cursor is visible; returns its height.
static size_t move_window(size_t text_rows, size_t below) {
  size_t room = (size_t)rows > below ? (size_t)rows - below : 1;
  size_t height = text_rows < room ? text_rows : room;
  if (next.cursor_row < window) window = next.cursor_row;
  if (next.cursor_row >= window + height) window = next.cursor_row - height + 1;
  if (window + height > text_rows) window = text_rows - height;
  return height;
}

// Returns the row of `next` that row i of the terminal shows; the first `height` rows are the
// window.
static const struct lt_row *visible_row(size_t i, size_t height, size_t text_rows) {
  return &next.rows[i < height ? window + i : text_rows + i - height];
}

// Makes the terminal show `next`: its first text_rows rows are the text, the others the footer.
static void update_terminal(size_t text_rows) {
  size_t below = next.count - text_rows, height = move_window(text_rows, below);
  size_t count = height + below;
  for (size_t i = 0; i < count; i++) write_row(i, visible_row(i, height, text_rows));
  if (count < used_rows) {
    go_to(count, 0);
    emit("\033[J", 3);
    used_rows = count;
  }
  shown.size = shown.count = 0;
  for (size_t i = 0; i < count; i++)
    lt_layout_copy(&shown, &next, visible_row(i, height, text_rows));
  go_to(next.cursor_row - window, next.cursor_column);
}

void lt_screen_draw(void) {
  if (!active || lt_input_pending()) return; // the pending keys will draw it
  build_layout(false);
  size_t text_rows = next.count;
  if (!text_rows) return; // out of memory
  build_footer();
  update_terminal(text_rows);
  flush();
}

// ---- from one prompt to the next

void lt_screen_forget(void) {
  shown.count = shown.size = shown.cursor_row = 0;
  shown.cursor_column = 0;
  window = 0;
  used_rows = 1;
}

void lt_screen_begin(void) {
  read_size();
  lt_rl.rl_set_screen_size(rows, columns);
  lt_screen_forget();
  lt_screen_footer(NULL);
  active = true;
  // At the start of a row these spaces just fill it; behind output they reach the next row.
  for (int i = 1; i < columns; i++) emit(" ", 1);
  emit("\r\033[K", 4);
}

static bool has_wrapped(void) {
  for (size_t i = 0; i < next.count; i++)
    if (next.rows[i].wraps) return true;
  return false;
}

// Writes the whole text again. The terminal wraps the rows itself, so that it treats them as one
// line when it is resized or text is copied.
static void write_all(void) {
  go_to(0, 0);
  emit("\033[J", 3);
  for (size_t i = 0; i < next.count; i++) {
    emit(next.bytes + next.rows[i].start, next.rows[i].size);
    if (i + 1 < next.count && !next.rows[i].wraps) emit("\r\n", 2);
  }
}

void lt_screen_end(const char *mark) {
  if (!active) return;
  lt_screen_footer(NULL);
  *lt_rl.rl_point = *lt_rl.rl_end;
  build_layout(true);
  if (next.count > (size_t)rows || has_wrapped())
    write_all();
  else
    update_terminal(next.count);
  emit(mark, strlen(mark));
  emit("\r\n", 2);
  flush();
  active = false;
}

void lt_screen_below(void) {
  if (!active) return;
  go_to(used_rows - 1, 0);
  emit("\r\n", 2);
  flush();
}

void lt_screen_leave(void) {
  active = false;
  lt_screen_footer(NULL);
}

void lt_screen_footer(const char *text) {
  free(footer);
  footer = text ? strdup(text) : NULL;
}

// Terminals wrap rows that have become too long for them, so the cursor may be in a lower row than
// before.
void lt_screen_resized(void) {
  if (!active) return;
  read_size();
  lt_rl.rl_set_screen_size(rows, columns);
  size_t above = shown.cursor_column > 0 ? (size_t)(shown.cursor_column / columns) : 0;
  for (size_t i = 0; i < shown.cursor_row && i < shown.count; i++)
    above += shown.rows[i].width > columns ? (size_t)((shown.rows[i].width - 1) / columns) + 1 : 1;
  shown.cursor_row = above;
  go_to(0, 0);
  emit("\033[J", 3);
  lt_screen_forget();
  lt_screen_draw();
}

void lt_screen_clear(void) {
  if (!active) return;
  emit("\033[H\033[2J", 7);
  lt_screen_forget();
  lt_screen_draw();
}
