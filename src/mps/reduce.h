/* reduce.h: the arguments of the kernels of reductions: see lt_AccelReduce (accel/reduce.h). */
#ifndef LT_MPS_REDUCE_H
#define LT_MPS_REDUCE_H

#include "geometry.h"

typedef struct lt_MpsReduce {
  float a;
  int32_t width, rows, packs, threads;
  lt_MpsGeometry2 kept; /* of the input and the result */
  lt_MpsGeometry1 reduced;
  int64_t results, n, splits, piece, blocks;
} lt_MpsReduce;

#endif
