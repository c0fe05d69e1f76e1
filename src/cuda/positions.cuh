/* positions.cuh: positions in shapes. */
#ifndef LT_CUDA_POSITIONS_CUH
#define LT_CUDA_POSITIONS_CUH

#include "kernels.h"

/* left becomes left / n; the remainder is returned. 32-bit division is several times quicker. */
static __device__ __forceinline__ int64_t rest_of(int64_t &left, int64_t n) {
  if (((uint64_t)left | (uint64_t)n) >> 32) {
    int64_t at = left % n;
    left /= n;
    return at;
  }
  unsigned l = (unsigned)left, m = (unsigned)n, quotient = l / m;
  left = quotient;
  return l - quotient * m;
}

#endif
