/* device.c of meta: shapes, dtypes and strides, but no memory: dispatch stops after infer. */
#include "kernel.h"

#include <stdio.h>

static int count(char *why, size_t why_size) {
  (void)why;
  (void)why_size;
  return 1;
}

static bool properties(int index, lt_DeviceProperties *out) {
  (void)index;
  *out = (lt_DeviceProperties){.name = "shapes without memory"};
  return true;
}

static const lt_Backend meta = {
    .abi = LT_BACKEND_ABI,
    .name = "meta",
    .count = count,
    .properties = properties,
};

const lt_Backend *lt_backend_meta(void) { return &meta; }
