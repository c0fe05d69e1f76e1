/* launch.cuh: launches of kernels. Every compiler, with CUDA's syntax <<<...>>> or without, accepts
 *
 *     launch("softmax", softmax_kernel<float>, grid, block, shared_bytes, stream, arguments...)
 *
 * Grids are sized by the data, not by the number of multiprocessors: one launch for each call, in
 * which each thread processes a few neighbouring elements. (A grid-stride loop has poor cache
 * locality on emulated devices and is no faster on a GPU here.) A grid has at most 2^31 - 1 blocks:
 * kernels that may need more loop over the remaining ones (see grid_for).
 */
#ifndef LT_CUDA_LAUNCH_CUH
#define LT_CUDA_LAUNCH_CUH

#include "kernels.h"

#include <cuda_runtime.h>

/* Declares `name` as a T pointer to the block's dynamic shared memory, aligned to 16 bytes. The
 * emulation's headers have their own definition. */
#ifndef LT_DYNAMIC_SHARED
#define LT_DYNAMIC_SHARED(T, name)                                                                 \
  extern __shared__ __align__(16) unsigned char lt_dynamic_shared[];                               \
  T *const name = reinterpret_cast<T *>(lt_dynamic_shared)
#endif

/* Stands before a short loop over independent, consecutive elements: a GPU's thread unrolls it, a
 * CPU's compiler vectorizes it. */
#ifndef LT_VECTOR_LOOP
#define LT_VECTOR_LOOP _Pragma("unroll")
#endif

/* Launches a kernel on the stream. When the device is out of memory, frees cached memory and tries
 * once more. Returns the launch's status, which is also recorded under `name`. `name` must live as
 * long as the program. */
template <class... P, class... A>
static inline cudaError_t launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                                 size_t shared, cudaStream_t stream, A... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  cudaError_t status = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (status == cudaErrorMemoryAllocation && lt_cuda_free_cached())
    status = cudaLaunchKernelEx(&config, kernel, arguments...);
  return lt_cuda_note_launch(name, stream, status);
}

/* Returns the number of blocks for n elements, `each` to a block; at least 1. */
static inline int64_t blocks_for(int64_t n, int64_t each) { return n > 0 ? (n - 1) / each + 1 : 1; }

/* Returns a one-dimensional grid for that many blocks. A grid has at most 2^31 - 1: kernels that
 * may need more blocks get their block numbers from a loop `for (b = blockIdx.x; b < blocks; b +=
 * gridDim.x)`. */
static inline dim3 grid_for(int64_t blocks) {
  return dim3((unsigned)(blocks < 0x7fffffff ? blocks : 0x7fffffff));
}

#endif
