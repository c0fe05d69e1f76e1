/* activations.h: the float32 loops' functions of several steps, which need double in places: where
 * float32 would have to correct its rounding errors, double is as fast. Written as those of
 * maths_float32.h, whose remarks hold here too. */
#ifndef LT_CPU_ACTIVATIONS_H
#define LT_CPU_ACTIVATIONS_H

#include "maths_float32.h"

#ifdef LT_HAS_FMA
#define MADDD(a, b, c) __builtin_fma(a, b, c)
#else
#define MADDD(a, b, c) ((a) * (b) + (c))
#endif

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

/* Returns x where the mask's bits are 1, and y where they are 0. */
LT_MATHS double lt_masked(uint64_t mask, double x, double y) {
  return lt_double((lt_bits64(x) & mask) | (lt_bits64(y) & ~mask));
}

/* Return the first bound that is NaN, else x. The bits are chosen, since gcc would merge a choice
 * of numbers with the comparisons before it and find no maxima and minima among them. */
LT_MATHS float lt_m_nan_orf(float lo, float hi, float x) {
  uint32_t low = lo != lo ? ~0u : 0, any = hi != hi ? ~0u : low;
  uint32_t bound = ((lt_bits(lo) & low) | (lt_bits(hi) & ~low)) & any;
  return lt_float(bound | (lt_bits(x) & ~any));
}
LT_MATHS double lt_m_nan_or(double lo, double hi, double x) {
  uint64_t low = lo != lo ? ~(uint64_t)0 : 0, any = hi != hi ? ~(uint64_t)0 : low;
  uint64_t bound = ((lt_bits64(lo) & low) | (lt_bits64(hi) & ~low)) & any;
  return lt_double(bound | (lt_bits64(x) & ~any));
}

/* ---- in double ------------------------------------------------------------------------------- */

/* Returns the polynomial of x with n > 1 coefficients, the highest power's first, as two of x^2,
 * which the CPU computes side by side. */
LT_MATHS double lt_even_odd(double x, int n, const double *c) {
  double square = x * x, p[2] = {c[0], c[1]};
#pragma GCC unroll 32
  for (int i = 2; i < n; i++) p[i % 2] = MADDD(p[i % 2], square, c[i]);
  return MADDD(p[n % 2], x, p[(n - 1) % 2]);
}
#define LT_EVEN_ODD(x, c) lt_even_odd(x, (int)(sizeof(c) / sizeof *(c)), c)

/* Returns 1 / x with an error of 2^-45, for x in the range of float. */
LT_MATHS double lt_reciprocal(double x) {
  double y = (double)(1 / (float)x);
  return y * MADDD(-x, y, 2.0);
}

/* e^x = power (1 + r + q r^2) */
typedef struct lt_ExpWide {
  double r, q, power;
} lt_ExpWide;

/* Returns the parts of e^x, |x| <= 700: 2^-28.3 */
LT_MATHS lt_ExpWide lt_exp_wide_parts(double x) {
  double shifted = MADDD(x, 1.4426950408889634, 0x1.8p52), n = shifted - 0x1.8p52;
  double r = MADDD(n, -0.69314718055994531, x);
  double q = 0.0013816177154013683;
  q = MADDD(q, r, 0.0083687625153800165);
  q = MADDD(q, r, 0.041668370766734769);
  q = MADDD(q, r, 0.16666520256479231);
  q = MADDD(q, r, 0.49999993478180937);
  return (lt_ExpWide){r, q, lt_double((lt_bits64(shifted) << 52) + 0x3ff0000000000000u)};
}

/* Returns e^x, |x| <= 700. */
LT_MATHS double lt_exp_wide(double x) {
  lt_ExpWide e = lt_exp_wide_parts(x);
  return MADDD(MADDD(e.q, e.r, 1.0), e.r, 1.0) * e.power;
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

/* Returns x sigmoid(gate). */
LT_MATHS float lt_gluf(float x, float gate, bool near) {
  lt_Sum s = lt_one_plus(lt_exp_split(-gate));
  float q = 1 / s.sum, y = x * MADD(q, s.over * q, q);
  if (near) return y;
  y = gate > 80 ? x : y;
  return gate < -80 ? lt_vanishing((double)x, (double)gate) : y;
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

/* Returns log(1 + e^x), x <= 0. */
LT_MATHS float lt_log1p_expf(float x) { return lt_log1pf(lt_exp_belowf(x), true); }

LT_MATHS float lt_softplusf(float x, float beta, float threshold) {
  double v = (double)x * (double)beta, a = fabs(v);
  a = a > 700 ? 700.0 : a;
  double y = (v < 0 ? 0.0 : v) + lt_log1p_wide(lt_exp_wide(-a));
  return v > (double)threshold ? x : (float)(y * (1 / (double)beta));
}

/* `near`: x is not negative. */
LT_MATHS float lt_eluf(float x, float alpha, bool near) {
  if (near) return x;
  lt_Pair e = lt_expm1_split(x < -87.0f ? -87.0f : x);
  float below = alpha * (e.high + e.low);
  return x < 0 ? below : x;
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

/* Returns erfc(x) for x > 4.5. From 10.1 on it is 0; what is too small for float is not converted,
 * because that takes long. */
LT_MATHS float lt_far_erfc(float x) {
  float size = fabsf(x);
  double wide = size > 10.1f ? 1.0 : (double)size;
  float y = (float)(lt_exp_wide(-(wide * wide)) * lt_erfcx_wide(wide));
  return size > 10.1f ? 0.0f : y;
}

LT_MATHS float lt_erfcf(float x, bool near) {
#ifdef LT_LIBMVEC_FLOAT32
  /* Within 1.4 units up to 4.5, off by 1.6 at 4.7 (measured); from 10 on scalar, so limited. */
  float y = erfcf(near ? x : lt_at_most(x, 5));
#else
  lt_Tail t = lt_erfc_tail(fabsf(x));
  float y = x < 0 ? (2 - t.high) - t.low : t.high + t.low;
#endif
  if (near) return y;
  y = x > 4.5f ? lt_far_erfc(x) : y;
  y = x < -4.5f ? 2.0f : y;
  return x == x ? y : x;
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

/* GELU, where gelu.h has no loop. */
LT_MATHS float lt_gelu_erff(float x, bool near) {
  lt_Tail t = lt_normal_tail(fabsf(x));
  float high = x * t.high, low = MADD(x, t.low, FUSED(x, t.high, -high));
  float y = lt_signed(x < 0 ? high + low : (x - high) - low, x);
  if (near) return y;
  y = x > 11.0f ? x : y;
  return x < -11.0f ? lt_vanishing((double)x * lt_far_normal(x), lt_half_square(x)) : y;
}

/* Returns grad (Phi(x) + x phi(x)). */
LT_MATHS float lt_gelu_erf_backwardf(float grad, float x, bool near) {
  lt_Tail t = lt_normal_tail(fabsf(x));
  float phi = x < 0 ? t.high : 1 - t.high, y = MADD(x * 0.398942280f, t.power, phi) * grad;
  if (near) return y;
  y = x > 11.0f ? grad * (1 + (x - x)) : y;
  double factor = lt_far_normal(x) + 0.39894228040143268 * (double)x;
  return x < -11.0f ? lt_vanishing((double)grad * factor, lt_half_square(x)) : y;
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
  if (ANY_OF("exp", "expm1", "", "")) return (lt_Range){magnitude, 0, 0x42ae0000u}; /* |x| <= 87 */
  if (ANY_OF("sigmoid", "silu", "_silu_backward", "logsigmoid") || ANY_OF("_glu", "", "", ""))
    return (lt_Range){magnitude, 0, 0x42a00000u};                               /* 80 */
  if (ANY_OF("erfc", "", "", "")) return (lt_Range){magnitude, 0, 0x40900000u}; /* 4.5 */
  if (ANY_OF("_gelu_erf", "_gelu_erf_backward", "", ""))
    return (lt_Range){magnitude, 0, 0x41300000u};                                 /* 11 */
  if (ANY_OF("special_ndtr", "", "", "")) return (lt_Range){~0u, 0, 0xc1300000u}; /* -11 <= x */
  if (ANY_OF("power_inverse_square", "", "", ""))
    return (lt_Range){magnitude, 0x21800000u, 0x3c000000u};                     /* 2^-60 to 2^60 */
  if (ANY_OF("exp2", "", "", "")) return (lt_Range){magnitude, 0, 0x42fa0000u}; /* 125 */
  if (ANY_OF("sin", "cos", "tan", "")) return (lt_Range){magnitude, 0, 0x45800000u}; /* 2^12 */
  if (ANY_OF("_gelu_tanh", "_gelu_tanh_backward", "", ""))
    return (lt_Range){magnitude, 0, 0x41000000u};                                    /* 8 */
  if (ANY_OF("acosh", "", "", "")) return (lt_Range){~0u, 0x3f800000u, 0x0a000000u}; /* to 2^20 */
  if (ANY_OF("asinh", "", "", "")) return (lt_Range){magnitude, 0, 0x49800000u};     /* 2^20 */
  if (ANY_OF("lgamma", "elu", "selu", "celu"))
    return (lt_Range){~0u, 0, 0x7f800000u}; /* not negative */
  if (ANY_OF("special_bessel_j0", "special_bessel_j1", "special_spherical_bessel_j0", ""))
    return (lt_Range){magnitude, 0, 0x49800000u}; /* 2^20 */
  if (ANY_OF("special_bessel_y0", "special_bessel_y1", "", ""))
    return (lt_Range){~0u, 1, 0x497fffffu}; /* positive, to 2^20 */
  if (ANY_OF("digamma", "_trigamma", "", "")) return (lt_Range){~0u, 1, 0x7f7fffffu}; /* positive */
  if (ANY_OF("log1p", "", "", "")) return (lt_Range){~0u, 0, 0xbf7fffffu}; /* more than -1 */
  if (ANY_OF("log", "log2", "log10", ""))
    return (lt_Range){~0u, 0x00800000u, 0x7effffffu}; /* normal and finite */
  return (lt_Range){0, 0, 0};
#undef ANY_OF
}

#endif
