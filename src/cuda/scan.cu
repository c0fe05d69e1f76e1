/* scan.cu: running sums and products.
 *
 * A block goes through a row tile by tile and carries the total along. Long rows are cut in pieces
 * for several blocks: the totals of the pieces first, then their running totals, then the pieces,
 * each of which starts from the total before it. So the order of additions depends on sizes alone.
 * Columns take a thread each.
 */
#include "device.cuh"
#include "launch.cuh"
#include "scan.h"

#define THREADS 256
#define EACH    (LT_CUDA_SCAN_TILE / THREADS) /* neighbouring elements of a thread */
#define ENOUGH  1024                          /* pieces that keep the largest devices busy */
#define BATCH   8                             /* rows that a column's thread reads together */

struct Scan {
  const void *x;
  int dtype;
  void *out;
  int out_dtype;
  int64_t outer, n, inner, pieces, tiles;
  void *room; /* totals of pieces: T */
  int room_dtype;
  bool product;
  bool exclusive; /* out[i] is of what is before i */
  bool total;     /* exclusive, and out has one more: the whole */
};

template <class T> LT_DEVICE_INLINE T read(const Scan &s, int64_t i);
template <> __device__ __forceinline__ double read<double>(const Scan &s, int64_t i) {
  return load_float<double>(s.x, s.dtype, i);
}
template <> __device__ __forceinline__ int64_t read<int64_t>(const Scan &s, int64_t i) {
  switch (s.dtype) {
  case LT_bool:
    return ((const uint8_t *)s.x)[i] != 0;
  case LT_uint8:
    return ((const uint8_t *)s.x)[i];
  case LT_int8:
    return ((const int8_t *)s.x)[i];
  case LT_int16:
    return ((const int16_t *)s.x)[i];
  case LT_int32:
    return ((const int32_t *)s.x)[i];
  default:
    return ((const int64_t *)s.x)[i];
  }
}

LT_DEVICE_INLINE double join(double a, double b, bool product) { return product ? a * b : a + b; }
LT_DEVICE_INLINE int64_t join(int64_t a, int64_t b, bool product) { /* wraps */
  return (int64_t)(product ? (uint64_t)a * (uint64_t)b : (uint64_t)a + (uint64_t)b);
}

/* The total of what the threads before this one have; `all`: of the whole block. `room`: shared
 * memory for THREADS T. The first warp does it, a few neighbours in each lane. */
template <class T> LT_DEVICE_INLINE T before(T mine, T nothing, bool product, T *room, T *all) {
  int tid = (int)threadIdx.x, threads = (int)blockDim.x, each = threads / LT_WARP;
  room[tid] = mine;
  __syncthreads();
  if (tid < LT_WARP) {
    T sum = nothing;
    for (int k = 0; k < each; k++) sum = join(sum, room[tid * each + k], product);
    T upto = sum;
    for (int step = 1; step < LT_WARP; step *= 2) {
      T other = __shfl_up_sync(LT_FULL, upto, step);
      if (tid >= step) upto = join(other, upto, product);
    }
    T start = __shfl_up_sync(LT_FULL, upto, 1);
    if (tid == 0) start = nothing;
    for (int k = 0; k < each; k++) {
      T v = room[tid * each + k];
      room[tid * each + k] = start;
      start = join(start, v, product);
    }
    if (tid == LT_WARP - 1) *all = start;
  }
  __syncthreads();
  return room[tid];
}

/* The elements of this thread, `nothing` past the row's end. */
template <class T>
LT_DEVICE_INLINE void read_share(T (&v)[EACH], const Scan &s, int64_t row, int64_t first,
                                 T nothing) {
  for (int k = 0; k < EACH; k++)
    v[k] = first + k < s.n ? read<T>(s, row * s.n + first + k) : nothing;
}

/* The total of each piece. */
template <class T> static __global__ void __launch_bounds__(THREADS) scan_totals(const Scan s) {
  __shared__ T room[THREADS];
  __shared__ T all;
  T nothing = s.product ? 1 : 0, v[EACH];
  for (int64_t b = blockIdx.x; b < s.outer * s.pieces; b += gridDim.x) {
    int64_t row = b / s.pieces, tile = b % s.pieces * s.tiles;
    T sum = nothing;
    for (int64_t t = tile; t < tile + s.tiles && t * LT_CUDA_SCAN_TILE < s.n; t++) {
      read_share(v, s, row, t * LT_CUDA_SCAN_TILE + threadIdx.x * EACH, nothing);
      T mine = nothing;
      for (int k = 0; k < EACH; k++) mine = join(mine, v[k], s.product);
      before(mine, nothing, s.product, room, &all);
      sum = join(sum, all, s.product);
      __syncthreads();
    }
    if (threadIdx.x == 0) ((T *)s.room)[b] = sum;
  }
}

template <class T> static __global__ void __launch_bounds__(THREADS) scan_rows(const Scan s) {
  __shared__ T room[THREADS];
  __shared__ T all;
  T nothing = s.product ? 1 : 0, v[EACH];
  int64_t tile_size = (int64_t)blockDim.x * EACH;
  for (int64_t b = blockIdx.x; b < s.outer * s.pieces; b += gridDim.x) {
    int64_t row = b / s.pieces, from = b % s.pieces * s.tiles * LT_CUDA_SCAN_TILE;
    int64_t to = s.pieces == 1 ? s.n : from + s.tiles * LT_CUDA_SCAN_TILE;
    if (to > s.n) to = s.n;
    T carry = s.pieces > 1 ? ((const T *)s.room)[b] : nothing;
    for (int64_t t = from; t < to; t += tile_size) {
      int64_t first = t + (int64_t)threadIdx.x * EACH;
      read_share(v, s, row, first, nothing);
      T mine = nothing;
      for (int k = 0; k < EACH; k++) mine = join(mine, v[k], s.product);
      T sum = join(carry, before(mine, nothing, s.product, room, &all), s.product);
      carry = join(carry, all, s.product);
      for (int k = 0; k < EACH && first + k < s.n; k++) {
        T next = join(sum, v[k], s.product);
        store(s.out, s.out_dtype, row * s.n + first + k, s.exclusive ? sum : next);
        sum = next;
        if (s.total && first + k == s.n - 1) store(s.out, s.out_dtype, s.n, sum);
      }
      __syncthreads();
    }
  }
}

template <class T> static __global__ void __launch_bounds__(THREADS) scan_columns(const Scan s) {
  int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, columns = s.outer * s.inner;
  for (; column < columns; column += (int64_t)gridDim.x * blockDim.x) {
    int64_t at = column / s.inner * s.n * s.inner + column % s.inner, i = 0;
    T sum = s.product ? 1 : 0;
    for (; i + BATCH <= s.n; i += BATCH) {
      T v[BATCH];
      for (int k = 0; k < BATCH; k++) v[k] = read<T>(s, at + (i + k) * s.inner);
      for (int k = 0; k < BATCH; k++) {
        sum = join(sum, v[k], s.product);
        store(s.out, s.out_dtype, at + (i + k) * s.inner, sum);
      }
    }
    for (; i < s.n; i++) {
      sum = join(sum, read<T>(s, at + i * s.inner), s.product);
      store(s.out, s.out_dtype, at + i * s.inner, sum);
    }
  }
}

template <class T> static cudaError_t run_rows(const Scan &s, cudaStream_t stream) {
  /* few elements: few threads */
  int threads = s.pieces == 1 && s.n <= LT_WARP * EACH ? LT_WARP : THREADS;
  dim3 grid = grid_for(s.outer * s.pieces);
  if (s.pieces > 1) {
    Scan totals = s;
    totals.x = totals.out = s.room;
    totals.dtype = totals.out_dtype = s.room_dtype;
    totals.n = s.pieces, totals.pieces = 1;
    totals.exclusive = true, totals.total = false;
    cudaError_t status = launch("scan_totals", scan_totals<T>, grid, dim3(THREADS), 0, stream, s);
    if (status == cudaSuccess) status = run_rows<T>(totals, stream);
    if (status != cudaSuccess) return status;
  }
  return launch("scan_rows", scan_rows<T>, grid, dim3(threads), 0, stream, s);
}

template <class T> static cudaError_t run(const Scan &s, cudaStream_t stream) {
  if (s.inner == 1 && s.n > BATCH) return run_rows<T>(s, stream);
  int64_t columns = s.outer * s.inner;
  int threads = columns < THREADS ? LT_WARP : THREADS;
  return launch("scan_columns", scan_columns<T>, grid_for(blocks_for(columns, threads)),
                dim3(threads), 0, stream, s);
}

void lt_cuda_scan_plan(lt_CudaScan *s) {
  int64_t tiles = blocks_for(s->n, LT_CUDA_SCAN_TILE);
  int64_t pieces = s->outer < ENOUGH ? ENOUGH / s->outer : 1;
  if (s->inner > 1 || tiles < 8) pieces = 1; /* three launches must be worth it */
  if (pieces > tiles) pieces = tiles;
  s->tiles = blocks_for(tiles, pieces);
  s->pieces = blocks_for(tiles, s->tiles);
}

cudaError_t lt_cuda_launch_scan(const lt_CudaScan *c, cudaStream_t stream) {
  Scan s = {};
  s.x = c->x, s.dtype = c->dtype, s.out = c->out, s.out_dtype = c->out_dtype;
  s.outer = c->outer, s.n = c->n, s.inner = c->inner;
  s.pieces = c->pieces, s.tiles = c->tiles, s.room = c->room;
  s.product = c->product;
  s.room_dtype = c->in_double ? LT_float64 : LT_int64;
  return c->in_double ? run<double>(s, stream) : run<int64_t>(s, stream);
}

cudaError_t lt_cuda_scan_exclusive_i64(void *room, size_t *room_size, const void *flags, int dtype,
                                       int64_t n, int64_t *out, cudaStream_t stream) {
  lt_CudaScan plan = {};
  plan.outer = plan.inner = 1;
  plan.n = n;
  lt_cuda_scan_plan(&plan);
  if (!room) {
    *room_size = (size_t)plan.pieces * sizeof(int64_t);
    return cudaSuccess;
  }
  if (n == 0) return cudaMemsetAsync(out, 0, sizeof *out, stream);
  Scan s = {};
  s.x = flags, s.dtype = dtype, s.out = out, s.out_dtype = s.room_dtype = LT_int64;
  s.outer = s.inner = 1, s.n = n;
  s.pieces = plan.pieces, s.tiles = plan.tiles, s.room = room;
  s.exclusive = s.total = true;
  return run_rows<int64_t>(s, stream);
}
