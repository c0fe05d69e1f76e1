/* map.cu: a kernel for each LT_MAP row of ops.def. The blocks of a launch are divided among its
 * items: a block belongs to one item, and each thread processes four consecutive elements, which it
 * loads and stores once. */
#include "map.h"
#include "maps.h"
#include "mathx.h"
#include "slots.cuh"

#define EACH LT_CUDA_MAP_EACH

#define M(f) m_##f

/* ---- the rows as types ----------------------------------------------------------------------- */

/* of() computes the row's expressions for element j of all tensors. */
#define GIVEN(x)                                                                                   \
  const T x = (T)numbers_.x;                                                                       \
  (void)x;
#define ONCE(x, ...) GIVEN(x)
#define READS(x)                                                                                   \
  const T x = values_[offsetof(Tensors, x) / sizeof(void *)][j_];                                  \
  (void)x;
#define WRITES(x)                                                                                  \
  T &x = values_[offsetof(Tensors, x) / sizeof(void *)][j_];                                       \
  (void)x;
#define WRITES_OPTIONAL WRITES
#define LET(x, ...)     const T x = (T)(__VA_ARGS__);
#define SET(x, ...)     x = (T)(__VA_ARGS__);
#define LT_MAP(name, tensors, numbers, text, ...)                                                  \
  struct Map_##name {                                                                              \
    typedef lt_MapTensors_##name Tensors;                                                          \
    static constexpr int count = sizeof(Tensors) / sizeof(void *);                                 \
    template <class T, class N>                                                                    \
    static __device__ __forceinline__ void of(T (&values_)[count][EACH], int j_,                   \
                                              const N &numbers_) {                                 \
      numbers tensors text                                                                         \
    }                                                                                              \
  };
namespace {
#include "ops.def"
} // namespace
#undef GIVEN
#undef ONCE
#undef READS
#undef WRITES
#undef WRITES_OPTIONAL
#undef LET
#undef SET

/* The numbers in the compute type, by name. */
#define GIVEN(x)     T x;
#define ONCE(x, ...) T x;
#define LT_MAP(name, tensors, numbers, ...)                                                        \
  template <class T> struct Numbers_##name { numbers };
namespace {
#include "ops.def"
} // namespace
#undef GIVEN
#undef ONCE

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Returns the item that a block belongs to: the last one whose first block is not after it. */
LT_DEVICE_INLINE const lt_CudaMapItem &item_of(const lt_CudaMapItem *items, int count,
                                               uint32_t block) {
  int low = 0, high = count - 1;
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (items[middle].first <= block)
      low = middle;
    else
      high = middle - 1;
  }
  return items[low];
}

/* Loads EACH elements of all tensors of an item, applies the map, and stores the tensors that it
 * writes. */
template <class Map, class T, class N>
static __global__ void __launch_bounds__(LT_CUDA_MAP_THREADS)
    map_items(const __grid_constant__ lt_CudaMap m, const __grid_constant__ N numbers) {
  const lt_CudaMapItem item =
      m.table ? item_of(m.table, m.items, blockIdx.x) : item_of(m.item, m.items, blockIdx.x);
  int64_t i = (int64_t)(blockIdx.x - item.first) * LT_CUDA_MAP_SPAN + (int64_t)threadIdx.x * EACH;
  int count = item.n - i < EACH ? (int)(item.n - i) : EACH;
  bool vector = item.vector && count == EACH;
  T v[Map::count][EACH];
  if (count <= 0) return;
#pragma unroll
  for (int k = 0; k < Map::count; k++) {
    for (int j = 0; j < EACH; j++) v[k][j] = 0;
    if (!item.data[k]) continue;
    if (vector)
      load_some(v[k], item.data[k], item.dtype, i);
    else
      for (int j = 0; j < EACH; j++)
        if (j < count) v[k][j] = load_float<T>(item.data[k], item.dtype, i + j);
  }
  LT_VECTOR_LOOP
  for (int j = 0; j < EACH; j++) Map::of(v, j, numbers);
#pragma unroll
  for (int k = 0; k < Map::count; k++) {
    if (!item.data[k] || !(m.written >> k & 1)) continue;
    if (vector)
      store_some(item.data[k], item.dtype, i, v[k]);
    else
      for (int j = 0; j < EACH; j++)
        if (j < count) store_float(item.data[k], item.dtype, i + j, v[k][j]);
  }
}

/* ---- on the host ----------------------------------------------------------------------------- */

template <class Map, class T, class N>
static cudaError_t launch_as(const char *name, const lt_CudaMap *m, const double *numbers,
                             cudaStream_t stream) {
  union {
    N named;
    T all[sizeof(N) / sizeof(T)];
  } n;
  for (size_t i = 0; i < sizeof n.all / sizeof *n.all; i++) n.all[i] = (T)numbers[i];
  return launch(name, map_items<Map, T, N>, dim3(m->blocks), dim3(LT_CUDA_MAP_THREADS), 0, stream,
                *m, n.named);
}

cudaError_t lt_cuda_launch_map(int id, const lt_CudaMap *m, bool wide, const double *numbers,
                               cudaStream_t stream) {
  switch (id) {
#define LT_MAP(name, ...)                                                                          \
  case LT_MAP_##name:                                                                              \
    return wide ? launch_as<Map_##name, double, Numbers_##name<double>>(#name, m, numbers, stream) \
                : launch_as<Map_##name, float, Numbers_##name<float>>(#name, m, numbers, stream);
#include "ops.def"
  default:
    return cudaErrorInvalidValue;
  }
}
