/* fault.h: the launchers of fault.cu. */
#ifndef LT_CUDA_FAULT_H
#define LT_CUDA_FAULT_H

#include "kernels.h"

/* out[i] = the position, from 0, that element i of an index tensor of that dtype and geometry
 * (strides in elements) names: 1..n, or -n..-1 if `negative`; 0 where it is bad. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_positions(const void *index, int dtype, int ndim,
                                                  const int64_t *shape, const int64_t *strides,
                                                  int64_t count, int64_t n, bool negative,
                                                  int64_t *out, lt_CudaFault fault,
                                                  cudaStream_t stream);

/* Reports the elements that are 0, or whose low 32 bits are. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_divisor(const void *divisor, int dtype, int ndim,
                                                const int64_t *shape, const int64_t *strides,
                                                int64_t count, bool narrow, lt_CudaFault fault,
                                                cudaStream_t stream);

#endif
