/* maths.h: M(f), the maths functions of the float loops, declared so that loops over them call vector variants.
 *
 * With the attribute, gcc turns a call of expf inside a vector loop into _ZGVeN16v_expf and its like, which libmvec and
 * SLEEF have. Which library is taken, function by function, was measured (AVX-512, ns for a float, worst error in ULP):
 * libmvec is the faster in nearly all (tanh 0.2 ns and 1.4 ULP against 1.0 and 1.0; erf 0.4 and 4.0 against 1.5 and
 * 0.8) and has every special case right, while SLEEF's log1p, sinh, cosh, asinh and acosh overflow too early. For exp,
 * exp2, log and log10 SLEEF is about as fast and more exact (exp 1.0 ULP against 2.5, log 0.6 against 3.8): where
 * it is there, they are called by names that only SLEEF has. fmod must be exact and has no vector variant that is.
 */
#ifndef LT_CPU_MATHS_H
#define LT_CPU_MATHS_H

#include <math.h>

#if defined(LT_VECTOR_MATH) && defined(__GNUC__) && !defined(__clang__) && !defined(LT_DEBUG)
#define LT_SIMD __attribute__((simd("notinbranch")))
#else
#define LT_SIMD
#undef LT_VECTOR_SLEEF
#endif

/* lt_m_<g>f and lt_m_<g>: the C library's functions, and their vector variants where the attribute names them. */
#define LT_PLAIN1(g)                                                                               \
  LT_SIMD float g##f(float);                                                                       \
  LT_SIMD double g(double);                                                                        \
  LT_CALL1(g)
#define LT_PLAIN2(g)                                                                               \
  LT_SIMD float g##f(float, float);                                                                \
  LT_SIMD double g(double, double);                                                                \
  LT_CALL2(g)
#define LT_CALL1(g)                                                                                \
  static inline float lt_m_##g##f(float x) { return g##f(x); }                                     \
  static inline double lt_m_##g(double x) { return g(x); }
#define LT_CALL2(g)                                                                                \
  static inline float lt_m_##g##f(float x, float y) { return g##f(x, y); }                         \
  static inline double lt_m_##g(double x, double y) { return g(x, y); }

/* The same by SLEEF's own name: the compiler still knows the function, and puts the name into the vector variant's. */
#ifdef LT_VECTOR_SLEEF
#define LT_SLEEF1(g)                                                                               \
  LT_SIMD float g##f(float) __asm__("__" #g "f_finite");                                           \
  LT_SIMD double g(double) __asm__("__" #g "_finite");                                             \
  LT_CALL1(g)
#else
#define LT_SLEEF1 LT_PLAIN1
#endif

LT_SLEEF1(exp)
LT_SLEEF1(exp2)
LT_SLEEF1(log)
LT_SLEEF1(log10)

LT_PLAIN1(expm1)
LT_PLAIN1(log2)
LT_PLAIN1(log1p)
LT_PLAIN1(sin)
LT_PLAIN1(cos)
LT_PLAIN1(tan)
LT_PLAIN1(asin)
LT_PLAIN1(acos)
LT_PLAIN1(atan)
LT_PLAIN1(sinh)
LT_PLAIN1(cosh)
LT_PLAIN1(tanh)
LT_PLAIN1(asinh)
LT_PLAIN1(acosh)
LT_PLAIN1(atanh)
LT_PLAIN1(erf)
LT_PLAIN1(erfc)
LT_PLAIN2(pow)
LT_PLAIN2(atan2)
LT_PLAIN2(hypot)

/* Instructions, or calls that stay scalar. */
LT_CALL1(sqrt)
LT_CALL1(fabs)
LT_CALL1(floor)
LT_CALL1(ceil)
LT_CALL1(trunc)
LT_CALL1(rint)
LT_CALL2(copysign)
LT_CALL2(fmod)

#endif
