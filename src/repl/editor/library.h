// The line editing library: GNU readline (GPL) or libedit, loaded by dlopen when the prompt starts.
// The program needs neither to be built nor to run, so its own licence stays independent of theirs.
//
// The members of lt_rl are named after the library's symbols, so its manual applies; they are
// listed once, below. The library has one state for each process, hence lt_rl is global.
#ifndef LT_REPL_EDITOR_LIBRARY_H
#define LT_REPL_EDITOR_LIBRARY_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>

typedef int lt_rl_command(int count, int key);
typedef void lt_rl_line_handler(char *line);
typedef void lt_rl_void(void);
typedef int lt_rl_getc(FILE *);
typedef void *lt_rl_keymap;

// An entry of the library's history, as the library declares it.
struct lt_rl_entry {
  char *line, *timestamp;
  void *data;
};

// The symbols used: LINE (required to read a line at all), EDIT (required for the editing of cells)
// or EXTRA (internal to the library, may be missing); then type and name.
#define LT_RL_SYMBOLS(FUNCTION, VARIABLE)                                                          \
  FUNCTION(LINE, char *, readline, (const char *prompt))                                           \
  FUNCTION(LINE, void, add_history, (const char *line))                                            \
  FUNCTION(EDIT, void, rl_callback_handler_install, (const char *prompt, lt_rl_line_handler *))    \
  FUNCTION(EDIT, void, rl_callback_handler_remove, (void))                                         \
  FUNCTION(EDIT, void, rl_callback_read_char, (void))                                              \
  FUNCTION(EDIT, void, rl_callback_sigcleanup, (void))                                             \
  FUNCTION(EDIT, int, rl_initialize, (void))                                                       \
  FUNCTION(EDIT, void, rl_free_line_state, (void))                                                 \
  FUNCTION(EDIT, void, rl_cleanup_after_signal, (void))                                            \
  FUNCTION(EDIT, void, rl_reset_after_signal, (void))                                              \
  FUNCTION(EDIT, void, rl_set_screen_size, (int rows, int columns))                                \
  FUNCTION(EDIT, int, rl_insert_text, (const char *))                                              \
  FUNCTION(EDIT, int, rl_delete_text, (int from, int to))                                          \
  FUNCTION(EDIT, int, rl_kill_text, (int from, int to))                                            \
  FUNCTION(EDIT, int, rl_begin_undo_group, (void))                                                 \
  FUNCTION(EDIT, int, rl_end_undo_group, (void))                                                   \
  FUNCTION(EDIT, int, rl_ding, (void))                                                             \
  FUNCTION(EDIT, int, rl_variable_bind, (const char *name, const char *value))                     \
  FUNCTION(EDIT, int, rl_add_defun, (const char *name, lt_rl_command *, int key))                  \
  FUNCTION(EDIT, lt_rl_command *, rl_named_function, (const char *name))                           \
  FUNCTION(EDIT, lt_rl_command *, rl_function_of_keyseq, (const char *, lt_rl_keymap, int *))      \
  FUNCTION(EDIT, int, rl_bind_keyseq_in_map, (const char *, lt_rl_command *, lt_rl_keymap))        \
  FUNCTION(EDIT, char **, rl_invoking_keyseqs_in_map, (lt_rl_command *, lt_rl_keymap))             \
  FUNCTION(EDIT, lt_rl_keymap, rl_get_keymap_by_name, (const char *name))                          \
  FUNCTION(EDIT, lt_rl_keymap, rl_get_keymap, (void))                                              \
  FUNCTION(EDIT, int, rl_vi_movement_mode, (int count, int key))                                   \
  FUNCTION(EDIT, int, rl_get_previous_history, (int count, int key))                               \
  FUNCTION(EDIT, int, rl_get_next_history, (int count, int key))                                   \
  FUNCTION(EDIT, int, rl_forward_char, (int count, int key))                                       \
  FUNCTION(EDIT, int, rl_insert, (int count, int key))                                             \
  FUNCTION(EDIT, struct lt_rl_entry **, history_list, (void))                                      \
  FUNCTION(EDIT, int, where_history, (void))                                                       \
  VARIABLE(EDIT, lt_rl_void *, rl_redisplay_function)                                              \
  VARIABLE(EDIT, lt_rl_getc *, rl_getc_function)                                                   \
  VARIABLE(EDIT, lt_rl_command *, rl_last_func)                                                    \
  VARIABLE(EDIT, char *, rl_prompt)                                                                \
  VARIABLE(EDIT, char *, rl_display_prompt)                                                        \
  VARIABLE(EDIT, char *, rl_line_buffer)                                                           \
  VARIABLE(EDIT, int, rl_point)                                                                    \
  VARIABLE(EDIT, int, rl_end)                                                                      \
  VARIABLE(EDIT, int, rl_done)                                                                     \
  VARIABLE(EDIT, unsigned long, rl_readline_state)                                                 \
  VARIABLE(EDIT, int, rl_editing_mode)                                                             \
  VARIABLE(EDIT, int, rl_catch_sigwinch)                                                           \
  VARIABLE(EDIT, void *, rl_undo_list)                                                             \
  VARIABLE(EDIT, int, history_length)                                                              \
  FUNCTION(EXTRA, int, _rl_pushed_input_available, (void))                                         \
  VARIABLE(EXTRA, sigjmp_buf, _rl_top_level)                                                       \
  VARIABLE(EXTRA, struct lt_rl_entry *, _rl_saved_line_for_history)

#define LT_RL_FUNCTION(need, result, name, parameters) result(*name) parameters;
#define LT_RL_VARIABLE(need, type, name)               type *name;
struct lt_rl {
  bool usable;  // the library can read lines
  bool editing; // it is GNU readline with all symbols of EDIT, so cells can be edited
  LT_RL_SYMBOLS(LT_RL_FUNCTION, LT_RL_VARIABLE)
};
extern struct lt_rl lt_rl;

// Loads a library: GNU readline, else libedit; none when stdin or stdout is not a terminal, or TERM
// is "dumb" or unset. LUTRA_READLINE names another library, or "none". Later calls do nothing.
void lt_editor_open(void);

// Returns a description of the editor, "readline 8.2", or what is missing and why: "none: TERM is
// dumb", "libedit: no colours ...". The string is static.
const char *lt_editor_name(void);

// Adds an entry to the history for the Up key and Ctrl-R. Does nothing without a library.
void lt_editor_history_add(const char *entry);

#endif
