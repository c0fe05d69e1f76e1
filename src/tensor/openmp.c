/* openmp.c: runs the parallel regions that GCC compiles, by threads of its own.
 *
 * A region of n threads is n calls of one function, numbered from 0. The thread that begins the
 * region makes the first call, and then each call that no other thread has begun: it waits only for
 * calls that are being made. So a region takes no longer than on one thread when the other threads
 * still have to wake up, or when other programs use their cores. What a call computes depends on
 * its number alone, so results do not depend on which thread makes it.
 *
 * A thread without work spins for some 0.1 ms, which bridges the gaps between regions, and then
 * sleeps. One that wakes up on the core of the thread which began the region moves to another core:
 * the system may leave both on one for some milliseconds.
 *
 * OpenBLAS and oneDNN use GNU's OpenMP library. It is loaded here, with the limit of its spinning
 * that it reads only when it is loaded: its default of some milliseconds makes every region take
 * that long where another program uses one of the cores. Nothing is limited when the user has set a
 * policy, or when the process has loaded the library before. It does not know of regions here, so
 * within one its number of threads is 1: else libraries would start threads in each call.
 *
 * The build leaves this file out where the compiler is not GCC on Linux (OPENMP_LIBS in
 * tools/build/probe). These are all functions that its code for parallel regions calls; another
 * construct of OpenMP needs another function here.
 *
 * Invariant: a call of a job is made by the thread that raised `next` in the job's state; the job's
 * fields are valid until all its calls have ended. */
#define _GNU_SOURCE /* sched_getcpu */
#include "dynamic_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

/* Keeps the functions out of other libraries, which call OpenMP's own. */
#define HIDDEN __attribute__((visibility("hidden")))

enum {
  SPINS = 4000,  /* pauses of a thread without work before it sleeps, some 0.1 ms */
  WAITS = 400,   /* pauses of a thread that waits for calls, before it lets others run */
  YIELDS = 200,  /* times that it lets others run before it sleeps */
  MOST = 1024,   /* threads */
  CALM = 1000000 /* nanoseconds between two moves of a thread to another core */
};

/* ---- GNU's library --------------------------------------------------------------------------- */

static struct {
  void (*set_num_threads)(int);
  int (*get_max_threads)(void);
  int (*get_thread_limit)(void);
} gomp; /* all NULL without the library */

static int spins = SPINS;

/* Returns the number of pauses that the user's settings ask for. */
static int spins_of(const char *policy, const char *count) {
  char *end;
  long n = count ? strtol(count, &end, 10) : SPINS;
  if (count && (end == count || *end || n < 0 || n > 1 << 30)) n = SPINS;
  if (count || !policy) return (int)n;
  return strcasecmp(policy, "passive") == 0  ? 0
         : strcasecmp(policy, "active") == 0 ? 1 << 30
                                             : SPINS;
}

/* Returns the library, loaded with the limit. */
static void *load(void) {
  static const char *const name = "libgomp.so.1", *const variable = "GOMP_SPINCOUNT";
  const char *policy = getenv("OMP_WAIT_POLICY"), *count = getenv(variable);
  spins = spins_of(policy, count);
  void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (library) return library;
  bool limit = !policy && !count && setenv(variable, "4000", 1) == 0;
  library = dlopen(name, RTLD_NOW);
  if (limit) unsetenv(variable);
  return library;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct {
  /* Changes with each job: its number in the upper half, then 16 bits each for the number of its
   * calls, and for the next call that no thread has begun. */
  _Alignas(64) _Atomic uint64_t state;
  void (*function)(void *); /* of the job */
  void *data;
  atomic_int cpu;                    /* on which the job began; below 0: unknown */
  _Alignas(64) atomic_int ended;     /* calls that other threads have made */
  _Alignas(64) atomic_bool occupied; /* a thread has a job */
  atomic_int sleeping;               /* threads without work that do not spin */
  atomic_bool waiting;               /* the thread that has the job sleeps */
  int threads;                       /* that were started; only while occupied */
  pthread_mutex_t lock;
  pthread_cond_t work, end;
} team = {.cpu = -1,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .end = PTHREAD_COND_INITIALIZER};

/* The call that this thread makes. */
static _Thread_local struct {
  int number, count;
  bool inside;
} call = {0, 1, false};

static uint64_t pack(uint64_t job, int count, int next) {
  return job << 32 | (uint64_t)count << 16 | (uint64_t)next;
}
static int next_of(uint64_t state) { return (int)(state & 0xffff); }
static int count_of(uint64_t state) { return (int)(state >> 16 & 0xffff); }

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

static void make_call(void (*function)(void *), void *data, int number, int count) {
  call.number = number;
  call.count = count;
  call.inside = true;
  function(data);
  call.number = 0;
  call.count = 1;
  call.inside = false;
}

/* Begins the next call of the job in *state, if there is one: returns its number, else -1. Updates
 * *state. */
static int claim(uint64_t *state) {
  while (next_of(*state) < count_of(*state))
    if (atomic_compare_exchange_weak(&team.state, state, *state + 1)) return next_of((*state)++);
  return -1;
}

/* ---- threads that wait for jobs -------------------------------------------------------------- */

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Moves this thread off the core where the job began. Keeps the set of cores that it may use. */
static void leave_core(int cpu) {
  static _Thread_local int64_t moved;
  cpu_set_t all, others;
  int64_t time = now();
  if (time - moved < CALM) return;
  moved = time;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  others = all;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  sched_setaffinity(0, sizeof all, &all);
}

/* Waits until the state differs from `seen`: spins, then sleeps. */
static void wait_for_work(uint64_t seen) {
  for (int i = 0; i < spins; i++) {
    if (atomic_load_explicit(&team.state, memory_order_relaxed) != seen) return;
    pause_briefly();
  }
  pthread_mutex_lock(&team.lock);
  atomic_fetch_add(&team.sleeping, 1);
  while (atomic_load(&team.state) == seen) pthread_cond_wait(&team.work, &team.lock);
  atomic_fetch_sub(&team.sleeping, 1);
  pthread_mutex_unlock(&team.lock);
}

/* Counts a call that has ended, and wakes the thread that waits for the last one. */
static void end_call(void) {
  atomic_fetch_add(&team.ended, 1);
  if (!atomic_load(&team.waiting)) return;
  pthread_mutex_lock(&team.lock);
  pthread_cond_signal(&team.end);
  pthread_mutex_unlock(&team.lock);
}

static void *thread(void *unused) {
  (void)unused;
  if (gomp.set_num_threads) gomp.set_num_threads(1);
  for (;;) {
    uint64_t state = atomic_load(&team.state);
    if (next_of(state) == count_of(state)) {
      wait_for_work(state);
      continue;
    }
    int cpu = atomic_load_explicit(&team.cpu, memory_order_relaxed);
    if (cpu >= 0 && cpu == sched_getcpu()) leave_core(cpu);
    for (int i; (i = claim(&state)) >= 0; end_call())
      make_call(team.function, team.data, i, count_of(state));
  }
  return NULL;
}

/* Starts threads until there are n; fewer when the system refuses. They leave signals to the
 * program's own threads. */
static void start_threads(int n) {
  sigset_t all, before;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t id;
  while (team.threads < n && pthread_create(&id, &attributes, thread, NULL) == 0) team.threads++;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
}

/* ---- the thread that begins a job ------------------------------------------------------------ */

/* Waits until other threads have ended this many calls. */
static void wait_for_calls(int n) {
  for (int i = 0; i < WAITS + YIELDS; i++) {
    if (atomic_load_explicit(&team.ended, memory_order_acquire) == n) return;
    if (i < WAITS)
      pause_briefly();
    else
      sched_yield();
  }
  pthread_mutex_lock(&team.lock);
  atomic_store(&team.waiting, true);
  while (atomic_load(&team.ended) != n) pthread_cond_wait(&team.end, &team.lock);
  atomic_store(&team.waiting, false);
  pthread_mutex_unlock(&team.lock);
}

/* Makes all calls of a job, shared with the other threads. */
static void share(void (*function)(void *), void *data, int count) {
  if (team.threads < count - 1) start_threads(count - 1);
  team.function = function;
  team.data = data;
  atomic_store_explicit(&team.cpu, sched_getcpu(), memory_order_relaxed);
  atomic_store_explicit(&team.ended, 0, memory_order_relaxed);
  uint64_t state = pack((atomic_load(&team.state) >> 32) + 1, count, 1);
  atomic_store(&team.state, state);
  if (atomic_load(&team.sleeping) > 0) {
    pthread_mutex_lock(&team.lock);
    pthread_cond_broadcast(&team.work);
    pthread_mutex_unlock(&team.lock);
  }
  int own = 1;
  make_call(function, data, 0, count);
  for (int i; (i = claim(&state)) >= 0; own++) make_call(function, data, i, count);
  wait_for_calls(count - own);
}

/* ---- the functions that compiled code calls -------------------------------------------------- */

HIDDEN int omp_get_max_threads(void) {
  cpu_set_t set;
  if (gomp.get_max_threads) return gomp.get_max_threads();
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}
HIDDEN int omp_get_thread_limit(void) {
  int n = gomp.get_thread_limit ? gomp.get_thread_limit() : MOST;
  return n < MOST ? n : MOST;
}
HIDDEN void omp_set_num_threads(int n) {
  if (gomp.set_num_threads) gomp.set_num_threads(n);
}
HIDDEN int omp_get_num_threads(void) { return call.count; }
HIDDEN int omp_get_thread_num(void) { return call.number; }
HIDDEN int omp_in_parallel(void) { return call.inside; }

/* Runs a region of `threads` threads (0: the default). A region inside another one has one thread,
 * and so has, in turn, one that begins while another thread of the program has a job. */
HIDDEN void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags) {
  (void)flags;
  int count = threads ? (int)threads : omp_get_max_threads();
  if (count > MOST) count = MOST;
  if (call.inside) {
    int number = call.number, outer = call.count;
    make_call(function, data, 0, 1);
    call.number = number;
    call.count = outer;
    call.inside = true;
    return;
  }
  int before = count > 1 && gomp.get_max_threads ? gomp.get_max_threads() : 1;
  if (before > 1) gomp.set_num_threads(1);
  if (count > 1 && !atomic_exchange(&team.occupied, true)) {
    share(function, data, count);
    atomic_store(&team.occupied, false);
  } else {
    for (int i = 0; i < count; i++) make_call(function, data, i, count);
  }
  if (before > 1) gomp.set_num_threads(before);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* A forked process has one thread. */
static void after_fork(void) {
  pthread_mutex_init(&team.lock, NULL);
  pthread_cond_init(&team.work, NULL);
  pthread_cond_init(&team.end, NULL);
  atomic_store(&team.sleeping, 0);
  atomic_store(&team.waiting, false);
  atomic_store(&team.occupied, false);
  team.threads = 0;
}

/* Runs when the program starts, or the module is loaded. */
__attribute__((constructor)) static void open_library(void) {
  void *library = load();
  pthread_atfork(NULL, NULL, after_fork);
  if (!library || !lt_library_find(library, "omp_set_num_threads", &gomp.set_num_threads) ||
      !lt_library_find(library, "omp_get_max_threads", &gomp.get_max_threads) ||
      !lt_library_find(library, "omp_get_thread_limit", &gomp.get_thread_limit))
    memset(&gomp, 0, sizeof gomp);
}
