/* special_float64.h: the functions of float64_ops.h's ops: those of special.h, but without
 * branches, so that loops over them are vectorized. Written as those of maths_float32.h, whose
 * remarks hold here too. The polynomials interpolate at Chebyshev's nodes. */
#ifndef LT_CPU_SPECIAL_FLOAT64_H
#define LT_CPU_SPECIAL_FLOAT64_H

#include "bessel_float64.h"

/* ---- exponentials ---------------------------------------------------------------------------- */

/* e^x = 2^n (1 + t + low); bits: those of 2^n, without the exponent's bias */
typedef struct lt_ExpExact {
  double t, low;
  uint64_t bits;
} lt_ExpExact;

/* Returns the parts of e^x, |x| <= 760: 2^-60. The first part of log(2) has 32 bits, so that its
 * multiple is exact. */
LT_MATHS lt_ExpExact lt_exp_exact(double x) {
  double shifted = MADDD(x, 1.4426950408889634, 0x1.8p52), n = shifted - 0x1.8p52;
  double u = MADDD(n, -0x1.62e42feep-1, x), w = n * 0x1.a39ef35793c76p-33;
  double r = u - w, r_low = (u - r) - w;
  double p = 2.0914686968086876e-09;
  p = MADDD(p, r, 2.5105217004720745e-08);
  p = MADDD(p, r, 2.75572736431103e-07);
  p = MADDD(p, r, 2.7557255400206422e-06);
  p = MADDD(p, r, 2.4801587325547743e-05);
  p = MADDD(p, r, 0.00019841269874820627);
  p = MADDD(p, r, 0.0013888888888883748);
  p = MADDD(p, r, 0.008333333333326136);
  p = MADDD(p, r, 0.04166666666666667);
  p = MADDD(p, r, 0.1666666666666667);
  p = MADDD(p, r, 0.5);
  double q = p * r * r, t = r + q;
  return (lt_ExpExact){t, ((r - t) + q) + r_low, lt_bits64(shifted) << 52};
}

/* Returns e^x - 1. It is computed as a quarter, which does not overflow before the result. */
LT_MATHS double lt_expm1_exact(double x) {
  double most = x > 710 ? 710.0 : x;
  lt_ExpExact e = lt_exp_exact(most < -40 ? -40.0 : most);
  double power = lt_double(e.bits + 0x3fd0000000000000u), less = power - 0.25, part = power * e.t;
  double y = less + part, low = ((less - y) + part) + power * e.low;
  return fabs(x) < 0x1p-60 ? x : 4 * (y + low);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* With f = e^-|x|: x (2 f + f^2) / (2 + 2 f + f^2) below 0, else x (1 + 2 f) / (1 + 2 f + 2 f^2).
 * The sums have two parts. Where the result may be denormal, f is scaled, as its square is too
 * small to matter. From 40 on, the result is x. */
LT_MATHS double lt_mish(double x) {
  const double size = fabs(x), scale = x < -600 ? 0x1p-200 : 1;
  const bool below = x < 0;
  lt_ExpExact e = lt_exp_exact(size > 760 ? -760.0 : -size);
  double power = lt_double(e.bits + (x < -600 ? 0x4c70000000000000u : 0x3ff0000000000000u));
  double part = power * e.t, f = power + part, f_low = ((power - f) + part) + power * e.low;
  double square = f * f, square_low = MADDD(f, f, -square) + 2 * f * f_low;
  double first = below ? 2 * f : 1.0, second = below ? square : 2 * f, over = first + second;
  double over_low = ((first - over) + second) + 2 * f_low + (below ? square_low : 0.0);
  double third = below ? 2.0 : over, fourth = below ? over : 2 * square, under = third + fourth;
  double under_low = ((third - under) + fourth) + over_low + (below ? 0.0 : 2 * square_low);
  double inverse = 1 / under, q = x < -760 ? 0.0 : over * inverse, y = x * q;
  double q_low = (MADDD(-q, under, over) + (over_low - q * under_low)) * inverse;
  y = copysign(y + (MADDD(x, q, -y) + x * (x < -760 ? 0.0 : q_low)), x) * scale;
  return x > 40 ? x : y;
}

/* x, or alpha (e^(x / alpha) - 1) where x is negative; of the quotient's error, alpha is a factor
 * already. */
LT_MATHS double lt_celu(double x, double alpha) {
  double v = x / alpha, less = lt_expm1_exact(v), lost = MADDD(-v, alpha, x);
  double more = (v > -40) & (less < (double)INFINITY) ? lost * (less + 1) : 0.0;
  double below = MADDD(alpha, less, more);
  return x < 0 ? below : x;
}

/* The scale, and minus the scale times alpha, so that there is one rounding. */
#define LT_SELU_SCALE 1.0507009873554804934193349852946
#define LT_SELU_LEAST -1.7580993408473768599402175208123
LT_MATHS double lt_selu(double x) {
  double below = -LT_SELU_LEAST * lt_m_expm1(x);
  return x > 0 ? LT_SELU_SCALE * x : below;
}

/* ---- logit ----------------------------------------------------------------------------------- */

/* Near 1/2, where the result is near 0, the quotient is 1 + q. What the roundings of it and of
 * 1 - v lose is added to the logarithm: log(y + d) is about log(y) + d / y. The middle is a number,
 * not a condition, for which compilers would compute two logarithms. */
LT_MATHS double lt_logit(double x, double eps) {
  double most = 1 - eps, below = most < x ? most : x, inner = x < eps ? eps : below;
  double v = eps >= 0 ? inner : x, w = 1 - v, middle = (v > 0.25) & (v < 0.75) ? 1.0 : 0.0;
  double q = (v * (1 + middle) - middle) / w, quotient = middle + q;
  double lost = ((q - (quotient - middle)) * w - q * ((1 - w) - v)) / v;
  return lt_m_log(quotient) + (lost == lost ? lost : 0); /* NaN at 0 and 1 */
}

/* ---- sinc ------------------------------------------------------------------------------------ */

/* By r, which is x without the nearest integer n: sin(pi x) = sin(pi r), of odd n -sin(pi r). */
LT_MATHS double lt_sinc(double x) {
  double n = rint(x), r = x - n, odd = n - 2 * rint(0.5 * n);
  double sine = r * lt_sin_pi_wide(r * r), y = sine / (3.14159265358979323846 * x);
  y = odd != 0 ? -y : y;
  return x == 0 ? 1 : y;
}

/* ---- logarithms ------------------------------------------------------------------------------ */

LT_MATHS double lt_xlogy(double x, double y) {
  double product = x * lt_m_log(y);
  product = x == 0 ? 0.0 : product;
  return y != y ? y : product;
}

LT_MATHS double lt_entr(double x) {
  double y = -x * lt_m_log(x);
  y = x < 0 ? -(double)INFINITY : y;
  return x == 0 ? 0.0 : y;
}

/* ---- representation -------------------------------------------------------------------------- */

/* As lt_nextafterf. A narrower dtype is computed times a power of two, which makes its denormal
 * numbers those of double. */
LT_MATHS double lt_nextafter(double x, double y, double limit) {
  bool half = limit < 1e5, narrow = limit < 1e39;
  double scale = half ? 0x1p-1008 : narrow ? 0x1p-896 : 1, back = 1 / scale, a = fabs(x);
  uint64_t step = (uint64_t)1 << (half ? 42 : !narrow ? 0 : limit < 3.39e38 ? 45 : 29);
  bool inward = (x != 0) & ((x > 0) != (y > x));
  double next = lt_double(lt_bits64(a * scale) + (inward ? 0 - step : step)) * back;
  next = next > limit ? (double)INFINITY : next;
  next = a < (double)INFINITY ? next : limit;
  next = copysign(next, x == 0 ? y : x);
  next = x == y ? y : next;
  return (x != x) | (y != y) ? x + y : next;
}

/* ---- the normal distribution ----------------------------------------------------------------- */

/* Uses erfc(t) / 2, t = -x / sqrt(2). What the rounding of t loses is a factor of the result: the
 * function's slope is about -2 t times the function where t is large. Only FMA finds it all. */
LT_MATHS double lt_ndtr(double x) {
  double t = -0.70710678118654752 * x, y = 0.5 * lt_m_erfc(t);
  double lost = MADDD(-0.70710678118654752, x, -t) + 4.8336466567264567e-17 * x;
  return (t > 0.5) & (t < 28) ? MADDD(-2 * t * lost, y, y) : y;
}

/* A coefficient of a polynomial whose values are multiplied by `factor`, a constant, and what
 * factor - 1 loses as a double. */
#define FIT(c) (double)(factor * c##L)
#define LOST   (double)(factor - 1 - (double)(factor - 1))

/* Return the inverse of erf, times a factor, at v + rest >= 0 and w = -log(1 - v^2) up to 6, and
 * from the root of w up to 4, to 9 and beyond. */
LT_MATHS double lt_erfinv_near(double v, double rest, double w, long double factor) {
  double t = w - 3;
  double near = FIT(4.7641416150307117e-21);
  near = MADDD(near, t, FIT(-2.3828152724425424e-20));
  near = MADDD(near, t, FIT(-3.4201674431444335e-19));
  near = MADDD(near, t, FIT(3.0337490945071867e-18));
  near = MADDD(near, t, FIT(4.259585252275846e-18));
  near = MADDD(near, t, FIT(-1.7460857583737874e-16));
  near = MADDD(near, t, FIT(7.9173183432153629e-16));
  near = MADDD(near, t, FIT(3.9551005564664719e-15));
  near = MADDD(near, t, FIT(-6.4746232898755483e-14));
  near = MADDD(near, t, FIT(2.0049511097635767e-13));
  near = MADDD(near, t, FIT(2.0972282099791372e-12));
  near = MADDD(near, t, FIT(-2.3620541362888241e-11));
  near = MADDD(near, t, FIT(3.9436921702631364e-11));
  near = MADDD(near, t, FIT(9.9248764830986335e-10));
  near = MADDD(near, t, FIT(-8.4446437620706419e-9));
  near = MADDD(near, t, FIT(1.6452030973999529e-9));
  near = MADDD(near, t, FIT(4.4504981857333218e-7));
  near = MADDD(near, t, FIT(-3.0831515502401017e-6));
  near = MADDD(near, t, FIT(-3.4669679897495753e-6));
  near = MADDD(near, t, FIT(0.00020546222838170472));
  near = MADDD(near, t, FIT(-0.0014525684620538481));
  near = MADDD(near, t, FIT(-0.0013804298348441337));
  near = MADDD(near, t, FIT(0.24577169367069063));
  return MADDD(v, FIT(0.88622692545275801), MADDD(rest, FIT(0.88622692545275801), v * (near * w)));
}
LT_MATHS double lt_erfinv_mid(double root, long double factor) {
  double t = root - 3.25;
  double y = FIT(1.5127613405183779e-9);
  y = MADDD(y, t, FIT(-1.0405432411954159e-9));
  y = MADDD(y, t, FIT(-9.28201272086638e-9));
  y = MADDD(y, t, FIT(2.5539333451695912e-8));
  y = MADDD(y, t, FIT(-1.7504397528245447e-8));
  y = MADDD(y, t, FIT(-9.6486275916245395e-8));
  y = MADDD(y, t, FIT(3.9719743630880873e-7));
  y = MADDD(y, t, FIT(-6.1936974723147629e-7));
  y = MADDD(y, t, FIT(-4.6462528844941541e-7));
  y = MADDD(y, t, FIT(5.0822925583583951e-6));
  y = MADDD(y, t, FIT(-1.380781020581443e-5));
  y = MADDD(y, t, FIT(1.7074770191593304e-5));
  y = MADDD(y, t, FIT(2.4145130237802287e-5));
  y = MADDD(y, t, FIT(-0.00022201675770004902));
  y = MADDD(y, t, FIT(0.00085602607046262906));
  y = MADDD(y, t, FIT(-0.0024458934121269065));
  y = MADDD(y, t, FIT(0.004652609839222117));
  y = MADDD(y, t, FIT(0.0055052352452993271) + LOST);
  y = MADDD(y, t, FIT(-0.16615427689675745) + 3.25 * LOST);
  return root + MADDD(root, (double)(factor - 1), y);
}
LT_MATHS double lt_erfinv_far(double root, long double factor) {
  double t = root - 6.5;
  double y = FIT(6.8987440284892988e-19);
  y = MADDD(y, t, FIT(-5.0316720289686199e-18));
  y = MADDD(y, t, FIT(1.8300673956851761e-18));
  y = MADDD(y, t, FIT(5.6764138270741435e-17));
  y = MADDD(y, t, FIT(-4.5314860960212338e-17));
  y = MADDD(y, t, FIT(-4.0739108785864342e-16));
  y = MADDD(y, t, FIT(-8.6250739002701848e-17));
  y = MADDD(y, t, FIT(6.548925384117893e-15));
  y = MADDD(y, t, FIT(-3.3624085221023577e-14));
  y = MADDD(y, t, FIT(2.138587757385376e-13));
  y = MADDD(y, t, FIT(-1.5253223466051135e-12));
  y = MADDD(y, t, FIT(1.0423005003257127e-11));
  y = MADDD(y, t, FIT(-6.9251473413505009e-11));
  y = MADDD(y, t, FIT(4.5062362113685505e-10));
  y = MADDD(y, t, FIT(-2.8606851799093586e-9));
  y = MADDD(y, t, FIT(1.7614829502068557e-8));
  y = MADDD(y, t, FIT(-1.0417851196280079e-7));
  y = MADDD(y, t, FIT(5.8053828547784141e-7));
  y = MADDD(y, t, FIT(-2.9178744346997939e-6));
  y = MADDD(y, t, FIT(1.1561063007122907e-5));
  y = MADDD(y, t, FIT(-1.0793876563832753e-5));
  y = MADDD(y, t, FIT(-0.00051064093057959093));
  y = MADDD(y, t, FIT(0.0091093904000873669) + LOST);
  y = MADDD(y, t, FIT(-0.13540667356532864) + 6.5 * LOST);
  return root + MADDD(root, (double)(factor - 1), y);
}
LT_MATHS double lt_erfinv_farther(double root, long double factor) {
  double t = root - 18;
  double y = FIT(-4.9107912859868566e-33);
  y = MADDD(y, t, FIT(1.0693417142551073e-31));
  y = MADDD(y, t, FIT(7.3055059031629335e-31));
  y = MADDD(y, t, FIT(-2.2860946134443748e-29));
  y = MADDD(y, t, FIT(-2.1461807641392587e-28));
  y = MADDD(y, t, FIT(5.901139028383676e-27));
  y = MADDD(y, t, FIT(-1.7660552233518218e-26));
  y = MADDD(y, t, FIT(2.268120084228274e-26));
  y = MADDD(y, t, FIT(-7.6536452101329608e-24));
  y = MADDD(y, t, FIT(1.4849172341780779e-22));
  y = MADDD(y, t, FIT(-1.9836808067459606e-21));
  y = MADDD(y, t, FIT(3.0209468292726258e-20));
  y = MADDD(y, t, FIT(-4.7770196325648842e-19));
  y = MADDD(y, t, FIT(6.9446387137979441e-18));
  y = MADDD(y, t, FIT(-9.0752829515995934e-17));
  y = MADDD(y, t, FIT(9.6113755893257829e-16));
  y = MADDD(y, t, FIT(-3.8645704425874888e-15));
  y = MADDD(y, t, FIT(-2.0173315357390331e-13));
  y = MADDD(y, t, FIT(9.1617212257195491e-12));
  y = MADDD(y, t, FIT(-2.7922694209652745e-10));
  y = MADDD(y, t, FIT(7.435058332982007e-9));
  y = MADDD(y, t, FIT(-1.8600048046396321e-7));
  y = MADDD(y, t, FIT(4.5244165300236424e-6));
  y = MADDD(y, t, FIT(-0.00010973764597159976));
  y = MADDD(y, t, FIT(0.0027414287547793272) + LOST);
  y = MADDD(y, t, FIT(-0.07702178326292677) + 18 * LOST);
  return root + MADDD(root, (double)(factor - 1), y);
}

#undef FIT
#undef LOST

/* `near`: the caller guarantees that x is in the range of lt_near_range64, where w < 6. */
LT_MATHS double lt_erfinv_wide(double x, bool near) {
  double v = fabs(x), w = -lt_m_log((1 - v) * (1 + v)), y = lt_erfinv_near(v, 0, w, 1);
  if (near) return copysign(y, x);
  double root = sqrt(w), mid = lt_erfinv_mid(root, 1), far = lt_erfinv_far(root, 1);
  y = w < 6 ? y : root < 4 ? mid : far;
  y = v < 1 ? y : (double)NAN;
  y = v == 1 ? (double)INFINITY : y;
  return copysign(y, x);
}

LT_MATHS double lt_ndtri_wide(double p, bool near) {
  const long double root_2 = 1.41421356237309504880L;
  double x = 2 * p - 1, v = fabs(x), w = -lt_m_log(4 * p * (1 - p));
  double rest = (1 + x) - 2 * p; /* of 1 - 2 p where that is positive; 0 elsewhere */
  double y = lt_erfinv_near(v, rest, w, root_2);
  if (near) return copysign(y, x);
  double root = sqrt(w), mid = lt_erfinv_mid(root, root_2), far = lt_erfinv_far(root, root_2);
  double farther = lt_erfinv_farther(root, root_2);
  y = w < 6 ? y : root < 4 ? mid : root < 9 ? far : farther;
  y = (p > 0) & (p < 1) ? y : (double)NAN;
  y = (p == 0) | (p == 1) ? (double)INFINITY : y;
  return copysign(y, x);
}

#define lt_erfinv(x) lt_erfinv_wide(x, LT_NEAR)
#define lt_ndtri(x)  lt_ndtri_wide(x, LT_NEAR)

/* Returns whether the loop of src/cpu/special.c computes an element x: the vector loops of Bessel
 * functions have too few digits of pi for large ones. */
LT_MATHS bool lt_is_left(const char *op, double x) {
  if (__builtin_strstr(op, "bessel_j")) return !(fabs(x) < 0x1p20);
  return !((x >= 0x1p-1022) & (x < 0x1p20)); /* Y */
}

/* Returns the range of an op, as lt_near_range, but of the upper 32 bits of x. */
LT_MATHS lt_Range lt_near_range64(const char *op) {
#define IS(name) (__builtin_strcmp(op, name) == 0)
  const uint32_t magnitude = ~LT_SIGN_BIT;
  if (IS("erfinv")) return (lt_Range){magnitude, 0, 0x3fefefffu}; /* |x| < 1 - 2^-9 */
  if (IS("special_ndtri"))
    return (lt_Range){~0u, 0x3f500000u, 0x009ff7ffu}; /* 2^-10 to 1 - 2^-10 */
  if (__builtin_strstr(op, "special_bessel_j"))
    return (lt_Range){magnitude, 0, 0x400fffffu}; /* |x| < 4 */
  if (IS("exp") || IS("sinh") || IS("cosh") || IS("sigmoid") || IS("silu") || IS("logsigmoid") ||
      IS("expm1"))
    return (lt_Range){magnitude, 0, 0x408617ffu};               /* |x| < 707 */
  if (IS("exp2")) return (lt_Range){magnitude, 0, 0x408fdfffu}; /* |x| < 1020 */
  if (IS("elu") || IS("selu") || IS("celu")) return (lt_Range){~0u, 0, 0x7fffffffu}; /* no sign */
  if (IS("sin") || IS("cos")) return (lt_Range){magnitude, 0, 0x414fffffu};          /* 2^22 */
  if (IS("acosh")) return (lt_Range){~0u, 0x3ff00000u, 0x3fefffffu}; /* 1 to finite */
  if (IS("atanh")) return (lt_Range){magnitude, 0, 0x3fefffffu};     /* |x| < 1 */
  if (IS("log1p")) return (lt_Range){~0u, 0, 0xbfefffffu};           /* more than -1 */
  if (IS("log") || IS("log2") || IS("log10"))
    return (lt_Range){~0u, 0x00100000u, 0x7fdfffffu}; /* normal and finite */
  return (lt_Range){0, 0, 0};
#undef IS
}

#endif
