/* reduce.cu: sums, products, the largest and smallest, counts and norms. */
#include "reduce.cuh"

template <class T> struct SumOf;

/* A thread adds eight floats in pairs, and that to the rest in double: so the error does not grow
 * with the number of elements, and devices that are slow in double do little of it. */
template <> struct SumOf<float> {
  typedef float In;
  typedef double State, Acc;
  float divisor;
  __device__ __forceinline__ double nothing() const { return 0; }
  __device__ __forceinline__ void take(double &s, const float (&v)[8], Places) const {
    s += (double)(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));
  }
  __device__ __forceinline__ void one(double &s, float v, int64_t) const { s += (double)v; }
  __device__ __forceinline__ double close(double s) const { return s; }
  __device__ __forceinline__ double join(double a, double b) const { return a + b; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, double a) const {
    float sum = (float)a;
    store_float(p.out, p.out_dtype, i, divisor != 0 ? sum / divisor : sum);
  }
};
template <> struct SumOf<double> {
  typedef double In, State, Acc;
  double divisor;
  __device__ __forceinline__ double nothing() const { return 0; }
  __device__ __forceinline__ void take(double &s, const double (&v)[8], Places) const {
    s += ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
  }
  __device__ __forceinline__ void one(double &s, double v, int64_t) const { s += v; }
  __device__ __forceinline__ double close(double s) const { return s; }
  __device__ __forceinline__ double join(double a, double b) const { return a + b; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, double a) const {
    store_float(p.out, p.out_dtype, i, divisor != 0 ? a / divisor : a);
  }
};
template <> struct SumOf<int64_t> { /* wraps */
  typedef int64_t In, State, Acc;
  __device__ __forceinline__ int64_t nothing() const { return 0; }
  __device__ __forceinline__ void take(int64_t &s, const int64_t (&v)[8], Places) const {
    for (int k = 0; k < 8; k++) s = join(s, v[k]);
  }
  __device__ __forceinline__ void one(int64_t &s, int64_t v, int64_t) const { s = join(s, v); }
  __device__ __forceinline__ int64_t close(int64_t s) const { return s; }
  __device__ __forceinline__ int64_t join(int64_t a, int64_t b) const {
    return (int64_t)((uint64_t)a + (uint64_t)b);
  }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, int64_t a) const {
    store(p.out, p.out_dtype, i, a);
  }
};

LT_DEVICE_INLINE float times(float a, float b) { return a * b; }
LT_DEVICE_INLINE double times(double a, double b) { return a * b; }
LT_DEVICE_INLINE int64_t times(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}

template <class T> struct ProductOf {
  typedef T In, State, Acc;
  __device__ __forceinline__ T nothing() const { return 1; }
  __device__ __forceinline__ void take(T &s, const T (&v)[8], Places) const {
    s = times(s, times(times(times(v[0], v[1]), times(v[2], v[3])),
                       times(times(v[4], v[5]), times(v[6], v[7]))));
  }
  __device__ __forceinline__ void one(T &s, T v, int64_t) const { s = times(s, v); }
  __device__ __forceinline__ T close(T s) const { return s; }
  __device__ __forceinline__ T join(T a, T b) const { return times(a, b); }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, T a) const {
    store(p.out, p.out_dtype, i, a);
  }
};

template <class T> LT_DEVICE_INLINE T lowest() { return -(T)INFINITY; }
template <> __device__ __forceinline__ int64_t lowest<int64_t>() { return INT64_MIN; }
template <class T> LT_DEVICE_INLINE T highest() { return (T)INFINITY; }
template <> __device__ __forceinline__ int64_t highest<int64_t>() { return INT64_MAX; }
LT_DEVICE_INLINE int64_t m_fabs(int64_t v) { return v; } /* norms are of floats */

template <class T> struct BestOf {
  typedef T In, State, Acc;
  bool smallest, absolute;
  __device__ __forceinline__ T nothing() const { return smallest ? highest<T>() : lowest<T>(); }
  __device__ __forceinline__ T join(T a, T b) const {
    return (smallest ? b < a : b > a) || b != b ? b : a; /* once NaN, always NaN */
  }
  __device__ __forceinline__ void take(T &s, const T (&v)[8], Places) const {
    for (int k = 0; k < 8; k++) one(s, v[k], 0);
  }
  __device__ __forceinline__ void one(T &s, T v, int64_t) const {
    s = join(s, absolute ? m_fabs(v) : v);
  }
  __device__ __forceinline__ T close(T s) const { return s; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, T a) const {
    store(p.out, p.out_dtype, i, a);
  }
};

struct CountOf {
  typedef Truth In;
  typedef int64_t State, Acc;
  int reducer;
  __device__ __forceinline__ int64_t nothing() const { return 0; }
  __device__ __forceinline__ void take(int64_t &s, const Truth (&v)[8], Places) const {
    int count = 0;
    for (int k = 0; k < 8; k++) count += v[k].is;
    s += count;
  }
  __device__ __forceinline__ void one(int64_t &s, Truth v, int64_t) const { s += v.is; }
  __device__ __forceinline__ int64_t close(int64_t s) const { return s; }
  __device__ __forceinline__ int64_t join(int64_t a, int64_t b) const { return a + b; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, int64_t a) const {
    store(p.out, p.out_dtype, i,
          reducer == LT_CUDA_ALL   ? (int64_t)(a == p.n)
          : reducer == LT_CUDA_ANY ? (int64_t)(a > 0)
                                   : a);
  }
};

struct SquaresOf {
  typedef double In, State, Acc;
  __device__ __forceinline__ double nothing() const { return 0; }
  __device__ __forceinline__ void take(double &s, const double (&v)[8], Places) const {
    double a = 0, b = 0;
    for (int k = 0; k < 4; k++) a += v[k] * v[k], b += v[k + 4] * v[k + 4];
    s += a + b;
  }
  __device__ __forceinline__ void one(double &s, double v, int64_t) const { s += v * v; }
  __device__ __forceinline__ double close(double s) const { return s; }
  __device__ __forceinline__ double join(double a, double b) const { return a + b; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, double a) const {
    store_float(p.out, p.out_dtype, i, sqrt(a));
  }
};

struct PowersOf {
  typedef double In, State, Acc;
  double power;
  __device__ __forceinline__ double nothing() const { return 0; }
  __device__ __forceinline__ void take(double &s, const double (&v)[8], Places) const {
#pragma unroll 1
    for (int k = 0; k < 8; k++) one(s, v[k], 0);
  }
  __device__ __forceinline__ void one(double &s, double v, int64_t) const {
    s += power == 1 ? fabs(v) : pow(fabs(v), power);
  }
  __device__ __forceinline__ double close(double s) const { return s; }
  __device__ __forceinline__ double join(double a, double b) const { return a + b; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, double a) const {
    store_float(p.out, p.out_dtype, i, power == 1 ? a : pow(a, 1 / power));
  }
};

cudaError_t lt_cuda_launch_reduce(const lt_CudaReduce *r, cudaStream_t stream) {
  switch (r->reducer) {
  case LT_CUDA_SUM:
    if (r->work == LT_float32) return reduce_by("sum", SumOf<float>{(float)r->a}, r, stream);
    if (r->work == LT_float64) return reduce_by("sum", SumOf<double>{r->a}, r, stream);
    return reduce_by("sum", SumOf<int64_t>{}, r, stream);
  case LT_CUDA_PRODUCT:
    if (r->work == LT_float32) return reduce_by("prod", ProductOf<float>{}, r, stream);
    if (r->work == LT_float64) return reduce_by("prod", ProductOf<double>{}, r, stream);
    return reduce_by("prod", ProductOf<int64_t>{}, r, stream);
  case LT_CUDA_BEST:
    if (r->work == LT_float32)
      return reduce_by("best", BestOf<float>{r->smallest, r->absolute}, r, stream);
    if (r->work == LT_float64)
      return reduce_by("best", BestOf<double>{r->smallest, r->absolute}, r, stream);
    return reduce_by("best", BestOf<int64_t>{r->smallest, r->absolute}, r, stream);
  case LT_CUDA_COUNT:
  case LT_CUDA_ALL:
  case LT_CUDA_ANY:
    return reduce_by("count", CountOf{r->reducer}, r, stream);
  case LT_CUDA_SQUARES:
    return reduce_by("norm", SquaresOf{}, r, stream);
  case LT_CUDA_POWERS:
    return reduce_by("norm_p", PowersOf{r->a}, r, stream);
  default:
    return lt_cuda_launch_reduce_line(r, stream);
  }
}
