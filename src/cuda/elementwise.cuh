/* elementwise.cuh: any elementwise op, on any dtypes and layout, computed in one type: one kernel
 * with the op as an argument. A .cu file includes elementwise_begin.cuh, then defines
 *
 *   T, U                                        the type, and of integers its unsigned counterpart
 *   LT_IS_FLOAT, LT_IS_INTEGER, LT_IS_BOOL or LT_IS_COMPLEX      its kind
 *   R                                           of complex numbers, the type of their parts
 *   FIELD                                       the field of lt_CudaNumber that holds it
 *   LAUNCHER, NAME                              the exported launcher; the kernel's name
 *   OWN                                         its dtype
 *   NO_PACKS                                    where another file handles contiguous memory
 *
 * and then includes this file.
 */
#include "elementwise_texts.h"

#define EACH    4 /* elements for each thread */
#define THREADS 128

/* ---- the op ---------------------------------------------------------------------------------- */

/* Returns the op's result for one element. Not inlined, so that the kernels stay small. */
static __device__ __noinline__ T apply(int op, T x, T y, T z, T a, T b, T MAXFINITE) {
  (void)x, (void)y, (void)z, (void)a, (void)b, (void)MAXFINITE;
  switch (op) {
#define LT_TEXT(name, inputs, result, text)                                                        \
  case LT_OP_##name:                                                                               \
    return result(text);
#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  TEXT_##types(name, inputs, rule, ftext, itext)
#include "ops.def"
  default:
    return x;
  }
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Returns an input's element at an offset, converted to T; 0 for inputs that the op does not
 * have. */
LT_DEVICE_INLINE T get(const lt_CudaOperands &l, int k, int64_t offset) {
  if (k > l.inputs) return (T)0;
  if (!l.data[k]) return T(l.value[k].FIELD);
#ifdef LT_IS_BOOL
  switch (l.dtype[k]) {
  case LT_bool:
  case LT_uint8:
  case LT_int8:
    return ((const uint8_t *)l.data[k])[offset] != 0;
  case LT_int64:
    return ((const int64_t *)l.data[k])[offset] != 0;
  default:
    return load<double>(l.data[k], l.dtype[k], offset) != 0;
  }
#else
  return load<T>(l.data[k], l.dtype[k], offset);
#endif
}

/* The part of a shape that a kernel uses, passed by value. */
namespace {
template <int DIMS> struct Part {
  int ndim;
  int64_t shape[DIMS];
  int64_t strides[4][DIMS];
};
} // namespace

/* Computes any layout: one element at a time, with its offset in each operand. */
template <int DIMS>
static __global__ void __launch_bounds__(THREADS)
    elementwise(const __grid_constant__ lt_CudaOperands l,
                const __grid_constant__ Part<DIMS> part) {
  int64_t first = (int64_t)blockIdx.x * (THREADS * EACH) + threadIdx.x;
#pragma unroll 1
  for (int e = 0; e < EACH; e++) {
    int64_t i = first + e * THREADS, left = i, offset[4] = {0, 0, 0, 0};
    if (i >= l.numel) return;
#pragma unroll 1
    for (int d = DIMS > 1 ? part.ndim - 1 : 0; d > 0; d--) {
      int64_t at = divmod(left, part.shape[d]);
      for (int k = 0; k < 4; k++) offset[k] += at * part.strides[k][d];
    }
    for (int k = 0; k < 4; k++) offset[k] += left * part.strides[k][0];
    T x = get(l, 1, offset[1]), y = get(l, 2, offset[2]), z = get(l, 3, offset[3]);
    store<T>(l.data[0], l.dtype[0], offset[0],
             apply(l.op, x, y, z, T(l.a.FIELD), T(l.b.FIELD), T(l.limit.FIELD)));
  }
}

template <int DIMS> static Part<DIMS> part_of(const lt_CudaShape *shape) {
  Part<DIMS> part = {};
  part.ndim = shape->ndim;
  for (int d = 0; d < shape->ndim; d++) {
    part.shape[d] = shape->shape[d];
    for (int k = 0; k < 4; k++) part.strides[k][d] = shape->strides[k][d];
  }
  return part;
}

template <int DIMS>
static cudaError_t run(const lt_CudaOperands *l, const lt_CudaShape *shape, cudaStream_t stream) {
  return launch(NAME, elementwise<DIMS>, grid_for(blocks_for(l->numel, THREADS * EACH)),
                dim3(THREADS), 0, stream, *l, part_of<DIMS>(shape));
}

/* ---- tiles, for transposed operands ---------------------------------------------------------- */

/* A block processes a tile of the last two dimensions, so that all elements of a transposed
 * operand's cache line are read while the line is cached. A warp processes consecutive columns. */
#define TILE_COLUMNS LT_WARP
#define TILE_EACH    8 /* rows for each thread */
#define TILE_ROWS    (THREADS / LT_WARP * TILE_EACH)

static __device__ __noinline__ T get_any(const lt_CudaOperands &l, int k, int64_t offset) {
  return get(l, k, offset);
}
static __device__ __noinline__ void put_any(const lt_CudaOperands &l, int64_t offset, T v) {
  store<T>(l.data[0], l.dtype[0], offset, v);
}

/* Loads n elements of operand k, `down` apart; repeats the last one up to TILE_EACH. */
LT_DEVICE_INLINE void get_column(T (&v)[TILE_EACH], const lt_CudaOperands &l, int k, int64_t offset,
                                 int64_t down, int n) {
  if (k > l.inputs || !l.data[k]) {
    T same = k > l.inputs ? (T)0 : T(l.value[k].FIELD);
    for (int e = 0; e < TILE_EACH; e++) v[e] = same;
  } else if (l.dtype[k] == OWN) {
    const T *from = (const T *)l.data[k] + offset;
    for (int e = 0; e < TILE_EACH; e++) v[e] = from[(e < n ? e : n - 1) * down];
  } else {
    for (int e = 0; e < TILE_EACH; e++) v[e] = get_any(l, k, offset + (e < n ? e : n - 1) * down);
  }
}

/* Processes tiles of the last two dimensions: a thread has TILE_EACH rows of one column. */
template <int DIMS>
static __global__ void __launch_bounds__(THREADS)
    elementwise_tiles(const __grid_constant__ lt_CudaOperands l,
                      const __grid_constant__ Part<DIMS> part) {
  int last = part.ndim - 1;
  int64_t rows = part.shape[last - 1], columns = part.shape[last], left = blockIdx.x;
  int64_t column =
      divmod(left, (columns - 1) / TILE_COLUMNS + 1) * TILE_COLUMNS + threadIdx.x % TILE_COLUMNS;
  int64_t row =
      divmod(left, (rows - 1) / TILE_ROWS + 1) * TILE_ROWS + threadIdx.x / TILE_COLUMNS * TILE_EACH;
  if (column >= columns) return;
  int64_t offset[4];
  for (int k = 0; k < 4; k++)
    offset[k] = row * part.strides[k][last - 1] + column * part.strides[k][last];
#pragma unroll 1
  for (int d = last - 2; d >= 0; d--) {
    int64_t at = divmod(left, part.shape[d]);
    for (int k = 0; k < 4; k++) offset[k] += at * part.strides[k][d];
  }
  int n = rows - row < TILE_EACH ? (int)(rows - row) : TILE_EACH;
  if (n <= 0) return;
  T x[TILE_EACH], y[TILE_EACH], z[TILE_EACH];
  get_column(x, l, 1, offset[1], part.strides[1][last - 1], n);
  get_column(y, l, 2, offset[2], part.strides[2][last - 1], n);
  get_column(z, l, 3, offset[3], part.strides[3][last - 1], n);
#pragma unroll
  for (int e = 0; e < TILE_EACH; e++) {
    if (e >= n) break;
    T v = apply(l.op, x[e], y[e], z[e], T(l.a.FIELD), T(l.b.FIELD), T(l.limit.FIELD));
    int64_t to = offset[0] + e * part.strides[0][last - 1];
    if (l.dtype[0] == OWN)
      ((T *)l.data[0])[to] = v;
    else
      put_any(l, to, v);
  }
}

/* Returns true when an operand is dense along a column and the shape is large enough for tiles. */
static bool in_tiles(const lt_CudaOperands *l, const lt_CudaShape *shape) {
  int last = shape->ndim - 1;
  if (last < 1 || shape->shape[last] < TILE_COLUMNS || shape->shape[last - 1] < TILE_ROWS)
    return false;
  for (int k = 0; k <= l->inputs; k++) {
    int64_t down = shape->strides[k][last - 1], right = shape->strides[k][last];
    if (l->data[k] && down && (down < 0 ? -down : down) < (right < 0 ? -right : right)) return true;
  }
  return false;
}

template <int DIMS>
static cudaError_t run_tiles(const lt_CudaOperands *l, const lt_CudaShape *shape,
                             cudaStream_t stream) {
  int64_t columns = shape->shape[shape->ndim - 1], rows = shape->shape[shape->ndim - 2];
  int64_t tiles = blocks_for(columns, TILE_COLUMNS) * blocks_for(rows, TILE_ROWS);
  for (int d = 0; d < shape->ndim - 2; d++) tiles *= shape->shape[d];
  return launch(NAME, elementwise_tiles<DIMS>, grid_for(tiles), dim3(THREADS), 0, stream, *l,
                part_of<DIMS>(shape));
}

/* ---- contiguous memory ----------------------------------------------------------------------- */

#ifndef NO_PACKS
/* 16 or 32 bytes of an operand, and the bools that a test gives for them. */
#define PACK (sizeof(T) == 8 ? 4 : (int)(16 / sizeof(T)))
namespace {
struct alignas(16) Pack {
  T v[PACK];
};
struct alignas(PACK) Bools {
  uint8_t v[PACK];
};
} // namespace

/* Returns pack i of operand k; where `step` is 0, its only element, repeated. */
LT_DEVICE_INLINE Pack get_pack(const lt_CudaOperands &l, int k, int64_t step, int64_t i) {
  Pack p;
  if (k <= l.inputs && l.data[k] && step) return ((const Pack *)l.data[k])[i];
  T same = k > l.inputs ? (T)0 : l.data[k] ? *(const T *)l.data[k] : l.value[k].FIELD;
  for (int e = 0; e < PACK; e++) p.v[e] = same;
  return p;
}

/* Processes contiguous memory, one pack to a thread. The thread after the last pack processes
 * the remaining elements. */
static __global__ void __launch_bounds__(THREADS)
    elementwise_packs(const __grid_constant__ lt_CudaOperands l,
                      const __grid_constant__ Part<1> part) {
  int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x, packs = l.numel / PACK;
  if (i < packs) {
    Pack x = get_pack(l, 1, part.strides[1][0], i), y = get_pack(l, 2, part.strides[2][0], i),
         z = get_pack(l, 3, part.strides[3][0], i);
    for (int e = 0; e < PACK; e++)
      x.v[e] = apply(l.op, x.v[e], y.v[e], z.v[e], l.a.FIELD, l.b.FIELD, l.limit.FIELD);
    if (l.dtype[0] == OWN) {
      ((Pack *)l.data[0])[i] = x;
    } else {
      Bools t;
      for (int e = 0; e < PACK; e++) t.v[e] = x.v[e] != 0;
      ((Bools *)l.data[0])[i] = t;
    }
  } else if (i == packs) { /* the last elements, fewer than a pack */
    for (int64_t n = packs * PACK; n < l.numel; n++)
      store<T>(l.data[0], l.dtype[0], n,
               apply(l.op, get(l, 1, n * part.strides[1][0]), get(l, 2, n * part.strides[2][0]),
                     get(l, 3, n * part.strides[3][0]), l.a.FIELD, l.b.FIELD, l.limit.FIELD));
  }
}

/* Returns true when every operand is contiguous, aligned and of dtype OWN, or a single element. The
 * output of a test may be bool. */
static bool in_packs(const lt_CudaOperands *l, const lt_CudaShape *shape) {
  if (shape->ndim != 1) return false;
  for (int k = 0; k <= l->inputs; k++) {
    bool bools = k == 0 && l->dtype[0] == LT_bool;
    if (!l->data[k]) continue;
    if (l->dtype[k] != OWN && !bools) return false;
    if (k > 0 && shape->strides[k][0] == 0) continue;
    if (shape->strides[k][0] != 1 || (uintptr_t)l->data[k] % (l->dtype[k] == OWN ? 16 : PACK))
      return false;
  }
  return true;
}
#endif

LT_C_LINKAGE cudaError_t LAUNCHER(const lt_CudaOperands *l, const lt_CudaShape *shape,
                                  cudaStream_t stream) {
#ifndef NO_PACKS
  if (in_packs(l, shape))
    return launch(NAME, elementwise_packs, grid_for(blocks_for(l->numel, THREADS * PACK)),
                  dim3(THREADS), 0, stream, *l, part_of<1>(shape));
#endif
  if (in_tiles(l, shape))
    return shape->ndim <= 4 ? run_tiles<4>(l, shape, stream)
                            : run_tiles<LT_MAX_DIMS>(l, shape, stream);
  return shape->ndim == 1   ? run<1>(l, shape, stream)
         : shape->ndim <= 4 ? run<4>(l, shape, stream)
                            : run<LT_MAX_DIMS>(l, shape, stream);
}
