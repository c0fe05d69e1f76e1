/* lanes.h: vectors of 64 bytes of floats, in GCC's vector notation. On a CPU with narrower vectors
 * the compiler uses several; the result is the same. */
#ifndef LT_CPU_LANES_H
#define LT_CPU_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* All functions here are inlined, so the ABI for returning vectors does not matter. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define F16_N 16
#define D8_N  8
typedef float F16 __attribute__((vector_size(64)));
typedef int32_t I16 __attribute__((vector_size(64)));
typedef double D8 __attribute__((vector_size(64)));
typedef int64_t I8 __attribute__((vector_size(64)));
typedef float F8 __attribute__((vector_size(32)));

#define LT_LANES static inline __attribute__((always_inline))

#define F16_ALL(e) ((F16){0} + (float)(e))
#define D8_ALL(e)  ((D8){0} + (double)(e))

LT_LANES F16 F16_LOAD(const float *x) {
  F16 v;
  memcpy(&v, x, sizeof v);
  return v;
}

LT_LANES D8 D8_LOAD(const double *x) {
  D8 v;
  memcpy(&v, x, sizeof v);
  return v;
}

LT_LANES D8 D8_OF_FLOATS(const float *x) {
  F8 v;
  memcpy(&v, x, sizeof v);
  return __builtin_convertvector(v, D8);
}

LT_LANES D8 D8_SQUARES(const double *x) {
  D8 v = D8_LOAD(x);
  return v * v;
}

LT_LANES D8 D8_SQUARES_OF_FLOATS(const float *x) {
  D8 v = D8_OF_FLOATS(x);
  return v * v;
}

/* Selects the bits of b where mask k is set, else those of a. */
#define LT_CHOOSE(V, I, k, a, b) ((V)(((I)(b) & (k)) | ((I)(a) & ~(k))))
/* Selects b where it is larger (smaller) or NaN, else a. */
#define F16_LARGER(a, b)  LT_CHOOSE(F16, I16, ((b) > (a)) | ((b) != (b)), a, b)
#define F16_SMALLER(a, b) LT_CHOOSE(F16, I16, ((b) < (a)) | ((b) != (b)), a, b)
#define D8_LARGER(a, b)   LT_CHOOSE(D8, I8, ((b) > (a)) | ((b) != (b)), a, b)
#define D8_SMALLER(a, b)  LT_CHOOSE(D8, I8, ((b) < (a)) | ((b) != (b)), a, b)

#endif
