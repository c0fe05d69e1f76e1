/* maths.c: the scalar halves of functions that kernels/maths.h calls by names of SLEEF's.
 *
 * A loop that becomes vector code calls SLEEF's variant of __expf_finite; a call outside such a loop, and what the
 * compiler leaves over at a loop's end, needs the scalar function of that name, which no library has any more: it is
 * the C library's. */
#include <math.h>

#ifdef LT_VECTOR_SLEEF
#define LT_SCALAR(g)                                                                               \
  float __##g##f_finite(float x);                                                                  \
  double __##g##_finite(double x);                                                                 \
  float __##g##f_finite(float x) { return g##f(x); }                                               \
  double __##g##_finite(double x) { return g(x); }

LT_SCALAR(exp)
LT_SCALAR(exp2)
LT_SCALAR(log)
LT_SCALAR(log10)
#else
typedef int lt_cpu_maths_is_empty;
#endif
