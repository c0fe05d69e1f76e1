/* maths_float32.h: math functions of float32 in float32, written so that any compiler vectorizes
 * loops over them; kernels in the Metal Shading Language use them too (src/mps/maths.metal.h).
 * Every result is within 1.5 units in the last place of the exact value (tests/c/test_ulp.c checks
 * each op), for denormal numbers too.
 *
 * A function is straight-line code: both sides of each choice are computed. MADD is fused if the
 * CPU has such an instruction; otherwise only the rounding differs.
 *
 * Some functions have a `near` argument, a constant at compile time: the caller guarantees that x
 * is in the range of lt_near_range (src/cpu/kernels/activations.h), and code for other arguments is
 * left out. Both forms give the same bits in that range.
 *
 * The polynomials are minimax approximations; the comments give the relative error that they add to
 * the result. */
#ifndef LT_MATHS_FLOAT32_H
#define LT_MATHS_FLOAT32_H

/* Another language than C defines LT_MATHS, LT_HAS_FMA, MADD, FUSED, lt_bits and lt_float, and the
 * functions of the C library that are used here, before it includes this file. */
#ifndef LT_MATHS
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LT_MATHS static inline __attribute__((always_inline, unused))

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define LT_HAS_FMA    1
#define MADD(a, b, c) __builtin_fmaf(a, b, c)
/* Rounded only once. */
#define FUSED(a, b, c) __builtin_fmaf(a, b, c)
#else
#define MADD(a, b, c)  ((a) * (b) + (c))
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
#endif

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

/* Returns e^r - 1. */
LT_MATHS float lt_exp_tail(float r) {
  float q = 0.00138187257f; /* (e^r - 1 - r) / r^2: 2^-28.2 */
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

/* Returns e^x for x <= 0 and NaN, with the bits of lt_expf. The power is computed times 2^64, so
 * that it is no denormal number. */
LT_MATHS float lt_exp_belowf(float x) {
  x = x < -104.0f ? -104.0f : x;
  lt_Exp e = lt_exp_split_less(x, -64);
  return MADD(e.power, e.t, e.power) * 0x1p-64f;
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

/* A number in two parts. */
typedef struct lt_Pair {
  float high, low;
} lt_Pair;

/* Returns e^x - 1, |x| <= 87: computes 2^n (1 + t) - 1 as (2^n - 1) + 2^n t; the rounding error of
 * the first sum is added to the second term. */
LT_MATHS lt_Pair lt_expm1_split(float x) {
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
  lt_Pair y = {sum, -MADD(-(part * q), r, over)}; /* the sum keeps -0 */
  return y;
}

LT_MATHS float lt_expm1f(float x, bool near) {
  lt_Pair e = lt_expm1_split(x);
  float y = e.high + e.low;
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
  float a = fabsf(x), square = a * a, other = MADD(a, -0.5f, 0.5f);
  float z = square < other ? square : other, far = -2 * sqrtf(other);
  bool large = a > 0.5f;
  float u = large ? far : a;
  float base = lt_if(large, 1.57079637f), sum = base + u, low = u - (sum - base);
  low += MADD(u, lt_asin_tail(z), lt_if(large, -4.37113883e-8f));
  return lt_signed(sum + low, x);
}

/* With u = s for |x| <= 1/2, else 2 s: pi/2 - asin(x), 2 asin(s), pi - 2 asin(s). */
LT_MATHS float lt_acosf(float x) {
  float a = fabsf(x), square = a * a, other = MADD(a, -0.5f, 0.5f);
  float z = square < other ? square : other, s = sqrtf(z); /* sqrt(a a) = a, except near 0 */
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

/* ---- complementary error function ------------------------------------------------------------ */

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

#endif
