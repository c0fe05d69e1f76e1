/* sort.cu: sorting. Elements are converted to unsigned integers with the same order (NaN is the
 * largest, -0 equals 0; complemented when descending). Short rows are sorted by blocks in shared
 * memory; long ones by CUB's radix sort of the keys together with the elements' numbers, which is
 * stable. Values are copied by number, so they keep every bit. */
#include "device.cuh"
#include "launch.cuh"
#include "sort.h"

#include <cub/device/device_radix_sort.cuh>

#define THREADS 256

/* ---- keys ------------------------------------------------------------------------------------ */

int lt_cuda_key_bits(int dtype) {
  switch (dtype) {
  case LT_bool:
  case LT_uint8:
  case LT_int8:
    return 8;
  case LT_int16:
  case LT_float16:
  case LT_bfloat16:
    return 16;
  case LT_int32:
  case LT_float32:
    return 32;
  default:
    return 64;
  }
}

/* Converts the bits of a float to a key. `infinity` is the bits of infinity. */
template <class U> LT_DEVICE_INLINE U float_key(U u, U infinity) {
  U sign = (U)((U)1 << (sizeof(U) * 8 - 1)), all = (U) ~(U)0;
  if ((u & (U)~sign) > infinity) return all;
  if (u == sign) u = 0;
  return u & sign ? (U)~u : (U)(u | sign);
}

LT_DEVICE_INLINE uint64_t key_of(const void *x, int dtype, int64_t i, bool descending) {
  uint64_t key, all;
  switch (dtype) {
  case LT_bool:
    key = ((const uint8_t *)x)[i] != 0, all = 0xff;
    break;
  case LT_uint8:
    key = ((const uint8_t *)x)[i], all = 0xff;
    break;
  case LT_int8:
    key = ((const uint8_t *)x)[i] ^ 0x80u, all = 0xff;
    break;
  case LT_int16:
    key = ((const uint16_t *)x)[i] ^ 0x8000u, all = 0xffff;
    break;
  case LT_float16:
    key = float_key<uint16_t>(((const uint16_t *)x)[i], 0x7c00), all = 0xffff;
    break;
  case LT_bfloat16:
    key = float_key<uint16_t>(((const uint16_t *)x)[i], 0x7f80), all = 0xffff;
    break;
  case LT_int32:
    key = ((const uint32_t *)x)[i] ^ 0x80000000u, all = 0xffffffffu;
    break;
  case LT_float32:
    key = float_key<uint32_t>(((const uint32_t *)x)[i], 0x7f800000u), all = 0xffffffffu;
    break;
  case LT_int64:
    key = ((const uint64_t *)x)[i] ^ (uint64_t)1 << 63, all = ~(uint64_t)0;
    break;
  default:
    key = float_key<uint64_t>(((const uint64_t *)x)[i], (uint64_t)0x7ff << 52), all = ~(uint64_t)0;
    break;
  }
  return descending ? key ^ all : key;
}

/* Stores element number `from` as result number `to`, and its index. */
LT_DEVICE_INLINE void store_element(const lt_CudaOrder &o, int64_t to, int64_t from,
                                    int64_t index) {
  switch (dtype_size(o.dtype)) {
  case 1:
    ((uint8_t *)o.values)[to] = ((const uint8_t *)o.x)[from];
    break;
  case 2:
    ((uint16_t *)o.values)[to] = ((const uint16_t *)o.x)[from];
    break;
  case 4:
    ((uint32_t *)o.values)[to] = ((const uint32_t *)o.x)[from];
    break;
  default:
    ((uint64_t *)o.values)[to] = ((const uint64_t *)o.x)[from];
    break;
  }
  o.indices[to] = index + LT_INDEX_BASE;
}

/* ---- segments, in shared memory -------------------------------------------------------------- */

/* A key and an index, which orders equal keys. set_none() makes an item that follows all others. */
struct Narrow { /* keys up to 32 bits, rows below 2^32 - 1 elements */
  uint64_t both;
  __device__ __forceinline__ void set(uint64_t key, int64_t at) { both = key << 32 | (uint32_t)at; }
  __device__ __forceinline__ void set_none() { both = ~(uint64_t)0; }
  __device__ __forceinline__ int64_t at() const { return (int64_t)(both & 0xffffffffu); }
  __device__ __forceinline__ bool after(const Narrow &other) const { return both > other.both; }
};
struct Wide {
  uint64_t key, index;
  __device__ __forceinline__ void set(uint64_t k, int64_t at) {
    key = k;
    index = (uint64_t)at;
  }
  __device__ __forceinline__ void set_none() { key = index = ~(uint64_t)0; }
  __device__ __forceinline__ int64_t at() const { return (int64_t)index; }
  __device__ __forceinline__ bool after(const Wide &other) const {
    return key > other.key || (key == other.key && index > other.index);
  }
};

/* The arguments of the kernel: the segments of all rows. */
struct Segments {
  const void *from;
  void *to;
  int64_t count, each, blocks; /* elements to sort and segments of a row */
  int size, together;          /* elements of a segment, a power of 2; segments of a block */
};

/* Sorts each of the block's segments by Batcher's bitonic sort. Items up to 32 apart are exchanged
 * within groups of 64, each of which belongs to a warp: only the warp must synchronize. */
template <class Item> LT_DEVICE_INLINE void sort_segments(Item *items, int size, int total) {
  for (int run = 2; run <= size; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      for (int i = (int)threadIdx.x; i < total / 2; i += (int)blockDim.x) {
        int low = 2 * i - (i & (step - 1)), high = low + step;
        bool falling = (low & (size - 1) & run) != 0;
        Item a = items[low], b = items[high];
        if (a.after(b) != falling) {
          items[low] = b;
          items[high] = a;
        }
      }
      int next = step > 1 ? step / 2 : run;
      if (step <= LT_WARP && next <= LT_WARP && next < size)
        __syncwarp();
      else
        __syncthreads();
    }
}

/* Sorts segments in shared memory, several to a block where they are short. */
template <class Item>
static __global__ void __launch_bounds__(THREADS)
    order_segments(const lt_CudaOrder o, const Segments s) {
  __shared__ Item items[LT_CUDA_SEGMENT];
  int total = s.size * s.together;
  for (int64_t b = blockIdx.x; b < s.blocks; b += gridDim.x) {
    for (int i = (int)threadIdx.x; i < total; i += (int)blockDim.x) {
      int64_t segment = b * s.together + i / s.size, row = segment / s.each;
      int64_t at = segment % s.each * s.size + i % s.size;
      if (row >= o.rows || at >= s.count)
        items[i].set_none();
      else if (s.from)
        items[i] = ((const Item *)s.from)[row * s.count + at];
      else
        items[i].set(key_of(o.x, o.dtype, row * o.n + at, o.descending), at);
    }
    __syncthreads();
    sort_segments(items, s.size, total);
    for (int i = (int)threadIdx.x; i < total; i += (int)blockDim.x) {
      int64_t segment = b * s.together + i / s.size, row = segment / s.each;
      int j = i % s.size;
      if (row >= o.rows || j >= o.k) continue;
      if (s.each > 1)
        ((Item *)s.to)[segment * o.k + j] = items[i];
      else
        store_element(o, row * o.k + j, row * o.n + items[i].at(), items[i].at());
    }
    __syncthreads();
  }
}

cudaError_t lt_cuda_order_segments(const lt_CudaOrder *o, const void *from, int64_t count, void *to,
                                   cudaStream_t stream) {
  static_assert(sizeof(Wide) <= LT_CUDA_CANDIDATE, "candidates have room in the scratch");
  Segments s = {from, to, count, blocks_for(count, LT_CUDA_SEGMENT), 0, 1, 1};
  while (s.size < count && s.size < LT_CUDA_SEGMENT) s.size *= 2;
  while (s.size * s.together < THREADS && s.together < o->rows) s.together *= 2;
  s.blocks = blocks_for(o->rows * s.each, s.together);
  int threads = s.size * s.together / 2;
  if (threads < LT_WARP) threads = LT_WARP;
  if (threads > THREADS) threads = THREADS;
  if (lt_cuda_key_bits(o->dtype) <= 32 && o->n < (int64_t)0xffffffff)
    return launch("order_stretches", order_segments<Narrow>, grid_for(s.blocks), dim3(threads), 0,
                  stream, *o, s);
  return launch("order_stretches", order_segments<Wide>, grid_for(s.blocks), dim3(threads), 0,
                stream, *o, s);
}

/* ---- whole rows ------------------------------------------------------------------------------ */

#define EACH_ELEMENT(i, n)                                                                         \
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                        \
       i += (int64_t)gridDim.x * blockDim.x)

template <class U>
static __global__ void order_keys(const lt_CudaOrder o, int row_shift, U *keys, U *numbers) {
  EACH_ELEMENT(i, o.rows * o.n) {
    uint64_t key = key_of(o.x, o.dtype, i, o.descending);
    if (row_shift > 0) key |= (uint64_t)(i / o.n) << row_shift;
    keys[i] = (U)key;
    numbers[i] = (U)i;
  }
}

template <class U>
static __global__ void order_rows(const lt_CudaOrder o, const U *numbers, U *keys) {
  EACH_ELEMENT(i, o.rows * o.n) keys[i] = (U)((int64_t)numbers[i] / o.n);
}

template <class U> static __global__ void order_gather(const lt_CudaOrder o, const U *numbers) {
  EACH_ELEMENT(i, o.rows * o.k) {
    int64_t row = i / o.k, from = (int64_t)numbers[row * o.n + i % o.k];
    store_element(o, i, from, from - row * o.n);
  }
}

template <class... P, class... A>
static cudaError_t on_each(const char *name, void (*kernel)(P...), int64_t n, cudaStream_t stream,
                           A... arguments) {
  return launch(name, kernel, grid_for(blocks_for(n, THREADS)), dim3(THREADS), 0, stream,
                arguments...);
}

cudaError_t lt_cuda_order_keys(const lt_CudaOrder *o, bool wide, bool with_rows, void *keys,
                               void *numbers, cudaStream_t stream) {
  int64_t n = o->rows * o->n;
  int shift = with_rows ? lt_cuda_key_bits(o->dtype) : 0;
  if (wide)
    return on_each("order_keys", order_keys<uint64_t>, n, stream, *o, shift, (uint64_t *)keys,
                   (uint64_t *)numbers);
  return on_each("order_keys", order_keys<uint32_t>, n, stream, *o, shift, (uint32_t *)keys,
                 (uint32_t *)numbers);
}

cudaError_t lt_cuda_order_rows(const lt_CudaOrder *o, bool wide, const void *numbers, void *keys,
                               cudaStream_t stream) {
  int64_t n = o->rows * o->n;
  if (wide)
    return on_each("order_rows", order_rows<uint64_t>, n, stream, *o, (const uint64_t *)numbers,
                   (uint64_t *)keys);
  return on_each("order_rows", order_rows<uint32_t>, n, stream, *o, (const uint32_t *)numbers,
                 (uint32_t *)keys);
}

cudaError_t lt_cuda_order_gather(const lt_CudaOrder *o, bool wide, const void *numbers,
                                 cudaStream_t stream) {
  int64_t n = o->rows * o->k;
  if (wide)
    return on_each("order_gather", order_gather<uint64_t>, n, stream, *o,
                   (const uint64_t *)numbers);
  return on_each("order_gather", order_gather<uint32_t>, n, stream, *o, (const uint32_t *)numbers);
}

/* ---- radix sort ------------------------------------------------------------------------------ */

/* Calls CUB's sort, which without memory only computes the size that is required. */
template <class K, class V>
static cudaError_t sort_pairs(void *scratch, size_t *scratch_size, const K *keys, K *keys_out,
                              const V *values, V *values_out, int64_t n, int bits,
                              cudaStream_t stream) {
  size_t size = scratch ? *scratch_size : 0;
  if (scratch && n == 0) return cudaSuccess;
  auto sort = [&] {
    return cub::DeviceRadixSort::SortPairs(scratch, size, keys, keys_out, values, values_out, n, 0,
                                           bits, stream);
  };
  cudaError_t status = sort();
  if (status == cudaErrorMemoryAllocation && lt_cuda_free_cached()) status = sort();
  if (!scratch) *scratch_size = size > 0 ? size : 1;
  return scratch ? lt_cuda_note_launch("radix_sort", stream, status) : status;
}

cudaError_t lt_cuda_sort_pairs_u64(void *scratch, size_t *scratch_size, const uint64_t *keys,
                                   uint64_t *keys_out, const int64_t *values, int64_t *values_out,
                                   int64_t n, int bits, cudaStream_t stream) {
  return sort_pairs(scratch, scratch_size, keys, keys_out, values, values_out, n, bits, stream);
}

cudaError_t lt_cuda_sort_pairs_u32(void *scratch, size_t *scratch_size, const uint32_t *keys,
                                   uint32_t *keys_out, const uint32_t *values, uint32_t *values_out,
                                   int64_t n, int bits, cudaStream_t stream) {
  return sort_pairs(scratch, scratch_size, keys, keys_out, values, values_out, n, bits, stream);
}
