// GNU readline (GPL) or libedit, found by dlopen when the prompt starts: the program needs neither
// to be built nor to run, and its own licence stays free.
//
// The members of lt_rl have the names of the library's own symbols, so they read as its manual
// says; they are listed once, below. The library is one per process, hence so is lt_rl.
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

// An entry of the library's history.
struct lt_rl_entry {
  char *line, *timestamp;
  void *data;
};

// What is used of the library: whether it is needed for any line at all (LINE) or for editing as it
// is done here (EDIT), or is internal to the library and may be missing (EXTRA); its kind, its
// type, its name.
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
  bool usable;  // lines can be read with it
  bool editing; // it is GNU readline with all of EDIT: lt_repl_editor's own screen and keys
  LT_RL_SYMBOLS(LT_RL_FUNCTION, LT_RL_VARIABLE)
};
extern struct lt_rl lt_rl;

// Finds an editor: GNU readline, then libedit; none when stdin or stdout is no terminal, or TERM is
// "dumb" or unset. LUTRA_READLINE names another library, or "none". Only the first call does
// anything.
void lt_editor_open(void);

// "readline 8.2", or what the editor lacks and why: "none: TERM is dumb", "libedit: no colours
// ...".
const char *lt_editor_name(void);

// Remembers an entry for the Up key and Ctrl-R. Nothing happens without an editor.
void lt_editor_history_add(const char *entry);

#endif
