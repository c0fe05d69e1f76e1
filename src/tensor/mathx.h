/* mathx.h: the vocabulary of ops.def's scalar texts, on which cc, nvcc and the Metal compiler must agree.
 *
 * A file of kernels defines, before it includes ops.def, for each compute type: T (the type), U (its unsigned
 * counterpart for wrapping integer arithmetic), M(f) (the maths function f for T) and MAXFINITE. The macros here name
 * values; none hides control flow.
 */
#ifndef LT_MATHX_H
#define LT_MATHX_H

#include <math.h>
#include <stdint.h>

#define WRAP(e) ((T)(e))

/* Integers: division by zero gives 0 (devices cannot trap), mininteger // -1 wraps. */
#define TRUNCDIV(x, y) ((y) == 0 ? (T)0 : (y) == -1 ? (T)(0u - (U)(x)) : (T)((x) / (y)))
#define TRUNCMOD(x, y) ((y) == 0 || (y) == -1 ? (T)0 : (T)((x) % (y)))
#define MODULO(x, y)                                                                               \
  ((T)(TRUNCMOD(x, y) + ((TRUNCMOD(x, y) != 0 && (TRUNCMOD(x, y) ^ (y)) < 0) ? (y) : 0)))
#define FLOORDIV(x, y)  ((T)((U)TRUNCDIV(x, y) - (U)(TRUNCMOD(x, y) != 0 && ((x) ^ (y)) < 0)))
#define SHIFTLEFT(x, y) ((y) < 0 || (y) >= (T)(8 * sizeof(T)) ? (T)0 : (T)((U)(x) << (y)))
#define SHIFTRIGHT(x, y)                                                                           \
  ((y) < 0 || (y) >= (T)(8 * sizeof(T)) ? ((x) < 0 ? (T)-1 : (T)0) : (T)((x) >> (y)))

/* Floats: Python's % and //. The quotient comes from the remainder, so that x == (x // y) * y + x % y. */
#define FMODULO(x, y)   lt_modulo(x, y)
#define FFLOORDIV(x, y) lt_floordiv(x, y)
#define CLAMP(x, lo, hi)                                                                           \
  ((x) != (x) ? (x) : (lo) != (lo) ? (lo) : (hi) != (hi) ? (hi) : CLAMP_(x, lo, hi))
#define CLAMP_(x, lo, hi) (((x) < (lo) ? (lo) : (x)) > (hi) ? (hi) : ((x) < (lo) ? (lo) : (x)))
#define POW(x, y)         ((y) == 2 ? (x) * (x) : M(pow)(x, y))
#define IPOW(x, y)        lt_ipow(x, y)
#define NOT(x)            (~(x))

#define GELU_TANH_INNER(y) ((T)0.79788456080286535588 * ((y) + (T)0.044715 * (y) * (y) * (y)))
#define GELU_TANH_SLOPE(y) lt_gelu_tanh_slope(y)
#define SILU_SLOPE(y)      lt_silu_slope(y)

#endif
