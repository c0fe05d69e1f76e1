/* program.c: lutra-fuzz, the program of the fuzzers that are written in Lua (api.lua,
 * differential.lua, every_allocation.lua): a Lua state with Lutra and with a module `fuzz`, which
 * makes allocations fail, moves Lua's stack, collects in the middle of a call, and keeps the text
 * of the program that runs, to print it when the process dies.
 *
 * `lutra-fuzz SCRIPT arguments...`; the exit status is 0, 1 after a Lua error, or what os.exit was
 * given. What a crash prints goes to stderr. */
#define _GNU_SOURCE
#include "allocations.h"
#include "lutra.h"
#include "vm-bindings/lutra_lua.h"

#include <execinfo.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#ifndef LT_DEBUG
#define LT_DEBUG 0
#endif
#if LT_DEBUG
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "handle_abort=1:allocator_may_return_null=1:detect_stack_use_after_return=0:"
         "max_allocation_size_mb=1024";
}

/* An abort, for which AddressSanitizer prints the stack and calls print_text. */
const char *__ubsan_default_options(void);
const char *__ubsan_default_options(void) { return "print_stacktrace=1:abort_on_error=1"; }
#endif

/* Lua's switches; used only by the Lua of tools/build/asserting-lua, which refers to them. */
struct lutra_lua_hard {
  int move;
  long collect;
} lutra_lua_hard;
#ifndef LT_ASSERTING_LUA
#define LT_ASSERTING_LUA 0
#endif

/* ---- the text of what runs, and the process's end -------------------------------------------- */

enum { TEXT = 64 << 10, HEAP = 768 << 20, STUCK = 40, SLOW = 10 };

static char text[TEXT];
static volatile size_t used;
static atomic_int idle = -600; /* seconds since something was recorded; loading may take 600 */
static unsigned long calls;    /* of fuzz.call */

static void say(int fd, const char *s, size_t n) {
  while (n > 0) {
    ssize_t written = write(fd, s, n);
    if (written <= 0) return;
    s += written, n -= (size_t)written;
  }
}

static void print_text(void) {
  static const char head[] = "\n== program\n", tail[] = "== end of program\n";
  say(2, head, sizeof head - 1);
  say(2, text, used);
  say(2, tail, sizeof tail - 1);
  char count[64];
  int n = snprintf(count, sizeof count, "== %lu calls\n", calls);
  say(2, count, (size_t)n);
}

#if !LT_DEBUG
static void on_signal(int number) {
  static const char head[] = "\n== died of signal ";
  char digits[] = {(char)('0' + number / 10), (char)('0' + number % 10), '\n'};
  say(2, head, sizeof head - 1);
  say(2, digits, sizeof digits);
  void *frames[40];
  backtrace_symbols_fd(frames, backtrace(frames, 40), 2);
  print_text();
  signal(number, SIG_DFL);
  raise(number);
}
#endif

static void watch_for_death(void) {
#if LT_DEBUG
  __sanitizer_set_death_callback(print_text);
#else
  static char stack[64 << 10];
  static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESETHAND};
  for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) sigaction(fatal[i], &action, NULL);
#endif
}

/* A call that takes long is interrupted, as by Ctrl-C; one that does not listen hangs. */
static void *watch_for_hangs(void *main_thread) {
  for (;;) {
    sleep(1);
    int seconds = atomic_fetch_add(&idle, 1) + 1;
    if (seconds % SLOW == 0) atomic_store(&lt_interrupt_flag, true);
    if (seconds == STUCK) {
      static const char told[] = "\n== hang: a call has run for 40 seconds\n";
      say(2, told, sizeof told - 1);
      pthread_kill(*(pthread_t *)main_thread, SIGABRT);
    }
  }
  return NULL;
}

/* case(header): forgets the text; record(line) adds a line. */
static int fuzz_record(lua_State *L) {
  size_t n;
  const char *line = luaL_checklstring(L, 1, &n);
  atomic_store(&idle, 0);
  if (n + 1 > TEXT - used) return 0;
  memcpy(text + used, line, n);
  text[used + n] = '\n';
  used += n + 1;
  return 0;
}

static int fuzz_case(lua_State *L) {
  used = 0;
  return fuzz_record(L);
}

/* text() -> all that was recorded since case */
static int fuzz_text(lua_State *L) {
  lua_pushlstring(L, text, used);
  return 1;
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* What the next fuzz.call is given. */
static struct {
  lt_Faults core, lua;
  long collect;
} armed;
static bool fired; /* an allocation of the last fuzz.call failed */
static lt_Faults last_core, last_lua;

/* arm(kind, n): the n-th allocation ("core", "lua") fails, or it and all that follow ("core+",
 * "lua+"), or the n-th moment at which the collector may run is a complete collection ("collect"),
 * in the next fuzz.call. */
static int fuzz_arm(lua_State *L) {
  static const char *const kinds[] = {"core", "core+", "lua", "lua+", "collect", NULL};
  int kind = luaL_checkoption(L, 1, NULL, kinds);
  lua_Integer n = luaL_checkinteger(L, 2);
  if (kind == 4)
    armed.collect = (long)n;
  else
    *(kind < 2 ? &armed.core : &armed.lua) = (lt_Faults){.at = n, .and_on = kind & 1};
  return 0;
}

/* call(f, ...) -> true, results... or false, error; with the faults that were armed. */
static int fuzz_call(lua_State *L) {
  luaL_checkany(L, 1);
  lua_pushboolean(L, 1);
  lua_insert(L, 1);
  lt_core_faults = armed.core;
  lt_lua_faults = armed.lua;
  lutra_lua_hard.collect = armed.collect;
  memset(&armed, 0, sizeof armed);
  calls++;
  int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
  lua_sethook(L, NULL, 0,
              0); /* an allocation may have failed before the one who set it took it off */
  last_core = lt_core_faults, last_lua = lt_lua_faults;
  lt_core_faults.at = lt_lua_faults.at = 0;
  lutra_lua_hard.collect = 0;
  fired = last_core.fired || last_lua.fired;
  if (status == LUA_OK) return lua_gettop(L);
  lua_pushboolean(L, 0);
  lua_insert(L, -2);
  return 2;
}

/* counts() -> allocations of the core and of Lua in the last fuzz.call, whether one failed */
static int fuzz_counts(lua_State *L) {
  lua_pushinteger(L, last_core.count);
  lua_pushinteger(L, last_lua.count);
  lua_pushboolean(L, fired);
  return 3;
}

/* calls() -> how many calls fuzz.call has made */
static int fuzz_calls(lua_State *L) {
  lua_pushinteger(L, (lua_Integer)calls);
  return 1;
}

/* move(on): does Lua's stack move whenever it may? */
static int fuzz_move(lua_State *L) {
  lutra_lua_hard.move = lua_toboolean(L, 1);
  return 0;
}

/* live() -> allocations of the core that are not freed */
static int fuzz_live(lua_State *L) {
  lua_pushinteger(L, lt_core_live());
  return 1;
}

/* How many finalizers Lua could not run for lack of memory. It frees their objects all the same:
 * what those own is lost, and is no leak of the program under test. */
static lua_Integer starved;

static void on_warning(void *data, const char *piece, int more) {
  (void)data, (void)more;
  if (strstr(piece, "not enough memory")) starved++;
}

/* LeakSanitizer asks it before it looks. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return starved > 0; }

static int fuzz_starved(lua_State *L) {
  lua_pushinteger(L, starved);
  return 1;
}

/* leaks() -> has LeakSanitizer found memory that nothing points to? It tells about it itself. */
static int fuzz_leaks(lua_State *L) {
#if LT_DEBUG
  lua_pushboolean(L, __lsan_do_recoverable_leak_check());
#else
  lua_pushboolean(L, 0);
#endif
  return 1;
}

/* ---- random numbers -------------------------------------------------------------------------- */

/* xorshift64* (Vigna 2016). A generator of its own: what the library draws changes no program. */

static uint64_t random_state = 1;

static uint64_t next_random(void) {
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return random_state * 0x2545F4914F6CDD1Du >> 33;
}

/* random(n) -> an integer from 1 to n */
static int fuzz_random(lua_State *L) {
  lua_Integer n = luaL_checkinteger(L, 1);
  lua_pushinteger(L, n < 1 ? 1 : (lua_Integer)(next_random() % (uint64_t)n) + 1);
  return 1;
}

/* seed(a, b): begins the sequence that belongs to two numbers. */
static int fuzz_seed(lua_State *L) {
  uint64_t a = (uint64_t)luaL_checkinteger(L, 1), b = (uint64_t)luaL_checkinteger(L, 2);
  random_state = (a * 0x9E3779B97F4A7C15u ^ (b + 1) * 0xBF58476D1CE4E5B9u) | 1;
  for (int i = 0; i < 4; i++) (void)next_random();
  return 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

static int output = 1; /* where reports go; stdout itself is /dev/null, for functions that print */

static int fuzz_report(lua_State *L) {
  size_t n;
  const char *s = luaL_checklstring(L, 1, &n);
  say(output, s, n);
  return 0;
}

static int fuzz_setenv(lua_State *L) {
  lua_pushboolean(L, setenv(luaL_checkstring(L, 1), luaL_checkstring(L, 2), 1) == 0);
  return 1;
}

/* emulate("cuda:2"): as --emulate of the program; before the first use of a device. */
static int fuzz_emulate(lua_State *L) {
  if (!lt_device_emulate(luaL_checkstring(L, 1))) return luaL_error(L, "%s", lt_error());
  return 0;
}

static int fuzz_clock(lua_State *L) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  lua_pushnumber(L, (lua_Number)t.tv_sec + (lua_Number)t.tv_nsec * 1e-9);
  return 1;
}

/* abort(): for the tests of the fuzzer itself. */
static int fuzz_abort(lua_State *L) {
  (void)L;
  abort();
}

static int open_fuzz(lua_State *L) {
  static const luaL_Reg module[] = {{"case", fuzz_case},
                                    {"record", fuzz_record},
                                    {"text", fuzz_text},
                                    {"arm", fuzz_arm},
                                    {"call", fuzz_call},
                                    {"counts", fuzz_counts},
                                    {"calls", fuzz_calls},
                                    {"move", fuzz_move},
                                    {"live", fuzz_live},
                                    {"leaks", fuzz_leaks},
                                    {"starved", fuzz_starved},
                                    {"report", fuzz_report},
                                    {"setenv", fuzz_setenv},
                                    {"emulate", fuzz_emulate},
                                    {"clock", fuzz_clock},
                                    {"abort", fuzz_abort},
                                    {"random", fuzz_random},
                                    {"seed", fuzz_seed},
                                    {NULL, NULL}};
  luaL_newlib(L, module);
  lua_pushboolean(L, LT_DEBUG);
  lua_setfield(L, -2, "sanitized");
  lua_pushboolean(L, LT_ASSERTING_LUA);
  lua_setfield(L, -2, "asserting");
  return 1;
}

static void *allocate(void *heap, void *block, size_t from, size_t size) {
  size_t *total = heap;
  if (!block) from = 0;
  if (size == 0) {
    *total -= from;
    free(block);
    return NULL;
  }
  if (size > from && (*total - from + size > HEAP || lt_faults_next(&lt_lua_faults, size)))
    return NULL;
  void *other = realloc(block, size);
  if (other) *total += size - from;
  return other;
}

static int run(lua_State *L) {
  char **argv = lua_touserdata(L, 1);
  luaL_openlibs(L);
  luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
  lua_pushcfunction(L, luaopen_lutra_core);
  lua_setfield(L, -2, "lutra.core");
  lua_pushcfunction(L, open_fuzz);
  lua_setfield(L, -2, "fuzz");
  lua_newtable(L);
  for (int i = 1; argv[i]; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
  if (luaL_loadfile(L, argv[1]) != LUA_OK) return lua_error(L);
  lua_call(L, 0, 0);
  return 0;
}

static int with_traceback(lua_State *L) {
  luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
  return 1;
}

/* Starts the program again with addresses that are the same in every run: the order of a table that
 * is indexed by objects depends on them. */
static void fix_addresses(char **argv) {
  int now = personality(0xffffffff);
  if (now == -1 || (now & ADDR_NO_RANDOMIZE)) return;
  if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) != -1) execv("/proc/self/exe", argv);
}

int main(int argc, char **argv) {
  if (argc < 2) return fputs("usage: lutra-fuzz SCRIPT arguments...\n", stderr), 2;
  fix_addresses(argv);
  watch_for_death();
  static pthread_t main_thread, watcher;
  main_thread = pthread_self();
  pthread_create(&watcher, NULL, watch_for_hangs, &main_thread);
  output = dup(1);
  if (!freopen("/dev/null", "w", stdout)) return 2;
  size_t total = 0;
  lua_State *L = lua_newstate(allocate, &total);
  if (!L) return 2;
  lua_setwarnf(L, on_warning, NULL);
  lua_pushcfunction(L, with_traceback);
  lua_pushcfunction(L, run);
  lua_pushlightuserdata(L, argv);
  int status = lua_pcall(L, 1, 0, 1);
  if (status != LUA_OK) fprintf(stderr, "lutra-fuzz: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return status == LUA_OK ? 0 : 1;
}
