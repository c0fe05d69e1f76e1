/* triangle.c: the loops of factorizations and triangular systems (triangle.h) of one instruction
 * set. */
#include "cpu/triangle.h"
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"
#include "cpu/kernels/partial_vectors.h"

/* Rows of b that are solved at once: their elements stay in registers. */
#if defined __AVX512F__
#define ROWS 8
#else
#define ROWS 4
#endif
#define FEW    8 /* rows of the matrices that are factored element by element, at most */
#define UNROLL _Pragma("GCC unroll 16")

#define T        float
#define F        f32
#define V        FV
#define V_N      FV_N
#define V_LOAD   FV_LOAD
#define V_PART   FV_PART
#define V_STORE  FV_STORE
#define V_ALL(e) ((float)(e) - (FV){0})
#define V_MADD   FV_MADD
#define BITS     uint32_t
#define ROOT     sqrtf
#include "triangle_body.h"
#undef T
#undef F
#undef V
#undef V_N
#undef V_LOAD
#undef V_PART
#undef V_STORE
#undef V_ALL
#undef V_MADD
#undef BITS
#undef ROOT

#define T        double
#define F        f64
#define V        DV
#define V_N      DV_N
#define V_LOAD   DV_LOAD
#define V_PART   DV_PART
#define V_STORE  DV_STORE
#define V_ALL(e) ((double)(e) - (DV){0})
#define V_MADD   DV_MADD
#define BITS     uint64_t
#define ROOT     sqrt
#include "triangle_body.h"

extern const lt_TriangleLoops LT_FOR_ISA(lt_triangle_loops)[2];
const lt_TriangleLoops LT_FOR_ISA(lt_triangle_loops)[2] = {{lu_f32, cholesky_f32, solve_f32},
                                                           {lu_f64, cholesky_f64, solve_f64}};
