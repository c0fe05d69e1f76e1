/* special.h: the special functions of ops.def's rows of type W, for cc and nvcc. They compute in
 * double, so that a float32 result is exact to half a unit in the last place or nearly so. A file
 * defines LT_SPECIAL, the qualifiers of the functions ("static", "static __device__"), before it
 * includes this one.
 *
 * Each function returns NaN for NaN and outside of its domain. Formulas are those of the NIST
 * Digital Library of Mathematical Functions (DLMF, dlmf.nist.gov), whose numbers the comments give,
 * where no other source is named.
 */
#ifndef LT_SPECIAL_H
#define LT_SPECIAL_H

#include <math.h>
#include <stdint.h>

#define LT_PI      3.14159265358979323846
#define LT_SQRT_PI 1.77245385090551602730
#define LT_SQRT_2  1.41421356237309504880
#define LT_EULER   0.57721566490153286061

#include "special/gamma.h"
#include "special/normal.h"
#include "special/bessel.h"
#include "special/polynomials.h"

/* ---- logarithms ------------------------------------------------------------------------------ */

/* x log(y), and 0 where x = 0, unless y is NaN. */
LT_SPECIAL double lt_xlogy(double x, double y) {
  if (y != y) return y;
  return x == 0 ? 0 : x * log(y);
}
LT_SPECIAL double lt_xlog1py(double x, double y) {
  if (y != y) return y;
  return x == 0 ? 0 : x * log1p(y);
}

/* -x log(x); 0 at 0, -inf below. */
LT_SPECIAL double lt_entr(double x) {
  if (x > 0) return -x * log(x);
  return x == 0 ? 0 : x != x ? x : -INFINITY;
}

/* log(x / (1 - x)); with eps >= 0, of x clamped to [eps, 1 - eps]. */
LT_SPECIAL double lt_logit(double x, double eps) {
  if (eps >= 0) x = x < eps ? eps : x > 1 - eps ? 1 - eps : x;
  return x > 0.25 && x < 0.75 ? log1p((2 * x - 1) / (1 - x)) : log(x / (1 - x));
}

/* ---- activations ----------------------------------------------------------------------------- */

LT_SPECIAL double lt_mish(double x) { return x * tanh(x > 30 ? x : log1p(exp(x))); }

LT_SPECIAL double lt_selu(double x) {
  return 1.0507009873554804934193349852946 *
         (x > 0 ? x : 1.6732632423543772848170429916717 * expm1(x));
}

/* x, or alpha (e^(x / alpha) - 1) where x is negative. */
LT_SPECIAL double lt_celu(double x, double alpha) { return x > 0 ? x : alpha * expm1(x / alpha); }

/* sin(pi x) / (pi x), of the remainder of x, in which the sine has its full accuracy. */
LT_SPECIAL double lt_sinc(double x) {
  if (x == 0) return 1;
  double rest = remainder(x, 2.0);
  return sin(LT_PI * rest) / (LT_PI * x);
}

/* ---- representation -------------------------------------------------------------------------- */

/* The number after x in direction of y, in the float dtype whose largest finite number is `limit`.
 * Each of them is a binary fraction with `digits` bits after the first, and its smallest normal
 * exponent is `least`. */
LT_SPECIAL double lt_nextafter(double x, double y, double limit) {
  int narrow = limit < 1e39, digits = limit < 1e5 ? 10 : limit < 3.39e38 ? 7 : 23;
  int least = limit < 1e5 ? -14 : -126, exponent;
  if (!narrow) return nextafter(x, y);
  if (x != x || y != y) return x + y;
  if (x == y) return y;
  if (x == 0) return copysign(ldexp(1.0, least - digits), y);
  int outward = (x > 0) == (y > x);
  if (isinf(x)) return copysign(limit, x);
  double part = fabs(frexp(x, &exponent)); /* in [0.5, 1) */
  exponent -= 1;
  if (!outward && part == 0.5 && exponent > least) exponent -= 1;
  double next =
      fabs(x) + (outward ? 1 : -1) * ldexp(1.0, (exponent > least ? exponent : least) - digits);
  return copysign(next > limit ? INFINITY : next, x);
}

/* x = mantissa * 2^exponent with a mantissa in [0.5, 1); 0, infinities and NaN have exponent 0. */
LT_SPECIAL double lt_mantissa(double x) {
  int exponent;
  return x - x == 0 ? frexp(x, &exponent) : x;
}
LT_SPECIAL double lt_exponent(double x) {
  int exponent = 0;
  if (x - x == 0) (void)frexp(x, &exponent);
  return exponent;
}

#endif
