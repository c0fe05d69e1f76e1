// The program `lutra`: a Lua 5.4 interpreter with Lutra inside, and its prompt.
//
// Interactive code (the prompt, -e, stdin) has lt, tensor, nn, F, optim and data as globals; a file
// must `require "lutra"` as it would under any Lua. User code runs in its own coroutine, so that
// its stack can still be shown after an error.
//
// Exit status: 0 success; 1 the code failed; 2 wrong arguments; 130 Ctrl-C.
#define _XOPEN_SOURCE 700
#include "kernel/kernel.h"
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

// The parsed command line.
struct request {
  int argc;
  char **argv;
  int script;          // index of the script or of "-"; argc when there is none
  bool has_code;       // there is an -e or -l
  bool interactive;    // -i
  const char *emulate; // devices to emulate, or NULL
  bool strict;         // -W
  bool quiet;          // -w
  bool no_init;
  const char *trace; // file for a trace, or NULL
  bool lint;
  int lesson;        // lesson to open at the prompt; 0: the next one, -1: none
  const char *stubs; // folder for annotations for editors, or NULL
  const char *nproc; // number of ranks to start, or NULL
  bool help, version, info, check, kernel, export;
  int status; // result: the exit status
};

static const char usage[] =
    "usage: lutra [options] [script.lua [arguments]]\n"
    "\n"
    "  lutra                     start the prompt (or run stdin, if it is not a terminal)\n"
    "  lutra script.lua a b c    run a script; its arguments are in the table arg and in ...\n"
    "  lutra -                   run stdin\n"
    "\n"
    "  -e CODE      run CODE, with lt, tensor, nn, F, optim and data loaded; can be repeated\n"
    "  -l NAME      require module NAME into the global NAME; -l g=NAME into the global g\n"
    "  -i           start the prompt after the script or CODE, also after an error\n"
    "  -W           warn about undefined globals, as in scripts, also in CODE, stdin and the\n"
    "               prompt\n"
    "  -w           print no warnings, neither about undefined globals nor those of the library\n"
    "  --check F... check the syntax of files, and warn about comparisons of tensors and calls\n"
    "               that do not do what they seem to do; run nothing; - is stdin\n"
    "  --lint       report avoidable copies and synchronizations in the script, with fixes\n"
    "  --trace F    write copies, waits and ops to F, for ui.perfetto.dev and chrome://tracing\n"
    "  --nproc N    run the script on N ranks of this machine, started by mpirun\n"
    "  --no-init    start the prompt without init.lua\n"
    "  --lesson [N] start the prompt with lesson N, or the first that is not done; without a\n"
    "               GPU, with --emulate cuda:2,memory=256MiB\n"
    "  --emulate D  emulate devices: cuda:2, mps, or both, cuda:2,mps; with memory=1GiB each; "
    "with\n"
    "               link=pcie4 (pcie3, pcie5, nvlink) --lint and --trace use the transfer times\n"
    "               of that link\n"
    "  --stubs DIR  write annotations for LuaLS (completion in editors) to DIR/library/lutra.lua\n"
    "  --kernel F   run as a Jupyter kernel with connection file F; --kernel install makes "
    "notebooks\n"
    "               list it (install [--user | --prefix DIR] [--name N], uninstall, list)\n"
    "  --export F   write the notebook F.ipynb as a script F.lua, a script as a notebook;\n"
    "               --export F TO names the result, --force overwrites it, --parameter N=V sets\n"
    "               a parameter of a notebook\n"
    "  --info       show the build, the CPU, threads, BLAS and devices\n"
    "  --version    show the versions of Lutra and Lua\n"
    "  --help       show this help\n"
    "  --           end of the options\n"
    "\n"
    "The exit status is 0, 1 after an error, 2 for invalid arguments, 130 after Ctrl-C, or the\n"
    "argument of os.exit.\n"
    "\n"
    "Environment:\n"
    "  LUTRA_PATH         paths that require searches first: patterns such as dir/?.lua,\n"
    "                     separated by ; where ;; stands for the default path. The script's\n"
    "                     folder is searched next\n"
    "  LUA_PATH, LUA_CPATH  as in lua; LUA_INIT is not run\n"
    "  LUTRA_EMULATE      as --emulate\n"
    "  LUTRA_FALLBACK     1: an op without a kernel on its device runs on the CPU, with a warning\n"
    "  LUTRA_READLINE     the readline library; none for a prompt without line editing\n"
    "  XDG_CONFIG_HOME    folder of lutra/init.lua, which runs before the prompt (default\n"
    "                     ~/.config)\n"
    "  XDG_STATE_HOME     folder of lutra/history and of lutra/lessons, the lessons that are done\n"
    "                     (default ~/.local/state)\n"
    "  LUTRA_LESSONS      a folder of further lessons (default lutra/lessons in "
    "XDG_CONFIG_HOME)\n"
    "  XDG_CACHE_HOME     folder of lutra/kernels, the compiled kernels (default ~/.cache)\n"
    "  CXX                compiles kernels for emulated devices (default c++, g++ or clang++)\n"
    "  NO_COLOR           if set, no colors\n"
    "  EDITOR, PAGER      the programs for :edit and for long help\n";

// ---- arguments

static bool is(const char *arg, const char *option) { return strcmp(arg, option) == 0; }

// Returns whether the argument after this option is its value.
static bool takes_value(const char *option) {
  return is(option, "-e") || is(option, "-l") || is(option, "--emulate") || is(option, "--trace") ||
         is(option, "--stubs") || is(option, "--nproc");
}

// Returns whether the string is the number of a lesson: 1 to 9999.
static bool is_lesson(const char *text) {
  size_t n = text ? strlen(text) : 0;
  return n > 0 && n < 5 && strspn(text, "0123456789") == n && atoi(text) > 0;
}

// Parses the command line into `r`. Returns NULL, or the argument that is wrong.
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
    } else if (is(arg, "-w")) {
      r->quiet = true;
    } else if (is(arg, "--no-init")) {
      r->no_init = true;
    } else if (is(arg, "--check")) {
      r->check = true;
    } else if (is(arg, "--export")) { // the rest are its words
      r->export = true;
      i++;
      break;
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
    } else if (is(arg, "--nproc") || strncmp(arg, "--nproc=", 8) == 0) {
      r->nproc = arg[7] ? arg + 8 : r->argv[++i];
    } else if (is(arg, "--lint")) {
      r->lint = true;
    } else if (is(arg, "--lesson")) { // argv ends with NULL
      r->lesson = is_lesson(r->argv[i + 1]) ? atoi(r->argv[++i]) : 0;
    } else if (strncmp(arg, "--lesson=", 9) == 0 && is_lesson(arg + 9)) {
      r->lesson = atoi(arg + 9);
    } else if (is(arg, "--info")) {
      r->info = true;
    } else if (is(arg, "--kernel")) { // the words behind it are its own
      r->kernel = true;
      r->script = i + 1;
      return i + 1 == r->argc ? arg : NULL;
    } else {
      return arg;
    }
  }
  r->script = i;
  if (r->lesson >= 0) r->interactive = true;
  return r->check && i == r->argc ? "--check" : NULL;
}

// Sets the global `arg` as the program lua does: [0] is the script, positive indices its arguments,
// negative ones what precedes it.
static void set_arg(lua_State *L, const struct request *r) {
  int zero = r->script < r->argc ? r->script : 0;
  lua_createtable(L, r->argc - zero, zero + 1);
  for (int i = 0; i < r->argc; i++) {
    lua_pushstring(L, r->argv[i]);
    lua_rawseti(L, -2, i - zero);
  }
  lua_setglobal(L, "arg");
}

// Returns the name of the script's file, or NULL without one.
static const char *script_file(const struct request *r) {
  bool words = r->kernel || r->export; // no script
  return !words && r->script < r->argc && !is(r->argv[r->script], "-") ? r->argv[r->script] : NULL;
}

// Pushes the arguments of the script and returns how many.
static int push_script_arguments(lua_State *L, const struct request *r) {
  int n = r->script < r->argc ? r->argc - r->script - 1 : 0;
  luaL_checkstack(L, n, "too many arguments to the script");
  for (int i = 0; i < n; i++) lua_pushstring(L, r->argv[r->script + 1 + i]);
  return n;
}

// ---- calls into lib/lutra/repl/, which may be absent or broken

// Pushes field `name` of the Lua module `module` and returns true; on failure pushes the message
// and returns false.
static bool push_function(lua_State *L, const char *module, const char *name) {
  lt_repl_private_require(L);
  lua_pushstring(L, module);
  if (lua_pcall(L, 1, 1, 0) != LUA_OK) return false;
  lua_getfield(L, -1, name);
  lua_remove(L, -2);
  return true;
}

// Whether the launcher of a job started this process: lib/lutra/repl/launch.lua.
static bool launched;

// Prints the error message on top of the stack to stderr, and pops it. In a job the launcher finds
// the message by the marks around it.
static void report_error(lua_State *L) {
  const char *text = lua_tostring(L, -1);
  fflush(stdout);
  fprintf(stderr, launched ? "\1lutra: %s\n\2" : "lutra: %s\n",
          text ? text : "(the error is not a string)");
  fflush(stderr);
  lua_pop(L, 1);
}

// Replaces the error value on top of the stack by a formatted message. `thread` is the index of the
// failed coroutine, for its traceback; 0 when there is none.
static void format_error(lua_State *L, int thread) {
  if (!push_function(L, "lutra.repl.traceback", "format")) {
    lua_pop(L, 1); // without the Lua files the plain message is kept
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

// Runs the function below its `nargs` arguments on the stack. On failure prints the error, sets the
// exit status and returns false.
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
  format_error(L, thread);
  lt_repl_reset(L, co);
  r->status = lt_repl_interrupts() ? status_interrupted : status_failed;
  report_error(L);
  lua_pop(L, 1);
  return false;
}

// Runs a loaded function like `run`; `status` is the result of the load, which left the function or
// a message. With `arguments` the chunk is the script and receives the script's arguments.
static bool run_loaded(lua_State *L, struct request *r, int status, bool arguments) {
  if (status == LUA_OK) return run(L, r, arguments ? push_script_arguments(L, r) : 0);
  format_error(L, 0);
  report_error(L);
  r->status = status_failed;
  return false;
}

// Stores the text of a chunk that is in no file, for tracebacks.
static void remember_source(lua_State *L, const char *name, const char *text, size_t size) {
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "lutra.repl.host");
  lua_getfield(L, -1, "sources");
  lua_pushlstring(L, text, size);
  lua_setfield(L, -2, name);
  lua_pop(L, 3);
}

// Defines lt, tensor, nn and so on if `names`; without -w turns warnings on, and for files or with
// -W the one about undefined globals. On failure prints the error and returns false.
static bool prepare_globals(lua_State *L, struct request *r, bool names) {
  bool ok = true;
  if (names) ok = push_function(L, "lutra.repl.globals", "install") && !lua_pcall(L, 0, 0, 0);
  if (ok && !r->quiet && (r->strict || script_file(r))) {
    ok = push_function(L, "lutra.repl.strict", "install");
    if (ok) lua_pushboolean(L, r->strict);
    ok = ok && !lua_pcall(L, 1, 0, 0);
  }
  if (ok && !r->quiet) lua_warning(L, "@on", 0);
  if (ok) return true;
  report_error(L);
  r->status = status_failed;
  return false;
}

// Pushes the argument of -l as code: "g=name" becomes g = require "name".
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

// Pushes the list of the codes of -e and -l: {text, name}, each with a unique name for messages.
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
// #!; the newline of that line stays, so that lines are counted correctly. Pushes the function or a
// message, and returns the status.
static int load_text(lua_State *L, int index, const char *name) {
  size_t size, skip = 0;
  const char *text = lua_tolstring(L, index, &size);
  if (strncmp(text, "\xEF\xBB\xBF", 3) == 0) skip = 3;
  if (text[skip] == '#') skip += strcspn(text + skip, "\n");
  if (text[skip] == '\n' && text[skip + 1] == LUA_SIGNATURE[0]) skip++; // precompiled code
  return luaL_loadbuffer(L, text + skip, size - skip, name);
}

// Runs the codes of -e and -l in order; returns false at the first that fails.
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

// Pushes the contents of a file from its current position to the end.
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

// Runs the script whose text is on top of the stack, and pops it; `name` is its chunk name.
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

// Runs the script file; returns false if it cannot be read or fails.
static bool run_script(lua_State *L, struct request *r) {
  const char *name = r->argv[r->script];
  FILE *file = fopen(name, "rb");
  if (file) push_content(L, file);
  bool readable = file && !ferror(file);
  if (file) fclose(file);
  // luaL_loadfile reports the reason
  if (!readable) return run_loaded(L, r, luaL_loadfile(L, name), true);
  lua_pushfstring(L, "@%s", name);
  lua_insert(L, -2);
  bool ok = run_text(L, r, lua_tostring(L, -2));
  lua_pop(L, 1);
  return ok;
}

// ---- the prompt and the reports

// Returns the option or word of the command line that cannot be combined with --nproc: the ranks
// have neither a terminal nor stdin; NULL when there is none.
static const char *conflict(const struct request *r) {
  return r->lesson >= 0        ? "--lesson"
         : r->interactive      ? "-i"
         : r->check            ? "--check"
         : r->kernel           ? "--kernel"
         : r->export           ? "--export"
         : r->stubs            ? "--stubs"
         : r->info             ? "--info"
         : script_file(r)      ? NULL
         : r->script < r->argc ? "stdin"
         : !r->has_code        ? "none"
                               : NULL;
}

// Adds the options of the launcher to the table on top of the stack: nproc, conflict, program
// (argv[0]), arguments (the words of the command line without --nproc).
static void add_launch_options(lua_State *L, const struct request *r) {
  lua_pushstring(L, r->nproc);
  lua_setfield(L, -2, "nproc");
  lua_pushstring(L, conflict(r));
  lua_setfield(L, -2, "conflict");
  lua_pushstring(L, r->argv[0]);
  lua_setfield(L, -2, "program");
  lua_newtable(L);
  for (int i = 1, n = 0; i < r->argc; i++) {
    const char *arg = r->argv[i];
    int words = i < r->script && takes_value(arg) ? 2 : 1;
    bool ours = i < r->script && (is(arg, "--nproc") || strncmp(arg, "--nproc=", 8) == 0);
    for (int k = 0; !ours && k < words; k++) {
      lua_pushstring(L, r->argv[i + k]);
      lua_rawseti(L, -2, ++n);
    }
    i += words - 1;
  }
  lua_setfield(L, -2, "arguments");
}

// Pushes the table of options for the Lua modules: script, files (the script and what follows),
// codes, no_init, lint, failed, lesson, trace.
static void push_options(lua_State *L, const struct request *r) {
  lua_newtable(L);
  lua_pushstring(L, script_file(r)); // nil without one
  lua_setfield(L, -2, "script");
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
  if (r->nproc) add_launch_options(L, r);
}

// Calls a function of a Lua module with the table of options and sets the exit status to its
// result. On failure prints the error.
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
  report_error(L);
  r->status = status_failed;
}

static void prompt(lua_State *L, struct request *r) {
  lt_repl_interrupt_install(L, true);
  call_module(L, r, "lutra.repl", "run");
}

static void kernel(lua_State *L, struct request *r) {
  lt_repl_interrupt_install(L, true);
  lua_warning(L, "@on", 0);
  call_module(L, r, "lutra.repl.kernel", "run");
}

// Tells Lua's modules that the launcher of a job shows the output of this process, on a terminal of
// LUTRA_LAUNCHER columns (0: on no terminal), and writes stdout line by line. Programs that this
// one starts have another output, so the variable is unset.
static void join_launcher(lua_State *L) {
  const char *columns = getenv("LUTRA_LAUNCHER");
  if (!columns) return;
  launched = true;
  setvbuf(stdout, NULL, _IOLBF, 0);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
  lua_getfield(L, -1, "lutra.repl.host");
  lua_pushinteger(L, atoi(columns));
  lua_setfield(L, -2, "launcher_columns");
  lua_pop(L, 2);
  unsetenv("LUTRA_LAUNCHER");
}

// Opens Lua's libraries and the C modules, and sets package.path, the interrupt handler and `arg`.
static void open_state(lua_State *L, const struct request *r) {
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_lutra_core);
  lua_setfield(L, -2, "lutra.core");
  lua_pop(L, 1);
  luaL_requiref(L, "lutra.repl.host", luaopen_lutra_repl_host, 0);
  lua_pop(L, 1);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_lutra_repl_channels);
  lua_setfield(L, -2, "lutra.repl.channels");
  lua_pushcfunction(L, luaopen_lutra_repl_processes);
  lua_setfield(L, -2, "lutra.repl.processes");
  // available even if the core cannot be loaded
  luaL_requiref(L, "lutra.files", luaopen_lutra_files, 0);
  lua_pop(L, 2);
  join_launcher(L);
  lt_repl_set_path(L, r->argv[0], script_file(r));
  lt_repl_interrupt_install(L, false);
  lt_repl_job_open(L);
  lt_repl_private_globals_open(L);
  set_arg(L, r);
}

// Starts recording for --lint and --trace; returns false on failure.
static bool begin_recording(lua_State *L, struct request *r) {
  if (r->lint || r->trace) call_module(L, r, "lutra.placement.script", "begin");
  return r->status == status_ok;
}

// Ends recording and reports its results. An earlier failure keeps its exit status.
static void end_recording(lua_State *L, struct request *r) {
  int before = r->status;
  if (r->lint || r->trace) call_module(L, r, "lutra.placement.script", "finish");
  if (before != status_ok) r->status = before;
}

// Runs the codes, the script or stdin, then the prompt, as the command line requires.
static void run_all(lua_State *L, struct request *r, bool from_stdin) {
  bool has_script = r->script < r->argc;
  // With -i the prompt runs codes and script itself, so that their globals belong to its session.
  if (!r->interactive && !run_codes(L, r)) return;
  if (from_stdin)
    (void)run_stdin(L, r);
  else if (has_script && !r->interactive)
    (void)run_script(L, r);
  if (r->interactive || (!has_script && !r->has_code && !from_stdin)) prompt(L, r);
}

// Executes the command line. Runs inside a protected call.
static int run_request(lua_State *L) {
  struct request *r = lua_touserdata(L, 1);
  lua_settop(L, 0);
  open_state(L, r);
  if (r->nproc) {
    call_module(L, r, "lutra.repl.launch", "run");
    return 0;
  }
  if (r->info) {
    call_module(L, r, "lutra.repl.info", "print");
    return 0;
  }
  if (r->stubs) {
    call_module(L, r, "lutra.repl.stubs", "run");
    return 0;
  }
  if (r->export) {
    call_module(L, r, "lutra.repl.export", "run");
    return 0;
  }
  if (r->check) {
    call_module(L, r, "lutra.repl.check", "run");
    return 0;
  }
  if (r->kernel) {
    kernel(L, r);
    return 0;
  }
  bool has_script = r->script < r->argc;
  bool from_stdin = has_script ? is(r->argv[r->script], "-")
                               : !r->has_code && !r->interactive && !isatty(STDIN_FILENO);
  if (!prepare_globals(L, r, r->has_code || from_stdin)) return 0;
  if (!begin_recording(L, r)) return 0;
  run_all(L, r, from_stdin);
  end_recording(L, r);
  return 0;
}

// Returns whether the system has an NVIDIA driver (dxg: that of Windows, under WSL). Loading the
// driver to ask it would be too late for emulation, which must be chosen before.
static bool has_gpu(void) {
#ifdef __APPLE__
  if (lt_device_is_built(LT_DEVICE_mps)) return true;
#endif
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

static int refuse(const char *arg) {
  const char *what = takes_value(arg)     ? "expected an argument after"
                     : is(arg, "--check") ? "expected a file after"
                     : is(arg, "--kernel")
                         ? "expected a connection file, install, uninstall or list after"
                         : "unknown option";
  fprintf(stderr, "lutra: %s %s\n%s", what, arg, usage);
  return status_usage;
}

int main(int argc, char **argv) {
  signal(SIGXFSZ, SIG_IGN); // exceeding the file size limit is a write error, not a signal
  struct request r = {.argc = argc, .argv = argv, .lesson = -1, .status = status_ok};
  const char *wrong = parse(&r);
  if (wrong) return refuse(wrong);
  if (r.help) return fputs(usage, stdout) < 0 ? status_failed : status_ok;
  if (r.version)
    return puts("Lutra " LT_VERSION " (" LUA_RELEASE ")") < 0 ? status_failed : status_ok;
  const char *emulate = getenv("LUTRA_EMULATE");
  if (!r.emulate && emulate && *emulate) r.emulate = emulate;
  if (r.lesson >= 0 && !r.emulate && !emulate && !has_gpu()) // a failure is reported by the lesson
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
  lua_pushcfunction(L, run_request);
  lua_pushlightuserdata(L, &r);
  if (lua_pcall(L, 1, 0, 0) != LUA_OK) {
    report_error(L);
    r.status = status_failed;
  }
  bool at_once;
  if (!lt_repl_job_end(L, r.status != status_ok, &at_once)) {
    report_error(L);
    r.status = status_failed;
    at_once = true;
  }
  if (!at_once) lt_repl_state_close(L);
  if (fflush(stdout) != 0 || ferror(stdout)) { // a full disk: output was lost
    fprintf(stderr, "lutra: cannot write to stdout: %s\n", strerror(errno));
    if (r.status == status_ok) r.status = status_failed;
  }
  if (at_once) lt_repl_exit_at_once(r.status);
  return r.status;
}
