// Ctrl-C, at no cost until it is pressed: the signal handler sets a debug hook on the coroutine
// that runs at that moment, and the hook stops the computation.
//
// Stage 1, the first press: the hook raises the error "interrupted", which code may catch to clean
// up. Stage 2, a later press in the same computation, at the prompt: the code caught the error
// (`while true do pcall(f) end`), so the hook yields out of the computation, which is abandoned.
// Below a C call (a callback of table.sort) it cannot yield; there it raises the error at every
// instruction until it reaches a place that can yield. In a script the second press has the default
// action: it kills the process.
//
// lt_interrupt_flag asks a long operation of the core to stop; when it did, and failed with
// "interrupted", the hook has nothing left to do.
//
// Invariant: `running` is the coroutine whose Lua code executes now, or NULL when none may be
// stopped. It changes only in lt_repl_resume, lt_repl_reset and around a question to the user.
//
// A signal handler has no argument, so its state is file-scope: one process, one terminal.
#define _XOPEN_SOURCE 700
#include "repl.h"

#include "../tensor/lutra.h"
#include "../vm-bindings/lutra_lua.h"

#include <errno.h>
#include <lauxlib.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static lua_State *volatile running;      // see the invariant above
static volatile sig_atomic_t presses;    // number of Ctrl-C since the last clear
static volatile sig_atomic_t keep_alive; // at the prompt: no press kills the process
static pthread_t main_thread;            // the thread that runs Lua

// Returns whether the computation is abandoned, without giving it a chance to catch the error.
static bool abandoning(void) { return keep_alive && presses >= 2; }

// Removes the hook of L, or restores that of the debugger.
static void unhook(lua_State *L) {
  lua_sethook(L, NULL, 0, 0);
  lt_repl_debug_follow(L);
}

// The debug hook: stops the computation.
static void interrupt_hook(lua_State *L, lua_Debug *ar) {
  if (presses == 0) { // set for a computation that has ended
    unhook(L);
    return;
  }
  if (abandoning() && lua_isyieldable(L)) {
    if (ar->event == LUA_HOOKCOUNT) lua_yield(L, 0); // only count and line hooks may yield
    return;
  }
  bool taken = !atomic_exchange(&lt_interrupt_flag, false); // by an operation of the core
  if (!abandoning()) {
    unhook(L);
    if (taken) return;
  }
  luaL_where(L, 0); // level 0 of a hook is the function that was stopped
  lua_pushliteral(L, "interrupted");
  lua_concat(L, 2);
  lua_error(L);
}

static void set_hook(lua_State *L) {
  lua_sethook(L, interrupt_hook, LUA_MASKCALL | LUA_MASKRET | LUA_MASKCOUNT, 1);
}

// Handles SIGINT. Calls only async-signal-safe functions; lua_sethook is designed to be one.
static void on_sigint(int sig) {
  int saved = errno;
  if (!pthread_equal(pthread_self(), main_thread)) { // delivered to a worker thread: forward it
    pthread_kill(main_thread, sig);
    errno = saved;
    return;
  }
  presses++;
  if (running) {
    set_hook(running);
    atomic_store(&lt_interrupt_flag, true);
    if (keep_alive && presses >= 3) {
      static const char text[] = "\nstill stopping; Ctrl-\\ ends the program at once\n";
      if (write(STDERR_FILENO, text, sizeof text - 1) < 0) errno = saved;
    }
  }
  if (!keep_alive) signal(sig, SIG_DFL);
  errno = saved;
}

// Makes L the running coroutine after the code of `from` has ended. A press in between must not be
// lost: the hook moves to L when the computation is abandoned.
static void return_to(lua_State *L, lua_State *from) {
  running = L;
  if (!presses) return;
  if (lua_gethook(from) == interrupt_hook) unhook(from);
  if (L && abandoning()) set_hook(L);
}

void lt_repl_stand_in(lua_State *L, lua_State *co) {
  luaL_checkstack(L, 4, NULL);
  luaL_checkstack(co, 1, NULL);
  if (lua_rawgetp(L, LUA_REGISTRYINDEX, &lt_lua_stand_ins) != LUA_TTABLE) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &lt_lua_stand_ins);
  }
  lua_pushthread(co);
  lua_xmove(co, L, 1);
  lua_pushthread(L);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}

int lt_repl_resume(lua_State *L, lua_State *co, int nargs, int *nres) {
  lua_State *before = running;
  lt_repl_debug_follow(co); // before co is running: it must not replace the hook of an interrupt
  running = co;
  int status = lua_resume(co, L, nargs, nres);
  return_to(before, co);
  return status;
}

int lt_repl_reset(lua_State *L, lua_State *co) {
  (void)L;
  lua_State *before = running;
  running = co;
  int status = lua_resetthread(co);
  return_to(before, co);
  return status;
}

int lt_repl_interrupts(void) { return presses; }

lua_State *lt_repl_interrupt_suspend(void) {
  lua_State *suspended = running;
  running = NULL;
  return suspended;
}

void lt_repl_interrupt_resume(lua_State *suspended) { running = suspended; }

bool lt_repl_interrupt_keep(bool keep) {
  bool before = keep_alive;
  keep_alive = keep;
  return before;
}

void lt_repl_interrupt_clear(void) {
  presses = 0;
  atomic_store(&lt_interrupt_flag, false);
}

// ---- coroutine.resume and coroutine.wrap, as in Lua's lcorolib.c but through lt_repl_resume

// Resumes `co` with the top `nargs` values of L. Returns the number of values it pushed on L, -1
// with an error value on top, or -2 when the whole computation is abandoned.
static int resume_with(lua_State *L, lua_State *co, int nargs) {
  if (!lua_checkstack(co, nargs)) {
    lua_pushliteral(L, "too many arguments to resume");
    return -1;
  }
  lua_xmove(L, co, nargs);
  int nres = 0, status = lt_repl_resume(L, co, nargs, &nres);
  if (status == LUA_YIELD && abandoning()) return -2;
  if (status != LUA_OK && status != LUA_YIELD) {
    lua_xmove(co, L, 1);
    return -1;
  }
  if (!lua_checkstack(L, nres + 1)) {
    lua_pop(co, nres);
    lua_pushliteral(L, "too many results to resume");
    return -1;
  }
  lua_xmove(co, L, nres);
  return nres;
}

// Continues to abandon the computation in L, the coroutine that resumed the abandoned one.
static int abandon(lua_State *L) {
  return lua_isyieldable(L) ? lua_yield(L, 0) : luaL_error(L, "interrupted");
}

static lua_State *check_thread(lua_State *L) {
  lua_State *co = lua_tothread(L, 1);
  luaL_argexpected(L, co, 1, "coroutine");
  return co;
}

static int co_resume(lua_State *L) {
  lua_State *co = check_thread(L);
  int n = resume_with(L, co, lua_gettop(L) - 1);
  if (n == -2) return abandon(L);
  lua_pushboolean(L, n >= 0);
  if (n < 0) n = 1;
  lua_insert(L, -(n + 1));
  return n + 1;
}

// The function that coroutine.wrap returns; the coroutine is its upvalue.
static int wrapped(lua_State *L) {
  lua_State *co = lua_tothread(L, lua_upvalueindex(1));
  int n = resume_with(L, co, lua_gettop(L));
  if (n >= 0) return n;
  if (n == -2) return abandon(L);
  int status = lua_status(co);
  if (status != LUA_OK && status != LUA_YIELD) { // co failed: close its variables
    status = lt_repl_reset(L, co);
    lua_xmove(co, L, 1);
  }
  if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) { // add the position of the caller
    luaL_where(L, 1);
    lua_insert(L, -2);
    lua_concat(L, 2);
  }
  return lua_error(L);
}

static int co_wrap(lua_State *L) {
  luaL_checktype(L, 1, LUA_TFUNCTION);
  lua_State *co = lua_newthread(L);
  lua_pushvalue(L, 1);
  lua_xmove(L, co, 1);
  lua_pushcclosure(L, wrapped, 1);
  return 1;
}

// Replaces os.execute (upvalue 1). C's `system` ignores SIGINT while the other program runs; so at
// the prompt, when Ctrl-C has ended that program, this raises "interrupted", which ends a loop
// around it.
static int os_execute(lua_State *L) {
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
  if (!keep_alive || lua_gettop(L) != 3 || lua_toboolean(L, 1)) return lua_gettop(L);
  bool by_signal = strcmp(lua_tostring(L, 2), "signal") == 0;
  if (lua_tointeger(L, 3) == (by_signal ? SIGINT : 128 + SIGINT))
    return luaL_error(L, "interrupted");
  return 3;
}

static void replace_execute(lua_State *L) {
  lua_getglobal(L, "os");
  lua_getfield(L, -1, "execute");
  if (lua_tocfunction(L, -1) != os_execute) {
    lua_pushcclosure(L, os_execute, 1);
    lua_setfield(L, -2, "execute");
  } else {
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
}

void lt_repl_interrupt_install(lua_State *L, bool keep) {
  static const luaL_Reg functions[] = {{"resume", co_resume}, {"wrap", co_wrap}, {NULL, NULL}};
  lua_getglobal(L, "coroutine");
  luaL_setfuncs(L, functions, 0);
  lua_pop(L, 1);
  replace_execute(L);

  main_thread = pthread_self();
  keep_alive = keep;
  struct sigaction action; // no SA_RESTART: a read from the terminal ends as well
  memset(&action, 0, sizeof action);
  action.sa_handler = on_sigint;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
}
