/* maths.metal.h: the math functions of kernels: M(f) in the expressions of mathx.h is m_##f. They
 * are those of the CPU where that has its own (maths_float32.h), so that every device gives the
 * same results; Metal's own functions are less accurate, and some are missing. Errors are below 1.5
 * units in the last place, for complex numbers as on other devices.
 */
#ifndef LT_MPS_MATHS_METAL_H
#define LT_MPS_MATHS_METAL_H

#include "device.metal.h"

/* ---- what maths_float32.h requires of a language --------------------------------------------- */

#define LT_MATHS       static inline
#define LT_HAS_FMA     1
#define MADD(a, b, c)  fma(a, b, c)
#define FUSED(a, b, c) fma(a, b, c)
#define fabsf          fabs
#define sqrtf          precise::sqrt
#define sinf           precise::sin
#define cosf           precise::cos
#define tanf           precise::tan
LT_MATHS uint32_t lt_bits(float x) { return as_type<uint32_t>(x); }
LT_MATHS float lt_float(uint32_t bits) { return as_type<float>(bits); }

#include "maths_float32.h"

#undef fabsf
#undef sqrtf
#undef sinf
#undef cosf
#undef tanf

/* ---- functions that the CPU takes from the C library ----------------------------------------- */

/* Returns erfc(x), x > 4.5, from e^-x^2 times a polynomial of 1 / x^2. */
static inline float far_erfc(float x) {
  x = x < 10.5f ? x : 10.5f;
  float z = -x * x, z_low = fma(-x, x, -z), v = 1 / (x * x);
  float p = 2.05854511f; /* x e^x^2 erfc(x): 2^-26.2 */
  p = fma(p, v, -0.977616787f);
  p = fma(p, v, 0.421179444f);
  p = fma(p, v, -0.282072216f);
  float y = fma(p, v, 0.564189494f), y_low = fma(p, v, 0.564189494f - y) - 5.01044545e-09f;
  float q = y / x, shifted = fma(z, 1.44269504f, LT_SHIFTER), n = shifted - LT_SHIFTER;
  float t = lt_exp_tail(fma(n, -0x1.62e4p-1f, z) + fma(n, -1.42860677e-6f, z_low));
  q += fma(q, t, (fma(-q, x, y) + y_low) / x);
  return lt_scale(q, (lt_bits(shifted) << 23) - LT_ONE_BITS, true);
}

static inline float m_erfc(float x) {
  if (x > 4.5f) return far_erfc(x);
  if (x < -4.5f) return 2.0f;
  lt_Tail t = lt_erfc_tail(fabs(x));
  return x < 0 ? (2 - t.high) - t.low : t.high + t.low;
}

/* Returns the remainder of the division of the integers x 2^k by y < 2^24; x < y. */
static inline uint shifted_remainder(uint x, int k, uint y) {
  for (; k >= 8; k -= 8) x = (x << 8) % y;
  return (x << k) % y;
}

/* The remainder of truncated division, exactly, as in C. */
static inline float m_fmod(float x, float y) {
  uint a = lt_bits(fabs(x)), b = lt_bits(fabs(y));
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0) return NAN;
  if (a < b) return x;
  int i = (int)(a >> 23), j = (int)(b >> 23); /* exponents; 0: a denormal number */
  uint m = i ? (a & 0x7fffffu) | 0x800000u : a, n = j ? (b & 0x7fffffu) | 0x800000u : b;
  i = i ? i : 1, j = j ? j : 1;
  m = shifted_remainder(m % n, i - j, n);
  if (m == 0) return copysign(0.0f, x);
  int shift = (int)clz(m) - 8;
  shift = shift < j - 1 ? shift : j - 1; /* less for a denormal result */
  m <<= shift;
  uint bits = m < 0x800000u ? m : (m - 0x800000u) + ((uint)(j - shift) << 23);
  return copysign(lt_float(bits), x);
}

static inline float m_hypot(float x, float y) {
  float a = fabs(x), b = fabs(y), large = a > b ? a : b, small = a > b ? b : a;
  if (a == INFINITY || b == INFINITY) return INFINITY;
  if (!(a + b > 0)) return a + b; /* 0 or NaN */
  float scale = large > 0x1p60f ? 0x1p-70f : large < 0x1p-40f ? 0x1p100f : 1.0f;
  large *= scale, small *= scale;
  float root = large, rest = 0;
  if (small > large * 0x1p-13f) {
    Wide sum = two_sum(large * large, small * small);
    float lost = fma(large, large, -(large * large)) + fma(small, small, -(small * small));
    root = precise::sqrt(sum.high);
    rest = fma(-root, root, sum.high) + (sum.low + lost);
  } else {
    rest = small * small;
  }
  root = fma(rest, 0.5f / root, root);
  return scale == 1 ? root : scale < 1 ? root * 0x1p70f : root * 0x1p-100f;
}

/* Returns log2(x) to about 2^-44, x > 0 and finite. x = 2^n m with m near 1, and log(m) = 2
 * atanh((m - 1) / (m + 1)). */
static inline Wide log2_wide(float x) {
  int n = 0;
  if (x < 0x1p-126f) x *= 0x1p23f, n = -23;
  int power = (int)(lt_bits(x) - 0x3f3504f3u) >> 23; /* sqrt(1/2) <= m < sqrt(2) */
  float m = lt_float(lt_bits(x) - ((uint)power << 23));
  Wide s = Wide(m - 1) / two_sum(m, 1), z = s * s;
  float p = 0.0925926901f; /* (atanh(s) / s - 1 - z / 3) / z^2, z <= 0.0295 */
  p = fma(p, z.high, 0.1108929f);
  p = fma(p, z.high, 0.142858113f);
  p = fma(p, z.high, 0.2f);
  Wide q = z * (Wide(0.333333343f, -9.93410776e-09f) + Wide(p) * z);
  return Wide((float)(n + power)) + (s + s * q) * Wide(2.88539004f, 3.85192607e-08f);
}

/* Returns x^y for x > 0, finite and not 1, and finite y. */
static inline float positive_power(float x, float y) {
  Wide t = log2_wide(x) * Wide(y);
  if (t.high > 128 || (t.high == 128 && t.low >= 0)) return INFINITY;
  if (t.high < -151) return 0;
  float shifted = t.high + 0x1.8p23f, r = (t.high - (shifted - 0x1.8p23f)) + t.low;
  float p = 0.000153271962f; /* as in lt_exp2f */
  p = fma(p, r, 0.00133910251f);
  p = fma(p, r, 0.0096185049f);
  p = fma(p, r, 0.0555035956f);
  p = fma(p, r, 0.240226477f);
  p = fma(p, r, 0.693147182f);
  float v = fma(p, r, 1.0f);
  return lt_scale(v, lt_bits(shifted) << 23, t.high < -125);
}

/* The special values are those of C. */
static inline float m_pow(float x, float y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return x + y;
  float a = fabs(x), size;
  bool whole = trunc(y) == y, odd = whole && fabs(y) < 0x1p24f && trunc(y * 0.5f) != y * 0.5f;
  if (a == 1)
    size = 1;
  else if (fabs(y) == INFINITY)
    size = (a > 1) == (y > 0) ? INFINITY : 0.0f;
  else if (a == 0 || a == INFINITY)
    size = (a == 0) == (y < 0) ? INFINITY : 0.0f;
  else
    size = positive_power(a, y);
  if (x < 0 && a < INFINITY && !whole) return NAN;
  return odd && lt_bits(x) >= LT_SIGN_BIT ? -size : size;
}

/* ---- M(f) ------------------------------------------------------------------------------------ */

static inline float m_exp(float x) { return lt_expf(x, false); }
static inline float m_exp2(float x) { return lt_exp2f(x, false); }
static inline float m_expm1(float x) { return lt_expm1f(x, false); }
static inline float m_log(float x) { return lt_logf(x, false); }
static inline float m_log2(float x) { return lt_log2f(x, false); }
static inline float m_log10(float x) { return lt_log10f(x, false); }
static inline float m_log1p(float x) { return lt_log1pf(x, false); }
static inline float m_sqrt(float x) { return precise::sqrt(x); }
static inline float m_sin(float x) { return lt_sinf(x, false); }
static inline float m_cos(float x) { return lt_cosf(x, false); }
static inline float m_tan(float x) { return lt_tanf(x, false); }
static inline float m_asin(float x) { return lt_asinf(x); }
static inline float m_acos(float x) { return lt_acosf(x); }
static inline float m_atan(float x) { return lt_atanf(x); }
static inline float m_atan2(float y, float x) { return lt_atan2f(y, x); }
static inline float m_sinh(float x) { return lt_sinhf(x); }
static inline float m_cosh(float x) { return lt_coshf(x); }
static inline float m_tanh(float x) { return lt_tanhf(x); }
static inline float m_asinh(float x) { return lt_asinhf(x, false); }
static inline float m_acosh(float x) { return lt_acoshf(x, false); }
static inline float m_atanh(float x) { return lt_atanhf(x); }
static inline float m_erf(float x) { return lt_erff(x); }
static inline float m_floor(float x) { return floor(x); }
static inline float m_ceil(float x) { return ceil(x); }
static inline float m_rint(float x) { return rint(x); }
static inline float m_trunc(float x) { return trunc(x); }
static inline float m_fabs(float x) { return fabs(x); }
static inline float m_copysign(float x, float y) { return copysign(x, y); }
static inline float m_fmax(float x, float y) { return fmax(x, y); }
static inline float m_fmin(float x, float y) { return fmin(x, y); }

/* ---- wide numbers ---------------------------------------------------------------------------- */

/* The root of float and one step of Newton's method. */
static inline Wide m_sqrt(Wide x) {
  float root = precise::sqrt(x.high);
  if (!(root > 0) || root == INFINITY) return Wide(root);
  Wide rest = x - two_prod(root, root);
  return wide_of(root, rest.high * 0.5f / root);
}
static inline Wide m_fabs(Wide x) { return x.high < 0 ? -x : x; }

#endif
