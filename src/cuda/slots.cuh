/* slots.cuh: rows of numbers kept in the registers of a group of threads, so that a kernel that
 * makes several passes over a row loads it once.
 *
 * A group is the blockDim.x threads with the same threadIdx.y; blockDim.x is a power of two. Up to
 * a warp's 32 threads, a block has blockDim.y groups, each with its own row; larger groups are a
 * whole block (blockDim.y is 1). Thread i of a group holds PER elements, its slots: where memory is
 * aligned, elements 4 i ... 4 i + 3 of each 4 * blockDim.x, so that the threads of a warp load
 * neighbouring vectors of 16 bytes; else element i of each blockDim.x. Rows that do not fit are
 * processed in windows of PER * blockDim.x elements.
 *
 * T is float for dtypes up to float32, and double for float64 only: the operands of a kernel in
 * double are float64.
 */
#ifndef LT_CUDA_SLOTS_CUH
#define LT_CUDA_SLOTS_CUH

#include "device.cuh"
#include "launch.cuh"

/* Returns the element of the window that slot k of this thread holds. */
LT_DEVICE_INLINE int slot_element(int k, bool vector) {
  int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
  return vector ? (k / 4 * lanes + lane) * 4 + k % 4 : k * lanes + lane;
}

/* Load and store four consecutive elements of aligned memory. */
LT_DEVICE_INLINE void load_some(float (&v)[4], const void *memory, int dtype, int64_t i) {
  load_four(v, memory, dtype, i);
}
LT_DEVICE_INLINE void load_some(double (&v)[4], const void *memory, int, int64_t i) {
  const double2 *p = (const double2 *)((const double *)memory + i);
  double2 a = p[0], b = p[1];
  v[0] = a.x, v[1] = a.y, v[2] = b.x, v[3] = b.y;
}
LT_DEVICE_INLINE void store_some(void *memory, int dtype, int64_t i, const float (&v)[4]) {
  store_four(memory, dtype, i, v);
}
LT_DEVICE_INLINE void store_some(void *memory, int, int64_t i, const double (&v)[4]) {
  double2 *p = (double2 *)((double *)memory + i);
  p[0] = make_double2(v[0], v[1]);
  p[1] = make_double2(v[2], v[3]);
}

/* The dtype D is known at compile time, so that no branch separates the loads. */
template <int D, class T, int PER>
LT_DEVICE_INLINE void load_slots_of(T (&v)[PER], const void *memory, int64_t from, int count,
                                    bool vector, T nothing) {
  if (vector) {
#pragma unroll
    for (int k = 0; k < PER; k += 4) {
      int i = slot_element(k, true);
      T w[4] = {nothing, nothing, nothing, nothing};
      if (i < count) load_some(w, memory, D, from + i);
      v[k] = w[0], v[k + 1] = w[1], v[k + 2] = w[2], v[k + 3] = w[3];
    }
  } else {
#pragma unroll
    for (int k = 0; k < PER; k++) {
      int i = slot_element(k, false);
      v[k] = i < count ? load_float<T>(memory, D, from + i) : nothing;
    }
  }
}
/* Stores slots; see store_slots. */
template <int D, class T, int PER>
LT_DEVICE_INLINE void store_slots_of(void *memory, int64_t from, int count, bool vector,
                                     const T (&v)[PER]) {
  if (vector) {
#pragma unroll
    for (int k = 0; k < PER; k += 4) {
      int i = slot_element(k, true);
      const T w[4] = {v[k], v[k + 1], v[k + 2], v[k + 3]};
      if (i < count) store_some(memory, D, from + i, w);
    }
  } else {
#pragma unroll
    for (int k = 0; k < PER; k++) {
      int i = slot_element(k, false);
      if (i < count) store_float(memory, D, from + i, v[k]);
    }
  }
}

/* load_slots loads the first `count` elements of a window that begins at element `from` of memory;
 * slots past them get `nothing`. store_slots stores them. With `vector`, `from` and `count` are
 * multiples of 4 and memory is aligned to 16 bytes. */
template <int PER>
LT_DEVICE_INLINE void load_slots(float (&v)[PER], const void *memory, int dtype, int64_t from,
                                 int count, bool vector, float nothing) {
  if (dtype == LT_float32)
    load_slots_of<LT_float32>(v, memory, from, count, vector, nothing);
  else if (dtype == LT_float16)
    load_slots_of<LT_float16>(v, memory, from, count, vector, nothing);
  else
    load_slots_of<LT_bfloat16>(v, memory, from, count, vector, nothing);
}
template <int PER>
LT_DEVICE_INLINE void load_slots(double (&v)[PER], const void *memory, int, int64_t from, int count,
                                 bool vector, double nothing) {
  load_slots_of<LT_float64>(v, memory, from, count, vector, nothing);
}
template <int PER>
LT_DEVICE_INLINE void store_slots(void *memory, int dtype, int64_t from, int count, bool vector,
                                  const float (&v)[PER]) {
  if (dtype == LT_float32)
    store_slots_of<LT_float32>(memory, from, count, vector, v);
  else if (dtype == LT_float16)
    store_slots_of<LT_float16>(memory, from, count, vector, v);
  else
    store_slots_of<LT_bfloat16>(memory, from, count, vector, v);
}
template <int PER>
LT_DEVICE_INLINE void store_slots(void *memory, int, int64_t from, int count, bool vector,
                                  const double (&v)[PER]) {
  store_slots_of<LT_float64>(memory, from, count, vector, v);
}

/* Returns the number of elements of a row of n in the window that begins at `from`. */
template <int PER> LT_DEVICE_INLINE int window_count(int64_t n, int64_t from) {
  int64_t left = n - from, span = (int64_t)PER * blockDim.x;
  return (int)(left < 0 ? 0 : left < span ? left : span);
}

/* Reduces over the threads of a group; each of them gets the result. `scratch` is shared memory
 * for 32 T. */
template <class T, class Join> LT_DEVICE_INLINE T group_all(T v, T nothing, Join join, T *scratch) {
  if (blockDim.x > LT_WARP) return block_all(v, nothing, join, scratch);
  for (int step = (int)blockDim.x / 2; step > 0; step /= 2)
    v = join(v, __shfl_xor_sync(LT_FULL, v, step));
  return v;
}

/* ---- on the host ----------------------------------------------------------------------------- */

/* The launch for `rows` rows of n elements with `per` slots for each thread and at most `most`
 * threads in a group. */
typedef struct Groups {
  dim3 grid, block;
} Groups;
static inline Groups groups_for(int64_t rows, int64_t n, int per, int most) {
  int lanes = 1, together = 1;
  while (lanes < most && (int64_t)lanes * per < n) lanes *= 2;
  if (lanes <= LT_WARP)
    while (lanes * together < LT_WARP || (lanes * together < 128 && together < rows)) together *= 2;
  Groups g = {grid_for(blocks_for(rows, together)), dim3((unsigned)lanes, (unsigned)together)};
  return g;
}

/* Returns true when rows of n elements at these addresses can be loaded four elements at a time.
 * NULL stands for no operand. */
static inline bool rows_align(int64_t n, const void *a, const void *b, const void *c,
                              const void *d) {
  uintptr_t bits = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d;
  return n % 4 == 0 && bits % 16 == 0;
}

#endif
