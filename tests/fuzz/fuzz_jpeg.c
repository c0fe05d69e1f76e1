/* fuzz_jpeg.c: a libFuzzer target: JPEG images of any bytes, in every mode, are a tensor or one
 * message, never a crash or a leak. Built and run by tests/fuzz/run.
 */
#include "image.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  int64_t live = lt_memory_live();
  lt_Tensor *t = lt_jpeg_decode(data + 1, size - 1, (lt_ImageMode)(data[0] % 5));
  if (!t && strncmp(lt_error(), "decode_jpeg: ", strlen("decode_jpeg: ")) != 0) abort();
  lt_release(t);
  if (lt_memory_live() != live) abort();
  return 0;
}
