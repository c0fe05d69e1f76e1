/* fuzz_png.c: a libFuzzer target: PNG images of any bytes, in every mode, are a tensor or one
 * message, never a crash or a leak. The sums of chunks are corrected for half of the inputs: libpng
 * reads little of an image with wrong ones. Built and run by tests/fuzz/run.
 */
#include "image.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIGNATURE = 8, MODES = 5 };

/* Writes the sums of the chunks: length, 4 letters, contents, sum. */
static void correct_sums(uint8_t *bytes, size_t n) {
  for (size_t at = SIGNATURE; n >= 12 && at <= n - 12;) {
    uint32_t length = (uint32_t)bytes[at] << 24 | (uint32_t)bytes[at + 1] << 16 |
                      (uint32_t)bytes[at + 2] << 8 | bytes[at + 3];
    if (length > n - 12 - at) return;
    uint32_t sum = (uint32_t)crc32(0, bytes + at + 4, (uInt)length + 4);
    at += 8 + (size_t)length;
    for (int i = 3; i >= 0; i--) bytes[at++] = (uint8_t)(sum >> 8 * i);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char start[] = "decode_png: ";
  if (size == 0) return 0;
  uint8_t *bytes = malloc(size); /* a byte more than the image */
  if (!bytes) return 0;
  memcpy(bytes, data + 1, size - 1);
  if (data[0] / MODES % 2) correct_sums(bytes, size - 1);
  int64_t live = lt_memory_live();
  lt_Tensor *t = lt_png_decode(bytes, size - 1, (lt_ImageMode)(data[0] % MODES));
  if (!t && strncmp(lt_error(), start, strlen(start)) != 0) abort();
  lt_release(t);
  if (lt_memory_live() != live) abort();
  free(bytes);
  return 0;
}
