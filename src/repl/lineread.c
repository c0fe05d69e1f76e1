// One cell from a person when GNU readline is there (editor/), else one line.
//
// Readline is driven through its callback interface, a character at a time, because only so can
// Ctrl-C end a line without a jump out of the library. Invariant: SIGINT, SIGWINCH and SIGCONT are
// blocked except inside pselect, so that none can slip in between looking for it and sleeping.
// Libedit's imitation of that interface loses its state at Ctrl-C; its plain readline() just
// returns NULL then, and is used.
//
// The library's callback has no argument, hence the file-scope state.
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

static char *finished_line;    // what the callback was given
static bool finished;          // it was called
static sigset_t while_waiting; // the signals that are blocked in pselect

static void on_line(char *line) {
  lt_undo_forget_aside();
  finished_line = line;
  finished = true;
  if (line) lt_screen_end(""); // where a key of readline's own has ended the line
  lt_rl.rl_callback_handler_remove();
}

// What came while waiting: SIGCONT, the terminal is to be set up again; SIGWINCH; SIGTSTP.
static volatile sig_atomic_t was_continued, was_resized, was_stopped;

static void on_signal(int sig) {
  if (sig == SIGCONT) was_continued = 1;
  if (sig == SIGWINCH) was_resized = 1;
  if (sig == SIGTSTP) was_stopped = 1;
}

static void handle(int sig, void (*handler)(int), struct sigaction *before) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(sig, &action, before);
}

// ---- signals that end the program while a line is edited: the terminal is given back first

static const int ending[] = {SIGTERM, SIGHUP};
enum { ENDING = sizeof ending / sizeof *ending };
static struct termios outside; // the terminal's state before the editor's
static bool outside_known;
static struct sigaction ending_before[ENDING];

// Everything called here is async-signal-safe.
static void on_ending(int sig) {
  static const char leave[] = "\033[?2004l\n";
  if (outside_known) tcsetattr(STDIN_FILENO, TCSANOW, &outside);
  int flags = fcntl(STDOUT_FILENO, F_GETFL); // a terminal that takes no output must not hold it up
  fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK);
  if (write(STDOUT_FILENO, leave, sizeof leave - 1) < 0) errno = 0;
  fcntl(STDOUT_FILENO, F_SETFL, flags);
  signal(sig, SIG_DFL);
  raise(sig);
}

static void hear_ending(void) {
  outside_known = tcgetattr(STDIN_FILENO, &outside) == 0;
  for (int i = 0; i < ENDING; i++) {
    handle(ending[i], on_ending, &ending_before[i]);
    if (ending_before[i].sa_handler != SIG_DFL) sigaction(ending[i], &ending_before[i], NULL);
  }
}

static void ignore_ending(void) {
  for (int i = 0; i < ENDING; i++) sigaction(ending[i], &ending_before[i], NULL);
}

// ---- memory

// The library ends the program when it gets no memory. So the prompt holds some back while cells
// run, and gives it to the library while a line is edited: one block, large enough that malloc
// gives it back to the system.
enum { HELD_BACK = 4 << 20, HELD_BACK_LEAST = 1 << 18 };
static void *held_back;

static void hold_memory_back(void) {
  for (size_t size = HELD_BACK; !held_back && size >= HELD_BACK_LEAST; size /= 2)
    held_back = malloc(size);
}

static void give_memory(void) {
  free(held_back);
  held_back = NULL;
}

// ---- keys

// The library leaves an unknown key sequence by a jump to where the last function of its own that
// expected one was called, and in readline 8.2 that function may have ended: where several keys are
// handled in one call, because of a macro or of keys that were read ahead. Such a function draws
// the line before it ends, so drawing makes the jump lead here, where it is safe.
static sigjmp_buf here;
static bool jumps_here;   // `here` is valid
static bool input_over;   // no more keys can be read for this line
enum { IN_A_KEY = 0x70 }; // of rl_readline_state: METANEXT, DISPATCHING, MOREINPUT

// Ctrl-C, noticed also while keys keep arriving: pselect lets a signal in only when it has to
// wait.
static bool interrupted(void) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, &while_waiting, &blocked);
  pthread_sigmask(SIG_SETMASK, &blocked, NULL);
  return lt_repl_interrupts();
}

// Between two keys, also of a macro or of keys that were read ahead.
static void draw(void) {
  if (jumps_here && lt_rl._rl_top_level) memcpy(lt_rl._rl_top_level, here, sizeof here);
  lt_undo_after_key();
  if (jumps_here && interrupted()) {
    input_over = true;
    siglongjmp(here, 1);
  }
  lt_screen_draw();
}

// The library reads further bytes of a character or of a paste itself. Ctrl-C and the end of input
// leave such a key, by the same jump: the library would use what it has read of a paste without its
// end.
static bool wait_input(void);
static int read_byte(FILE *stream) {
  (void)stream;
  unsigned char byte;
  if (wait_input() && read(STDIN_FILENO, &byte, 1) == 1) return byte;
  input_over = true;
  if (jumps_here) siglongjmp(here, 1);
  return EOF;
}

// Once, before the first line.
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
  *lt_rl.rl_redisplay_function = draw; // before, it would turn bracketed paste off
  handle(SIGCONT, on_signal, NULL);
  handle(SIGWINCH, on_signal, NULL);
}

static void set_terminal_again(void) {
  was_continued = 0;
  lt_rl.rl_cleanup_after_signal();
  lt_rl.rl_reset_after_signal();
  lt_screen_forget();
  lt_screen_resized();
}

// Ctrl-Z: leaves the terminal as a shell wants it, and stops. SIGCONT sets it up again.
static void stop(void) {
  was_stopped = 0;
  lt_screen_below();
  lt_rl.rl_cleanup_after_signal();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTSTP);
  handle(SIGTSTP, SIG_DFL, NULL);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &signals, NULL); // here
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  handle(SIGTSTP, on_signal, NULL);
}

// While a cell is edited: waits for input; false when Ctrl-C or an error came instead.
static bool wait_input(void) {
  for (;;) {
    if (interrupted()) return false;
    if (was_stopped) stop();
    if (was_continued) set_terminal_again();
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

// Ctrl-C in the middle of a cell: shows it as left, and forgets it.
static void drop_line(void) {
  lt_screen_end("^C");
  lt_rl.rl_callback_sigcleanup();
  lt_undo_forget_aside();
  *lt_rl.rl_undo_list = NULL; // likewise: in a search it may be that of another line
  lt_rl.rl_free_line_state();
  lt_rl.rl_cleanup_after_signal();
  lt_rl.rl_callback_handler_remove();
}

static void read_key(void) {
  if (sigsetjmp(here, 0) == 0) {
    jumps_here = true;
    lt_rl.rl_callback_read_char();
  } else {
    *lt_rl.rl_readline_state &= ~(unsigned long)IN_A_KEY;
    lt_screen_draw();
  }
  jumps_here = false;
}

static void key(void) {
  lt_screen_footer(NULL);
  do read_key();
  while (!finished && !input_over && lt_rl._rl_pushed_input_available &&
         lt_rl._rl_pushed_input_available());
  if (!finished) lt_undo_after_key();
  if (lt_repl_interrupts()) input_over = true; // in our own reading of a paste
  if (!finished && !input_over) lt_keys_after();
}

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
  give_memory();
  prepare();
  lt_screen_begin();
  hear_ending();
  lt_rl.rl_callback_handler_install(prompt, on_line);
  lt_keys_bind();
  enum lt_repl_read result = LT_REPL_EOF;
  input_over = false;
  while (!finished && !input_over && wait_input()) key();
  if (!finished) drop_line();
  if (lt_repl_interrupts()) {
    result = LT_REPL_INTERRUPT;
    free(finished_line);
    finished_line = NULL;
  }
  ignore_ending();
  lt_screen_leave();
  hold_memory_back();
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
