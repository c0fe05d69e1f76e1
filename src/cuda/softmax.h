/* softmax.h: the launcher of softmax and log_softmax along a dimension, and of their gradients. */
#ifndef LT_CUDA_SOFTMAX_H
#define LT_CUDA_SOFTMAX_H

#include "kernels.h"

/* Contiguous tensors of outer x n x inner elements; softmax is along n. */
typedef struct lt_CudaSoftmax {
  const void *x; /* the input; for a gradient, the result of forward */
  const void *g; /* NULL, or the gradient of the result */
  void *y;
  int x_dtype, g_dtype, y_dtype; /* all are float64, or none is */
  int64_t outer, n, inner;       /* 1 or more */
  bool log;
  bool vector; /* set by the launcher */
} lt_CudaSoftmax;

/* Computes y from x, or, where g is not NULL, the gradient. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_softmax(const lt_CudaSoftmax *s, cudaStream_t stream);

#endif
