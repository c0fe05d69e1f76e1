/* extended.metal.h: numbers with the range and nearly the precision of double, where a wide number
 * (device.metal.h), whose range is that of float, would overflow or underflow: squares and powers.
 */
#ifndef LT_MPS_EXTENDED_METAL_H
#define LT_MPS_EXTENDED_METAL_H

#include "maths.metal.h"

/* The number (high + low) 2^(64 e). |high| is in 2^-32 .. 2^32, or it is 0 with e = 0, or infinite
 * or NaN with e = LT_BEYOND. */
struct Extended {
  float high, low;
  int e;
  Extended() thread = default;
  Extended() threadgroup = default; /* for variables there */
  Extended(float v);
};

#define LT_BEYOND 1000

static inline Extended extended_parts(float high, float low, int e) {
  Extended x;
  x.high = high, x.low = low, x.e = e;
  return x;
}

/* Returns a number whose `high` may be 2^64 times too large or too small. */
static inline Extended extended_of(float high, float low, int e) {
  float size = fabs(high);
  if (size == 0) return extended_parts(high, 0, 0);
  if (!(size < INFINITY)) return extended_parts(high, 0, LT_BEYOND);
  if (size >= 0x1p32f) return extended_parts(high * 0x1p-64f, low * 0x1p-64f, e + 1);
  if (size < 0x1p-32f) return extended_parts(high * 0x1p64f, low * 0x1p64f, e - 1);
  return extended_parts(high, low, e);
}
static inline Extended extended_of(Wide v, int e) { return extended_of(v.high, v.low, e); }

inline Extended::Extended(float v) {
  float size = fabs(v);
  int far = size >= 0x1p32f ? 1 : size < 0x1p-32f ? -1 : 0;
  float near = far > 0 ? v * 0x1p-64f : far < 0 ? v * 0x1p64f : v;
  Extended x = extended_of(near, 0, far);
  high = x.high, low = x.low, e = x.e;
}

/* Returns the factor (high + low) without its power. */
static inline Wide mantissa(Extended x) { return Wide(x.high, x.low); }

/* Returns the number rounded to float. */
static inline float narrowed(Extended x) {
  float v = x.high + x.low;
  if (x.e == 0 || x.e == LT_BEYOND) return v;
  if (x.e > 2) return v * INFINITY;
  if (x.e < -3) return v * 0.0f;
  for (int e = x.e; e > 0; e--) v *= 0x1p64f;
  for (int e = x.e; e < 0; e++) v *= 0x1p-64f;
  return v;
}
template <> struct Converted<float, Extended> {
  static float of(Extended v) { return narrowed(v); }
};

static inline Extended operator-(Extended a) { return extended_parts(-a.high, -a.low, a.e); }
static inline Extended operator+(Extended a, Extended b) {
  if (a.high == 0) return b;
  if (b.high == 0) return a;
  if (a.e < b.e) {
    Extended c = a;
    a = b, b = c;
  }
  if (a.e - b.e > 1) return a; /* b is less than the last digit */
  if (a.e != b.e) b.high *= 0x1p-64f, b.low *= 0x1p-64f;
  return extended_of(mantissa(a) + mantissa(b), a.e);
}
static inline Extended operator-(Extended a, Extended b) { return a + -b; }
static inline Extended operator*(Extended a, Extended b) {
  return extended_of(mantissa(a) * mantissa(b), a.e + b.e);
}
static inline Extended operator/(Extended a, Extended b) {
  return extended_of(mantissa(a) / mantissa(b), a.e - b.e);
}
static inline bool operator==(Extended a, Extended b) {
  return a.high == b.high && a.low == b.low && a.e == b.e;
}
static inline bool operator!=(Extended a, Extended b) { return !(a == b); }
static inline bool operator<(Extended a, Extended b) { return (a - b).high < 0; }
static inline bool operator>(Extended a, Extended b) { return (a - b).high > 0; }

static inline Extended m_sqrt(Extended x) {
  if (x.e == LT_BEYOND) return Extended(precise::sqrt(x.high));
  if (x.e % 2 != 0)
    return extended_of(m_sqrt(Wide(x.high * 0x1p64f, x.low * 0x1p64f)), (x.e - 1) / 2);
  return extended_of(m_sqrt(mantissa(x)), x.e / 2);
}

/* Returns log2(x), x > 0 and finite. */
static inline Wide log2_of(Extended x) {
  Wide v = log2_wide(x.high) + Wide(64.0f * (float)x.e);
  return v + Wide(x.low / x.high * 1.44269504f);
}
/* Returns 2^t, with the precision of float. */
static inline Extended exp2_of(Wide t) {
  if (!(t.high < 60000.0f)) return Extended(t.high < INFINITY ? INFINITY : t.high);
  if (t.high < -60000.0f) return Extended(0.0f);
  float whole = rint(t.high);
  Wide part = t - Wide(whole);
  float y = lt_exp2f(part.high, true);
  y = fma(y, part.low * 0.693147182f, y);
  int n = (int)whole, e = n < 0 ? -((32 - n) / 64) : (n + 32) / 64;
  return extended_of(y * lt_float((uint)(127 + n - 64 * e) << 23), 0, e);
}

static inline Extended lane_xor(Extended v, uint mask) {
  return extended_parts(lane_xor(v.high, mask), lane_xor(v.low, mask), lane_xor(v.e, mask));
}
static inline Extended lane_up(Extended v, uint step) {
  return extended_parts(lane_up(v.high, step), lane_up(v.low, step), lane_up(v.e, step));
}

/* ---- in memory ------------------------------------------------------------------------------- */

/* How a T is kept in threadgroup and device memory, where objects with constructors are not
 * possible. */
template <typename T> struct InMemory {
  typedef T Type;
  static Type pack(T v) { return v; }
  static T unpack(Type v) { return v; }
};

struct WideParts {
  float high, low;
};
template <> struct InMemory<Wide> {
  typedef WideParts Type;
  static Type pack(Wide v) {
    WideParts parts = {v.high, v.low};
    return parts;
  }
  static Wide unpack(Type v) { return Wide(v.high, v.low); }
};

struct ExtendedParts {
  float high, low;
  int e;
};
template <> struct InMemory<Extended> {
  typedef ExtendedParts Type;
  static Type pack(Extended v) {
    ExtendedParts parts = {v.high, v.low, v.e};
    return parts;
  }
  static Extended unpack(Type v) { return extended_parts(v.high, v.low, v.e); }
};

#endif
