/* norm.h: layer norm over rows, and its gradients. */
#ifndef LT_CUDA_NORM_H
#define LT_CUDA_NORM_H

#include "kernels.h"

/* Contiguous: rows x n elements of x and y, n of weight and bias (NULL: 1 and 0), all of one dtype.
 * mean and rstd have a number a row, float64 when dtype is, else float32. */
typedef struct lt_CudaNorm {
  const void *x, *weight, *bias;
  void *y, *mean, *rstd;
  int dtype;
  int64_t rows, n;
  double eps;
  bool vector; /* the launcher's */
} lt_CudaNorm;

/* Needs n of 1 or more; without rows it does nothing. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_layer_norm(const lt_CudaNorm *k, cudaStream_t stream);

/* The gradients. The rows are cut into `pieces` (lt_cuda_norm_pieces), whose sums for weight and
 * bias go to part[piece][0 or 1][n], of mean's dtype, and are then added in order. */
typedef struct lt_CudaNormBackward {
  const void *g, *x, *weight, *mean, *rstd;
  void *dx, *dweight, *dbias, *part;
  int g_dtype, dtype; /* dtype: of everything but g, mean, rstd and part */
  int64_t rows, n, pieces;
  bool vector; /* the launcher's */
} lt_CudaNormBackward;

LT_C_LINKAGE int64_t lt_cuda_norm_pieces(int64_t rows, int64_t n);
LT_C_LINKAGE cudaError_t lt_cuda_launch_layer_norm_backward(const lt_CudaNormBackward *k,
                                                            cudaStream_t stream);

#endif
