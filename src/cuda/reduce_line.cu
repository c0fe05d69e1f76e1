/* reduce_line.cu: reductions with a state of two or three numbers: BEST and CENTERED in ops.def. */
#include "reduce.cuh"

#define FORM_FOLD      NOTHING
#define FORM_FOLD_WIDE NOTHING

/* ---- the expressions ------------------------------------------------------------------------- */

#define FORM_BEST(name, rule, better_)                                                             \
  struct Form_##name {                                                                             \
    template <class T> static __device__ __forceinline__ bool better(T y, T x) { return better_; } \
  };
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  struct Form_##name {                                                                             \
    TEXT identity() { return (T)(identity_); }                                                     \
    TEXT combine(T x, T y) { return (T)(combine_); }                                               \
    TEXT center(T x, T n) {                                                                        \
      (void)n;                                                                                     \
      return (T)(center_);                                                                         \
    }                                                                                              \
    TEXT joint(T n, T p, T m, T q) {                                                               \
      (void)n, (void)m;                                                                            \
      return (T)(joint_);                                                                          \
    }                                                                                              \
    TEXT term(T x, T p) { return (T)(term_); }                                                     \
    TEXT moved(T n, T p, T s, T r) {                                                               \
      (void)n;                                                                                     \
      return (T)(moved_);                                                                          \
    }                                                                                              \
    TEXT finish(T n, T p, T s, T a) {                                                              \
      (void)n, (void)p, (void)a;                                                                   \
      return (T)(finish_);                                                                         \
    }                                                                                              \
  };
#define FORM_CENTERED_WIDE               FORM_CENTERED
#define LT_REDUCE(name, rule, form, ...) FORM(name, rule, form)
#include "ops.def"
#undef FORM_BEST
#undef FORM_CENTERED
#undef FORM_CENTERED_WIDE

/* ---- an extreme value and its index ---------------------------------------------------------- */

template <class T> struct ValueIndex {
  T value;
  int64_t at; /* -1: no element yet */
};
template <class T> LT_DEVICE_INLINE ValueIndex<T> shuffled(ValueIndex<T> v, int step) {
  return ValueIndex<T>{shuffled(v.value, step), shuffled(v.at, step)};
}

/* The reducer of BEST: the best element and its index. NaN is better than any number. */
template <class Form, class T> struct BestOf {
  typedef T In;
  typedef ValueIndex<T> Acc;
  __device__ __forceinline__ Acc nothing() const { return Acc{0, -1}; }
  /* A thread gets its elements in order, so that of equal elements it keeps the first. */
  __device__ __forceinline__ void one(Acc &s, T v, int64_t i) const {
    if (s.at < 0 || (s.value == s.value && (Form::template better<T>(v, s.value) || v != v)))
      s = Acc{v, i};
  }
  __device__ __forceinline__ void take(Acc &s, const T (&v)[8], PackIndices indices) const {
    for (int k = 0; k < 8; k++) one(s, v[k], indices.at(k));
  }
  __device__ __forceinline__ Acc join(Acc a, Acc b) const {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool equal = (a_nan && b_nan) || a.value == b.value;
    bool better = a_nan ? false : b_nan || Form::template better<T>(b.value, a.value);
    return equal ? (b.at < a.at ? b : a) : better ? b : a;
  }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, Acc a) const {
    if (p.out) store(p.out, p.out_dtype, i, a.value);
    p.at[i] = a.at + LT_INDEX_BASE;
  }
};

/* ---- sums around a pivot --------------------------------------------------------------------- */

template <class T> struct Part { T n, p, s; };
template <class T> LT_DEVICE_INLINE Part<T> shuffled(Part<T> v, int step) {
  return Part<T>{shuffled(v.n, step), shuffled(v.p, step), shuffled(v.s, step)};
}

/* The reducer of CENTERED: the number of elements, a pivot, and a sum of terms relative to the
 * pivot. Joining two states moves both sums to the joint pivot. */
template <class Form, class T> struct CenteredOf {
  typedef T In;
  typedef Part<T> Acc;
  double a;
  __device__ __forceinline__ Acc nothing() const { return Acc{0, Form::template identity<T>(), 0}; }
  __device__ __forceinline__ T both(T x, T y) const { return Form::template combine<T>(x, y); }
  __device__ __forceinline__ Acc join(Acc a, Acc b) const {
    if (b.n == 0) return a;
    if (a.n == 0) return b;
    T r = Form::template joint<T>(a.n, a.p, b.n, b.p);
    return Acc{a.n + b.n, r,
               Form::template moved<T>(a.n, a.p, a.s, r) +
                   Form::template moved<T>(b.n, b.p, b.s, r)};
  }
  __device__ __forceinline__ void take(Acc &s, const T (&v)[8], PackIndices) const {
    T x = both(both(both(v[0], v[1]), both(v[2], v[3])), both(both(v[4], v[5]), both(v[6], v[7])));
    T p = Form::template center<T>(x, (T)8), sum = 0;
    for (int k = 0; k < 8; k++) sum += Form::template term<T>(v[k], p);
    s = join(s, Acc{8, p, sum});
  }
  __device__ __forceinline__ void one(Acc &s, T v, int64_t) const {
    T p = Form::template center<T>(v, (T)1);
    s = join(s, Acc{1, p, Form::template term<T>(v, p)});
  }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, Acc s) const {
    store_float(p.out, p.out_dtype, i, Form::template finish<T>(s.n, s.p, s.s, (T)a));
  }
};

/* ---- launching ------------------------------------------------------------------------------- */

#define LAUNCH(name, Of, T, ...)                                                                   \
  return reduce_by(#name, Of<Form_##name, T>{__VA_ARGS__}, r, stream);
#define FORM_BEST(name, rule, ...)                                                                 \
  case LT_REDUCTION_##name:                                                                        \
    if (r->work == LT_float32) LAUNCH(name, BestOf, float)                                         \
    if (r->work == LT_float64) LAUNCH(name, BestOf, double)                                        \
    LAUNCH(name, BestOf, int64_t)
#define FORM_CENTERED(name, rule, ...)                                                             \
  case LT_REDUCTION_##name:                                                                        \
    if (r->work == LT_float32) LAUNCH(name, CenteredOf, float, r->a)                               \
    LAUNCH(name, CenteredOf, double, r->a)
#define FORM_CENTERED_WIDE(name, rule, ...)                                                        \
  case LT_REDUCTION_##name:                                                                        \
    LAUNCH(name, CenteredOf, double, r->a)

cudaError_t lt_cuda_launch_reduce_line(const lt_AccelReduce *r, cudaStream_t stream) {
  switch (r->reduction) {
#define LT_REDUCE(name, rule, form, ...) FORM(name, rule, form)
#include "ops.def"
  default:
    return cudaErrorInvalidValue;
  }
}
