/* fault.h: the launchers of fault.cu. */
#ifndef LT_CUDA_FAULT_H
#define LT_CUDA_FAULT_H

#include "kernels.h"

/* Writes out[i] = the index, from 0, that element i of an index tensor means: element values
 * 1..n, or -n..-1 if `negative`. A value out of range is reported and becomes 0. Strides are in
 * elements. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_check_indices(const void *index, int dtype, int ndim,
                                                      const int64_t *shape, const int64_t *strides,
                                                      int64_t count, int64_t n, bool negative,
                                                      int64_t *out, lt_CudaFault fault,
                                                      cudaStream_t stream);

/* Reports the elements that are 0, or, with `narrow`, whose low 32 bits are 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_divisor(const void *divisor, int dtype, int ndim,
                                                const int64_t *shape, const int64_t *strides,
                                                int64_t count, bool narrow, lt_CudaFault fault,
                                                cudaStream_t stream);

#endif
