/* mask.cu: the kernels of mask.h. */
#include "mask.h"
#include "launch.cuh"
#include "places.cuh"

enum { THREADS = 256, CHUNK = LT_CUDA_MASK_CHUNK };

static int64_t chunks_of(int64_t n) { return blocks_for(n, CHUNK); }
static dim3 grid(int64_t n) { return grid_for(blocks_for(chunks_of(n), THREADS)); }

/* A chunk's bytes as bits. */
LT_DEVICE_INLINE unsigned bits_of(const uint8_t *mask, int64_t chunk, int64_t n) {
  int64_t from = chunk * CHUNK;
  unsigned bits = 0;
  if (from + CHUNK <= n && (uintptr_t)mask % 16 == 0) {
    uint4 w = ((const uint4 *)mask)[chunk];
    unsigned words[4] = {w.x, w.y, w.z, w.w};
    for (int k = 0; k < 4; k++) {
      unsigned v = words[k]; /* the lowest bit of each byte, moved together */
      v = (v | v >> 7) & 0x00030003u;
      bits |= ((v | v >> 14) & 0xfu) << 4 * k;
    }
    return bits;
  }
  for (int k = 0; k < CHUNK && from + k < n; k++) bits |= (unsigned)mask[from + k] << k;
  return bits;
}

static __global__ void count_mask_kernel(const uint8_t *mask, int64_t n, int64_t chunks,
                                         uint8_t *counts) {
  LT_EACH(c, chunks) counts[c] = (uint8_t)__popc(bits_of(mask, c, n));
}

cudaError_t lt_cuda_launch_count_mask(const uint8_t *mask, int64_t n, uint8_t *counts,
                                      cudaStream_t stream) {
  return launch("count_mask", count_mask_kernel, grid(n), dim3(THREADS), 0, stream, mask, n,
                chunks_of(n), counts);
}

/* Calls each(i, k) for every true element i, the k-th. */
template <class F>
LT_DEVICE_INLINE void each_true(const uint8_t *mask, const int64_t *before, int64_t n, F each) {
  LT_EACH(c, (n + CHUNK - 1) / CHUNK) {
    int64_t k = before[c];
    for (unsigned bits = bits_of(mask, c, n); bits; bits &= bits - 1)
      each(c * CHUNK + __ffs((int)bits) - 1, k++);
  }
}

template <class U>
static __global__ void select_kernel(const uint8_t *mask, const int64_t *before, int64_t n,
                                     lt_CudaLayout layout, const U *from, U *to) {
  each_true(mask, before, n, [&](int64_t i, int64_t k) { to[k] = from[offset_of(layout, i)]; });
}
template <class U>
static __global__ void deselect_kernel(const uint8_t *mask, const int64_t *before, int64_t n,
                                       lt_CudaLayout layout, const U *from, U *to) {
  each_true(mask, before, n, [&](int64_t i, int64_t k) { to[i] = from[offset_of(layout, k)]; });
}
static __global__ void positions_of_kernel(const uint8_t *mask, const int64_t *before, int64_t n,
                                           lt_CudaLayout shape, int64_t *to) {
  each_true(mask, before, n, [&](int64_t i, int64_t k) {
    for (int d = shape.ndim - 1; d >= 0; d--) {
      int64_t at;
      i = divide(i, shape.shape[d], &at);
      to[k * shape.ndim + d] = at + LT_INDEX_BASE;
    }
  });
}

template <class U> struct Move {
  static cudaError_t select(const uint8_t *mask, const int64_t *before, int64_t n,
                            const lt_CudaLayout *layout, const void *from, void *to, bool back,
                            cudaStream_t stream) {
    return launch(back ? "deselect" : "select", back ? deselect_kernel<U> : select_kernel<U>,
                  grid(n), dim3(THREADS), 0, stream, mask, before, n, *layout, (const U *)from,
                  (U *)to);
  }
};

static cudaError_t move(const uint8_t *mask, const int64_t *before, int64_t n,
                        const lt_CudaLayout *layout, const void *from, void *to, int size,
                        bool back, cudaStream_t stream) {
  switch (size) {
  case 1:
    return Move<uint8_t>::select(mask, before, n, layout, from, to, back, stream);
  case 2:
    return Move<uint16_t>::select(mask, before, n, layout, from, to, back, stream);
  case 4:
    return Move<uint32_t>::select(mask, before, n, layout, from, to, back, stream);
  default:
    return Move<uint2>::select(mask, before, n, layout, from, to, back, stream);
  }
}

cudaError_t lt_cuda_launch_select(const uint8_t *mask, const int64_t *before, int64_t n,
                                  const lt_CudaLayout *layout, const void *from, void *to, int size,
                                  cudaStream_t stream) {
  return move(mask, before, n, layout, from, to, size, false, stream);
}
cudaError_t lt_cuda_launch_deselect(const uint8_t *mask, const int64_t *before, int64_t n,
                                    const lt_CudaLayout *layout, const void *from, void *to,
                                    int size, cudaStream_t stream) {
  return move(mask, before, n, layout, from, to, size, true, stream);
}
cudaError_t lt_cuda_launch_positions_of(const uint8_t *mask, const int64_t *before, int64_t n,
                                        const lt_CudaLayout *shape, int64_t *to,
                                        cudaStream_t stream) {
  return launch("positions_of", positions_of_kernel, grid(n), dim3(THREADS), 0, stream, mask,
                before, n, *shape, to);
}
