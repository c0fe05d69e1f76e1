/* fill.h: the arguments of the kernels that make tensors from a few numbers. Included by C and by
 * kernels. */
#ifndef LT_MPS_FILL_H
#define LT_MPS_FILL_H

#include "dtypes.h"

/* Writes element i = start + i * step of n: in int64 (wrapping), or in float64, times scale. With
 * `both_ends`, the second half is stop - (n - 1 - i) * step. Floats are the bits of doubles. */
typedef struct lt_MpsSequence {
  int64_t n, start_int, step_int;
  uint64_t start, step, stop, scale;
  int32_t both_ends;
} lt_MpsSequence;

/* Writes ones to n elements that are `step` apart. */
typedef struct lt_MpsOnes {
  int64_t n, step;
} lt_MpsOnes;

#endif
