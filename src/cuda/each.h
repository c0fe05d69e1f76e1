/* each.h: the launcher of bodies (each/each.h). */
#ifndef LT_CUDA_EACH_H
#define LT_CUDA_EACH_H

#include "each/args.h"
#include "kernels.h"

/* A contiguous tensor. */
typedef struct lt_CudaElements {
  void *data;
  int dtype;
} lt_CudaElements;
/* The tensors of a launch, passed by value. */
typedef struct lt_CudaEach {
  lt_CudaElements in[LT_EACH_INPUTS], out[LT_EACH_OUTPUTS];
  int64_t n; /* elements of the first result */
} lt_CudaEach;
/* Launches the body of a row LT_EACH. compute: float32, float64 or int64; args: its struct. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_each(lt_OpId op, int compute, const void *args,
                                             const lt_CudaEach *each, cudaStream_t stream);

#endif
