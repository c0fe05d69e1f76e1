// The module "lutra.repl.processes", for the launcher of a job (lib/lutra/repl/launch.lua):
// starting a program, reading pipes, and the signals that end a job.
//
// Each signal writes its number to a pipe that `poll` reads, so that none is lost between a check
// and the wait that follows. The process has one launcher, so its state is file-scope.
#define _GNU_SOURCE // CPU_COUNT
#include "repl.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#include <sys/prctl.h>
#endif

static int signal_pipe[2] = {-1, -1};

// Pushes nil and the reason of the last failure of the system.
static int failure(lua_State *L, const char *what) {
  int code = errno;
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", what, strerror(code));
  return 2;
}

// Makes a pipe whose ends are closed in other programs.
static bool make_pipe(int ends[2]) {
  if (pipe(ends) != 0) return false;
  for (int i = 0; i < 2; i++) (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
  return true;
}

// ---- signals

static void on_signal(int sig) {
  int saved = errno;
  char byte = (char)sig;
  if (write(signal_pipe[1], &byte, 1) < 0) errno = saved; // the pipe is full of signals
  errno = saved;
}

// catch() -> true | nil, reason: SIGINT, SIGTERM, SIGHUP and SIGCHLD are reported by `poll` from
// now on, and SIGPIPE is ignored. The end of a program must not fail a write that is blocked, while
// the other signals do so, that the launcher may end.
static int processes_catch(lua_State *L) {
  static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
  if (!make_pipe(signal_pipe)) return failure(L, "pipe");
  for (int i = 0; i < 2; i++) (void)fcntl(signal_pipe[i], F_SETFL, O_NONBLOCK);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  sigemptyset(&action.sa_mask);
  action.sa_handler = on_signal;
  for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
    action.sa_flags = caught[i] == SIGCHLD ? SA_RESTART : 0;
    sigaction(caught[i], &action, NULL);
  }
  action.sa_flags = 0;
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, NULL);
  lua_pushboolean(L, 1);
  return 1;
}

// Returns the number of a signal that ends a job and that was reported, 0 when there is none.
static int take_signal(void) {
  char byte;
  int found = 0;
  while (read(signal_pipe[0], &byte, 1) == 1)
    if (byte != SIGCHLD && !found) found = byte;
  return found;
}

// ---- programs

// Replaces this process, a child, by a program. On failure writes errno to `report`. A process that
// leads a group of its own is not reached by Ctrl-C in the terminal: the launcher ends it. It is
// ended with the launcher where the system can do so.
static void become(char **argv, const int output[2], int report, pid_t parent) {
  setpgid(0, 0);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
  if (getppid() != parent) _exit(1);
  for (int i = SIGHUP; i <= SIGCHLD; i++)
    if (i != SIGKILL) signal(i, SIG_DFL);
  int empty = isatty(STDIN_FILENO) ? open("/dev/null", O_RDONLY) : -1;
  if (empty >= 0) dup2(empty, STDIN_FILENO);
  dup2(output[1], STDOUT_FILENO);
  dup2(output[1], STDERR_FILENO);
  execvp(argv[0], argv);
  int code = errno;
  if (write(report, &code, sizeof code) < 0) _exit(126);
  _exit(127);
}

// Sets the environment variables of the table at `index`.
static void set_environment(lua_State *L, int index) {
  lua_pushnil(L);
  while (lua_next(L, index)) {
    setenv(luaL_checkstring(L, -2), luaL_checkstring(L, -1), 1);
    lua_pop(L, 1);
  }
}

// Pushes a userdata with the strings of the list at `index`, ended by NULL, and returns it. The
// list must live as long.
static char **words_of(lua_State *L, int index) {
  lua_Integer n = luaL_len(L, index);
  char **words = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *words, 0);
  for (lua_Integer i = 0; i < n; i++) {
    lua_rawgeti(L, index, i + 1);
    words[i] = (char *)(uintptr_t)luaL_checkstring(L, -1);
    lua_pop(L, 1);
  }
  words[n] = NULL;
  return words;
}

// Returns the child's errno when it could not start its program, else 0.
static int failure_of_child(int report) {
  int code = 0;
  ssize_t n;
  do {
    n = read(report, &code, sizeof code);
  } while (n < 0 && errno == EINTR);
  return n == (ssize_t)sizeof code ? code : 0;
}

// start(words, environment) -> pid, fd | nil, reason: starts a program in a process group of its
// own; `fd` is the end of a pipe for its stdout and stderr. A terminal is not its stdin.
static int processes_start(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  luaL_checktype(L, 2, LUA_TTABLE);
  char **argv = words_of(L, 1);
  set_environment(L, 2);
  int output[2], report[2];
  if (!make_pipe(output)) return failure(L, "pipe");
  if (!make_pipe(report)) {
    int code = errno;
    close(output[0]), close(output[1]);
    errno = code;
    return failure(L, "pipe");
  }
  pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(argv, output, report[1], parent);
  close(output[1]), close(report[1]);
  int code = pid < 0 ? errno : failure_of_child(report[0]);
  close(report[0]);
  if (code) {
    close(output[0]);
    if (pid > 0) (void)waitpid(pid, NULL, 0);
    errno = code;
    return failure(L, argv[0]);
  }
  (void)fcntl(output[0], F_SETFL, O_NONBLOCK);
  lua_pushinteger(L, pid);
  lua_pushinteger(L, output[0]);
  return 2;
}

// wait(pid) -> nil while the program runs | its exit status, 128 + the number of the signal that
// killed it
static int processes_wait(lua_State *L) {
  int status;
  pid_t pid = (pid_t)luaL_checkinteger(L, 1), ended = waitpid(pid, &status, WNOHANG);
  if (ended == 0 || (ended < 0 && errno == EINTR)) return 0;
  if (ended < 0) status = 0;
  lua_pushinteger(L, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  return 1;
}

// kill(pid, "TERM" | "KILL"): sends the signal to the process and to the group that it leads.
static int processes_kill(lua_State *L) {
  static const char *const names[] = {"TERM", "KILL", NULL};
  static const int numbers[] = {SIGTERM, SIGKILL};
  pid_t pid = (pid_t)luaL_checkinteger(L, 1);
  int sig = numbers[luaL_checkoption(L, 2, NULL, names)];
  luaL_argcheck(L, pid > 1, 1, "expected the id of a process");
  if (kill(-pid, sig) != 0) (void)kill(pid, sig);
  return 0;
}

// ---- pipes

// files(count): raises the limit of open files of this process, and of those that it starts, to
// `count` where it is lower and the system allows it.
static int processes_files(lua_State *L) {
  struct rlimit limit;
  rlim_t count = (rlim_t)luaL_checkinteger(L, 1);
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return 0;
  limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
  return 0;
}

// folder() -> the path of a new folder for temporary files | nil, reason
static int processes_folder(lua_State *L) {
  const char *parent = getenv("TMPDIR");
  lua_pushfstring(L, "%s/lutra-XXXXXX", parent && *parent ? parent : "/tmp");
  char *path = lua_newuserdatauv(L, lua_rawlen(L, -1) + 1, 0);
  strcpy(path, lua_tostring(L, -2));
  if (!mkdtemp(path)) return failure(L, path);
  lua_pushstring(L, path);
  return 1;
}

// fifo(path) -> fd | nil, reason: makes a named pipe and opens its end for reading. It is open for
// writing as well, so that it does not end before the first writer comes.
static int processes_fifo(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  if (mkfifo(path, 0600) != 0) return failure(L, path);
  int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return failure(L, path);
  lua_pushinteger(L, fd);
  return 1;
}

// Returns the milliseconds of the number at `index`; -1, no limit, for nil.
static int milliseconds(lua_State *L, int index) {
  return lua_isnoneornil(L, index) ? -1 : (int)(luaL_checknumber(L, index) * 1000);
}

// poll(fds, seconds) -> list of those that can be read, number of a signal or nil. Returns when
// one can be read, a program has ended, a signal has arrived, or the time is over (nil: never).
static int processes_poll(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_Integer n = luaL_len(L, 1);
  struct pollfd *files = lua_newuserdatauv(L, ((size_t)n + 1) * sizeof *files, 0);
  for (lua_Integer i = 0; i < n; i++) {
    lua_rawgeti(L, 1, i + 1);
    files[i] = (struct pollfd){.fd = (int)luaL_checkinteger(L, -1), .events = POLLIN};
    lua_pop(L, 1);
  }
  files[n] = (struct pollfd){.fd = signal_pipe[0], .events = POLLIN};
  int ready = poll(files, (nfds_t)n + 1, milliseconds(L, 2));
  lua_newtable(L);
  for (lua_Integer i = 0, k = 0; ready > 0 && i < n; i++) {
    if (!files[i].revents) continue;
    lua_pushinteger(L, files[i].fd);
    lua_rawseti(L, -2, ++k);
  }
  int sig = take_signal();
  if (!sig) return 1;
  lua_pushinteger(L, sig);
  return 2;
}

// read(fd) -> bytes | "" when there are none now | nil at the end
static int processes_read(lua_State *L) {
  static char buffer[64 << 10];
  ssize_t n = read((int)luaL_checkinteger(L, 1), buffer, sizeof buffer);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return 0;
  lua_pushlstring(L, buffer, n > 0 ? (size_t)n : 0);
  return 1;
}

static int processes_close(lua_State *L) {
  close((int)luaL_checkinteger(L, 1));
  return 0;
}

// cores() -> the number of processors that this process may use
static int processes_cores(lua_State *L) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = CPU_COUNT(&set);
#endif
  lua_pushinteger(L, count > 0 ? count : 1);
  return 1;
}

int luaopen_lutra_repl_processes(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"catch", processes_catch}, {"start", processes_start}, {"wait", processes_wait},
      {"kill", processes_kill},   {"files", processes_files}, {"folder", processes_folder},
      {"fifo", processes_fifo},   {"poll", processes_poll},   {"read", processes_read},
      {"close", processes_close}, {"cores", processes_cores}, {NULL, NULL},
  };
  luaL_newlib(L, functions);
  return 1;
}
