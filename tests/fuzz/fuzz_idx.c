/* fuzz_idx.c: a libFuzzer target: IDX files, plain and packed, of any bytes are a tensor or one
 * message, never a crash or a leak.
 *
 * Built by hand, with clang; the library is a plain build's, the files under test are built with
 * the sanitizers:
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Isrc -Isrc/tensor -Isrc/tensor/io \
 *     tests/fuzz/fuzz_idx.c src/tensor/io/?*.c build/lib/liblutra.a \
 *     -lz -lgomp -lmvec -ldl -lm -o /tmp/fuzz_idx
 *   mkdir -p /tmp/corpus_idx
 *   /tmp/fuzz_idx -max_len=4096 -max_total_time=60 /tmp/corpus_idx [FILES]
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
  lt_Tensor *t = lt_idx_read(file, "x");
  if (!t && strncmp(lt_error(), "load_idx: x: ", strlen("load_idx: x: ")) != 0) abort();
  lt_release(t);
  if (lt_memory_live() != live) abort();
  fclose(file);
  return 0;
}
