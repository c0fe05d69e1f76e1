/* elementwise_begin.cuh: what files of elementwise kernels include before they say what T is, so
 * that no other header meets it. */
#include "elementwise.h"
#include "device.cuh"
#include "launch.cuh"
#include "opids.h"

/* left becomes left / n; the remainder is returned. 32-bit division is several times quicker. */
LT_DEVICE_INLINE int64_t rest_of(int64_t &left, int64_t n) {
  if (((uint64_t)left | (uint64_t)n) >> 32) {
    int64_t at = left % n;
    left /= n;
    return at;
  }
  unsigned l = (unsigned)left, m = (unsigned)n, quotient = l / m;
  left = quotient;
  return l - quotient * m;
}
