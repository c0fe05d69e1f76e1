/* half_vectors.h: conversions between float32 and float16, by the CPU's own instructions, or
 * bfloat16, in fewer instructions than the compiler finds; they round as half.h. Without the
 * instructions the functions convert nothing. */
#ifndef LT_CPU_HALF_VECTORS_H
#define LT_CPU_HALF_VECTORS_H

#include "half.h"

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

/* Round numbers to bfloat16, which are the upper halves of the results. */
#ifdef __AVX512BW__
static inline __m512i lt_bfloats(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x), one = _mm512_set1_epi32(1);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
  const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(sum, nan, bits, _mm512_set1_epi32(0x400000));
}
#elif defined __AVX2__
/* Not for NaN. */
static inline __m256i lt_bfloats_of_numbers(__m256i x) {
  __m256i odd = _mm256_srli_epi32(_mm256_slli_epi32(x, 15), 31);
  return _mm256_add_epi32(_mm256_add_epi32(x, _mm256_set1_epi32(0x7fff)), odd);
}
static inline __m256i lt_bfloats(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x), sum = lt_bfloats_of_numbers(bits);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  return _mm256_castps_si256(
      _mm256_blendv_ps(_mm256_castsi256_ps(sum), _mm256_castsi256_ps(quiet), nan));
}
#endif

/* Converts to bfloat16; with AVX2 up to a NaN. */
static inline int64_t lt_floats_to_bfloats(int64_t n, void *out, const float *in) {
  int64_t i = 0;
#ifdef __AVX512BW__
  const __m512i odd_words = _mm512_setr_epi32(
      0x30001, 0x70005, 0xb0009, 0xf000d, 0x130011, 0x170015, 0x1b0019, 0x1f001d, 0x230021,
      0x270025, 0x2b0029, 0x2f002d, 0x330031, 0x370035, 0x3b0039, 0x3f003d);
  char *to = out;
  for (; i + 32 <= n; i += 32, to += 64) {
    const __m512i low = lt_bfloats(_mm512_loadu_ps(in + i));
    const __m512i high = lt_bfloats(_mm512_loadu_ps(in + i + 16));
    _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, odd_words, high));
  }
#elif defined __AVX2__
  char *to = out;
  for (; i + 16 <= n; i += 16, to += 32) {
    __m256 x = _mm256_loadu_ps(in + i), y = _mm256_loadu_ps(in + i + 8);
    if (_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q))) break;
    __m256i low = _mm256_srli_epi32(lt_bfloats_of_numbers(_mm256_castps_si256(x)), 16);
    __m256i high = _mm256_srli_epi32(lt_bfloats_of_numbers(_mm256_castps_si256(y)), 16);
    __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
    _mm256_storeu_si256((__m256i *)to, both);
  }
#endif
  return (void)n, (void)out, (void)in, i;
}

/* A group of bfloat16, as floats: of each vector the elements with even indices, then the odd ones.
 * So the conversions move no element to another place. */
enum { LT_SPLIT = 32 };

static inline void lt_split_bfloats(float *out, const void *in) {
#ifdef __AVX512BW__
  const __m512i x = _mm512_loadu_si512(in);
  _mm512_storeu_si512(out, _mm512_slli_epi32(x, 16));
  _mm512_storeu_si512(out + 16, _mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000)));
#elif defined __AVX2__
  for (int i = 0; i < LT_SPLIT; i += 16) {
    const __m256i x = _mm256_loadu_si256((const __m256i *)((const char *)in + 2 * i));
    const __m256i odd = _mm256_and_si256(x, _mm256_set1_epi32((int)0xffff0000));
    _mm256_storeu_si256((__m256i *)(out + i), _mm256_slli_epi32(x, 16));
    _mm256_storeu_si256((__m256i *)(out + i + 8), odd);
  }
#else
  for (int i = 0; i < LT_SPLIT; i++) out[i] = lt_bfloat16_to_float(((const lt_bfloat16 *)in)[i]);
#endif
}

static inline void lt_join_bfloats(void *out, const float *in) {
#ifdef __AVX512BW__
  const __m512i even = _mm512_srli_epi32(lt_bfloats(_mm512_loadu_ps(in)), 16);
  const __m512i odd = lt_bfloats(_mm512_loadu_ps(in + 16));
  _mm512_storeu_si512(out, _mm512_mask_blend_epi16(0xaaaaaaaa, even, odd));
#elif defined __AVX2__
  for (int i = 0; i < LT_SPLIT; i += 16) {
    const __m256i even = _mm256_srli_epi32(lt_bfloats(_mm256_loadu_ps(in + i)), 16);
    const __m256i odd = lt_bfloats(_mm256_loadu_ps(in + i + 8));
    const __m256i both = _mm256_blend_epi16(even, odd, 0xaa);
    _mm256_storeu_si256((__m256i *)((char *)out + 2 * i), both);
  }
#else
  for (int i = 0; i < LT_SPLIT; i++) ((lt_bfloat16 *)out)[i] = lt_bfloat16_from_float(in[i]);
#endif
}

#endif
