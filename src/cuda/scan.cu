/* scan.cu: running sums and products.
 *
 * A block processes a row tile by tile and carries the total along. Long rows are divided into
 * pieces for several blocks: first the totals of the pieces are computed, then their running
 * totals, then the pieces, each of which starts from the total before it. So the order of additions
 * depends on sizes alone. A column is processed by one thread.
 */
#include "device.cuh"
#include "launch.cuh"
#include "packs.cuh"
#include "scan.h"

#define THREADS 256
#define PACKS                                                                                      \
  (LT_CUDA_SCAN_TILE / THREADS / 4) /* packs of 4 elements for each thread of a
                                                         * tile */
#define PACKS_OF_LANE (PACKS * THREADS / LT_WARP)
#define ENOUGH        1024 /* pieces that keep the largest devices busy */
#define BATCH         8    /* rows that a column's thread loads and stores together: read_eight */

/* The arguments of the kernels; see lt_CudaScan. */
struct Scan {
  const void *x;
  int dtype;
  void *out;
  int out_dtype;
  int64_t outer, n, inner, pieces, tiles;
  void *scratch; /* the totals of the pieces, of the type T */
  int room_dtype;
  bool product;
  bool exclusive; /* out[i] is the total of the elements before i */
  bool packs;     /* multiples of four elements are aligned */
  bool total;     /* exclusive only: out has one more element, the total of all */
};

LT_DEVICE_INLINE double join(double a, double b, bool product) { return product ? a * b : a + b; }
LT_DEVICE_INLINE int64_t join(int64_t a, int64_t b, bool product) { /* wraps */
  return (int64_t)(product ? (uint64_t)a * (uint64_t)b : (uint64_t)a + (uint64_t)b);
}

struct Join {
  bool product;
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const {
    return join(a, b, product);
  }
};

/* Returns where entry i of a block's list is stored. The padding avoids bank conflicts between
 * lanes that process consecutive ranges. */
LT_DEVICE_INLINE int padded(int i) { return i + i / PACKS_OF_LANE; }

/* Replaces each entry by the total of the entries before it, and writes the total of all to *all.
 * There are PACKS entries for each thread. The first warp does the work, one range to each lane. */
template <class T>
LT_DEVICE_INLINE void exclusive_totals(T nothing, bool product, T *entries, T *all) {
  int lane = (int)threadIdx.x, each = PACKS * (int)blockDim.x / LT_WARP;
  __syncthreads();
  if (lane < LT_WARP) {
    T sum = nothing;
    for (int k = 0; k < each; k++) sum = join(sum, entries[padded(lane * each + k)], product);
    T upto = sum;
    for (int step = 1; step < LT_WARP; step *= 2) {
      T other = __shfl_up_sync(LT_FULL, upto, step);
      if (lane >= step) upto = join(other, upto, product);
    }
    T start = __shfl_up_sync(LT_FULL, upto, 1);
    if (lane == 0) start = nothing;
    for (int k = 0; k < each; k++) {
      T v = entries[padded(lane * each + k)];
      entries[padded(lane * each + k)] = start;
      start = join(start, v, product);
    }
    if (lane == LT_WARP - 1) *all = start;
  }
  __syncthreads();
}

/* Loads four elements of a row, from `first` on; `nothing` past its end. */
template <class T>
LT_DEVICE_INLINE void read_four(T (&v)[4], const Scan &s, int64_t row, int64_t first, T nothing) {
  if (s.packs && first + 4 <= s.n) {
    read_pack(v, s.x, s.dtype, row * s.n + first);
    return;
  }
  for (int k = 0; k < 4; k++)
    v[k] = first + k < s.n ? read_one<T>(s.x, s.dtype, row * s.n + first + k) : nothing;
}
template <class T>
LT_DEVICE_INLINE void write_four(const Scan &s, int64_t row, int64_t first, const T (&v)[4]) {
  if (s.packs && first + 4 <= s.n) {
    write_pack(s.out, s.out_dtype, row * s.n + first, v);
    return;
  }
  for (int k = 0; k < 4 && first + k < s.n; k++)
    write_one(s.out, s.out_dtype, row * s.n + first + k, v[k]);
}

/* Computes the total of each piece. */
template <class T> static __global__ void __launch_bounds__(THREADS) scan_totals(const Scan s) {
  __shared__ T entries[LT_WARP];
  T nothing = s.product ? 1 : 0, v[PACKS][4];
  int tid = (int)threadIdx.x;
  for (int64_t b = blockIdx.x; b < s.outer * s.pieces; b += gridDim.x) {
    int64_t row = b / s.pieces, from = b % s.pieces * s.tiles * LT_CUDA_SCAN_TILE;
    int64_t to = from + s.tiles * LT_CUDA_SCAN_TILE;
    T sum = nothing;
    for (int64_t t = from; t < to && t < s.n; t += LT_CUDA_SCAN_TILE) {
      for (int p = 0; p < PACKS; p++) read_four(v[p], s, row, t + (p * THREADS + tid) * 4, nothing);
      for (int p = 0; p < PACKS; p++)
        for (int k = 0; k < 4; k++) sum = join(sum, v[p][k], s.product);
    }
    sum = block_all(sum, nothing, Join{s.product}, entries);
    if (tid == 0) ((T *)s.scratch)[b] = sum;
  }
}

/* Scans the pieces of rows, one piece to a block, from the total before each. */
template <class T> static __global__ void __launch_bounds__(THREADS) scan_rows(const Scan s) {
  __shared__ T entries[PACKS * THREADS + LT_WARP];
  __shared__ T all;
  T nothing = s.product ? 1 : 0, v[PACKS][4];
  int tid = (int)threadIdx.x, threads = (int)blockDim.x;
  for (int64_t b = blockIdx.x; b < s.outer * s.pieces; b += gridDim.x) {
    int64_t row = b / s.pieces, from = b % s.pieces * s.tiles * LT_CUDA_SCAN_TILE;
    int64_t to = s.pieces == 1 ? s.n : from + s.tiles * LT_CUDA_SCAN_TILE;
    if (to > s.n) to = s.n;
    T carry = s.pieces > 1 ? ((const T *)s.scratch)[b] : nothing;
    for (int64_t t = from; t < to; t += threads * PACKS * 4) {
#pragma unroll
      for (int p = 0; p < PACKS; p++) read_four(v[p], s, row, t + (p * threads + tid) * 4, nothing);
#pragma unroll
      for (int p = 0; p < PACKS; p++)
        entries[padded(p * threads + tid)] =
            join(join(v[p][0], v[p][1], s.product), join(v[p][2], v[p][3], s.product), s.product);
      exclusive_totals(nothing, s.product, entries, &all);
#pragma unroll
      for (int p = 0; p < PACKS; p++) {
        int64_t first = t + (p * threads + tid) * 4;
        T sum = join(carry, entries[padded(p * threads + tid)], s.product);
#pragma unroll
        for (int k = 0; k < 4; k++) {
          T next = join(sum, v[p][k], s.product);
          v[p][k] = s.exclusive ? sum : next;
          sum = next;
          if (s.total && first + k == s.n - 1) write_one(s.out, s.out_dtype, s.n, sum);
        }
        write_four(s, row, first, v[p]);
      }
      carry = join(carry, all, s.product);
      __syncthreads();
    }
  }
}

/* Scans columns, one to a thread. */
template <class T> static __global__ void __launch_bounds__(THREADS) scan_columns(const Scan s) {
  int64_t column = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, columns = s.outer * s.inner;
  for (; column < columns; column += (int64_t)gridDim.x * blockDim.x) {
    int64_t at = column / s.inner * s.n * s.inner + column % s.inner, i = 0;
    T sum = s.product ? 1 : 0;
    for (; i + BATCH <= s.n; i += BATCH) {
      T v[BATCH];
      read_eight(v, s.x, s.dtype, at + i * s.inner, s.inner);
      for (int k = 0; k < BATCH; k++) v[k] = sum = join(sum, v[k], s.product);
      write_eight(s.out, s.out_dtype, at + i * s.inner, s.inner, v);
    }
    for (; i < s.n; i++) {
      sum = join(sum, read_one<T>(s.x, s.dtype, at + i * s.inner), s.product);
      write_one(s.out, s.out_dtype, at + i * s.inner, sum);
    }
  }
}

static bool aligned(const void *memory) { return (uintptr_t)memory % 16 == 0; }

/* Scans rows; the totals of pieces are scanned first, by a recursive call. */
template <class T> static cudaError_t run_rows(const Scan &rows, cudaStream_t stream) {
  Scan s = rows;
  s.packs = (s.outer == 1 || s.n % 4 == 0) && aligned(s.x) && aligned(s.out);
  /* few elements: few threads */
  int threads = s.pieces == 1 && s.n <= LT_WARP * PACKS * 4 ? LT_WARP : THREADS;
  dim3 grid = grid_for(s.outer * s.pieces);
  if (s.pieces > 1) {
    Scan totals = s;
    totals.x = totals.out = s.scratch;
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
  if (s->inner > 1 || tiles < 8) pieces = 1; /* otherwise three launches do not pay */
  if (pieces > tiles) pieces = tiles;
  s->tiles = blocks_for(tiles, pieces);
  s->pieces = blocks_for(tiles, s->tiles);
}

cudaError_t lt_cuda_launch_scan(const lt_CudaScan *c, cudaStream_t stream) {
  Scan s = {};
  s.x = c->x, s.dtype = c->dtype, s.out = c->out, s.out_dtype = c->out_dtype;
  s.outer = c->outer, s.n = c->n, s.inner = c->inner;
  s.pieces = c->pieces, s.tiles = c->tiles, s.scratch = c->scratch;
  s.product = c->product;
  s.room_dtype = c->in_double ? LT_float64 : LT_int64;
  return c->in_double ? run<double>(s, stream) : run<int64_t>(s, stream);
}

cudaError_t lt_cuda_scan_exclusive_i64(void *scratch, size_t *scratch_size, const void *flags,
                                       int dtype, int64_t n, int64_t *out, cudaStream_t stream) {
  lt_CudaScan plan = {};
  plan.outer = plan.inner = 1;
  plan.n = n;
  lt_cuda_scan_plan(&plan);
  if (!scratch) {
    *scratch_size = (size_t)plan.pieces * sizeof(int64_t);
    return cudaSuccess;
  }
  if (n == 0) return cudaMemsetAsync(out, 0, sizeof *out, stream);
  Scan s = {};
  s.x = flags, s.dtype = dtype, s.out = out, s.out_dtype = s.room_dtype = LT_int64;
  s.outer = s.inner = 1, s.n = n;
  s.pieces = plan.pieces, s.tiles = plan.tiles, s.scratch = scratch;
  s.exclusive = s.total = true;
  return run_rows<int64_t>(s, stream);
}
