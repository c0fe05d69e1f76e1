/* index_regions.cuh: where an element of a region lies; see index_regions.h. */
#ifndef LT_CUDA_INDEX_REGIONS_CUH
#define LT_CUDA_INDEX_REGIONS_CUH

#include "device.cuh"
#include "launch.cuh"
#include "index_regions.h"

/* The offsets of element i: in self (without the position's part), in the index, in the other. */
struct Place {
  int64_t self, index, other;
};

/* i / n and the rest; i >= 0, n > 0. */
LT_DEVICE_INLINE int64_t divide(int64_t i, int64_t n, int64_t *rest) {
  if (((uint64_t)i | (uint64_t)n) >> 32) {
    int64_t q = i / n;
    *rest = i - q * n;
    return q;
  }
  unsigned q = (unsigned)i / (unsigned)n; /* 32-bit division is several times quicker */
  *rest = (int64_t)((unsigned)i - q * (unsigned)n);
  return (int64_t)q;
}

LT_DEVICE_INLINE Place place_of(const lt_IndexRegion &p, int64_t i) {
  Place at = {0, 0, 0};
  for (int d = p.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, p.shape[d], &c);
    at.self += c * p.self[d];
    at.index += c * p.index[d];
    at.other += c * p.other[d];
  }
  return at;
}

/* The offset of element i of a tensor. */
LT_DEVICE_INLINE int64_t offset_of(const lt_CudaLayout &l, int64_t i) {
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

/* Every element of 0..n-1, a few to each thread; neighbouring threads have neighbours. */
#define LT_EACH(i, n)                                                                              \
  for (int64_t lt_first = (int64_t)blockIdx.x * LT_INDEX_BLOCK; lt_first < (n);                    \
       lt_first += (int64_t)gridDim.x * LT_INDEX_BLOCK)                                            \
    for (int64_t i = lt_first + threadIdx.x; i < (n) && i < lt_first + LT_INDEX_BLOCK;             \
         i += LT_INDEX_THREADS)
/* The same with one to each thread, where an element may be much work. */
#define LT_EACH_ALONE(i, n)                                                                        \
  for (int64_t i = (int64_t)blockIdx.x * LT_ALONE_THREADS + threadIdx.x; i < (n);                  \
       i += (int64_t)gridDim.x * LT_ALONE_THREADS)

/* The same elements in steps: for those that a thread has in one round, LT_ROUND before LT_STEP (k
 * from 0, i the element). What a step only loads is under way while the next k is worked on, since
 * no store stands between. */
#define LT_ROUND(n)                                                                                \
  for (int64_t lt_first = (int64_t)blockIdx.x * LT_INDEX_BLOCK; lt_first < (n);                    \
       lt_first += (int64_t)gridDim.x * LT_INDEX_BLOCK)
#define LT_STEPS (LT_INDEX_BLOCK / LT_INDEX_THREADS)
#define LT_STEP(k, i, n)                                                                           \
  _Pragma("unroll")                                                                                \
  for (int k = 0; k < LT_STEPS; k++)                                                               \
    if (int64_t i = lt_first + threadIdx.x + k * LT_INDEX_THREADS; i < (n))

/* Launch kernels that go over n elements with LT_EACH, LT_ROUND, with LT_EACH_ALONE. */
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
