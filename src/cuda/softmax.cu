/* softmax.cu: the kernels of softmax. A row that fits the registers of a group of threads
 * (slots.cuh) is loaded once. Longer rows, and columns, are loaded twice: once for the maximum and
 * the sum, which are updated together (Milakov and Gimelshein 2018), once for the results.
 *
 * A row with a NaN or +inf, or of nothing but -inf, becomes NaN, as on the CPU.
 */
#include "slots.cuh"
#include "softmax.h"

#define LONG     8   /* slots of a thread, where a row does not fit */
#define LONG_LOT 512 /* threads of a group there */
#define COLUMN   8   /* elements of a column that a thread loads at once */

/* ---- forward --------------------------------------------------------------------------------- */

/* The maximum so far, and the sum of e^(x - maximum). */
template <class T> struct Partial { T largest, sum; };
template <class T> LT_DEVICE_INLINE T rescaled(T sum, T from, T to) {
  return from == to ? sum : sum * m_exp(from - to);
}
/* Adds elements to a partial result. -inf adds nothing, and is skipped, because -inf - -inf is
 * NaN. */
template <class T, int PER> LT_DEVICE_INLINE void take(Partial<T> &p, const T (&v)[PER]) {
  T top = p.largest;
#pragma unroll
  for (int k = 0; k < PER; k++) top = Largest()(top, v[k]);
  if (top == -(T)INFINITY) return;
  T sum = rescaled(p.sum, p.largest, top);
#pragma unroll
  for (int k = 0; k < PER; k++) sum += m_exp(v[k] - top);
  p.largest = top;
  p.sum = sum;
}

/* Returns 1 / sum for softmax, log(sum) for log_softmax. */
template <class T> LT_DEVICE_INLINE T scale_of(T sum, bool log) {
  return log ? m_log(sum) : 1 / sum;
}
template <class T> LT_DEVICE_INLINE T result_of(T x, T largest, T scale, bool log) {
  return log ? (x - largest) - scale : m_exp(x - largest) * scale;
}

/* Processes rows that fit: each is loaded once into the registers of a group. */
template <class T, int PER>
__global__ void __launch_bounds__(256, 2) softmax_rows(lt_CudaSoftmax s) {
  __shared__ T scratch[LT_WARP];
  const T nothing = -(T)INFINITY;
  for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < s.outer;
       first += (int64_t)gridDim.x * blockDim.y) {
    int64_t row = first + threadIdx.y, at = row * s.n;
    int count = row < s.outer ? (int)s.n : 0;
    T v[PER], top = nothing, sum = 0;
    load_slots(v, s.x, s.x_dtype, at, count, s.vector, nothing);
#pragma unroll
    for (int k = 0; k < PER; k++) top = Largest()(top, v[k]);
    top = group_all(top, nothing, Largest(), scratch);
#pragma unroll
    for (int k = 0; k < PER; k++) {
      T x = v[k] - top, e = m_exp(x); /* 0 past the row's end, or NaN where all of the row is
                                       * -inf */
      sum += e;
      v[k] = s.log ? x : e;
    }
    T scale = scale_of(group_all(sum, (T)0, Sum(), scratch), s.log);
#pragma unroll
    for (int k = 0; k < PER; k++) v[k] = s.log ? v[k] - scale : v[k] * scale;
    store_slots(s.y, s.y_dtype, at, count, s.vector, v);
  }
}

/* Processes long rows, one row to a block, each loaded twice. */
template <class T> __global__ void softmax_long_rows(lt_CudaSoftmax s) {
  __shared__ T scratch[LT_WARP];
  const T nothing = -(T)INFINITY;
  for (int64_t row = blockIdx.x; row < s.outer; row += gridDim.x) {
    int64_t at = row * s.n, span = (int64_t)LONG * blockDim.x;
    Partial<T> p = {nothing, 0};
    T v[LONG];
    for (int64_t from = 0; from < s.n; from += span) {
      load_slots(v, s.x, s.x_dtype, at + from, window_count<LONG>(s.n, from), s.vector, nothing);
      take(p, v);
    }
    T top = group_all(p.largest, nothing, Largest(), scratch);
    T sum = group_all(rescaled(p.sum, p.largest, top), (T)0, Sum(), scratch);
    T scale = scale_of(sum, s.log);
    for (int64_t from = 0; from < s.n; from += span) {
      int count = window_count<LONG>(s.n, from);
      load_slots(v, s.x, s.x_dtype, at + from, count, s.vector, nothing);
#pragma unroll
      for (int k = 0; k < LONG; k++) v[k] = result_of(v[k], top, scale, s.log);
      store_slots(s.y, s.y_dtype, at + from, count, s.vector, v);
    }
  }
}

/* ---- backward: dx = y (g - sum(g y)); of log_softmax: dx = g - e^y sum(g) -------------------- */

template <class T> LT_DEVICE_INLINE T gradient_of(T g, T y, T sum, bool log) {
  return log ? g - m_exp(y) * sum : y * (g - sum);
}

template <class T, int PER>
__global__ void __launch_bounds__(512) softmax_backward_rows(lt_CudaSoftmax s) {
  __shared__ T scratch[LT_WARP];
  for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < s.outer;
       first += (int64_t)gridDim.x * blockDim.y) {
    int64_t row = first + threadIdx.y, at = row * s.n;
    int count = row < s.outer ? (int)s.n : 0;
    T g[PER], y[PER], sum = 0;
    load_slots(g, s.g, s.g_dtype, at, count, s.vector, (T)0);
    load_slots(y, s.x, s.x_dtype, at, count, s.vector, (T)0);
#pragma unroll
    for (int k = 0; k < PER; k++) sum += s.log ? g[k] : g[k] * y[k];
    sum = group_all(sum, (T)0, Sum(), scratch);
#pragma unroll
    for (int k = 0; k < PER; k++) y[k] = gradient_of(g[k], y[k], sum, s.log);
    store_slots(s.y, s.y_dtype, at, count, s.vector, y);
  }
}

template <class T> __global__ void softmax_backward_long_rows(lt_CudaSoftmax s) {
  __shared__ T scratch[LT_WARP];
  for (int64_t row = blockIdx.x; row < s.outer; row += gridDim.x) {
    int64_t at = row * s.n, span = (int64_t)LONG * blockDim.x;
    T g[LONG], y[LONG], sum = 0;
    for (int64_t from = 0; from < s.n; from += span) {
      int count = window_count<LONG>(s.n, from);
      load_slots(g, s.g, s.g_dtype, at + from, count, s.vector, (T)0);
      if (!s.log) load_slots(y, s.x, s.x_dtype, at + from, count, s.vector, (T)0);
#pragma unroll
      for (int k = 0; k < LONG; k++) sum += s.log ? g[k] : g[k] * y[k];
    }
    sum = group_all(sum, (T)0, Sum(), scratch);
    for (int64_t from = 0; from < s.n; from += span) {
      int count = window_count<LONG>(s.n, from);
      load_slots(g, s.g, s.g_dtype, at + from, count, s.vector, (T)0);
      load_slots(y, s.x, s.x_dtype, at + from, count, s.vector, (T)0);
#pragma unroll
      for (int k = 0; k < LONG; k++) y[k] = gradient_of(g[k], y[k], sum, s.log);
      store_slots(s.y, s.y_dtype, at + from, count, s.vector, y);
    }
  }
}

/* ---- along columns --------------------------------------------------------------------------- */

/* Reduces over the threads of one column (those with the same threadIdx.x). `scratch` is shared
 * memory for one T for each thread of the block. */
template <class T, class Join> LT_DEVICE_INLINE T column_all(T v, Join join, T *scratch) {
  if (blockDim.y == 1) return v;
  scratch[threadIdx.y * blockDim.x + threadIdx.x] = v;
  __syncthreads();
  v = scratch[threadIdx.x];
  for (unsigned i = 1; i < blockDim.y; i++) v = join(v, scratch[i * blockDim.x + threadIdx.x]);
  __syncthreads();
  return v;
}

/* Loops over columns: threads along x have neighbouring columns, threads along y parts of a
 * column. */
#define FOR_COLUMNS(s)                                                                             \
  int64_t across = ((s).inner - 1) / blockDim.x + 1, step = (int64_t)blockDim.y * (s).inner;       \
  for (int64_t b = blockIdx.x; b < (s).outer * across; b += gridDim.x)
/* Computes the first element of this thread's column, and the number of its elements that are this
 * thread's. */
#define COLUMN_OF(s)                                                                               \
  int64_t j = b % across * blockDim.x + threadIdx.x;                                               \
  int64_t at = b / across * (s).n * (s).inner + threadIdx.y * (s).inner + j;                       \
  int64_t mine =                                                                                   \
      j < (s).inner && threadIdx.y < (s).n ? ((s).n - threadIdx.y - 1) / blockDim.y + 1 : 0

/* Loads the next elements of a thread's column; past its end they are `nothing`. */
template <int D, class T>
LT_DEVICE_INLINE void load_column_of(T (&v)[COLUMN], const void *memory, int64_t at, int64_t step,
                                     int64_t left, T nothing) {
#pragma unroll
  for (int k = 0; k < COLUMN; k++)
    v[k] = k < left ? load_float<T>(memory, D, at + k * step) : nothing;
}
LT_DEVICE_INLINE void load_column(float (&v)[COLUMN], const void *memory, int dtype, int64_t at,
                                  int64_t step, int64_t left, float nothing) {
  if (dtype == LT_float32)
    load_column_of<LT_float32>(v, memory, at, step, left, nothing);
  else if (dtype == LT_float16)
    load_column_of<LT_float16>(v, memory, at, step, left, nothing);
  else
    load_column_of<LT_bfloat16>(v, memory, at, step, left, nothing);
}
LT_DEVICE_INLINE void load_column(double (&v)[COLUMN], const void *memory, int, int64_t at,
                                  int64_t step, int64_t left, double nothing) {
  load_column_of<LT_float64>(v, memory, at, step, left, nothing);
}
template <class T>
LT_DEVICE_INLINE void store_column(void *memory, int dtype, int64_t at, int64_t step, int64_t left,
                                   const T (&v)[COLUMN]) {
#pragma unroll
  for (int k = 0; k < COLUMN; k++)
    if (k < left) store_float(memory, dtype, at + k * step, v[k]);
}

template <class T> __global__ void __launch_bounds__(256, 2) softmax_columns(lt_CudaSoftmax s) {
  __shared__ T scratch[256];
  const T nothing = -(T)INFINITY;
  FOR_COLUMNS(s) {
    COLUMN_OF(s);
    Partial<T> p = {nothing, 0};
    T v[COLUMN];
    for (int64_t i = 0; i < mine; i += COLUMN) {
      load_column(v, s.x, s.x_dtype, at + i * step, step, mine - i, nothing);
      take(p, v);
    }
    T top = column_all(p.largest, Largest(), scratch);
    T scale = scale_of(column_all(rescaled(p.sum, p.largest, top), Sum(), scratch), s.log);
    for (int64_t i = 0; i < mine; i += COLUMN) {
      load_column(v, s.x, s.x_dtype, at + i * step, step, mine - i, nothing);
#pragma unroll
      for (int k = 0; k < COLUMN; k++) v[k] = result_of(v[k], top, scale, s.log);
      store_column(s.y, s.y_dtype, at + i * step, step, mine - i, v);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(256, 2) softmax_backward_columns(lt_CudaSoftmax s) {
  __shared__ T scratch[256];
  FOR_COLUMNS(s) {
    COLUMN_OF(s);
    T sum = 0, g[COLUMN], y[COLUMN];
    for (int64_t i = 0; i < mine; i += COLUMN) {
      load_column(g, s.g, s.g_dtype, at + i * step, step, mine - i, (T)0);
      if (!s.log) load_column(y, s.x, s.x_dtype, at + i * step, step, mine - i, (T)0);
#pragma unroll
      for (int k = 0; k < COLUMN; k++) sum += s.log ? g[k] : g[k] * y[k];
    }
    sum = column_all(sum, Sum(), scratch);
    for (int64_t i = 0; i < mine; i += COLUMN) {
      load_column(g, s.g, s.g_dtype, at + i * step, step, mine - i, (T)0);
      load_column(y, s.x, s.x_dtype, at + i * step, step, mine - i, (T)0);
#pragma unroll
      for (int k = 0; k < COLUMN; k++) y[k] = gradient_of(g[k], y[k], sum, s.log);
      store_column(s.y, s.y_dtype, at + i * step, step, mine - i, y);
    }
  }
}

/* ---- launches -------------------------------------------------------------------------------- */

template <class T> static cudaError_t launch_columns(const lt_CudaSoftmax &s, cudaStream_t stream) {
  unsigned x = 1, y = 1;
  while (x < 32 && x < s.inner) x *= 2;
  while (x * y < 256 && y * COLUMN < s.n) y *= 2;
  while (x * y < 256 && x < s.inner) x *= 2;
  dim3 grid = grid_for(s.outer * blocks_for(s.inner, x)), block(x, y);
  if (s.g)
    return launch("softmax_backward_columns", softmax_backward_columns<T>, grid, block, 0, stream,
                  s);
  return launch("softmax_columns", softmax_columns<T>, grid, block, 0, stream, s);
}

/* Short rows are processed by as few threads as hold them: fewer threads synchronize less. */
template <class T> static cudaError_t launch_forward(const lt_CudaSoftmax &s, cudaStream_t stream) {
  if (s.n <= 16 * LT_WARP) {
    Groups g = groups_for(s.outer, s.n, 16, LT_WARP);
    return launch("softmax_rows", softmax_rows<T, 16>, g.grid, g.block, 0, stream, s);
  }
  if (s.n <= 32 * 256) {
    Groups g = groups_for(s.outer, s.n, 32, 256);
    return launch("softmax_rows", softmax_rows<T, 32>, g.grid, g.block, 0, stream, s);
  }
  Groups g = groups_for(s.outer, s.n, LONG, LONG_LOT);
  return launch("softmax_long_rows", softmax_long_rows<T>, g.grid, g.block, 0, stream, s);
}

template <class T>
static cudaError_t launch_backward(const lt_CudaSoftmax &s, cudaStream_t stream) {
  if (s.n <= 16 * 512) {
    Groups g = groups_for(s.outer, s.n, 16, 512);
    return launch("softmax_backward_rows", softmax_backward_rows<T, 16>, g.grid, g.block, 0, stream,
                  s);
  }
  Groups g = groups_for(s.outer, s.n, LONG, LONG_LOT);
  return launch("softmax_backward_long_rows", softmax_backward_long_rows<T>, g.grid, g.block, 0,
                stream, s);
}

template <class T> static cudaError_t launch_softmax(const lt_CudaSoftmax &s, cudaStream_t stream) {
  if (s.inner > 1) return launch_columns<T>(s, stream);
  return s.g ? launch_backward<T>(s, stream) : launch_forward<T>(s, stream);
}

cudaError_t lt_cuda_launch_softmax(const lt_CudaSoftmax *given, cudaStream_t stream) {
  lt_CudaSoftmax s = *given;
  s.vector = rows_align(s.n, s.x, s.g, s.y, NULL);
  return s.y_dtype == LT_float64 ? launch_softmax<double>(s, stream)
                                 : launch_softmax<float>(s, stream);
}
