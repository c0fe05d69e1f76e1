/* float_meanings.h: the exact results of elementwise ops for floats, in long double, and how
 * accurate an op must be. test_elementwise.c compares every dtype and layout with them, test_ulp.c
 * float32 to 1.5 units in the last place. An op that is not listed here is compared with its
 * expression in ops.def, computed in double: a formula that loses digits needs a line here. */
#ifndef LT_TESTS_FLOAT_MEANINGS_H
#define LT_TESTS_FLOAT_MEANINGS_H

#include "opids.h"
#include "core.h"
#include "row_texts.h"

#include <math.h>

#define LT_SPECIAL static __attribute__((unused))
#include "special.h"

typedef long double Real;

/* The cumulative distribution function and the density of the normal distribution. */
static Real normal_below(Real x) { return 0.5L * erfcl(-x / sqrtl(2)); }
static Real normal_density(Real x) { return expl(-x * x / 2) / sqrtl(2 * acosl(-1)); }
static Real sigmoid(Real x) { return 1 / (1 + expl(-x)); }
static Real silu(Real x) { return x / (1 + expl(-x)); }
/* 0.5 (1 + tanh(v)) = sigmoid(2 v), without cancellation. */
static Real gelu_tanh_angle(Real y) { return sqrtl(8 / acosl(-1)) * (y + 0.044715L * y * y * y); }
static Real gelu_tanh(Real y) { return y / (1 + expl(-gelu_tanh_angle(y))); }
static Real gelu_erf(Real y) { return y * normal_below(y); }
static Real silu_slope(Real y) { return sigmoid(y) + y * sigmoid(y) * sigmoid(-y); }
static Real gelu_tanh_slope(Real y) {
  Real v = gelu_tanh_angle(y), rise = sqrtl(8 / acosl(-1)) * (1 + 3 * 0.044715L * y * y);
  return sigmoid(v) + y * rise * sigmoid(v) * sigmoid(-v);
}
static Real gelu_erf_slope(Real y) { return normal_below(y) + y * normal_density(y); }
/* sin(pi x) / (pi x), with sin(pi x) = sin(pi (1 - x)), and exactly 0 at integers. */
static Real sinc(Real x) {
  Real r = remainderl(x, 2), t = r > 0.5L ? 1 - r : r < -0.5L ? -1 - r : r;
  return x == 0 ? 1 : sinl(acosl(-1) * t) / (acosl(-1) * x);
}
static Real floor_modulo(Real x, Real y) {
  Real r = fmodl(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
/* Python's //: a finite number divided by infinity is 0 or -1. */
static Real floor_quotient(Real x, Real y) {
  if (isinf(y) && isfinite(x)) return x != 0 && (x < 0) != (y < 0) ? -1 : 0;
  return y == 0 || isinf(x) ? x / y + (isinf(x) ? NAN : 0) : rintl((x - floor_modulo(x, y)) / y);
}
static Real clamp(Real x, Real lo, Real hi) {
  if (isnan(x) || isnan(lo) || isnan(hi)) return NAN;
  return fminl(fmaxl(x, lo), hi);
}

/* The accuracy that is required, in units in the last place; 0 is exact. FAIR: a formula of several
 * steps, which is only checked for finite results of moderate inputs. */
enum { EXACT = 0, FUNCTION = 4, FAIR = 64, UNKNOWN = -1 };

/* Computes an op's result for floats and returns the required accuracy. `limit` is the largest
 * finite number; `narrow`: the op is computed in float32. */
static int float_reference(lt_OpId op, Real x, Real y, Real z, Real a, Real b, Real limit,
                           bool narrow, Real *r) {
#define IS(name, how, value)                                                                       \
  case LT_OP_##name:                                                                               \
    *r = (value);                                                                                  \
    return how;
  switch (op) {
    IS(copy, EXACT, x)
    IS(fill, EXACT, a)
    IS(neg, EXACT, -x)
    IS(abs, EXACT, fabsl(x))
    IS(conj, EXACT, x)
    IS(angle, FUNCTION, isnan(x) ? x : x < 0 ? acosl(-1) : 0)
    IS(sign, EXACT, x > 0 ? 1 : x < 0 ? -1 : 0)
    IS(square, FUNCTION, x * x)
    IS(relu, EXACT, isnan(x) ? x : x > 0 ? x : 0)
    IS(floor, EXACT, floorl(x))
    IS(ceil, EXACT, ceill(x))
    IS(_round, EXACT, rintl(x))
    IS(trunc, EXACT, truncl(x))
    IS(frac, EXACT, x - truncl(x))
    IS(exp, FUNCTION, expl(x))
    IS(exp2, FUNCTION, exp2l(x))
    IS(expm1, FUNCTION, expm1l(x))
    IS(log, FUNCTION, logl(x))
    IS(log2, FUNCTION, log2l(x))
    IS(log10, FUNCTION, log10l(x))
    IS(log1p, FUNCTION, log1pl(x))
    IS(sqrt, FUNCTION, sqrtl(x))
    IS(rsqrt, FUNCTION, 1 / sqrtl(x))
    IS(reciprocal, FUNCTION, 1 / x)
    IS(sin, FUNCTION, sinl(x))
    IS(cos, FUNCTION, cosl(x))
    IS(tan, FUNCTION, tanl(x))
    IS(asin, FUNCTION, asinl(x))
    IS(acos, FUNCTION, acosl(x))
    IS(atan, FUNCTION, atanl(x))
    IS(sinh, FUNCTION, sinhl(x))
    IS(cosh, FUNCTION, coshl(x))
    IS(tanh, FUNCTION, tanhl(x))
    IS(asinh, FUNCTION, asinhl(x))
    IS(acosh, FUNCTION, acoshl(x))
    IS(atanh, FUNCTION, atanhl(x))
    IS(erf, FUNCTION, erfl(x))
    IS(erfc, FUNCTION, erfcl(x))
    IS(sigmoid, FAIR, sigmoid(x))
    IS(logsigmoid, FAIR, x < 0 ? x - log1pl(expl(x)) : -log1pl(expl(-x)))
    IS(silu, FAIR, silu(x))
    IS(_gelu_erf, FAIR, gelu_erf(x))
    IS(_gelu_tanh, FAIR, gelu_tanh(x))
    IS(softplus, FAIR, x * a > b ? x : log1pl(expl(x * a)) / a)
    IS(leaky_relu, FUNCTION, x > 0 ? x : x * a)
    IS(elu, FAIR, x < 0 ? a * expm1l(x) : x)
    IS(_nan_to_num, EXACT, isnan(x) ? a : isinf(x) ? (x > 0 ? y : z) : x)
    IS(_round_decimals, EXACT,
       narrow ? (Real)(rintf((float)x * (float)a / (float)b) * (float)b / (float)a)
              : (Real)(rint((double)x * (double)a / (double)b) * (double)b / (double)a))
    IS(_sinc, FAIR, sinc(x))
    IS(nextafter, EXACT, lt_nextafter((double)x, (double)y, (double)limit))
    IS(isnan, EXACT, isnan(x))
    IS(isinf, EXACT, isinf(x) != 0)
    IS(isfinite, EXACT, isfinite(x))
    IS(signbit, EXACT, signbit(x) != 0)
    IS(logical_not, EXACT, x == 0)
    IS(add, FAIR, x + a * y)
    IS(sub, FAIR, x - a * y)
    IS(mul, FUNCTION, x * y)
    IS(_true_divide, FUNCTION, x / y)
    IS(_trunc_divide, EXACT,
       truncl(narrow ? (Real)((float)x / (float)y) : (Real)((double)x / (double)y)))
    IS(floor_divide, EXACT, floor_quotient(x, y))
    IS(remainder, FUNCTION, floor_modulo(x, y))
    IS(fmod, EXACT, fmodl(x, y))
    IS(pow, FUNCTION, powl(x, y))
    IS(maximum, EXACT, isnan(x) || isnan(y) ? NAN : fmaxl(x, y))
    IS(minimum, EXACT, isnan(x) || isnan(y) ? NAN : fminl(x, y))
    IS(fmax, EXACT, fmaxl(x, y))
    IS(fmin, EXACT, fminl(x, y))
    IS(atan2, FUNCTION, atan2l(x, y))
    IS(hypot, FUNCTION, hypotl(x, y))
    IS(copysign, EXACT, copysignl(x, y))
    IS(eq, EXACT, x == y)
    IS(ne, EXACT, x != y)
    IS(lt, EXACT, x < y)
    IS(le, EXACT, x <= y)
    IS(gt, EXACT, x > y)
    IS(ge, EXACT, x >= y)
    IS(logical_and, EXACT, x != 0 && y != 0)
    IS(logical_or, EXACT, x != 0 || y != 0)
    IS(logical_xor, EXACT, (x != 0) != (y != 0))
    IS(_where, EXACT, x != 0 ? y : z)
    IS(masked_fill, EXACT, y != 0 ? z : x)
    IS(_clamp, EXACT, clamp(x, y, z))
    IS(lerp, FAIR, x + z * (y - x))
    IS(addcmul, FAIR, x + a * y * z)
    IS(addcdiv, FAIR, x + a * y / z)
    IS(_relu_backward, EXACT, y <= 0 ? 0 : x)
    IS(_tanh_backward, FAIR, x * (1 - y * y))
    IS(_sigmoid_backward, FAIR, x * y * (1 - y))
    IS(_gelu_erf_backward, FAIR, x * gelu_erf_slope(y))
    IS(_gelu_tanh_backward, FAIR, x * gelu_tanh_slope(y))
    IS(_silu_backward, FAIR, x * silu_slope(y))
  default:
    if (!lt_float_text(op)) return UNKNOWN;
    *r = lt_float_text(op)((double)x, (double)y, (double)z, (double)a, (double)b);
    return FAIR;
  }
#undef IS
}

#endif
