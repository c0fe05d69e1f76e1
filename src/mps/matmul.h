/* matmul.h: the arguments of matmul.metal's kernels. Included by C and by kernels. */
#ifndef LT_MPS_MATMUL_H
#define LT_MPS_MATMUL_H

#include "dtypes.h"

/* A batch of matrices, by strides in elements. */
typedef struct lt_MpsFactor {
  int64_t step;        /* from one matrix of the batch to the next */
  int64_t row, column; /* from one row or column to the next */
} lt_MpsFactor;

/* out = alpha * a @ b + beta * out: a is {batch, m, k}, b {batch, k, n}, out {batch, m, n} and
 * contiguous. With beta 0, out is not read. */
typedef struct lt_MpsMatmul {
  int64_t batch, m, n, k;
  int64_t part;   /* the inner dimension is divided into `splits` parts of this size, a multiple of
                   * LT_MPS_DEPTH, whose products are added by another kernel */
  int64_t splits; /* 1: not divided */
  lt_MpsFactor a, b;
  int64_t alpha, beta; /* of integers */
  float real_alpha, real_beta;
} lt_MpsMatmul;

#define LT_MPS_TILE    64  /* rows and columns of a tile of the result */
#define LT_MPS_SMALL   32  /* the same, for small matrices */
#define LT_MPS_DEPTH   16  /* of the inner dimension, in each step */
#define LT_MPS_SIMD    32  /* threads of a SIMD group */
#define LT_MPS_THREADS 128 /* four SIMD groups: each computes a quarter of the tile */
#define LT_MPS_PLAIN                                                                               \
  16 /* rows and columns of a tile of integers or complex numbers; each of its
                            * threads computes one number */

#endif
