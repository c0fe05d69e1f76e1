/* fill.h: the launchers of fill.cu: tensors made from a few numbers. Memory is contiguous, of any
 * dtype. */
#ifndef LT_CUDA_FILL_H
#define LT_CUDA_FILL_H

#include "kernels.h"

/* Writes to[i] = start + i * step, in int64 (wrapping), or in float64, times scale. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_arange_int(void *to, int dtype, int64_t n, int64_t start,
                                                   int64_t step, cudaStream_t stream);
LT_C_LINKAGE cudaError_t lt_cuda_launch_arange_float(void *to, int dtype, int64_t n, double start,
                                                     double step, double scale,
                                                     cudaStream_t stream);
/* Does the same from both ends, times scale: the second half is stop - (n - 1 - i) * step. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_linspace(void *to, int dtype, int64_t n, double start,
                                                 double stop, double step, double scale,
                                                 cudaStream_t stream);
/* Writes a rows x columns matrix with ones on the diagonal and zeros elsewhere. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_eye(void *to, int dtype, int64_t rows, int64_t columns,
                                            cudaStream_t stream);

#endif
