/* rearrange.h: launchers of rearrange.cu: elements moved by a rule, `size` bytes each (1, 2, 4, 8),
 * into dense memory. */
#ifndef LT_CUDA_REARRANGE_H
#define LT_CUDA_REARRANGE_H

#include "kernels.h"

/* Matrices of rows x columns, one after the other: what lies on and above the diagonal (or on and
 * below it) stays, the rest becomes 0. `to` may be `from`. */
typedef struct lt_CudaTriangle {
  void *to;
  const void *from;
  int size;
  bool upper;
  int64_t numel, rows, columns, diagonal;
} lt_CudaTriangle;
LT_C_LINKAGE cudaError_t lt_cuda_launch_triangle(const lt_CudaTriangle *t, cudaStream_t stream);

/* Position i of dimension d comes from position i - shift[d], around the ends; 0 <= shift < size of
 * the dimension. Strides of `from` in elements. */
typedef struct lt_CudaRoll {
  void *to;
  const void *from;
  int size, ndim;
  int64_t numel;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS], shift[LT_MAX_DIMS];
} lt_CudaRoll;
LT_C_LINKAGE cudaError_t lt_cuda_launch_roll(const lt_CudaRoll *r, cudaStream_t stream);

#endif
