/* half_lanes.h: vectors and lanes of float (lanes.h) from elements of float16 and bfloat16. */
#ifndef LT_CPU_HALF_LANES_H
#define LT_CPU_HALF_LANES_H

#include "cpu/kernels/lanes.h"
#include "half.h"

LT_LANES FV FV_OF_BFLOAT16(const lt_bfloat16 *x) {
#if defined __AVX512F__
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)x));
  return (FV)_mm512_slli_epi32(wide, 16);
#elif defined __AVX2__
  return (FV)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)x)), 16);
#else
  FV v;
  for (int k = 0; k < FV_N; k++) v[k] = lt_bfloat16_to_float(x[k]);
  return v;
#endif
}

LT_LANES F16 F16_OF_BFLOAT16(const lt_bfloat16 *x) {
  F16 v;
  EACH_PART(LT_SET_PART, v, FV_OF_BFLOAT16, x, FV_N)
  return v;
}

LT_LANES FV FV_OF_HALF(const lt_half *x) {
#if defined __AVX512F__
  return (FV)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)x));
#elif defined __F16C__
  return (FV)_mm256_cvtph_ps(_mm_loadu_si128((const void *)x));
#else
  FV v;
  for (int k = 0; k < FV_N; k++) v[k] = lt_half_to_float(x[k]);
  return v;
#endif
}

LT_LANES F16 F16_OF_HALF(const lt_half *x) {
  F16 v;
  EACH_PART(LT_SET_PART, v, FV_OF_HALF, x, FV_N)
  return v;
}

#endif
