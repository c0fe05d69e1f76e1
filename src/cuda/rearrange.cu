/* rearrange.cu: kernels that move elements: triangles, rolls. They copy bytes, whatever the
 * dtype. */
#include "rearrange.h"
#include "launch.cuh"
#include "index_math.cuh"

#define THREADS 128
#define EACH    4 /* elements for each thread */

template <class E>
static __global__ void __launch_bounds__(THREADS)
    triangle(const __grid_constant__ lt_CudaTriangle t) {
  int64_t i = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  const E *from = (const E *)t.from;
  E *to = (E *)t.to, v[EACH]; /* all are loaded before any is stored, so that the loads are issued
                               * together */
#pragma unroll
  for (int e = 0; e < EACH; e++) {
    if (i + e * THREADS >= t.numel) break;
    int64_t row = i + e * THREADS, column = divmod(row, t.columns);
    row = divmod(row, t.rows);
    bool kept = t.upper ? column >= row + t.diagonal : column <= row + t.diagonal;
    v[e] = kept ? from[i + e * THREADS] : E();
  }
#pragma unroll
  for (int e = 0; e < EACH; e++)
    if (i + e * THREADS < t.numel) to[i + e * THREADS] = v[e];
}

template <class E>
static __global__ void __launch_bounds__(THREADS) roll(const __grid_constant__ lt_CudaRoll r) {
  int64_t i = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
  const E *from = (const E *)r.from;
  E *to = (E *)r.to;
#pragma unroll 1
  for (int e = 0; e < EACH && i < r.numel; e++, i += THREADS) {
    int64_t left = i, offset = 0;
#pragma unroll 1
    for (int d = r.ndim - 1; d >= 0; d--) {
      int64_t at = divmod(left, r.shape[d]) - r.shift[d];
      offset += (at < 0 ? at + r.shape[d] : at) * r.strides[d];
    }
    to[i] = from[offset];
  }
}

/* Launches kernel<E>, where E is a type of `size` bytes. */
#define BY_SIZE(size, name, kernel, numel, argument)                                               \
  switch (size) {                                                                                  \
  case 1:                                                                                          \
    return launch(name, kernel<uint8_t>, grid_for(blocks_for(numel, THREADS * EACH)),              \
                  dim3(THREADS), 0, stream, argument);                                             \
  case 2:                                                                                          \
    return launch(name, kernel<uint16_t>, grid_for(blocks_for(numel, THREADS * EACH)),             \
                  dim3(THREADS), 0, stream, argument);                                             \
  case 4:                                                                                          \
    return launch(name, kernel<uint32_t>, grid_for(blocks_for(numel, THREADS * EACH)),             \
                  dim3(THREADS), 0, stream, argument);                                             \
  case 8:                                                                                          \
    return launch(name, kernel<uint64_t>, grid_for(blocks_for(numel, THREADS * EACH)),             \
                  dim3(THREADS), 0, stream, argument);                                             \
  default:                                                                                         \
    return launch(name, kernel<uint4>, grid_for(blocks_for(numel, THREADS * EACH)), dim3(THREADS), \
                  0, stream, argument);                                                            \
  }

LT_C_LINKAGE cudaError_t lt_cuda_launch_triangle(const lt_CudaTriangle *t, cudaStream_t stream){
    BY_SIZE(t->size, "triangle", triangle, t->numel, *t)}

LT_C_LINKAGE cudaError_t lt_cuda_launch_roll(const lt_CudaRoll *r, cudaStream_t stream) {
  BY_SIZE(r->size, "roll", roll, r->numel, *r)
}
