/* reduce_line.metal: reductions with a state of two or three numbers: BEST and CENTERED in
 * ops.def. */
#include "reduce.metal.h"

/* ---- an extreme value and its index ---------------------------------------------------------- */

/* Is y better than x? */
template <typename T> static inline bool better(T y, T x) {
#define FORM_BEST(name, rule, better_)                                                             \
  case LT_REDUCTION_##name:                                                                        \
    return better_;
#include "reduce_cases.metal.h"
  return false;
}

template <typename T> struct ValueIndex {
  T value;
  int64_t at; /* -1: no element yet */
};
template <typename T> static inline ValueIndex<T> value_index(T value, int64_t at) {
  ValueIndex<T> v;
  v.value = value, v.at = at;
  return v;
}
template <typename T> static inline ValueIndex<T> lane_xor(ValueIndex<T> v, uint mask) {
  return value_index<T>(lane_xor(v.value, mask), lane_xor(v.at, mask));
}

/* The reducer of BEST: the best element and its index. NaN is better than any number. */
template <typename T> struct BestOf {
  typedef T In;
  typedef ValueIndex<T> Acc;
  static Acc nothing() { return value_index<T>(0, -1); }
  /* A thread gets its elements in order, so that of equal elements it keeps the first. */
  static Acc one(constant lt_MpsReduce &, Acc s, T v, int64_t i) {
    bool replaces = s.at < 0 || (s.value == s.value && (better<T>(v, s.value) || v != v));
    return replaces ? value_index<T>(v, i) : s;
  }
  static Acc take(constant lt_MpsReduce &p, Acc s, Eight<T> v) {
    for (int k = 0; k < 8; k++) s = one(p, s, v.v[k], v.at(k));
    return s;
  }
  static Acc join(Acc a, Acc b) {
    if (a.at < 0 || b.at < 0) return a.at < 0 ? b : a;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    bool equal = (a_nan && b_nan) || a.value == b.value;
    bool is_better = a_nan ? false : b_nan || better<T>(b.value, a.value);
    return equal ? (b.at < a.at ? b : a) : is_better ? b : a;
  }
  static void finish(Results to, constant lt_MpsReduce &, int64_t i, Acc a) {
    if (OUT_DTYPE >= 0) store(to.out, OUT_DTYPE, i, a.value);
    to.at[i] = a.at + LT_INDEX_BASE;
  }
};

LT_REDUCE_KERNELS(best_float, BestOf<float>)
LT_REDUCE_KERNELS(best_int64, BestOf<int64_t>)

/* ---- sums around a pivot --------------------------------------------------------------------- */

/* The state of CENTERED: the number of elements, a pivot, and a sum of terms relative to the
 * pivot. */
template <typename T> struct Part { T n, p, s; };
template <typename T> static inline Part<T> part_of(T n, T p, T s) {
  Part<T> part;
  part.n = n, part.p = p, part.s = s;
  return part;
}
template <typename T> static inline Part<T> lane_xor(Part<T> v, uint mask) {
  return part_of<T>(lane_xor(v.n, mask), lane_xor(v.p, mask), lane_xor(v.s, mask));
}

template <typename T> struct PartInMemory { typename InMemory<T>::Type n, p, s; };
template <typename T> struct InMemory<Part<T>> {
  typedef PartInMemory<T> Type;
  static Type pack(Part<T> v) {
    PartInMemory<T> parts = {InMemory<T>::pack(v.n), InMemory<T>::pack(v.p),
                             InMemory<T>::pack(v.s)};
    return parts;
  }
  static Part<T> unpack(Type v) {
    return part_of<T>(InMemory<T>::unpack(v.n), InMemory<T>::unpack(v.p), InMemory<T>::unpack(v.s));
  }
};

/* The reduction's form, of the kind CENTERED, as functions of the type that is computed in. */
template <typename T> struct Centered {
  static T identity() {
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  CASE(name, identity_)
#include "reduce_cases.metal.h"
    return (T)0;
  }
  static T combine(T x, T y) {
    (void)x, (void)y;
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  CASE(name, combine_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T center(T x, T n) {
    (void)x, (void)n;
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  CASE(name, center_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T joint(T n, T p, T m, T q) {
    (void)n, (void)p, (void)m, (void)q;
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  CASE(name, joint_)
#include "reduce_cases.metal.h"
    return p;
  }
  static T term(T x, T p) {
    (void)x, (void)p;
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  CASE(name, term_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T moved(T n, T p, T s, T r) {
    (void)n, (void)p, (void)s, (void)r;
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  CASE(name, moved_)
#include "reduce_cases.metal.h"
    return s;
  }
  static T finish(T n, T p, T s, T a) {
    (void)n, (void)p, (void)s, (void)a;
#define FORM_CENTERED(name, rule, identity_, combine_, center_, joint_, term_, moved_, finish_)    \
  CASE(name, finish_)
#include "reduce_cases.metal.h"
    return s;
  }
};

/* The same for the kind CENTERED_WIDE. */
template <typename T> struct WideCentered {
  static T identity() {
#define FORM_CENTERED_WIDE(name, rule, identity_, combine_, center_, joint_, term_, moved_,        \
                           finish_)                                                                \
  CASE(name, identity_)
#include "reduce_cases.metal.h"
    return (T)0;
  }
  static T combine(T x, T y) {
    (void)x, (void)y;
#define FORM_CENTERED_WIDE(name, rule, identity_, combine_, center_, joint_, term_, moved_,        \
                           finish_)                                                                \
  CASE(name, combine_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T center(T x, T n) {
    (void)x, (void)n;
#define FORM_CENTERED_WIDE(name, rule, identity_, combine_, center_, joint_, term_, moved_,        \
                           finish_)                                                                \
  CASE(name, center_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T joint(T n, T p, T m, T q) {
    (void)n, (void)p, (void)m, (void)q;
#define FORM_CENTERED_WIDE(name, rule, identity_, combine_, center_, joint_, term_, moved_,        \
                           finish_)                                                                \
  CASE(name, joint_)
#include "reduce_cases.metal.h"
    return p;
  }
  static T term(T x, T p) {
    (void)x, (void)p;
#define FORM_CENTERED_WIDE(name, rule, identity_, combine_, center_, joint_, term_, moved_,        \
                           finish_)                                                                \
  CASE(name, term_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T moved(T n, T p, T s, T r) {
    (void)n, (void)p, (void)s, (void)r;
#define FORM_CENTERED_WIDE(name, rule, identity_, combine_, center_, joint_, term_, moved_,        \
                           finish_)                                                                \
  CASE(name, moved_)
#include "reduce_cases.metal.h"
    return s;
  }
  static T finish(T n, T p, T s, T a) {
    (void)n, (void)p, (void)s, (void)a;
#define FORM_CENTERED_WIDE(name, rule, identity_, combine_, center_, joint_, term_, moved_,        \
                           finish_)                                                                \
  CASE(name, finish_)
#include "reduce_cases.metal.h"
    return s;
  }
};

/* The reducer of CENTERED. Joining two states moves both sums to the joint pivot. */
template <typename Form, typename T> struct CenteredOf {
  typedef float In;
  typedef Part<T> Acc;
  static Acc nothing() { return part_of<T>((T)0, Form::identity(), (T)0); }
  static Acc join(Acc a, Acc b) {
    if (b.n == (T)0) return a;
    if (a.n == (T)0) return b;
    T r = Form::joint(a.n, a.p, b.n, b.p);
    return part_of<T>(a.n + b.n, r, Form::moved(a.n, a.p, a.s, r) + Form::moved(b.n, b.p, b.s, r));
  }
  static Acc take(constant lt_MpsReduce &, Acc s, Eight<float> v) {
    T e[8], x[8], sum = (T)0;
    for (int k = 0; k < 8; k++) e[k] = x[k] = (T)v.v[k];
    for (int step = 1; step < 8; step *= 2)
      for (int k = 0; k < 8; k += 2 * step) e[k] = Form::combine(e[k], e[k + step]);
    T p = Form::center(e[0], (T)8);
    for (int k = 0; k < 8; k++) sum = sum + Form::term(x[k], p);
    return join(s, part_of<T>((T)8, p, sum));
  }
  static Acc one(constant lt_MpsReduce &, Acc s, float v, int64_t) {
    T p = Form::center((T)v, (T)1);
    return join(s, part_of<T>((T)1, p, Form::term((T)v, p)));
  }
  static void finish(Results to, constant lt_MpsReduce &p, int64_t i, Acc s) {
    store_result(to.out, i, Form::finish(s.n, s.p, s.s, (T)p.a));
  }
};

typedef CenteredOf<Centered<float>, float> CenteredFloat;
typedef CenteredOf<WideCentered<Extended>, Extended> CenteredWide;
LT_REDUCE_KERNELS(centered, CenteredFloat)
LT_REDUCE_KERNELS(centered_wide, CenteredWide)
