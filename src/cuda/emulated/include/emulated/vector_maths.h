/* vector_maths.h: declares that functions of the C library have vector variants, so that a loop
 * marked LT_VECTOR_LOOP that calls one of them is vectorized (gcc and glibc's libmvec). Does
 * nothing without LT_VECTOR_MATH, which the build defines where there are such variants. */
#ifndef LT_EMULATED_VECTOR_MATHS_H
#define LT_EMULATED_VECTOR_MATHS_H

#include <math.h>

#if defined(LT_VECTOR_MATH) && !defined(LT_VECTOR_SLEEF) && !defined(LT_DEBUG) &&                  \
    defined(__GNUC__) && !defined(__clang__)
#define LT_VECTOR_VARIANTS(name)                                                                   \
  extern "C" __attribute__((simd("notinbranch"))) float name##f(float) noexcept;                   \
  extern "C" __attribute__((simd("notinbranch"))) double name(double) noexcept;
LT_VECTOR_VARIANTS(exp)
LT_VECTOR_VARIANTS(exp2)
LT_VECTOR_VARIANTS(expm1)
LT_VECTOR_VARIANTS(log)
LT_VECTOR_VARIANTS(log2)
LT_VECTOR_VARIANTS(log10)
LT_VECTOR_VARIANTS(log1p)
LT_VECTOR_VARIANTS(sin)
LT_VECTOR_VARIANTS(cos)
LT_VECTOR_VARIANTS(tan)
LT_VECTOR_VARIANTS(asin)
LT_VECTOR_VARIANTS(acos)
LT_VECTOR_VARIANTS(atan)
LT_VECTOR_VARIANTS(sinh)
LT_VECTOR_VARIANTS(cosh)
LT_VECTOR_VARIANTS(tanh)
LT_VECTOR_VARIANTS(asinh)
LT_VECTOR_VARIANTS(acosh)
LT_VECTOR_VARIANTS(atanh)
LT_VECTOR_VARIANTS(erf)
LT_VECTOR_VARIANTS(erfc)
#undef LT_VECTOR_VARIANTS
#endif

#endif
