/* reduce_line.cu: reductions that keep more than a number: where the best is, spread around the
 * mean, logsumexp. */
#include "reduce.cuh"

/* ---- the best and where it is ---------------------------------------------------------------- */

template <class T> struct Placed {
  T value;
  int64_t at; /* -1: nothing yet */
};
template <class T> LT_DEVICE_INLINE Placed<T> shuffled(Placed<T> v, int step) {
  return Placed<T>{shuffled(v.value, step), shuffled(v.at, step)};
}

template <class T> struct ArgOf {
  typedef T In;
  typedef Placed<T> State, Acc;
  bool smallest;
  __device__ __forceinline__ State nothing() const { return State{0, -1}; }
  /* A thread meets its elements in order, so the first of equals is the one it has. */
  __device__ __forceinline__ void one(State &s, T v, int64_t i) const {
    if (s.at < 0 || (s.value == s.value && ((smallest ? v < s.value : v > s.value) || v != v)))
      s = State{v, i};
  }
  __device__ __forceinline__ void take(State &s, const T (&v)[8], Places places) const {
    for (int k = 0; k < 8; k++) one(s, v[k], places.at(k));
  }
  __device__ __forceinline__ Acc close(State s) const { return s; }
  __device__ __forceinline__ Acc join(Acc a, Acc b) const {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool equal = (a_nan && b_nan) || a.value == b.value;
    bool better = a_nan ? false : b_nan || (smallest ? b.value < a.value : b.value > a.value);
    return equal ? (b.at < a.at ? b : a) : better ? b : a;
  }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, Acc a) const {
    if (p.out) store(p.out, p.out_dtype, i, a.value);
    p.at[i] = a.at + LT_INDEX_BASE;
  }
};

/* ---- squared distances from the mean --------------------------------------------------------- */

struct Moments {
  double n, mean, squares; /* how many, their mean, squared distances from it */
};
LT_DEVICE_INLINE Moments shuffled(Moments v, int step) {
  return Moments{shuffled(v.n, step), shuffled(v.mean, step), shuffled(v.squares, step)};
}

struct SpreadOf {
  typedef double In;
  typedef Moments State, Acc;
  double divisor;
  __device__ __forceinline__ Moments nothing() const { return Moments{0, 0, 0}; }
  /* Chan, Golub and LeVeque's formula (1979). */
  __device__ __forceinline__ Moments join(Moments a, Moments b) const {
    if (b.n == 0) return a;
    if (a.n == 0) return b;
    double n = a.n + b.n, d = b.mean - a.mean, share = b.n / n;
    return Moments{n, a.mean + d * share, a.squares + b.squares + d * d * (a.n * share)};
  }
  __device__ __forceinline__ void take(Moments &s, const double (&v)[8], Places) const {
    double mean = (((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))) * 0.125;
    double squares = 0;
    for (int k = 0; k < 8; k++) squares += (v[k] - mean) * (v[k] - mean);
    s = join(s, Moments{8, mean, squares});
  }
  __device__ __forceinline__ void one(Moments &s, double v, int64_t) const {
    s = join(s, Moments{1, v, 0 * v}); /* infinite: no distance is a number */
  }
  __device__ __forceinline__ Moments close(Moments s) const { return s; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, Moments a) const {
    store_float(p.out, p.out_dtype, i, a.squares / divisor);
  }
};

/* ---- log(sum(e^x)) --------------------------------------------------------------------------- */

template <class T> struct Exponentials {
  T most, sum; /* the largest x, and the sum of e^(x - base(most)) */
};
template <class T> LT_DEVICE_INLINE Exponentials<T> shuffled(Exponentials<T> v, int step) {
  return Exponentials<T>{shuffled(v.most, step), shuffled(v.sum, step)};
}

template <class T> struct LogSumExpOf {
  typedef T In;
  typedef Exponentials<T> State, Acc;
  __device__ __forceinline__ State nothing() const { return State{-(T)INFINITY, 0}; }
  /* An infinity cannot be subtracted from itself; e^x is 0 or infinite then, as it should be. */
  __device__ __forceinline__ T base(T most) const {
    return most == (T)INFINITY || most == -(T)INFINITY ? 0 : most;
  }
  __device__ __forceinline__ T moved(State s, T most) const {
    return s.sum == 0 || s.most == most ? s.sum : s.sum * m_exp(base(s.most) - base(most));
  }
  __device__ __forceinline__ Acc join(Acc a, Acc b) const {
    T most = Largest()(a.most, b.most);
    return Acc{most, moved(a, most) + moved(b, most)};
  }
  __device__ __forceinline__ void take(State &s, const T (&v)[8], Places) const {
    T most = s.most, sum = 0;
    for (int k = 0; k < 8; k++) most = Largest()(most, v[k]);
    for (int k = 0; k < 8; k++) sum += m_exp(v[k] - base(most));
    s = State{most, moved(s, most) + sum};
  }
  __device__ __forceinline__ void one(State &s, T v, int64_t) const {
    T most = Largest()(s.most, v);
    s = State{most, moved(s, most) + m_exp(v - base(most))};
  }
  __device__ __forceinline__ Acc close(State s) const { return s; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, Acc a) const {
    store_float(p.out, p.out_dtype, i, base(a.most) + m_log(a.sum));
  }
};

cudaError_t lt_cuda_launch_reduce_line(const lt_CudaReduce *r, cudaStream_t stream) {
  switch (r->reducer) {
  case LT_CUDA_ARG:
    if (r->work == LT_float32) return reduce_by("arg", ArgOf<float>{r->smallest}, r, stream);
    if (r->work == LT_float64) return reduce_by("arg", ArgOf<double>{r->smallest}, r, stream);
    return reduce_by("arg", ArgOf<int64_t>{r->smallest}, r, stream);
  case LT_CUDA_SPREAD:
    return reduce_by("var", SpreadOf{r->a}, r, stream);
  default:
    if (r->work == LT_float64) return reduce_by("logsumexp", LogSumExpOf<double>{}, r, stream);
    return reduce_by("logsumexp", LogSumExpOf<float>{}, r, stream);
  }
}
