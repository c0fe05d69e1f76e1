/* loops.h: the vector loops of one compute type, generated from ops.def. A source file defines
 *
 *   T, U                                        the type, and for integers its unsigned counterpart
 *   LT_IS_FLOAT or LT_IS_INTEGER or LT_IS_BOOL or LT_IS_COMPLEX   the kind of type
 *   M(f), for floats and complex numbers        the math function f for the type
 *   R, RM, RE, IM, MAKE, for complex numbers    see mathx.h
 *   TRUNCDIV_OF_TYPE(x, y, near), for integers  the division of division.h for the type
 *   FIELD                                       the type's member of lt_Number
 *   TABLE                                       name of the exported table, before _<LT_ISA>
 *   LT_SMALL, for integers of 8 and 16 bits     their dtype: the table has the loops of small_ops.h
 *                                               only, loads of such dtypes and stores of this one
 *
 * and includes this file; it is compiled once for each instruction set, whose name is LT_ISA.
 *
 * A loop whose expression calls a math function runs over whole groups of LANES elements, the last
 * one padded by repeating an element, so that no element is computed by a scalar variant that
 * rounds differently. */
#include "vector.h"
#include "maps.h"
#include "opids.h"
#include "half.h"
#include "half_vectors.h"
#include "integer_vectors.h"
#ifdef LT_IS_COMPLEX
#include "maths_complex.h"
#else
#include "maths.h"
#endif
#include "float64_ops.h"
#ifdef LT_IS_DOUBLE
#include "special_float64.h"
#endif

#define LANES LT_SPREAD_SLACK /* 16: a multiple of every vector's length */
#define BLOCK 256             /* elements whose range is checked together; a multiple of LANES */

#define JOIN_(a, b, c, d) a##b##c##d
#define JOIN(a, b, c, d)  JOIN_(a, b, c, d)

/* ---- macros used in expressions -------------------------------------------------------------- */

#ifdef LT_IS_FLOAT
#define LT_MATHX_FLOAT static inline __attribute__((always_inline, unused))
#elif defined LT_IS_COMPLEX
#define LT_MATHX_COMPLEX static inline __attribute__((unused))
#else
#define LT_MATHX_INTEGER static inline __attribute__((unused))
#endif
#ifdef LT_IS_INTEGER
#define TRUNCDIV(x, y) TRUNCDIV_OF_TYPE(x, y, LT_NEAR)
#define TRUNCMOD(x, y) ((y) == 0 ? (T)0 : (T)((U)(x) - (U)TRUNCDIV(x, y) * (U)(y)))
#endif
#include "mathx.h"

#ifdef LT_IS_FLOAT
#include "clamp.h"
#endif
#ifdef LT_IS_DOUBLE
#include "float64_ranges.h"
#endif

#ifdef LT_IS_BOOL
#undef NOT
#define NOT(x)   (!(x))
#define VALUE(e) ((T)((e) != 0))
#else
#define VALUE(e) ((T)(e))
#endif
#define TRUTH_VALUE(e) ((uint8_t)((e) != 0))

/* ---- loops ----------------------------------------------------------------------------------- */

/* Whether an expression, after macro expansion, calls a function that has vector variants, or more
 * steps than the plain ones of mathx.h; a constant at compile time. Integers are exact in any
 * variant. */
#ifdef LT_IS_FLOAT
#define CALLS(text)                                                                                \
  (__builtin_strstr(text, "lt_") != NULL && __builtin_strstr(text, "lt_plain_") == NULL)
#elif defined LT_IS_COMPLEX
#define CALLS(text) (__builtin_strstr(text, "lt_") != NULL)
#else
#define CALLS(text) 0
#endif

/* Returns whether all n elements are in the range. n is a multiple of LANES. */
#ifdef LT_IS_FLOAT32
#define NEAR_RANGE(name)  lt_near_range(name)
#define IS_LEFT(op, x, y) ((void)(op), lt_is_leftf(x, y))
static inline bool all_in(lt_Range range, int64_t n, const float *x) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t distance = (lt_bits(x[i]) & range.mask) - range.low;
    most = distance > most ? distance : most;
  }
  return most <= range.span;
}
#elif defined LT_IS_DOUBLE
#define NEAR_RANGE(name)  lt_near_range64(name)
#define IS_LEFT(op, x, y) ((void)(y), lt_is_left(op, x))
static inline bool all_in(lt_Range range, int64_t n, const double *x) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t distance = ((uint32_t)(lt_bits64(x[i]) >> 32) & range.mask) - range.low;
    most = distance > most ? distance : most;
  }
  return most <= range.span;
}
#else
#define NEAR_RANGE(name) ((lt_Range){0, 0, 0})
static inline bool all_in(lt_Range range, int64_t n, const T *x) {
  return (void)range, (void)n, (void)x, false;
}
#endif

/* Whether an op's near form depends on both inputs: those that divide. */
#if (defined LT_IS_FLOAT || defined LT_IS_INTEGER) && LT_HAS_NEAR_DIVISION
#define DIVIDES(name)                                                                              \
  (__builtin_strcmp(name, "floor_divide") == 0 || __builtin_strcmp(name, "remainder") == 0 ||      \
   __builtin_strcmp(name, "fmod") == 0 || __builtin_strcmp(name, "_trunc_divide") == 0)
#else
#define DIVIDES(name) 0
#endif

/* Returns whether division.h's near functions may be used for all n pairs. n is a multiple of
 * LANES. */
static inline bool all_divide_near(int64_t n, const T *x, const T *y) {
#ifdef LT_IS_FLOAT
  int far = 0;
  const T most = sizeof(T) == 4 ? (T)0x1p22 : (T)0x1p51;
  for (int64_t i = 0; i < n; i++) far |= !(M(fabs)(x[i]) <= most * M(fabs)(y[i]));
  return far == 0;
#elif defined LT_IS_INTEGER
  uint64_t high = 0;
  const uint64_t half = (uint64_t)1 << 51;
  if (sizeof(T) == 4) return true;
  for (int64_t i = 0; i < n; i++) high |= ((uint64_t)x[i] + half) | ((uint64_t)y[i] + half);
  return high >> 52 == 0;
#else
  return (void)n, (void)x, (void)y, false;
#endif
}

/* Copies n < LANES elements and repeats the last one to fill the group. */
static inline __attribute__((always_inline, unused)) void fill_up(int64_t n, T *to, const T *from) {
  for (int64_t i = 0; i < LANES; i++) to[i] = from[i < n ? i : n - 1];
}

/* Fetches the group of elements of this size that is two blocks ahead: the CPU's own prefetchers
 * stop where a loop computes for long. */
static inline __attribute__((always_inline)) void fetch_ahead(const void *group, size_t size) {
  const char *next = (const char *)((uintptr_t)group + 2 * BLOCK * size);
  for (size_t i = 0; i < LANES * size; i += 64) __builtin_prefetch(next + i);
}

#ifdef LT_IS_FLOAT32
#include "gelu.h"
#define LOOKS_UP(name) (LT_GELU_LOOKS_UP && __builtin_strcmp(name, "_gelu_erf") == 0)
#define LOOK_UP        lt_gelu_loop(n, out, x_)
#else
#define LOOKS_UP(name) false
#define LOOK_UP        ((void)0)
#endif

#define READ_1(i)                                                                                  \
  const T x = p[i];                                                                                \
  (void)x;
#define READ_2(i)                                                                                  \
  READ_1(i) const T y = q[i];                                                                      \
  (void)y;
#define READ_3(i)                                                                                  \
  READ_2(i) const T z = r[i];                                                                      \
  (void)z;
#define FILL_1(n)                                                                                  \
  T px[LANES];                                                                                     \
  fill_up(n, px, p);                                                                               \
  p = px;
#define FILL_2(n)                                                                                  \
  FILL_1(n) T qx[LANES];                                                                           \
  fill_up(n, qx, q);                                                                               \
  q = qx;
#define FILL_3(n)                                                                                  \
  FILL_2(n) T rx[LANES];                                                                           \
  fill_up(n, rx, r);                                                                               \
  r = rx;
#define ADVANCE_1(n) p += n;
#define ADVANCE_2(n) ADVANCE_1(n) q += n;
#define ADVANCE_3(n) ADVANCE_2(n) r += n;
#define AHEAD_1      fetch_ahead(p, sizeof *p);
#define AHEAD_2      AHEAD_1 fetch_ahead(q, sizeof *q);
#define AHEAD_3      AHEAD_2 fetch_ahead(r, sizeof *r);
#define LAST_1       p
#define LAST_2       q
#define LAST_3       r

/* Runs a loop whose y is one element in each row: repeats it in a block, for several rows if these
 * are short and follow each other. */
static void repeat_y(lt_VectorFn loop, size_t size, int64_t n, char *out, const char *x,
                     const char *y, const lt_Numbers *numbers) {
  T block[BLOCK];
  lt_Numbers plain = *numbers;
  const int64_t *step = numbers->step;
  const int64_t x_size = (int64_t)sizeof(T), out_size = (int64_t)size;
  const bool dense = step[0] == n * out_size && step[1] == n * x_size && n > 0;
  int64_t together = dense && n < BLOCK ? BLOCK / n : 1;
  plain.y_once = false;
  for (int64_t k = 0; k < numbers->rows; k += together) {
    if (together > numbers->rows - k) together = numbers->rows - k;
    for (int64_t j = 0; j < together; j++)
      for (int64_t i = 0; i < n && i < BLOCK; i++)
        block[j * n + i] = *(const T *)(y + (k + j) * step[2]);
    for (int64_t i = 0, all = together * n; i < all; i += BLOCK)
      loop(all - i < BLOCK ? all - i : BLOCK, out + k * step[0] + i * out_size,
           x + k * step[1] + i * x_size, block, NULL, &plain);
  }
}
/* The same, and for a loop that calls no function, with x as the one element, too. */
#define ONCE_1(...)
#define ONCE_2(name, R, result, calls)                                                             \
  if (numbers->y_once && (calls)) {                                                                \
    repeat_y(name##_, sizeof(R), n, out, x_, y_, numbers);                                         \
    return;                                                                                        \
  }                                                                                                \
  if (numbers->y_once || (LT_X_ONCE(LT_OP_##name) && numbers->x_once)) {                           \
    enum { LT_NEAR = false };                                                                      \
    for (int64_t k = 0; k < numbers->rows; k++) {                                                  \
      o = (R *)((char *)out + k * numbers->step[0]);                                               \
      p = (const T *)((const char *)x_ + k * numbers->step[1]);                                    \
      q = (const T *)((const char *)y_ + k * numbers->step[2]);                                    \
      if (numbers->y_once) {                                                                       \
        const T y = *q;                                                                            \
        (void)y;                                                                                   \
        _Pragma("omp simd")                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
          READ_1(i) o[i] = result;                                                                 \
        }                                                                                          \
      } else {                                                                                     \
        const T x = *p;                                                                            \
        (void)x;                                                                                   \
        _Pragma("omp simd")                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
          const T y = q[i];                                                                        \
          (void)y;                                                                                 \
          o[i] = result;                                                                           \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
    return;                                                                                        \
  }
/* With y and z as one element each. */
#define ONCE_3(name, R, result, calls)                                                             \
  if (LT_YZ_ONCE(LT_OP_##name) && numbers->y_once) {                                               \
    enum { LT_NEAR = false };                                                                      \
    const T y = *q, z = *r;                                                                        \
    (void)y, (void)z;                                                                              \
    _Pragma("omp simd")                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                              \
      READ_1(i) o[i] = result;                                                                     \
    }                                                                                              \
    return;                                                                                        \
  }

/* Defines name##_near and name##_any: whole groups, with LT_NEAR true or false. */
#define GROUPS(function, inputs, R, is_near, result)                                               \
  static __attribute__((noinline)) void function(int64_t groups, R *o, const T *p, const T *q,     \
                                                 const T *r, T a, T b, T MAXFINITE) {              \
    enum { LT_NEAR = is_near };                                                                    \
    (void)a, (void)b, (void)MAXFINITE, (void)p, (void)q, (void)r;                                  \
    for (; groups > 0; groups--) {                                                                 \
      _Pragma("omp simd")                                                                          \
      for (int i = 0; i < LANES; i++) {                                                            \
        READ_##inputs(i) o[i] = result;                                                            \
      }                                                                                            \
      fetch_ahead(o, sizeof *o);                                                                   \
      AHEAD_##inputs o += LANES;                                                                   \
      ADVANCE_##inputs(LANES)                                                                      \
    }                                                                                              \
  }

#define ALL_NEAR(name, range, n, last)                                                             \
  (DIVIDES(name) ? all_divide_near(n, p, q) : (range).span != 0 && all_in(range, n, last))

#define LOOP(name, inputs, R, value, text)                                                         \
  GROUPS(name##_near, inputs, R, true, value(text))                                                \
  GROUPS(name##_any, inputs, R, false, value(text))                                                \
  static void name##_(int64_t n, void *out, const void *x_, const void *y_, const void *z_,        \
                      const lt_Numbers *numbers) {                                                 \
    const T a = numbers->a.FIELD, b = numbers->b.FIELD;                                            \
    const T MAXFINITE = numbers->limit.FIELD;                                                      \
    const T *p = x_, *q = y_, *r = z_;                                                             \
    R *o = out;                                                                                    \
    (void)a, (void)b, (void)MAXFINITE, (void)p, (void)q, (void)r;                                  \
    if (LOOKS_UP(#name)) {                                                                         \
      LOOK_UP;                                                                                     \
      return;                                                                                      \
    }                                                                                              \
    ONCE_##inputs(name, R, value(text),                                                            \
                  CALLS(#text) || DIVIDES(#name)) if (!CALLS(#text) && !DIVIDES(#name)) {          \
      enum { LT_NEAR = false };                                                                    \
      _Pragma("omp simd")                                                                          \
      for (int64_t i = 0; i < n; i++) {                                                            \
        READ_##inputs(i) o[i] = value(text);                                                       \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    const lt_Range range = NEAR_RANGE(#name);                                                      \
    const int64_t block = range.span != 0 || DIVIDES(#name) ? BLOCK : INT64_MAX;                   \
    while (n >= LANES) {                                                                           \
      int64_t groups = (n < block ? n : block) / LANES, done = groups * LANES;                     \
      if (ALL_NEAR(#name, range, done, LAST_##inputs))                                             \
        name##_near(groups, o, p, q, r, a, b, MAXFINITE);                                          \
      else                                                                                         \
        name##_any(groups, o, p, q, r, a, b, MAXFINITE);                                           \
      n -= done, o += done;                                                                        \
      ADVANCE_##inputs(done)                                                                       \
    }                                                                                              \
    if (n > 0) {                                                                                   \
      R rest[LANES];                                                                               \
      FILL_##inputs(n) if (ALL_NEAR(#name, range, LANES, LAST_##inputs))                           \
          name##_near(1, rest, p, q, r, a, b, MAXFINITE);                                          \
      else name##_any(1, rest, p, q, r, a, b, MAXFINITE);                                          \
      memcpy(o, rest, (size_t)n * sizeof *o);                                                      \
    }                                                                                              \
  }

/* Which loops of a row are defined for this type (EMIT_<TYPES>), and the type of their results, by
 * the row's rule. */
#define RESULT_SAME                          T, VALUE
#define RESULT_NUMBER                        T, VALUE
#define RESULT_WIDEN                         T, VALUE
#define RESULT_DIVIDE                        T, VALUE
#define RESULT_POWER                         T, VALUE
#define RESULT_FLOAT                         T, VALUE
#define RESULT_FLOATING                      T, VALUE
#define RESULT_REAL                          T, VALUE
#define RESULT_REAL_FLOAT                    T, VALUE
#define RESULT_INTEGRAL                      T, VALUE
#define RESULT_SELF                          T, VALUE
#define RESULT_MASK                          T, VALUE
#define RESULT_LIMIT                         T, VALUE
#define RESULT_SELECT                        T, VALUE
#define RESULT_TEST                          uint8_t, TRUTH_VALUE
#define LOOP_(name, inputs, result, text)    LOOP__(name, inputs, result, text)
#define LOOP__(name, inputs, R, value, text) LOOP(name, inputs, R, value, text)

#if defined LT_IS_DOUBLE || defined LT_IS_FLOAT32
#define DECLARE_W(name)                                                                            \
  void lt_special_loop_##name(int64_t, void *, const void *, const void *, const void *,           \
                              const lt_Numbers *);

/* Runs the vector loop of an op of one input, then for the elements that it leaves, that of
 * src/cpu/special.c. */
static inline __attribute__((always_inline, unused)) void partly(const char *op, lt_VectorFn vector,
                                                                 lt_VectorFn scalar, int64_t n,
                                                                 T *o, const T *p,
                                                                 const lt_Numbers *numbers) {
  for (int64_t i = 0; i < n; i += BLOCK, o += BLOCK) {
    const int64_t m = n - i < BLOCK ? n - i : BLOCK;
    T x[BLOCK]; /* the results may replace the elements */
    int left = 0;
    memcpy(x, p + i, (size_t)m * sizeof *x);
    vector(m, o, x, NULL, NULL, numbers);
    for (int64_t k = 0; k < m; k++) left |= IS_LEFT(op, x[k], o[k]);
    for (int64_t k = 0; left && k < m; k++)
      if (IS_LEFT(op, x[k], o[k])) {
        double v = (double)x[k], y;
        scalar(1, &y, &v, NULL, NULL, numbers);
        o[k] = (T)y;
      }
  }
}
#define EMIT_WF_ALL EMIT_F
#define EMIT_WF_PARTLY(name, ...)                                                                  \
  DECLARE_W(name)                                                                                  \
  EMIT_F(name, __VA_ARGS__)                                                                        \
  static void name##_partly(int64_t n, void *out, const void *x, const void *y, const void *z,     \
                            const lt_Numbers *numbers) {                                           \
    (void)y, (void)z;                                                                              \
    partly(#name, name##_, lt_special_loop_##name, n, out, x, numbers);                            \
  }
#define ENTRY_WF_ALL          ENTRY_F
#define ENTRY_WF_PARTLY(name) [LT_OP_##name] = name##_partly,
#endif

#ifdef LT_IS_DOUBLE /* src/cpu/special.c, but for those of special_float64.h */
#define EMIT_W(name, ...)  DECLARE_W(name)
#define ENTRY_W(name)      [LT_OP_##name] = lt_special_loop_##name,
#define EMIT_WF(name, ...) JOIN(EMIT_WF_, LT_VECTOR(name), , )(name, __VA_ARGS__)
#define ENTRY_WF(name)     JOIN(ENTRY_WF_, LT_VECTOR(name), , )(name)
#define EMIT_WF_0          EMIT_W
#define ENTRY_WF_0         ENTRY_W
#else
#define EMIT_W(...)
#define ENTRY_W(name)
#ifdef LT_IS_FLOAT32
#define EMIT_WF(name, ...) JOIN(EMIT_WF_, LT_VECTORF(name), , )(name, __VA_ARGS__)
#define ENTRY_WF(name)     JOIN(ENTRY_WF_, LT_VECTORF(name), , )(name)
#else
#define EMIT_WF(...)
#define ENTRY_WF(name)
#endif
#endif

#ifdef LT_IS_FLOAT
#define EMIT_F(name, inputs, rule, ftext, itext)  LOOP_(name, inputs, RESULT_##rule, ftext)
#define EMIT_FI(name, inputs, rule, ftext, itext) LOOP_(name, inputs, RESULT_##rule, ftext)
#define EMIT_I(name, inputs, rule, ftext, itext)
#define EMIT_FC        EMIT_F
#define EMIT_FIC       EMIT_FI
#define ENTRY_F(name)  [LT_OP_##name] = name##_,
#define ENTRY_FI(name) [LT_OP_##name] = name##_,
#define ENTRY_I(name)
#define ENTRY_FC  ENTRY_F
#define ENTRY_FIC ENTRY_FI
#elif defined LT_IS_COMPLEX
#define EMIT_F(...)
#define EMIT_FI(...)
#define EMIT_I(...)
#define EMIT_FC(name, inputs, rule, ftext, itext) LOOP_(name, inputs, RESULT_##rule, ftext)
#define EMIT_FIC                                  EMIT_FC
#define ENTRY_F(name)
#define ENTRY_FI(name)
#define ENTRY_I(name)
#define ENTRY_FC(name) [LT_OP_##name] = name##_,
#define ENTRY_FIC      ENTRY_FC
#else
#ifdef LT_SMALL
#include "small_ops.h"
#define EMIT_FI(name, inputs, rule, ftext, itext)                                                  \
  JOIN(EMIT_IF_, LT_IS_SMALL(name), , )(name, inputs, RESULT_##rule, itext)
#define ENTRY_FI(name) JOIN(ENTRY_IF_, LT_IS_SMALL(name), , )(name)
#define EMIT_IF_1      LOOP_
#define EMIT_IF_0(...)
#define ENTRY_IF_1(name) [LT_OP_##name] = name##_,
#define ENTRY_IF_0(name)
#else
#define EMIT_FI(name, inputs, rule, ftext, itext) LOOP_(name, inputs, RESULT_##rule, itext)
#define ENTRY_FI(name)                            [LT_OP_##name] = name##_,
#endif
#define EMIT_F(name, inputs, rule, ftext, itext)
#define EMIT_I   EMIT_FI
#define EMIT_FC  EMIT_F
#define EMIT_FIC EMIT_FI
#define ENTRY_F(name)
#define ENTRY_I   ENTRY_FI
#define ENTRY_FC  ENTRY_F
#define ENTRY_FIC ENTRY_FI
#endif

#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  EMIT_##types(name, inputs, rule, ftext, itext)
#include "ops.def"

/* ---- powers with constant exponents ---------------------------------------------------------- */

#ifdef LT_IS_FLOAT
/* sqrt(x), but of -0 it is 0 and of -infinity infinity. */
#define POWER_ROOT(x) ((x) == -(T)INFINITY ? (T)INFINITY : M(sqrt)(x) + 0)
/* 1 / x^2. x is scaled by a power of two, so that its square is a normal number; `near`, by 1. */
#define POWER_INVERSE_SQUARE(x)                                                                    \
  (LT_NEAR ? 1 / ((x) * (x))                                                                       \
           : 1 / (((x)*POWER_SCALE(x)) * ((x)*POWER_SCALE(x))) * POWER_SCALE(x) * POWER_SCALE(x))
#define POWER_SCALE(x)                                                                             \
  (M(fabs)(x) > POWER_LIMIT ? 1 / POWER_FACTOR : M(fabs)(x) < 1 / POWER_LIMIT ? POWER_FACTOR : 1)
#define POWER_LIMIT  (sizeof(T) == 4 ? (T)0x1p60 : (T)0x1p500)
#define POWER_FACTOR (sizeof(T) == 4 ? (T)0x1p64 : (T)0x1p512)

#define LT_POWER(name, exponent, text) LOOP(power_##name, 1, T, VALUE, text)
#include "powers.def"
#undef LT_POWER

static const lt_VectorFn powers[LT_POWER_COUNT] = {
#define LT_POWER(name, ...) [LT_POWER_##name] = power_##name##_,
#include "powers.def"
#undef LT_POWER
};
#define POWERS powers
#elif defined LT_IS_COMPLEX
LOOP(power_three, 1, T, VALUE, x *x *x)
static const lt_VectorFn powers[LT_POWER_COUNT] = {
    [LT_POWER_two] = square_,
    [LT_POWER_three] = power_three_,
    [LT_POWER_inverse] = reciprocal_,
};
#define POWERS powers
#else
#define POWERS NULL
#endif

/* ---- maps ------------------------------------------------------------------------------------ */

/* A map: its numbers, then for each element its values and the expressions. The remaining n % LANES
 * elements are processed in a padded group. Two loops: groups_of_NAME with all lists, plain_NAME
 * without the optional ones. */
#ifdef LT_IS_FLOAT
#define GIVEN(x)                                                                                   \
  const T x = (T)k_->x;                                                                            \
  (void)x;
#define ONCE(x, ...) GIVEN(x)
#define READS(x)                                                                                   \
  const T x = ((const T *)at_.x)[i_];                                                              \
  (void)x;
#define WRITES_IF(x, given)                                                                        \
  enum { HAS_##x = given };                                                                        \
  T x = HAS_##x ? ((T *)at_.x)[i_] : (T)0;                                                         \
  (void)x;
#define WRITES(x)          WRITES_IF(x, true)
#define WRITES_OPTIONAL(x) WRITES_IF(x, ALL)
#define LET(x, ...)        const T x = (T)(__VA_ARGS__);
#define SET(x, ...)                                                                                \
  x = (T)(__VA_ARGS__);                                                                            \
  if (HAS_##x) ((T *)at_.x)[i_] = x;
#define MAP_LOOP(loop, all, name, tensors, numbers, text)                                          \
  static __attribute__((noinline)) void loop##_##name(int64_t n_, lt_MapTensors_##name at_,        \
                                                      const lt_MapNumbers_##name *k_) {            \
    enum { LT_NEAR = false, ALL = all };                                                           \
    numbers _Pragma("omp simd")                                                                    \
    for (int64_t i_ = 0; i_ < n_; i_++) {                                                          \
      tensors text                                                                                 \
    }                                                                                              \
  }
#define LT_MAP(name, tensors, numbers, text, ...)                                                  \
  MAP_LOOP(groups_of, true, name, tensors, numbers, text)                                          \
  MAP_LOOP(plain, false, name, tensors, numbers, text)                                             \
  static void map_##name(int64_t n, char *const *memory, unsigned written,                         \
                         const double *numbers_) {                                                 \
    enum { COUNT = sizeof(lt_MapTensors_##name) / sizeof(void *) };                                \
    const lt_MapNumbers_##name *k = (const lt_MapNumbers_##name *)numbers_;                        \
    const int64_t whole = n / LANES * LANES, left = n - whole;                                     \
    T rest[COUNT][LANES];                                                                          \
    void *tail[COUNT];                                                                             \
    bool all = true;                                                                               \
    for (int j = 0; j < COUNT; j++) all &= memory[j] != NULL;                                      \
    lt_MapTensors_##name at;                                                                       \
    memcpy(&at, memory, sizeof at);                                                                \
    (all ? groups_of_##name : plain_##name)(whole, at, k);                                         \
    if (left == 0) return;                                                                         \
    for (int j = 0; j < COUNT; j++) {                                                              \
      if (memory[j]) fill_up(left, rest[j], (const T *)memory[j] + whole);                         \
      tail[j] = rest[j];                                                                           \
    }                                                                                              \
    memcpy(&at, tail, sizeof at);                                                                  \
    (all ? groups_of_##name : plain_##name)(LANES, at, k);                                         \
    for (int j = 0; j < COUNT; j++)                                                                \
      if (memory[j] && written >> j & 1)                                                           \
        memcpy((T *)memory[j] + whole, rest[j], (size_t)left * sizeof(T));                         \
  }
#include "ops.def"
#undef MAP_LOOP
#undef WRITES_IF
#undef WRITES_OPTIONAL
#undef GIVEN
#undef ONCE
#undef READS
#undef WRITES
#undef LET
#undef SET
#define MAP_ENTRY(name) [LT_MAP_##name] = map_##name,
#else
#define MAP_ENTRY(name) [LT_MAP_##name] = NULL,
#endif

/* ---- loads and stores ------------------------------------------------------------------------ */

/* Converts a float to an integer of type S: truncates; NaN becomes 0, other values saturate. */
#define CLIP(S, v, low, high)                                                                      \
  ((v) != (v)                     ? (S)0                                                           \
   : sizeof(S) < sizeof(v)        ? (S)((v) > (high)  ? (high)                                     \
                                        : (v) < (low) ? (low)                                      \
                                                      : (v))                                       \
   : (v) >= (__typeof__(v))(high) ? (S)(high)                                                      \
   : (v) <= (__typeof__(v))(low)  ? (S)(low)                                                       \
                                  : (S)(v))
#define LOW_uint8  0
#define HIGH_uint8 UINT8_MAX
#define LOW_int8   INT8_MIN
#define HIGH_int8  INT8_MAX
#define LOW_int16  INT16_MIN
#define HIGH_int16 INT16_MAX
#define LOW_int32  INT32_MIN
#define HIGH_int32 INT32_MAX
#define LOW_int64  INT64_MIN
#define HIGH_int64 INT64_MAX

/* Convert elements to numbers of C's own types. */
static inline float number_float16(lt_half v) { return lt_half_to_float(v); }
static inline float number_bfloat16(lt_bfloat16 v) { return lt_bfloat16_to_float(v); }
static inline float number_float32(float v) { return v; }
static inline double number_float64(double v) { return v; }

/* Convert an element v of a dtype to T, by the kind of T and the dtype's category. */
#if defined LT_IS_COMPLEX
#define LOADED_BOOL(name, v)     MAKE((R)(v), 0)
#define LOADED_INTEGER(name, v)  MAKE((R)(v), 0)
#define LOADED_FLOATING(name, v) MAKE((R)number_##name(v), 0)
#define LOADED_COMPLEX(name, v)  MAKE((R)(v).re, (R)(v).im)
#elif defined LT_IS_FLOAT
#define LOADED_BOOL(name, v)     ((T)(v))
#define LOADED_INTEGER(name, v)  ((T)(v))
#define LOADED_FLOATING(name, v) ((T)number_##name(v))
#elif defined LT_IS_INTEGER
#define LOADED_BOOL(name, v)     ((T)(v))
#define LOADED_INTEGER(name, v)  ((T)(v))
#define LOADED_FLOATING(name, v) clip_##name(number_##name(v))
static inline T clip_float32(float v) { return CLIP(T, v, LOW, HIGH); }
static inline T clip_float64(double v) { return CLIP(T, v, LOW, HIGH); }
static inline T clip_float16(float v) { return clip_float32(v); }
static inline T clip_bfloat16(float v) { return clip_float32(v); }
#else
#define LOADED_BOOL(name, v)     ((T)((v) != 0))
#define LOADED_INTEGER(name, v)  ((T)((v) != 0))
#define LOADED_FLOATING(name, v) ((T)(number_##name(v) != 0))
#endif

/* Convert a v of type T to an element. Integers wrap. */
#ifdef LT_IS_FLOAT
#define STORED_INTEGER(name, S, v) CLIP(S, v, LOW_##name, HIGH_##name)
#else
#define STORED_INTEGER(name, S, v) ((S)(v))
#endif
#define STORED_BOOL(name, S, v)     ((S)((v) != 0))
#define STORED_FLOATING(name, S, v) element_##name(v)
#ifdef LT_IS_COMPLEX
#define STORED_COMPLEX(name, S, v) element_##name(v)
static inline lt_half element_float16(T v) { return lt_half_from_float((float)RE(v)); }
static inline lt_bfloat16 element_bfloat16(T v) { return lt_bfloat16_from_float((float)RE(v)); }
static inline float element_float32(T v) { return (float)RE(v); }
static inline double element_float64(T v) { return (double)RE(v); }
static inline lt_complex64 element_complex64(T v) {
  return (lt_complex64){(float)RE(v), (float)IM(v)};
}
static inline lt_complex128 element_complex128(T v) {
  return (lt_complex128){(double)RE(v), (double)IM(v)};
}
#elif defined LT_IS_DOUBLE
static inline lt_half element_float16(T v) { return lt_half_from_double(v); }
static inline lt_bfloat16 element_bfloat16(T v) {
  return lt_bfloat16_from_float(lt_float_from_double_odd(v));
}
#else
static inline lt_half element_float16(T v) { return lt_half_from_float((float)v); }
static inline lt_bfloat16 element_bfloat16(T v) { return lt_bfloat16_from_float((float)v); }
#endif
#ifndef LT_IS_COMPLEX
static inline float element_float32(T v) { return (float)v; }
static inline double element_float64(T v) { return (double)v; }
#endif

/* Truncates floats block by block, up to the first block with a magnitude over 2^51, or NaN.
 * Returns how many. */
#define NEAR_FLOATS(S, function)                                                                   \
  static inline __attribute__((unused)) int64_t function(int64_t n, int64_t *out, const S *in) {   \
    int64_t done = 0;                                                                              \
    for (; done + BLOCK <= n; done += BLOCK) {                                                     \
      int far = 0;                                                                                 \
      for (int i = 0; i < BLOCK; i++) {                                                            \
        S x = in[done + i];                                                                        \
        far |= !(x <= (S)0x1p51 && x >= -(S)0x1p51);                                               \
      }                                                                                            \
      if (far) break;                                                                              \
      for (int i = 0; i < BLOCK; i++)                                                              \
        out[done + i] = lt_narrow_integer(trunc((double)in[done + i]));                            \
    }                                                                                              \
    return done;                                                                                   \
  }
#define IS(name, text) (__builtin_strcmp(name, text) == 0)
/* AVX2 has no instructions between floats and int64. */
#if defined __AVX2__ && !defined __AVX512DQ__ && !defined LT_IS_COMPLEX
NEAR_FLOATS(float, near_float32)
NEAR_FLOATS(double, near_float64)
#define HAS_NEAR_FLOATS 1
#else
#define HAS_NEAR_FLOATS          0
#define near_float32(n, out, in) 0
#define near_float64(n, out, in) 0
#endif

#ifdef LT_IS_DOUBLE
/* Rounds a block of doubles to float and the floats to float16. Returns false if that may differ
 * from one rounding: where a float is halfway between two normal float16, is not normal in float16,
 * or NaN. */
static bool round_to_halves(uint16_t *out, const double *in) {
  float block[BLOCK];
  uint32_t far = 0;
  for (int i = 0; i < BLOCK; i++) block[i] = (float)in[i];
  for (int i = 0; i < BLOCK; i++) {
    const uint32_t bits = lt_float_bits(block[i]), size = bits & 0x7fffffffu;
    far |= (((bits ^ 0x1000) & 0x1fff) - 1) | (0x7f800000u - size);
    far |= (size - 0x38800000u) & ~(size - 1);
  }
  return far >> 31 == 0 && lt_floats_to_halves(BLOCK, out, block) == BLOCK;
}

/* Rounds a block of doubles to float and the floats to bfloat16. Returns false if that may differ
 * from one rounding: where a float is halfway between two bfloat16, or NaN. */
static bool round_to_bfloats(uint16_t *out, const double *in) {
  uint32_t far = 0, most = 0;
  for (int i = 0; i < BLOCK; i++) {
    const uint32_t bits = lt_float_bits((float)in[i]), up = bits + 0x8000, size = bits << 1;
    far |= (up & 0xffff) - 1; /* without halfway numbers, rounding down or up is nearest */
    most = size > most ? size : most;
    out[i] = (uint16_t)(up >> 16);
  }
  return far >> 31 == 0 && most <= 0xff000000u;
}

/* Converts doubles to float16 or bfloat16 block by block: rounded to odd, as by
 * lt_float_from_double_odd, then to nearest, unless two roundings suffice. Ends before a block with
 * an element whose float is NaN, infinite (bfloat16 only) or not normal, except 0, to which only
 * those are rounded that are 0 in these dtypes. Returns how many. */
static int64_t first_halves(int64_t n, void *out, const double *in, bool is_bfloat) {
  const uint64_t low = 0x1fffffff; /* the bits of a double that a float lacks */
  int64_t done = 0;
  for (; done + BLOCK <= n; done += BLOCK) {
    uint16_t *to = (uint16_t *)out + done;
    if ((is_bfloat ? round_to_bfloats : round_to_halves)(to, in + done)) continue;
    float block[BLOCK];
    uint32_t far = 0;
    for (int i = 0; i < BLOCK; i++) {
      const uint64_t bits = lt_bits64(in[done + i]);
      block[i] = (float)lt_double((bits & ~low) | (((bits & low) + low) & (low + 1)));
    }
    for (int i = 0; i < BLOCK; i++) {
      const uint32_t size = lt_float_bits(block[i]) & 0x7fffffffu;
      far |= ((size - 0x00800001u) & ~(size - 1)) | (0x7f7fffffu - size);
    }
    if (far >> 31) break;
    int first = (int)(is_bfloat ? lt_floats_to_bfloats(BLOCK, to, block)
                                : lt_floats_to_halves(BLOCK, to, block));
    for (int i = first; i < BLOCK; i++)
      to[i] = is_bfloat ? lt_bfloat16_from_float(block[i]).bits : lt_half_from_float(block[i]).bits;
  }
  return done;
}
#else
#define first_halves(n, out, in, is_bfloat) 0
#endif

/* Convert the first of n dense elements in ways that the compiler does not find, and return how
 * many. */
#ifdef LT_IS_FLOAT32
#define LOADED_FIRST(name, n, out, in)                                                             \
  (IS(name, "float16")    ? lt_halves_to_floats(n, out, (const void *)(in))                        \
   : IS(name, "bfloat16") ? lt_bfloats_to_floats(n, out, (const void *)(in))                       \
                          : 0)
#define STORED_FIRST(name, n, out, in)                                                             \
  (IS(name, "float16")                    ? lt_floats_to_halves(n, out, in)                        \
   : IS(name, "bfloat16")                 ? lt_floats_to_bfloats(n, out, in)                       \
   : HAS_NEAR_FLOATS && IS(name, "int64") ? near_float32(n, (void *)(out), in)                     \
                                          : 0)
#elif defined LT_IS_FLOAT
#define LOADED_FIRST(name, n, out, in) 0
#define STORED_FIRST(name, n, out, in)                                                             \
  (HAS_NEAR_FLOATS && IS(name, "int64")          ? near_float64(n, (void *)(out), in)              \
   : IS(name, "float16") || IS(name, "bfloat16") ? first_halves(n, out, in, IS(name, "bfloat16"))  \
                                                 : 0)
#elif defined LT_IS_INT64
#define LOADED_FIRST(name, n, out, in)                                                             \
  (!HAS_NEAR_FLOATS      ? 0                                                                       \
   : IS(name, "float32") ? near_float32(n, out, (const void *)(in))                                \
   : IS(name, "float64") ? near_float64(n, out, (const void *)(in))                                \
                         : 0)
#define STORED_FIRST(name, n, out, in) 0
#else
#define LOADED_FIRST(name, n, out, in) 0
#define STORED_FIRST(name, n, out, in) 0
#endif

/* Floats are converted to integers of at most 4 bytes block by block. If all fit into int32, they
 * are truncated to that. Else, for integers of fewer bytes than the floats, they are clipped
 * before: masks of one length are cheaper than of two. */
#define STORED_BLOCKS_BOOL(name, S)
#define STORED_BLOCKS_FLOATING(name, S)
#define STORED_BLOCKS_COMPLEX(name, S)
#ifdef LT_IS_FLOAT
#ifdef LT_IS_DOUBLE
#define TO_INTS lt_doubles_to_ints
#else
#define TO_INTS lt_floats_to_ints
#endif
/* Returns x, or the bound that it is beyond; of bounds beyond int32, none. */
static inline int32_t clip_int(int32_t x, int64_t low, int64_t high) {
  return x > high ? (int32_t)high : x < low ? (int32_t)low : x;
}
#define STORED_BLOCKS_INTEGER(name, S)                                                             \
  for (; sizeof(S) <= 4 && first + BLOCK <= n; first += BLOCK) {                                   \
    int32_t whole[BLOCK];                                                                          \
    T block[BLOCK];                                                                                \
    if (TO_INTS(BLOCK, sizeof(S) == 4 ? (int32_t *)(dense + first) : whole, v + first)) {          \
      for (int i = 0; sizeof(S) < 4 && i < BLOCK; i++)                                             \
        dense[first + i] = (S)clip_int(whole[i], LOW_##name, HIGH_##name);                         \
      continue;                                                                                    \
    }                                                                                              \
    if (sizeof(S) == sizeof(T)) break;                                                             \
    for (int i = 0; i < BLOCK; i++) {                                                              \
      const T x = v[first + i], most = x > (T)HIGH_##name ? (T)HIGH_##name : x;                    \
      const T clipped = most < (T)LOW_##name ? (T)LOW_##name : most;                               \
      block[i] = x != x ? 0 : clipped;                                                             \
    }                                                                                              \
    for (int i = 0; i < BLOCK; i++) dense[first + i] = (S)block[i];                                \
  }
#else
#define STORED_BLOCKS_INTEGER(name, S)
#endif

/* Loads every k-th element: shuffles take the place of loads. */
#define LOAD_EVERY(k, name, storage, category)                                                     \
  const storage *in = source;                                                                      \
  _Pragma("omp simd")                                                                              \
  for (int64_t i = 0; i < n; i++) out[i] = LOADED_##category(name, in[k * i]);
#define LOAD(function, name, storage, category)                                                    \
  static void function(int64_t n, void *out_, const void *source, int64_t stride) {                \
    T *out = out_;                                                                                 \
    const char *p = source;                                                                        \
    if (stride == (int64_t)sizeof(storage)) {                                                      \
      const storage *dense = source;                                                               \
      int64_t first = LOADED_FIRST(#name, n, out, dense);                                          \
      _Pragma("omp simd")                                                                          \
      for (int64_t i = first; i < n; i++) out[i] = LOADED_##category(name, dense[i]);              \
    } else if (stride == 0) {                                                                      \
      const T value = LOADED_##category(name, *(const storage *)source);                           \
      _Pragma("omp simd")                                                                          \
      for (int64_t i = 0; i < n; i++) out[i] = value;                                              \
    } else if (stride == 2 * (int64_t)sizeof(storage)) {                                           \
      LOAD_EVERY(2, name, storage, category)                                                       \
    } else if (stride == 3 * (int64_t)sizeof(storage)) {                                           \
      LOAD_EVERY(3, name, storage, category)                                                       \
    } else {                                                                                       \
      for (int64_t i = 0; i < n; i++)                                                              \
        out[i] = LOADED_##category(name, *(const storage *)(p + i * stride));                      \
    }                                                                                              \
  }
#define STORE(function, name, storage, category)                                                   \
  static void function(int64_t n, void *target, int64_t stride, const void *values) {              \
    const T *v = values;                                                                           \
    char *p = target;                                                                              \
    if (stride == (int64_t)sizeof(storage)) {                                                      \
      storage *dense = target;                                                                     \
      int64_t first = STORED_FIRST(#name, n, dense, v);                                            \
      STORED_BLOCKS_##category(name, storage) _Pragma("omp simd")                                  \
      for (int64_t i = first; i < n; i++) dense[i] = STORED_##category(name, storage, v[i]);       \
    } else {                                                                                       \
      for (int64_t i = 0; i < n; i++)                                                              \
        *(storage *)(p + i * stride) = STORED_##category(name, storage, v[i]);                     \
    }                                                                                              \
  }

/* Expand DO, one of the macros above or below, for the dtypes that have loads and stores. */
#ifdef LT_IS_COMPLEX
#define LOADS_COMPLEX(DO, ...) DO(__VA_ARGS__)
#define STORES_INTEGER(DO, ...)
#define STORES_COMPLEX(DO, ...) DO(__VA_ARGS__)
#else
#define LOADS_COMPLEX(DO, ...)
#define STORES_INTEGER(DO, ...) DO(__VA_ARGS__)
#ifdef LT_IS_BOOL /* for z:eq_(x) of a complex z */
#define STORED_COMPLEX(name, S, v) ((S){(v), 0})
#define STORES_COMPLEX(DO, ...)    DO(__VA_ARGS__)
#else
#define STORES_COMPLEX(DO, ...)
#endif
#endif
#define LOADS_BOOL(DO, ...)      DO(__VA_ARGS__)
#define LOADS_INTEGER(DO, ...)   DO(__VA_ARGS__)
#define LOADS_FLOATING(DO, ...)  DO(__VA_ARGS__)
#define STORES_BOOL(DO, ...)     DO(__VA_ARGS__)
#define STORES_FLOATING(DO, ...) DO(__VA_ARGS__)

#ifdef LT_SMALL
LT_SMALL_INTEGERS(SMALL_LOAD)
STORE(store_own, own, T, INTEGER)
#else
#define LT_DTYPE(name, storage, compute, accumulate, category, ...)                                \
  LOADS_##category(LOAD, load_##name, name, storage, category)                                     \
      STORES_##category(STORE, store_##name, name, storage, category)
#include "dtypes.def"
#undef LT_DTYPE
#endif
#define ENTRY(place, function) [place] = function,

static void spread(int64_t n, int64_t times, void *out_, const void *values) {
  T *out = out_;
  for (int64_t i = 0; i < n; i++, out += times) {
    const T value = ((const T *)values)[i];
    for (int64_t j = 0; j < times; j += LANES)
      for (int k = 0; k < LANES; k++) out[j + k] = value;
  }
}

#ifdef LT_IS_FLOAT
#include "chain_loop.h"
#endif

static const lt_VectorFn entries[LT_OP_COUNT] = {
#define LT_ELEMENTWISE(name, inputs, rule, types, ...) ENTRY_##types(name)
#include "ops.def"
};

static const lt_MapFn maps[LT_MAP_COUNT] = {
#define LT_MAP(name, ...) MAP_ENTRY(name)
#include "ops.def"
};

const lt_Vectors JOIN(TABLE, _, LT_ISA, ) = {
    .op = entries,
    .power = POWERS,
    .spread = spread,
    .map = maps,
#ifdef LT_IS_FLOAT
    .chained = chained,
    .chain = chain,
#endif
#ifdef LT_SMALL
    .load = {LT_SMALL_INTEGERS(SMALL_ENTRY)},
    .store = {[LT_SMALL] = store_own},
#else
    .load =
        {
#define LT_DTYPE(name, storage, compute, accumulate, category, ...)                                \
  LOADS_##category(ENTRY, LT_##name, load_##name)
#include "dtypes.def"
#undef LT_DTYPE
        },
    .store =
        {
#define LT_DTYPE(name, storage, compute, accumulate, category, ...)                                \
  STORES_##category(ENTRY, LT_##name, store_##name)
#include "dtypes.def"
#undef LT_DTYPE
        },
#endif
};
