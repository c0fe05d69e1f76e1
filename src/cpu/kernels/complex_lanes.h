/* complex_lanes.h: vectors and lanes (lanes.h) of complex numbers, whose parts alternate. */
#ifndef LT_CPU_COMPLEX_LANES_H
#define LT_CPU_COMPLEX_LANES_H

#include "cpu/kernels/shuffle.h"

/* The numbers a and b of each pair of elements. */
#define LT_TWOS_2(k, a, b)  (k) + (a), (k) + (b)
#define LT_TWOS_4(k, a, b)  LT_TWOS_2(k, a, b), LT_TWOS_2((k) + 2, a, b)
#define LT_TWOS_8(k, a, b)  LT_TWOS_4(k, a, b), LT_TWOS_4((k) + 4, a, b)
#define LT_TWOS_16(k, a, b) LT_TWOS_8(k, a, b), LT_TWOS_8((k) + 8, a, b)

/* LT_JOIN_CFV and LT_JOIN_CDV: combine the numbers of a vector v_ to one. */
#if LT_VECTOR_SIZE == 64
#define FV_TWOS(a, b)     LT_TWOS_16(0, a, b)
#define DV_TWOS(a, b)     LT_TWOS_8(0, a, b)
#define LT_JOIN_CFV(join) LT_PAIRS_16(FV, 16, join)
#define LT_JOIN_CDV(join) LT_PAIRS_8(DV, 8, join)
#elif LT_VECTOR_SIZE == 32
#define FV_TWOS(a, b)     LT_TWOS_8(0, a, b)
#define DV_TWOS(a, b)     LT_TWOS_4(0, a, b)
#define LT_JOIN_CFV(join) LT_PAIRS_8(FV, 8, join)
#define LT_JOIN_CDV(join) LT_PAIRS_4(DV, 4, join)
#else
#define FV_TWOS(a, b)     LT_TWOS_4(0, a, b)
#define DV_TWOS(a, b)     LT_TWOS_2(0, a, b)
#define LT_JOIN_CFV(join) LT_PAIRS_4(FV, 4, join)
#define LT_JOIN_CDV(join)
#endif

#define C8_N 8
#define C4_N 4
typedef FV CFV;
typedef DV CDV;

/* Defines functions of vectors V of real numbers, with masks M, and of lanes L of complex ones.
 * Products have no fused operations. */
#define LT_COMPLEX_LANES(number, T, V, M, L, REALS)                                                \
  LT_LANES V C##V##_TIMES(V x, V y) {                                                              \
    V real = LT_SHUFFLE(M, x, x, V##_TWOS(0, 0)), imag = LT_SHUFFLE(M, x, x, V##_TWOS(1, 1));      \
    M minus = (M)LT_SHUFFLE(M, -(V){0}, (V){0}, V##_TWOS(0, V##_N + 1)); /* of real parts */       \
    return real * y + imag * (V)((M)LT_SHUFFLE(M, y, y, V##_TWOS(1, 0)) ^ minus);                  \
  }                                                                                                \
  /* Returns where both parts of a number are set. */                                              \
  LT_LANES M C##V##_BOTH(M k) { return k & LT_SHUFFLE(M, k, k, V##_TWOS(1, 0)); }                  \
  LT_LANES V C##V##_ALL(number e) {                                                                \
    V real = V##_ALL(__real__ e), imag = V##_ALL(__imag__ e);                                      \
    return LT_SHUFFLE(M, real, imag, V##_TWOS(0, V##_N + 1));                                      \
  }                                                                                                \
  LT_LANES REALS L##_ALL(number e) {                                                               \
    REALS v;                                                                                       \
    EACH_PART(LT_SET_PART, v, C##V##_ALL, e, 0)                                                    \
    return v;                                                                                      \
  }                                                                                                \
  LT_LANES REALS L##_LOAD(const number *x) { return REALS##_LOAD((const T *)x); }

LT_COMPLEX_LANES(float _Complex, float, FV, FM, C8, F16)
LT_COMPLEX_LANES(double _Complex, double, DV, DM, C4, D8)

/* Combine lanes to one number, `result`. */
#define LT_JOIN_COMPLEX(V, join_vector, result, join, all)                                         \
  do {                                                                                             \
    LT_JOIN_PARTS(V, join, all)                                                                    \
    join_vector(join) memcpy(&(result), &v_, sizeof(result));                                      \
  } while (0)
#define C8_JOIN(result, join, all) LT_JOIN_COMPLEX(FV, LT_JOIN_CFV, result, join, all)
#define C4_JOIN(result, join, all) LT_JOIN_COMPLEX(DV, LT_JOIN_CDV, result, join, all)

#endif
