// In a cell of several lines, keys that move or delete within a line stop at its ends, Up and Down
// move through the lines of the cell before they move through the history, and Return ends the cell
// only when it is complete.
//
// Invariant: the line is changed only by rl_insert_text, rl_delete_text and rl_kill_text, so that
// undo covers all changes.
#include "keys.h"
#include "ask.h"
#include "input.h"
#include "library.h"
#include "paste.h"
#include "screen.h"
#include "history_walk.h"
#include "width.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {                      // bits of rl_readline_state
  SEARCHING = 0x80 | 0x100, // a search is running
  VIMOTION = 0x100000,      // a vi command waits for a movement
};

bool lt_keys_searching(void) { return *lt_rl.rl_readline_state & SEARCHING; }

static const char *text(void) { return *lt_rl.rl_line_buffer; }
static size_t size(void) { return (size_t)*lt_rl.rl_end; }
static size_t point(void) { return (size_t)*lt_rl.rl_point; }

static bool only_blanks(size_t from, size_t to) {
  while (from < to && (text()[from] == ' ' || text()[from] == '\t')) from++;
  return from == to;
}

// Replaces the bytes from .. to - 1 as one change for undo; the cursor ends behind the new text.
static void replace(size_t from, size_t to, const char *with) {
  lt_rl.rl_begin_undo_group();
  lt_rl.rl_delete_text((int)from, (int)to);
  *lt_rl.rl_point = (int)from;
  lt_rl.rl_insert_text(with);
  lt_rl.rl_end_undo_group();
}

// ---- Return

// Inserts a newline at the cursor, and the indentation for the blocks open there. A paste without
// bracketed paste has its own indentation.
static int on_newline(int count, int key) {
  (void)count, (void)key;
  char *indent = lt_input_pending() ? NULL : lt_ask_text("indent", text(), size(), point());
  size_t after = point();
  while (indent && after < size() && text()[after] == ' ') after++;
  lt_rl.rl_begin_undo_group();
  lt_rl.rl_delete_text(*lt_rl.rl_point, (int)after);
  lt_rl.rl_insert_text("\n");
  if (indent) lt_rl.rl_insert_text(indent);
  lt_rl.rl_end_undo_group();
  free(indent);
  return 0;
}

static int accept(void) {
  if (*lt_rl.rl_editing_mode == 0 &&
      lt_rl.rl_get_keymap() == lt_rl.rl_get_keymap_by_name("vi-insert"))
    lt_rl.rl_vi_movement_mode(1, 27); // ends the group of changes that vi's insert mode began
  *lt_rl.rl_point = *lt_rl.rl_end;
  lt_screen_end("");
  *lt_rl.rl_done = 1;
  return 0;
}

// Return, as in IPython: above the last line it inserts a newline; in the last line it runs the
// cell if that is complete. An empty last line runs it in any case.
static int on_return(int count, int key) {
  if (lt_walk_searched()) *lt_rl.rl_point = *lt_rl.rl_end;
  size_t last = size();
  while (last > 0 && strchr(" \t\n", text()[last - 1])) last--;
  if (point() < last && memchr(text() + point(), '\n', last - point()))
    return on_newline(count, key);
  size_t start = lt_walk_line_start(point());
  if (start > 0 && only_blanks(start, size()) && !lt_input_pending()) {
    lt_rl.rl_delete_text((int)last, *lt_rl.rl_end);
    return accept();
  }
  return lt_ask_unfinished(text(), size()) ? on_newline(count, key) : accept();
}

// Returns whether the library can step over the character of n bytes at `at`. It cannot step over
// NUL, and in UTF-8 over invalid bytes: some movements of vi then never end.
static bool can_be_passed(size_t at, size_t n) {
  if (n > 1) return true;
  unsigned char byte = (unsigned char)text()[at];
  return byte != 0 && (byte < 0x80 || MB_CUR_MAX == 1);
}

// Removes such bytes from the line. They result from quoted keys, pastes and old history.
static void remove_impassable(void) {
  if (*lt_rl.rl_readline_state & (SEARCHING | VIMOTION)) return;
  for (size_t at = 0; at < size();) {
    int columns;
    size_t n = lt_width_next(text() + at, size() - at, &columns);
    if (can_be_passed(at, n)) {
      at += n;
      continue;
    }
    lt_rl.rl_delete_text((int)at, (int)at + 1);
    if (*lt_rl.rl_point > (int)at) --*lt_rl.rl_point;
  }
}

// After a word that ends or continues a block (`end`, `else`), indents its line like the block's
// start.
void lt_keys_after(void) {
  remove_impassable();
  if (*lt_rl.rl_last_func != lt_rl.rl_insert || *lt_rl.rl_done) return;
  size_t start = lt_walk_line_start(point()), word = start;
  if (start == 0 || lt_walk_line_end(point()) != point()) return;
  while (word < point() && (text()[word] == ' ' || text()[word] == '\t')) word++;
  if (word == point() || point() - word > 64 || !strchr("eu})]", text()[word])) return;
  if (lt_input_pending()) return;
  char *indent = lt_ask_text("reindent", text(), size(), point());
  if (!indent) return;
  size_t back = point() - word;
  replace(start, word, indent);
  *lt_rl.rl_point += (int)back;
  free(indent);
  lt_screen_draw();
}

// ---- within a line

static int on_home(int count, int key) {
  (void)count, (void)key;
  *lt_rl.rl_point = (int)lt_walk_line_start(point());
  return 0;
}

// Moves to the end of the line. As a vi command to its last character, except as the movement of
// another command: `d$` deletes that one as well.
static int on_end(int count, int key) {
  (void)count, (void)key;
  bool command = lt_rl.rl_get_keymap() == lt_rl.rl_get_keymap_by_name("vi-command");
  size_t end = lt_walk_line_end(point()), start = lt_walk_line_start(end);
  if (command && !(*lt_rl.rl_readline_state & VIMOTION) && end > start) {
    end--;
    while (end > start && (text()[end] & 0xC0) == 0x80) end--; // the bytes may be invalid UTF-8
  }
  *lt_rl.rl_point = (int)end;
  return 0;
}

// Moves a character to the left. Readline would scan from the start of the text, which is slow in a
// long cell.
static int on_left(int count, int key) {
  if (count < 0) return lt_rl.rl_forward_char(-count, key);
  if (point() == 0) return lt_rl.rl_ding();
  for (; count > 0 && point() > 0; count--) lt_walk_left();
  return 0;
}

// Deletes to the end of the line; at the end joins the next line.
static int on_kill_line(int count, int key) {
  (void)count, (void)key;
  size_t end = lt_walk_line_end(point());
  if (end == point() && end < size()) end++;
  return lt_rl.rl_kill_text(*lt_rl.rl_point, (int)end);
}

// Deletes back to the start of the line; at the start joins the line before.
static int on_discard(int count, int key) {
  (void)count, (void)key;
  size_t start = lt_walk_line_start(point());
  if (start == point() && start > 0) start--;
  lt_rl.rl_kill_text((int)start, *lt_rl.rl_point);
  *lt_rl.rl_point = (int)start;
  return 0;
}

// ---- other keys

// Indents at the start of a line, completes elsewhere.
static int on_tab(int count, int key) {
  (void)count, (void)key;
  if (only_blanks(lt_walk_line_start(point()), point()))
    return lt_rl.rl_insert_text(lt_input_pending() ? "\t" : "  ");
  struct lt_completion answer;
  if (!lt_ask_complete(text(), size(), point(), &answer)) return lt_rl.rl_ding();
  size_t n = strlen(answer.text);
  bool same = answer.to - answer.from == n && memcmp(text() + answer.from, answer.text, n) == 0;
  if (!same) replace(answer.from, answer.to, answer.text);
  lt_screen_footer(answer.list);
  free(answer.text);
  free(answer.list);
  return 0;
}

// Completes in vi's command mode, where the cursor is on the last character of the word, not behind
// it.
static int on_vi_complete(int count, int key) {
  if (point() < size()) (void)lt_rl.rl_forward_char(1, key);
  return on_tab(count, key);
}

static int on_clear(int count, int key) {
  (void)count, (void)key;
  lt_screen_clear();
  return 0;
}

// Opens the cell in the editor that $EDITOR names.
static int on_edit(int count, int key) {
  (void)count, (void)key;
  lt_rl.rl_cleanup_after_signal(); // restores the terminal for other programs
  char *edited = lt_ask_text("edit", text(), size(), point());
  lt_rl.rl_reset_after_signal();
  lt_screen_clear();
  if (!edited) return lt_rl.rl_ding();
  replace(0, size(), edited);
  free(edited);
  return 0;
}

// ---- binding

static const char *const maps[] = {"emacs", "vi-insert", "vi-command"};
enum { MAPS = sizeof maps / sizeof *maps };

// The commands: the name in .inputrc, readline's function for the same purpose, whose keys it
// replaces, and keys that are bound to it if they are unbound.
static const struct {
  const char *name, *replaces;
  lt_rl_command *function;
  const char *keys[3];
} rows[] = {
    {"lutra-return", "accept-line", on_return, {NULL}},
    {"lutra-newline", NULL, on_newline, {"\\e\\C-m", "\\e\\C-j", "\\e[13;2u"}},
    {"lutra-up", "previous-history", lt_walk_up, {NULL}},
    {"lutra-down", "next-history", lt_walk_down, {NULL}},
    {"lutra-complete", "complete", on_tab, {NULL}},
    {"lutra-complete", "menu-complete", on_tab, {NULL}},
    {"lutra-complete", "possible-completions", on_tab, {NULL}},
    {"lutra-complete", "insert-completions", on_tab, {NULL}},
    {"lutra-vi-complete", "vi-complete", on_vi_complete, {NULL}},
    {"lutra-left", "backward-char", on_left, {NULL}},
    {"lutra-home", "beginning-of-line", on_home, {NULL}},
    {"lutra-end", "end-of-line", on_end, {NULL}},
    {"lutra-kill-line", "kill-line", on_kill_line, {NULL}},
    {"lutra-discard", "unix-line-discard", on_discard, {NULL}},
    {"lutra-clear", "clear-screen", on_clear, {NULL}},
    {"lutra-clear", "clear-display", on_clear, {NULL}},
    {"lutra-paste", "bracketed-paste-begin", lt_paste, {"\\e[200~"}},
    {"lutra-edit", NULL, on_edit, {"\\C-x\\C-e"}},
};

// Binds all keys of one command to another one.
static void take_over(lt_rl_command *theirs, lt_rl_command *ours, lt_rl_keymap map) {
  char **keys = theirs ? lt_rl.rl_invoking_keyseqs_in_map(theirs, map) : NULL;
  for (size_t i = 0; keys && keys[i]; i++) {
    lt_rl.rl_bind_keyseq_in_map(keys[i], ours, map);
    free(keys[i]);
  }
  free(keys);
}

void lt_keys_name(void) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    lt_rl.rl_add_defun(rows[i].name, rows[i].function, -1);
}

void lt_keys_bind(void) {
  for (size_t m = 0; m < MAPS; m++) {
    lt_rl_keymap map = lt_rl.rl_get_keymap_by_name(maps[m]);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      if (rows[i].replaces)
        take_over(lt_rl.rl_named_function(rows[i].replaces), rows[i].function, map);
      for (size_t k = 0; k < 3 && rows[i].keys[k]; k++)
        if (!lt_rl.rl_function_of_keyseq(rows[i].keys[k], map, NULL))
          lt_rl.rl_bind_keyseq_in_map(rows[i].keys[k], rows[i].function, map);
    }
  }
}
