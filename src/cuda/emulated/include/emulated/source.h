/* source.h: included before the source of a kernel that is compiled at run time. As with NVRTC, no
 * header of the C library is read: the functions that a kernel may call are declared here. */
#ifndef LT_EMULATED_SOURCE_H
#define LT_EMULATED_SOURCE_H

#include "device.h"

typedef decltype(sizeof 0) size_t;
typedef decltype((char *)nullptr - (char *)nullptr) ptrdiff_t;

extern "C" {
int printf(const char *format, ...);
int dprintf(int file, const char *format, ...);
void *malloc(size_t) noexcept;
void free(void *) noexcept;
int abs(int) noexcept;
long long llabs(long long) noexcept;
#define LT_EMULATED_1(name)                                                                        \
  double name(double) noexcept;                                                                    \
  float name##f(float) noexcept;
#define LT_EMULATED_2(name)                                                                        \
  double name(double, double) noexcept;                                                            \
  float name##f(float, float) noexcept;
#define LT_EMULATED_FUNCTIONS(ONE, TWO)                                                            \
  ONE(acos)                                                                                        \
  ONE(acosh)                                                                                       \
  ONE(asin)                                                                                        \
  ONE(asinh)                                                                                       \
  ONE(atan)                                                                                        \
  ONE(atanh)                                                                                       \
  ONE(cbrt)                                                                                        \
  ONE(ceil)                                                                                        \
  ONE(cos)                                                                                         \
  ONE(cosh)                                                                                        \
  ONE(erf)                                                                                         \
  ONE(erfc)                                                                                        \
  ONE(exp)                                                                                         \
  ONE(exp2)                                                                                        \
  ONE(expm1)                                                                                       \
  ONE(fabs)                                                                                        \
  ONE(floor)                                                                                       \
  ONE(lgamma)                                                                                      \
  ONE(log)                                                                                         \
  ONE(log10)                                                                                       \
  ONE(log1p)                                                                                       \
  ONE(log2)                                                                                        \
  ONE(nearbyint)                                                                                   \
  ONE(rint)                                                                                        \
  ONE(round)                                                                                       \
  ONE(sin)                                                                                         \
  ONE(sinh)                                                                                        \
  ONE(sqrt)                                                                                        \
  ONE(tan)                                                                                         \
  ONE(tanh)                                                                                        \
  ONE(tgamma)                                                                                      \
  ONE(trunc)                                                                                       \
  TWO(atan2)                                                                                       \
  TWO(copysign)                                                                                    \
  TWO(fdim)                                                                                        \
  TWO(fmax)                                                                                        \
  TWO(fmin)                                                                                        \
  TWO(fmod)                                                                                        \
  TWO(hypot)                                                                                       \
  TWO(nextafter)                                                                                   \
  TWO(pow)                                                                                         \
  TWO(remainder)
LT_EMULATED_FUNCTIONS(LT_EMULATED_1, LT_EMULATED_2)
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
}
#undef LT_EMULATED_1
#undef LT_EMULATED_2

/* The same names for float. */
#define LT_EMULATED_1(name)                                                                        \
  LT_EMULATED float name(float x) { return name##f(x); }
#define LT_EMULATED_2(name)                                                                        \
  LT_EMULATED float name(float x, float y) { return name##f(x, y); }
LT_EMULATED_FUNCTIONS(LT_EMULATED_1, LT_EMULATED_2)
#undef LT_EMULATED_1
#undef LT_EMULATED_2
#undef LT_EMULATED_FUNCTIONS
LT_EMULATED float fma(float x, float y, float z) { return fmaf(x, y, z); }
LT_EMULATED float abs(float x) { return fabsf(x); }
LT_EMULATED double abs(double x) { return fabs(x); }
LT_EMULATED long long abs(long long x) { return llabs(x); }
LT_EMULATED bool isnan(float x) { return x != x; }
LT_EMULATED bool isnan(double x) { return x != x; }
LT_EMULATED bool isinf(float x) { return __builtin_isinf(x); }
LT_EMULATED bool isinf(double x) { return __builtin_isinf(x); }
LT_EMULATED bool isfinite(float x) { return __builtin_isfinite(x); }
LT_EMULATED bool isfinite(double x) { return __builtin_isfinite(x); }

#include "arithmetic.h"
#include "atomics.h"
#include "kernel_functions.h"
#include "launch.h"

/* NVRTC provides assert without a header, too. */
LT_EMULATED void lt_emulated_assert(const char *what, const char *file, int line,
                                    const char *function) {
  dprintf(2, "%s:%d: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
          line, function, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z,
          what);
  lt_emulated_trap(LT_EMULATED_ASSERTION);
}
#define assert(e) ((e) ? (void)0 : lt_emulated_assert(#e, __FILE__, __LINE__, __func__))

/* Dynamic shared memory declared outside of functions: extern __shared__ T name[]. */
template <class T> struct lt_EmulatedShared {
  LT_EMULATED operator T *() const { return (T *)lt_emulated_here()->shared; }
  template <class U> LT_EMULATED explicit operator U *() const {
    return (U *)lt_emulated_here()->shared;
  }
};
template <class To, class From> LT_EMULATED To lt_emulated_cast(From &&from) {
  return reinterpret_cast<To>(static_cast<From &&>(from));
}
template <class To, class T> LT_EMULATED To lt_emulated_cast(const lt_EmulatedShared<T> &from) {
  return (To)from;
}
#define reinterpret_cast lt_emulated_cast

/* ---- what the compiled library exports ------------------------------------------------------- */

/* The leak checker of gcc 12's sanitizers mistakes thread-local variables that begin 16 bytes after
 * the start of a page for a structure of an old C library, and crashes. So they are aligned to
 * more. */
#ifdef __SANITIZE_ADDRESS__
__attribute__((used, aligned(64))) static thread_local char lt_emulated_aligned[64];
#endif

/* C++'s library is not linked. */
void *operator new(size_t n) { return malloc(n); }
void operator delete(void *p) noexcept { free(p); }
void operator delete(void *p, size_t) noexcept { free(p); }

#include "emulated/calls.h"

/* The indices 0 to N - 1 as template arguments. */
template <int... I> struct lt_EmulatedIndices {};
template <int N, int... I> struct lt_EmulatedCount : lt_EmulatedCount<N - 1, N - 1, I...> {};
template <int... I> struct lt_EmulatedCount<0, I...> { typedef lt_EmulatedIndices<I...> indices; };
template <class... P, int... I>
lt_EmulatedLaunch *lt_emulated_bind(void (*kernel)(P...), void **values, lt_EmulatedIndices<I...>) {
  (void)values;
  return new lt_EmulatedKernel<P...>(kernel, *(P *)values[I]...);
}
/* Creates a launch of the kernel with the arguments at these addresses. */
template <class... P> lt_EmulatedLaunch *lt_emulated_make(void (*kernel)(P...), void **values) {
  return lt_emulated_bind(kernel, values, typename lt_EmulatedCount<(int)sizeof...(P)>::indices());
}
#endif
