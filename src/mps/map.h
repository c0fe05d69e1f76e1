/* map.h: the arguments of the kernels of maps over lists of tensors. */
#ifndef LT_MPS_MAP_H
#define LT_MPS_MAP_H

#include "dtypes.h"

#define LT_MPS_MAP_TENSORS 8  /* equal to LT_MAP_TENSORS of kernel.h */
#define LT_MPS_MAP_NUMBERS 24 /* equal to LT_MAP_NUMBERS */
#define LT_MPS_MAP_THREADS 256

/* The tensors with the same index in each list: contiguous, of n > 0 elements. */
typedef struct lt_MpsMap {
  int64_t n;
  float numbers[LT_MPS_MAP_NUMBERS];
} lt_MpsMap;

#endif
