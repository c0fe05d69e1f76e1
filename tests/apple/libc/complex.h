/* complex.h: see lt_libc.h. */
#ifndef LT_APPLE_COMPLEX_H
#define LT_APPLE_COMPLEX_H

#include <lt_libc.h>

#define complex      _Complex
#define I            ((_Complex float){0.0f, 1.0f})
#define CMPLX(x, y)  __builtin_complex((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))
#define LT_COMPLEX1(name)                                                                          \
  double _Complex name(double _Complex);                                                           \
  float _Complex name##f(float _Complex);
#define LT_COMPLEX_REAL(name)                                                                      \
  double name(double _Complex);                                                                    \
  float name##f(float _Complex);
LT_COMPLEX1(cacos)
LT_COMPLEX1(cacosh)
LT_COMPLEX1(casin)
LT_COMPLEX1(casinh)
LT_COMPLEX1(catan)
LT_COMPLEX1(catanh)
LT_COMPLEX1(ccos)
LT_COMPLEX1(ccosh)
LT_COMPLEX1(cexp)
LT_COMPLEX1(clog)
LT_COMPLEX1(conj)
LT_COMPLEX1(csin)
LT_COMPLEX1(csinh)
LT_COMPLEX1(csqrt)
LT_COMPLEX1(ctan)
LT_COMPLEX1(ctanh)
LT_COMPLEX_REAL(cabs)
LT_COMPLEX_REAL(carg)
LT_COMPLEX_REAL(cimag)
LT_COMPLEX_REAL(creal)
double _Complex cpow(double _Complex, double _Complex);
float _Complex cpowf(float _Complex, float _Complex);

#endif
