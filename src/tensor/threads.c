/* threads.c: how many threads kernels use, and the flag that stops a long one. */
#include "core.h"

#include <omp.h>

atomic_bool lt_interrupt_flag;

static atomic_int wanted; /* 0: OpenMP's own choice */

int lt_num_threads(void) {
  int n = atomic_load_explicit(&wanted, memory_order_relaxed);
  if (n == 0) {
    n = omp_get_max_threads();
    atomic_store(&wanted, n);
  }
  return n;
}

bool lt_set_num_threads(int n) {
  if (n < 1 || n > 1024) {
    lt_error_set("set_num_threads: wants 1 to 1024, got %d", n);
    return false;
  }
  atomic_store(&wanted, n);
  omp_set_num_threads(n);
  return true;
}
