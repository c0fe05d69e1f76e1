/* device.metal.h: what kernels share: function constants, loads and stores that convert elements of
 * any dtype, complex and wide numbers, reductions over SIMD groups and threadgroups, offsets in
 * strided tensors, reports of bad values. maths.metal.h has the math functions.
 *
 * A kernel is compiled for the type that it computes in (float, int, int64_t, bool, Complex), not
 * for the type in memory: load and store switch on the dtype, which is a function constant, so the
 * branch costs nothing.
 */
#ifndef LT_MPS_DEVICE_METAL_H
#define LT_MPS_DEVICE_METAL_H

#define LT_NO_DOUBLE

#include <metal_stdlib>

#include "dtypes.h"

using namespace metal;

#define LT_SIMD 32 /* threads of a SIMD group */

/* The function constants of a launch. A kernel file names those that it uses: `#define OP K0`. */
constant int K0 [[function_constant(0)]];
constant int K1 [[function_constant(1)]];
constant int K2 [[function_constant(2)]];
constant int K3 [[function_constant(3)]];
constant int K4 [[function_constant(4)]];
constant int K5 [[function_constant(5)]];
constant int K6 [[function_constant(6)]];
constant int K7 [[function_constant(7)]];

/* Returns the size of an element in bytes. */
static inline int dtype_size(int dtype) {
  switch (dtype) {
  case LT_bool:
  case LT_uint8:
  case LT_int8:
    return 1;
  case LT_int16:
  case LT_float16:
  case LT_bfloat16:
    return 2;
  case LT_int32:
  case LT_float32:
    return 4;
  default: /* int64, complex64 */
    return 8;
  }
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* A complex number with C's operators. Division is not defined here: QUOTIENT of mathx.h divides.
 */
struct Complex {
  float re, im;
  Complex() thread = default;
  Complex() threadgroup = default; /* for variables there */
  Complex(float real, float imag = 0) : re(real), im(imag) {}
};
static inline Complex operator-(Complex a) { return Complex(-a.re, -a.im); }
static inline Complex operator+(Complex a, Complex b) { return Complex(a.re + b.re, a.im + b.im); }
static inline Complex operator-(Complex a, Complex b) { return Complex(a.re - b.re, a.im - b.im); }
static inline Complex operator*(Complex a, Complex b) {
  return Complex(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
static inline bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
static inline bool operator!=(Complex a, Complex b) { return !(a == b); }

/* Converts one number to another type: as C does, except that floats become integers as on every
 * device: they are truncated, NaN becomes 0, and numbers out of range become the smallest or
 * largest integer. */
template <typename To, typename From> struct Converted {
  static To of(From v) { return (To)v; }
};
/* `low` and `high` are floats: the smallest integer, and the largest one plus 1. */
#define LT_FROM_FLOAT(I, low, high, lowest, highest)                                               \
  template <> struct Converted<I, float> {                                                         \
    static I of(float v) {                                                                         \
      return v != v ? (I)0 : v >= high ? (I)highest : v <= low ? (I)lowest : (I)v;                 \
    }                                                                                              \
  };
LT_FROM_FLOAT(uint8_t, 0.0f, 256.0f, 0, 255)
LT_FROM_FLOAT(int8_t, -128.0f, 128.0f, -128, 127)
LT_FROM_FLOAT(int16_t, -32768.0f, 32768.0f, -32768, 32767)
LT_FROM_FLOAT(int32_t, -2147483648.0f, 2147483648.0f, (-2147483647 - 1), 2147483647)
LT_FROM_FLOAT(int64_t, -9223372036854775808.0f, 9223372036854775808.0f, (-9223372036854775807L - 1),
              9223372036854775807L)
#undef LT_FROM_FLOAT
template <typename From> struct Converted<bool, From> {
  static bool of(From v) { return v != (From)0; }
};
/* Complex numbers become real ones by their real part, except bool. */
template <typename To> struct Converted<To, Complex> {
  static To of(Complex v) { return Converted<To, float>::of(v.re); }
};
template <> struct Converted<Complex, Complex> {
  static Complex of(Complex v) { return v; }
};
template <> struct Converted<bool, Complex> {
  static bool of(Complex v) { return v.re != 0 || v.im != 0; }
};
/* Returns v converted to another type. */
template <typename To, typename From> static inline To convert(From v) {
  return Converted<To, From>::of(v);
}

/* Convert to and from the bits of bfloat16, rounding to nearest, ties to even. */
static inline float from_bfloat16(uint16_t bits) { return as_type<float>((uint)bits << 16); }
static inline uint16_t to_bfloat16(float v) {
  uint bits = as_type<uint>(v), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
  return (uint16_t)((v != v ? bits | 0x400000u : rounded) >> 16);
}

/* Convert to and from the bits of float16. */
static inline float from_float16(uint16_t bits) { return (float)as_type<half>(bits); }
static inline uint16_t to_float16(float v) { return as_type<uint16_t>((half)v); }

/* ---- elements -------------------------------------------------------------------------------- */

/* Returns element i of memory of any dtype, converted to T. */
template <typename T> static inline T load(device const char *memory, int dtype, int64_t i) {
  switch (dtype) {
  case LT_bool:
    return (T)(((device const uint8_t *)memory)[i] != 0);
  case LT_uint8:
    return (T)((device const uint8_t *)memory)[i];
  case LT_int8:
    return (T)((device const int8_t *)memory)[i];
  case LT_int16:
    return (T)((device const int16_t *)memory)[i];
  case LT_int32:
    return (T)((device const int32_t *)memory)[i];
  case LT_int64:
    return (T)((device const int64_t *)memory)[i];
  case LT_float16:
    return convert<T>(from_float16(((device const uint16_t *)memory)[i]));
  case LT_bfloat16:
    return convert<T>(from_bfloat16(((device const uint16_t *)memory)[i]));
  case LT_complex64: {
    float2 v = ((device const float2 *)memory)[i];
    return convert<T>(Complex(v.x, v.y));
  }
  default:
    return convert<T>(((device const float *)memory)[i]);
  }
}

/* Converts v to the dtype and stores it as element i. */
template <typename T> static inline void store(device char *memory, int dtype, int64_t i, T v) {
  switch (dtype) {
  case LT_bool:
    ((device uint8_t *)memory)[i] = (uint8_t)(convert<bool>(v) ? 1 : 0);
    break;
  case LT_uint8:
    ((device uint8_t *)memory)[i] = convert<uint8_t>(v);
    break;
  case LT_int8:
    ((device int8_t *)memory)[i] = convert<int8_t>(v);
    break;
  case LT_int16:
    ((device int16_t *)memory)[i] = convert<int16_t>(v);
    break;
  case LT_int32:
    ((device int32_t *)memory)[i] = convert<int32_t>(v);
    break;
  case LT_int64:
    ((device int64_t *)memory)[i] = convert<int64_t>(v);
    break;
  case LT_float16:
    ((device uint16_t *)memory)[i] = to_float16(convert<float>(v));
    break;
  case LT_bfloat16:
    ((device uint16_t *)memory)[i] = to_bfloat16(convert<float>(v));
    break;
  case LT_complex64: {
    Complex z = convert<Complex>(v);
    ((device float2 *)memory)[i] = float2(z.re, z.im);
    break;
  }
  default:
    ((device float *)memory)[i] = convert<float>(v);
    break;
  }
}

/* The same for floating dtypes only: less code where the dtype is not a function constant. */
static inline float load_float(device const char *memory, int dtype, int64_t i) {
  if (dtype == LT_float32) return ((device const float *)memory)[i];
  uint16_t bits = ((device const uint16_t *)memory)[i];
  return dtype == LT_float16 ? from_float16(bits) : from_bfloat16(bits);
}
static inline void store_float(device char *memory, int dtype, int64_t i, float v) {
  if (dtype == LT_float32)
    ((device float *)memory)[i] = v;
  else
    ((device uint16_t *)memory)[i] = dtype == LT_float16 ? to_float16(v) : to_bfloat16(v);
}

/* ---- four elements at once ------------------------------------------------------------------- */

/* Four consecutive elements. */
template <typename T> struct Four { T v[4]; };

/* Loads or stores four consecutive elements from element i on, as one memory transaction. i is a
 * multiple of 4, and the memory is aligned to four elements, at most to 16 bytes. */
template <typename T> static inline Four<T> load4(device const char *memory, int dtype, int64_t i) {
  Four<T> out;
  if (dtype == LT_float32) {
    float4 w = *(device const float4 *)((device const float *)memory + i);
    out.v[0] = convert<T>(w.x), out.v[1] = convert<T>(w.y);
    out.v[2] = convert<T>(w.z), out.v[3] = convert<T>(w.w);
  } else if (dtype == LT_int32) {
    int4 w = *(device const int4 *)((device const int32_t *)memory + i);
    out.v[0] = (T)w.x, out.v[1] = (T)w.y, out.v[2] = (T)w.z, out.v[3] = (T)w.w;
  } else if (dtype == LT_float16 || dtype == LT_bfloat16 || dtype == LT_int16) {
    uint2 w = *(device const uint2 *)((device const uint16_t *)memory + i);
    for (int k = 0; k < 4; k++) {
      uint16_t bits = (uint16_t)((k < 2 ? w.x : w.y) >> (k & 1) * 16);
      out.v[k] = dtype == LT_int16     ? (T)(int16_t)bits
                 : dtype == LT_float16 ? convert<T>(from_float16(bits))
                                       : convert<T>(from_bfloat16(bits));
    }
  } else if (dtype == LT_bool || dtype == LT_uint8 || dtype == LT_int8) {
    uint w = *(device const uint *)(memory + i);
    for (int k = 0; k < 4; k++) {
      uint8_t bits = (uint8_t)(w >> k * 8);
      out.v[k] = dtype == LT_int8 ? (T)(int8_t)bits : dtype == LT_bool ? (T)(bits != 0) : (T)bits;
    }
  } else {
    for (int k = 0; k < 4; k++) out.v[k] = load<T>(memory, dtype, i + k);
  }
  return out;
}
template <typename T>
static inline void store4(device char *memory, int dtype, int64_t i, Four<T> from) {
  if (dtype == LT_float32) {
    *(device float4 *)((device float *)memory + i) =
        float4(convert<float>(from.v[0]), convert<float>(from.v[1]), convert<float>(from.v[2]),
               convert<float>(from.v[3]));
  } else if (dtype == LT_int32) {
    *(device int4 *)((device int32_t *)memory + i) =
        int4(convert<int32_t>(from.v[0]), convert<int32_t>(from.v[1]), convert<int32_t>(from.v[2]),
             convert<int32_t>(from.v[3]));
  } else if (dtype == LT_float16 || dtype == LT_bfloat16 || dtype == LT_int16) {
    uint bits[4];
    for (int k = 0; k < 4; k++)
      bits[k] = dtype == LT_int16     ? (uint)(uint16_t)convert<int16_t>(from.v[k])
                : dtype == LT_float16 ? (uint)to_float16(convert<float>(from.v[k]))
                                      : (uint)to_bfloat16(convert<float>(from.v[k]));
    *(device uint2 *)((device uint16_t *)memory + i) =
        uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
  } else if (dtype == LT_bool || dtype == LT_uint8 || dtype == LT_int8) {
    uint bits = 0;
    for (int k = 0; k < 4; k++)
      bits |= (dtype == LT_int8   ? (uint)(uint8_t)convert<int8_t>(from.v[k])
               : dtype == LT_bool ? (uint)convert<bool>(from.v[k])
                                  : (uint)convert<uint8_t>(from.v[k]))
              << k * 8;
    *(device uint *)(memory + i) = bits;
  } else {
    for (int k = 0; k < 4; k++) store(memory, dtype, i + k, from.v[k]);
  }
}

/* ---- wide numbers ---------------------------------------------------------------------------- */

/* A number of about 48 bits: the sum of two floats, of which `low` is at most half a unit in the
 * last place of `high`. It has the range of float, and takes the place of double. */
struct Wide {
  float high, low;
  Wide() thread = default;
  Wide() threadgroup = default; /* for variables there */
  Wide(float v, float rest = 0) : high(v), low(rest) {}
};

/* Returns a + b exactly. */
static inline Wide two_sum(float a, float b) {
  float sum = a + b, part = sum - a;
  return Wide(sum, (a - (sum - part)) + (b - part));
}
/* Returns a + b exactly, where |a| >= |b| or a is 0. */
static inline Wide quick_two_sum(float a, float b) {
  float sum = a + b;
  return Wide(sum, b - (sum - a));
}
/* Returns a * b exactly, unless it underflows. */
static inline Wide two_prod(float a, float b) {
  float product = a * b;
  return Wide(product, fma(a, b, -product));
}
/* Returns high + low as a wide number. Infinity and NaN have no low part. */
static inline Wide wide_of(float high, float low) {
  Wide w = quick_two_sum(high, low);
  return Wide(w.high, isfinite(w.high) ? w.low : 0.0f);
}
static inline Wide operator-(Wide a) { return Wide(-a.high, -a.low); }
static inline Wide operator+(Wide a, Wide b) {
  Wide s = two_sum(a.high, b.high), t = two_sum(a.low, b.low);
  if (!isfinite(s.high)) return Wide(a.high + b.high);
  s = quick_two_sum(s.high, s.low + t.high);
  return wide_of(s.high, s.low + t.low);
}
static inline Wide operator-(Wide a, Wide b) { return a + -b; }
static inline Wide operator*(Wide a, Wide b) {
  Wide p = two_prod(a.high, b.high);
  if (!isfinite(p.high)) return Wide(p.high);
  return wide_of(p.high, p.low + (a.high * b.low + a.low * b.high));
}
static inline Wide operator/(Wide a, Wide b) {
  float q = a.high / b.high;
  if (!isfinite(q) || q == 0 || !isfinite(b.high)) return Wide(q);
  Wide rest = a - b * Wide(q);
  float more = rest.high / b.high;
  rest = rest - b * Wide(more);
  Wide sum = quick_two_sum(q, more);
  return wide_of(sum.high, sum.low + rest.high / b.high);
}
static inline bool operator==(Wide a, Wide b) { return a.high == b.high && a.low == b.low; }
static inline bool operator!=(Wide a, Wide b) { return !(a == b); }
static inline bool operator<(Wide a, Wide b) {
  return a.high < b.high || (a.high == b.high && a.low < b.low);
}
static inline bool operator>(Wide a, Wide b) { return b < a; }
static inline bool operator<=(Wide a, Wide b) { return a < b || a == b; }
static inline bool operator>=(Wide a, Wide b) { return b <= a; }

/* Returns the integer as a wide number, rounded to about 48 bits. */
static inline Wide wide_of_integer(int64_t n) {
  float high = (float)n;
  if (high >= 9223372036854775808.0f) return Wide(high); /* (int64_t)high would overflow */
  return quick_two_sum(high, (float)(n - (int64_t)high));
}
/* Returns the number rounded to float. */
static inline float narrowed(Wide v) { return v.high + v.low; }
template <> struct Converted<float, Wide> {
  static float of(Wide v) { return narrowed(v); }
};

/* ---- SIMD groups and threadgroups ------------------------------------------------------------ */

/* Return the value of the lane whose number differs by the bits `mask`, or of the lane `step`
 * before. A kernel with types of its own adds overloads for them. */
#define LT_LANES(T)                                                                                \
  static inline T lane_xor(T v, uint mask) { return simd_shuffle_xor(v, (ushort)mask); }           \
  static inline T lane_up(T v, uint step) { return simd_shuffle_up(v, (ushort)step); }             \
  static inline T lane_at(T v, uint lane) { return simd_shuffle(v, (ushort)lane); }
LT_LANES(float)
LT_LANES(int)
LT_LANES(uint)
#undef LT_LANES
/* 64-bit numbers are shuffled in two halves, since Metal has no such shuffle. */
#define LT_LANES_OF_HALVES(T, halves, pack)                                                        \
  static inline T lane_xor(T v, uint mask) {                                                       \
    halves return pack(lane_xor(first, mask), lane_xor(second, mask));                             \
  }                                                                                                \
  static inline T lane_up(T v, uint step) {                                                        \
    halves return pack(lane_up(first, step), lane_up(second, step));                               \
  }                                                                                                \
  static inline T lane_at(T v, uint lane) {                                                        \
    halves return pack(lane_at(first, lane), lane_at(second, lane));                               \
  }
#define LT_INTEGER_HALVES uint first = (uint)v, second = (uint)((uint64_t)v >> 32);
#define LT_SIGNED(a, b)   (int64_t)((uint64_t)(a) | (uint64_t)(b) << 32)
#define LT_UNSIGNED(a, b) ((uint64_t)(a) | (uint64_t)(b) << 32)
#define LT_PARTS          float first = v.re, second = v.im;
#define LT_SUMMANDS       float first = v.high, second = v.low;
LT_LANES_OF_HALVES(int64_t, LT_INTEGER_HALVES, LT_SIGNED)
LT_LANES_OF_HALVES(uint64_t, LT_INTEGER_HALVES, LT_UNSIGNED)
LT_LANES_OF_HALVES(Complex, LT_PARTS, Complex)
LT_LANES_OF_HALVES(Wide, LT_SUMMANDS, Wide)

/* Reduces over the lanes of a SIMD group, all of which call it; every lane gets the result. `join`
 * is a function object, T operator()(T, T). Lanes are joined in a fixed order, so results are the
 * same on every run, and for a commutative join the same in every lane. */
template <typename T, typename Join> static inline T simd_all(T v, Join join) {
  for (uint mask = LT_SIMD / 2; mask > 0; mask /= 2) v = join(v, lane_xor(v, mask));
  return v;
}

/* Reduces over a threadgroup whose size `threads` is a multiple of 32, up to 1024; all of its
 * threads call it. `index` is the thread's number in the group, `nothing` the identity of `join`,
 * and `scratch` memory for 32 T, which have no constructors (Wide and Complex do). Every thread
 * gets the result; `scratch` may be reused at once. */
template <typename T, typename Join>
static inline T group_all(T v, T nothing, Join join, threadgroup T *scratch, uint index,
                          uint threads) {
  uint lane = index % LT_SIMD, simd = index / LT_SIMD, simds = threads / LT_SIMD;
  v = simd_all(v, join);
  if (simds == 1) return v;
  if (lane == 0) scratch[simd] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  T part = nothing;
  if (lane < simds) part = scratch[lane];
  v = simd_all(part, join);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return v;
}

/* The sum of two numbers. */
struct Sum {
  template <typename T> T operator()(T a, T b) const { return a + b; }
};
/* The maximum, where NaN is larger than any number. */
struct Largest {
  template <typename T> T operator()(T a, T b) const { return a > b || a != a ? a : b; }
};

/* ---- strided tensors ------------------------------------------------------------------------- */

/* Computes the offsets of element i (in row-major order of the shape) in the first N operands of a
 * geometry (geometry.h). */
template <int N, typename G>
static inline void offsets_at(constant G &g, int64_t i, thread int64_t (&offset)[N]) {
  for (int k = 0; k < N; k++) offset[k] = 0;
  if (g.narrow) { /* 32-bit division is several times faster */
    uint rest = (uint)i, sum[N];
    for (int k = 0; k < N; k++) sum[k] = 0;
    for (int d = g.ndim - 1; d > 0; d--) {
      uint size = (uint)g.shape[d], next = rest / size, at = rest - next * size;
      for (int k = 0; k < N; k++) sum[k] += at * (uint)g.strides[k][d];
      rest = next;
    }
    for (int k = 0; k < N; k++)
      offset[k] = (int64_t)(sum[k] + (g.ndim ? rest * (uint)g.strides[k][0] : 0u));
    return;
  }
  for (int d = g.ndim - 1; d >= 0; d--) {
    int64_t next = i / g.shape[d], at = i - next * g.shape[d];
    for (int k = 0; k < N; k++) offset[k] += at * g.strides[k][d];
    i = next;
  }
}

/* ---- bad values ------------------------------------------------------------------------------ */

/* Reports that the value at `position` of the argument that the call checks is bad; the first
 * position is kept. `slot` is the check's lt_MpsFaultSlot (fault.h), whose first member is the
 * position. Positions that do not fit in 32 bits are reported as the largest one that does. */
static inline void report_fault(device char *slot, int64_t position) {
  uint at = position < 0xfffffffeL ? (uint)position : 0xfffffffeu;
  atomic_fetch_min_explicit((device atomic_uint *)slot, at, memory_order_relaxed);
}

#endif
