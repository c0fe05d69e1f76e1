/* faults.cpp: see faults.h. When a signal is a kernel's fault, the handler makes the interrupted
 * context continue in block.cpp, which ends the block. Any other fault is passed to the handler
 * that was installed before: a program may have loaded the emulations of several vendors, each with
 * its own copy of this file. */
#include "faults.h"
#include "memory.h"
#include "options.h"

#include <atomic>
#include <errno.h>
#include <limits.h>
#include <map>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <thread>
#include <time.h>
#include <unistd.h>

namespace emulation {
namespace {

enum { SIGNAL_STACK = 64 << 10 };

thread_local Worker *this_worker;

/* Written by signal handlers: the last one wins; the text is always terminated. */
char fault_text[256];

struct sigaction before_segv, before_bus, before_fpe, before_watchdog;

/* Calls the handler that was installed before; false where that is the system's default. */
bool call_before(const struct sigaction &before, int number, siginfo_t *info, void *interrupted) {
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, interrupted);
    return true;
  }
  if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) return false;
  before.sa_handler(number);
  return true;
}

/* Handles SIGSEGV, SIGBUS and SIGFPE: ends the block where a kernel runs; reports host
 * code that touches a device's memory. */
void on_fault(int number, siginfo_t *info, void *interrupted) {
  int saved = errno;
  Worker *w = this_worker;
  if (w && w->running) {
    char text[128];
    if (number == SIGFPE)
      snprintf(text, sizeof text, "integer division by zero");
    else if (!describe_address(info->si_addr, text, sizeof text))
      snprintf(text, sizeof text, "invalid address %p", info->si_addr);
    stop_block(w, interrupted, number == SIGFPE ? LT_EMULATED_FAILURE : LT_EMULATED_ADDRESS, text);
    errno = saved;
    return;
  }
  char text[256];
  if (number != SIGFPE && describe_address(info->si_addr, text, sizeof text)) {
    char line[320];
    int n = snprintf(line, sizeof line, "host code accessed %s\n", text);
    ssize_t written = write(2, line, (size_t)n);
    (void)written;
  }
  const struct sigaction &before = number == SIGSEGV  ? before_segv
                                   : number == SIGBUS ? before_bus
                                                      : before_fpe;
  /* By default the instruction runs again, and its fault ends the program. */
  if (!call_before(before, number, info, interrupted)) sigaction(number, &before, nullptr);
  errno = saved;
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

#ifdef SIGRTMIN
#define WATCHDOG (SIGRTMIN + 7)
#else
#define WATCHDOG SIGUSR2
#endif

/* A thread that is running blocks of a grid. */
struct Watched {
  long long deadline;
  int device;
  unsigned long long turn;
};
std::mutex watch_mutex;
std::map<pthread_t, Watched> &watched = *new std::map<pthread_t, Watched>();
std::atomic<unsigned long long> turns[MAX_DEVICES];

/* Returns true when the user's grids of that turn have been stopped; see stop_user_grids. */
bool is_over(int device, unsigned long long turn) { return turn && turn != user_turn(device); }

/* Returns the seconds after which a grid is stopped; 0: none. */
double limit_of(const Grid &grid) {
  return options().timeout > 0 ? options().timeout : grid.timeout;
}

/* Handles the watchdog's signal: ends the running block. */
void on_timeout(int number, siginfo_t *info, void *interrupted) {
  Worker *w = this_worker;
  if (!w || !w->running) {
    call_before(before_watchdog, number, info, interrupted);
    return;
  }
  if (is_over(w->grid->device, w->grid->turn)) {
    stop_block(w, interrupted, LT_EMULATED_STOPPED, "stopped");
    return;
  }
  char text[96];
  snprintf(text, sizeof text, "the kernel ran longer than %g seconds (LUTRA_EMULATE_TIMEOUT)",
           limit_of(*w->grid));
  stop_block(w, interrupted, LT_EMULATED_TIMEOUT, text);
}

void watch_forever() {
  for (;;) {
    struct timespec pause = {0, 20000000};
    nanosleep(&pause, nullptr);
    std::lock_guard<std::mutex> lock(watch_mutex);
    long long now = lt_emulated_clock();
    for (auto &thread : watched)
      if (now > thread.second.deadline) pthread_kill(thread.first, WATCHDOG);
  }
}

void install(int number, void (*handler)(int, siginfo_t *, void *), struct sigaction *before) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigaction(number, &action, before);
}

} // namespace

void store_fault(const Worker *w, const char *what, unsigned thread) {
  const lt_EmulatedIndex &b = w->block_size;
  snprintf(fault_text, sizeof fault_text, "%s, in block (%u, %u, %u), thread (%u, %u, %u)", what,
           w->block.x, w->block.y, w->block.z, thread % b.x, thread / b.x % b.y,
           thread / b.x / b.y);
}

const char *last_fault() {
  static thread_local char text[256];
  snprintf(text, sizeof text, "%s", fault_text);
  return text;
}

void set_worker(Worker *w) {
  this_worker = w;
  stack_t stack;
  if (!w) {
    /* The signal stack of a thread that ends is unmapped. */
    sigaltstack(nullptr, &stack);
    void *memory = stack.ss_sp;
    stack_t off;
    memset(&off, 0, sizeof off);
    off.ss_flags = SS_DISABLE;
    if (!(stack.ss_flags & SS_DISABLE) && stack.ss_size == SIGNAL_STACK &&
        sigaltstack(&off, nullptr) == 0)
      munmap(memory, SIGNAL_STACK);
    return;
  }
  memset(&stack, 0, sizeof stack);
  stack.ss_size = SIGNAL_STACK;
  stack.ss_sp =
      mmap(nullptr, SIGNAL_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, nullptr);
}

Worker *get_worker() { return this_worker; }

void watch_begin(const Grid &grid) {
  const double limit = limit_of(grid);
  if (limit <= 0 && !grid.turn) return;
  static std::once_flag once;
  if (limit > 0) std::call_once(once, [] { std::thread(watch_forever).detach(); });
  long long deadline = limit > 0 ? lt_emulated_clock() + (long long)(limit * 1e9) : LLONG_MAX;
  std::lock_guard<std::mutex> lock(watch_mutex);
  watched[pthread_self()] = {deadline, grid.device, grid.turn};
}

void watch_end(const Grid &grid) {
  if (limit_of(grid) <= 0 && !grid.turn) return;
  std::lock_guard<std::mutex> lock(watch_mutex);
  watched.erase(pthread_self());
}

unsigned long long user_turn(int device) { return turns[device] + 1; }

/* A signal that arrives between two blocks has no effect, so signals are sent until all grids have
 * ended. */
void stop_user_grids(int device) {
  turns[device]++;
  for (int tries = 0; tries < 1000; tries++) {
    bool any = false;
    {
      std::lock_guard<std::mutex> lock(watch_mutex);
      for (auto &thread : watched)
        if (thread.second.device == device && is_over(device, thread.second.turn)) {
          pthread_kill(thread.first, WATCHDOG);
          any = true;
        }
    }
    if (!any) return;
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, nullptr);
  }
}

void prepare_faults() {
  install(SIGSEGV, on_fault, &before_segv);
  install(SIGBUS, on_fault, &before_bus);
  install(SIGFPE, on_fault, &before_fpe);
  install(WATCHDOG, on_timeout, &before_watchdog);
}

} // namespace emulation

extern "C" long long lt_emulated_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}
