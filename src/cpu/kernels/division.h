/* division.h: division towards 0 and its remainder for the vector loops, with vector instructions.
 *
 * Integers are divided as doubles, whose quotient, rounded to nearest and then towards 0, is exact
 * for integers of up to 52 bits: unless it is an integer itself, it differs from the nearest one by
 * 1 / |y| at least, and that is more than the rounding error. The remainder of floats is exact,
 * too: x / y rounded is at most one integer too large in magnitude, and x - n y for either integer
 * is a number of the type, which a fused multiplication gives without an error.
 *
 * As in maths_float32.h, `near` is a constant: the caller guarantees that lt_divides_near is true
 * of x and y. Otherwise the functions divide one by one. */
#ifndef LT_CPU_DIVISION_H
#define LT_CPU_DIVISION_H

#include "activations.h"

/* Whether the loops of an op that divides have a near form on this CPU. */
#if defined(__AVX2__) || defined(__aarch64__)
#define LT_HAS_NEAR_DIVISION 1
#else
#define LT_HAS_NEAR_DIVISION 0
#endif

#define LT_WIDE_BITS                                                                               \
  0x4338000000000000u /* of 1.5 * 2^52: an integer n + these are 1.5 * 2^52 + n */

/* Convert between integers and doubles of magnitude up to 2^51. */
LT_MATHS double lt_wide_integer(int64_t x) {
  return lt_double((uint64_t)x + LT_WIDE_BITS) - 0x1.8p52;
}
LT_MATHS int64_t lt_narrow_integer(double x) {
  return (int64_t)(lt_bits64(x + 0x1.8p52) - LT_WIDE_BITS);
}

LT_MATHS int64_t lt_truncdiv_int64(int64_t x, int64_t y, bool near) {
  if (!near) return y == 0 ? 0 : y == -1 ? (int64_t)(0u - (uint64_t)x) : x / y;
  double quotient = lt_wide_integer(x) / lt_wide_integer(y == 0 ? 1 : y);
  return y == 0 ? 0 : lt_narrow_integer(trunc(quotient));
}

LT_MATHS int32_t lt_truncdiv_int32(int32_t x, int32_t y, bool near) {
  if (!near) return y == 0 ? 0 : y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y;
  int32_t quotient = (int32_t)((double)x / (double)(y == 0 || y == -1 ? 1 : y));
  return y == 0 ? 0 : y == -1 ? (int32_t)(0u - (uint32_t)x) : quotient;
}

LT_MATHS float lt_fmodf(float x, float y, bool near) {
  if (!near) return fmodf(x, y);
  float n = truncf(x / y), rest = FUSED(-n, y, x);
  rest = n == 0 ? x : rest; /* y may be infinite */
  rest = rest != 0 && (rest < 0) != (x < 0) ? rest + copysignf(y, x) : rest;
  return lt_signed(fabsf(rest), x);
}

LT_MATHS double lt_fmod(double x, double y, bool near) {
  if (!near) return fmod(x, y);
  double n = trunc(x / y), rest = MADDD(-n, y, x);
  rest = n == 0 ? x : rest;
  rest = rest != 0 && (rest < 0) != (x < 0) ? rest + copysign(y, x) : rest;
  return copysign(rest, x);
}

#endif
