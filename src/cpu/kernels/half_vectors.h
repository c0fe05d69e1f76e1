/* half_vectors.h: conversions between float16 and float32 by the CPU's own instructions, which
 * round as half.h. Without them the functions convert nothing. */
#ifndef LT_CPU_HALF_VECTORS_H
#define LT_CPU_HALF_VECTORS_H

#include <stdint.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

/* Converts the first elements of n, in whole vectors. Returns their number. */
static inline int64_t lt_halves_to_floats(int64_t n, float *out, const void *in) {
  int64_t i = 0;
#ifdef __F16C__
  const char *from = in;
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16, from += 32)
    _mm512_storeu_ps(out + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from)));
#endif
  for (; i + 8 <= n; i += 8, from += 16)
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from)));
#endif
  return (void)n, (void)out, (void)in, i;
}

/* The same in the other direction. */
static inline int64_t lt_floats_to_halves(int64_t n, void *out, const float *in) {
  int64_t i = 0;
#ifdef __F16C__
  char *to = out;
  enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };
#ifdef __AVX512F__
  for (; i + 16 <= n; i += 16, to += 32)
    _mm256_storeu_si256((__m256i *)to, _mm512_cvtps_ph(_mm512_loadu_ps(in + i), NEAREST));
#endif
  for (; i + 8 <= n; i += 8, to += 16)
    _mm_storeu_si128((__m128i *)to, _mm256_cvtps_ph(_mm256_loadu_ps(in + i), NEAREST));
#endif
  return (void)n, (void)out, (void)in, i;
}

#endif
