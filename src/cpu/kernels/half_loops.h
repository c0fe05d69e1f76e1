/* half_loops.h: the vector loops of float16 or bfloat16 for dense memory, of the ops that take less
 * time than to convert blocks of elements to float32 and back. A source file defines
 *
 *   H, TABLE                    the type, and the name of the exported table, before _<LT_ISA>
 *   TO_FLOAT(h), FROM_FLOAT(x)  conversions of one element (half.h)
 *   TO_FLOATS, FROM_FLOATS      those of vectors (half_vectors.h)
 *   SPLIT, UNITE                those of a group, in any order of its elements
 *
 * and includes this file. A loop converts a group of elements, computes the expression of ops.def
 * in float32, and converts the results: they are those of the loops of float32 on blocks. */
#include "vector.h"
#include "opids.h"
#include "half.h"
#include "half_vectors.h"
#include "cpu/rows.h"

#define T    float
#define M(g) lt_m_##g##f
#include "maths.h"
enum { LT_NEAR = false }; /* no loop here has a range with fewer steps */
#define LT_MATHX_FLOAT static inline __attribute__((always_inline, unused))
#include "mathx.h"
#include "clamp.h"

#define LANES LT_SPLIT /* elements of a group: two vectors of AVX-512 */

/* The ops that have a loop here: LT_IS_HALF(name) is 1 for them, else 0, as in small_ops.h. */
#define LT_IS_HALF(name)          LT_HALF_SECOND_(LT_HALF_##name, 0, )
#define LT_HALF_SECOND_(...)      LT_HALF_SECOND(__VA_ARGS__)
#define LT_HALF_SECOND(a, b, ...) b

#define LT_HALF_square       , 1
#define LT_HALF_floor        , 1
#define LT_HALF_ceil         , 1
#define LT_HALF__round       , 1
#define LT_HALF_trunc        , 1
#define LT_HALF_frac         , 1
#define LT_HALF_deg2rad      , 1
#define LT_HALF_rad2deg      , 1
#define LT_HALF_leaky_relu   , 1
#define LT_HALF__hardtanh    , 1
#define LT_HALF_hardsigmoid  , 1
#define LT_HALF_hardswish    , 1
#define LT_HALF_hardshrink   , 1
#define LT_HALF_softshrink   , 1
#define LT_HALF_threshold    , 1
#define LT_HALF__prelu       , 1
#define LT_HALF_lerp         , 1
#define LT_HALF_relu         , 1
#define LT_HALF_sqrt         , 1
#define LT_HALF_rsqrt        , 1
#define LT_HALF_reciprocal   , 1
#define LT_HALF_add          , 1
#define LT_HALF_sub          , 1
#define LT_HALF_mul          , 1
#define LT_HALF__true_divide , 1
#define LT_HALF_maximum      , 1
#define LT_HALF_minimum      , 1
#define LT_HALF_eq           , 1
#define LT_HALF_ne           , 1
#define LT_HALF_lt           , 1
#define LT_HALF_le           , 1
#define LT_HALF_gt           , 1
#define LT_HALF_ge           , 1
#define LT_HALF_addcmul      , 1
#define LT_HALF_addcdiv      , 1

/* ---- loops ----------------------------------------------------------------------------------- */

/* Convert a group in its order: the vector functions may convert less. */
static inline __attribute__((always_inline, unused)) void load(float *to, const H *from) {
  if (TO_FLOATS(LANES, to, from) == LANES) return;
  for (int i = 0; i < LANES; i++) to[i] = TO_FLOAT(from[i]);
}
static inline __attribute__((always_inline, unused)) void store(H *to, const float *from) {
  if (FROM_FLOATS(LANES, to, from) == LANES) return;
  for (int i = 0; i < LANES; i++) to[i] = FROM_FLOAT(from[i]);
}

/* Copies n < LANES elements and repeats the last one to fill the group. */
static void fill_up(int64_t n, H *to, const H *from) {
  for (int64_t i = 0; i < LANES; i++) to[i] = from[i < n ? i : n - 1];
}

#define LOAD_1(convert)                                                                            \
  float xs[LANES];                                                                                 \
  convert(xs, p);
#define LOAD_2(convert)                                                                            \
  LOAD_1(convert) float ys[LANES];                                                                 \
  convert(ys, q);
#define LOAD_3(convert)                                                                            \
  LOAD_2(convert) float zs[LANES];                                                                 \
  convert(zs, r);
#define LOAD_ONCE_2 LOAD_1
#define LOAD_ONCE_3 LOAD_2
#define READ_1      const T x = xs[i];
#define READ_2      READ_1 const T y = ys[i];
#define READ_3      READ_2 const T z = zs[i];
#define READ_ONCE_2 READ_1 const T y = once;
#define READ_ONCE_3 READ_2 const T z = once;
#define FILL_1(n)                                                                                  \
  H px[LANES];                                                                                     \
  fill_up(n, px, p);                                                                               \
  p = px;
#define FILL_2(n)                                                                                  \
  FILL_1(n) H qx[LANES];                                                                           \
  fill_up(n, qx, q);                                                                               \
  q = qx;
#define FILL_3(n)                                                                                  \
  FILL_2(n) H rx[LANES];                                                                           \
  fill_up(n, rx, r);                                                                               \
  r = rx;

#define ADVANCE_1(n)   p += n;
#define ADVANCE_2(n)   ADVANCE_1(n) q += n;
#define ADVANCE_3(n)   ADVANCE_2(n) r += n;
#define AFTER_1(n)     p + (n), q, r
#define AFTER_2(n)     p + (n), q + (n), r
#define AFTER_3(n)     p + (n), q + (n), r + (n)
#define AFTER_ONCE_2   AFTER_1
#define AFTER_ONCE_3   AFTER_2
#define FILL_ONCE_2    FILL_1
#define FILL_ONCE_3    FILL_2
#define ADVANCE_ONCE_2 ADVANCE_1
#define ADVANCE_ONCE_3 ADVANCE_2

/* Where a group's results go: the memory itself, or values to convert. */
#define RESULTS_1 uint8_t *values = o;
#define RESULTS_0 float values[LANES];
#define ELEMENT_1 uint8_t
#define ELEMENT_0 H
#define STORE_1
#define STORE_0    UNITE(o, values);
#define CONVERT_1  load
#define CONVERT_0  SPLIT
#define VALUE_1(e) ((uint8_t)((e) != 0))
#define VALUE_0(e) ((T)(e))

/* Defines a loop over groups, whose last input is `once` for inputs ONCE_2
 * and ONCE_3. */
#define GROUPS(function, inputs, test, text)                                                       \
  static __attribute__((noinline)) void function(int64_t groups, ELEMENT_##test *o, const H *p,    \
                                                 const H *q, const H *r, T a, T b, T once) {       \
    (void)q, (void)r, (void)a, (void)b, (void)once;                                                \
    for (; groups > 0; groups--) {                                                                 \
      RESULTS_##test LOAD_##inputs(CONVERT_##test) _Pragma("omp simd")                             \
      for (int i = 0; i < LANES; i++) {                                                            \
        READ_##inputs values[i] = VALUE_##test(text);                                              \
      }                                                                                            \
      STORE_##test o += LANES;                                                                     \
      ADVANCE_##inputs(LANES)                                                                      \
    }                                                                                              \
  }
/* Runs it for n elements, and returns. The last ones are in a group that begins among those before
 * it: it is computed first, as the result may be in the memory of an input. Fewer than a group are
 * in one that is filled up. */
#define RUN(function, inputs, once)                                                                \
  if (left == 0) {                                                                                 \
    function(n / LANES, o, p, q, r, a, b, once);                                                   \
    return;                                                                                        \
  }                                                                                                \
  if (n > LANES) {                                                                                 \
    function(1, rest, AFTER_##inputs(n - LANES), a, b, once);                                      \
    function(n / LANES, o, p, q, r, a, b, once);                                                   \
    memcpy(o + (n - LANES), rest, sizeof rest);                                                    \
    return;                                                                                        \
  }                                                                                                \
  FILL_##inputs(left) function(1, rest, p, q, r, a, b, once);                                      \
  memcpy(o, rest, (size_t)left * sizeof *o);                                                       \
  return;

/* A last input that is one element is a float32. */
#define ONCE_GROUPS_1(...)
#define ONCE_GROUPS_2(name, test, text) GROUPS(name##_once, ONCE_2, test, text)
#define ONCE_GROUPS_3(name, test, text) GROUPS(name##_once, ONCE_3, test, text)
#define ONCE_1(name)
#define ONCE_2(name) RUN_ONCE(name, ONCE_2, y_)
#define ONCE_3(name) RUN_ONCE(name, ONCE_3, z_)
#define RUN_ONCE(name, inputs, last)                                                               \
  if (numbers->y_once) {                                                                           \
    const T number = *(const T *)last;                                                             \
    RUN(name##_once, inputs, number)                                                               \
  }

#define LOOP_1(name, inputs, test, text)                                                           \
  GROUPS(name##_groups, inputs, test, text)                                                        \
  ONCE_GROUPS_##inputs(name, test, text) static void name##_(int64_t n, void *out, const void *x_, \
                                                             const void *y_, const void *z_,       \
                                                             const lt_Numbers *numbers) {          \
    const int64_t left = n % LANES;                                                                \
    const T a = numbers->a.float32, b = numbers->b.float32;                                        \
    const H *p = x_, *q = y_, *r = z_;                                                             \
    ELEMENT_##test *o = out, rest[LANES];                                                          \
    (void)r;                                                                                       \
    ONCE_##inputs(name) RUN(name##_groups, inputs, 0)                                              \
  }
#define LOOP_0(...)

/* Whether a row's rule gives bool. */
#define IS_TEST(rule) LT_HALF_SECOND_(RULE_##rule, 0, )
#define RULE_TEST     , 1

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, ...)                                      \
  EMIT(JOIN(LOOP_, LT_IS_HALF(name)), name, inputs, IS_TEST(rule), ftext)
#define EMIT(loop, ...)  EMIT_(loop, __VA_ARGS__)
#define EMIT_(loop, ...) loop(__VA_ARGS__)
#include "ops.def"

/* ---- loops that only change the sign, which need no float32 ---------------------------------- */

#define SIGN 0x8000u
#define SIGN_LOOP(name, expression)                                                                \
  static void name##_(int64_t n, void *out, const void *in, const void *y, const void *z,          \
                      const lt_Numbers *numbers) {                                                 \
    const uint16_t *p = in;                                                                        \
    uint16_t *o = out;                                                                             \
    (void)y, (void)z, (void)numbers;                                                               \
    _Pragma("omp simd")                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                              \
      const uint16_t x = p[i];                                                                     \
      o[i] = (uint16_t)(expression);                                                               \
    }                                                                                              \
  }
SIGN_LOOP(neg, x ^ SIGN)
SIGN_LOOP(abs, x & ~SIGN)

static void copysign_(int64_t n, void *out, const void *in, const void *from, const void *z,
                      const lt_Numbers *numbers) {
  const uint16_t *p = in, *q = from;
  uint16_t *o = out;
  (void)z;
  if (numbers->y_once) {
    const uint16_t sign = signbit(*(const float *)from) ? SIGN : 0;
    _Pragma("omp simd")
    for (int64_t i = 0; i < n; i++) o[i] = (uint16_t)((p[i] & ~SIGN) | sign);
    return;
  }
  _Pragma("omp simd")
  for (int64_t i = 0; i < n; i++) o[i] = (uint16_t)((p[i] & ~SIGN) | (q[i] & SIGN));
}

#define ENTRY_1(name) [LT_OP_##name] = name##_,
#define ENTRY_0(name)
#define LT_ELEMENTWISE(name, ...) EMIT(JOIN(ENTRY_, LT_IS_HALF(name)), name)
static const lt_VectorFn entries[LT_OP_COUNT] = {
#include "ops.def"
    [LT_OP_neg] = neg_,
    [LT_OP_abs] = abs_,
    [LT_OP_copysign] = copysign_,
};

extern const lt_Vectors LT_FOR_ISA(TABLE);
const lt_Vectors LT_FOR_ISA(TABLE) = {.op = entries};
