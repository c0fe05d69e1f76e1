/* reduce.cuh: the kernels of all reductions. They differ in a function object, the reducer:
 *
 *   In        the type as which elements are loaded: float, double, int64_t or Nonzero
 *   Acc       the state of a thread
 *   nothing() the initial state
 *   take      adds eight elements to a state, one() adds one
 *   join      combines two states
 *   finish    stores the result
 *
 * A thread loads eight elements at a time, so that enough loads are in flight, and work that a
 * reducer does once for eight of them costs little. Which thread gets which elements depends on
 * sizes alone, and states are combined in a fixed tree: results are the same on every run and every
 * device.
 */
#ifndef LT_CUDA_REDUCE_CUH
#define LT_CUDA_REDUCE_CUH

#include "device.cuh"
#include "launch.cuh"
#include "packs.cuh"
#include "reduce.h"
#include "mathx.h"

/* ---- one result, by the threads of a block --------------------------------------------------- */

/* The indices, among the result's elements, of eight elements that were loaded together. */
struct PackIndices {
  int64_t first, far, near;
  __device__ __forceinline__ int64_t at(int k) const {
    return first + (k >> 2) * far + (k & 3) * near;
  }
};

/* The arguments of the kernels; see lt_AccelReduce. */
struct Reduction {
  const void *x;
  int dtype;
  void *out;
  int out_dtype;
  int64_t *at;
  Geometry<2> kept; /* of x and out */
  Geometry<1> reduced;
  int64_t results, n, splits, piece, blocks;
  int width;
  bool rows, packs;
  void *scratch;
};

/* Returns the offset of the result's element i. */
LT_DEVICE_INLINE int64_t element(const Reduction &p, int64_t i) {
  if (p.reduced.ndim == 1) return i * p.reduced.strides[0][0];
  int64_t offset[1];
  offsets_at(p.reduced, i, offset);
  return offset[0];
}

/* Reduces this thread's elements of from..to to a state. `lane` is the thread's number among the
 * `width` threads of the result, whose first element is x[base]. */
template <class R>
LT_DEVICE_INLINE typename R::Acc fold_share(const R &reducer, const Reduction &p, int64_t base,
                                            int lane, int64_t from, int64_t to) {
  typedef typename R::In In;
  typename R::Acc state = reducer.nothing();
  In v[8];
  int64_t i = from + lane, width = p.width;
  if (p.packs) {
    int64_t end = to - (to - from) % 4;
    for (i = from + 4 * lane; i + 4 * width < end; i += 8 * width) {
      read_packs(v, p.x, p.dtype, base + element(p, i), base + element(p, i + 4 * width));
      reducer.take(state, v, PackIndices{i, 4 * width, 1});
    }
    if (i < end) {
      int64_t at = base + element(p, i);
      for (int k = 0; k < 4; k++) reducer.one(state, read_one<In>(p.x, p.dtype, at + k), i + k);
    }
    i = end + lane;
  } else if (p.reduced.ndim == 1) {
    int64_t stride = p.reduced.strides[0][0];
    for (; i + 7 * width < to; i += 8 * width) {
      read_eight(v, p.x, p.dtype, base + i * stride, width * stride);
      reducer.take(state, v, PackIndices{i, 4 * width, width});
    }
  }
  for (; i < to; i += width)
    reducer.one(state, read_one<In>(p.x, p.dtype, base + element(p, i)), i);
  return state;
}

/* Returns the value of the lane whose number differs by `step`. Reducers overload it for their
 * states. */
LT_DEVICE_INLINE float shuffled(float v, int step) { return __shfl_xor_sync(LT_FULL, v, step); }
LT_DEVICE_INLINE double shuffled(double v, int step) { return __shfl_xor_sync(LT_FULL, v, step); }
LT_DEVICE_INLINE int64_t shuffled(int64_t v, int step) { return __shfl_xor_sync(LT_FULL, v, step); }

/* Combines the states of `width` neighbouring lanes; each of them gets the result. */
template <class R, class Acc> LT_DEVICE_INLINE Acc join_warp(const R &reducer, Acc acc, int width) {
  for (int step = width / 2; step > 0; step /= 2) acc = reducer.join(acc, shuffled(acc, step));
  return acc;
}

/* Combines the states of the threads of each result; lane 0 gets the result's. */
template <class R, class Acc>
LT_DEVICE_INLINE Acc join_block(const R &reducer, const Reduction &p, Acc acc, int lane, int mine,
                                Acc *scratch) {
  int tid = (int)threadIdx.x, threads = (int)blockDim.x;
  if (p.rows && p.width <= LT_WARP) return join_warp(reducer, acc, p.width);
  if (p.width == 1) return acc;
  scratch[tid] = acc;
  __syncthreads();
  if (!p.rows) {
    int results = threads / p.width;
    if (lane == 0)
      for (int k = 1; k < p.width; k++) acc = reducer.join(acc, scratch[k * results + mine]);
  } else if (tid < LT_WARP) {
    for (int k = tid + LT_WARP; k < threads; k += LT_WARP) acc = reducer.join(acc, scratch[k]);
    acc = join_warp(reducer, acc, LT_WARP);
  }
  __syncthreads();
  return acc;
}

/* The kernel of all reductions: one block computes the results, or the pieces of results, that
 * `threads / width` groups of threads have. */
template <class R>
static __global__ void __launch_bounds__(LT_REDUCE_THREADS)
    reduce_kernel(const R reducer, const Reduction p) {
  typedef typename R::Acc Acc;
  __shared__ Acc scratch[LT_REDUCE_THREADS];
  int results = (int)blockDim.x / p.width, tid = (int)threadIdx.x;
  int lane = p.rows ? tid % p.width : tid / results, mine = p.rows ? tid / p.width : tid % results;
  for (int64_t b = blockIdx.x; b < p.blocks; b += gridDim.x) {
    int64_t split = b % p.splits, result = b / p.splits * results + mine;
    int64_t from = split * p.piece, to = from + p.piece < p.n ? from + p.piece : p.n;
    int64_t offset[2] = {0, 0};
    if (result < p.results)
      offsets_at(p.kept, result, offset);
    else
      to = from;
    Acc acc = fold_share(reducer, p, offset[0], lane, from, to);
    acc = join_block(reducer, p, acc, lane, mine, scratch);
    if (lane != 0 || result >= p.results) continue;
    if (p.splits > 1)
      ((Acc *)p.scratch)[result * p.splits + split] = acc;
    else
      reducer.finish(p, offset[1], acc);
  }
}

/* The second stage: a warp combines the pieces of a result. */
template <class R>
static __global__ void __launch_bounds__(LT_WARP)
    reduce_pieces_kernel(const R reducer, const Reduction p) {
  typedef typename R::Acc Acc;
  for (int64_t result = blockIdx.x; result < p.results; result += gridDim.x) {
    const Acc *pieces = (const Acc *)p.scratch + result * p.splits;
    Acc acc = reducer.nothing();
    for (int64_t k = threadIdx.x; k < p.splits; k += LT_WARP) acc = reducer.join(acc, pieces[k]);
    acc = join_warp(reducer, acc, LT_WARP);
    if (threadIdx.x != 0) continue;
    int64_t offset[2];
    offsets_at(p.kept, result, offset);
    reducer.finish(p, offset[1], acc);
  }
}

/* ---- the forms of ops.def -------------------------------------------------------------------- */

/* A form is a struct of a reduction's expressions, as functions of the type T that is computed in.
 * FORM(name, rule, form) expands to FORM_<kind>(name, rule, expressions). */
#define FORM(name, rule, ...)        FORM_(name, rule, __VA_ARGS__)
#define FORM_(name, rule, kind, ...) kind(name, rule, __VA_ARGS__)
#define FOLD(...)                    FORM_FOLD, __VA_ARGS__
#define FOLD_WIDE(...)               FORM_FOLD_WIDE, __VA_ARGS__
#define CENTERED(...)                FORM_CENTERED, __VA_ARGS__
#define CENTERED_WIDE(...)           FORM_CENTERED_WIDE, __VA_ARGS__
#define BEST(...)                    FORM_BEST, __VA_ARGS__
#define NOTHING(...)
#define TEXT template <class T> static __device__ __forceinline__ T

/* The names used in the expressions of ops.def. Integers wrap. */
template <class T> LT_DEVICE_INLINE T lowest() { return -(T)INFINITY; }
template <> __device__ __forceinline__ int64_t lowest<int64_t>() { return INT64_MIN; }
template <class T> LT_DEVICE_INLINE T highest() { return (T)INFINITY; }
template <> __device__ __forceinline__ int64_t highest<int64_t>() { return INT64_MAX; }
LT_DEVICE_INLINE float plus(float x, float y) { return x + y; }
LT_DEVICE_INLINE double plus(double x, double y) { return x + y; }
LT_DEVICE_INLINE int plus(int x, int y) { return x + y; }
LT_DEVICE_INLINE int64_t plus(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }
LT_DEVICE_INLINE float times(float x, float y) { return x * y; }
LT_DEVICE_INLINE double times(double x, double y) { return x * y; }
LT_DEVICE_INLINE int times(int x, int y) { return x * y; }
LT_DEVICE_INLINE int64_t times(int64_t x, int64_t y) {
  return (int64_t)((uint64_t)x * (uint64_t)y);
}
#define M(f)             m_##f
#define PICK(k, yes, no) ((k) ? (yes) : (no))
#define LOWEST           lowest<T>()
#define HIGHEST          highest<T>()
#define PLUS(x, y)       plus(x, y)
#define TIMES(x, y)      times(x, y)

/* ---- launching ------------------------------------------------------------------------------- */

/* Converts the launcher's arguments to the kernels'. */
static inline Reduction reduction_of(const lt_AccelReduce *r) {
  Reduction p = {};
  p.x = r->x, p.dtype = r->dtype, p.out = r->out, p.out_dtype = r->out_dtype, p.at = r->at;
  p.kept.ndim = r->kept_ndim;
  for (int d = 0; d < r->kept_ndim; d++) {
    p.kept.shape[d] = r->kept_shape[d];
    p.kept.strides[0][d] = r->kept_x[d];
    p.kept.strides[1][d] = r->kept_out[d];
  }
  p.reduced.ndim = r->reduced_ndim;
  for (int d = 0; d < r->reduced_ndim; d++) {
    p.reduced.shape[d] = r->reduced_shape[d];
    p.reduced.strides[0][d] = r->reduced_x[d];
  }
  p.results = r->results, p.n = r->n, p.splits = r->splits, p.piece = r->piece;
  p.width = r->width, p.rows = r->rows, p.packs = r->packs, p.scratch = r->scratch;
  p.blocks = blocks_for(r->results, r->threads / r->width) * r->splits;
  return p;
}

/* Launches a reduction, and its second stage where results are divided into pieces. */
template <class R>
static cudaError_t reduce_by(const char *name, const R &reducer, const lt_AccelReduce *r,
                             cudaStream_t stream) {
  static_assert(sizeof(typename R::Acc) <= LT_REDUCE_PARTIAL, "pieces have room in the scratch");
  Reduction p = reduction_of(r);
  cudaError_t status =
      launch(name, reduce_kernel<R>, grid_for(p.blocks), dim3(r->threads), 0, stream, reducer, p);
  if (status != cudaSuccess || p.splits == 1) return status;
  return launch(name, reduce_pieces_kernel<R>, grid_for(p.results), dim3(LT_WARP), 0, stream,
                reducer, p);
}

#endif
