// A walk is a series of Up and Down keys without another key in between. The prefix that it
// searches the history for and its column are set at its start. In an entry that was found the
// cursor is at the end, so that Up moves through its lines first.
#include "history_walk.h"
#include "library.h"
#include "width.h"

#include <stdlib.h>
#include <string.h>

static char *prefix;       // prefix of the entries that match
static size_t prefix_size; // 0: all entries match
static int goal;           // column that the walk keeps

static const char *text(void) { return *lt_rl.rl_line_buffer; }

size_t lt_walk_line_start(size_t at) {
  while (at > 0 && text()[at - 1] != '\n') at--;
  return at;
}

size_t lt_walk_line_end(size_t at) {
  while (at < (size_t)*lt_rl.rl_end && text()[at] != '\n') at++;
  return at;
}

// Moves *at over one character and returns its columns.
static int width(size_t *at) {
  int columns;
  *at += lt_width_next(text() + *at, (size_t)*lt_rl.rl_end - *at, &columns);
  return columns < 0 ? 1 : columns;
}

void lt_walk_left(void) {
  size_t at = (size_t)*lt_rl.rl_point, after;
  do {
    at--;
    while (at > 0 && (text()[at] & 0xC0) == 0x80) at--;
    after = at;
  } while (at > 0 && width(&after) == 0);
  *lt_rl.rl_point = (int)at;
}

// Returns the column of byte `at` in its line.
static int column(size_t at) {
  int total = 0;
  for (size_t i = lt_walk_line_start(at); i < at;) total += width(&i);
  return total;
}

// Moves the cursor to the line that starts at `start`, to the column of the walk or before it.
static void enter_line(size_t start) {
  size_t end = lt_walk_line_end(start), at = start;
  for (int total = 0; at < end;) {
    size_t after = at;
    total += width(&after);
    if (total > goal) break;
    at = after;
  }
  while (at < end) { // never before a combining character
    size_t after = at;
    if (width(&after) > 0) break;
    at = after;
  }
  *lt_rl.rl_point = (int)at;
}

static bool walking(void) {
  return *lt_rl.rl_last_func == lt_walk_up || *lt_rl.rl_last_func == lt_walk_down;
}

bool lt_walk_searched(void) {
  static const char *const names[] = {"reverse-search-history", "forward-search-history"};
  for (size_t i = 0; i < 2; i++)
    if (*lt_rl.rl_last_func && *lt_rl.rl_last_func == lt_rl.rl_named_function(names[i]))
      return true;
  return false;
}

static void set_prefix(size_t size) {
  free(prefix);
  prefix = size ? malloc(size) : NULL;
  prefix_size = prefix ? size : 0;
  if (prefix) memcpy(prefix, text(), size);
}

static bool fits(const char *entry) {
  if (!prefix_size) return true;
  return strncmp(entry, prefix, prefix_size) == 0 && strcmp(entry, text()) != 0;
}

// Returns the number of entries from the current one to the next match in this direction; 0 for
// none. Forward, the line that was being edited comes last.
static int distance(int step) {
  struct lt_rl_entry **entries = lt_rl.history_list();
  int here = lt_rl.where_history(), length = *lt_rl.history_length;
  if (!entries) return 0;
  for (int i = here + step; i >= 0 && i < length; i += step)
    if (fits(entries[i]->line)) return (i - here) * step;
  return step > 0 && here < length ? length - here : 0;
}

// Goes to the next matching entry of the history in this direction; rings the bell if there is
// none.
static int search(int step) {
  int n = distance(step);
  if (n == 0) return lt_rl.rl_ding();
  if (step < 0)
    lt_rl.rl_get_previous_history(n, 0);
  else
    lt_rl.rl_get_next_history(n, 0);
  *lt_rl.rl_point = *lt_rl.rl_end;
  goal = column((size_t)*lt_rl.rl_point);
  return 0;
}

// Moves one line up (-1) or down (1); the first key of a walk sets its column and prefix.
static int walk(int step) {
  size_t point = (size_t)*lt_rl.rl_point;
  size_t start = lt_walk_line_start(point), end = lt_walk_line_end(point);
  bool within = step < 0 ? start > 0 : end < (size_t)*lt_rl.rl_end;
  if (!walking()) {
    goal = column(point);
    set_prefix(within ? 0 : point);
  }
  if (!within) return search(step);
  enter_line(step < 0 ? lt_walk_line_start(start - 1) : end + 1);
  return 0;
}

static int repeat(int count, int step) {
  if (count < 0) return repeat(-count, -step);
  for (int i = 0; i < count; i++) walk(step);
  return 0;
}

int lt_walk_up(int count, int key) { return (void)key, repeat(count, -1); }
int lt_walk_down(int count, int key) { return (void)key, repeat(count, 1); }
