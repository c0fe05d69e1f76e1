/* half.h: converts float16 and bfloat16 to and from float, rounding to nearest, ties to even (IEEE
 * 754). The code has no branches, so that the compiler can vectorize it. */
#ifndef LT_HALF_H
#define LT_HALF_H

#include "lutra.h"

#include <math.h>
#include <string.h>

static inline uint32_t lt_float_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

static inline float lt_bits_float(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

static inline float lt_bfloat16_to_float(lt_bfloat16 h) {
  return lt_bits_float((uint32_t)h.bits << 16);
}

static inline lt_bfloat16 lt_bfloat16_from_float(float f) {
  uint32_t u = lt_float_bits(f);
  uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
  uint32_t bits = f != f ? (u | 0x400000u) : rounded; /* rounding could turn a NaN to infinity */
  return (lt_bfloat16){(uint16_t)(bits >> 16)};
}

/* The multiplication by 2^112 adjusts the exponent, and normalizes subnormal numbers. */
static inline float lt_half_to_float(lt_half h) {
  uint32_t sign = (uint32_t)(h.bits & 0x8000u) << 16;
  uint32_t rest = (uint32_t)(h.bits & 0x7fffu) << 13;
  uint32_t special = rest >= 0x0f800000u ? 0x7f800000u : 0u; /* infinities and NaN */
  uint32_t scaled = lt_float_bits(lt_bits_float(rest) * 0x1p112f);
  return lt_bits_float(sign | scaled | special);
}

static inline lt_half lt_half_from_float(float f) {
  uint32_t u = lt_float_bits(f);
  uint32_t sign = (u >> 16) & 0x8000u;
  uint32_t size = u & 0x7fffffffu;
  /* Subnormal results: adding 0.5 makes the float addition round at the right bit. */
  uint32_t small = lt_float_bits(lt_bits_float(size) + 0.5f) - 0x3f000000u;
  uint32_t normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;
  uint32_t bits = size < 0x38800000u ? small : normal;
  bits = size >= 0x477ff000u ? 0x7c00u : bits;                          /* too large: infinity */
  bits = size > 0x7f800000u ? 0x7e00u | ((size >> 13) & 0x3ffu) : bits; /* NaN */
  return (lt_half){(uint16_t)(sign | bits)};
}

/* Converts a double to float with rounding to odd. Rounding the result to fewer bits then gives the
 * same as rounding the double directly (Boldo and Melquiond 2008). */
static inline float lt_float_from_double_odd(double d) {
  float f = (float)d;
  if ((double)f == d || d != d || isinf(f)) return f;
  uint32_t u = lt_float_bits(f);
  if (u & 1u) return f;
  bool up = fabs((double)f) < fabs(d);
  return lt_bits_float(up ? u + 1u : u - 1u);
}

static inline lt_half lt_half_from_double(double d) {
  return lt_half_from_float(lt_float_from_double_odd(d));
}

#endif
