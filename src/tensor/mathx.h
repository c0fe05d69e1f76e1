/* mathx.h: the macros and functions of ops.def's scalar expressions, with the same meaning for cc,
 * nvcc and the Metal compiler.
 *
 * A file of kernels defines, before it includes ops.def, for each compute type: T (the type), U
 * (its unsigned counterpart for wrapping integer arithmetic), M(f) (the maths function f for T)
 * and MAXFINITE. The macros here are expressions; none hides control flow. Longer formulas are
 * functions in the last part: they are defined for a type by including this file with
 * LT_MATHX_FLOAT, LT_MATHX_INTEGER or LT_MATHX_COMPLEX defined as the functions' qualifiers
 * ("static inline", "__device__"). For a complex T, a file also defines R (the type of its parts),
 * RM(f) (the maths function f for R), RE(z), IM(z) and MAKE(re, im).
 */
#ifndef LT_MATHX_H
#define LT_MATHX_H

#include <math.h>
#include <stdint.h>

#define WRAP(e) ((T)(e))

/* Integers: the smallest integer // -1 wraps. A divisor of 0 is an error that check_divisor
 * (device.h) reports; the loop itself computes 0, because a trap would end the process. A file that
 * has a faster division of the same results defines TRUNCDIV before it includes this one. */
#ifndef TRUNCDIV
#define TRUNCDIV(x, y) ((y) == 0 ? (T)0 : (y) == -1 ? (T)(0u - (U)(x)) : (T)((x) / (y)))
#define TRUNCMOD(x, y) ((y) == 0 || (y) == -1 ? (T)0 : (T)((x) % (y)))
#endif
#define MODULO(x, y)    lt_modulo(TRUNCMOD(x, y), y)
#define FLOORDIV(x, y)  lt_floordiv(TRUNCDIV(x, y), x, y)
#define SHIFTLEFT(x, y) ((y) < 0 || (y) >= (T)(8 * sizeof(T)) ? (T)0 : (T)((U)(x) << (y)))
#define SHIFTRIGHT(x, y)                                                                           \
  ((y) < 0 || (y) >= (T)(8 * sizeof(T)) ? ((x) < 0 ? (T)-1 : (T)0) : (T)((x) >> (y)))
#define IPOW(x, y) lt_ipow(x, y)
#define NOT(x)     (~(x))
#define GCD(x, y)  lt_gcd(x, y)
#define LCM(x, y)  lt_lcm(x, y)

/* Floats: Python's % and //. The quotient is computed from the remainder, so that
 * x == (x // y) * y + x % y. */
#define FMODULO(x, y)   lt_modulo(M(fmod)(x, y), y)
#define FFLOORDIV(x, y) lt_floordiv(M(fmod)(x, y), x, y)
#define POW(x, y)       lt_pow(x, y)

#define LERP(x, y, z) lt_plain_lerp(x, y, z)
#define ROUND_DECIMALS(x, a, b)                                                                    \
  ((b) == 1 ? M(rint)((x) * (a)) / (a) : M(rint)((x) * (a) / (b)) * (b) / (a))

/* Operations for which complex numbers need other code than C's operators. */
#define ANGLE(x) lt_plain_argument(x)
#ifdef LT_MATHX_COMPLEX
#define QUOTIENT(x, y)  lt_quotient(x, y)
#define SCALED_BY(a, y) lt_scaled(a, y)
#define CONJ(x)         MAKE(RE(x), -IM(x))
#define IS_REAL(x)      (IM(x) == 0)
#define LOGADDEXP(x, y) lt_logaddexp(x, y)
#define SGN(x)          lt_sgn(x)
#define FINITE_OR(x, nan, above, below)                                                            \
  MAKE(lt_plain_finite_or(RE(x), RE(nan), RE(above), RE(below)),                                   \
       lt_plain_finite_or(IM(x), RE(nan), RE(above), RE(below)))
#else
#define QUOTIENT(x, y)                  ((x) / (y))
#define SCALED_BY(a, y)                 ((a) * (y))
#define CONJ(x)                         (x)
#define IS_REAL(x)                      1
/* log(e^x + e^y) and log2(2^x + 2^y): the larger one plus a small term. */
#define LOGADDEXP(x, y)                 lt_larger_plus(x, y, LOG1P_EXP(-M(fabs)((x) - (y))))
#define LOGADDEXP2(x, y)                lt_larger_plus(x, y, LOG2_1P_EXP2(-M(fabs)((x) - (y))))
#define SGN(x)                          ((T)(((x) > 0) - ((x) < 0)))
#define FINITE_OR(x, nan, above, below) lt_plain_finite_or(x, nan, above, below)
#endif

/* NaN in any of the three gives NaN. If lo > hi, the result is hi. Comparisons with NaN are false,
 * so that x stays NaN; as maxima and minima these are single instructions. */
#define CLAMP(x, lo, hi)                                                                           \
  ((lo) != (lo) ? (lo) : (hi) != (hi) ? (hi) : CLAMP_TO_(hi, (lo) > (x) ? (lo) : (x)))
#define CLAMP_TO_(hi, least) ((hi) < (least) ? (hi) : (least))

/* The loss of a distance: distance^2 / 2 up to delta, then a line (Huber 1964). */
#define HUBER(distance, delta) lt_plain_huber(distance, delta)

/* The cross entropy of the probability x and the target y, by logarithms of at least -100. */
#define BINARY_ENTROPY(x, y) lt_binary_entropy(y, M(log)(x), M(log1p)(-(x)))

/* x moved towards 0 by a, but at most to 0. */
#define SHRINK(x, a) lt_plain_shrink(x, a)

/* The forms of reductions. The file that expands a form defines PICK(condition, yes, no), PLUS and
 * TIMES (which wrap for integers), LOWEST and HIGHEST (the smallest and largest value of the type),
 * for single numbers or for whole vectors. If an operand is NaN, the result is NaN. */
#define LARGER(x, y)  PICK(((y) > (x)) | ((y) != (y)), y, x)
#define SMALLER(x, y) PICK(((y) < (x)) | ((y) != (y)), y, x)
#define SIZE(x)       PICK((x) > 0, x, 0 - (x)) /* |x|, 0 of -0 */
#define FINITE(p)     ((p) == (T)INFINITY || (p) == -(T)INFINITY ? (T)0 : (p))

/* Formulas of several steps. A file that has more accurate ones for its type defines FORMULA(f)
 * before it includes this one (the CPU's float32: src/cpu/kernels/activations.h). */
#ifndef FORMULA
#define FORMULA(f) lt_##f
#define LT_OWN_FORMULAS
#endif
#define SIGMOID(x)               FORMULA(sigmoid)(x)
#define SIGMOID_SLOPE(y)         FORMULA(sigmoid_slope)(y)
#define TANH_SLOPE(y)            FORMULA(tanh_slope)(y)
#define LOGSIGMOID(x)            FORMULA(logsigmoid)(x)
#define SILU(x)                  FORMULA(silu)(x)
#define GLU(x, gate)             FORMULA(glu)(x, gate)
#define SILU_BACKWARD(x, y)      FORMULA(silu_backward)(x, y)
#define GELU_ERF(x)              FORMULA(gelu_erf)(x)
#define GELU_ERF_BACKWARD(x, y)  FORMULA(gelu_erf_backward)(x, y)
#define GELU_TANH(x)             FORMULA(gelu_tanh)(x)
#define GELU_TANH_BACKWARD(x, y) FORMULA(gelu_tanh_backward)(x, y)
#define LOG1P_EXP(x)             FORMULA(log1p_exp)(x)    /* x <= 0 */
#define LOG2_1P_EXP2(x)          FORMULA(log2_1p_exp2)(x) /* x <= 0 */
#define SOFTPLUS(x, a, b)        FORMULA(softplus)(x, a, b)
#define ELU(x, a)                FORMULA(elu)(x, a)

/* Those of rows of type WF, which are in special.h. */
#define MISH(x)                FORMULA(mish)(x)
#define SELU(x)                FORMULA(selu)(x)
#define CELU(x, a)             FORMULA(celu)(x, a)
#define ERFINV(x)              FORMULA(erfinv)(x)
#define LOGIT(x, a)            FORMULA(logit)(x, a)
#define SINC(x)                FORMULA(sinc)(x)
#define LGAMMA(x)              FORMULA(lgamma)(x)
#define DIGAMMA(x)             FORMULA(digamma)(x)
#define TRIGAMMA(x)            FORMULA(trigamma)(x)
#define BESSEL_J0(x)           FORMULA(j0)(x)
#define BESSEL_J1(x)           FORMULA(j1)(x)
#define BESSEL_Y0(x)           FORMULA(y0)(x)
#define BESSEL_Y1(x)           FORMULA(y1)(x)
#define BESSEL_K0(x)           FORMULA(k0)(x)
#define BESSEL_K1(x)           FORMULA(k1)(x)
#define BESSEL_K0E(x)          FORMULA(k0e)(x)
#define BESSEL_K1E(x)          FORMULA(k1e)(x)
#define SPHERICAL_J0(x)        FORMULA(spherical_j0)(x)
#define NDTR(x)                FORMULA(ndtr)(x)
#define NDTRI(x)               FORMULA(ndtri)(x)
#define LOG_NDTR(x)            FORMULA(log_ndtr)(x)
#define ENTR(x)                FORMULA(entr)(x)
#define BESSEL_I0(x)           FORMULA(i0)(x)
#define BESSEL_I0E(x)          FORMULA(i0e)(x)
#define BESSEL_I1(x)           FORMULA(i1)(x)
#define BESSEL_I1E(x)          FORMULA(i1e)(x)
#define XLOGY(x, y)            FORMULA(xlogy)(x, y)
#define XLOG1PY(x, y)          FORMULA(xlog1py)(x, y)
#define NEXTAFTER(x, y, limit) FORMULA(nextafter)(x, y, limit)

#endif

/* Function calls are computed before the ?: that may not use them, so that loops over these
 * functions can be vectorized. Of real numbers, functions named lt_plain_ call none but fabs, and
 * choose among several values by statements: compilers make poor vector code of nested ?:. */
#ifdef LT_MATHX_FLOAT
/* The remainder of floor division, which has y's sign, from that of division towards 0. */
LT_MATHX_FLOAT T lt_modulo(T rest, T y) {
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/* floor(x / y), exactly: rounding x / y directly could give the integer above. So the remainder is
 * subtracted first. */
LT_MATHX_FLOAT T lt_floordiv(T rest, T x, T y) {
  T plain = x / y;
  T quotient = (x - rest) / y;
  quotient = rest != 0 && (rest < 0) != (y < 0) ? quotient - 1 : quotient;
  T down = M(floor)(quotient);
  down = quotient - down > (T)0.5 ? down + 1 : down;
  down = quotient == 0 ? M(copysign)((T)0, plain) : down;
  return y == 0 ? plain : down;
}

LT_MATHX_FLOAT T lt_pow(T x, T y) {
  T power = M(pow)(x, y);
  return y == 2 ? x * x : power;
}

LT_MATHX_FLOAT T lt_plain_lerp(T x, T y, T z) {
  return M(fabs)(z) < (T)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z);
}

/* The larger one plus a term; of equal infinities, these. */
LT_MATHX_FLOAT T lt_larger_plus(T x, T y, T term) {
  T sum = ((x > y) | (x != x) ? x : y) + term;
  return (x == y) & (x - x != 0) ? x : sum;
}

LT_MATHX_FLOAT T lt_plain_huber(T distance, T delta) {
  T near = distance > delta ? delta : distance;
  return near * (distance - near * (T)0.5);
}

LT_MATHX_FLOAT T lt_binary_entropy(T y, T yes, T no) {
  yes = yes < -100 ? (T)-100 : yes;
  no = no < -100 ? (T)-100 : no;
  return (y - 1) * no - y * yes;
}

LT_MATHX_FLOAT T lt_plain_shrink(T x, T a) {
  T size = M(fabs)(x), left = size - a;
  left = size <= a ? (T)0 : left;
  return x < 0 ? 0 - left : left;
}

LT_MATHX_FLOAT T lt_plain_finite_or(T x, T nan, T above, T below) {
  T other = x > 0 ? above : below;
  other = x != x ? nan : other;
  return x - x == 0 ? x : other;
}

LT_MATHX_FLOAT T lt_plain_argument(T x) {
  T angle = x < 0 ? (T)3.14159265358979323846 : (T)0;
  return x != x ? x : angle;
}

#ifdef LT_OWN_FORMULAS
LT_MATHX_FLOAT T lt_sigmoid(T x) { return 1 / (1 + M(exp)(-x)); }

/* The derivatives, as functions of the result y. */
LT_MATHX_FLOAT T lt_sigmoid_slope(T y) { return y * (1 - y); }
LT_MATHX_FLOAT T lt_tanh_slope(T y) { return 1 - y * y; }

LT_MATHX_FLOAT T lt_logsigmoid(T x) { return (x < 0 ? x : (T)0) - M(log1p)(M(exp)(-M(fabs)(x))); }

LT_MATHX_FLOAT T lt_silu(T x) { return x / (1 + M(exp)(-x)); }

LT_MATHX_FLOAT T lt_glu(T x, T gate) {
  if (gate > -80) return x / (1 + M(exp)(-gate));
  T root = M(exp)(gate * (T)0.5); /* e^-gate would overflow */
  return x * root * root;
}

LT_MATHX_FLOAT T lt_gelu_erf(T x) {
  return x * (T)0.5 * (1 + M(erf)(x * (T)0.70710678118654752440));
}

LT_MATHX_FLOAT T lt_gelu_erf_backward(T grad, T y) {
  return grad * ((T)0.5 * (1 + M(erf)(y * (T)0.70710678118654752440)) +
                 y * (T)0.39894228040143267794 * M(exp)((T)-0.5 * y * y));
}

LT_MATHX_FLOAT T lt_gelu_tanh(T x) {
  return x * (T)0.5 * (1 + M(tanh)((T)0.79788456080286535588 * (x + (T)0.044715 * x * x * x)));
}

/* d/dy of y * 0.5 * (1 + tanh(c (y + 0.044715 y^3))). */
LT_MATHX_FLOAT T lt_gelu_tanh_backward(T grad, T y) {
  T c = (T)0.79788456080286535588, k = (T)0.044715;
  T t = M(tanh)(c * (y + k * y * y * y));
  return grad * ((T)0.5 * (1 + t) + (T)0.5 * y * (1 - t * t) * c * (1 + 3 * k * y * y));
}

LT_MATHX_FLOAT T lt_silu_backward(T grad, T y) {
  T s = 1 / (1 + M(exp)(-y));
  return grad * (s * (1 + y * (1 - s)));
}

LT_MATHX_FLOAT T lt_log1p_exp(T x) { return M(log1p)(M(exp)(x)); }
LT_MATHX_FLOAT T lt_log2_1p_exp2(T x) { return M(log1p)(M(exp2)(x)) * (T)1.44269504088896340736; }

LT_MATHX_FLOAT T lt_softplus(T x, T beta, T threshold) {
  T soft = M(log1p)(M(exp)(x * beta)) / beta;
  return x * beta > threshold ? x : soft;
}

LT_MATHX_FLOAT T lt_elu(T x, T alpha) {
  T negative = alpha * M(expm1)(x);
  return x < 0 ? negative : x;
}
#endif
#endif

#ifdef LT_MATHX_INTEGER
LT_MATHX_INTEGER T lt_modulo(T rest, T y) {
  return rest != 0 && (rest < 0) != (y < 0) ? (T)(rest + y) : rest;
}

LT_MATHX_INTEGER T lt_floordiv(T quotient, T x, T y) {
  T rest = y == 0 ? (T)0 : (T)((U)x - (U)quotient * (U)y);
  return (T)((U)quotient - (U)(rest != 0 && (rest < 0) != (y < 0)));
}

/* By Euclid's algorithm, in unsigned numbers: the absolute value of the smallest integer wraps. */
LT_MATHX_INTEGER T lt_gcd(T x, T y) {
  U a = x < 0 ? 0u - (U)x : (U)x, b = y < 0 ? 0u - (U)y : (U)y;
  while (b) {
    U rest = a % b;
    a = b;
    b = rest;
  }
  return (T)a;
}

LT_MATHX_INTEGER T lt_lcm(T x, T y) {
  T divisor = lt_gcd(x, y);
  if (divisor == 0) return 0;
  U product = (U)(x / divisor) * (U)y; /* the divisor is not -1 */
  return (T)product < 0 ? (T)(0u - product) : (T)product;
}

/* Exponentiation by squaring; it wraps. A negative power of anything but 1 and -1 is 0. */
LT_MATHX_INTEGER T lt_ipow(T x, T y) {
  if (y < 0) return x == 1 ? (T)1 : x != (T)-1 ? (T)0 : y % 2 == 0 ? (T)1 : (T)-1;
  U result = 1, base = (U)x;
  for (; y; y = (T)(y >> 1), base *= base) result *= y & 1 ? base : 1;
  return (T)result;
}
#endif

#ifdef LT_MATHX_COMPLEX
/* Smith's division (1962), which overflows only if the quotient does: by the larger part of y, with
 * u, the part of x at the same place, and the smaller, with v. Division by 0 gives infinity or NaN
 * in each part. */
LT_MATHX_COMPLEX T lt_quotient(T x, T y) {
  R a = RE(x), b = IM(x), c = RE(y), d = IM(y);
  bool first = RM(fabs)(c) >= RM(fabs)(d);
  R larger = first ? c : d, smaller = first ? d : c, u = first ? a : b, v = first ? b : a;
  R ratio = smaller / larger, scale = 1 / (larger + smaller * ratio);
  R ahead = v - u * ratio, behind = u * ratio - v, re = (u + v * ratio) * scale;
  R im = (first ? ahead : behind) * scale;
  bool zero = (larger == 0) & (smaller == 0); /* one of them may be NaN */
  re = zero ? a * (R)INFINITY : re;
  im = zero ? b * (R)INFINITY : im;
  return MAKE(re, im);
}

/* a * y. With a real factor, infinite parts do not become NaN. */
LT_MATHX_COMPLEX T lt_scaled(T a, T y) {
  return IM(a) == 0 ? MAKE(RE(a) * RE(y), RE(a) * IM(y)) : a * y;
}

LT_MATHX_COMPLEX R lt_plain_finite_or(R x, R nan, R above, R below) {
  R other = x > 0 ? above : below;
  other = x != x ? nan : other;
  return x - x == 0 ? x : other;
}

LT_MATHX_COMPLEX T lt_sgn(T x) {
  R size = RM(hypot)(RE(x), IM(x)), re = RE(x) / size, im = IM(x) / size;
  return MAKE(size == 0 ? (R)0 : re, size == 0 ? (R)0 : im);
}

LT_MATHX_COMPLEX T lt_plain_lerp(T x, T y, T z) {
  return RM(hypot)(RE(z), IM(z)) < (R)0.5 ? x + z * (y - x) : y - (y - x) * (MAKE(1, 0) - z);
}

/* The one with the larger real part comes first. */
LT_MATHX_COMPLEX T lt_logaddexp(T x, T y) {
  bool swap = RE(y) > RE(x);
  T top = swap ? y : x, rest = swap ? x : y;
  if (RE(x) == RE(y) && RE(x) - RE(x) != 0) /* infinite real parts */
    return RE(x) < 0 ? rest
                     : M(log)(M(exp)(MAKE(0, IM(x))) + M(exp)(MAKE(0, IM(y)))) + MAKE(RE(x), 0);
  return top + M(log)(MAKE(1, 0) + M(exp)(rest - top));
}

LT_MATHX_COMPLEX T lt_plain_argument(T x) { return MAKE(RM(atan2)(IM(x), RE(x)), 0); }

LT_MATHX_COMPLEX T lt_sigmoid(T x) { return lt_quotient(MAKE(1, 0), MAKE(1, 0) + M(exp)(-x)); }

LT_MATHX_COMPLEX T lt_sigmoid_slope(T y) { return y * (MAKE(1, 0) - y); }
LT_MATHX_COMPLEX T lt_tanh_slope(T y) { return MAKE(1, 0) - y * y; }

LT_MATHX_COMPLEX T lt_silu(T x) { return lt_quotient(x, MAKE(1, 0) + M(exp)(-x)); }

LT_MATHX_COMPLEX T lt_silu_backward(T grad, T y) {
  T s = lt_sigmoid(y);
  return grad * (s * (MAKE(1, 0) + y * (MAKE(1, 0) - s)));
}

LT_MATHX_COMPLEX T lt_pow(T x, T y) {
  if (y == MAKE(2, 0)) return x * x;
  if (y == MAKE(3, 0)) return x * x * x;
  if (y == MAKE((R)0.5, 0)) return M(sqrt)(x);
  if (y == MAKE(0, 0)) return MAKE(1, 0);
  return M(pow)(x, y);
}
#endif
