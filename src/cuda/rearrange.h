/* rearrange.h: the launchers of rearrange.cu, which move elements of `size` bytes (1, 2, 4, 8, 16)
 * into contiguous memory. */
#ifndef LT_CUDA_REARRANGE_H
#define LT_CUDA_REARRANGE_H

#include "kernels.h"

/* A batch of matrices of rows x columns. The elements on and above the diagonal (`upper`), or on
 * and below it, are kept, the others become 0. `to` may be `from`. */
typedef struct lt_CudaTriangle {
  void *to;
  const void *from;
  int size;
  bool upper;
  int64_t numel, rows, columns, diagonal;
} lt_CudaTriangle;
/* Launches the copy of the triangles. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_triangle(const lt_CudaTriangle *t, cudaStream_t stream);

/* Element i of dimension d comes from element i - shift[d], modulo the dimension's size, with 0 <=
 * shift < size. The strides of `from` are in elements. */
typedef struct lt_CudaRoll {
  void *to;
  const void *from;
  int size, ndim;
  int64_t numel;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS], shift[LT_MAX_DIMS];
} lt_CudaRoll;
/* Launches the roll. `to` and `from` do not overlap. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_roll(const lt_CudaRoll *r, cudaStream_t stream);

#endif
