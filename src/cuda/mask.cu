/* mask.cu: the kernels of mask.h. */
#include "mask.h"
#include "index_regions.cuh"

enum { WORD = 32 };

/* Packs the lowest bit of each of four bytes into four bits. */
LT_DEVICE_INLINE uint32_t pack_four(uint32_t v) {
  v = (v | v >> 7) & 0x00030003u;
  return (v | v >> 14) & 0xfu;
}

/* Packs 32 bytes into a word, one word to a thread. */
static __global__ void pack_mask_kernel(const uint8_t *mask, int64_t n, int64_t words, bool aligned,
                                        uint32_t *to, uint8_t *counts) {
  LT_EACH(w, words) {
    uint32_t bits = 0;
    int64_t from = w * WORD;
    if (aligned && from + WORD <= n) {
      const uint4 *p = (const uint4 *)(mask + from);
      for (int half = 0; half < 2; half++) {
        uint4 v = p[half];
        uint32_t sixteen =
            pack_four(v.x) | pack_four(v.y) << 4 | pack_four(v.z) << 8 | pack_four(v.w) << 12;
        bits |= sixteen << 16 * half;
      }
    } else {
      for (int k = 0; k < WORD && from + k < n; k++) bits |= (uint32_t)(mask[from + k] != 0) << k;
    }
    to[w] = bits;
    counts[w] = (uint8_t)__popc(bits);
  }
}

cudaError_t lt_cuda_launch_pack_mask(const uint8_t *mask, int64_t n, uint32_t *words,
                                     uint8_t *counts, cudaStream_t stream) {
  int64_t count = blocks_for(n, WORD);
  return launch_each("pack_mask", pack_mask_kernel, count, stream, mask, n, count,
                     (uintptr_t)mask % 16 == 0, words, counts);
}

/* Calls each(i, k) for each true element i; it is number k, from 0, of the true elements. */
template <class F> LT_DEVICE_INLINE void each_true(const lt_CudaMask &m, F each) {
  LT_EACH(i, m.n) {
    uint32_t bits = m.words[i / WORD], own = 1u << i % WORD;
    if (bits & own) each(i, m.before[i / WORD] + __popc(bits & (own - 1)));
  }
}

template <class U>
static __global__ void select_kernel(lt_CudaMask m, lt_IndexLayout layout, const U *from, U *to) {
  each_true(m, [&](int64_t i, int64_t k) { to[k] = from[offset_of(layout, i)]; });
}
template <class U>
static __global__ void fill_in_kernel(lt_CudaMask m, lt_IndexLayout layout, const U *from, U *to) {
  each_true(m, [&](int64_t i, int64_t k) { to[i] = from[offset_of(layout, k)]; });
}
static __global__ void true_indices_kernel(lt_CudaMask m, lt_IndexLayout shape, int64_t *to) {
  each_true(m, [&](int64_t i, int64_t k) {
    for (int d = shape.ndim - 1; d >= 0; d--) {
      int64_t at = i;
      if (d > 0) i = divide(i, shape.shape[d], &at);
      to[k * shape.ndim + d] = at + LT_INDEX_BASE;
    }
  });
}

template <class U>
static cudaError_t select(const lt_CudaMask *m, const lt_IndexLayout *layout, const void *from,
                          void *to, cudaStream_t stream) {
  return launch_each("masked_select", select_kernel<U>, m->n, stream, *m, *layout, (const U *)from,
                     (U *)to);
}
template <class U>
static cudaError_t fill_in(const lt_CudaMask *m, const lt_IndexLayout *layout, const void *from,
                           void *to, cudaStream_t stream) {
  return launch_each("masked_scatter", fill_in_kernel<U>, m->n, stream, *m, *layout,
                     (const U *)from, (U *)to);
}

cudaError_t lt_cuda_launch_select(const lt_CudaMask *m, const lt_IndexLayout *layout,
                                  const void *from, void *to, int size, cudaStream_t stream) {
  switch (size) {
  case 1:
    return select<uint8_t>(m, layout, from, to, stream);
  case 2:
    return select<uint16_t>(m, layout, from, to, stream);
  case 4:
    return select<uint32_t>(m, layout, from, to, stream);
  case 8:
    return select<uint64_t>(m, layout, from, to, stream);
  default:
    return select<uint4>(m, layout, from, to, stream);
  }
}

cudaError_t lt_cuda_launch_fill_in(const lt_CudaMask *m, const lt_IndexLayout *layout,
                                   const void *from, void *to, int size, cudaStream_t stream) {
  switch (size) {
  case 1:
    return fill_in<uint8_t>(m, layout, from, to, stream);
  case 2:
    return fill_in<uint16_t>(m, layout, from, to, stream);
  case 4:
    return fill_in<uint32_t>(m, layout, from, to, stream);
  case 8:
    return fill_in<uint64_t>(m, layout, from, to, stream);
  default:
    return fill_in<uint4>(m, layout, from, to, stream);
  }
}

cudaError_t lt_cuda_launch_true_indices(const lt_CudaMask *m, const lt_IndexLayout *shape,
                                        int64_t *to, cudaStream_t stream) {
  return launch_each("nonzero", true_indices_kernel, m->n, stream, *m, *shape, to);
}
