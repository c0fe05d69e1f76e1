/* integer_vectors.h: conversions of floats to int32 by the CPU's own instructions, which, unlike
 * C's, define the result for every number: INT32_MIN for NaN and numbers out of range. */
#ifndef LT_CPU_INTEGER_VECTORS_H
#define LT_CPU_INTEGER_VECTORS_H

#include <stdbool.h>
#include <stdint.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

/* Truncates n numbers, a multiple of 16. Returns false if a result is INT32_MIN, or without the
 * instructions. */
static inline bool lt_floats_to_ints(int64_t n, int32_t *out, const float *in) {
#ifdef __AVX512F__
  __mmask16 far = 0;
  for (int64_t i = 0; i < n; i += 16) {
    __m512i x = _mm512_cvttps_epi32(_mm512_loadu_ps(in + i));
    _mm512_storeu_si512(out + i, x);
    far |= _mm512_cmpeq_epi32_mask(x, _mm512_set1_epi32(INT32_MIN));
  }
  return far == 0;
#elif defined __AVX2__
  __m256i far = _mm256_setzero_si256();
  for (int64_t i = 0; i < n; i += 8) {
    __m256i x = _mm256_cvttps_epi32(_mm256_loadu_ps(in + i));
    _mm256_storeu_si256((__m256i *)(out + i), x);
    far = _mm256_or_si256(far, _mm256_cmpeq_epi32(x, _mm256_set1_epi32(INT32_MIN)));
  }
  return _mm256_testz_si256(far, far);
#else
  return (void)n, (void)out, (void)in, false;
#endif
}

/* The same of doubles. */
static inline bool lt_doubles_to_ints(int64_t n, int32_t *out, const double *in) {
#ifdef __AVX512F__
  __mmask8 far = 0;
  for (int64_t i = 0; i < n; i += 8) {
    __m256i x = _mm512_cvttpd_epi32(_mm512_loadu_pd(in + i));
    _mm256_storeu_si256((__m256i *)(out + i), x);
    far |= _mm256_cmpeq_epi32_mask(x, _mm256_set1_epi32(INT32_MIN));
  }
  return far == 0;
#elif defined __AVX2__
  __m128i far = _mm_setzero_si128();
  for (int64_t i = 0; i < n; i += 4) {
    __m128i x = _mm256_cvttpd_epi32(_mm256_loadu_pd(in + i));
    _mm_storeu_si128((__m128i *)(out + i), x);
    far = _mm_or_si128(far, _mm_cmpeq_epi32(x, _mm_set1_epi32(INT32_MIN)));
  }
  return _mm_testz_si128(far, far);
#else
  return (void)n, (void)out, (void)in, false;
#endif
}

#endif
