/* random.cu: the kernels of random numbers. They give the CPU's numbers: philox.h defines which
 * words an element uses, and a thread computes the elements of one block of Philox: four of 32
 * bits, or two of 64.
 *
 * Invariant: where the CPU rounds a product before it adds, so does the device (times, plus).
 * Uniform numbers, random integers and Bernoulli draws are equal bit for bit; numbers computed by a
 * logarithm or a sine may differ in the last bits.
 */
#include "random.h"
#include "device.cuh"
#include "launch.cuh"

#define LT_PHILOX static __host__ __device__ __forceinline__
#include "philox.h"

#define THREADS 256

LT_DEVICE_INLINE float times(float x, float y) { return __fmul_rn(x, y); }
LT_DEVICE_INLINE double times(double x, double y) { return __dmul_rn(x, y); }
LT_DEVICE_INLINE float plus(float x, float y) { return __fadd_rn(x, y); }
LT_DEVICE_INLINE double plus(double x, double y) { return __dadd_rn(x, y); }

LT_DEVICE_INLINE void sine_cosine(float x, float &s, float &c) { sincosf(x, &s, &c); }
LT_DEVICE_INLINE void sine_cosine(double x, double &s, double &c) { sincos(x, &s, &c); }

LT_DEVICE_INLINE int64_t thread_number() { return (int64_t)blockIdx.x * THREADS + threadIdx.x; }
LT_DEVICE_INLINE uint64_t wide(const uint32_t (&w)[4], int i) {
  return (uint64_t)w[2 * i + 1] << 32 | w[2 * i];
}

/* Computes the words of block t of a part of a sequence. */
LT_DEVICE_INLINE void random_block(const lt_CudaRandom &r, int64_t t, uint32_t (&w)[4]) {
  lt_Philox p = {r.seed, r.position};
  if (r.state) p = {r.state[0], r.state[1] + r.position};
  lt_philox_block(p, t, w);
}

/* ---- floats ---------------------------------------------------------------------------------- */

/* Converts the words of a block to numbers: fractions in [0, 1), positive ones in (0, 1]. */
template <class T> struct Source;
template <> struct Source<float> {
  enum { EACH = 4 };
  static __device__ __forceinline__ float fraction(const uint32_t (&w)[4], int i, uint32_t keep) {
    return lt_fraction32(w[i] & keep);
  }
  static __device__ __forceinline__ float positive(const uint32_t (&w)[4], int i) {
    return lt_positive32(w[i]);
  }
  static __device__ __forceinline__ float angle(const uint32_t (&w)[4], int i) {
    return 6.2831853071795864769f * lt_positive32(w[i]);
  }
};
template <> struct Source<double> {
  enum { EACH = 2 };
  static __device__ __forceinline__ double fraction(const uint32_t (&w)[4], int i, uint32_t) {
    return lt_fraction64(wide(w, i));
  }
  static __device__ __forceinline__ double positive(const uint32_t (&w)[4], int i) {
    return lt_positive64(wide(w, i));
  }
  static __device__ __forceinline__ double angle(const uint32_t (&w)[4], int i) {
    return 6.2831853071795864769 * lt_fraction64(wide(w, i));
  }
};

template <class T>
LT_DEVICE_INLINE void uniform(T (&v)[Source<T>::EACH], const uint32_t (&w)[4],
                              const lt_CudaDraw &d) {
  T low = (T)d.a, span = (T)(d.b - d.a), top = (T)d.top;
  for (int i = 0; i < Source<T>::EACH; i++) {
    T x = plus(low, times(Source<T>::fraction(w, i, d.keep), span));
    v[i] = x > top ? top : x;
  }
}

/* Box and Muller (1958): two normal numbers from two uniform ones, cosine first. */
template <class T>
LT_DEVICE_INLINE void normal(T (&v)[Source<T>::EACH], const uint32_t (&w)[4],
                             const lt_CudaDraw &d) {
  T mean = (T)d.a, std = (T)d.b;
  for (int i = 0; i < Source<T>::EACH; i += 2) {
    T r = m_sqrt(-2 * m_log(Source<T>::positive(w, i))), angle = Source<T>::angle(w, i + 1);
    T sine, cosine;
    sine_cosine(angle, sine, cosine);
    v[i] = plus(mean, times(std, r * cosine));
    v[i + 1] = plus(mean, times(std, r * sine));
  }
}

template <class T>
LT_DEVICE_INLINE void exponential(T (&v)[Source<T>::EACH], const uint32_t (&w)[4],
                                  const lt_CudaDraw &d) {
  T scale = (T)(-1 / d.a);
  for (int i = 0; i < Source<T>::EACH; i++) v[i] = m_log(Source<T>::positive(w, i)) * scale;
}

LT_DEVICE_INLINE void store_all(const lt_CudaDraw &d, int64_t i, const float (&v)[4], bool vector) {
  if (vector && i + 4 <= d.n) {
    store_four(d.out, d.dtype, i, v);
    return;
  }
  for (int k = 0; k < 4; k++)
    if (i + k < d.n) store_float(d.out, d.dtype, i + k, v[k]);
}
LT_DEVICE_INLINE void store_all(const lt_CudaDraw &d, int64_t i, const double (&v)[2], bool) {
  for (int k = 0; k < 2; k++)
    if (i + k < d.n) ((double *)d.out)[i + k] = v[k];
}

/* Draws floats, one block of Philox to a thread. */
template <class T, lt_CudaDistribution which>
__global__ void draw_floats(lt_CudaDraw d, bool vector) {
  int64_t t = thread_number(), i = t * Source<T>::EACH;
  if (i >= d.n) return;
  uint32_t w[4];
  T v[Source<T>::EACH];
  random_block(d.random, t, w);
  if (which == LT_CUDA_UNIFORM)
    uniform(v, w, d);
  else if (which == LT_CUDA_NORMAL)
    normal(v, w, d);
  else
    exponential(v, w, d);
  store_all(d, i, v, vector);
}

/* ---- integers and Bernoulli draws ------------------------------------------------------------ */

__global__ void draw_integers(lt_CudaDraw d) {
  int64_t t = thread_number();
  uint32_t w[4];
  if (2 * t >= d.n) return;
  random_block(d.random, t, w);
  for (int k = 0; k < 2; k++)
    if (2 * t + k < d.n)
      store(d.out, d.dtype, 2 * t + k, (int64_t)((uint64_t)d.from + lt_below(wide(w, k), d.span)));
}

__global__ void draw_bernoulli(lt_CudaDraw d) {
  int64_t t = thread_number();
  uint32_t w[4];
  if (4 * t >= d.n || (d.bad && *d.bad)) return;
  random_block(d.random, t, w);
  for (int k = 0; k < 4; k++) {
    int64_t i = 4 * t + k;
    if (i >= d.n) break;
    double probability =
        d.probability ? load_float<double>(d.probability, d.probability_dtype, i) : d.a;
    store(d.out, d.dtype, i, (int32_t)((double)w[k] * 0x1p-32 < probability));
  }
}

__global__ void check_probabilities(const void *probability, int dtype, int64_t n,
                                    lt_CudaFault fault) {
  int64_t i = thread_number();
  if (i >= n) return;
  double p = load_float<double>(probability, dtype, i);
  if (!(p >= 0 && p <= 1)) report_fault(fault, i, __double_as_longlong(p));
}

/* ---- permutations and draws by weight -------------------------------------------------------- */

__global__ void random_keys(lt_CudaRandom r, int64_t n, uint64_t *keys, int64_t *values) {
  int64_t t = thread_number();
  uint32_t w[4];
  if (2 * t >= n) return;
  random_block(r, t, w);
  for (int k = 0; k < 2; k++) {
    int64_t i = 2 * t + k;
    if (i >= n) break;
    keys[i] = wide(w, k);
    values[i] = i + LT_INDEX_BASE;
  }
}

#define CHUNK 128 /* weights that a warp loads before one lane adds them up */

/* Sums and checks the weights, one row to a warp. A sum in another order than the CPU's could lead
 * to another draw, so one lane adds; the others load the weights for it. */
__global__ void sum_weights_of_rows(lt_CudaWeights s) {
  __shared__ double scratch[CHUNK];
  int lane = (int)threadIdx.x;
  for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
    int64_t positive = 0, last = 0, bad = 0, at = row * s.n;
    double sum = 0;
    for (int64_t from = 0; from < s.n; from += CHUNK) {
      for (int k = lane; k < CHUNK; k += LT_WARP) {
        double w = from + k < s.n ? load_float<double>(s.weights, s.dtype, at + from + k) : 0;
        if (!(w >= 0) || w == (double)INFINITY) {
          report_fault(s.one, at + from + k, __double_as_longlong(w));
          bad++;
        }
        if (w > 0) positive++, last = from + k;
        scratch[k] = w;
      }
      __syncthreads();
      if (lane == 0)
        for (int k = 0; k < CHUNK; k++) scratch[k] = sum = plus(sum, scratch[k]);
      __syncthreads();
      for (int k = lane; k < CHUNK && s.sums; k += LT_WARP)
        if (from + k < s.n) s.sums[at + from + k] = scratch[k];
      __syncthreads();
    }
    positive = warp_all(positive, Sum());
    last = warp_all(last, Largest());
    bad = warp_all(bad, Sum());
    if (lane > 0) continue;
    s.last[row] = last;
    if (bad > 0) continue;
    if (sum == (double)INFINITY)
      report_fault(s.all, row, -1);
    else if (positive == 0 || positive < s.least)
      report_fault(s.all, row, positive);
  }
}

/* Returns the first index whose running sum is above u. */
LT_DEVICE_INLINE int64_t find_sum(const double *sums, int64_t last, double u) {
  int64_t low = 0, high = last;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (sums[middle] > u)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

/* Draws with replacement: draw j of row r is element r k + j. */
__global__ void draw_with_replacement(lt_CudaWeights s, int64_t *out) {
  int64_t t = thread_number();
  uint32_t w[4];
  if (2 * t >= s.rows * s.k) return;
  random_block(s.random, t, w);
  for (int k = 0; k < 2; k++) {
    int64_t i = 2 * t + k;
    if (i >= s.rows * s.k) break;
    int64_t row = i / s.k;
    const double *sums = s.sums + row * s.n;
    double u = times(lt_fraction64(wide(w, k)), sums[s.n - 1]);
    out[i] = find_sum(sums, s.last[row], u) + LT_INDEX_BASE;
  }
}

/* Computes arrival times as sort keys: weight i arrives after an exponential time of that rate, a
 * weight of 0 never. Positive doubles have the same order as their bits. */
__global__ void arrivals(lt_CudaWeights s, uint64_t *keys, int64_t *values) {
  int64_t t = thread_number(), n = s.rows * s.n;
  uint32_t bits[4];
  if (2 * t >= n) return;
  random_block(s.random, t, bits);
  for (int k = 0; k < 2; k++) {
    int64_t i = 2 * t + k;
    if (i >= n) break;
    double w = load_float<double>(s.weights, s.dtype, i);
    double time = w > 0 ? -m_log(lt_positive64(wide(bits, k))) / w : 0;
    keys[i] = w > 0 ? (uint64_t)__double_as_longlong(time + 0.0) : UINT64_MAX; /* -0 becomes 0 */
    values[i] = i;
  }
}

__global__ void row_keys(lt_CudaWeights s, const int64_t *values, uint64_t *keys) {
  int64_t i = thread_number();
  if (i < s.rows * s.n) keys[i] = (uint64_t)(values[i] / s.n);
}

__global__ void first_of_rows(lt_CudaWeights s, const int64_t *values, int64_t *out) {
  int64_t i = thread_number();
  if (i >= s.rows * s.k) return;
  int64_t row = i / s.k, at = row * s.n;
  out[i] = values[at + (i - row * s.k)] - at + LT_INDEX_BASE;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* Returns a grid for n elements, `each` to a thread. */
static dim3 threads_for(int64_t n, int64_t each) { return grid_for(blocks_for(n, each * THREADS)); }

template <class T>
static cudaError_t launch_floats(lt_CudaDistribution which, const lt_CudaDraw *d,
                                 cudaStream_t stream) {
  dim3 grid = threads_for(d->n, Source<T>::EACH), block(THREADS);
  bool vector = (uintptr_t)d->out % 16 == 0;
  switch (which) {
  case LT_CUDA_UNIFORM:
    return launch("uniform", draw_floats<T, LT_CUDA_UNIFORM>, grid, block, 0, stream, *d, vector);
  case LT_CUDA_NORMAL:
    return launch("normal", draw_floats<T, LT_CUDA_NORMAL>, grid, block, 0, stream, *d, vector);
  default:
    return launch("exponential", draw_floats<T, LT_CUDA_EXPONENTIAL>, grid, block, 0, stream, *d,
                  vector);
  }
}

cudaError_t lt_cuda_launch_draw(lt_CudaDistribution which, const lt_CudaDraw *d,
                                cudaStream_t stream) {
  if (which == LT_CUDA_INTEGERS)
    return launch("random", draw_integers, threads_for(d->n, 2), dim3(THREADS), 0, stream, *d);
  if (which == LT_CUDA_BERNOULLI)
    return launch("bernoulli", draw_bernoulli, threads_for(d->n, 4), dim3(THREADS), 0, stream, *d);
  return d->dtype == LT_float64 ? launch_floats<double>(which, d, stream)
                                : launch_floats<float>(which, d, stream);
}

cudaError_t lt_cuda_launch_check_probabilities(const void *probability, int dtype, int64_t n,
                                               lt_CudaFault fault, cudaStream_t stream) {
  return launch("check_probabilities", check_probabilities, threads_for(n, 1), dim3(THREADS), 0,
                stream, probability, dtype, n, fault);
}

cudaError_t lt_cuda_launch_keys(const lt_CudaRandom *random, int64_t n, uint64_t *keys,
                                int64_t *values, cudaStream_t stream) {
  return launch("random_keys", random_keys, threads_for(n, 2), dim3(THREADS), 0, stream, *random, n,
                keys, values);
}

cudaError_t lt_cuda_launch_sum_weights(const lt_CudaWeights *w, cudaStream_t stream) {
  return launch("weigh_rows", sum_weights_of_rows, grid_for(w->rows), dim3(LT_WARP), 0, stream, *w);
}

cudaError_t lt_cuda_launch_draw_with_replacement(const lt_CudaWeights *w, int64_t *out,
                                                 cudaStream_t stream) {
  return launch("multinomial", draw_with_replacement, threads_for(w->rows * w->k, 2), dim3(THREADS),
                0, stream, *w, out);
}

cudaError_t lt_cuda_launch_arrivals(const lt_CudaWeights *w, uint64_t *keys, int64_t *values,
                                    cudaStream_t stream) {
  return launch("arrivals", arrivals, threads_for(w->rows * w->n, 2), dim3(THREADS), 0, stream, *w,
                keys, values);
}

cudaError_t lt_cuda_launch_row_keys(const lt_CudaWeights *w, const int64_t *values, uint64_t *keys,
                                    cudaStream_t stream) {
  return launch("row_keys", row_keys, threads_for(w->rows * w->n, 1), dim3(THREADS), 0, stream, *w,
                values, keys);
}

cudaError_t lt_cuda_launch_first(const lt_CudaWeights *w, const int64_t *values, int64_t *out,
                                 cudaStream_t stream) {
  return launch("multinomial", first_of_rows, threads_for(w->rows * w->k, 1), dim3(THREADS), 0,
                stream, *w, values, out);
}
