/* threads.c: the number of threads of kernels, the check that they can be started, and the flag
 * that interrupts a long op.
 *
 * OpenMP's runtime ends the process when it cannot create a thread or allocate its records. So
 * before a parallel region needs more than the last one, the memory and threads that it will
 * request are first requested here, in ways that can fail. */
#include "core.h"
#include "worker.h"

#include <omp.h>
#include <pthread.h>
#include <sys/mman.h>

atomic_bool lt_interrupt_flag;

static atomic_int thread_count; /* 0: OpenMP's default */

/* Returns the upper limit: OMP_THREAD_LIMIT, at most LT_MAX_THREADS. */
static int most_threads(void) {
  int limit = omp_get_thread_limit();
  return limit < 1 || limit > LT_MAX_THREADS ? LT_MAX_THREADS : limit;
}

static _Thread_local lt_Generator *of_worker; /* NULL: the thread is no worker */

lt_Generator *lt_worker_generator(void) { return of_worker; }

bool lt_interrupt_take(void) {
  if (of_worker) return atomic_load(&lt_interrupt_flag);
  return atomic_exchange(&lt_interrupt_flag, false);
}

void lt_worker_begin(lt_Generator *own) {
  of_worker = own;
  if (own) omp_set_num_threads(1); /* of this thread: a library that asks OpenMP */
}

int lt_num_threads(void) {
  if (of_worker) return 1;
  int n = atomic_load_explicit(&thread_count, memory_order_relaxed);
  if (n == 0) {
    n = omp_get_max_threads();
    if (n > most_threads()) n = most_threads();
    atomic_store(&thread_count, n);
  }
  return n;
}

bool lt_set_num_threads(int64_t n) {
  if (n < 1 || n > most_threads()) {
    lt_error_set("set_num_threads: expected an integer from 1 to %d for argument 'n', got %lld",
                 most_threads(), (long long)n);
    return false;
  }
  if (of_worker) return true; /* a worker has one */
  atomic_store(&thread_count, (int)n);
  omp_set_num_threads((int)n);
  return true;
}

/* ---- starting threads ------------------------------------------------------------------------ */

/* The threads that OpenMP keeps for the parallel regions of this thread. */
static _Thread_local struct {
  int now;  /* of the last region; a smaller region ends the others */
  int most; /* the largest number that was started at once */
} team = {1, 1};

/* Returns the size of a new thread's stack in bytes: OMP_STACKSIZE ("64M"; KiB without a unit) or
 * the system's default. */
static size_t stack_size(void) {
  const char *text = getenv("OMP_STACKSIZE");
  if (!text) text = getenv("GOMP_STACKSIZE");
  char *end = NULL;
  size_t n = text ? (size_t)strtoull(text, &end, 10) : 0;
  end += end ? strspn(end, " ") : 0;
  if (n)
    return n << (!*end || strchr("kK", *end) ? 10 : strchr("mM", *end) ? 20 : *end == 'B' ? 0 : 30);
  pthread_attr_t attributes;
  n = (size_t)8 << 20;
  if (pthread_attr_init(&attributes) != 0) return n;
  pthread_attr_getstacksize(&attributes, &n);
  pthread_attr_destroy(&attributes);
  return n;
}

/* Returns true when the process may map that many more bytes. */
static bool can_map(size_t bytes) {
  void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  munmap(memory, bytes);
  return true;
}

/* Returns true when malloc has that many bytes. */
static bool can_allocate(size_t bytes) {
  void *volatile memory = malloc(bytes);
  free(memory);
  return memory != NULL;
}

/* The body of a thread that can_create starts: it ends when the mutex is unlocked. */
static void *wait_for(void *mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
  return NULL;
}

/* Returns true when n more threads can exist at once: creates and joins them. */
static bool can_create(int n) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_t *threads = malloc((size_t)n * sizeof *threads);
  pthread_attr_t attributes;
  if (!threads || pthread_attr_init(&attributes) != 0) {
    free(threads);
    return false;
  }
  pthread_attr_setstacksize(&attributes, stack_size());
  int count = 0;
  pthread_mutex_lock(&mutex);
  while (count < n && pthread_create(&threads[count], &attributes, wait_for, &mutex) == 0) count++;
  pthread_mutex_unlock(&mutex);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
  pthread_attr_destroy(&attributes);
  free(threads);
  return count == n;
}

/* Returns true when OpenMP can start a region of n threads. Its records take less memory than the
 * amount that is tried here. */
static bool can_start(int n) {
  if (!can_allocate(65536 + (size_t)n * 1024)) return false;
  if (n > team.most) return can_create(n - 1);
  return n <= team.now || can_map((size_t)(n - team.now) * stack_size());
}

int lt_threads_start(int n) {
  if (n == team.now || n <= 1) return n;
  if (omp_in_parallel() || !can_start(n)) return 1;
#pragma omp parallel num_threads(n)
  lt_stopped(); /* the region only starts the threads */
  team.now = n;
  if (n > team.most) team.most = n;
  return n;
}
