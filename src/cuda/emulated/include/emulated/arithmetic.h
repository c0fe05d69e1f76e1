/* arithmetic.h: the math and bit functions that CUDA adds to the C library's. */
#ifndef LT_EMULATED_ARITHMETIC_H
#define LT_EMULATED_ARITHMETIC_H

#include "device.h"
#include "emulated/half_bits.h"

/* ---- loads and stores with a caching hint ---------------------------------------------------- */

template <class T> struct lt_EmulatedSame { typedef T type; };
template <class T> LT_EMULATED T __ldg(const T *p) { return *p; }
template <class T> LT_EMULATED T __ldcs(const T *p) { return *p; }
template <class T> LT_EMULATED T __ldca(const T *p) { return *p; }
template <class T> LT_EMULATED T __ldcg(const T *p) { return *p; }
template <class T> LT_EMULATED void __stcs(T *p, typename lt_EmulatedSame<T>::type v) { *p = v; }
template <class T> LT_EMULATED void __stcg(T *p, typename lt_EmulatedSame<T>::type v) { *p = v; }

/* ---- bits ------------------------------------------------------------------------------------ */

LT_EMULATED int __float_as_int(float f) { return lt_emulated_bits<int>(f); }
LT_EMULATED unsigned __float_as_uint(float f) { return lt_emulated_bits<unsigned>(f); }
LT_EMULATED float __int_as_float(int i) { return lt_emulated_bits<float>(i); }
LT_EMULATED float __uint_as_float(unsigned i) { return lt_emulated_bits<float>(i); }
LT_EMULATED long long __double_as_longlong(double d) { return lt_emulated_bits<long long>(d); }
LT_EMULATED double __longlong_as_double(long long i) { return lt_emulated_bits<double>(i); }
LT_EMULATED int __popc(unsigned v) { return __builtin_popcount(v); }
LT_EMULATED int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
LT_EMULATED int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
LT_EMULATED int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
LT_EMULATED int __ffs(int v) { return __builtin_ffs(v); }
LT_EMULATED int __ffsll(long long v) { return __builtin_ffsll(v); }
LT_EMULATED unsigned __brev(unsigned v) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; i++) reversed |= (v >> i & 1u) << (31 - i);
  return reversed;
}
LT_EMULATED unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned by) {
  return (unsigned)((((unsigned long long)hi << 32 | lo) << (by & 31)) >> 32);
}
LT_EMULATED unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned by) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (by & 31));
}
LT_EMULATED unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
LT_EMULATED int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
__extension__ typedef unsigned __int128 lt_EmulatedWide;
__extension__ typedef __int128 lt_EmulatedSignedWide;
LT_EMULATED unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((lt_EmulatedWide)a * b >> 64);
}
LT_EMULATED long long __mul64hi(long long a, long long b) {
  return (long long)((lt_EmulatedSignedWide)a * b >> 64);
}

/* ---- floating point -------------------------------------------------------------------------- */

LT_EMULATED float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
LT_EMULATED double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
LT_EMULATED float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
extern "C" { /* the C library's math.h declares these names itself */
LT_EMULATED float __expf(float x) noexcept { return __builtin_expf(x); }
LT_EMULATED float __exp10f(float x) noexcept { return __builtin_powf(10.0f, x); }
LT_EMULATED float __logf(float x) noexcept { return __builtin_logf(x); }
LT_EMULATED float __log2f(float x) noexcept { return __builtin_log2f(x); }
LT_EMULATED float __sinf(float x) noexcept { return __builtin_sinf(x); }
LT_EMULATED float __cosf(float x) noexcept { return __builtin_cosf(x); }
LT_EMULATED float __powf(float x, float y) noexcept { return __builtin_powf(x, y); }
}
LT_EMULATED float __fdividef(float a, float b) { return a / b; }
LT_EMULATED float __saturatef(float x) { return x > 0 ? x > 1 ? 1.0f : x : 0.0f; }
#define LT_EMULATED_ROUNDED(f, d, T)                                                               \
  LT_EMULATED T __##f##add_rn(T a, T b) { return a + b; }                                          \
  LT_EMULATED T __##f##sub_rn(T a, T b) { return a - b; }                                          \
  LT_EMULATED T __##f##mul_rn(T a, T b) { return a * b; }                                          \
  LT_EMULATED T __##f##div_rn(T a, T b) { return a / b; }                                          \
  LT_EMULATED T __##f##rcp_rn(T a) { return 1 / a; }                                               \
  LT_EMULATED T __##f##sqrt_rn(T a) { return (T)__builtin_sqrt##d(a); }
LT_EMULATED_ROUNDED(f, f, float)
LT_EMULATED_ROUNDED(d, , double)
#undef LT_EMULATED_ROUNDED
LT_EMULATED float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
LT_EMULATED double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
LT_EMULATED int __float2int_rn(float x) { return (int)__builtin_rintf(x); }
LT_EMULATED int __float2int_rz(float x) { return (int)x; }
LT_EMULATED int __float2int_rd(float x) { return (int)__builtin_floorf(x); }
LT_EMULATED float __int2float_rn(int i) { return (float)i; }
LT_EMULATED float __double2float_rn(double d) { return (float)d; }
/* Rounds towards zero: a result that was rounded away from it is decremented by one unit. */
LT_EMULATED float __double2float_rz(double d) {
  float f = (float)d;
  if (__builtin_fabs((double)f) > __builtin_fabs(d))
    f = lt_emulated_bits<float>(lt_emulated_bits<unsigned>(f) - 1);
  return f;
}

/* ---- min and max ----------------------------------------------------------------------------- */

#define LT_EMULATED_MINMAX(T)                                                                      \
  LT_EMULATED T min(T a, T b) { return b < a ? b : a; }                                            \
  LT_EMULATED T max(T a, T b) { return a < b ? b : a; }
LT_EMULATED_MINMAX(int)
LT_EMULATED_MINMAX(unsigned)
LT_EMULATED_MINMAX(long)
LT_EMULATED_MINMAX(unsigned long)
LT_EMULATED_MINMAX(long long)
LT_EMULATED_MINMAX(unsigned long long)
#undef LT_EMULATED_MINMAX
/* With one NaN argument the result is the other argument. */
LT_EMULATED float min(float a, float b) { return __builtin_fminf(a, b); }
LT_EMULATED float max(float a, float b) { return __builtin_fmaxf(a, b); }
LT_EMULATED double min(double a, double b) { return __builtin_fmin(a, b); }
LT_EMULATED double max(double a, double b) { return __builtin_fmax(a, b); }

#endif
