// One line from a person. GNU readline (GPL) or libedit is looked for when the prompt starts, by
// dlopen: the program needs neither to be built nor to run, and its own licence stays free.
//
// Readline is driven through its callback interface, a character at a time, because only so can
// Ctrl-C end a line without a jump out of the library. Invariant: SIGINT is blocked except inside
// pselect, so that none can slip in between looking for it and sleeping. Libedit's imitation of
// that interface loses its state at Ctrl-C; its plain readline() just returns NULL then, and is used.
//
// The libraries are process-wide and their callback has no argument, hence the file-scope state.
#define _XOPEN_SOURCE 700
#include "repl.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

typedef void line_handler(char *);

// What is used of the library. Optional members may stay NULL: libedit lacks some of them.
static struct {
  bool opened;   // looked for already
  bool usable;   // all that is needed is there
  bool libedit;  // not GNU readline
  char name[40]; // for people
  char *(*readline)(const char *prompt);
  void (*install)(const char *prompt, line_handler *handler);
  void (*remove)(void);
  void (*read_char)(void);
  void (*add_history)(const char *line);
  // optional
  void (*free_line_state)(void);
  void (*sigcleanup)(void);
  void (*cleanup_after_signal)(void);
  void (*reset_after_signal)(void);
  void (*forced_update_display)(void);
  void (*redisplay)(void);
  int (*bind_key)(int key, int (*function)(int, int));
  int (*insert)(int count, int key);
  int *point, *end; // the cursor and the length of the line
} rl = {.name = "none"};

static char *finished_line;                 // what the callback was given
static bool finished;                       // it was called
static volatile sig_atomic_t was_continued; // SIGCONT: the terminal is to be set up again

static void on_line(char *line) {
  finished_line = line;
  finished = true;
  rl.remove();
}

static void on_sigcont(int sig) {
  (void)sig;
  was_continued = 1;
}

// ISO C has no conversion from void * to a function pointer; POSIX guarantees this one.
#define LT_SYMBOL(member, symbol) (*(void **)(&rl.member) = dlsym(library, symbol))

static bool load_symbols(void *library) {
  LT_SYMBOL(readline, "readline");
  LT_SYMBOL(install, "rl_callback_handler_install");
  LT_SYMBOL(remove, "rl_callback_handler_remove");
  LT_SYMBOL(read_char, "rl_callback_read_char");
  LT_SYMBOL(add_history, "add_history");
  LT_SYMBOL(free_line_state, "rl_free_line_state");
  LT_SYMBOL(sigcleanup, "rl_callback_sigcleanup");
  LT_SYMBOL(cleanup_after_signal, "rl_cleanup_after_signal");
  LT_SYMBOL(reset_after_signal, "rl_reset_after_signal");
  LT_SYMBOL(forced_update_display, "rl_forced_update_display");
  LT_SYMBOL(redisplay, "rl_redisplay");
  LT_SYMBOL(bind_key, "rl_bind_key");
  LT_SYMBOL(insert, "rl_insert");
  rl.point = dlsym(library, "rl_point");
  rl.end = dlsym(library, "rl_end");
  return rl.install && rl.remove && rl.read_char && rl.readline && rl.add_history;
}

static void set_up(void *library) {
  const char **version = dlsym(library, "rl_library_version");
  rl.libedit = !version || !*version || strstr(*version, "EditLine");
  if (rl.libedit)
    (void)snprintf(rl.name, sizeof rl.name, "libedit");
  else
    (void)snprintf(rl.name, sizeof rl.name, "readline %.24s", *version);
  const char **program = dlsym(library, "rl_readline_name");
  if (program) *program = "lutra"; // for `$if lutra` in ~/.inputrc
  int *catches = dlsym(library, "rl_catch_signals");
  if (catches) *catches = 0; // signals are ours
  if (!rl.libedit && rl.bind_key && rl.insert) rl.bind_key('\t', rl.insert);

  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_sigcont;
  sigemptyset(&action.sa_mask);
  sigaction(SIGCONT, &action, NULL);
}

static bool open_library(const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  if (!load_symbols(library)) {
    dlclose(library);
    return false;
  }
  set_up(library);
  return rl.usable = true;
}

// A terminal on both ends that understands cursor movement.
static bool can_edit(void) {
  const char *term = getenv("TERM");
  return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

void lt_repl_editor_open(bool anyway) {
  static const char *const names[] = {
      "libreadline.so.8",
      "libreadline.so.7",
      "libreadline.so",
      "libreadline.8.dylib",
      "/opt/homebrew/opt/readline/lib/libreadline.8.dylib",
      "/usr/local/opt/readline/lib/libreadline.8.dylib",
      "libedit.so.2",
      "libedit.so.0",
      "libedit.so",
      "libedit.dylib",
  };
  if (rl.opened) return;
  rl.opened = true;
  const char *wanted = getenv("LUTRA_READLINE");
  if (!(anyway || can_edit()) || (wanted && strcmp(wanted, "none") == 0)) return;
  if (wanted && *wanted) {
    (void)open_library(wanted);
    return;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (open_library(names[i])) return;
}

const char *lt_repl_editor_name(void) { return rl.name; }

void lt_repl_history_add(const char *entry) {
  if (rl.usable) rl.add_history(entry);
}

// Ctrl-C in the middle of a line: shows it as left, and forgets it.
static void drop_line(void) {
  if (rl.point && rl.end && rl.redisplay) {
    *rl.point = *rl.end;
    rl.redisplay();
  }
  fputs("^C\n", stdout);
  if (rl.free_line_state) rl.free_line_state();
  if (rl.sigcleanup) rl.sigcleanup();
  if (rl.cleanup_after_signal) rl.cleanup_after_signal();
  rl.remove();
  fflush(stdout);
}

static void set_terminal_again(void) {
  was_continued = 0;
  if (rl.cleanup_after_signal) rl.cleanup_after_signal();
  if (rl.reset_after_signal) rl.reset_after_signal();
  if (rl.forced_update_display) rl.forced_update_display();
}

static enum lt_repl_read edit_line(const char *prompt, char **line) {
  sigset_t blocked, before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGINT);
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  finished = false;
  rl.install(prompt, on_line);
  enum lt_repl_read result = LT_REPL_EOF;
  while (!finished) {
    fd_set input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    int ready = pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &before);
    if (ready > 0) {
      rl.read_char();
    } else if (lt_repl_interrupts()) {
      drop_line();
      result = LT_REPL_INTERRUPT;
      break;
    } else if (was_continued) {
      set_terminal_again();
    } else if (errno != EINTR) {
      rl.remove();
      break;
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!finished || !finished_line) return result;
  *line = finished_line;
  return LT_REPL_LINE;
}

static enum lt_repl_read libedit_line(const char *prompt, char **line) {
  *line = rl.readline(prompt);
  if (*line) return LT_REPL_LINE;
  if (!lt_repl_interrupts()) return LT_REPL_EOF;
  fputc('\n', stdout);
  return LT_REPL_INTERRUPT;
}

static enum lt_repl_read plain_line(const char *prompt, char **line) {
  fputs(prompt, stdout);
  fflush(stdout);
  clearerr(stdin); // an interrupted io.read left its mark
  char *buffer = NULL;
  size_t size = 0;
  errno = 0;
  ssize_t n = getline(&buffer, &size, stdin);
  if (n < 0) {
    bool stopped = ferror(stdin) && errno == EINTR;
    free(buffer);
    clearerr(stdin);
    if (!stopped) return LT_REPL_EOF;
    fputc('\n', stdout);
    return LT_REPL_INTERRUPT;
  }
  if (n > 0 && buffer[n - 1] == '\n') buffer[n - 1] = '\0';
  *line = buffer;
  return LT_REPL_LINE;
}

enum lt_repl_read lt_repl_readline(const char *prompt, char **line) {
  lt_repl_editor_open(false);
  lt_repl_interrupt_clear();
  fflush(stdout);
  enum lt_repl_read result = !rl.usable   ? plain_line(prompt, line)
                             : rl.libedit ? libedit_line(prompt, line)
                                          : edit_line(prompt, line);
  lt_repl_interrupt_clear();
  return result;
}
