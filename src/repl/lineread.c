// Reads one cell from a terminal with GNU readline (editor/), else one line.
//
// Readline is used through its callback interface, one character at a time: only so can Ctrl-C end
// a line without a jump out of the library. Invariant: SIGINT, SIGWINCH and SIGCONT are blocked
// except inside pselect, so that none is lost between the check for it and the wait. Libedit's
// version of that interface loses its state at Ctrl-C; its plain readline() returns NULL then, and
// is used instead.
//
// The library's callbacks have no context argument, hence the file-scope state.
#define _XOPEN_SOURCE   700
#define _DEFAULT_SOURCE // SIGWINCH
#include "repl.h"
#include "editor/ask.h"
#include "editor/input.h"
#include "editor/keys.h"
#include "editor/library.h"
#include "editor/screen.h"
#include "editor/undo.h"
#include "editor/width.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <termios.h>
#include <unistd.h>

static char *finished_line;    // argument of the callback
static bool finished;          // the callback was called
static sigset_t while_waiting; // signal mask inside pselect

static void on_line(char *line) {
  lt_undo_forget_saved();
  finished_line = line;
  finished = true;
  if (line) lt_screen_end(""); // when one of readline's own commands has ended the line
  lt_rl.rl_callback_handler_remove();
}

// Signals received: SIGCONT (the terminal must be set up again), SIGWINCH, SIGTSTP.
static volatile sig_atomic_t was_continued, was_resized, was_stopped;

static void on_signal(int sig) {
  if (sig == SIGCONT) was_continued = 1;
  if (sig == SIGWINCH) was_resized = 1;
  if (sig == SIGTSTP) was_stopped = 1;
}

// Installs a signal handler without SA_RESTART; stores the former action unless `before` is NULL.
static void handle(int sig, void (*handler)(int), struct sigaction *before) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(sig, &action, before);
}

// ---- termination while a line is edited: the terminal is restored first

static const int termination_signals[] = {SIGTERM, SIGHUP};
enum { TERMINATION_SIGNALS = sizeof termination_signals / sizeof *termination_signals };
static struct termios saved_terminal; // the terminal's settings before editing
static bool terminal_saved;
static struct sigaction termination_before[TERMINATION_SIGNALS];

// Restores the terminal and ends the program by the signal. Calls only async-signal-safe functions.
static void on_termination(int sig) {
  static const char leave[] = "\033[?2004l\n";
  if (terminal_saved) tcsetattr(STDIN_FILENO, TCSANOW, &saved_terminal);
  int flags = fcntl(STDOUT_FILENO, F_GETFL); // a blocked terminal must not delay the exit
  fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
  if (write(STDOUT_FILENO, leave, sizeof leave - 1) < 0) errno = 0;
  fcntl(STDOUT_FILENO, F_SETFL, flags);
  signal(sig, SIG_DFL);
  raise(sig);
}

static void catch_termination(void) {
  terminal_saved = tcgetattr(STDIN_FILENO, &saved_terminal) == 0;
  for (int i = 0; i < TERMINATION_SIGNALS; i++) {
    handle(termination_signals[i], on_termination, &termination_before[i]);
    if (termination_before[i].sa_handler != SIG_DFL)
      sigaction(termination_signals[i], &termination_before[i], NULL);
  }
}

static void restore_termination(void) {
  for (int i = 0; i < TERMINATION_SIGNALS; i++)
    sigaction(termination_signals[i], &termination_before[i], NULL);
}

// ---- memory

// The library exits when it cannot allocate memory. So the prompt holds a reserve while cells run,
// and releases it to the library while a line is edited: one block, large enough that malloc
// returns it to the system.
enum { RESERVE = 4 << 20, RESERVE_LEAST = 1 << 18 };
static void *reserve;

static void hold_reserve(void) {
  for (size_t size = RESERVE; !reserve && size >= RESERVE_LEAST; size /= 2) reserve = malloc(size);
}

static void release_reserve(void) {
  free(reserve);
  reserve = NULL;
}

// ---- keys

// After an unknown key sequence the library jumps (siglongjmp) to the last of its functions that
// read a further key, and in readline 8.2 that function may have returned: when several keys are
// handled in one call, because of a macro or of keys read ahead. Such a function redraws the line
// before it returns, so the redraw function makes the jump lead to `jump_target`, which is valid.
static sigjmp_buf jump_target;
static bool jump_valid;   // whether `jump_target` is valid
static bool input_over;   // no more keys can be read for this line
enum { IN_A_KEY = 0x70 }; // bits of rl_readline_state: METANEXT, DISPATCHING, MOREINPUT

// Returns whether Ctrl-C was pressed, also while keys keep arriving: pselect receives a signal only
// when it has to wait.
static bool interrupted(void) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, &while_waiting, &blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, NULL);
  return lt_repl_interrupts();
}

// The library's redraw function: called between two keys, including keys of a macro and keys read
// ahead.
static void redisplay(void) {
  if (jump_valid && lt_rl._rl_top_level)
    memcpy(lt_rl._rl_top_level, jump_target, sizeof jump_target);
  lt_undo_after_key();
  if (jump_valid && interrupted()) {
    input_over = true;
    siglongjmp(jump_target, 1);
  }
  lt_screen_draw();
}

// The library's read function: reads further bytes of a character or of a paste. Ctrl-C and the end
// of input leave such a key by the same jump: otherwise the library would use an incomplete paste.
static bool wait_input(void);
static int read_byte(FILE *stream) {
  (void)stream;
  unsigned char byte;
  if (wait_input() && read(STDIN_FILENO, &byte, 1) == 1) return byte;
  input_over = true;
  if (jump_valid) siglongjmp(jump_target, 1);
  return EOF;
}

// Sets up the library, before the first line.
static void prepare(void) {
  static bool prepared;
  if (prepared) return;
  prepared = true;
  lt_width_locale();
  *lt_rl.rl_catch_sigwinch = 0;
  lt_rl.rl_variable_bind("enable-bracketed-paste", "on"); // .inputrc may turn it off again
  lt_rl.rl_variable_bind("comment-begin", "--");
  lt_keys_name();
  lt_input_set_wait(wait_input);
  lt_rl.rl_initialize();
  *lt_rl.rl_getc_function = read_byte;
  *lt_rl.rl_redisplay_function = redisplay; // set earlier, it would turn bracketed paste off
  handle(SIGCONT, on_signal, NULL);
  handle(SIGWINCH, on_signal, NULL);
}

static void restore_screen(void) {
  was_continued = 0;
  lt_rl.rl_cleanup_after_signal();
  lt_rl.rl_reset_after_signal();
  lt_screen_forget();
  lt_screen_resized();
}

// Handles Ctrl-Z: restores the terminal for the shell, and stops the process. SIGCONT sets the
// terminal up again.
static void suspend_process(void) {
  was_stopped = 0;
  lt_screen_below();
  lt_rl.rl_cleanup_after_signal();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTSTP);
  handle(SIGTSTP, SIG_DFL, NULL);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &signals, NULL); // the process stops here
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  handle(SIGTSTP, on_signal, NULL);
}

// Blocks until there is input while a cell is edited, and handles signals; returns false after
// Ctrl-C or an error.
static bool wait_input(void) {
  for (;;) {
    if (interrupted()) return false;
    if (was_stopped) suspend_process();
    if (was_continued) restore_screen();
    if (was_resized) {
      was_resized = 0;
      lt_screen_resized();
    }
    fd_set input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    if (pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &while_waiting) > 0) return true;
    if (errno != EINTR) return false;
  }
}

// Handles Ctrl-C in a cell: leaves it on the screen, and discards it.
static void drop_line(void) {
  lt_screen_end("^C");
  lt_rl.rl_callback_sigcleanup();
  lt_undo_forget_saved();
  *lt_rl.rl_undo_list = NULL; // in a search it may belong to another line
  lt_rl.rl_free_line_state();
  lt_rl.rl_cleanup_after_signal();
  lt_rl.rl_callback_handler_remove();
}

// Lets the library read and handle one key, and catches its jumps.
static void read_key(void) {
  if (sigsetjmp(jump_target, 0) == 0) {
    jump_valid = true;
    lt_rl.rl_callback_read_char();
  } else {
    *lt_rl.rl_readline_state &= ~(unsigned long)IN_A_KEY;
    lt_screen_draw();
  }
  jump_valid = false;
}

// Handles one key, and all keys that the library has read ahead.
static void handle_key(void) {
  lt_screen_footer(NULL);
  do read_key();
  while (!finished && !input_over && lt_rl._rl_pushed_input_available &&
         lt_rl._rl_pushed_input_available());
  if (!finished) lt_undo_after_key();
  if (lt_repl_interrupts()) input_over = true; // pressed during lt_paste
  if (!finished && !input_over) lt_keys_after();
}

// Reads a cell with GNU readline. Restores signal handlers, the signal mask and the terminal before
// it returns.
static enum lt_repl_read edit_cell(const char *prompt, char **line) {
  static const int signals[] = {SIGINT, SIGWINCH, SIGCONT, SIGTSTP};
  sigset_t blocked;
  struct sigaction before;
  sigemptyset(&blocked);
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaddset(&blocked, signals[i]);
  handle(SIGTSTP, on_signal, &before);
  if (before.sa_handler == SIG_IGN) sigaction(SIGTSTP, &before, NULL);
  pthread_sigmask(SIG_BLOCK, &blocked, &while_waiting);
  finished = false;
  finished_line = NULL;
  release_reserve();
  prepare();
  lt_screen_begin();
  catch_termination();
  lt_rl.rl_callback_handler_install(prompt, on_line);
  lt_keys_bind();
  enum lt_repl_read result = LT_REPL_EOF;
  input_over = false;
  while (!finished && !input_over && wait_input()) handle_key();
  if (!finished) drop_line();
  if (lt_repl_interrupts()) {
    result = LT_REPL_INTERRUPT;
    free(finished_line);
    finished_line = NULL;
  }
  restore_termination();
  lt_screen_leave();
  hold_reserve();
  sigaction(SIGTSTP, &before, NULL);
  pthread_sigmask(SIG_SETMASK, &while_waiting, NULL);
  if (!finished_line) return result;
  *line = finished_line;
  return LT_REPL_LINE;
}

static enum lt_repl_read libedit_line(const char *prompt, char **line) {
  *line = lt_rl.readline(prompt);
  if (*line) return LT_REPL_LINE;
  if (!lt_repl_interrupts()) return LT_REPL_EOF;
  fputc('\n', stdout);
  return LT_REPL_INTERRUPT;
}

// Reads a line from stdin without a library.
static enum lt_repl_read plain_line(const char *prompt, char **line) {
  fputs(prompt, stdout);
  fflush(stdout);
  clearerr(stdin); // an interrupted io.read has set the error flag
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

bool lt_repl_reads_cells(void) {
  lt_editor_open();
  return lt_rl.editing;
}

enum lt_repl_read lt_repl_readline(const char *prompt, char **line) {
  lt_editor_open();
  lt_repl_interrupt_clear();
  fflush(stdout);
  enum lt_repl_read result = lt_rl.editing  ? edit_cell(prompt, line)
                             : lt_rl.usable ? libedit_line(prompt, line)
                                            : plain_line(prompt, line);
  lt_repl_interrupt_clear();
  return result;
}
