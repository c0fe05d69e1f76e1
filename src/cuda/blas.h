/* blas.h: products of matrices of floats on the device, by cuBLAS, which is loaded at its first
 * use. */
#ifndef LT_CUDA_BLAS_H
#define LT_CUDA_BLAS_H

#include "cuda.h"

/* A matrix in memory, as cuBLAS wants it, but row by row: element (i, j) is data[i * lead + j], or
 * data[j * lead + i] if it is transposed. */
typedef struct lt_CudaMatrix {
  const void *data;
  int64_t lead;
  bool transposed;
  int64_t step; /* elements from one matrix of a batch to the next */
} lt_CudaMatrix;

/* out = alpha * a @ b + beta * out, `batch` times, on the stream. a {m, k}, b {k, n}, out {m, n}
 * dense, all of one float dtype; halves are summed in float32. m, n, k and batch are positive. With
 * beta 0, out is not read. */
bool lt_cuda_gemm(const lt_Call *c, lt_Dtype dtype, int64_t m, int64_t n, int64_t k, int64_t batch,
                  double alpha, lt_CudaMatrix a, lt_CudaMatrix b, double beta, void *out);
/* Its name and version; NULL where it is not found. */
const char *lt_cuda_blas_name(void);
/* lt_Backend.option: "matmul.allow_tf32". */
int lt_cuda_blas_option(const char *name, int value);

#endif
