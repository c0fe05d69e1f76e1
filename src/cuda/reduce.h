/* reduce.h: the launchers of the reductions in reduce.cu and reduce_line.cu. */
#ifndef LT_CUDA_REDUCE_H
#define LT_CUDA_REDUCE_H

#include "accel/reduce.h"
#include "kernels.h"

/* Launches the reduction. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_reduce(const lt_AccelReduce *r, cudaStream_t stream);
/* Launches a reduction of the kind BEST or CENTERED; called by lt_cuda_launch_reduce. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_reduce_line(const lt_AccelReduce *r, cudaStream_t stream);

#endif
