/* loss.h: the launchers of the negative log likelihood of rows of log probabilities, and of its
 * gradient. */
#ifndef LT_CUDA_LOSS_H
#define LT_CUDA_LOSS_H

#include "kernels.h"

/* How the losses of the rows are reduced. */
typedef enum lt_CudaReduction {
  LT_CUDA_EACH, /* a loss for each row */
  /* average: the sum of the losses, divided by the sum of the weights */
  LT_CUDA_TOTAL,
  LT_CUDA_AVERAGE
} lt_CudaReduction;

/* The arguments of both launchers. All tensors are contiguous. */
typedef struct lt_CudaNll {
  const void *x;      /* n x classes; forward only */
  const void *target; /* n integers */
  const void *weight; /* `classes` weights, or NULL: 1 each */
  const void *grad;   /* backward only: n gradients, or 1 */
  void *out;          /* forward: n losses, or 1; backward: n x classes */
  void *total;        /* forward: the sum of the weights; NULL in backward */
  double *part;       /* scratch: lt_cuda_nll_parts(n) doubles */
  int dtype, target_dtype, weight_dtype, grad_dtype; /* dtype: of x, out and total */
  size_t size;                                       /* of an element of `out`, in bytes */
  int64_t n, classes, ignore;
  lt_CudaReduction reduction;
  lt_CudaFault fault; /* classes out of range; their rows do not contribute */
} lt_CudaNll;

/* Returns the number of doubles of scratch memory for n rows. */
LT_C_LINKAGE int64_t lt_cuda_nll_parts(int64_t n);
/* Computes the loss. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_nll(const lt_CudaNll *k, cudaStream_t stream);
/* Computes the gradient. Requires at least one element. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_nll_backward(const lt_CudaNll *k, cudaStream_t stream);

#endif
