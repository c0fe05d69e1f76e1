/* cummax.cu: running maxima and minima, with the index of each.
 *
 * A block processes a line tile by tile and carries the extreme along. Long lines are divided into
 * pieces for several blocks: first the extreme of each piece is computed, then the pieces, each of
 * which starts from the extreme of those before it. Where there are many lines, or they are short,
 * each is processed by one thread.
 */
#include "launch.cuh"
#include "packs.cuh"
#include "scan.h"

#define THREADS 256
#define EACH    4     /* consecutive elements for each thread of a tile */
#define MANY    16384 /* the number of lines that keeps a device busy with a thread for each */
#define SHORT   64
#define ENOUGH  1024 /* pieces that keep the largest devices busy */

/* An element and its index in the line, from 0; -1: none. */
template <class T> struct ValueIndex {
  T value;
  int64_t at;
};

/* Returns true when v replaces `best`, which is before it: NaN does, and an equal element. */
template <class T> LT_DEVICE_INLINE bool replaces(T v, T best, bool largest) {
  return (largest ? v >= best : v <= best) || v != v;
}

/* Returns the extreme of two; `b` is after `a` in the line. */
template <class T>
LT_DEVICE_INLINE ValueIndex<T> join(ValueIndex<T> a, ValueIndex<T> b, bool largest) {
  return b.at >= 0 && (a.at < 0 || replaces(b.value, a.value, largest)) ? b : a;
}

/* Returns the value that the lane `step` before this one holds. */
template <class T> LT_DEVICE_INLINE ValueIndex<T> from_lane_before(ValueIndex<T> p, int step) {
  p.value = __shfl_up_sync(LT_FULL, p.value, step);
  p.at = __shfl_up_sync(LT_FULL, p.at, step);
  return p;
}

/* Combines the values of the threads in their order. Returns the extreme of the threads before this
 * one, and writes that of all to *all. */
template <class T>
LT_DEVICE_INLINE ValueIndex<T> exclusive_scan(ValueIndex<T> mine, ValueIndex<T> *all, bool largest,
                                              ValueIndex<T> (&scratch)[THREADS / LT_WARP]) {
  int lane = (int)threadIdx.x % LT_WARP, warp = (int)threadIdx.x / LT_WARP;
  ValueIndex<T> upto = mine, nothing = {T(), -1};
  for (int step = 1; step < LT_WARP; step *= 2) {
    ValueIndex<T> other = from_lane_before(upto, step);
    if (lane >= step) upto = join(other, upto, largest);
  }
  ValueIndex<T> before = from_lane_before(upto, 1);
  if (lane == 0) before = nothing;
  if (lane == LT_WARP - 1) scratch[warp] = upto;
  __syncthreads();
  *all = nothing;
  for (int w = 0; w < THREADS / LT_WARP; w++) {
    if (w == warp) before = join(*all, before, largest);
    *all = join(*all, scratch[w], largest);
  }
  __syncthreads();
  return before;
}

/* Returns the offset of a line's first element. */
LT_DEVICE_INLINE int64_t line_start(const lt_CudaExtremes &s, int64_t line) {
  return line / s.inner * s.n * s.inner + line % s.inner;
}

/* Computes the extremes of lines. With `totals`, only writes the index of each piece's extreme to
 * s.scratch. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    extremes_of_lines(const lt_CudaExtremes s, bool totals) {
  __shared__ ValueIndex<T> scratch[THREADS / LT_WARP];
  int tid = (int)threadIdx.x;
  for (int64_t b = blockIdx.x; b < s.outer * s.inner * s.pieces; b += gridDim.x) {
    int64_t piece = b % s.pieces, start = line_start(s, b / s.pieces), from = piece * s.size,
            to = from + s.size < s.n ? from + s.size : s.n;
    ValueIndex<T> carry = {T(), -1}, v[EACH];
    if (!totals && tid < piece) { /* there are no more pieces than threads */
      carry.at = s.scratch[b - piece + tid];
      carry.value = read_one<T>(s.x, s.dtype, start + carry.at * s.inner);
    }
    exclusive_scan(carry, &carry, s.largest, scratch);
    for (int64_t tile = from; tile < to; tile += THREADS * EACH) {
      int64_t first = tile + tid * EACH;
      ValueIndex<T> mine = {T(), -1}, all;
      for (int k = 0; k < EACH; k++) {
        v[k].at = -1;
        if (first + k >= to) continue;
        v[k].value = read_one<T>(s.x, s.dtype, start + (first + k) * s.inner);
        v[k].at = first + k;
        mine = join(mine, v[k], s.largest);
      }
      ValueIndex<T> best = join(carry, exclusive_scan(mine, &all, s.largest, scratch), s.largest);
      for (int k = 0; k < EACH && first + k < to && !totals; k++) {
        int64_t i = start + (first + k) * s.inner;
        best = join(best, v[k], s.largest);
        write_one(s.values, s.dtype, i, best.value);
        s.indices[i] = best.at + LT_INDEX_BASE;
      }
      carry = join(carry, all, s.largest);
    }
    if (totals && tid == 0) s.scratch[b] = carry.at;
  }
}

/* Computes the extremes of lines, one line to a thread. */
template <class T>
static __global__ void __launch_bounds__(THREADS) extremes_of_columns(const lt_CudaExtremes s) {
  int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  for (; line < s.outer * s.inner; line += (int64_t)gridDim.x * blockDim.x) {
    int64_t at = line_start(s, line);
    ValueIndex<T> best = {T(), -1};
    for (int64_t i = 0; i < s.n; i++, at += s.inner) {
      ValueIndex<T> v = {read_one<T>(s.x, s.dtype, at), i};
      best = join(best, v, s.largest);
      write_one(s.values, s.dtype, at, best.value);
      s.indices[at] = best.at + LT_INDEX_BASE;
    }
  }
}

/* Chooses between a thread and a block for each line. */
template <class T> static cudaError_t run(const lt_CudaExtremes &s, cudaStream_t stream) {
  int64_t lines = s.outer * s.inner;
  if (s.n <= SHORT || (lines >= MANY && s.inner > 1))
    return launch("extremes_of_columns", extremes_of_columns<T>,
                  grid_for(blocks_for(lines, THREADS)), dim3(THREADS), 0, stream, s);
  cudaError_t status = cudaSuccess;
  dim3 grid = grid_for(lines * s.pieces);
  if (s.pieces > 1)
    status =
        launch("extremes_of_pieces", extremes_of_lines<T>, grid, dim3(THREADS), 0, stream, s, true);
  if (status != cudaSuccess) return status;
  return launch("extremes_of_lines", extremes_of_lines<T>, grid, dim3(THREADS), 0, stream, s,
                false);
}

void lt_cuda_extremes_plan(lt_CudaExtremes *s) {
  int64_t tiles = blocks_for(s->n, THREADS * EACH), lines = s->outer * s->inner;
  int64_t pieces = lines < ENOUGH ? ENOUGH / lines : 1;
  if (tiles < 8) pieces = 1; /* otherwise two launches do not pay */
  if (pieces > THREADS) pieces = THREADS;
  if (pieces > tiles) pieces = tiles;
  s->size = blocks_for(tiles, pieces) * THREADS * EACH;
  s->pieces = blocks_for(s->n, s->size);
}

cudaError_t lt_cuda_launch_extremes(const lt_CudaExtremes *s, cudaStream_t stream) {
  if (s->dtype == LT_float64) return run<double>(*s, stream);
  return s->is_float ? run<float>(*s, stream) : run<int64_t>(*s, stream);
}
