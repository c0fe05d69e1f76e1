/* environment.c: checks environment variables before any work, so that a value that cannot be used
 * is reported instead of ignored. */
#include "core.h"

#include <omp.h>

/* Checks a variable that may be 0, 1, empty or not set. */
static bool check_switch(const char *variable) {
  const char *value = getenv(variable);
  return !value || !*value || strcmp(value, "0") == 0 || strcmp(value, "1") == 0 ||
         lt_error_set("%s: expected 0 or 1, got \"%.40s\"", variable, value);
}

/* Checks where the device mps keeps tensors: in memory that it shares with the host, where it can,
 * or in its own (for tests). */
static bool check_storage(void) {
  const char *value = getenv("LUTRA_MPS_STORAGE");
  return !value || !*value || strcmp(value, "shared") == 0 || strcmp(value, "private") == 0 ||
         lt_error_set("LUTRA_MPS_STORAGE: expected shared or private, got \"%.40s\"", value);
}

/* Checks OMP_NUM_THREADS. OpenMP itself reports a value that is not a number. */
static bool check_threads(void) {
  int n = omp_get_max_threads();
  return n <= LT_MAX_THREADS ||
         lt_error_set("OMP_NUM_THREADS: expected an integer from 1 to %d, got %d", LT_MAX_THREADS,
                      n);
}

/* Opens the backends that are part of the library: each checks its own variables. */
static bool check_backends(void) {
  return lt_device_backend(LT_DEVICE_cpu) && lt_device_backend(LT_DEVICE_meta);
}

bool lt_environment_check(void) {
  return check_threads() && check_switch("LUTRA_MEMORY_DEBUG") && check_switch("LUTRA_FALLBACK") &&
         check_switch("LUTRA_MPS_BLOCKING") && check_storage() && check_backends() &&
         lt_device_check_environment();
}
