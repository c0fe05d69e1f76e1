/* threads.c: how many threads kernels use, and the flag that stops a long one. */
#include "core.h"

#include <omp.h>

atomic_bool lt_interrupt_flag;

static atomic_int wanted; /* 0: OpenMP's own choice */

/* What OMP_THREAD_LIMIT allows, and no more than any machine has a use for. */
static int most_threads(void) {
  int limit = omp_get_thread_limit();
  return limit < 1 || limit > 1024 ? 1024 : limit;
}

int lt_num_threads(void) {
  int n = atomic_load_explicit(&wanted, memory_order_relaxed);
  if (n == 0) {
    n = omp_get_max_threads();
    if (n > most_threads()) n = most_threads();
    atomic_store(&wanted, n);
  }
  return n;
}

bool lt_set_num_threads(int64_t n) {
  if (n < 1 || n > most_threads()) {
    lt_error_set("set_num_threads: expected an integer from 1 to %d for argument 'n', got %lld",
                 most_threads(), (long long)n);
    return false;
  }
  atomic_store(&wanted, (int)n);
  omp_set_num_threads((int)n);
  return true;
}
