// Two invariants that readline 8.2 requires and does not maintain: while an entry of the history is
// edited there is a saved line; and the undo list of the saved line belongs to no other line.
#include "undo.h"
#include "keys.h"
#include "library.h"

#include <stdlib.h>
#include <string.h>

// The first field of an element of an undo list, as in readline.h.
struct change {
  struct change *next;
};

static bool in_list(const struct change *list, const void *change) {
  while (list && list != change) list = list->next;
  return list;
}

// Returns whether this undo list of the saved line also belongs to the line or to an entry.
static bool shared(const void *list) {
  if (in_list(*lt_rl.rl_undo_list, list)) return true;
  struct lt_rl_entry **entries = lt_rl.history_list();
  for (; entries && *entries; entries++)
    if ((*entries)->data == list) return true;
  return false;
}

// Returns an empty saved line, for the case that the library has lost it, allocated so that the
// library can free it; NULL when out of memory.
static struct lt_rl_entry *empty_line(void) {
  struct lt_rl_entry *entry = calloc(1, sizeof *entry);
  char *line = calloc(1, 1);
  if (entry && line) return entry->line = line, entry;
  free(entry);
  free(line);
  return NULL;
}

void lt_undo_after_key(void) {
  struct lt_rl_entry **saved = lt_rl._rl_saved_line_for_history;
  if (!saved || lt_keys_searching()) return;
  if (!*saved && lt_rl.where_history() < *lt_rl.history_length) *saved = empty_line();
  if (*saved && (*saved)->data && shared((*saved)->data)) (*saved)->data = NULL;
}

void lt_undo_forget_saved(void) {
  struct lt_rl_entry **saved = lt_rl._rl_saved_line_for_history;
  if (saved && *saved) (*saved)->data = NULL;
}
