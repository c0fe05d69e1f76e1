/* gelu.h: GELU of float32 on AVX2 and AVX-512, which look up coefficients in registers:
 * x Phi(x) = max(x, 0) - |x| Phi(-|x|), with a polynomial of Phi for each multiple of 1/4 (see
 * gelu_table.h) while |x| is less than LT_GELU_FAR. Other instruction sets use the formula of
 * activations.h for all x. For loops.h, whose groups and blocks it uses. */
#ifndef LT_CPU_GELU_H
#define LT_CPU_GELU_H

#include "activations.h"

#if defined __AVX2__ && defined __FMA__
#include "gelu_table.h"
#include "lanes.h"

#define LT_GELU_LOOKS_UP 1
#define LT_GELU_FAR      3.875f
#define LT_GELU_FAR_BITS 0x40780000

/* Returns the numbers of a row, by the lowest 4 bits of each index. */
#ifdef __AVX512F__
LT_LANES FV lt_look_up(const float *row, FM index) {
  return (FV)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(row));
}
LT_LANES bool lt_all_negative(FM v) { return _mm512_movepi32_mask((__m512i)v) == 0xffff; }
#else
LT_LANES FV lt_look_up(const float *row, FM index) {
  __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(row), (__m256i)index);
  __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(row + 8), (__m256i)index);
  return (FV)_mm256_blendv_ps(low, high, (__m256)(index << 28));
}
LT_LANES bool lt_all_negative(FM v) { return _mm256_movemask_ps((__m256)v) == 0xff; }
#endif

LT_LANES FV lt_gelu_near(FV x) {
  FV size = (FV)((FM)x & INT32_MAX);
  FM column = (FM)(size + 0x1.8p21f); /* whose last place is 1/4 */
  FV t = size - lt_look_up(lt_gelu_table[0], column), q = lt_look_up(lt_gelu_table[7], column);
#pragma GCC unroll 5
  for (int j = 6; j >= 2; j--) q = FV_MADD(q, t, lt_look_up(lt_gelu_table[j], column));
  FV start = lt_look_up(lt_gelu_table[1], column), phi = FV_MADD(q, t, start);
  FV low = FV_MADD(q, t, start - phi);
  return FV_MADD(-size, phi, FV_MADD(-size, low, FV_PEAK(x, FV_ALL(0)))); /* keeps the sign of 0 */
}

/* Returns GELU for |x| >= LT_GELU_FAR and NaN by a Phi(-a) = e^(g - a^2 / 2) / sqrt(2 pi), where g
 * is a polynomial of 1 / a^2. With -a = c + d, c of 9 bits, the square of c is exact: `sum`. The
 * error of log(2) as a float times n is proportional to the exponent: 2.748e-9. */
LT_MATHS float lt_gelu_farf(float x) {
  int32_t bits = (int32_t)lt_bits(lt_at_most(fabsf(x), 15));
  bits = bits > LT_GELU_FAR_BITS ? bits : LT_GELU_FAR_BITS; /* nearer ones would be slow */
  float minus = lt_float((uint32_t)bits | LT_SIGN_BIT);
  float c = lt_float(lt_bits(minus) & 0xffff8000u), d = minus - c;
  float slope = -0.5f * c, sum = MADD(c, slope, -0.225830078125f);
  float v = 1 / (minus * minus), p = 1007.36737f; /* 2^-28.2, with 925/4096 and log(2) */
  p = MADD(p, v, -366.895215f);
  p = MADD(p, v, 71.3841027f);
  p = MADD(p, v, -11.9423359f);
  p = MADD(p, v, 2.4948885f);
  p = MADD(p, v, -0.999967164f);
  p = MADD(p, v, 3.86490677e-05f);
  float g = MADD(d, MADD(minus, -0.5f, slope), MADD(sum, 2.748e-9f, p));
  float shifted = MADD(sum + g, 1.44269504f, LT_SHIFTER - 1), n = shifted - (LT_SHIFTER - 1);
  float t = lt_exp_tail(MADD(n, -0.693147182f, sum) + g);
  float tail = lt_scale(1 + t, (lt_bits(shifted) << 23) - LT_ONE_BITS, true);
  float y = x > 0 ? x - tail : -tail;
  return x < -15 ? x * 0.0f : x == x ? y : x;
}

/* Returns a number that is negative where |x| is near. As integers, infinity and NaN are larger. */
LT_LANES FM lt_gelu_nearness(FV x) { return ((FM)x & INT32_MAX) - LT_GELU_FAR_BITS; }

/* Computes groups of LANES numbers, and returns whether all of them are near. */
static __attribute__((noinline)) bool lt_gelu_near_groups(int64_t groups, float *out,
                                                          const float *in) {
  FM near = ~(FM){0};
  for (; groups > 0; groups--) {
    for (int j = 0; j < LANES; j += FV_N) {
      FV x = FV_LOAD(in + j), y = lt_gelu_near(x);
      near &= lt_gelu_nearness(x);
      memcpy(out + j, &y, sizeof y);
    }
    fetch_ahead(out, sizeof *out);
    fetch_ahead(in, sizeof *in);
    out += LANES;
    in += LANES;
  }
  return lt_all_negative(near);
}

/* Replaces the results of those that are far. */
static __attribute__((noinline)) void lt_gelu_replace_far(int64_t groups, float *out,
                                                          const float *in) {
  for (; groups > 0; groups--, out += LANES, in += LANES) {
    FM near = ~(FM){0};
    for (int j = 0; j < LANES; j += FV_N) near &= lt_gelu_nearness(FV_LOAD(in + j));
    if (lt_all_negative(near)) continue;
#pragma omp simd
    for (int i = 0; i < LANES; i++) {
      float y = lt_gelu_farf(in[i]);
      out[i] = fabsf(in[i]) < LT_GELU_FAR ? out[i] : y;
    }
  }
}

/* Computes out[i] = GELU(x[i]) for i < n. out may be x. */
static void lt_gelu_loop(int64_t n, float *out, const float *x) {
  float copy[BLOCK], last[LANES];
  while (n >= LANES) {
    int64_t groups = (n < BLOCK ? n : BLOCK) / LANES, done = groups * LANES;
    const float *in = x;
    if (out == x) in = memcpy(copy, x, (size_t)done * sizeof *x);
    if (!lt_gelu_near_groups(groups, out, in)) lt_gelu_replace_far(groups, out, in);
    n -= done, out += done, x += done;
  }
  if (n == 0) return;
  fill_up(n, copy, x);
  if (!lt_gelu_near_groups(1, last, copy)) lt_gelu_replace_far(1, last, copy);
  memcpy(out, last, (size_t)n * sizeof *out);
}
#else
#define LT_GELU_LOOKS_UP 0
static inline void lt_gelu_loop(int64_t n, float *out, const float *x) {
  (void)n, (void)out, (void)x;
}
#endif

#endif
