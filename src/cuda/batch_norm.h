/* batch_norm.h: the launchers of batch_norm.cu. */
#ifndef LT_CUDA_BATCH_NORM_H
#define LT_CUDA_BATCH_NORM_H

#include "kernels.h"

/* A call on {images, channels, n} elements. Statistics and the gradients of weight and bias have
 * the type that is computed in: double for float64, else float. */
typedef struct lt_CudaBatchNorm {
  const void *g, *x, *weight, *bias; /* g: of backward; weight and bias may be NULL */
  void *y;                           /* backward: the input's gradient */
  void *mean, *var, *dweight, *dbias;
  int g_dtype, dtype, weight_dtype, bias_dtype;
  int64_t images, channels, n;
  double eps;
  bool training;
} lt_CudaBatchNorm;

/* Normalizes; when training, computes mean and var first. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_batch_norm(const lt_CudaBatchNorm *k, cudaStream_t stream);
/* Computes all three gradients. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_batch_norm_backward(const lt_CudaBatchNorm *k,
                                                            cudaStream_t stream);

#endif
