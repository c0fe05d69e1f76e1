/* launch.cuh: how kernels are launched, by every compiler in the same words:
 *
 *   launch("softmax", softmax_kernel<float>, grid, block, shared_bytes, stream, arguments...)
 *
 * Grids are sized by the data, not by the number of multiprocessors: one launch for each call, each
 * thread does a few neighbouring elements (a grid-stride loop walks through the caches of a CPU the
 * wrong way, and buys a GPU nothing here). Blocks past 2^31 - 1 do not fit a grid: the kernels of a
 * family loop over what is left (see grid_for).
 */
#ifndef LT_CUDA_LAUNCH_CUH
#define LT_CUDA_LAUNCH_CUH

#include "kernels.h"

#include <cuda_runtime.h>

/* The block's dynamic shared memory, as `T *name`, aligned to 16 bytes. The headers of emulation
 * have their own. */
#ifndef LT_DYNAMIC_SHARED
#define LT_DYNAMIC_SHARED(T, name)                                                                 \
  extern __shared__ __align__(16) unsigned char lt_dynamic_shared[];                               \
  T *const name = reinterpret_cast<T *>(lt_dynamic_shared)
#endif

/* Before a short loop over neighbouring elements that do not depend on one another: a GPU's thread
 * does them one after the other, a CPU in one vector. */
#ifndef LT_VECTOR_LOOP
#define LT_VECTOR_LOOP _Pragma("unroll")
#endif

template <class... P, class... A>
static inline cudaError_t launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                 size_t shared, cudaStream_t stream, A... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaError_t status = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (status == cudaErrorMemoryAllocation && lt_cuda_make_room())
    status = cudaLaunchKernelEx(&config, kernel, arguments...);
  return lt_cuda_note_launch(name, stream, status);
}

/* Blocks for n elements, `each` to a block; at least 1. */
static inline int64_t blocks_for(int64_t n, int64_t each) { return n > 0 ? (n - 1) / each + 1 : 1; }

/* A one-dimensional grid for that many blocks. A grid has at most 2^31 - 1: kernels whose blocks
 * may be more take their first block's number from a loop `for (b = blockIdx.x; b < blocks; b +=
 * gridDim.x)`. */
static inline dim3 grid_for(int64_t blocks) {
  return dim3((unsigned)(blocks < 0x7fffffff ? blocks : 0x7fffffff));
}

#endif
