/* openmp.c: loads GNU's OpenMP library, and limits how long its threads spin while they wait.
 *
 * They spin for some milliseconds by default. When another program uses one of the cores, every
 * parallel region then takes that long: a training step measured 20 times longer. A spin of some
 * 0.1 ms still bridges the gaps between regions. The library reads GOMP_SPINCOUNT only when it is
 * loaded, which for a linked library is before any code of the program runs. So it is not linked:
 * the functions below, which the compiler and this program call, load it with the variable set. An
 * OpenBLAS that is built with OpenMP uses the same library, and the same threads.
 *
 * Nothing is limited when the user has set a policy, or when the process has loaded the library
 * before. Without the library there is one thread.
 *
 * The build leaves this file out where the compiler is not GCC on Linux (OPENMP_LIBS in
 * tools/build/probe). These are all functions that its code for parallel regions calls; another
 * construct of OpenMP needs another function here. */
#include "dynamic_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Keeps the functions out of other libraries, which call OpenMP's own. */
#define HIDDEN __attribute__((visibility("hidden")))

static struct {
  void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
  void (*set_num_threads)(int);
  int (*get_max_threads)(void);
  int (*get_num_threads)(void);
  int (*get_thread_limit)(void);
  int (*get_thread_num)(void);
  int (*in_parallel)(void);
} gomp; /* all NULL without the library */

/* Returns the library, loaded with the limit. */
static void *load(void) {
  static const char *const name = "libgomp.so.1", *const count = "GOMP_SPINCOUNT";
  void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
  if (library) return library;
  bool limit = !getenv("OMP_WAIT_POLICY") && !getenv(count) && setenv(count, "4000", 1) == 0;
  library = dlopen(name, RTLD_NOW);
  if (limit) unsetenv(count);
  return library;
}

/* Runs when the program starts, or the module is loaded. */
__attribute__((constructor)) static void open_library(void) {
  void *library = load();
  bool complete = library &&
                  lt_library_find(library, "omp_set_num_threads", &gomp.set_num_threads) &&
                  lt_library_find(library, "omp_get_max_threads", &gomp.get_max_threads) &&
                  lt_library_find(library, "omp_get_num_threads", &gomp.get_num_threads) &&
                  lt_library_find(library, "omp_get_thread_limit", &gomp.get_thread_limit) &&
                  lt_library_find(library, "omp_get_thread_num", &gomp.get_thread_num) &&
                  lt_library_find(library, "omp_in_parallel", &gomp.in_parallel) &&
                  lt_library_find(library, "GOMP_parallel", &gomp.parallel);
  if (!complete) memset(&gomp, 0, sizeof gomp);
}

HIDDEN void GOMP_parallel(void (*function)(void *), void *data, unsigned threads, unsigned flags) {
  if (gomp.parallel)
    gomp.parallel(function, data, threads, flags);
  else
    function(data);
}

HIDDEN void omp_set_num_threads(int n) {
  if (gomp.set_num_threads) gomp.set_num_threads(n);
}

HIDDEN int omp_get_max_threads(void) { return gomp.get_max_threads ? gomp.get_max_threads() : 1; }
HIDDEN int omp_get_num_threads(void) { return gomp.get_num_threads ? gomp.get_num_threads() : 1; }
HIDDEN int omp_get_thread_limit(void) {
  return gomp.get_thread_limit ? gomp.get_thread_limit() : 1;
}
HIDDEN int omp_get_thread_num(void) { return gomp.get_thread_num ? gomp.get_thread_num() : 0; }
HIDDEN int omp_in_parallel(void) { return gomp.in_parallel ? gomp.in_parallel() : 0; }
