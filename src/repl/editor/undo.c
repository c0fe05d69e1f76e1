// Invariants that readline 8.2 needs and does not keep: while an entry of the history is edited
// there is a line aside; and the list of changes of the line aside is no other line's.
#include "undo.h"
#include "keys.h"
#include "library.h"

#include <stdlib.h>
#include <string.h>

// The start of an element of a list of changes, as readline.h declares it.
struct change {
  struct change *next;
};

static bool in_list(const struct change *list, const void *change) {
  while (list && list != change) list = list->next;
  return list;
}

// Is the list of changes of the line aside also that of the line, or of an entry?
static bool shared(const void *list) {
  if (in_list(*lt_rl.rl_undo_list, list)) return true;
  struct lt_rl_entry **entries = lt_rl.history_list();
  for (; entries && *entries; entries++)
    if ((*entries)->data == list) return true;
  return false;
}

// An empty line aside, where the library has forgotten the one that was being typed. It must be one
// that the library can free.
static struct lt_rl_entry *empty_line(void) {
  struct lt_rl_entry *entry = calloc(1, sizeof *entry);
  char *line = calloc(1, 1);
  if (entry && line) return entry->line = line, entry;
  free(entry);
  free(line);
  return NULL;
}

void lt_undo_after_key(void) {
  struct lt_rl_entry **aside = lt_rl._rl_saved_line_for_history;
  if (!aside || lt_keys_searching()) return;
  if (!*aside && lt_rl.where_history() < *lt_rl.history_length) *aside = empty_line();
  if (*aside && (*aside)->data && shared((*aside)->data)) (*aside)->data = NULL;
}

void lt_undo_forget_aside(void) {
  struct lt_rl_entry **aside = lt_rl._rl_saved_line_for_history;
  if (aside && *aside) (*aside)->data = NULL;
}
