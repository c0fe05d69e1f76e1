/* kernel_functions.h: functions that NVRTC provides without a header and that the library's own
 * kernels do not need, for kernels from source. */
#ifndef LT_EMULATED_KERNEL_FUNCTIONS_H
#define LT_EMULATED_KERNEL_FUNCTIONS_H

#include "arithmetic.h"
#include "device.h"

#define __builtin_assume(condition) ((void)0)

/* ---- functions of the C library -------------------------------------------------------------- */

typedef long clock_t;
LT_EMULATED clock_t clock() { return (clock_t)lt_emulated_clock(); }

extern "C" {
void *memcpy(void *, const void *, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
}
/* the result, the parameters, their names */
#define LT_EMULATED_FUNCTIONS(X, T, f)                                                             \
  X(T, f, T, frexp, (T x, int *exponent), (x, exponent))                                           \
  X(T, f, T, modf, (T x, T * whole), (x, whole))                                                   \
  X(T, f, T, scalbn, (T x, int n), (x, n))                                                         \
  X(T, f, T, logb, (T x), (x))                                                                     \
  X(T, f, int, ilogb, (T x), (x))                                                                  \
  X(T, f, long, lrint, (T x), (x))                                                                 \
  X(T, f, long, lround, (T x), (x))                                                                \
  X(T, f, long long, llrint, (T x), (x))                                                           \
  X(T, f, long long, llround, (T x), (x))
#define LT_EMULATED_DECLARE(T, f, R, name, parameters, names) R name##f parameters noexcept;
#define LT_EMULATED_OVERLOAD(T, f, R, name, parameters, names)                                     \
  LT_EMULATED R name parameters { return name##f names; }
extern "C" {
LT_EMULATED_FUNCTIONS(LT_EMULATED_DECLARE, double, )
LT_EMULATED_FUNCTIONS(LT_EMULATED_DECLARE, float, f)
}
LT_EMULATED_FUNCTIONS(LT_EMULATED_OVERLOAD, float, f)
#undef LT_EMULATED_FUNCTIONS
#undef LT_EMULATED_DECLARE
#undef LT_EMULATED_OVERLOAD
LT_EMULATED bool signbit(float x) { return __builtin_signbit(x); }
LT_EMULATED bool signbit(double x) { return __builtin_signbit(x); }

/* ---- functions of CUDA ----------------------------------------------------------------------- */

#define LT_EMULATED_1(name, e)                                                                     \
  LT_EMULATED double name(double x) { return e; }                                                  \
  LT_EMULATED float name##f(float v) { return (float)name((double)v); }                            \
  LT_EMULATED float name(float v) { return name##f(v); }
#define LT_EMULATED_PI 3.14159265358979323846
/* Returns x modulo 2, from -1 to 1. */
LT_EMULATED double lt_emulated_turn(double x) { return x - 2 * rint(x / 2); }
LT_EMULATED double lt_emulated_half_turn(double r) {
  return fabs(r) > 0.5 ? copysign(1.0, r) - r : r;
}
LT_EMULATED_1(exp10, pow(10.0, x))
LT_EMULATED_1(sinpi, sin(LT_EMULATED_PI *lt_emulated_half_turn(lt_emulated_turn(x))))
LT_EMULATED_1(cospi, sin(LT_EMULATED_PI *(0.5 - fabs(lt_emulated_turn(x)))))
LT_EMULATED_1(rcbrt, 1 / cbrt(x))
LT_EMULATED_1(normcdf, 0.5 * erfc(-x * 0.70710678118654752440))
#undef LT_EMULATED_1
LT_EMULATED double norm3d(double x, double y, double z) { return sqrt(x * x + y * y + z * z); }
LT_EMULATED float norm3df(float x, float y, float z) { return (float)norm3d(x, y, z); }
LT_EMULATED double rhypot(double x, double y) { return 1 / hypot(x, y); }
LT_EMULATED float rhypotf(float x, float y) { return (float)rhypot(x, y); }
LT_EMULATED void sincos(double x, double *sine, double *cosine) {
  *sine = sin(x);
  *cosine = cos(x);
}
LT_EMULATED void sincosf(float x, float *sine, float *cosine) {
  *sine = sinf(x);
  *cosine = cosf(x);
}
LT_EMULATED void sincos(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }
LT_EMULATED void __sincosf(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }
LT_EMULATED float __tanf(float x) { return tanf(x); }
LT_EMULATED float __log10f(float x) { return log10f(x); }
LT_EMULATED float __frsqrt_rn(float x) { return (float)(1 / sqrt((double)x)); }

/* ---- conversions ----------------------------------------------------------------------------- */

/* Converts a double to an integer as a device does: out of range, to the nearest integer. */
template <class To> LT_EMULATED To lt_emulated_to_integer(double x) {
  const bool has_sign = (To)-1 < (To)1;
  const unsigned long long high = 1ull << (sizeof(To) * 8 - 1);
  const To top = has_sign ? (To)(high - 1) : (To)-1;
  const double end = has_sign ? (double)high : 2.0 * (double)high;
  if (x != x) return sizeof(To) == 8 ? (To)high : (To)0;
  if (x >= end) return top;
  if (x < (has_sign ? -end : 0.0)) return has_sign ? (To)(-top - 1) : (To)0;
  return (To)x;
}
#define LT_EMULATED_TO_INTEGER(from, From, to, To)                                                 \
  LT_EMULATED To __##from##2##to##_rn(From x) {                                                    \
    return lt_emulated_to_integer<To>(rint((double)x));                                            \
  }                                                                                                \
  LT_EMULATED To __##from##2##to##_rz(From x) {                                                    \
    return lt_emulated_to_integer<To>(trunc((double)x));                                           \
  }                                                                                                \
  LT_EMULATED To __##from##2##to##_rd(From x) {                                                    \
    return lt_emulated_to_integer<To>(floor((double)x));                                           \
  }                                                                                                \
  LT_EMULATED To __##from##2##to##_ru(From x) {                                                    \
    return lt_emulated_to_integer<To>(ceil((double)x));                                            \
  }
LT_EMULATED_TO_INTEGER(float, float, uint, unsigned)
LT_EMULATED_TO_INTEGER(float, float, ll, long long)
LT_EMULATED_TO_INTEGER(float, float, ull, unsigned long long)
LT_EMULATED_TO_INTEGER(double, double, int, int)
LT_EMULATED_TO_INTEGER(double, double, uint, unsigned)
LT_EMULATED_TO_INTEGER(double, double, ll, long long)
LT_EMULATED_TO_INTEGER(double, double, ull, unsigned long long)
#undef LT_EMULATED_TO_INTEGER
LT_EMULATED int __float2int_ru(float x) { return lt_emulated_to_integer<int>(ceilf(x)); }
LT_EMULATED float __uint2float_rn(unsigned i) { return (float)i; }
LT_EMULATED float __ll2float_rn(long long i) { return (float)i; }
LT_EMULATED double __int2double_rn(int i) { return i; }
LT_EMULATED double __ll2double_rn(long long i) { return (double)i; }
LT_EMULATED double __hiloint2double(int high, int low) {
  return lt_emulated_bits<double>((unsigned long long)(unsigned)high << 32 | (unsigned)low);
}
LT_EMULATED int __double2hiint(double d) { return (int)(lt_emulated_bits<long long>(d) >> 32); }
LT_EMULATED int __double2loint(double d) { return (int)lt_emulated_bits<long long>(d); }

/* ---- integers -------------------------------------------------------------------------------- */

LT_EMULATED int __mul24(int a, int b) {
  return (int)((unsigned)((int)((unsigned)a << 8) >> 8) * (unsigned)((int)((unsigned)b << 8) >> 8));
}
LT_EMULATED unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffff) * (b & 0xffffff); }
LT_EMULATED unsigned __usad(unsigned a, unsigned b, unsigned c) {
  return (a > b ? a - b : b - a) + c;
}
LT_EMULATED unsigned __sad(int a, int b, unsigned c) {
  return (a > b ? (unsigned)a - (unsigned)b : (unsigned)b - (unsigned)a) + c;
}
LT_EMULATED int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
LT_EMULATED int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
/* Each byte of the result is one of the eight bytes of a and b. */
LT_EMULATED unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
  unsigned long long bytes = (unsigned long long)b << 32 | a;
  unsigned out = 0;
  for (int i = 0; i < 4; i++) out |= (unsigned)(bytes >> (which >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return out;
}

/* min and max of two types. */
#define LT_EMULATED_MIXED(R, T, U)                                                                 \
  LT_EMULATED R min(T a, U b) { return min((R)a, (R)b); }                                          \
  LT_EMULATED R max(T a, U b) { return max((R)a, (R)b); }                                          \
  LT_EMULATED R min(U a, T b) { return min((R)a, (R)b); }                                          \
  LT_EMULATED R max(U a, T b) { return max((R)a, (R)b); }
LT_EMULATED_MIXED(unsigned, unsigned, int)
LT_EMULATED_MIXED(unsigned long, unsigned long, long)
LT_EMULATED_MIXED(unsigned long long, unsigned long long, long long)
LT_EMULATED_MIXED(double, double, float)
#undef LT_EMULATED_MIXED

/* ---- functions that are not supported -------------------------------------------------------- */

unsigned __activemask() __attribute__((
    error("__activemask() is not supported on an emulated device: its threads run one after the "
          "other. Write the mask of the threads, such as 0xffffffff")));

#endif
