/* convolution.h: the launchers of convolution.cu. */
#ifndef LT_CUDA_CONVOLUTION_H
#define LT_CUDA_CONVOLUTION_H

#include "convolution_shape.h"
#include "kernels.h"

/* Images of a convolution and their columns: a matrix {channels of all groups * taps, outputs} for
 * each image, of one dtype. */
typedef struct lt_CudaColumns {
  lt_Convolution g;
  void *in, *columns; /* from the first of the images on */
  const void *bias;   /* of add_columns; NULL: none */
  int dtype;
  int64_t images, channels; /* channels: of all groups */
} lt_CudaColumns;

/* Writes the columns from `in`. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_columns(const lt_CudaColumns *k, cudaStream_t stream);
/* Sets each element of `in` to the sum of the columns that were read from it, plus the bias of its
 * channel. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_add_columns(const lt_CudaColumns *k, cudaStream_t stream);
/* Adds the bias of its channel to each element of x {planes, n}, where plane i belongs to channel
 * i % channels. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_bias(int dtype, void *x, const void *bias, int64_t planes,
                                             int64_t channels, int64_t n, cudaStream_t stream);

#endif
