/* reduce.cu: reductions with a state of one number: those that ops.def defines as a FOLD, and norms
 * of any order. */
#include "reduce.cuh"

#define FORM_CENTERED      NOTHING
#define FORM_CENTERED_WIDE NOTHING
#define FORM_BEST          NOTHING

/* ---- the expressions ------------------------------------------------------------------------- */

#define FORM_FOLD(name, rule, identity_, element_, combine_, finish_)                              \
  struct Form_##name {                                                                             \
    TEXT identity() { return (T)(identity_); }                                                     \
    TEXT element(T x) { return (T)(element_); }                                                    \
    TEXT combine(T x, T y) { return (T)(combine_); }                                               \
    TEXT finish(T x, T n, T a) {                                                                   \
      (void)n, (void)a;                                                                            \
      return (T)(finish_);                                                                         \
    }                                                                                              \
  };
#define FORM_FOLD_WIDE                   FORM_FOLD
#define LT_REDUCE(name, rule, form, ...) FORM(name, rule, form)
#define LT_FORM(name, rule, form)        FORM(name, rule, form)
#include "ops.def"
#undef FORM_FOLD
#undef FORM_FOLD_WIDE

/* ---- folds ----------------------------------------------------------------------------------- */

/* The types in which eight elements are combined, in which these partial results are combined, and
 * in which the result is computed. So the error of a sum does not grow with the number of elements,
 * and GPUs that are slow in double do little work in it. A sum that does not fit in a float is
 * infinite before it is divided, as on the CPU. */
template <class In> struct Types;
template <> struct Types<float> {
  typedef float Few, Result;
  typedef double Many;
};
template <> struct Types<double> { typedef double Few, Many, Result; };
template <> struct Types<int64_t> { typedef int64_t Few, Many, Result; };
template <> struct Types<Nonzero> {
  typedef int Few;
  typedef int64_t Many, Result;
};

template <class T> LT_DEVICE_INLINE T number_of(T v) { return v; }
LT_DEVICE_INLINE int number_of(Nonzero v) { return v.is; }

LT_DEVICE_INLINE void store_result(const Reduction &p, int64_t i, float v) {
  store_float(p.out, p.out_dtype, i, v);
}
LT_DEVICE_INLINE void store_result(const Reduction &p, int64_t i, double v) {
  store_float(p.out, p.out_dtype, i, v);
}
LT_DEVICE_INLINE void store_result(const Reduction &p, int64_t i, int64_t v) {
  store(p.out, p.out_dtype, i, v);
}

/* The reducer of a FOLD: elements are combined by eights in Few, the eights in Acc. */
template <class Form, class In_> struct FoldOf {
  typedef In_ In;
  typedef typename Types<In>::Few Few;
  typedef typename Types<In>::Many Acc;
  double a;
  __device__ __forceinline__ Acc nothing() const { return Form::template identity<Acc>(); }
  __device__ __forceinline__ Few lifted(In v) const {
    return Form::template element<Few>(number_of(v));
  }
  __device__ __forceinline__ Few both(Few x, Few y) const {
    return Form::template combine<Few>(x, y);
  }
  __device__ __forceinline__ Acc join(Acc x, Acc y) const {
    return Form::template combine<Acc>(x, y);
  }
  __device__ __forceinline__ void take(Acc &s, const In (&v)[8], PackIndices) const {
    Few e[8];
    for (int k = 0; k < 8; k++) e[k] = lifted(v[k]);
    s = join(s, (Acc)both(both(both(e[0], e[1]), both(e[2], e[3])),
                          both(both(e[4], e[5]), both(e[6], e[7]))));
  }
  __device__ __forceinline__ void one(Acc &s, In v, int64_t) const { s = join(s, (Acc)lifted(v)); }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, Acc x) const {
    typedef typename Types<In>::Result Result;
    store_result(p, i, Form::template finish<Result>((Result)x, (Result)p.n, (Result)a));
  }
};

/* ---- norms of any order ---------------------------------------------------------------------- */

/* The reducer of norms: the sum of |x|^power in double. */
struct PowersOf {
  typedef double In, Acc;
  double power;
  __device__ __forceinline__ double nothing() const { return 0; }
  __device__ __forceinline__ void take(double &s, const double (&v)[8], PackIndices) const {
#pragma unroll 1
    for (int k = 0; k < 8; k++) one(s, v[k], 0);
  }
  __device__ __forceinline__ void one(double &s, double v, int64_t) const {
    s += power == 1 ? fabs(v) : pow(fabs(v), power);
  }
  __device__ __forceinline__ double join(double a, double b) const { return a + b; }
  __device__ __forceinline__ void finish(const Reduction &p, int64_t i, double a) const {
    store_float(p.out, p.out_dtype, i, power == 1 ? a : pow(a, 1 / power));
  }
};

/* ---- launching ------------------------------------------------------------------------------- */

#define LAUNCH_FLOATING(name)                                                                      \
  if (r->work == LT_float32) return reduce_by(#name, FoldOf<Form_##name, float>{r->a}, r, stream); \
  return reduce_by(#name, FoldOf<Form_##name, double>{r->a}, r, stream);
#define LAUNCH_WIDE(name) return reduce_by(#name, FoldOf<Form_##name, double>{r->a}, r, stream);
#define LAUNCH_ORDERED(name)                                                                       \
  if (r->work == LT_int64) return reduce_by(#name, FoldOf<Form_##name, int64_t>{r->a}, r, stream); \
  LAUNCH_FLOATING(name)
#define LAUNCH_BOOL(name) return reduce_by(#name, FoldOf<Form_##name, Nonzero>{r->a}, r, stream);
#define LAUNCH_SUM        LAUNCH_ORDERED
#define LAUNCH_FLOAT      LAUNCH_FLOATING
#define LAUNCH_COUNT      LAUNCH_BOOL

#define FORM_FOLD(name, rule, ...)                                                                 \
  case LT_REDUCTION_##name: {                                                                      \
    LAUNCH_##rule(name)                                                                            \
  }
#define FORM_FOLD_WIDE(name, rule, ...)                                                            \
  case LT_REDUCTION_##name: {                                                                      \
    LAUNCH_WIDE(name)                                                                              \
  }

cudaError_t lt_cuda_launch_reduce(const lt_AccelReduce *r, cudaStream_t stream) {
  switch (r->reduction) {
#define LT_REDUCE(name, rule, form, ...) FORM(name, rule, form)
#define LT_FORM(name, rule, form)        FORM(name, rule, form)
#include "ops.def"
  case LT_REDUCTION_POWERS:
    return reduce_by("norm_p", PowersOf{r->a}, r, stream);
  default:
    return lt_cuda_launch_reduce_line(r, stream);
  }
}
