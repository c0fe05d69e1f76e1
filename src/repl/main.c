// The program `lutra`: a Lua 5.4 interpreter with Lutra inside, and its prompt.
//
// Whatever is typed (the prompt, -e, stdin) finds lt, tensor, nn, F, optim and data; a file must
// `require "lutra"` as it would under any Lua. Code runs in a coroutine of its own, so that after
// an error its stack is still there to be shown.
//
// Exit status: 0 done; 1 the code failed; 2 the arguments make no sense; 130 Ctrl-C.
#define _XOPEN_SOURCE 700
#include "repl.h"

#include "../tensor/lutra.h"
#include "../vm-bindings/lutra_lua.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { status_ok = 0, status_failed = 1, status_usage = 2, status_interrupted = 130 };

// What the arguments ask for.
struct request {
  int argc;
  char **argv;
  int script;          // index of the script, or of "-"; argc when there is none
  bool has_code;       // an -e or -l
  bool interactive;    // -i
  const char *emulate; // devices to emulate, or NULL
  bool strict;         // -W
  bool no_init;
  const char *trace; // where to write a trace, or NULL
  bool lint;
  int lesson;        // to open at the prompt; 0 the next one, -1 none
  const char *stubs; // where to write annotations for editors, or NULL
  bool help, version, info, check;
  int status; // out: the exit status
};

static const char usage[] =
    "usage: lutra [options] [script.lua [arguments]]\n"
    "\n"
    "  lutra                     the prompt (or, when stdin is no terminal, run stdin)\n"
    "  lutra script.lua a b c    run a script; its arguments are in the table arg and in ...\n"
    "  lutra -                   run stdin\n"
    "\n"
    "  -e CODE      run CODE, with lt, tensor, nn, F, optim and data loaded; may be repeated\n"
    "  -l NAME      require module NAME into the global NAME; -l g=NAME into the global g\n"
    "  -i           go on at the prompt after the script or CODE, also when it failed\n"
    "  -W           warn when an undefined global is read; turn Lua's own warnings on\n"
    "  --check F... only look for errors of syntax in files; - is stdin\n"
    "  --lint       say what copies between devices could be saved in the script, and how\n"
    "  --trace F    write copies, waits and ops to F, for ui.perfetto.dev and chrome://tracing\n"
    "  --no-init    the prompt without init.lua\n"
    "  --lesson [N] the prompt with a lesson, the first that is not done or lesson N; where no\n"
    "               GPU is, with --emulate cuda:2,memory=256MiB\n"
    "  --emulate D  devices that this machine need not have: cuda:2, or cuda:2,memory=1GiB;\n"
    "               with link=pcie4 (pcie3, pcie5, nvlink) --lint and --trace count its times\n"
    "  --stubs DIR  write annotations for LuaLS (completion in editors) to DIR/library/lutra.lua\n"
    "  --info       what this program was built with, the CPU, threads, BLAS and devices\n"
    "  --version    the versions of Lutra and Lua\n"
    "  --help       this text\n"
    "  --           end of the options\n"
    "\n"
    "The exit status is 0, 1 after an error, 2 for arguments that make no sense, 130 after "
    "Ctrl-C,\n"
    "or what os.exit is given.\n"
    "\n"
    "Environment:\n"
    "  LUTRA_PATH         where require looks first: patterns such as dir/?.lua, separated by ;\n"
    "                     and ;; for the places it looks in anyway\n"
    "  LUA_PATH, LUA_CPATH  as in lua; LUA_INIT is not run. The script's own folder is not "
    "searched\n"
    "  LUTRA_EMULATE      as --emulate\n"
    "  LUTRA_FALLBACK     1: an op without a kernel on its device runs on the CPU, with a warning\n"
    "  LUTRA_READLINE     the library that edits lines; none for a plain prompt\n"
    "  XDG_CONFIG_HOME    lutra/init.lua there is run before the prompt (default ~/.config)\n"
    "  XDG_STATE_HOME     lutra/history there is the history (default ~/.local/state)\n"
    "                     and lutra/lessons which lessons are done\n"
    "  LUTRA_LESSONS      a folder of further lessons (default lutra/lessons in "
    "XDG_CONFIG_HOME)\n"
    "  XDG_CACHE_HOME     lutra/kernels there are kernels that were compiled (default ~/.cache)\n"
    "  CXX                compiles kernels for emulated devices (default c++, g++ or clang++)\n"
    "  NO_COLOR           when set, no colours\n"
    "  EDITOR, PAGER      what :edit and long help are shown with\n";

// ---- arguments

static bool is(const char *arg, const char *option) { return strcmp(arg, option) == 0; }

// Is the argument after this option its value?
static bool takes_value(const char *option) {
  return is(option, "-e") || is(option, "-l") || is(option, "--emulate") || is(option, "--trace") ||
         is(option, "--stubs");
}

// Is the text the number of a lesson: 1 to 9999?
static bool is_lesson(const char *text) {
  size_t n = text ? strlen(text) : 0;
  return n > 0 && n < 5 && strspn(text, "0123456789") == n && atoi(text) > 0;
}

// Fills in `r`; NULL, or the argument that makes no sense.
static const char *parse(struct request *r) {
  int i = 1;
  for (; i < r->argc; i++) {
    const char *arg = r->argv[i];
    if (arg[0] != '-' || is(arg, "-")) break;
    if (is(arg, "--")) {
      i++;
      break;
    }
    if (takes_value(arg) && i + 1 == r->argc) return arg;
    if (is(arg, "-e") || is(arg, "-l")) {
      i++;
      r->has_code = true;
    } else if (is(arg, "-i")) {
      r->interactive = true;
    } else if (is(arg, "-W")) {
      r->strict = true;
    } else if (is(arg, "--no-init")) {
      r->no_init = true;
    } else if (is(arg, "--check")) {
      r->check = true;
    } else if (is(arg, "-h") || is(arg, "--help")) {
      r->help = true;
    } else if (is(arg, "-v") || is(arg, "--version")) {
      r->version = true;
    } else if (is(arg, "--emulate") || strncmp(arg, "--emulate=", 10) == 0) {
      r->emulate = arg[9] ? arg + 10 : r->argv[++i];
    } else if (is(arg, "--trace") || strncmp(arg, "--trace=", 8) == 0) {
      r->trace = arg[7] ? arg + 8 : r->argv[++i];
    } else if (is(arg, "--stubs") || strncmp(arg, "--stubs=", 8) == 0) {
      r->stubs = arg[7] ? arg + 8 : r->argv[++i];
    } else if (is(arg, "--lint")) {
      r->lint = true;
    } else if (is(arg, "--lesson")) { // argv ends with NULL
      r->lesson = is_lesson(r->argv[i + 1]) ? atoi(r->argv[++i]) : 0;
    } else if (strncmp(arg, "--lesson=", 9) == 0 && is_lesson(arg + 9)) {
      r->lesson = atoi(arg + 9);
    } else if (is(arg, "--info")) {
      r->info = true;
    } else {
      return arg;
    }
  }
  r->script = i;
  if (r->lesson >= 0) r->interactive = true;
  return r->check && i == r->argc ? "--check" : NULL;
}

// The table `arg` as lua makes it: [0] the script, positive its arguments, negative what was
// before.
static void set_arg(lua_State *L, const struct request *r) {
  int zero = r->script < r->argc ? r->script : 0;
  lua_createtable(L, r->argc - zero, zero + 1);
  for (int i = 0; i < r->argc; i++) {
    lua_pushstring(L, r->argv[i]);
    lua_rawseti(L, -2, i - zero);
  }
  lua_setglobal(L, "arg");
}

static int push_script_arguments(lua_State *L, const struct request *r) {
  int n = r->script < r->argc ? r->argc - r->script - 1 : 0;
  luaL_checkstack(L, n, "too many arguments to the script");
  for (int i = 0; i < n; i++) lua_pushstring(L, r->argv[r->script + 1 + i]);
  return n;
}

// ---- calls into lib/lutra/repl/, which may be absent or broken

// Pushes field `name` of the Lua module `module`; on failure the message, and returns false.
static bool push_function(lua_State *L, const char *module, const char *name) {
  lt_repl_own_require(L);
  lua_pushstring(L, module);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) return false;
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
  return true;
}

// Says what the value on top of the stack is about, and pops it.
static void complain(lua_State *L) {
  const char *text = lua_tostring(L, -1);
  fflush(stdout);
  fprintf(stderr, "lutra: %s\n", text ? text : "(the error is not a string)");
  fflush(stderr);
  lua_pop(L, 1);
}

// Replaces the error value on top by the text for people. The failed coroutine, for its traceback,
// is at `thread`; 0 when there is none.
static void describe(lua_State *L, int thread) {
  if (!push_function(L, "lutra.repl.traceback", "format")) {
    lua_pop(L, 1); // without the Lua half, the bare message must do
    return;
  }
  lua_pushvalue(L, -2);
  if (thread)
    lua_pushvalue(L, thread);
  else
    lua_pushnil(L);
  if (lua_pcall(L, 2, 1, 0) != LUA_OK)
    lua_pop(L, 1);
  else
    lua_replace(L, -2);
}

// ---- running code

// Runs the function below its `nargs` arguments on the stack. Complains and returns false when it
// fails.
static bool run(lua_State *L, struct request *r, int nargs) {
  lua_State *co = lua_newthread(L);
  int thread = lua_gettop(L) - nargs - 1;
  lua_insert(L, thread);
  luaL_checkstack(co, nargs + 1, "too many arguments to the script");
  lt_repl_stand_in(L, co);
  lua_xmove(L, co, nargs + 1);
  int nres = 0, status = lt_repl_resume(L, co, nargs, &nres);
  if (status == LUA_OK) {
    lua_pop(L, 1);
    return true;
  }
  if (status == LUA_YIELD)
    lua_pushliteral(L, "attempt to yield from outside a coroutine");
  else
    lua_xmove(co, L, 1);
  describe(L, thread);
  lt_repl_reset(L, co);
  r->status = lt_repl_interrupts() ? status_interrupted : status_failed;
  complain(L);
  lua_pop(L, 1);
  return false;
}

// As run, after a load that gave `status` and left the function or the message. With `arguments`
// the chunk is the script, and gets the script's.
static bool run_loaded(lua_State *L, struct request *r, int status, bool arguments) {
  if (status == LUA_OK) return run(L, r, arguments ? push_script_arguments(L, r) : 0);
  describe(L, 0);
  complain(L);
  r->status = status_failed;
  return false;
}

// Keeps the text of a chunk that no file holds, for its traceback.
static void remember_source(lua_State *L, const char *name, const char *text, size_t size) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "lutra.repl.host");
  lua_getfield(L, -1, "sources");
  lua_pushlstring(L, text, size);
  lua_setfield(L, -2, name);
  lua_pop(L, 3);
}

// Makes lt, tensor, nn... known, and with -W the undefined globals heard of. Complains and returns
// false when that fails.
static bool prepare_globals(lua_State *L, struct request *r, bool names) {
  bool ok = true;
  if (names) ok = push_function(L, "lutra.repl.globals", "install") && !lua_pcall(L, 0, 0, 0);
  if (ok && r->strict) {
    ok = push_function(L, "lutra.repl.strict", "install") && !lua_pcall(L, 0, 0, 0);
    lua_warning(L, "@on", 0);
  }
  if (ok) return true;
  complain(L);
  r->status = status_failed;
  return false;
}

// Pushes the text of -l's argument as code: "g=name" is g = require "name".
static void push_require(lua_State *L, const char *argument) {
  const char *equals = strchr(argument, '=');
  lua_getglobal(L, "string");
  lua_getfield(L, -1, "format");
  lua_remove(L, -2);
  lua_pushliteral(L, "_G[%q] = require(%q)");
  lua_pushlstring(L, argument, equals ? (size_t)(equals - argument) : strlen(argument));
  lua_pushstring(L, equals ? equals + 1 : argument);
  lua_call(L, 3, 1);
}

// Pushes the list of what -e and -l say: {text, name}, each with a name of its own for messages.
static void push_codes(lua_State *L, const struct request *r) {
  lua_newtable(L);
  for (int i = 1, n = 0; i < r->script && !is(r->argv[i], "--"); i++) {
    bool code = is(r->argv[i], "-e");
    if (code || is(r->argv[i], "-l")) {
      lua_createtable(L, 2, 0);
      if (code)
        lua_pushstring(L, r->argv[i + 1]);
      else
        push_require(L, r->argv[i + 1]);
      lua_rawseti(L, -2, 1);
      if (++n == 1)
        lua_pushliteral(L, "(command line)");
      else
        lua_pushfstring(L, "(command line %d)", n);
      lua_rawseti(L, -2, 2);
      lua_rawseti(L, -2, n);
    }
    i += takes_value(r->argv[i]);
  }
}

// Loads the text at `index` as the chunk `name`, without a byte order mark and a first line with
// #!; that line's newline stays, to count lines right. Pushes the function or the message.
static int load_text(lua_State *L, int index, const char *name) {
  size_t size, skip = 0;
  const char *text = lua_tolstring(L, index, &size);
  if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) skip = 3;
  if (text[skip] == '#') skip += strcspn(text + skip, "\n");
  if (text[skip] == '\n' && text[skip + 1] == LUA_SIGNATURE[0]) skip++; // it is compiled
  return luaL_loadbuffer(L, text + skip, size - skip, name);
}

static bool run_codes(lua_State *L, struct request *r) {
  push_codes(L, r);
  int codes = lua_gettop(L);
  bool ok = true;
  for (int i = 1; ok && lua_rawgeti(L, codes, i) == LUA_TTABLE; i++) {
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    size_t size;
    const char *text = lua_tolstring(L, -2, &size), *name = lua_tostring(L, -1);
    remember_source(L, name, text, size);
    name = lua_pushfstring(L, "=%s", name);
    ok = run_loaded(L, r, luaL_loadbuffer(L, text, size, name), false);
    lua_settop(L, codes);
  }
  lua_settop(L, codes - 1);
  return ok;
}

// Pushes the whole of a file.
static void push_content(lua_State *L, FILE *file) {
  luaL_Buffer text;
  luaL_buffinit(L, &text);
  size_t n;
  do {
    n = fread(luaL_prepbuffer(&text), 1, LUAL_BUFFERSIZE, file);
    luaL_addsize(&text, n);
  } while (n);
  luaL_pushresult(&text);
}

// Runs the program whose text is on top of the stack; `name` is its chunk's name.
static bool run_text(lua_State *L, struct request *r, const char *name) {
  int index = lua_gettop(L);
  size_t size;
  const char *text = lua_tolstring(L, index, &size);
  remember_source(L, name[0] == '=' ? name + 1 : name, text, size);
  bool ok = run_loaded(L, r, load_text(L, index, name), true);
  lua_settop(L, index - 1);
  return ok;
}

static bool run_stdin(lua_State *L, struct request *r) {
  push_content(L, stdin);
  return run_text(L, r, "=stdin");
}

static bool run_script(lua_State *L, struct request *r) {
  const char *name = r->argv[r->script];
  FILE *file = fopen(name, "rb");
  if (file) push_content(L, file);
  bool readable = file && !ferror(file);
  if (file) fclose(file);
  if (!readable) return run_loaded(L, r, luaL_loadfile(L, name), true); // it says why
  lua_pushfstring(L, "@%s", name);
  lua_insert(L, -2);
  bool ok = run_text(L, r, lua_tostring(L, -2));
  lua_pop(L, 1);
  return ok;
}

// ---- the prompt and the reports

// Pushes what the Lua half is told: script, files (it and what follows), codes, no_init, lint,
// lesson, trace.
static void push_options(lua_State *L, const struct request *r) {
  lua_newtable(L);
  if (r->script < r->argc && !is(r->argv[r->script], "-")) {
    lua_pushstring(L, r->argv[r->script]);
    lua_setfield(L, -2, "script");
  }
  lua_createtable(L, r->argc - r->script, 0);
  for (int i = r->script; i < r->argc; i++) {
    lua_pushstring(L, r->argv[i]);
    lua_rawseti(L, -2, i - r->script + 1);
  }
  lua_setfield(L, -2, "files");
  push_codes(L, r);
  lua_setfield(L, -2, "codes");
  lua_pushboolean(L, r->no_init);
  lua_setfield(L, -2, "no_init");
  lua_pushboolean(L, r->lint);
  lua_setfield(L, -2, "lint");
  lua_pushboolean(L, r->status != status_ok);
  lua_setfield(L, -2, "failed");
  if (r->lesson >= 0) {
    lua_pushinteger(L, r->lesson);
    lua_setfield(L, -2, "lesson");
  }
  lua_pushstring(L, r->trace);
  lua_setfield(L, -2, "trace");
  lua_pushstring(L, r->stubs);
  lua_setfield(L, -2, "stubs");
}

// Calls a function of the Lua half that takes a table of options and returns the exit status.
static void call_module(lua_State *L, struct request *r, const char *module, const char *name) {
  bool ok = push_function(L, module, name);
  if (ok) {
    push_options(L, r);
    ok = lua_pcall(L, 1, 1, 0) == LUA_OK;
  }
  if (ok) {
    r->status = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return;
  }
  complain(L);
  r->status = status_failed;
}

static void prompt(lua_State *L, struct request *r) {
  lt_repl_interrupt_install(L, true);
  call_module(L, r, "lutra.repl", "run");
}

static void open_state(lua_State *L, const struct request *r) {
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_lutra_core);
  lua_setfield(L, -2, "lutra.core");
  lua_pop(L, 1);
  luaL_requiref(L, "lutra.repl.host", luaopen_lutra_repl_host, 0);
  luaL_requiref(L, "lutra.files", luaopen_lutra_files, 0); // also where the core does not load
  lua_pop(L, 2);
  lt_repl_set_path(L, r->argv[0]);
  lt_repl_interrupt_install(L, false);
  lt_repl_own_open(L);
  set_arg(L, r);
}

// Listens to what is run, for --lint and --trace; false when it cannot.
static bool begin_listening(lua_State *L, struct request *r) {
  if (r->lint || r->trace) call_module(L, r, "lutra.placement.script", "begin");
  return r->status == status_ok;
}

// Says what was heard. What failed before stays the reason of the exit status.
static void end_listening(lua_State *L, struct request *r) {
  int before = r->status;
  if (r->lint || r->trace) call_module(L, r, "lutra.placement.script", "finish");
  if (before != status_ok) r->status = before;
}

// Runs what the arguments name, and the prompt.
static void run_all(lua_State *L, struct request *r, bool from_stdin) {
  bool has_script = r->script < r->argc;
  // With -i the prompt runs code and script itself: what they leave is then its session's.
  if (!r->interactive && !run_codes(L, r)) return;
  if (from_stdin)
    (void)run_stdin(L, r);
  else if (has_script && !r->interactive)
    (void)run_script(L, r);
  if (r->interactive || (!has_script && !r->has_code && !from_stdin)) prompt(L, r);
}

// Does what was asked for, inside a protected call.
static int serve(lua_State *L) {
  struct request *r = lua_touserdata(L, 1);
  lua_settop(L, 0);
  open_state(L, r);
  if (r->info) {
    call_module(L, r, "lutra.repl.info", "print");
    return 0;
  }
  if (r->stubs) {
    call_module(L, r, "lutra.repl.stubs", "run");
    return 0;
  }
  if (r->check) {
    call_module(L, r, "lutra.repl.check", "run");
    return 0;
  }
  bool has_script = r->script < r->argc;
  bool from_stdin = has_script ? is(r->argv[r->script], "-")
                               : !r->has_code && !r->interactive && !isatty(STDIN_FILENO);
  if (!prepare_globals(L, r, r->has_code || from_stdin)) return 0;
  if (!begin_listening(L, r)) return 0;
  run_all(L, r, from_stdin);
  end_listening(L, r);
  return 0;
}

// Has the system a driver of NVIDIA's (dxg: that of Windows, for Linux inside it)? Asking the
// driver itself would be too late for emulation, which is chosen before.
static bool has_gpu(void) {
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

static int refuse(const char *arg) {
  const char *what = takes_value(arg)     ? "nothing after"
                     : is(arg, "--check") ? "no file after"
                                          : "unknown option";
  fprintf(stderr, "lutra: %s %s\n%s", what, arg, usage);
  return status_usage;
}

// OpenMP's threads wait for one another by spinning, GNU's for about 10 ms by default: where
// another program has one of the cores, every parallel loop then costs that much (a training step
// measured 18 times longer). A spin of some 0.1 ms bridges the gaps between loops as well. libgomp
// reads its environment before main runs, so the program starts itself again, once, and then takes
// the variable out of what its children see. Where it cannot (no /proc), where the user has chosen,
// or where a tool watches the program (valgrind and others come by LD_PRELOAD), all stays as it is.
static void wait_briefly(char **argv) {
  const char *count = "GOMP_SPINCOUNT", *mark = "LUTRA_STARTED_AGAIN";
  if (getenv(mark)) {
    unsetenv(mark);
    unsetenv(count);
    return;
  }
  if (getenv("OMP_WAIT_POLICY") || getenv(count) || getenv("LD_PRELOAD")) return;
  if (setenv(count, "2000", 1) == 0 && setenv(mark, "1", 1) == 0) execv("/proc/self/exe", argv);
  unsetenv(mark);
  unsetenv(count);
}

int main(int argc, char **argv) {
  wait_briefly(argv);
  signal(SIGXFSZ, SIG_IGN); // a file over the limit of its size is an error, told like a full disk
  struct request r = {.argc = argc, .argv = argv, .lesson = -1, .status = status_ok};
  const char *wrong = parse(&r);
  if (wrong) return refuse(wrong);
  if (r.help) return fputs(usage, stdout) < 0 ? status_failed : status_ok;
  if (r.version)
    return puts("Lutra " LT_VERSION " (" LUA_RELEASE ")") < 0 ? status_failed : status_ok;
  const char *told = getenv("LUTRA_EMULATE");
  if (!r.emulate && told && *told) r.emulate = told;
  if (r.lesson >= 0 && !r.emulate && !told && !has_gpu()) // where it cannot, a lesson says so
    (void)lt_device_emulate("cuda:2,memory=256MiB");
  if (r.emulate && !lt_device_emulate(r.emulate)) {
    fprintf(stderr, "lutra: %s\n", lt_error());
    return status_usage;
  }
  if (!lt_environment_check()) {
    fprintf(stderr, "lutra: %s\n", lt_error());
    return status_failed;
  }

  lua_State *L = lt_repl_state_open();
  if (!L) {
    fputs("lutra: not enough memory to start\n", stderr);
    return status_failed;
  }
  lua_pushcfunction(L, serve);
  lua_pushlightuserdata(L, &r);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
    complain(L);
    r.status = status_failed;
  }
  lt_repl_state_close(L);
  if (fflush(stdout) != 0 || ferror(stdout)) { // a full disk: what was printed is not there
    fprintf(stderr, "lutra: cannot write to stdout: %s\n", strerror(errno));
    if (r.status == status_ok) r.status = status_failed;
  }
  return r.status;
}
