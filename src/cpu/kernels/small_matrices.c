/* small_matrices.c: the loops over small matrices (small_matrices.h) of one instruction set. */
#include "cpu/small_matrices.h"
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"

/* Calls DO with the order as a constant where matrices of that order are common: their elements
 * stay in registers. */
#define BY_ORDER(DO, n, ...)                                                                       \
  switch (n) {                                                                                     \
  case 2:                                                                                          \
    DO(2, __VA_ARGS__);                                                                            \
    break;                                                                                         \
  case 3:                                                                                          \
    DO(3, __VA_ARGS__);                                                                            \
    break;                                                                                         \
  case 4:                                                                                          \
    DO(4, __VA_ARGS__);                                                                            \
    break;                                                                                         \
  default:                                                                                         \
    if (n < 1 || n > LT_SMALL_ORDER) __builtin_unreachable();                                      \
    DO(n, __VA_ARGS__);                                                                            \
  }

#define T      float
#define I      int32_t
#define F      f32
#define V      FV
#define M      FM
#define V_N    FV_N
#define V_LOAD FV_LOAD
#define V_MADD FV_MADD
#define BITS   uint32_t
#define ROOT   sqrtf
#include "small_matrices_body.h"
#undef T
#undef I
#undef F
#undef V
#undef M
#undef V_N
#undef V_LOAD
#undef V_MADD
#undef BITS
#undef ROOT

#define T      double
#define I      int64_t
#define F      f64
#define V      DV
#define M      DM
#define V_N    DV_N
#define V_LOAD DV_LOAD
#define V_MADD DV_MADD
#define BITS   uint64_t
#define ROOT   sqrt
#include "small_matrices_body.h"

extern const lt_SmallLoops LT_FOR_ISA(lt_small_loops)[2];
const lt_SmallLoops LT_FOR_ISA(lt_small_loops)[2] = {
    {lu_f32, product_f32, cholesky_f32, invert_f32, solve_f32, multiply_f32},
    {lu_f64, product_f64, cholesky_f64, invert_f64, solve_f64, multiply_f64}};
