/* cuda_runtime.h: CUDA C++ for a machine without a GPU: g++ compiles a .cu file with this header,
 * and the kernels run on the CPU.
 *
 * Supported: grids, blocks and threads with __syncthreads (and _count, _and, _or), warp shuffles,
 * votes, match and reduce with masks, static __shared__, LT_DYNAMIC_SHARED(T, name) for dynamic
 * shared memory, atomics, fences, vector types, intrinsics; cudaLaunchKernelEx (called by launch()
 * of launch.cuh); half types in cuda_fp16.h and cuda_bf16.h; CUB's device-wide functions in
 * cub/cub.cuh; matrix products in cublas_v2.h. Not supported: k<<<>>>, dynamic parallelism,
 * cooperative groups, textures, managed memory, graphs, inline PTX, tensor cores, block-wide CUB.
 *
 * Differences from CUDA: __constant__ and __device__ variables are shared by all devices and must
 * be static; exp(x) of a float is C++'s overload; floating-point operations are not contracted
 * unless -ffp-contract enables it. A thread that spins on another thread of its block must call
 * __nanosleep; a block that spins on another block may never end.
 *
 * Settings: see src/emulation/options.h.
 */
#ifndef LT_EMULATED_CUDA_RUNTIME_H
#define LT_EMULATED_CUDA_RUNTIME_H

#include <math.h>
#include <stdio.h>

#include "cuda_runtime_api.h"

#include "emulated/device.h"
#include "emulated/vector_maths.h"
#include "emulated/arithmetic.h"
#include "emulated/atomics.h"
#include "emulated/launch.h"

typedef struct cudaLaunchAttribute_st {
  int id;
  char val[64];
} cudaLaunchAttribute;
/* The first two members are gridDim and blockDim; see device.h. */
struct cudaLaunchConfig_t {
  dim3 grid_size, block_size;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
  cudaLaunchConfig_t *lt_emulated_here() { return this; }
  const cudaLaunchConfig_t *lt_emulated_here() const { return this; }
};

/* Queues a launch of a kernel. Takes over `launch`, also on failure. */
extern "C" cudaError_t lt_emulated_launch(const cudaLaunchConfig_t *config, const void *kernel,
                                          lt_EmulatedLaunch *launch);
/* Queues work of a library as one operation, which may access the same memory as a kernel. `work`
 * is passed to `run` and to `destroy`. */
extern "C" cudaError_t lt_emulated_enqueue(cudaStream_t stream, void (*run)(void *),
                                           void (*destroy)(void *), void *work);

template <class... P, class... A>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...),
                                      A &&...arguments) {
  return lt_emulated_launch(config, (const void *)kernel,
                            new lt_EmulatedKernel<P...>(kernel, (P)arguments...));
}

template <class T> inline cudaError_t cudaMalloc(T **p, size_t n) {
  return cudaMalloc((void **)p, n);
}
template <class T> inline cudaError_t cudaMallocAsync(T **p, size_t n, cudaStream_t s) {
  return cudaMallocAsync((void **)p, n, s);
}
template <class T> inline cudaError_t cudaMallocHost(T **p, size_t n) {
  return cudaMallocHost((void **)p, n);
}
template <class T> inline cudaError_t cudaHostAlloc(T **p, size_t n, unsigned flags) {
  return cudaHostAlloc((void **)p, n, flags);
}
template <class T>
inline cudaError_t cudaHostGetDevicePointer(T **device, void *host, unsigned flags) {
  return cudaHostGetDevicePointer((void **)device, host, flags);
}
template <class... P>
inline cudaError_t cudaFuncSetAttribute(void (*kernel)(P...), cudaFuncAttribute attr, int value) {
  return cudaFuncSetAttribute((const void *)kernel, attr, value);
}
template <class... P>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attr, void (*kernel)(P...)) {
  return cudaFuncGetAttributes(attr, (const void *)kernel);
}
template <class... P>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void (*kernel)(P...),
                                                                 int block, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, (const void *)kernel, block, shared);
}
inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
template <class T>
inline cudaError_t cudaMemcpyToSymbol(T &symbol, const void *from, size_t n, size_t offset = 0,
                                      cudaMemcpyKind = cudaMemcpyHostToDevice) {
  cudaError_t status = cudaDeviceSynchronize();
  if (status == cudaSuccess) __builtin_memcpy((char *)&symbol + offset, from, n);
  return status;
}

#endif
