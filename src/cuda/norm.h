/* norm.h: the launchers of layer norm over rows, and of its gradients. */
#ifndef LT_CUDA_NORM_H
#define LT_CUDA_NORM_H

#include "kernels.h"

/* The arguments of forward. All memory is contiguous: rows x n elements of x and y, n of weight and
 * bias (NULL: 1 and 0), all of one dtype. mean and rstd have one number for each row, float64 when
 * dtype is, else float32. */
typedef struct lt_CudaNorm {
  const void *x, *weight, *bias;
  void *y, *mean, *rstd;
  int dtype;
  int64_t rows, n;
  double eps;
  bool vector; /* set by the launcher */
} lt_CudaNorm;

/* Computes y, mean and rstd. Requires n >= 1; does nothing without rows. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_layer_norm(const lt_CudaNorm *k, cudaStream_t stream);

/* The arguments of backward. The rows are divided into `pieces` (lt_cuda_norm_pieces), whose sums
 * for weight and bias are stored in part[piece][0 or 1][n], of mean's dtype, and are then added in
 * order. */
typedef struct lt_CudaNormBackward {
  const void *g, *x, *weight, *mean, *rstd;
  void *dx, *dweight, *dbias, *part;
  int g_dtype, dtype; /* dtype: of all tensors except g, mean, rstd and part */
  int64_t rows, n, pieces;
  bool vector; /* set by the launcher */
} lt_CudaNormBackward;

/* Returns the number of pieces for this size. It depends on nothing else, so results are
 * reproducible. */
LT_C_LINKAGE int64_t lt_cuda_norm_pieces(int64_t rows, int64_t n);
/* Computes dx, dweight and dbias. Requires n >= 1. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_layer_norm_backward(const lt_CudaNormBackward *k,
                                                            cudaStream_t stream);

#endif
