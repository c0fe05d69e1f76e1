/* index_regions.cuh: offsets of a region's elements, for kernels; see index_regions.h. */
#ifndef LT_CUDA_INDEX_REGIONS_CUH
#define LT_CUDA_INDEX_REGIONS_CUH

#include "device.cuh"
#include "launch.cuh"
#include "index_regions.h"

/* The offsets of element i of a region: in self (without the part of the index), in the index, and
 * in the other tensor. */
struct RegionOffsets {
  int64_t self, index, other;
};

/* Returns i / n and writes the remainder; i >= 0, n > 0. */
LT_DEVICE_INLINE int64_t divide(int64_t i, int64_t n, int64_t *rest) {
  if (((uint64_t)i | (uint64_t)n) >> 32) {
    int64_t q = i / n;
    *rest = i - q * n;
    return q;
  }
  unsigned q = (unsigned)i / (unsigned)n; /* 32-bit division is several times faster */
  *rest = (int64_t)((unsigned)i - q * (unsigned)n);
  return (int64_t)q;
}

/* Returns the offsets of element i of a region. */
LT_DEVICE_INLINE RegionOffsets region_offsets(const lt_IndexRegion &p, int64_t i) {
  RegionOffsets at = {0, 0, 0};
  for (int d = p.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, p.shape[d], &c);
    at.self += c * p.self[d];
    at.index += c * p.index[d];
    at.other += c * p.other[d];
  }
  return at;
}

/* Returns the offset of element i of a tensor. */
LT_DEVICE_INLINE int64_t offset_of(const lt_IndexLayout &l, int64_t i) {
  int64_t offset = 0;
  for (int d = l.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, l.shape[d], &c);
    offset += c * l.strides[d];
  }
  return offset;
}

#define LT_INDEX_THREADS 256
#define LT_INDEX_BLOCK   (4 * LT_INDEX_THREADS)
#define LT_ALONE_THREADS 128

/* Loops over the elements 0..n-1, a few to each thread; neighbouring threads have neighbouring
 * elements. */
#define LT_EACH(i, n)                                                                              \
  for (int64_t lt_first = (int64_t)blockIdx.x * LT_INDEX_BLOCK; lt_first < (n);                    \
       lt_first += (int64_t)gridDim.x * LT_INDEX_BLOCK)                                            \
    for (int64_t i = lt_first + threadIdx.x; i < (n) && i < lt_first + LT_INDEX_BLOCK;             \
         i += LT_INDEX_THREADS)
/* The same with one element to each thread, where an element may be much work. */
#define LT_EACH_ALONE(i, n)                                                                        \
  for (int64_t i = (int64_t)blockIdx.x * LT_ALONE_THREADS + threadIdx.x; i < (n);                  \
       i += (int64_t)gridDim.x * LT_ALONE_THREADS)

/* The same loop in steps: LT_ROUND loops over the rounds, and within one round each LT_STEP loops
 * over this thread's elements (k from 0, i the element). The loads of a step are issued together,
 * since no store separates them. */
#define LT_ROUND(n)                                                                                \
  for (int64_t lt_first = (int64_t)blockIdx.x * LT_INDEX_BLOCK; lt_first < (n);                    \
       lt_first += (int64_t)gridDim.x * LT_INDEX_BLOCK)
#define LT_STEPS (LT_INDEX_BLOCK / LT_INDEX_THREADS)
#define LT_STEP(k, i, n)                                                                           \
  _Pragma("unroll")                                                                                \
  for (int k = 0; k < LT_STEPS; k++)                                                               \
    if (int64_t i = lt_first + threadIdx.x + k * LT_INDEX_THREADS; i < (n))

/* Launch kernels that loop over n elements: with LT_EACH or LT_ROUND; with LT_EACH_ALONE. */
template <class... P, class... A>
static inline cudaError_t launch_each(const char *name, void (*kernel)(P...), int64_t n,
                                      cudaStream_t stream, A... arguments) {
  return launch(name, kernel, grid_for(blocks_for(n, LT_INDEX_BLOCK)), dim3(LT_INDEX_THREADS), 0,
                stream, arguments...);
}
template <class... P, class... A>
static inline cudaError_t launch_each_alone(const char *name, void (*kernel)(P...), int64_t n,
                                            cudaStream_t stream, A... arguments) {
  return launch(name, kernel, grid_for(blocks_for(n, LT_ALONE_THREADS)), dim3(LT_ALONE_THREADS), 0,
                stream, arguments...);
}

#endif
