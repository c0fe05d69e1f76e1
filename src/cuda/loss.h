/* loss.h: the negative log likelihood of rows of log probabilities, and its gradient. */
#ifndef LT_CUDA_LOSS_H
#define LT_CUDA_LOSS_H

#include "kernels.h"

typedef enum lt_CudaReduction {
  LT_CUDA_EACH, /* a loss for each row */
  LT_CUDA_TOTAL,
  LT_CUDA_AVERAGE
} lt_CudaReduction;

/* Contiguous tensors. */
typedef struct lt_CudaNll {
  const void *x;      /* n x classes; of forward */
  const void *target; /* n integers */
  const void *weight; /* `classes`, or NULL: 1 each */
  const void *grad;   /* of a gradient: n, or 1 */
  void *out;          /* forward: n losses, or 1; gradient: n x classes */
  void *total;        /* forward: the sum of the weights; NULL in a gradient */
  double *part;       /* scratch: lt_cuda_nll_parts(n) doubles */
  int dtype, target_dtype, weight_dtype, grad_dtype; /* dtype: of x, out and total */
  size_t size;                                       /* of an element of out */
  int64_t n, classes, ignore;
  lt_CudaReduction reduction;
  lt_CudaFault fault; /* classes out of range; their rows take no part */
} lt_CudaNll;

LT_C_LINKAGE int64_t lt_cuda_nll_parts(int64_t n);
LT_C_LINKAGE cudaError_t lt_cuda_launch_nll(const lt_CudaNll *k, cudaStream_t stream);
/* Needs at least one element. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_nll_backward(const lt_CudaNll *k, cudaStream_t stream);

#endif
