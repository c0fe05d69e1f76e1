/* reduce.metal: reductions with a state of one number: those that ops.def defines as a FOLD, and
 * norms of any order. */
#include "reduce.metal.h"

/* ---- the expressions ------------------------------------------------------------------------- */

/* The reduction's form, of the kind FOLD, as functions of the type that is computed in. */
template <typename T> struct Folds {
  static T identity() {
#define FORM_FOLD(name, rule, identity_, element_, combine_, finish_) CASE(name, identity_)
#include "reduce_cases.metal.h"
    return (T)0;
  }
  static T element(T x) {
#define FORM_FOLD(name, rule, identity_, element_, combine_, finish_) CASE(name, element_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T combine(T x, T y) {
    (void)y;
#define FORM_FOLD(name, rule, identity_, element_, combine_, finish_) CASE(name, combine_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T finish(T x, T n, T a) {
    (void)n, (void)a;
#define FORM_FOLD(name, rule, identity_, element_, combine_, finish_) CASE(name, finish_)
#include "reduce_cases.metal.h"
    return x;
  }
};

/* The same for the kind FOLD_WIDE. */
template <typename T> struct WideFolds {
  static T identity() {
#define FORM_FOLD_WIDE(name, rule, identity_, element_, combine_, finish_) CASE(name, identity_)
#include "reduce_cases.metal.h"
    return (T)0;
  }
  static T element(T x) {
#define FORM_FOLD_WIDE(name, rule, identity_, element_, combine_, finish_) CASE(name, element_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T combine(T x, T y) {
    (void)y;
#define FORM_FOLD_WIDE(name, rule, identity_, element_, combine_, finish_) CASE(name, combine_)
#include "reduce_cases.metal.h"
    return x;
  }
  static T finish(T x, T n, T a) {
    (void)n, (void)a;
#define FORM_FOLD_WIDE(name, rule, identity_, element_, combine_, finish_) CASE(name, finish_)
#include "reduce_cases.metal.h"
    return x;
  }
};

/* ---- folds ----------------------------------------------------------------------------------- */

/* The types of a fold: `Few`, in which eight elements are combined, `Acc`, in which these partial
 * results are combined, and `Result`. So the error of a sum does not grow with the number of
 * elements, and little work is done in wide numbers. A sum that does not fit in a float is infinite
 * before it is divided, as on the CPU. */
template <typename Form, typename Load, typename Few, typename Sum, typename Result,
          typename FormFew, typename FormResult>
struct FoldOf {
  typedef Load In;
  typedef Sum Acc;
  static Acc nothing() { return Form::identity(); }
  static Acc join(Acc x, Acc y) { return Form::combine(x, y); }
  static Acc one(constant lt_MpsReduce &, Acc s, In v, int64_t) {
    return join(s, (Acc)FormFew::element((Few)v));
  }
  static Acc take(constant lt_MpsReduce &, Acc s, Eight<In> v) {
    Few e[8];
    for (int k = 0; k < 8; k++) e[k] = FormFew::element((Few)v.v[k]);
    for (int step = 1; step < 8; step *= 2)
      for (int k = 0; k < 8; k += 2 * step) e[k] = FormFew::combine(e[k], e[k + step]);
    return join(s, (Acc)e[0]);
  }
  static void finish(Results to, constant lt_MpsReduce &p, int64_t i, Acc x) {
    store_result(to.out, i,
                 FormResult::finish(convert<Result>(x), Count<Result>::of(p.n), (Result)p.a));
  }
};

typedef FoldOf<Folds<Wide>, float, float, Wide, float, Folds<float>, Folds<float>> FoldFloat;
typedef FoldOf<Folds<int64_t>, int64_t, int64_t, int64_t, int64_t, Folds<int64_t>, Folds<int64_t>>
    FoldInt64;
typedef FoldOf<Folds<int64_t>, bool, int, int64_t, int64_t, Folds<int>, Folds<int64_t>> FoldTruth;
typedef FoldOf<WideFolds<Extended>, float, Extended, Extended, Extended, WideFolds<Extended>,
               WideFolds<Extended>>
    FoldWide;

/* ---- norms of any order ---------------------------------------------------------------------- */

/* Returns x^p for x >= 0, as C's pow does: 1 to the power of NaN is 1. */
static inline Extended power_of(Extended x, Wide p) {
  if (p.high != p.high) return x.high == 1 && x.low == 0 && x.e == 0 ? x : Extended(NAN);
  if (x.high == 0) return p.high > 0 ? Extended(0.0f) : Extended(INFINITY);
  if (!(x.high < INFINITY)) return x.high != x.high || p.high > 0 ? x : Extended(0.0f);
  return exp2_of(log2_of(x) * p);
}

/* The reducer of norms: the sum of |x|^a. */
struct Powers {
  typedef float In;
  typedef Extended Acc;
  static Acc nothing() { return Extended(0.0f); }
  static Acc join(Acc x, Acc y) { return x + y; }
  static Acc one(constant lt_MpsReduce &p, Acc s, In v, int64_t) {
    return s + power_of(Extended(fabs(v)), Wide(p.a));
  }
  static Acc take(constant lt_MpsReduce &p, Acc s, Eight<In> v) {
    for (int k = 0; k < 8; k++) s = one(p, s, v.v[k], 0);
    return s;
  }
  static void finish(Results to, constant lt_MpsReduce &p, int64_t i, Acc s) {
    store_result(to.out, i, power_of(s, Wide(1) / Wide(p.a)));
  }
};

LT_REDUCE_KERNELS(float, FoldFloat)
LT_REDUCE_KERNELS(int64, FoldInt64)
LT_REDUCE_KERNELS(truth, FoldTruth)
LT_REDUCE_KERNELS(wide, FoldWide)
LT_REDUCE_KERNELS(powers, Powers)
