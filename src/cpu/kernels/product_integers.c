/* product_integers.c: the loops of matrix products (product.h) of integers for one instruction set.
 * Elements are unsigned, so that they wrap. */
#include "cpu/product.h"
#include "cpu/rows.h"
#include "cpu/kernels/partial_vectors.h"
#include "cpu/kernels/shuffle.h"

/* Few rows of a tile: AVX2 multiplies 8 bytes in steps, which need registers, too. */
#define LT_PRODUCT_ROWS 4

typedef uint32_t IV __attribute__((vector_size(LT_VECTOR_SIZE)));
typedef uint64_t LV __attribute__((vector_size(LT_VECTOR_SIZE)));

#define FACTOR(x)        (x).i
#define V_MADD(x, y, z)  ((x) * (y) + (z))
#define V_ADD(sum, x, y) ((sum) += (x) * (y))

#define TRANSPOSE_8(x, step, to, to_step) (lt_transpose_8(x, 4 * (step), to, 4 * (to_step)), true)
#define T                                 uint32_t
#define F                                 i32
#define V                                 IV
#define M                                 FM
#define V_N                               FV_N
#define V_LOAD(x)                         ((IV)FV_LOAD((const float *)(const void *)(x)))
#define V_PART(x, n)                      ((IV)FV_PART((const float *)(const void *)(x), n))
#define V_STORE(to, v, n)                 FV_STORE((float *)(void *)(to), (FV)(v), n)
#define V_ALL(e)                          ((uint32_t)(e) - (IV){0})
#include "product_body.h"

#define TRANSPOSE_8(x, step, to, to_step) false
#define T                                 uint64_t
#define F                                 i64
#define V                                 LV
#define M                                 DM
#define V_N                               DV_N
#define V_LOAD(x)                         ((LV)DV_LOAD((const double *)(const void *)(x)))
#define V_PART(x, n)                      ((LV)DV_PART((const double *)(const void *)(x), n))
#define V_STORE(to, v, n)                 DV_STORE((double *)(void *)(to), (DV)(v), n)
#define V_ALL(e)                          ((uint64_t)(e) - (LV){0})
#include "product_body.h"

extern const lt_ProductLoops LT_FOR_ISA(lt_integer_products)[2];
const lt_ProductLoops LT_FOR_ISA(lt_integer_products)[2] = {
    {LT_PRODUCT_ROWS, 2 * FV_N, panel_i32, pack_i32, dots_i32, sums_i32},
    {LT_PRODUCT_ROWS, 2 * DV_N, panel_i64, pack_i64, dots_i64, sums_i64},
};
