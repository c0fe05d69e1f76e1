/* half_bits.h: conversions between float and the bits of 16-bit floating types. They round to
 * nearest, ties to even; NaN becomes 0x7fff, as on a GPU. */
#ifndef LT_EMULATED_HALF_BITS_H
#define LT_EMULATED_HALF_BITS_H

#include "emulated/threads.h"

/* Returns the bits of a value as another type. */
template <class To, class From> LT_EMULATED To lt_emulated_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the same size");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/* Returns a mask of all bits where a < b, for non-negative numbers. Values are selected by such
 * masks, in 32 bits, so that loops over conversions can be vectorized. */
LT_EMULATED int lt_emulated_below(int a, int b) { return (a - b) >> 31; }

LT_EMULATED unsigned short lt_emulated_to_half(float f) {
  int bits = lt_emulated_bits<int>(f), u = bits & 0x7fffffff;
  /* subnormal results: adding 0.5 makes the float unit round at the right bit */
  int small = lt_emulated_bits<int>(lt_emulated_bits<float>(u) + 0.5f) - 0x3f000000;
  int normal = (u - 0x37fff001 + (u >> 13 & 1)) >> 13;
  int is_small = lt_emulated_below(u, 0x38800000), is_finite = lt_emulated_below(u, 0x477ff000);
  int is_nan = lt_emulated_below(0x7f800000, u);
  int rest = (small & is_small) | (normal & ~is_small);
  rest = (rest & is_finite) | (0x7c00 & ~is_finite);
  return (unsigned short)(((bits >> 16 & 0x8000) & ~is_nan) | rest | (0x7fff & is_nan));
}
/* Subnormal numbers are renormalized by the multiplication by 2^112. */
LT_EMULATED float lt_emulated_from_half(unsigned short h) {
  unsigned sign = (unsigned)(h & 0x8000u) << 16, rest = (unsigned)(h & 0x7fffu) << 13;
  /* infinities and NaN */
  unsigned special = 0x7f800000u & ~(unsigned)lt_emulated_below((int)rest, 0x0f800000);
  unsigned scaled = lt_emulated_bits<unsigned>(lt_emulated_bits<float>(rest) * 0x1p112f);
  return lt_emulated_bits<float>(sign | scaled | special);
}
LT_EMULATED unsigned short lt_emulated_to_bfloat16(float f) {
  unsigned u = lt_emulated_bits<unsigned>(f), rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  unsigned is_nan = (unsigned)lt_emulated_below(0x7f800000, (int)(u & 0x7fffffffu));
  return (unsigned short)((rounded & ~is_nan) | (0x7fffu & is_nan));
}
LT_EMULATED float lt_emulated_from_bfloat16(unsigned short b) {
  return lt_emulated_bits<float>((unsigned)b << 16);
}
/* Converts a double to a float, rounding to odd: rounding the float to fewer bits then gives the
 * same result as rounding the double. */
LT_EMULATED float lt_emulated_round_odd(double d) {
  float f = (float)d;
  unsigned u = lt_emulated_bits<unsigned>(f);
  if ((double)f == d || d != d || (u & 1u) || (u & 0x7fffffffu) == 0x7f800000u) return f;
  bool up = __builtin_fabs((double)f) < __builtin_fabs(d);
  return lt_emulated_bits<float>(up ? u + 1u : u - 1u);
}

#endif
