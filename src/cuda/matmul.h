/* matmul.h: the launcher of matmul.cu. */
#ifndef LT_CUDA_MATMUL_H
#define LT_CUDA_MATMUL_H

#include "kernels.h"

/* A batch of integer matrices of one dtype, by strides in elements. */
typedef struct lt_IntegerFactor {
  const void *data;
  int64_t step;        /* from one matrix of the batch to the next */
  int64_t row, column; /* from one row or column to the next */
} lt_IntegerFactor;

/* Computes out = alpha * a @ b + beta * out in int64, which wraps as out's dtype does. a is {batch,
 * m, k}, b {batch, k, n}, out contiguous. With beta 0, out is not read. k may be 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_integer_matmul(int dtype, int64_t batch, int64_t m,
                                                       int64_t n, int64_t k, int64_t alpha,
                                                       lt_IntegerFactor a, lt_IntegerFactor b,
                                                       int64_t beta, void *out,
                                                       cudaStream_t stream);

#endif
