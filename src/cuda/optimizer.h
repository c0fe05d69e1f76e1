/* optimizer.h: one step of Adam in one pass over memory. */
#ifndef LT_CUDA_OPTIMIZER_H
#define LT_CUDA_OPTIMIZER_H

#include "kernels.h"

/* p, m and v change. All of n elements, contiguous, of one dtype. The numbers are those of
 * optimizer.c. */
typedef struct lt_CudaAdam {
  void *p, *m, *v;
  const void *g;
  int dtype;
  int64_t n;
  double sign, decay, shrink, beta1, beta2, eps, size, root;
} lt_CudaAdam;

LT_C_LINKAGE cudaError_t lt_cuda_launch_adam(const lt_CudaAdam *k, cudaStream_t stream);

#endif
