/* softmax.h: softmax and log_softmax along a dimension, and their gradients. */
#ifndef LT_CUDA_SOFTMAX_H
#define LT_CUDA_SOFTMAX_H

#include "kernels.h"

/* Contiguous tensors of outer x n x inner elements, along n. */
typedef struct lt_CudaSoftmax {
  const void *x; /* the input; of a gradient: the result of forward */
  const void *g; /* NULL, or the gradient of the result */
  void *y;
  int x_dtype, g_dtype, y_dtype; /* all float64, or none */
  int64_t outer, n, inner;       /* 1 or more */
  bool log;
  bool vector; /* the launcher's */
} lt_CudaSoftmax;

LT_C_LINKAGE cudaError_t lt_cuda_launch_softmax(const lt_CudaSoftmax *s, cudaStream_t stream);

#endif
