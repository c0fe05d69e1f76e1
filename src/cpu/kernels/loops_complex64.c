/* The vector loops of complex64. */
#ifdef __clang__
#pragma STDC CX_LIMITED_RANGE ON
#else
#pragma GCC optimize("cx-limited-range")
#endif

#define T     float _Complex
#define R     float
#define M(g)  lt_c_##g##f
#define RM(g) lt_r_##g##f
#define RE(z) crealf(z)
#define IM(z) cimagf(z)
#define MAKE  CMPLXF
#define FIELD complex64
#define TABLE lt_vectors_complex64
#define LT_IS_COMPLEX
#include "loops.h"
