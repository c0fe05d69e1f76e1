/* partial_vectors.h: loads and stores of less than a vector of floats. */
#ifndef LT_CPU_PARTIAL_VECTORS_H
#define LT_CPU_PARTIAL_VECTORS_H

#include "lanes.h"

/* Loads and stores of the first n elements of a vector, 0 < n <= its length, that touch no other
 * memory. */
#if defined __AVX512F__
#define LT_FIRST(n) ((1u << (n)) - 1)
LT_LANES FV FV_PART(const float *x, int64_t n) {
  return (FV)_mm512_maskz_loadu_ps((__mmask16)LT_FIRST(n), x);
}
LT_LANES DV DV_PART(const double *x, int64_t n) {
  return (DV)_mm512_maskz_loadu_pd((__mmask8)LT_FIRST(n), x);
}
LT_LANES void FV_STORE(float *to, FV v, int64_t n) {
  _mm512_mask_storeu_ps(to, (__mmask16)LT_FIRST(n), (__m512)v);
}
LT_LANES void DV_STORE(double *to, DV v, int64_t n) {
  _mm512_mask_storeu_pd(to, (__mmask8)LT_FIRST(n), (__m512d)v);
}
#elif defined __AVX2__ && defined __FMA__
static const int32_t lt_first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#define LT_FIRST(n) _mm256_loadu_si256((const __m256i *)(const void *)(lt_first_lanes + 8 - (n)))
LT_LANES FV FV_PART(const float *x, int64_t n) { return (FV)_mm256_maskload_ps(x, LT_FIRST(n)); }
LT_LANES DV DV_PART(const double *x, int64_t n) {
  return (DV)_mm256_maskload_pd(x, LT_FIRST(2 * n));
}
LT_LANES void FV_STORE(float *to, FV v, int64_t n) {
  _mm256_maskstore_ps(to, LT_FIRST(n), (__m256)v);
}
LT_LANES void DV_STORE(double *to, DV v, int64_t n) {
  _mm256_maskstore_pd(to, LT_FIRST(2 * n), (__m256d)v);
}
#else
LT_LANES FV FV_PART(const float *x, int64_t n) {
  FV v = {0};
  memcpy(&v, x, (size_t)n * sizeof *x);
  return v;
}
LT_LANES DV DV_PART(const double *x, int64_t n) {
  DV v = {0};
  memcpy(&v, x, (size_t)n * sizeof *x);
  return v;
}
LT_LANES void FV_STORE(float *to, FV v, int64_t n) { memcpy(to, &v, (size_t)n * sizeof *to); }
LT_LANES void DV_STORE(double *to, DV v, int64_t n) { memcpy(to, &v, (size_t)n * sizeof *to); }
#endif

#endif
