/* test_regions.c: parallel regions: each call is made once, whichever thread makes it, also when
 * regions are nested, when several threads of a program begin them, and when a region has more
 * threads than the machine has cores. */
#include "check.h"
#include "core.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

/* Counts the calls of a region by their number. Returns true when each was made once, and all saw
 * the number of threads. */
static bool runs_once(int threads) {
  atomic_int made[MOST] = {0}, wrong = 0;
#pragma omp parallel num_threads(threads)
  {
    int i = omp_get_thread_num();
    if (omp_get_num_threads() != threads || !omp_in_parallel()) atomic_fetch_add(&wrong, 1);
    if (i >= 0 && i < MOST)
      atomic_fetch_add(&made[i], 1);
    else
      atomic_fetch_add(&wrong, 1);
  }
  bool ok = atomic_load(&wrong) == 0;
  for (int i = 0; i < MOST; i++) ok &= atomic_load(&made[i]) == (i < threads);
  return ok;
}

static void every_call_is_made_once(void) {
  for (int round = 0; round < 2000; round++)
    for (int threads = 2; threads <= 5; threads++) CHECK(runs_once(threads));
  CHECK(runs_once(MOST));
  CHECK_INT(omp_get_num_threads(), 1);
  CHECK_INT(omp_get_thread_num(), 0);
  CHECK(!omp_in_parallel());
}

/* What the calls of a region write is visible when it ends. */
static void results_are_visible(void) {
  for (int round = 1; round < 5000; round++) {
    int value[4] = {0};
#pragma omp parallel for schedule(static) num_threads(4)
    for (int i = 0; i < 4; i++) value[i] = round + i;
    for (int i = 0; i < 4; i++) CHECK_INT(value[i], round + i);
  }
}

/* A thread that has slept wakes up for the next region; the region does not depend on it. */
static void regions_follow_a_pause(void) {
  for (int round = 0; round < 30; round++) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    CHECK(runs_once(3));
  }
}

/* The region waits for a call that takes longer than it spins. */
static void slow_calls_are_awaited(void) {
  for (int slow = 0; slow < 3; slow++) {
    atomic_int ended = 0;
#pragma omp parallel num_threads(3)
    {
      if (omp_get_thread_num() == slow) nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
      atomic_fetch_add(&ended, 1);
    }
    CHECK_INT(atomic_load(&ended), 3);
  }
}

/* Libraries that ask GNU's OpenMP library start no threads in a region. */
static void libraries_have_one_thread(void) {
  void *library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return;
  int (*threads)(void) = NULL, (*inside)(void) = NULL;
  *(void **)&threads = dlsym(library, "omp_get_max_threads");
  *(void **)&inside = dlsym(library, "omp_in_parallel");
  int before = threads();
  atomic_int alone = 0;
#pragma omp parallel num_threads(3)
  if (threads() == 1 || inside()) atomic_fetch_add(&alone, 1);
  CHECK_INT(atomic_load(&alone), 3);
  CHECK_INT(threads(), before);
}

static void inner_regions_have_one_thread(void) {
  atomic_int inner = 0, numbers = 0;
#pragma omp parallel num_threads(3)
  {
    int outer = omp_get_thread_num();
#pragma omp parallel num_threads(4)
    {
      if (omp_get_num_threads() == 1 && omp_get_thread_num() == 0) atomic_fetch_add(&inner, 1);
    }
    if (omp_get_thread_num() == outer && omp_get_num_threads() == 3 && omp_in_parallel())
      atomic_fetch_add(&numbers, 1 << outer);
  }
  CHECK_INT(atomic_load(&inner), 3);
  CHECK_INT(atomic_load(&numbers), 7);
}

static void *many_regions(void *ok) {
  for (int round = 0; round < 2000; round++)
    if (!runs_once(2 + round % 3)) *(bool *)ok = false;
  return NULL;
}

static void threads_of_a_program_have_regions(void) {
  pthread_t thread[4];
  bool ok[4] = {true, true, true, true};
  for (int i = 0; i < 4; i++) CHECK_INT(pthread_create(&thread[i], NULL, many_regions, &ok[i]), 0);
  for (int i = 0; i < 4; i++) {
    pthread_join(thread[i], NULL);
    CHECK(ok[i]);
  }
}

int main(void) {
  RUN(every_call_is_made_once);
  RUN(results_are_visible);
  RUN(regions_follow_a_pause);
  RUN(slow_calls_are_awaited);
  RUN(inner_regions_have_one_thread);
  RUN(libraries_have_one_thread);
  RUN(threads_of_a_program_have_regions);
  return check_end();
}
