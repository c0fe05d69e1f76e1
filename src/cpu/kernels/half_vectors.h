/* half_vectors.h: conversions between float32 and float16, by the CPU's own instructions, or
 * bfloat16, in fewer instructions than the compiler finds; they round as half.h. Without the
 * instructions the functions convert nothing. */
#ifndef LT_CPU_HALF_VECTORS_H
#define LT_CPU_HALF_VECTORS_H

#include <stdint.h>
#if defined __F16C__ || defined __AVX2__
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

/* The same from bfloat16. */
static inline int64_t lt_bfloats_to_floats(int64_t n, float *out, const void *in) {
  int64_t i = 0;
#ifdef __AVX2__
  const char *from = in;
  for (; i + 16 <= n; i += 16, from += 32) {
#ifdef __AVX512F__
    __m512i x = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)from));
    _mm512_storeu_si512(out + i, _mm512_slli_epi32(x, 16));
#else
    __m256i x = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)from));
    __m256i y = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(from + 16)));
    _mm256_storeu_si256((__m256i *)(out + i), _mm256_slli_epi32(x, 16));
    _mm256_storeu_si256((__m256i *)(out + i + 8), _mm256_slli_epi32(y, 16));
#endif
  }
#endif
  return (void)n, (void)out, (void)in, i;
}

#if defined __AVX2__ && !defined __AVX512F__
/* Returns the upper halves of eight numbers, rounded to bfloat16; not for NaN. */
static inline __m256i lt_bfloat_bits(__m256i x) {
  __m256i odd = _mm256_srli_epi32(_mm256_slli_epi32(x, 15), 31);
  __m256i sum = _mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7fff)), odd);
  return _mm256_srli_epi32(sum, 16);
}
#endif

/* Converts to bfloat16, up to a NaN. */
static inline int64_t lt_floats_to_bfloats(int64_t n, void *out, const float *in) {
  int64_t i = 0;
#if defined __AVX2__ && !defined __AVX512F__
  char *to = out;
  for (; i + 16 <= n; i += 16, to += 32) {
    __m256 x = _mm256_loadu_ps(in + i), y = _mm256_loadu_ps(in + i + 8);
    if (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))) break;
    __m256i low = lt_bfloat_bits(_mm256_castps_si256(x));
    __m256i high = lt_bfloat_bits(_mm256_castps_si256(y));
    __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    _mm256_storeu_si256((__m256i *)to, both);
  }
#endif
  return (void)n, (void)out, (void)in, i;
}

#endif
