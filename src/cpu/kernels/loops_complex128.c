/* The vector loops of complex128. */
#ifdef __clang__
#pragma STDC CX_LIMITED_RANGE ON
#else
#pragma GCC optimize("cx-limited-range")
#endif

#define T     double _Complex
#define R     double
#define M(g)  lt_c_##g
#define RM(g) lt_r_##g
#define RE(z) creal(z)
#define IM(z) cimag(z)
#define MAKE  CMPLX
#define FIELD complex128
#define TABLE lt_vectors_complex128
#define LT_IS_COMPLEX
#include "loops.h"
