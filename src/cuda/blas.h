/* blas.h: products of float matrices on the device, by cuBLAS, which is loaded when first used. */
#ifndef LT_CUDA_BLAS_H
#define LT_CUDA_BLAS_H

#include "cuda.h"

/* A matrix in memory, row-major: element (i, j) is data[i * lead + j], or data[j * lead + i] if it
 * is transposed. */
typedef struct lt_CudaMatrix {
  const void *data;
  int64_t lead;
  bool transposed;
  int64_t step; /* elements from one matrix of a batch to the next */
} lt_CudaMatrix;

/* Computes out = alpha * a @ b + beta * out for `batch` matrices, on the call's stream. a {m, k}, b
 * {k, n}, and out {m, n}, contiguous, are of one float dtype; halves are summed in float32. m, n, k
 * and batch are positive. With beta 0, out is not read. Returns false with a message when cuBLAS is
 * not available or fails. Thread safe. */
bool lt_cuda_gemm(const lt_Call *c, lt_Dtype dtype, int64_t m, int64_t n, int64_t k, int64_t batch,
                  double alpha, lt_CudaMatrix a, lt_CudaMatrix b, double beta, void *out);
/* Returns cuBLAS's name and version; NULL where it is not found. Thread safe. */
const char *lt_cuda_blas_name(void);
/* lt_Backend's `option`: knows "matmul.allow_tf32". Returns its value and, with value >= 0, sets
 * it; -1 for another name. */
int lt_cuda_blas_option(const char *name, int value);

#endif
