/* maths_float32.h: the math functions of the float32 loops, written so that any compiler vectorizes
 * loops over them. Every result is within 1.5 units in the last place of the exact value
 * (tests/c/test_ulp.c checks each op), for denormal numbers too.
 *
 * A function is straight-line code: both sides of each choice are computed. MADD is fused if the
 * CPU has such an instruction; otherwise only the rounding differs.
 *
 * Some functions have a `near` argument, a constant at compile time: the caller guarantees that x
 * is in the range of lt_near_range, and code for other arguments is left out. Both forms give the
 * same bits in that range.
 *
 * The polynomials are minimax approximations; the comments give the relative error that they add to
 * the result. */
#ifndef LT_CPU_MATHS_FLOAT32_H
#define LT_CPU_MATHS_FLOAT32_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LT_MATHS static inline __attribute__((always_inline, unused))

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define LT_HAS_FMA     1
#define MADD(a, b, c)  __builtin_fmaf(a, b, c)
#define MADDD(a, b, c) __builtin_fma(a, b, c)
/* Rounded only once. */
#define FUSED(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MADD(a, b, c)  ((a) * (b) + (c))
#define MADDD(a, b, c) ((a) * (b) + (c))
#define FUSED(a, b, c) ((float)((double)(a) * (double)(b) + (double)(c)))
#endif

LT_MATHS uint32_t lt_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
LT_MATHS float lt_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
LT_MATHS uint64_t lt_bits64(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
LT_MATHS double lt_double(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#define LT_ONE_BITS        0x3f800000u
#define LT_TWO_THIRDS_BITS 0x3f2aaaabu
#define LT_HALF_PI_BITS    0x3fc90fdbu
#define LT_SIGN_BIT        0x80000000u
#define LT_EXPONENTS       0xff800000u /* bits of the sign and the exponent */

/* Returns x >= 0 with the sign of `from`. */
LT_MATHS float lt_signed(float x, float from) {
  return lt_float(lt_bits(x) | (lt_bits(from) & LT_SIGN_BIT));
}

/* Return the lesser one. lt_at_most compares numbers x >= 0 with a limit as integers, which is one
 * instruction; the result for NaN is the limit. */
LT_MATHS int32_t lt_least(int32_t a, int32_t b) { return a < b ? a : b; }
LT_MATHS float lt_at_most(float x, float limit) {
  return lt_float((uint32_t)lt_least((int32_t)lt_bits(x), (int32_t)lt_bits(limit)));
}

/* Returns x if the condition holds, else 0. */
LT_MATHS float lt_if(bool condition, float x) {
  return lt_float(lt_bits(x) & (condition ? ~0u : 0));
}

/* ---- exponentials ---------------------------------------------------------------------------- */

/* e^x = 2^n (1 + t). */
typedef struct lt_Exp {
  float t;     /* e^r - 1, |r| <= log(2) / 2 */
  float power; /* 2^n */
} lt_Exp;

/* Returns e^(r + low) - 1; |low| is less than the last digit of r. */
LT_MATHS float lt_exp_tail_sum(float r, float low) {
  float q = 0.00138187257f; /* (e^r - 1 - r) / r^2: 2^-28.2 */
  q = MADD(q, r, 0.00836871937f);
  q = MADD(q, r, 0.0416682921f);
  q = MADD(q, r, 0.166665211f);
  q = MADD(q, r, 0.49999994f);
  return r + MADD(q, r * r, low);
}

/* Returns e^r - 1. */
LT_MATHS float lt_exp_tail(float r) {
  float q = 0.00138187257f;
  q = MADD(q, r, 0.00836871937f);
  q = MADD(q, r, 0.0416682921f);
  q = MADD(q, r, 0.166665211f);
  q = MADD(q, r, 0.49999994f);
  return MADD(q, r * r, r);
}

/* Added to n so that its last bits, shifted to the exponent, are the number 2^n. */
#define LT_SHIFTER (0x1.8p23f + 127)

/* Splits e^x, |x| <= 87, into 2^n (1 + t), with `less` subtracted from n in `power`. For larger |x|
 * up to 130 `power` is wrong, but its bits are those of 1 plus n << 23. */
LT_MATHS lt_Exp lt_exp_split_less(float x, float less) {
  float shifted = MADD(x, 1.44269504f, LT_SHIFTER - less), n = shifted - (LT_SHIFTER - less);
  float r = MADD(n, -0x1.62e4p-1f, x); /* n log(2) in two parts; the first product is exact */
  lt_Exp e = {lt_exp_tail(MADD(n, -1.42860677e-6f, r)), lt_float(lt_bits(shifted) << 23)};
  return e;
}
LT_MATHS lt_Exp lt_exp_split(float x) { return lt_exp_split_less(x, 0); }

/* Returns y 2^n, rounded only once if that is a denormal number: y in [0.5, 2], -150 <= n < 128,
 * and n << 23 is `power`. `small`: n may be less than -125. */
LT_MATHS float lt_scale(float y, uint32_t power, bool small) {
  y = lt_float(lt_bits(y) + power + (small ? 64u << 23 : 0));
  return y * (small ? 0x1p-64f : 1.0f);
}

LT_MATHS float lt_expf(float x, bool near) {
  lt_Exp e = lt_exp_split(x);
  if (near) return MADD(e.power, e.t, e.power);
  float y = lt_scale(1 + e.t, lt_bits(e.power) - LT_ONE_BITS, x < -87.0f);
  y = x <= 88.72283f ? y : x + INFINITY; /* keeps NaN */
  return x < -104.0f ? 0.0f : y;
}

LT_MATHS float lt_exp2f(float x, bool near) {
  float shifted = x + 0x1.8p23f, r = x - (shifted - 0x1.8p23f);
  float p = 0.000153271962f; /* (2^r - 1) / r: 2^-28.3 */
  p = MADD(p, r, 0.00133910251f);
  p = MADD(p, r, 0.0096185049f);
  p = MADD(p, r, 0.0555035956f);
  p = MADD(p, r, 0.240226477f);
  p = MADD(p, r, 0.693147182f);
  float y = MADD(p, r, 1.0f);
  uint32_t power = lt_bits(shifted) << 23;
  if (near) return lt_float(lt_bits(y) + power);
  y = lt_scale(y, power, x < -125.0f);
  y = x < 128.0f ? y : x + INFINITY;
  return x < -151.0f ? 0.0f : y;
}

/* Computes 2^n (1 + t) - 1 as (2^n - 1) + 2^n t; the rounding error of the first sum is added to
 * the second term. */
LT_MATHS float lt_expm1f(float x, bool near) {
  float shifted = MADD(x, 1.44269504f, LT_SHIFTER), n = shifted - LT_SHIFTER;
  float r = MADD(n, -0x1.62e4p-1f, x);
  r = MADD(n, -1.42860677e-6f, r);
  float q = 0.00139406777f; /* (e^r - 1 - r) / r^2, relative to r: 2^-26.1 */
  q = MADD(q, r, 0.00836659409f);
  q = MADD(q, r, 0.0416664034f);
  q = MADD(q, r, 0.166665435f);
  q = MADD(q, r, 0.5f);
  float power = lt_float(lt_bits(shifted) << 23);
  float lack = 1 - power, part = r * power, sum = part - lack, over = (sum + lack) - part;
  float y = sum - MADD(-(part * q), r, over); /* keeps -0 */
  if (near) return y;
  y = x < -18.0f ? -1.0f : y;
  return x <= 87.0f ? y : lt_expf(x, false);
}

/* ---- logarithms ------------------------------------------------------------------------------ */

/* x = 2^n (1 + f), where 1 + f is at least the number whose bits are `first`, and less than twice
 * that: with 2/3, |f| <= 1/3. */
typedef struct lt_Log {
  float n; /* times 2^23, as it is found in the bits */
  float f;
} lt_Log;

LT_MATHS lt_Log lt_log_split(float x, uint32_t first, bool near) {
  float extra = 0;
  if (!near) {
    bool small = x < 0x1p-126f;
    x *= small ? 0x1p23f : 1.0f;
    extra = small ? -23 * 0x1p23f : 0.0f;
  }
  uint32_t power = (lt_bits(x) - first) & LT_EXPONENTS;
  lt_Log l = {(float)(int32_t)power, lt_float(lt_bits(x) - power) - 1};
  if (!near) l.n += extra;
  return l;
}

/* Returns the logarithm of x, which is y unless x <= 0, infinity or NaN. */
LT_MATHS float lt_log_special(float x, float y) {
  y = x < INFINITY ? y : x;
  y = x > 0 || x != x ? y : NAN;
  return x == 0 ? -INFINITY : y;
}

/* Returns log(1 + f) - f, |f| <= 1/3: 2^-27.7 */
LT_MATHS float lt_log1p_tail(float f) {
  float p = -0.128776997f;
  p = MADD(p, f, 0.139859602f);
  p = MADD(p, f, -0.121877491f);
  p = MADD(p, f, 0.140054762f);
  p = MADD(p, f, -0.166802078f);
  p = MADD(p, f, 0.200104386f);
  p = MADD(p, f, -0.249998048f);
  p = MADD(p, f, 0.333332151f);
  p = MADD(p, f, -0.5f);
  return f * f * p;
}

LT_MATHS float lt_logf(float x, bool near) {
  lt_Log l = lt_log_split(x, LT_TWO_THIRDS_BITS, near);
  float low = MADD(l.n, -2.12194440e-4f * 0x1p-23f, lt_log1p_tail(l.f));
  float y = MADD(l.n, 0.693359375f * 0x1p-23f, l.f + low);
  return near ? y : lt_log_special(x, y);
}

LT_MATHS float lt_log2f(float x, bool near) {
  lt_Log l = lt_log_split(x, LT_TWO_THIRDS_BITS, near);
  float f = l.f, p = -0.185446545f; /* (log2(1 + f) - f / log(2)) / f^2: 2^-27.7 */
  p = MADD(p, f, 0.201595172f);
  p = MADD(p, f, -0.17593874f);
  p = MADD(p, f, 0.202098325f);
  p = MADD(p, f, -0.24063246f);
  p = MADD(p, f, 0.288686514f);
  p = MADD(p, f, -0.36067152f);
  p = MADD(p, f, 0.480896711f);
  p = MADD(p, f, -0.721347511f);
  /* 1 / log(2) = 1 + 0.442695041; n + f is exact where it is small. */
  float y = MADD(f, MADD(f, p, 0.442695041f), MADD(l.n, 0x1p-23f, f));
  return near ? y : lt_log_special(x, y);
}

LT_MATHS float lt_log10f(float x, bool near) {
  /* From 0.68 on, where n = 1, the result is more than 1/8. */
  lt_Log l = lt_log_split(x, 0x3f2e147bu, near);
  float f = l.f, p = 0.0520632791f; /* (log10(1 + f) - f / log(10)) / f^2: 2^-25.1 */
  p = MADD(p, f, -0.0662931157f);
  p = MADD(p, f, 0.0624800454f);
  p = MADD(p, f, -0.0713741261f);
  p = MADD(p, f, 0.0868100222f);
  p = MADD(p, f, -0.108604139f);
  p = MADD(p, f, 0.144765819f);
  p = MADD(p, f, -0.217147003f);
  /* 1 / log(10) = 0.375 + 0.0592944819; log10(2) = 0.301025391 + 0.00000460503891 */
  float low = MADD(f, MADD(f, p, 0.0592944819f), l.n * (4.60503891e-6f * 0x1p-23f));
  float y = MADD(l.n, 0.301025390625f * 0x1p-23f, MADD(f, 0.375f, low));
  return near ? y : lt_log_special(x, y);
}

/* Returns log(x + low), x a positive normal number, |low| less than its last digit. */
LT_MATHS float lt_log_sum(float x, float low) {
  uint32_t power = (lt_bits(x) - LT_TWO_THIRDS_BITS) & LT_EXPONENTS;
  /* At a power of 2^127 `low` has no effect, and 2^-127 is not a normal number. */
  low *= lt_float(LT_ONE_BITS - (uint32_t)lt_least((int32_t)power, 100 << 23));
  float n = (float)(int32_t)power, m = lt_float(lt_bits(x) - power) - 1, f = m + low;
  low -= f - m;
  low = MADD(n, -2.12194440e-4f * 0x1p-23f, lt_log1p_tail(f) + low);
  return MADD(n, 0.693359375f * 0x1p-23f, f + low);
}

/* Returns the rounding error of sum = 1 + y. */
LT_MATHS float lt_lost(float y, float sum) {
  float part = sum - 1;
  return (1 - (sum - part)) + (y - part);
}

/* Computes with 1 + x = 2^n (1 + f), where 4 f is used, in two parts: 2^(2 - n) is a normal
 * number. */
LT_MATHS float lt_log1pf(float x, bool near) {
  uint32_t power = (lt_bits(1 + x) - LT_TWO_THIRDS_BITS) & LT_EXPONENTS;
  float n = (float)(int32_t)power, scale = lt_float(LT_ONE_BITS + (2u << 23) - power);
  float f = FUSED(x, scale, scale - 4), f_low = FUSED(x, scale, (scale - 4) - f);
  float p = -0.128776997f * 0x1p-18f; /* 4 (log(1 + f / 4) - f / 4) / f^2: as in lt_log1p_tail */
  p = MADD(p, f, 0.139859602f * 0x1p-16f);
  p = MADD(p, f, -0.121877491f * 0x1p-14f);
  p = MADD(p, f, 0.140054762f * 0x1p-12f);
  p = MADD(p, f, -0.166802078f * 0x1p-10f);
  p = MADD(p, f, 0.200104386f * 0x1p-8f);
  p = MADD(p, f, -0.249998048f * 0x1p-6f);
  p = MADD(p, f, 0.333332151f * 0x1p-4f);
  p = MADD(p, f, -0.5f * 0x1p-2f);
  float low = MADD(p, f * f, MADD(n, -2.12194440e-4f * 0x1p-21f, f_low));
  float y = MADD(f + low, 0.25f, n * (0.693359375f * 0x1p-23f));
  y = y < x ? y : x; /* never more than x; keeps -0, infinity and NaN */
  if (near) return y;
  y = x > -1 || x != x ? y : NAN;
  return x == -1 ? -INFINITY : y;
}

/* ---- sin, cos, tan --------------------------------------------------------------------------- */

/* Returns x - n pi/2, rounded once unless it is small: |x| <= 2^12, n is the nearest integer. For
 * -0 it is -0. */
#ifdef LT_HAS_FMA
typedef float lt_Rest;
#else
typedef double lt_Rest;
#endif
LT_MATHS lt_Rest lt_less_turns(float x, float n) {
#ifdef LT_HAS_FMA
  float r = FUSED(n, -0x1.921fb4p0f, x); /* exact */
  r = FUSED(n, -0x1.4442dp-24f, r);
  return FUSED(n, -0x1.84698ap-48f, r);
#else
  double wide = (double)x - (double)n * 0x1.921fb544p0; /* exact */
  return wide - (double)n * 0x1.0b4611a626331p-34;
#endif
}

/* Returns sin(x + turn pi/2), |x| <= 2^12. The rounding error of r hardly adds to the result: the
 * smaller r is, the more accurate is the polynomial. */
LT_MATHS float lt_sin_turned(float x, float turn) {
  float shifted = MADD(x, 0.636619772f, 0x1.8p23f + turn), n = shifted - (0x1.8p23f + turn);
  lt_Rest rest = lt_less_turns(x, n);
  float r = (float)rest, z = r * r;
  float s = -0.000196102759f, c = 2.44120856e-5f; /* 2^-28, from 1/2 on 2^-26; 2^-32 */
  s = MADD(MADD(s, z, 0.00833292585f), z, -0.166666672f);
  s = FUSED(s, MADD(z, r, 0.0f), rest); /* adding 0 keeps -0 */
  c = MADD(MADD(c, z, -0.00138871302f), z, 0.0416666418f);
  c = MADD(MADD(c, z, -0.5f), z, 1.0f);
  float y = (int32_t)(lt_bits(shifted) << 31) < 0 ? c : s;
  return lt_float(lt_bits(y) ^ (lt_bits(shifted) << 30 & LT_SIGN_BIT));
}

/* Arguments out of range are passed to the C library, by a branch. */
LT_MATHS float lt_sinf(float x, bool near) {
  if (!near && !(fabsf(x) <= 0x1p12f)) return sinf(x);
  return lt_sin_turned(x, 0);
}
LT_MATHS float lt_cosf(float x, bool near) {
  if (!near && !(fabsf(x) <= 0x1p12f)) return cosf(x);
  return lt_sin_turned(x, 1);
}

/* x = n pi/2 + r - over, |x| <= 2^12, |r| at most a little more than pi/4. For -0, r is -0 and
 * `over` 0, so that r - over is -0. */
typedef struct lt_Angle {
  float r, over;
  uint32_t n;
} lt_Angle;

LT_MATHS lt_Angle lt_angle(float x) {
  float shifted = MADD(x, 0.636619772f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  lt_Angle a = {0, 0, lt_bits(shifted)};
#ifdef LT_HAS_FMA
  float first = FUSED(n, -0x1.921fb4p0f, x); /* exact */
  float second = n * 0x1.444p-24f;           /* exact: 12 bits each */
  a.r = first - second;
  a.over = MADD(n, 0x1.68c234p-39f, second - (first - a.r));
#else
  double wide = (double)x - (double)n * 0x1.921fb544p0; /* exact */
  wide -= (double)n * 0x1.0b4611a626331p-34;
  a.r = (float)wide;
  a.over = (float)((double)a.r - wide);
#endif
  return a;
}

/* Computes tan(r - over), in odd quadrants -1 / tan(r - over). */
LT_MATHS float lt_tanf(float x, bool near) {
  if (!near && !(fabsf(x) <= 0x1p12f)) return tanf(x);
  lt_Angle a = lt_angle(x);
  float r = a.r, z = r * r, p = 0.00450502615f; /* (tan r - r) / r^3: 2^-29.2 */
  p = MADD(p, z, -0.000163854929f);
  p = MADD(p, z, 0.0110285189f);
  p = MADD(p, z, 0.0212112665f);
  p = MADD(p, z, 0.0540727861f);
  p = MADD(p, z, 0.133325607f);
  p = MADD(p, z, 0.333333522f);
  float less = MADD(-(p * z), MADD(a.over, -4.8f, r), a.over); /* the slope is near 1 + 1.6 z */
  float y = r - less, low = (r - y) - less, inverse = -1 / y;
  inverse = MADD(inverse * inverse, low, inverse);
  return (int32_t)(a.n << 31) < 0 ? inverse : y;
}

/* ---- inverse trigonometric functions --------------------------------------------------------- */

/* Returns (asin(sqrt z) - sqrt z) / sqrt z, z <= 1/4: 2^-27.6 */
LT_MATHS float lt_asin_tail(float z) {
  float p = 0.0422117971f;
  p = MADD(p, z, 0.0241520926f);
  p = MADD(p, z, 0.0454760417f);
  p = MADD(p, z, 0.0749525204f);
  p = MADD(p, z, 0.166667536f);
  return p * z;
}

/* Uses asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)) for |x| > 1/2. */
LT_MATHS float lt_asinf(float x) {
  float a = fabsf(x), square = a * a, half = MADD(a, -0.5f, 0.5f);
  float z = square < half ? square : half, far = -2 * sqrtf(half);
  bool large = a > 0.5f;
  float u = large ? far : a;
  float base = lt_if(large, 1.57079637f), sum = base + u, low = u - (sum - base);
  low += MADD(u, lt_asin_tail(z), lt_if(large, -4.37113883e-8f));
  return lt_signed(sum + low, x);
}

/* With u = s for |x| <= 1/2, else 2 s: pi/2 - asin(x), 2 asin(s), pi - 2 asin(s). */
LT_MATHS float lt_acosf(float x) {
  float a = fabsf(x), square = a * a, half = MADD(a, -0.5f, 0.5f);
  float z = square < half ? square : half, s = sqrtf(z); /* sqrt(a a) = a, except near 0 */
  uint32_t large = a > 0.5f ? ~0u : 0, sign = lt_bits(x) & LT_SIGN_BIT;
  float u = s + lt_float(lt_bits(s) & large);
  float base = 1.57079637f - lt_float((LT_HALF_PI_BITS | sign) & large);
  u = lt_float(lt_bits(u) | ((lt_bits(x) ^ large) & LT_SIGN_BIT));
  return base - (u + MADD(u, lt_asin_tail(z), base * 2.78275341e-8f)); /* rounding error of base */
}

/* Returns (atan(a) - a) / a, 0 <= a <= 1, for z = a^2: 2^-25.8 */
LT_MATHS float lt_atan_tail(float z) {
  float p = 0.00291951792f;
  p = MADD(p, z, -0.0163634513f);
  p = MADD(p, z, 0.0432049856f);
  p = MADD(p, z, -0.0755167082f);
  p = MADD(p, z, 0.106657706f);
  p = MADD(p, z, -0.14211002f);
  p = MADD(p, z, 0.199937671f);
  p = MADD(p, z, -0.333331525f);
  return p * z;
}

LT_MATHS float lt_atanf(float x) {
  float a = fabsf(x), inverse = 1 / a, t = inverse < a ? inverse : a;
  uint32_t large = a > 1 ? ~0u : 0;
  float base = lt_float(LT_HALF_PI_BITS & large);
  t = lt_float(lt_bits(t) | (large & LT_SIGN_BIT));
  float tail = MADD(t, lt_atan_tail(t * t), lt_float(0xb33bbd2eu & large)); /* pi/2 - base */
  return lt_signed(base + (t + tail), x);
}

/* ---- hyperbolic functions -------------------------------------------------------------------- */

/* With |x| = n log(2) + r, computes (2^n + 2^-n) / 2 sinh r + (2^n - 2^-n) / 2 cosh r; for n = 0
 * only the first term is not 0. Over 89.5, where the result is infinite, r is large. Keeps NaN. */
LT_MATHS float lt_sinhf(float x) {
  float a = fabsf(x);
  float shifted = lt_at_most(MADD(a, 1.44269504f, 0x1.8p23f), 0x1.8p23f + 129);
  float n = shifted - 0x1.8p23f;
  float r = MADD(n, -1.42860677e-6f, MADD(n, -0x1.62e4p-1f, a)), z = r * r;
  uint32_t power = lt_bits(shifted) << 23;
  uint32_t lower = (uint32_t)lt_least((int32_t)power, 125 << 23);
  float up = lt_float((125u << 23) + power), down = lt_float((125u << 23) - lower);
  float sum = up + down, difference = up - down;
  float s = MADD(z, 2 * 0.00837172195f, 2 * 0.166664943f); /* 2 (sinh r - r) / r^3: 2^-27.9 */
  float c = MADD(z, 2 * 0.00139390538f, 2 * 0.0416664258f);
  c = MADD(c, z, 1.0f) * z; /* 2 (cosh r - 1): 2^-32.8 */
  float part = MADD(sum, r + r, MADD(sum, s * (z * r), difference * c));
  return lt_signed(FUSED(difference, 2.0f, part), x);
}

/* Infinite for numbers over 89.5; never less than |x|, which keeps NaN. */
LT_MATHS float lt_coshf(float x) {
  float a = fabsf(x);
  lt_Exp e = lt_exp_split_less(lt_at_most(a, 89.5f), 2); /* e^a = 4 up (1 + t), e^-a = 4 down */
  float up = e.power, down = 0.0625f / MADD(up, e.t, up);
  float y = 2 * (up + MADD(up, e.t, down));
  return y > a ? y : a;
}

/* Uses a polynomial near 0, then 1 - 2 / (1 + e^2x). */
LT_MATHS float lt_tanhf(float x) {
  float a = fabsf(x), z = x * x, p = -0.00623430777f; /* (tanh x - x) / x^3, z <= 0.31: 2^-29.7 */
  p = MADD(p, z, 0.0210458357f);
  p = MADD(p, z, -0.0538466908f);
  p = MADD(p, z, 0.133325398f);
  p = MADD(p, z, -0.333333164f);
  float inner = MADD(p * z, a, a);
  bool large = a > 0.55f; /* false for NaN */
  a = lt_at_most(a, 10);
  lt_Exp e = lt_exp_split(2 * a);
  float outer = 1 - 2 / MADD(e.power, e.t, 1 + e.power);
  return lt_signed(large ? outer : inner, x);
}

/* ---- in double ------------------------------------------------------------------------------- */
/* Where float32 would have to correct its rounding errors, double is as fast. */

/* Returns 1 / x with an error of 2^-45, for x in the range of float. */
LT_MATHS double lt_reciprocal(double x) {
  double y = (double)(1 / (float)x);
  return y * MADDD(-x, y, 2.0);
}

/* Returns e^x, |x| <= 700: 2^-28.3 */
LT_MATHS double lt_exp_wide(double x) {
  double shifted = MADDD(x, 1.4426950408889634, 0x1.8p52), n = shifted - 0x1.8p52;
  double r = MADDD(n, -0.69314718055994531, x);
  double q = 0.0013816177154013683;
  q = MADDD(q, r, 0.0083687625153800165);
  q = MADDD(q, r, 0.041668370766734769);
  q = MADDD(q, r, 0.16666520256479231);
  q = MADDD(q, r, 0.49999993478180937);
  double y = MADDD(MADDD(q, r, 1.0), r, 1.0);
  return y * lt_double((lt_bits64(shifted) << 52) + 0x3ff0000000000000u);
}

/* Returns log(1 + e), 0 <= e <= 1: 2^-27.5 */
LT_MATHS double lt_log1p_wide(double e) {
  double q = -0.0033184728361016621;
  q = MADDD(q, e, 0.020204591577675964);
  q = MADDD(q, e, -0.057664468788139571);
  q = MADDD(q, e, 0.10680559486992013);
  q = MADDD(q, e, -0.15355399716458679);
  q = MADDD(q, e, 0.1969540216730554);
  q = MADDD(q, e, -0.24958587835825774);
  q = MADDD(q, e, 0.33330511368879256);
  q = MADDD(q, e, -0.49999932765395377);
  return MADDD(q * e, e, e);
}

/* sqrt(x) = root + low. */
typedef struct lt_Root {
  float root, low;
} lt_Root;

LT_MATHS lt_Root lt_root(float x) {
  lt_Root s;
  s.root = sqrtf(x);
  s.low = FUSED(-s.root, s.root, x) * (0.5f / s.root);
  return s;
}

/* Uses a polynomial near 0, then log(x + sqrt(x^2 + 1)); for large numbers log(x) + log(2). */
LT_MATHS float lt_asinhf(float x, bool near) {
  float a = fabsf(x), z = x * x, p = -0.0132228732f; /* (asinh x - x) / x^3, |x| <= 1/2: 2^-29.6 */
  p = MADD(p, z, 0.0281609204f);
  p = MADD(p, z, -0.0443829522f);
  p = MADD(p, z, 0.0749864057f);
  p = MADD(p, z, -0.166666433f);
  float inner = MADD(p * z, a, a);
  bool large = !near && a > 0x1p20f;
  lt_Root s = lt_root(large ? 1.0f : MADD(a, a, 1.0f));
  float root = large ? a : s.root, sum = a + root;
  float outer = lt_log_sum(large ? a : sum, large ? 0.0f : (a - (sum - root)) + s.low);
  if (!near) outer += large ? 0.693147182f : 0.0f;
  float y = a < 0.5f ? inner : outer;
  return lt_signed(near || a < INFINITY ? y : a, x);
}

/* Computes log(x + sqrt(x^2 - 1)) from x - 1. */
LT_MATHS float lt_acoshf(float x, bool near) {
  bool large = !near && x > 0x1p20f;
  float u = large ? 1.0f : x - 1;
  lt_Root s = lt_root(FUSED(u, u, 2 * u));
  float y = s.root + u, y_low = (u - (y - s.root)) + s.low, sum = 1 + y;
  float v = lt_log_sum(large ? x : sum, large ? 0.0f : lt_lost(y, sum) + y_low);
  if (near) return lt_if(u > 0, v);
  v += large ? 0.693147182f : 0.0f;
  v = u > 0 ? v : u == 0 ? 0.0f : NAN;
  return x < INFINITY ? v : x;
}

/* Uses a polynomial near 0, then log((1 + x) / (1 - x)) / 2. */
LT_MATHS float lt_atanhf(float x) {
  float a = fabsf(x), z = x * x, p = 0.176399201f; /* (atanh x - x) / x^3, |x| <= 1/2: 2^-29.4 */
  p = MADD(p, z, 0.0515896492f);
  p = MADD(p, z, 0.118167616f);
  p = MADD(p, z, 0.142237455f);
  p = MADD(p, z, 0.200024545f);
  p = MADD(p, z, 0.333333015f);
  float inner = MADD(p * z, a, a);
  float outer = 0.5f * lt_logf((1 + a) / (1 - a), true);
  outer = a < 1 ? outer : a == 1 ? INFINITY : NAN;
  return lt_signed(a < 0.5f ? inner : outer, x);
}

/* ---- error function -------------------------------------------------------------------------- */

/* Uses a polynomial near 0, then 1 - e^-g with a polynomial g. */
LT_MATHS float lt_erff(float x) {
  float a = fabsf(x), z = x * x;
  float p = 7.80690389e-5f; /* erf(x) / x - 1, |x| <= 1: 2^-29.4 */
  p = MADD(p, z, -0.00079978531f);
  p = MADD(p, z, 0.0051871622f);
  p = MADD(p, z, -0.0268533472f);
  p = MADD(p, z, 0.112835787f);
  p = MADD(p, z, -0.37612626f);
  p = MADD(p, z, 0.128379166f);
  float inner = MADD(p, a, a);
  a = lt_at_most(a, 3.95f);   /* NaN uses `inner` */
  float g = -0.000186379839f; /* -log(erfc x), 1 <= x <= 3.95: 2^-29.8 */
  g = MADD(g, a, 0.00294764945f);
  g = MADD(g, a, -0.021838f);
  g = MADD(g, a, 0.10310661f);
  g = MADD(g, a, 0.63814497f);
  g = MADD(g, a, 1.12708914f);
  g = MADD(g, a, 0.00034152274f);
  float shifted = MADD(g, -1.44269504f, LT_SHIFTER), n = shifted - LT_SHIFTER;
  /* at most 0.16 remains, so an error of 2^-23 suffices */
  float r = MADD(n, -0.693147182f, -g), q = 0.00831262581f;
  q = MADD(q, r, 0.0418914855f);
  q = MADD(q, r, 0.166671172f);
  q = MADD(q, r, 0.499992222f);
  float power = lt_float(lt_bits(shifted) << 23);
  float outer = 1 - MADD(power, MADD(q, r * r, r), power);
  float y = z > 1 ? outer : inner;
  return lt_signed(y, x);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* 1 + e^v, |v| <= 87: the sum and its excess over the exact value. Signs are chosen below such that
 * -0 gives -0. */
typedef struct lt_Sum {
  float sum, over;
} lt_Sum;

LT_MATHS lt_Sum lt_one_plus(lt_Exp e) {
  float sum = MADD(e.power, e.t, 1 + e.power);
  return (lt_Sum){sum, MADD(-e.power, e.t, (sum - e.power) - 1)};
}

/* Returns x e^v for v <= -80, where it is very small. */
LT_MATHS float lt_vanishing(double x, double v) {
  return (float)(x * (v < -250 ? 0.0 : lt_exp_wide(v < -250 ? -250 : v)));
}

LT_MATHS float lt_sigmoidf(float x, bool near) {
  lt_Sum s = lt_one_plus(lt_exp_split(-x));
  float q = 1 / s.sum, y = MADD(q, s.over * q, q);
  if (near) return y;
  y = x > 80 ? 1.0f : y;
  return x < -80 ? lt_vanishing(1, (double)x) : y;
}

LT_MATHS float lt_siluf(float x, bool near) {
  lt_Sum s = lt_one_plus(lt_exp_split(-x));
  float q = x / s.sum, inverse = lt_float(0x7ef311c3u - lt_bits(s.sum)); /* accurate to one digit */
  float y = MADD(q, s.over * inverse, q);
  if (near) return y;
  y = x > 80 ? x : y;
  return x < -80 ? lt_vanishing((double)x, (double)x) : y;
}

/* Returns grad s (1 + x (1 - s)), s = sigmoid(x). */
LT_MATHS float lt_silu_backwardf(float grad, float x, bool near) {
  lt_Exp e = lt_exp_split(-x);
  float power = MADD(e.power, e.t, e.power), s = 1 / (1 + power);
  float rest = x < 0 ? 1 - s : power * s, y = s * MADD(x, rest, 1.0f) * grad;
  if (near) return y;
  y = x > 80 ? grad * (1 + (x - x)) : y; /* NaN at infinity */
  return x < -80 ? lt_vanishing((double)grad * (1 + (double)x), (double)x) : y;
}

/* Returns v = sqrt(8 / pi) (x + 0.044715 x^3). */
LT_MATHS double lt_gelu_tanh_angle(float x) {
  double wide = (double)x;
  return wide * MADDD(0.071354816272600244, wide * wide, 1.5957691216057308);
}

/* Returns e^-v for |x| <= 8, with v = x p in two parts, since an error of v becomes a relative
 * error. */
LT_MATHS lt_Exp lt_gelu_tanh_power(float x) {
  float z = x * x, z_low = FUSED(x, x, -z);
  float p = FUSED(0.0713548139f, z, 1.59570312f); /* 12 bits, so that the difference is exact */
  float p_low =
      FUSED(0.0713548139f, z, 1.59570312f - p) + MADD(0.0713548139f, z_low, 6.59966057e-05f);
  p_low = MADD(2.3988324e-09f, z, p_low);
  float v = x * p, v_low = MADD(x, p_low, FUSED(x, p, -v));
  float shifted = MADD(v, -1.44269504f, LT_SHIFTER), n = shifted - LT_SHIFTER;
  float r = MADD(n, -0x1.62e4p-1f, -v) + MADD(n, -1.42860677e-6f, -v_low);
  return (lt_Exp){lt_exp_tail(r), lt_float(lt_bits(shifted) << 23)};
}

LT_MATHS float lt_gelu_tanhf(float x, bool near) {
  lt_Sum s = lt_one_plus(lt_gelu_tanh_power(x));
  float inverse = 1 / s.sum, q = x * inverse;
  float more = MADD(-q, s.over, FUSED(q, s.sum, -x)); /* excess of q, times the sum */
  float y = MADD(-more, inverse, q);
  if (near) return y;
  y = x > 8 ? x : y;
  return x < -8 ? lt_vanishing((double)x, lt_gelu_tanh_angle(x)) : y;
}

LT_MATHS float lt_gelu_tanh_backwardf(float grad, float x, bool near) {
  lt_Exp e = lt_gelu_tanh_power(x);
  float power = MADD(e.power, e.t, e.power), s = 1 / (1 + power);
  float rest = x < 0 ? 1 - s : power * s;
  float rise = x * MADD(0.214064449f, x * x, 1.59576917f); /* x dv/dx */
  float y = s * MADD(rise, rest, 1.0f) * grad;
  if (near) return y;
  y = x > 8 ? grad * (1 + (x - x)) : y;
  return x < -8 ? lt_vanishing((double)grad * (1 + (double)rise), lt_gelu_tanh_angle(x)) : y;
}

/* Returns min(x, 0) - log(1 + e^-|x|). */
LT_MATHS float lt_logsigmoidf(float x, bool near) {
  float a = fabsf(x), down = x < 0 ? x : 0.0f;
  lt_Exp e = lt_exp_split(-a);
  float power = e.power, first = 1 + power, part = power * e.t;
  float sum = first + part, low = (part - (sum - first)) + (power - (first - 1));
  float y = down - lt_log_sum(sum, low);
  if (near) return y;
  return a <= 80 ? y : x < 0 ? x : lt_vanishing(-1, -(double)a);
}

LT_MATHS float lt_softplusf(float x, float beta, float threshold) {
  double v = (double)x * (double)beta, a = fabs(v);
  a = a > 700 ? 700.0 : a;
  double y = (v < 0 ? 0.0 : v) + lt_log1p_wide(lt_exp_wide(-a));
  return v > (double)threshold ? x : (float)(y * (1 / (double)beta));
}

LT_MATHS float lt_eluf(float x, float alpha, bool near) {
  float negative = alpha * lt_expm1f(x, near);
  return x > 0 ? x : negative;
}

/* ---- complementary error function ------------------------------------------------------------ */

/* Returns e^(x^2) erfc(x), 0 <= x <= 14: 2^-29.3 */
LT_MATHS double lt_erfcx_wide(double x) {
  double u = MADDD(-6.0, lt_reciprocal(x + 3), 1.0), p = 5.6418642344020884e-05;
  p = MADDD(p, u, 3.0022360196912422e-05);
  p = MADDD(p, u, -0.00059412220865017839);
  p = MADDD(p, u, 0.00071513386816053376);
  p = MADDD(p, u, 0.0042684810676693087);
  p = MADDD(p, u, -0.024394139932836342);
  p = MADDD(p, u, 0.071665946791953983);
  p = MADDD(p, u, -0.15011578608149104);
  p = MADDD(p, u, 0.24560379231969454);
  p = MADDD(p, u, -0.32623356377523804);
  return MADDD(p, u, 0.1790011513145964);
}

/* A number in two parts. */
typedef struct lt_Pair {
  float high, low;
} lt_Pair;

/* e^z y = high + low, and e^z. */
typedef struct lt_Tail {
  float high, low, power;
} lt_Tail;

/* Returns e^(z + z_low) y, z <= 0. */
LT_MATHS lt_Tail lt_tail(lt_Pair y, float z, float z_low) {
  float shifted = MADD(z, 1.44269504f, LT_SHIFTER), n = shifted - LT_SHIFTER;
  float t = lt_exp_tail(MADD(n, -0x1.62e4p-1f, z) + MADD(n, -1.42860677e-6f, z_low));
  float more = FUSED(t, y.high, MADD(t, y.low, y.low)), sum = y.high + more;
  float scale = lt_float(lt_bits(shifted) << 23);
  lt_Tail tail = {sum * scale, (more - (sum - y.high)) * scale, (1 + t) * scale};
  return tail;
}

/* Returns c0 + v (c1 + v p); the first two coefficients are in two parts, the first of 12 bits. */
LT_MATHS lt_Pair lt_poly_end(float v, float p, lt_Pair c1, lt_Pair c0) {
  float inner = MADD(p, v, c1.high), inner_low = FUSED(p, v, c1.high - inner) + c1.low;
  lt_Pair y;
  y.high = MADD(inner, v, c0.high);
  y.low = FUSED(inner, v, c0.high - y.high) + MADD(inner_low, v, c0.low);
  return y;
}

/* 1 / (a + k) = q (1 + lost). */
typedef struct lt_Inverse {
  float q, lost, sum;
} lt_Inverse;

LT_MATHS lt_Inverse lt_inverse(float a, float k) {
  float s = a + k, q = 1 / s;
  lt_Inverse i = {q, MADD(-q, a - (s - k), FUSED(-q, s, 1.0f)), s};
  return i;
}

/* Returns erfc(a), 0 <= a <= 4.5: e^-a^2 times a polynomial of q = 1 / (a + 3). The rounding error
 * of q has the effect of a change of a, by which the factor y = e^(a^2) erfc(a) changes as 2 a y -
 * 2 / sqrt(pi). */
LT_MATHS lt_Tail lt_erfc_tail(float a) {
  float z = -a * a, z_low = FUSED(-a, a, -z);
  lt_Inverse i = lt_inverse(a, 3);
  float v = i.q - 0.166666672f, p = 3348.26465f; /* 2^-29 */
  p = MADD(p, v, -270.845825f);
  p = MADD(p, v, -1001.83344f);
  p = MADD(p, v, -200.49147f);
  p = MADD(p, v, 199.224625f);
  p = MADD(p, v, 189.688889f);
  p = MADD(p, v, 92.8786545f);
  p = MADD(p, v, 32.4250145f);
  p = FUSED(p, v, 8.84173775f);
  lt_Pair c1 = {1.95751953f, -0.000118061325f}, c0 = {0.179016113f, -1.49523512e-05f};
  lt_Pair y = lt_poly_end(v, p, c1, c0);
  y.low = MADD(i.lost * i.sum, MADD(-2 * a, y.high, 1.12837917f), y.low);
  return lt_tail(y, z, z_low);
}

/* Returns erfc(x) for x > 4.5. */
LT_MATHS float lt_far_erfc(float x) {
  double wide = (double)lt_at_most(fabsf(x), 10.5f);
  return (float)(lt_exp_wide(-(wide * wide)) * lt_erfcx_wide(wide));
}

LT_MATHS float lt_erfcf(float x, bool near) {
#ifdef LT_LIBMVEC_FLOAT32
  float y = erfcf(x); /* measured: within 1.4 units up to 4.5; off by 1.6 at 4.7 */
#else
  lt_Tail t = lt_erfc_tail(fabsf(x));
  float y = x < 0 ? (2 - t.high) - t.low : t.high + t.low;
#endif
  if (near) return y;
  y = x > 4.5f ? lt_far_erfc(x) : y;
  return x < -4.5f ? 2.0f : y;
}

/* Returns the normal distribution function at -a, 0 <= a <= 11, in the same way: with q = 1 / (a +
 * 4) and y = e^(a^2 / 2) Phi(-a), which changes as a y - 1 / sqrt(2 pi). */
LT_MATHS lt_Tail lt_normal_tail(float a) {
  float half = -0.5f * a, z = half * a, z_low = FUSED(half, a, -z);
  lt_Inverse i = lt_inverse(a, 4);
  float v = i.q - 0.125f, p = 9330.05273f; /* 2^-26.7 */
  p = MADD(p, v, -2945.56421f);
  p = MADD(p, v, -1377.422f);
  p = MADD(p, v, 132.896927f);
  p = MADD(p, v, 278.418732f);
  p = MADD(p, v, 126.42157f);
  p = MADD(p, v, 36.7139587f);
  p = FUSED(p, v, 7.96027279f);
  lt_Pair c1 = {1.36328125f, -9.93760987e-05f}, c0 = {0.0944213867f, -1.07453061e-05f};
  lt_Pair y = lt_poly_end(v, p, c1, c0);
  y.low = MADD(i.lost * i.sum, MADD(-a, y.high, 0.398942280f), y.low);
  return lt_tail(y, z, z_low);
}

/* Return the exponent and the factor of the same function for x < -11, in double. */
LT_MATHS double lt_half_square(float x) { return -0.5 * (double)x * (double)x; }
LT_MATHS double lt_far_normal(float x) {
  return 0.5 * lt_erfcx_wide((x > -20 ? -(double)x : 20.0) * 0.70710678118654752);
}

#ifdef LT_HAS_FMA
#define LT_GELU_NEAR 0x40900000u /* 4.5 */
/* Uses x Phi(x) = max(x, 0) - |x| Phi(-|x|), and 2 Phi(-a) = e^(-a^2 / 2 - 7/16 a + g) with |g| <
 * 1/4. From 4.5 on, a Phi(-a) = e^(-a^2 / 2 + g) / sqrt(2 pi). `low` is the rounding error of the
 * sum without g. */
LT_MATHS float lt_gelu_erff(float x, bool near) {
  bool far = !near && x < -4.5f;
  float a = near ? fabsf(x) : lt_at_most(fabsf(x), 15);
  float half = -0.5f * a, z = half * a, sum = MADD(a, -0.4375f, z);
  float low = FUSED(a, -0.4375f, z - sum);
  float over = 1.53273704e-05f, under = 0.0269931555f, u = a - 1; /* g, a <= 4.5: 2^-27 */
  over = MADD(over, u, 0.0107514039f);
  over = MADD(over, u, 0.0687536746f);
  over = MADD(over, u, 0.0965977684f);
  over = MADD(over, u, -0.636848092f);
  over = MADD(over, u, -0.675428271f);
  under = MADD(under, a, 0.275192171f);
  under = MADD(under, a, 1.0584147f);
  float g = over / MADD(under, a, 1.85000014f);
  if (!near) {
    float v = 1 / (a * a), p = -236.817337f; /* g / v: 2^-26.2 */
    p = MADD(p, v, 65.679512f);
    p = MADD(p, v, -11.8580503f);
    p = MADD(p, v, 2.49526095f);
    p = MADD(p, v, -0.999983668f) * v;
    float other = z - 0.22579135f; /* log(sqrt(2 / pi)) */
    g = far ? p : g;
    low = far ? (z - other) - 0.22579135f : low;
    sum = far ? other : sum;
  }
  low += FUSED(half, a, -z);
  float shifted = MADD(sum + g, 1.44269504f, LT_SHIFTER), n = shifted - LT_SHIFTER;
  float first = MADD(n, -0x1.62e4p-1f, sum), rest = g + MADD(n, -1.42860677e-6f, low);
  float r = first + rest, t = lt_exp_tail_sum(r, rest - (r - first));
  uint32_t power = lt_bits(shifted) << 23;
  float part = half * lt_float(power); /* with 1 + t: -|x| Phi(-|x|) */
  uint32_t most = lt_bits(x) < LT_SIGN_BIT ? lt_bits(x) : LT_SIGN_BIT; /* x, or -0 */
  float y = lt_float(most) + MADD(part, t, part);
  if (near) return y;
  y = far ? -0.5f * lt_scale(1 + t, power - LT_ONE_BITS, true) : y;
  y = x <= 5.3f ? y : x; /* keeps NaN */
  return x < -15 ? x * 0.0f : y;
}
#else
#define LT_GELU_NEAR 0x41300000u /* 11 */
LT_MATHS float lt_gelu_erff(float x, bool near) {
  lt_Tail t = lt_normal_tail(fabsf(x));
  float high = x * t.high, low = MADD(x, t.low, FUSED(x, t.high, -high));
  float y = lt_signed(x < 0 ? high + low : (x - high) - low, x);
  if (near) return y;
  y = x > 11.0f ? x : y;
  return x < -11.0f ? lt_vanishing((double)x * lt_far_normal(x), lt_half_square(x)) : y;
}
#endif

/* Returns grad (Phi(x) + x phi(x)). */
LT_MATHS float lt_gelu_erf_backwardf(float grad, float x, bool near) {
  lt_Tail t = lt_normal_tail(fabsf(x));
  float phi = x < 0 ? t.high : 1 - t.high, y = MADD(x * 0.398942280f, t.power, phi) * grad;
  if (near) return y;
  y = x > 11.0f ? grad * (1 + (x - x)) : y;
  double factor = lt_far_normal(x) + 0.39894228040143268 * (double)x;
  return x < -11.0f ? lt_vanishing((double)grad * factor, lt_half_square(x)) : y;
}

/* Selects with masks, since compilers would duplicate the code after a conditional. */
LT_MATHS float lt_atan2f(float y, float x) {
  /* |x| and |y| as integers, which have the same order. */
  int32_t a = (int32_t)(lt_bits(x) & ~LT_SIGN_BIT), b = (int32_t)(lt_bits(y) & ~LT_SIGN_BIT);
  uint32_t large = (uint32_t)((a - b) >> 31), left = (uint32_t)((int32_t)lt_bits(x) >> 31);
  int32_t most = a > b ? a : b;
  most = most > 1 ? most : 1; /* 0 / 0 is 0 */
  float over = lt_float((uint32_t)lt_least(a, b)), under = lt_float((uint32_t)most);
  uint32_t equal = over == under ? ~0u : 0; /* infinity / infinity is 1 too */
  float t = lt_float((lt_bits(over / under) & ~equal) | (LT_ONE_BITS & equal));
  /* The rounding error of the division, from a reciprocal accurate to one digit. That is invalid
   * for numbers from 2^126 on, where the error is taken as 0. */
  float lost = FUSED(-t, under, over) * lt_float(0x7ef311c3u - (uint32_t)most);
  lost = lt_if(most < 0x7e800000, lost); /* 2^126 */
  float tail = MADD(t, lt_atan_tail(t * t), lost);
  float base =
      lt_float((LT_HALF_PI_BITS & large) | ((LT_HALF_PI_BITS + 0x00800000u) & left & ~large));
  uint32_t minus = (large ^ left) & LT_SIGN_BIT;
  t = lt_float(lt_bits(t) | minus);
  tail = MADD(base, -2.78275341e-8f, lt_float(lt_bits(tail) ^ minus)); /* rounding error of base */
  return lt_signed(base + (t + tail), y);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Numbers x with (bits of x & mask) - low <= span, as unsigned integers; span 0: no numbers. */
typedef struct lt_Range {
  uint32_t mask, low, span;
} lt_Range;

/* Returns the range of the last input for which an op's loop may use `near`. */
LT_MATHS lt_Range lt_near_range(const char *op) {
#define ANY_OF(a, b, c, d)                                                                         \
  (__builtin_strcmp(op, a) == 0 || __builtin_strcmp(op, b) == 0 || __builtin_strcmp(op, c) == 0 || \
   __builtin_strcmp(op, d) == 0)
  const uint32_t magnitude = ~LT_SIGN_BIT;
  if (ANY_OF("exp", "expm1", "elu", ""))
    return (lt_Range){magnitude, 0, 0x42ae0000u}; /* |x| <= 87 */
  if (ANY_OF("sigmoid", "silu", "_silu_backward", "logsigmoid"))
    return (lt_Range){magnitude, 0, 0x42a00000u}; /* 80 */
  if (ANY_OF("_gelu_erf", "", "", "")) return (lt_Range){magnitude, 0, LT_GELU_NEAR};
  if (ANY_OF("erfc", "", "", "")) return (lt_Range){magnitude, 0, 0x40900000u}; /* 4.5 */
  if (ANY_OF("_gelu_erf_backward", "", "", ""))
    return (lt_Range){magnitude, 0, 0x41300000u};                                    /* 11 */
  if (ANY_OF("exp2", "", "", "")) return (lt_Range){magnitude, 0, 0x42fa0000u};      /* 125 */
  if (ANY_OF("sin", "cos", "tan", "")) return (lt_Range){magnitude, 0, 0x45800000u}; /* 2^12 */
  if (ANY_OF("_gelu_tanh", "_gelu_tanh_backward", "", ""))
    return (lt_Range){magnitude, 0, 0x41000000u};                                    /* 8 */
  if (ANY_OF("acosh", "", "", "")) return (lt_Range){~0u, 0x3f800000u, 0x0a000000u}; /* to 2^20 */
  if (ANY_OF("asinh", "", "", "")) return (lt_Range){magnitude, 0, 0x49800000u};     /* 2^20 */
  if (ANY_OF("log1p", "", "", "")) return (lt_Range){~0u, 0, 0xbf7fffffu}; /* more than -1 */
  if (ANY_OF("log", "log2", "log10", ""))
    return (lt_Range){~0u, 0x00800000u, 0x7effffffu}; /* normal and finite */
  return (lt_Range){0, 0, 0};
#undef ANY_OF
}

#endif
