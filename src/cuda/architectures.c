/* architectures.c: which GPUs can run which code. Machine code of one architecture runs on GPUs of
 * the same major version with at least its minor version; PTX runs on every architecture from its
 * own on. With the suffix a (90a) code runs on that architecture only; with f (100f) PTX, too, is
 * limited to the major version. */
#include "architectures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef LT_CUDA_ARCHS
#define LT_CUDA_ARCHS ""
#endif

const char *lt_cuda_archs(void) {
#ifdef LT_CUDA_EMULATED
  const char *override = getenv("LUTRA_EMULATE_ARCHS");
  if (override) return override;
#endif
  return LT_CUDA_ARCHS;
}

/* Reads one architecture of a list and its suffix (0 for none). Returns the rest of the list, or
 * NULL at its end. */
static const char *next_arch(const char *archs, int *sm, char *suffix) {
  char *end;
  *sm = (int)strtol(archs, &end, 10);
  if (end == archs) return NULL;
  *suffix = *end && *end != ' ' ? *end++ : 0;
  return end + strspn(end, " ");
}

lt_CudaCode lt_cuda_code_for(const char *archs, int sm) {
  lt_CudaCode best = LT_CODE_NONE;
  int arch;
  char suffix;
  for (const char *p = archs; (p = next_arch(p, &arch, &suffix));) {
    bool family = arch / 10 == sm / 10 && arch <= sm, exact = arch == sm;
    if (suffix == 'a' ? exact : family) best = LT_CODE_NATIVE;
    if (!*p && best == LT_CODE_NONE && arch <= sm && !suffix) best = LT_CODE_PTX;
  }
  return best;
}

void lt_cuda_describe_code(const char *archs, char *text, size_t size) {
  int arch;
  char suffix;
  size_t used = 0;
  text[0] = 0;
  for (const char *p = archs; (p = next_arch(p, &arch, &suffix)) && used < size;) {
    char letter[2] = {suffix, 0};
    used += (size_t)snprintf(text + used, size - used, "sm_%d%s, ", arch, letter);
    if (!*p && used < size) snprintf(text + used, size - used, "PTX of compute_%d%s", arch, letter);
  }
}
