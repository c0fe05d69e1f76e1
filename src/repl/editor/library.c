// Loads the line editing library and describes the result. Invariant: all members of lt_rl that
// `usable` and `editing` promise are set.
#define _XOPEN_SOURCE 700
#include "library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct lt_rl lt_rl;

enum need { LINE, EDIT, EXTRA };

// The address of each member. ISO C has no conversion from void * to a function pointer; POSIX has.
static const struct {
  enum need need;
  const char *name;
  size_t offset;
} symbols[] = {
#define ROW(need, type, name, ...) {need, #name, offsetof(struct lt_rl, name)},
    LT_RL_SYMBOLS(ROW, ROW)};

static bool opened;           // the search was made
static char description[160]; // see lt_editor_name
static char load_error[256];  // error of the last library tried; "" if it was loaded

static void load_symbols(void *library, bool has[3]) {
  has[LINE] = has[EDIT] = true;
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    void *found = dlsym(library, symbols[i].name);
    memcpy((char *)&lt_rl + symbols[i].offset, &found, sizeof found);
    if (!found) has[symbols[i].need] = false;
  }
}

static void set(void *library, const char *name, int value) {
  int *variable = dlsym(library, name);
  if (variable) *variable = value;
}

static void describe(const char *version) {
  if (lt_rl.editing)
    (void)snprintf(description, sizeof description, "readline %.40s", version);
  else if (!version || strstr(version, "EditLine"))
    (void)snprintf(description, sizeof description,
                   "libedit: no colours or multi-line editing (apt install libreadline8)");
  else
    (void)snprintf(description, sizeof description,
                   "readline %.40s, which is too old: no colours or multi-line editing", version);
}

// Loads one library; returns false, with load_error set, if that fails or it cannot read lines.
static bool open_library(const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  (void)snprintf(load_error, sizeof load_error, "%s", library ? "" : dlerror());
  if (!library) return false;
  bool has[3];
  load_symbols(library, has);
  if (!has[LINE]) {
    dlclose(library);
    return false;
  }
  const char **version = dlsym(library, "rl_library_version");
  bool gnu = version && *version && !strstr(*version, "EditLine");
  lt_rl.usable = true;
  lt_rl.editing = gnu && has[EDIT];
  const char **program = dlsym(library, "rl_readline_name");
  if (program) *program = "lutra"; // for `$if lutra` in ~/.inputrc
  set(library, "rl_catch_signals", 0);
  describe(version ? *version : NULL);
  return true;
}

// Reports that LUTRA_READLINE names no usable library; the prompt continues without one.
static void report_unusable(const char *name) {
  const char *why = load_error[0] ? load_error : "it is not a line editing library";
  (void)snprintf(description, sizeof description,
                 "none: cannot use %.80s, which LUTRA_READLINE names", name);
  (void)fprintf(stderr, "lutra: LUTRA_READLINE: cannot use \"%.200s\": %s\n", name, why);
}

// Loads the first usable library, or the one that LUTRA_READLINE names; sets the description.
static bool find_library(void) {
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
  const char *name = getenv("LUTRA_READLINE");
  if (name && *name) {
    if (strcmp(name, "none") == 0)
      (void)snprintf(description, sizeof description, "none: LUTRA_READLINE says so");
    else if (!open_library(name))
      report_unusable(name);
    return lt_rl.usable;
  }
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (open_library(names[i])) return true;
  (void)snprintf(description, sizeof description,
                 "none: libreadline.so.8 not found (apt install libreadline8)");
  return false;
}

// Returns the reason why lines cannot be edited on this terminal, or NULL: both stdin and stdout
// must be a terminal that supports cursor movement.
static const char *obstacle(void) {
  const char *term = getenv("TERM");
  if (!isatty(STDIN_FILENO)) return "stdin is not a terminal";
  if (!isatty(STDOUT_FILENO)) return "stdout is not a terminal";
  if (!term || !*term) return "TERM is not set";
  return strcmp(term, "dumb") == 0 ? "TERM is dumb" : NULL;
}

void lt_editor_open(void) {
  if (opened) return;
  opened = true;
  const char *why = obstacle();
  if (why) {
    (void)snprintf(description, sizeof description, "none: %s", why);
    return;
  }
  (void)find_library();
}

const char *lt_editor_name(void) {
  if (!opened) {
    const char *why = obstacle();
    bool found = find_library();
    opened = true;
    if (why && found) {
      char library[80];
      (void)snprintf(library, sizeof library, "%.79s", description);
      (void)snprintf(description, sizeof description, "none: %s (the library is %s)", why, library);
      lt_rl.usable = lt_rl.editing = false;
    }
  }
  return description;
}

void lt_editor_history_add(const char *entry) {
  if (lt_rl.usable) lt_rl.add_history(entry);
}
