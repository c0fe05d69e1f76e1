/* index_math.cuh: arithmetic on the indices of elements. */
#ifndef LT_CUDA_INDEX_MATH_CUH
#define LT_CUDA_INDEX_MATH_CUH

#include "kernels.h"

/* Divides `left` by n in place and returns the remainder. 32-bit division is several times
 * faster. */
static __device__ __forceinline__ int64_t divmod(int64_t &left, int64_t n) {
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
