/* float64.metal.h: float64 arithmetic in integers, for the few kernels whose results must be those
 * of the CPU, which computes them in double: sequences, random draws, sums of losses. Apple's GPUs
 * have no float64. Every operation is IEEE 754's, rounded to nearest, ties to even.
 *
 * Between unpack_float64 and pack_float64 a finite number that is not 0 is
 *
 *     (-1)^sign * significand * 2^(exponent - 1023 - 62)
 *
 * with the significand's leading one at bit 62: ten bits more than a float64 has.
 */
#ifndef LT_MPS_FLOAT64_METAL_H
#define LT_MPS_FLOAT64_METAL_H

struct Float64 {
  ulong bits;
};

struct UnpackedFloat64 {
  uint sign;
  int exponent;
  ulong significand; /* 0 for 0 */
};

#define LT_FLOAT64_INFINITY 0x7ff0000000000000ul
#define LT_FLOAT64_NAN      0x7ff8000000000000ul
#define LT_FLOAT64_SIGN     0x8000000000000000ul

static inline Float64 float64_of_bits(ulong bits) {
  Float64 v;
  v.bits = bits;
  return v;
}
static inline ulong float64_magnitude(Float64 v) { return v.bits & ~LT_FLOAT64_SIGN; }
static inline bool float64_is_nan(Float64 v) { return float64_magnitude(v) > LT_FLOAT64_INFINITY; }
static inline bool float64_is_finite(Float64 v) {
  return float64_magnitude(v) < LT_FLOAT64_INFINITY;
}

/* Returns the number of zero bits above the leading one of m, which is not 0. */
static inline int leading_zeros(ulong m) {
  uint high = uint(m >> 32);
  return high != 0 ? int(clz(high)) : 32 + int(clz(uint(m)));
}

/* Shifts right; ones that are shifted out set the lowest bit, so that rounding sees them. */
static inline ulong shift_sticky(ulong m, int by) {
  if (by <= 0) return m;
  if (by > 63) return ulong(m != 0);
  return m >> by | ulong((m & ((1ul << by) - 1)) != 0);
}

/* Returns m / 2^by, rounded to nearest, ties to even; 0 < by < 64. */
static inline ulong shift_rounded(ulong m, int by) {
  ulong rest = m & ((1ul << by) - 1), half_way = 1ul << (by - 1);
  m >>= by;
  return m + ulong(rest > half_way || (rest == half_way && (m & 1) != 0));
}

/* Unpacks a finite number. */
static inline UnpackedFloat64 unpack_float64(Float64 v) {
  UnpackedFloat64 u;
  u.sign = uint(v.bits >> 63);
  u.exponent = int(v.bits >> 52 & 0x7ff);
  u.significand = (v.bits & 0xffffffffffffful) << 10;
  if (u.exponent > 0) {
    u.significand |= 1ul << 62;
  } else if (u.significand != 0) {
    int by = leading_zeros(u.significand) - 1;
    u.significand <<= by;
    u.exponent = 1 - by;
  }
  return u;
}

/* Rounds to a floating-point format: `places` bits of fraction, exponents up to `top` (all ones),
 * whose bias is top / 2. Returns its bits. */
static inline ulong round_to_format(UnpackedFloat64 u, int places, int top) {
  ulong sign = ulong(u.sign) << (places + (top > 255 ? 11 : top > 31 ? 8 : 5));
  if (u.significand == 0) return sign;
  int exponent = u.exponent - 1023 + top / 2;
  if (exponent >= top) return sign | ulong(top) << places;
  ulong m = shift_sticky(u.significand, 1 - exponent);
  m = shift_rounded(m, 62 - places);
  if (exponent > 0) m += ulong(exponent - 1) << places; /* m has the leading one */
  return sign | m;
}
static inline Float64 pack_float64(UnpackedFloat64 u) {
  return float64_of_bits(round_to_format(u, 52, 0x7ff));
}

/* ---- arithmetic ------------------------------------------------------------------------------ */

/* Returns the high half of the product of two 64-bit numbers. */
static inline ulong high_product(ulong a, ulong b) {
  ulong al = a & 0xffffffff, ah = a >> 32, bl = b & 0xffffffff, bh = b >> 32;
  ulong one = ah * bl + (al * bl >> 32), two = al * bh + (one & 0xffffffff);
  return ah * bh + (one >> 32) + (two >> 32);
}

static inline Float64 operator-(Float64 a) { return float64_of_bits(a.bits ^ LT_FLOAT64_SIGN); }

static inline Float64 operator*(Float64 a, Float64 b) {
  ulong sign = (a.bits ^ b.bits) & LT_FLOAT64_SIGN;
  if (!float64_is_finite(a) || !float64_is_finite(b)) {
    bool none = float64_is_nan(a) || float64_is_nan(b) || float64_magnitude(a) == 0 ||
                float64_magnitude(b) == 0;
    return float64_of_bits(none ? LT_FLOAT64_NAN : sign | LT_FLOAT64_INFINITY);
  }
  UnpackedFloat64 x = unpack_float64(a), y = unpack_float64(b);
  if (x.significand == 0 || y.significand == 0) return float64_of_bits(sign);
  ulong twice = x.significand << 1, m = high_product(twice, y.significand);
  m |= ulong(twice * y.significand != 0);
  x.sign ^= y.sign;
  x.exponent += y.exponent - 1022;
  if ((m >> 62) == 0) {
    m <<= 1;
    x.exponent -= 1;
  }
  x.significand = m;
  return pack_float64(x);
}

static inline Float64 operator+(Float64 a, Float64 b) {
  if (float64_magnitude(a) < float64_magnitude(b)) {
    Float64 swap = a;
    a = b;
    b = swap;
  }
  if (!float64_is_finite(a)) { /* then a is the NaN, if there is one */
    bool none = float64_is_nan(a) || (!float64_is_finite(b) && a.bits != b.bits);
    return float64_of_bits(none ? LT_FLOAT64_NAN : a.bits);
  }
  if (float64_magnitude(b) == 0)
    return float64_of_bits(float64_magnitude(a) == 0 ? a.bits & b.bits : a.bits);
  UnpackedFloat64 x = unpack_float64(a), y = unpack_float64(b);
  ulong m = shift_sticky(y.significand, x.exponent - y.exponent);
  if (x.sign == y.sign) {
    m += x.significand;
    if ((m >> 63) != 0) {
      m = shift_sticky(m, 1);
      x.exponent += 1;
    }
  } else {
    m = x.significand - m;
    if (m == 0) return float64_of_bits(0);
    int by = leading_zeros(m) - 1;
    m <<= by;
    x.exponent -= by;
  }
  x.significand = m;
  return pack_float64(x);
}
static inline Float64 operator-(Float64 a, Float64 b) { return a + -b; }

static inline Float64 operator/(Float64 a, Float64 b) {
  ulong sign = (a.bits ^ b.bits) & LT_FLOAT64_SIGN, none = LT_FLOAT64_NAN;
  bool a_is_zero = float64_magnitude(a) == 0, b_is_zero = float64_magnitude(b) == 0;
  if (float64_is_nan(a) || float64_is_nan(b)) return float64_of_bits(none);
  if (!float64_is_finite(a))
    return float64_of_bits(float64_is_finite(b) ? sign | LT_FLOAT64_INFINITY : none);
  if (a_is_zero || !float64_is_finite(b)) return float64_of_bits(b_is_zero ? none : sign);
  if (b_is_zero) return float64_of_bits(sign | LT_FLOAT64_INFINITY);
  UnpackedFloat64 x = unpack_float64(a), y = unpack_float64(b);
  ulong left = x.significand, quotient = 0;
  x.sign ^= y.sign;
  x.exponent += 1023 - y.exponent;
  if (left < y.significand) {
    left <<= 1;
    x.exponent -= 1;
  }
  for (int i = 0; i < 63; i++) {
    quotient <<= 1;
    if (left >= y.significand) {
      left -= y.significand;
      quotient |= 1;
    }
    left <<= 1;
  }
  x.significand = quotient | ulong(left != 0);
  return pack_float64(x);
}

/* Returns true when a > b. */
static inline bool operator>(Float64 a, Float64 b) {
  if (float64_is_nan(a) || float64_is_nan(b)) return false;
  bool a_negative = (a.bits >> 63) != 0, b_negative = (b.bits >> 63) != 0;
  if (float64_magnitude(a) == 0 && float64_magnitude(b) == 0) return false;
  if (a_negative != b_negative) return b_negative;
  return a_negative ? a.bits < b.bits : a.bits > b.bits;
}

/* ---- conversions ----------------------------------------------------------------------------- */

/* Returns v / 2^places. */
static inline Float64 float64_of_fraction(ulong v, int places) {
  UnpackedFloat64 u;
  u.sign = 0;
  u.exponent = 0;
  u.significand = 0;
  if (v != 0) {
    int by = leading_zeros(v) - 1;
    u.exponent = 1023 + 62 - by - places;
    u.significand = by >= 0 ? v << by : shift_sticky(v, 1);
  }
  return pack_float64(u);
}
static inline Float64 float64_of_int(int64_t v) {
  Float64 magnitude = float64_of_fraction(v < 0 ? 0ul - ulong(v) : ulong(v), 0);
  return float64_of_bits(v < 0 ? magnitude.bits | LT_FLOAT64_SIGN : magnitude.bits);
}
static inline Float64 float64_of_float(float v) {
  uint bits = as_type<uint>(v);
  ulong sign = ulong(bits >> 31) << 63, fraction = bits & 0x7fffffu;
  int exponent = int(bits >> 23 & 0xff);
  if (exponent == 0xff)
    return float64_of_bits(fraction != 0 ? LT_FLOAT64_NAN : sign | LT_FLOAT64_INFINITY);
  if (exponent == 0) return float64_of_bits(sign | float64_of_fraction(fraction, 149).bits);
  return float64_of_bits(sign | ulong(exponent + 1023 - 127) << 52 | fraction << 29);
}

/* Returns the bits of v in another format, rounded once: see round_to_format. */
static inline uint float64_to_format(Float64 v, int places, int top) {
  if (float64_is_nan(v)) return (uint(top) << places) | 1u << (places - 1);
  UnpackedFloat64 u = unpack_float64(v);
  if (!float64_is_finite(v)) u.exponent = 4000; /* beyond all formats */
  return uint(round_to_format(u, places, top));
}
static inline float float64_to_float(Float64 v) {
  return as_type<float>(float64_to_format(v, 23, 0xff));
}
/* Truncates; NaN becomes 0, and numbers out of range the smallest or largest integer. */
static inline int64_t float64_to_int(Float64 v) {
  if (float64_is_nan(v)) return 0;
  ulong limit = ulong(v.bits >> 63) + 0x7ffffffffffffffful, m = limit;
  if (float64_magnitude(v) < 0x43e0000000000000ul) { /* 2^63 */
    UnpackedFloat64 u = unpack_float64(v);
    int by = 1023 + 62 - u.exponent;
    m = by > 63 ? 0ul : u.significand >> by;
  }
  return int64_t((v.bits >> 63) != 0 ? 0ul - m : m);
}

/* Returns the logarithm of a normal number above 0, with an error below one unit in the last place:
 * the method of fdlibm (e_log.c). x = 2^k (1 + f), and log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + R)
 * with s = f / (2 + f) and R a polynomial in s^2. */
static inline Float64 float64_log(Float64 x) {
  const Float64 one_half = float64_of_bits(0x3fe0000000000000ul);
  const Float64 one = float64_of_bits(0x3ff0000000000000ul);
  const Float64 two = float64_of_bits(0x4000000000000000ul);
  const Float64 ln2_high = float64_of_bits(0x3fe62e42fee00000ul);
  const Float64 ln2_low = float64_of_bits(0x3dea39ef35793c76ul);
  ulong fraction = x.bits & 0xffffffffffffful;
  int k = int(x.bits >> 52) - 1023;
  bool upper = fraction >= 0x6a09e667f3bcdul; /* the significand is at least sqrt(2) */
  Float64 f = float64_of_bits((upper ? 0x3feul : 0x3fful) << 52 | fraction) - one;
  Float64 count = float64_of_int(upper ? k + 1 : k);
  Float64 s = f / (two + f), z = s * s;
  Float64 r = float64_of_bits(0x3fc2f112df3e5244ul);
  r = r * z + float64_of_bits(0x3fc39a09d078c69ful);
  r = r * z + float64_of_bits(0x3fc7466496cb03deul);
  r = r * z + float64_of_bits(0x3fcc71c51d8e78aful);
  r = r * z + float64_of_bits(0x3fd2492494229359ul);
  r = r * z + float64_of_bits(0x3fd999999997fa04ul);
  r = (r * z + float64_of_bits(0x3fe5555555555593ul)) * z;
  Float64 square = one_half * f * f;
  return count * ln2_high - ((square - (s * (square + r) + count * ln2_low)) - f);
}

#endif
