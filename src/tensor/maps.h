/* maps.h: types for the rows LT_MAP of ops.def: each has a number, a struct of pointers to its
 * tensors, and a struct of its numbers. Kernels of maps include it. */
#ifndef LT_MAPS_H
#define LT_MAPS_H

enum {
#define LT_MAP(name, ...) LT_MAP_##name,
#include "ops.def"
  LT_MAP_COUNT
};

#define READS(x)        const void *x;
#define WRITES(x)       void *x;
#define WRITES_OPTIONAL WRITES
#define GIVEN(x)        double x;
#define ONCE(x, ...)    double x;
#define LT_MAP(name, tensors, numbers, ...)                                                        \
  typedef struct lt_MapTensors_##name {                                                            \
    tensors                                                                                        \
  } lt_MapTensors_##name;                                                                          \
  typedef struct lt_MapNumbers_##name {                                                            \
    numbers                                                                                        \
  } lt_MapNumbers_##name;
#include "ops.def"
#undef READS
#undef WRITES
#undef WRITES_OPTIONAL
#undef GIVEN
#undef ONCE

#endif
