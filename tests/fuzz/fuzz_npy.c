/* fuzz_npy.c: a libFuzzer target: NumPy's files of any bytes are a tensor or one message, never a
 * crash or a leak.
 *
 * Built by hand, with clang; the library is a plain build's, the files under test are built with
 * the sanitizers:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -Isrc/tensor -Isrc/tensor/io \
 *     tests/fuzz/fuzz_npy.c src/tensor/io/?*.c build/lib/liblutra.a \
 *     -lz -lgomp -lmvec -ldl -lm -o /tmp/fuzz_npy
 *   mkdir -p /tmp/corpus_npy
 *   /tmp/fuzz_npy -max_len=4096 -max_total_time=60 /tmp/corpus_npy [FILES]
 */
#include "io.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0; /* fmemopen requires a byte */
  FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
  if (!file) return 0;
  int64_t live = lt_memory_live();
  lt_Tensor *t = lt_npy_read(file, "x");
  if (!t && strncmp(lt_error(), "load_npy: x: ", strlen("load_npy: x: ")) != 0) abort();
  lt_release(t);
  if (lt_memory_live() != live) abort();
  fclose(file);
  return 0;
}
