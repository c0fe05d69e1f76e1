/* half.h: the 16-bit floating types. Arithmetic is computed in float and rounded again, which is
 * exact for + - * / and sqrt, because float has more than twice the bits. */
#ifndef LT_EMULATED_HALF_H
#define LT_EMULATED_HALF_H

#include "arithmetic.h"
#include "atomics.h"
#include "emulated/half_bits.h"

#define LT_EMULATED_HALF(H, H2, to, from)                                                          \
  struct alignas(2) H##_raw {                                                                      \
    unsigned short x;                                                                              \
  };                                                                                               \
  struct alignas(2) H {                                                                            \
    unsigned short bits;                                                                           \
    H() = default;                                                                                 \
    LT_EMULATED H(H##_raw raw) : bits(raw.x) {}                                                    \
    LT_EMULATED H(float f) : bits(to(f)) {}                                                        \
    LT_EMULATED H(double d) : bits(to(lt_emulated_round_odd(d))) {}                                \
    LT_EMULATED H(int i) : bits(to(lt_emulated_round_odd((double)i))) {}                           \
    LT_EMULATED H(unsigned i) : bits(to(lt_emulated_round_odd((double)i))) {}                      \
    LT_EMULATED operator float() const { return from(bits); }                                      \
    LT_EMULATED operator H##_raw() const { return {bits}; }                                        \
  };                                                                                               \
  struct alignas(4) H2 {                                                                           \
    H x, y;                                                                                        \
  };                                                                                               \
  LT_EMULATED H operator+(H a, H b) { return H(from(a.bits) + from(b.bits)); }                     \
  LT_EMULATED H operator-(H a, H b) { return H(from(a.bits) - from(b.bits)); }                     \
  LT_EMULATED H operator*(H a, H b) { return H(from(a.bits) * from(b.bits)); }                     \
  LT_EMULATED H operator/(H a, H b) { return H(from(a.bits) / from(b.bits)); }                     \
  LT_EMULATED H operator-(H a) {                                                                   \
    a.bits ^= 0x8000;                                                                              \
    return a;                                                                                      \
  }                                                                                                \
  LT_EMULATED H &operator+=(H &a, H b) { return a = a + b; }                                       \
  LT_EMULATED H &operator-=(H &a, H b) { return a = a - b; }                                       \
  LT_EMULATED H &operator*=(H &a, H b) { return a = a * b; }                                       \
  LT_EMULATED H &operator/=(H &a, H b) { return a = a / b; }                                       \
  LT_EMULATED bool operator<(H a, H b) { return from(a.bits) < from(b.bits); }                     \
  LT_EMULATED bool operator>(H a, H b) { return from(a.bits) > from(b.bits); }                     \
  LT_EMULATED bool operator<=(H a, H b) { return from(a.bits) <= from(b.bits); }                   \
  LT_EMULATED bool operator>=(H a, H b) { return from(a.bits) >= from(b.bits); }                   \
  LT_EMULATED bool operator==(H a, H b) { return from(a.bits) == from(b.bits); }                   \
  LT_EMULATED bool operator!=(H a, H b) { return from(a.bits) != from(b.bits); }                   \
  LT_EMULATED H __hadd(H a, H b) { return a + b; }                                                 \
  LT_EMULATED H __hsub(H a, H b) { return a - b; }                                                 \
  LT_EMULATED H __hmul(H a, H b) { return a * b; }                                                 \
  LT_EMULATED H __hdiv(H a, H b) { return a / b; }                                                 \
  LT_EMULATED H __hneg(H a) { return -a; }                                                         \
  LT_EMULATED bool __hisnan(H a) { return from(a.bits) != from(a.bits); }                          \
  /* The product is exact in double; the sum may be rounded twice. */                              \
  LT_EMULATED H __hfma(H a, H b, H c) {                                                            \
    return H(__builtin_fma((double)from(a.bits), (double)from(b.bits), (double)from(c.bits)));     \
  }                                                                                                \
  LT_EMULATED bool __heq(H a, H b) { return a == b; }                                              \
  LT_EMULATED bool __hne(H a, H b) { return a != b; }                                              \
  LT_EMULATED bool __hlt(H a, H b) { return a < b; }                                               \
  LT_EMULATED bool __hle(H a, H b) { return a <= b; }                                              \
  LT_EMULATED bool __hgt(H a, H b) { return a > b; }                                               \
  LT_EMULATED bool __hge(H a, H b) { return a >= b; }                                              \
  /* A NaN gives way to a number. */                                                               \
  LT_EMULATED H __hmax(H a, H b) { return H(__builtin_fmaxf(from(a.bits), from(b.bits))); }        \
  LT_EMULATED H __hmin(H a, H b) { return H(__builtin_fminf(from(a.bits), from(b.bits))); }        \
  LT_EMULATED H __habs(H a) { return H(__builtin_fabsf(from(a.bits))); }                           \
  LT_EMULATED bool __hisinf(H a) { return __builtin_isinf(from(a.bits)); }                         \
  LT_EMULATED H hexp(H a) { return H(__builtin_expf(from(a.bits))); }                              \
  LT_EMULATED H hexp2(H a) { return H(__builtin_exp2f(from(a.bits))); }                            \
  LT_EMULATED H hlog(H a) { return H(__builtin_logf(from(a.bits))); }                              \
  LT_EMULATED H hlog2(H a) { return H(__builtin_log2f(from(a.bits))); }                            \
  LT_EMULATED H hlog10(H a) { return H(__builtin_log10f(from(a.bits))); }                          \
  LT_EMULATED H hsqrt(H a) { return H(__builtin_sqrtf(from(a.bits))); }                            \
  LT_EMULATED H hsin(H a) { return H(__builtin_sinf(from(a.bits))); }                              \
  LT_EMULATED H hcos(H a) { return H(__builtin_cosf(from(a.bits))); }                              \
  LT_EMULATED H hfloor(H a) { return H(__builtin_floorf(from(a.bits))); }                          \
  LT_EMULATED H hceil(H a) { return H(__builtin_ceilf(from(a.bits))); }                            \
  LT_EMULATED H htrunc(H a) { return H(__builtin_truncf(from(a.bits))); }                          \
  LT_EMULATED H hrint(H a) { return H(__builtin_rintf(from(a.bits))); }                            \
  LT_EMULATED H hrsqrt(H a) { return H(1.0f / __builtin_sqrtf(from(a.bits))); }                    \
  LT_EMULATED H hrcp(H a) { return H(1.0f / from(a.bits)); }                                       \
  LT_EMULATED H2 __hadd2(H2 a, H2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }              \
  LT_EMULATED H2 __hsub2(H2 a, H2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }              \
  LT_EMULATED H2 __hmul2(H2 a, H2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }              \
  LT_EMULATED H2 __hmax2(H2 a, H2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }              \
  LT_EMULATED H2 __hmin2(H2 a, H2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }              \
  LT_EMULATED H2 __h2div(H2 a, H2 b) { return {a.x / b.x, a.y / b.y}; }                            \
  LT_EMULATED H2 __hneg2(H2 a) { return {-a.x, -a.y}; }                                            \
  LT_EMULATED H2 __hfma2(H2 a, H2 b, H2 c) {                                                       \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};                                         \
  }                                                                                                \
  LT_EMULATED H2 operator+(H2 a, H2 b) { return __hadd2(a, b); }                                   \
  LT_EMULATED H2 operator-(H2 a, H2 b) { return __hsub2(a, b); }                                   \
  LT_EMULATED H2 operator*(H2 a, H2 b) { return __hmul2(a, b); }                                   \
  LT_EMULATED H atomicAdd(H *p, H v) {                                                             \
    return lt_emulated_update(p, [v](H old) { return old + v; });                                  \
  }
LT_EMULATED_HALF(__half, __half2, lt_emulated_to_half, lt_emulated_from_half)
LT_EMULATED_HALF(__nv_bfloat16, __nv_bfloat162, lt_emulated_to_bfloat16, lt_emulated_from_bfloat16)
#undef LT_EMULATED_HALF

#endif
