/* norm.cu: the kernels of layer norm: x^ = (x - mean) rstd, y = x^ weight + bias. Rows that fit the
 * registers of a group of threads (slots.cuh) are loaded once.
 *
 * The gradients of weight and bias are sums over rows. The rows are divided into pieces by their
 * number and size alone. A group of threads keeps the sums of its piece in registers while it loops
 * over the rows, and a second kernel adds the pieces in order: the same bits on every run and every
 * GPU.
 */
#include "norm.h"
#include "slots.cuh"

#define FITS 8192 /* the longest row that is loaded once */
/* The slots of a thread, and the most threads of a group: in forward, and in backward, which holds
 * more values. */
#define FORWARD_SLOTS 16
#define FORWARD_MOST  (FITS / FORWARD_SLOTS)
#define SLOTS         8
#define MOST          (FITS / SLOTS)
#define MOST_PIECES   1024
#define FEW_PIECES    128           /* as many as there should be, if pieces can be short */
#define SHARED_SUMS   (128 * SLOTS) /* the slots of a block with several groups */

/* Multiplies by weight and adds bias. */
template <class T>
LT_DEVICE_INLINE void affine(T (&v)[FORWARD_SLOTS], const lt_CudaNorm &k, int64_t from, int count) {
  T w[FORWARD_SLOTS];
  if (k.weight) {
    load_slots(w, k.weight, k.dtype, from, count, k.vector, (T)0);
#pragma unroll
    for (int i = 0; i < FORWARD_SLOTS; i++) v[i] *= w[i];
  }
  if (k.bias) {
    load_slots(w, k.bias, k.dtype, from, count, k.vector, (T)0);
#pragma unroll
    for (int i = 0; i < FORWARD_SLOTS; i++) v[i] += w[i];
  }
}

/* Returns the sum of (x - mean)^2 over the slots that hold elements. */
template <class T>
LT_DEVICE_INLINE T squares(const T (&v)[FORWARD_SLOTS], T mean, int count, bool vector) {
  T sum = 0;
#pragma unroll
  for (int i = 0; i < FORWARD_SLOTS; i++)
    if (slot_element(i, vector) < count) sum += (v[i] - mean) * (v[i] - mean);
  return sum;
}

template <class T> LT_DEVICE_INLINE T sum_of(const T (&v)[FORWARD_SLOTS]) {
  T sum = 0;
#pragma unroll
  for (int i = 0; i < FORWARD_SLOTS; i++) sum += v[i];
  return sum;
}

/* Normalizes rows that fit: each is loaded once into the registers of a group. */
template <class T> __global__ void __launch_bounds__(FORWARD_MOST) norm_rows(lt_CudaNorm k) {
  __shared__ T scratch[LT_WARP];
  for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows;
       first += (int64_t)gridDim.x * blockDim.y) {
    int64_t row = first + threadIdx.y;
    int count = row < k.rows ? (int)k.n : 0;
    T v[FORWARD_SLOTS];
    load_slots(v, k.x, k.dtype, row * k.n, count, k.vector, (T)0);
    T mean = group_all(sum_of(v), (T)0, Sum(), scratch) / (T)k.n;
    T all = group_all(squares(v, mean, count, k.vector), (T)0, Sum(), scratch);
    T rstd = 1 / m_sqrt(all / (T)k.n + (T)k.eps);
#pragma unroll
    for (int i = 0; i < FORWARD_SLOTS; i++) v[i] = (v[i] - mean) * rstd;
    affine(v, k, 0, count);
    store_slots(k.y, k.dtype, row * k.n, count, k.vector, v);
    if (threadIdx.x == 0 && row < k.rows) {
      ((T *)k.mean)[row] = mean;
      ((T *)k.rstd)[row] = rstd;
    }
  }
}

/* Normalizes long rows, which are loaded three times; caches may serve the later loads. */
template <class T> __global__ void __launch_bounds__(FORWARD_MOST) norm_long_rows(lt_CudaNorm k) {
  __shared__ T scratch[LT_WARP];
  const int64_t span = (int64_t)FORWARD_SLOTS * blockDim.x;
  for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
    T v[FORWARD_SLOTS], sum = 0;
    for (int64_t from = 0; from < k.n; from += span) {
      int count = window_count<FORWARD_SLOTS>(k.n, from);
      load_slots(v, k.x, k.dtype, row * k.n + from, count, k.vector, (T)0);
      sum += sum_of(v);
    }
    T mean = group_all(sum, (T)0, Sum(), scratch) / (T)k.n;
    sum = 0;
    for (int64_t from = 0; from < k.n; from += span) {
      int count = window_count<FORWARD_SLOTS>(k.n, from);
      load_slots(v, k.x, k.dtype, row * k.n + from, count, k.vector, (T)0);
      sum += squares(v, mean, count, k.vector);
    }
    T rstd = 1 / m_sqrt(group_all(sum, (T)0, Sum(), scratch) / (T)k.n + (T)k.eps);
    for (int64_t from = 0; from < k.n; from += span) {
      int count = window_count<FORWARD_SLOTS>(k.n, from);
      load_slots(v, k.x, k.dtype, row * k.n + from, count, k.vector, (T)0);
#pragma unroll
      for (int i = 0; i < FORWARD_SLOTS; i++) v[i] = (v[i] - mean) * rstd;
      affine(v, k, from, count);
      store_slots(k.y, k.dtype, row * k.n + from, count, k.vector, v);
    }
    if (threadIdx.x == 0) {
      ((T *)k.mean)[row] = mean;
      ((T *)k.rstd)[row] = rstd;
    }
  }
}

/* ---- backward: with h = g weight: dx = rstd (h - mean(h) - x^ mean(h x^)) -------------------- */

/* A window's g and x - mean, and h. add_sums adds the window to the sums of h and h (x - mean). */
template <class T> struct Window {
  T g[SLOTS], x[SLOTS], h[SLOTS];
  int count;
};
template <class T>
LT_DEVICE_INLINE void open_window(Window<T> &w, const lt_CudaNormBackward &k, int64_t row,
                                  int64_t from, int count, T mean) {
  w.count = count;
  load_slots(w.g, k.g, k.g_dtype, row * k.n + from, count, k.vector, (T)0);
  load_slots(w.x, k.x, k.dtype, row * k.n + from, count, k.vector, (T)0);
  if (k.weight) load_slots(w.h, k.weight, k.dtype, from, count, k.vector, (T)0);
#pragma unroll
  for (int i = 0; i < SLOTS; i++) {
    w.h[i] = k.weight ? w.g[i] * w.h[i] : w.g[i];
    w.x[i] = slot_element(i, k.vector) < count ? w.x[i] - mean : 0;
  }
}
template <class T> LT_DEVICE_INLINE void add_sums(const Window<T> &w, T &h, T &hx) {
#pragma unroll
  for (int i = 0; i < SLOTS; i++) {
    h += w.h[i];
    hx += w.h[i] * w.x[i];
  }
}
/* Stores dx; a is mean(h), b is mean(h x^) rstd. */
template <class T>
LT_DEVICE_INLINE void store_gradient(Window<T> &w, const lt_CudaNormBackward &k, int64_t row,
                                     int64_t from, T rstd, T a, T b) {
#pragma unroll
  for (int i = 0; i < SLOTS; i++) w.h[i] = rstd * (w.h[i] - a - w.x[i] * b);
  store_slots(k.dx, k.dtype, row * k.n + from, w.count, k.vector, w.h);
}

/* Adds the sums that the groups of a block hold, in order, and stores them in to[0..n). `scratch`
 * is shared memory for SHARED_SUMS T, enough for blocks of several groups. */
template <class T>
LT_DEVICE_INLINE void store_sums(T *to, const T (&v)[SLOTS], int n, bool vector, T *scratch) {
  const int dtype = sizeof(T) == sizeof(double) ? LT_float64 : LT_float32;
  if (blockDim.y == 1) {
    store_slots(to, dtype, 0, n, vector, v);
    return;
  }
  int wide = (int)blockDim.x * SLOTS, me = (int)(threadIdx.y * blockDim.x + threadIdx.x);
#pragma unroll
  for (int i = 0; i < SLOTS; i++) scratch[(int)threadIdx.y * wide + slot_element(i, vector)] = v[i];
  __syncthreads();
  for (int j = me; j < n; j += (int)(blockDim.x * blockDim.y)) {
    T sum = scratch[j];
    for (int y = 1; y < (int)blockDim.y; y++) sum += scratch[y * wide + j];
    to[j] = sum;
  }
  __syncthreads();
}

/* A block processes a piece of the rows, which its groups take in turns. All groups run the same
 * number of iterations, since they synchronize in shuffles. */
template <class T>
__global__ void __launch_bounds__(MOST) norm_backward_rows(lt_CudaNormBackward k) {
  __shared__ T scratch[SHARED_SUMS];
  const T *means = (const T *)k.mean, *rstds = (const T *)k.rstd;
  int64_t p = blockIdx.x, begin = k.rows * p / k.pieces, end = k.rows * (p + 1) / k.pieces;
  T dweight[SLOTS] = {}, dbias[SLOTS] = {};
  for (int64_t first = begin; first < end; first += blockDim.y) {
    int64_t row = first + threadIdx.y;
    bool real = row < end;
    T mean = real ? means[row] : 0, rstd = real ? rstds[row] : 0, h = 0, hx = 0;
    Window<T> w;
    open_window(w, k, row, 0, real ? (int)k.n : 0, mean);
    add_sums(w, h, hx);
    h = group_all(h, (T)0, Sum(), scratch);
    hx = group_all(hx, (T)0, Sum(), scratch);
#pragma unroll
    for (int i = 0; i < SLOTS; i++) {
      dweight[i] += w.g[i] * (w.x[i] * rstd);
      dbias[i] += w.g[i];
    }
    store_gradient(w, k, row, 0, rstd, h / (T)k.n, hx * rstd * rstd / (T)k.n);
  }
  T *to = (T *)k.part + 2 * p * k.n;
  store_sums(to, dweight, (int)k.n, k.vector, scratch);
  store_sums(to + k.n, dbias, (int)k.n, k.vector, scratch);
}

/* Computes dx of long rows, which are loaded twice: for the sums, and for dx. */
template <class T>
__global__ void __launch_bounds__(MOST) norm_backward_long_rows(lt_CudaNormBackward k) {
  __shared__ T scratch[LT_WARP];
  const int64_t span = (int64_t)SLOTS * blockDim.x;
  for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
    T mean = ((const T *)k.mean)[row], rstd = ((const T *)k.rstd)[row], h = 0, hx = 0;
    Window<T> w;
    for (int64_t from = 0; from < k.n; from += span) {
      open_window(w, k, row, from, window_count<SLOTS>(k.n, from), mean);
      add_sums(w, h, hx);
    }
    h = group_all(h, (T)0, Sum(), scratch);
    hx = group_all(hx, (T)0, Sum(), scratch);
    for (int64_t from = 0; from < k.n; from += span) {
      open_window(w, k, row, from, window_count<SLOTS>(k.n, from), mean);
      store_gradient(w, k, row, from, rstd, h / (T)k.n, hx * rstd * rstd / (T)k.n);
    }
  }
}

/* Computes the sums of one piece (blockIdx.y) for long rows, one column to a thread. */
template <class T> __global__ void norm_backward_columns(lt_CudaNormBackward k) {
  int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, p = blockIdx.y;
  if (j >= k.n) return;
  T dweight = 0, dbias = 0;
  for (int64_t row = k.rows * p / k.pieces; row < k.rows * (p + 1) / k.pieces; row++) {
    T g = load_float<T>(k.g, k.g_dtype, row * k.n + j);
    T x = load_float<T>(k.x, k.dtype, row * k.n + j);
    dweight += g * ((x - ((const T *)k.mean)[row]) * ((const T *)k.rstd)[row]);
    dbias += g;
  }
  ((T *)k.part)[2 * p * k.n + j] = dweight;
  ((T *)k.part)[(2 * p + 1) * k.n + j] = dbias;
}

/* Adds the pieces. Threads along x have columns; along y, ranges of pieces, whose sums are then
 * added in order. */
template <class T> __global__ void norm_join(lt_CudaNormBackward k) {
  __shared__ T scratch[2][256];
  const T *part = (const T *)k.part;
  int64_t j = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  unsigned y = threadIdx.y, me = y * blockDim.x + threadIdx.x;
  T dweight = 0, dbias = 0;
  if (j < k.n)
#pragma unroll 4
    for (int64_t p = k.pieces * y / blockDim.y; p < k.pieces * (y + 1) / blockDim.y; p++) {
      dweight += part[2 * p * k.n + j];
      dbias += part[(2 * p + 1) * k.n + j];
    }
  scratch[0][me] = dweight;
  scratch[1][me] = dbias;
  __syncthreads();
  if (y > 0 || j >= k.n) return;
  for (unsigned i = 1; i < blockDim.y; i++) {
    dweight += scratch[0][i * blockDim.x + threadIdx.x];
    dbias += scratch[1][i * blockDim.x + threadIdx.x];
  }
  store_float(k.dweight, k.dtype, j, dweight);
  store_float(k.dbias, k.dtype, j, dbias);
}

/* ---- launches -------------------------------------------------------------------------------- */

template <class T> static cudaError_t launch_norm(const lt_CudaNorm &k, cudaStream_t stream) {
  Groups g = groups_for(k.rows, k.n, FORWARD_SLOTS, FORWARD_MOST);
  if (k.n <= FITS) return launch("layer_norm", norm_rows<T>, g.grid, g.block, 0, stream, k);
  return launch("layer_norm_long", norm_long_rows<T>, g.grid, g.block, 0, stream, k);
}

cudaError_t lt_cuda_launch_layer_norm(const lt_CudaNorm *given, cudaStream_t stream) {
  lt_CudaNorm k = *given;
  if (k.rows == 0) return cudaSuccess;
  k.vector = rows_align(k.n, k.x, k.y, k.weight, k.bias);
  return k.dtype == LT_float64 ? launch_norm<double>(k, stream) : launch_norm<float>(k, stream);
}

/* Returns the block size for one piece. */
static dim3 piece_block(int64_t n) { return groups_for(INT64_MAX, n, SLOTS, MOST).block; }

/* A piece has several rows for each group of its block, so that the memory for sums is small
 * compared with the data. */
int64_t lt_cuda_norm_pieces(int64_t rows, int64_t n) {
  int64_t groups = n <= FITS ? piece_block(n).y : 1;
  int64_t pieces = rows / (16 * groups), few = rows / (2 * groups);
  if (few > FEW_PIECES) few = FEW_PIECES;
  if (pieces < few) pieces = few;
  return pieces < 1 ? 1 : pieces > MOST_PIECES ? MOST_PIECES : pieces;
}

template <class T>
static cudaError_t launch_backward(const lt_CudaNormBackward &k, cudaStream_t stream) {
  cudaError_t status = cudaSuccess;
  if (k.n <= FITS) {
    status = launch("layer_norm_backward", norm_backward_rows<T>, dim3((unsigned)k.pieces),
                    piece_block(k.n), 0, stream, k);
  } else {
    Groups g = groups_for(k.rows, k.n, SLOTS, MOST);
    dim3 grid((unsigned)blocks_for(k.n, 256), (unsigned)k.pieces);
    if (k.rows > 0)
      status = launch("layer_norm_backward_long", norm_backward_long_rows<T>, g.grid, g.block, 0,
                      stream, k);
    if (status == cudaSuccess)
      status =
          launch("layer_norm_columns", norm_backward_columns<T>, grid, dim3(256), 0, stream, k);
  }
  if (status != cudaSuccess) return status;
  unsigned y = k.pieces >= 32 ? 8 : 1;
  return launch("layer_norm_join", norm_join<T>, dim3((unsigned)blocks_for(k.n, 32)), dim3(32, y),
                0, stream, k);
}

cudaError_t lt_cuda_launch_layer_norm_backward(const lt_CudaNormBackward *given,
                                               cudaStream_t stream) {
  lt_CudaNormBackward k = *given;
  k.vector = rows_align(k.n, k.x, k.g, k.dx, k.weight);
  return k.dtype == LT_float64 ? launch_backward<double>(k, stream)
                               : launch_backward<float>(k, stream);
}
