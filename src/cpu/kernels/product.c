/* product.c: the loops of matrix products (product.h) of one instruction set.
 *
 * The sums of a tile of c stay in registers: a row of b is loaded as two vectors, and each of some
 * elements of a column of a is multiplied with them. */
#include "cpu/product.h"
#include "cpu/rows.h"
#include "cpu/kernels/half_lanes.h"
#include "cpu/kernels/partial_vectors.h"
#include "cpu/kernels/shuffle.h"
#include "cpu/kernels/tiles.h"

#if defined __AVX512F__
#define LT_PRODUCT_ROWS 14
#else
#define LT_PRODUCT_ROWS 6
#endif

/* Adds the product x * y to `sum`. The instruction is written out where there is one: the compiler
 * would choose forms of it that move sums to other registers, and then to memory. */
#if defined __FMA__
#define FV_ADD(sum, x, y) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#define DV_ADD(sum, x, y) __asm__("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
#else
#define FV_ADD(sum, x, y) ((sum) = FV_MADD(x, y, sum))
#define DV_ADD(sum, x, y) ((sum) = DV_MADD(x, y, sum))
#endif

#define TRANSPOSE_8(x, step, to, to_step) (lt_transpose_8(x, 4 * (step), to, 4 * (to_step)), true)

#define FACTOR(x) (x).f

#define T        float
#define F        f32
#define V        FV
#define M        FM
#define V_N      FV_N
#define V_LOAD   FV_LOAD
#define V_PART   FV_PART
#define V_STORE  FV_STORE
#define V_ALL(e) ((float)(e) - (FV){0})
#define V_MADD   FV_MADD
#define V_ADD    FV_ADD
#include "product_body.h"
#undef V_MADD
#undef V_ADD

/* No squares of doubles are transposed by vectors. */
#define TRANSPOSE_8(x, step, to, to_step) false

#ifdef __F16C__
#include "cpu/kernels/product_few.h"
#endif

#ifdef LT_HAS_TILES
#include "cpu/kernels/product_bfloat16.h"
#endif

#define T        double
#define F        f64
#define V        DV
#define M        DM
#define V_N      DV_N
#define V_LOAD   DV_LOAD
#define V_PART   DV_PART
#define V_STORE  DV_STORE
#define V_ALL(e) ((double)(e) - (DV){0})
#define V_MADD   DV_MADD
#define V_ADD    DV_ADD
#include "product_body.h"

extern const lt_ProductLoops LT_FOR_ISA(lt_product_loops)[2];
const lt_ProductLoops LT_FOR_ISA(lt_product_loops)[2] = {
    {LT_PRODUCT_ROWS, 2 * FV_N, panel_f32, pack_f32, dots_f32, sums_f32},
    {LT_PRODUCT_ROWS, 2 * DV_N, panel_f64, pack_f64, dots_f64, sums_f64},
};

extern const lt_FewLoops LT_FOR_ISA(lt_few_loops)[3];
#ifdef __F16C__
const lt_FewLoops LT_FOR_ISA(lt_few_loops)[3] = {
    {few_dots_f16, few_sums_f16}, {few_dots_bf16, few_sums_bf16}, {few_dots_f32, NULL}};
#else
const lt_FewLoops LT_FOR_ISA(lt_few_loops)[3] = {{NULL, NULL}, {NULL, NULL}, {NULL, NULL}};
#endif

extern const lt_BfloatLoops LT_FOR_ISA(lt_bfloat_loops);
#ifdef LT_HAS_TILES
const lt_BfloatLoops LT_FOR_ISA(lt_bfloat_loops) = {pack_pairs, tile_rows, dot_rows};
#else
const lt_BfloatLoops LT_FOR_ISA(lt_bfloat_loops) = {NULL, NULL, NULL};
#endif
