/* fuzz_npy.c: a libFuzzer target: NumPy's files of any bytes are a tensor or one message, never a
 * crash or a leak. Built and run by tests/fuzz/run.
 */
#include "io.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char start[] = "load_npy: cannot read \"x\": ";
  if (size == 0) return 0; /* fmemopen requires a byte */
  FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
  if (!file) return 0;
  int64_t live = lt_memory_live();
  lt_Tensor *t = lt_npy_read(file, "x");
  if (!t && strncmp(lt_error(), start, strlen(start)) != 0) abort();
  lt_release(t);
  if (lt_memory_live() != live) abort();
  fclose(file);
  return 0;
}
