/* fuzz_safetensors.c: a libFuzzer target: safetensors files of any bytes are an archive or one
 * message, never a crash or a leak. Every name and string that comes out is UTF-8, and no name
 * comes twice. Built and run by tests/fuzz/run.
 */
#include "io.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const lt_Archive *a) {
  for (int i = 0; i < a->count; i++) {
    if (!lt_utf8_valid(a->item[i].name, strlen(a->item[i].name))) abort();
    for (int k = 0; k < i; k++)
      if (strcmp(a->item[i].name, a->item[k].name) == 0) abort();
  }
  for (int i = 0; i < a->notes; i++)
    if (!lt_utf8_valid(a->note[i].key, strlen(a->note[i].key)) ||
        !lt_utf8_valid(a->note[i].value, strlen(a->note[i].value)))
      abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char start[] = "load_safetensors: cannot read \"x\": ";
  if (size == 0) return 0; /* fmemopen requires a byte */
  FILE *file = fmemopen((void *)(uintptr_t)data, size, "rb");
  if (!file) return 0;
  int64_t live = lt_memory_live();
  lt_Archive *a = lt_safetensors_read(file, "x");
  if (a) check(a);
  if (!a && (strncmp(lt_error(), start, strlen(start)) != 0 || strchr(lt_error(), '\n'))) abort();
  lt_archive_free(a);
  if (lt_memory_live() != live) abort();
  fclose(file);
  return 0;
}
