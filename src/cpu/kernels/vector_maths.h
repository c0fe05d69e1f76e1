/* vector_maths.h: which functions of the C library have vector variants; see maths.h. LT_SIMD is
 * the attribute of their declarations. Those declared here are also functions of the parts of
 * complex numbers. */
#ifndef LT_CPU_VECTOR_MATHS_H
#define LT_CPU_VECTOR_MATHS_H

#include <math.h>

#if defined(LT_VECTOR_MATH) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&  \
    !defined(LT_DEBUG)
#define LT_SIMD __attribute__((simd("notinbranch")))
#ifndef LT_VECTOR_SLEEF
#define LT_LIBMVEC_FLOAT32
#endif
#else
#define LT_SIMD
#endif

LT_SIMD double atan2(double, double);
LT_SIMD float hypotf(float, float);
LT_SIMD double hypot(double, double);

#endif
