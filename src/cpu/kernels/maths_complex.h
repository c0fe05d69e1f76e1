/* maths_complex.h: M(f), the math functions of the complex loops: the C library's, which are
 * correct at branch cuts and special values, and functions that the library lacks. RM(f), those of
 * the parts, which loops over the elements vectorize.
 *
 * A product is computed from four real products, without the recovery of infinities of C's annex G,
 * which would prevent vector code. Other devices and PyTorch do the same. */
#ifndef LT_CPU_MATHS_COMPLEX_H
#define LT_CPU_MATHS_COMPLEX_H

#include <complex.h>
#include "maths_float32.h"
#include "vector_maths.h"
#undef I /* clashes with a name in ops.def */
#undef complex

/* No function here has a faster variant for a range: see loops.h. */
typedef struct lt_Range {
  int mask, low, span;
} lt_Range;

#define LT_LN2  0.69314718055994530942
#define LT_LN10 2.30258509299404568402

#define LT_COMPLEX1(name, g)                                                                       \
  static inline __attribute__((unused)) float _Complex lt_c_##name##f(float _Complex x) {          \
    return g##f(x);                                                                                \
  }                                                                                                \
  static inline __attribute__((unused)) double _Complex lt_c_##name(double _Complex x) {           \
    return g(x);                                                                                   \
  }
LT_COMPLEX1(exp, cexp)
LT_COMPLEX1(log, clog)
LT_COMPLEX1(sqrt, csqrt)
LT_COMPLEX1(sin, csin)
LT_COMPLEX1(cos, ccos)
LT_COMPLEX1(tan, ctan)
LT_COMPLEX1(asin, casin)
LT_COMPLEX1(acos, cacos)
LT_COMPLEX1(atan, catan)
LT_COMPLEX1(sinh, csinh)
LT_COMPLEX1(cosh, ccosh)
LT_COMPLEX1(tanh, ctanh)
LT_COMPLEX1(asinh, casinh)
LT_COMPLEX1(acosh, cacosh)
LT_COMPLEX1(atanh, catanh)

#define lt_r_fabsf        fabsf
#define lt_r_fabs         fabs
#define lt_r_hypotf       hypotf
#define lt_r_hypot        hypot
#define lt_r_atan2f(y, x) lt_atan2f(y, x)
#define lt_r_atan2        atan2

/* The modulus. */
static inline __attribute__((unused)) float _Complex lt_c_fabsf(float _Complex x) {
  return hypotf(crealf(x), cimagf(x));
}
static inline __attribute__((unused)) double _Complex lt_c_fabs(double _Complex x) {
  return hypot(creal(x), cimag(x));
}

#define CMPLXf_(x, y) CMPLXF(x, y)
#define CMPLX_(x, y)  CMPLX(x, y)
#define LT_COMPLEX_MADE(suffix, C, R)                                                              \
  static inline __attribute__((unused)) C lt_c_exp2##suffix(C x) {                                 \
    return cexp##suffix(x * (R)LT_LN2);                                                            \
  }                                                                                                \
  static inline __attribute__((unused)) C lt_c_log2##suffix(C x) {                                 \
    return clog##suffix(x) / (R)LT_LN2;                                                            \
  }                                                                                                \
  static inline __attribute__((unused)) C lt_c_log10##suffix(C x) {                                \
    return clog##suffix(x) / (R)LT_LN10;                                                           \
  }                                                                                                \
  /* cos(y) - 1 = -2 sin^2(y / 2): accurate near 0 */                                              \
  static inline __attribute__((unused)) C lt_c_expm1##suffix(C x) {                                \
    R re = creal##suffix(x), im = cimag##suffix(x), s = sin##suffix(im / 2), e = exp##suffix(re);  \
    if (im == 0) return CMPLX##suffix##_(expm1##suffix(re), im);                                   \
    return CMPLX##suffix##_(expm1##suffix(re) * cos##suffix(im) - 2 * s * s, e * sin##suffix(im)); \
  }                                                                                                \
  /* |1 + z|^2 - 1 = x (2 + x) + y^2: accurate near 0 */                                           \
  static inline __attribute__((unused)) C lt_c_log1p##suffix(C z) {                                \
    R x = creal##suffix(z), y = cimag##suffix(z), size = hypot##suffix(1 + x, y);                  \
    R re = size > (R)0.5 && size < 2 ? log1p##suffix(x * (2 + x) + y * y) / 2 : log##suffix(size); \
    return CMPLX##suffix##_(re, atan2##suffix(y, 1 + x));                                          \
  }                                                                                                \
  static inline __attribute__((unused)) C lt_c_pow##suffix(C x, C y) { return cpow##suffix(x, y); }
LT_COMPLEX_MADE(f, float _Complex, float)
LT_COMPLEX_MADE(, double _Complex, double)

#undef LT_LN2
#undef LT_LN10

#endif
