/* loops.h: the vector loops of one compute type, generated from ops.def. A source file defines
 *
 *   T, U                                        the type, and for integers its unsigned counterpart
 *   LT_IS_FLOAT or LT_IS_INTEGER or LT_IS_BOOL or LT_IS_COMPLEX   the kind of type
 *   M(f), for floats and complex numbers        the math function f for the type
 *   R, RM, RE, IM, MAKE, for complex numbers    see mathx.h
 *   FIELD                                       the type's member of lt_Number
 *   TABLE                                       name of the exported table, before _<LT_ISA>
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
#ifdef LT_IS_COMPLEX
#include "maths_complex.h"
#else
#include "maths.h"
#endif

#define LANES 16  /* a multiple of every vector's length */
#define BLOCK 256 /* elements whose range is checked together; a multiple of LANES */

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
#include "mathx.h"

#ifdef LT_IS_BOOL
#undef NOT
#define NOT(x)   (!(x))
#define VALUE(e) ((T)((e) != 0))
#else
#define VALUE(e) ((T)(e))
#endif
#define TRUTH_VALUE(e) ((uint8_t)((e) != 0))

/* ---- loops ----------------------------------------------------------------------------------- */

/* Whether an expression, after macro expansion, calls a function; a constant at compile time.
 * Integers are exact in any variant. */
#ifdef LT_IS_FLOAT
#define CALLS(text) (__builtin_strstr(text, "lt_") != NULL)
#else
#define CALLS(text) 0
#endif

/* Returns whether all n elements are in the range. n is a multiple of LANES. */
#ifdef LT_IS_FLOAT32
#define NEAR_RANGE(name) lt_near_range(name)
static inline bool all_in(lt_Range range, int64_t n, const float *x) {
  uint32_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    uint32_t distance = (lt_bits(x[i]) & range.mask) - range.low;
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

/* Copies n < LANES elements and repeats the last one to fill the group. */
static inline __attribute__((always_inline, unused)) void fill_up(int64_t n, T *to, const T *from) {
  for (int64_t i = 0; i < LANES; i++) to[i] = from[i < n ? i : n - 1];
}

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
#define LAST_1       p
#define LAST_2       q
#define LAST_3       r

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
      o += LANES;                                                                                  \
      ADVANCE_##inputs(LANES)                                                                      \
    }                                                                                              \
  }

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
    if (!CALLS(#text)) {                                                                           \
      enum { LT_NEAR = false };                                                                    \
      _Pragma("omp simd")                                                                          \
      for (int64_t i = 0; i < n; i++) {                                                            \
        READ_##inputs(i) o[i] = value(text);                                                       \
      }                                                                                            \
      return;                                                                                      \
    }                                                                                              \
    const lt_Range range = NEAR_RANGE(#name);                                                      \
    const int64_t block = range.span != 0 ? BLOCK : INT64_MAX;                                     \
    while (n >= LANES) {                                                                           \
      int64_t groups = (n < block ? n : block) / LANES, done = groups * LANES;                     \
      if (range.span != 0 && all_in(range, done, LAST_##inputs))                                   \
        name##_near(groups, o, p, q, r, a, b, MAXFINITE);                                          \
      else                                                                                         \
        name##_any(groups, o, p, q, r, a, b, MAXFINITE);                                           \
      n -= done, o += done;                                                                        \
      ADVANCE_##inputs(done)                                                                       \
    }                                                                                              \
    if (n > 0) {                                                                                   \
      R rest[LANES];                                                                               \
      FILL_##inputs(n) if (range.span != 0 && all_in(range, LANES, LAST_##inputs))                 \
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
#define RESULT_SELECT                        T, VALUE
#define RESULT_TEST                          uint8_t, TRUTH_VALUE
#define LOOP_(name, inputs, result, text)    LOOP__(name, inputs, result, text)
#define LOOP__(name, inputs, R, value, text) LOOP(name, inputs, R, value, text)

#ifdef LT_IS_DOUBLE /* src/cpu/special.c */
#define EMIT_W(name, ...)                                                                          \
  void lt_special_loop_##name(int64_t, void *, const void *, const void *, const void *,           \
                              const lt_Numbers *);
#define ENTRY_W(name) [LT_OP_##name] = lt_special_loop_##name,
#else
#define EMIT_W(...)
#define ENTRY_W(name)
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
#define EMIT_F(name, inputs, rule, ftext, itext)
#define EMIT_FI(name, inputs, rule, ftext, itext) LOOP_(name, inputs, RESULT_##rule, itext)
#define EMIT_I(name, inputs, rule, ftext, itext)  LOOP_(name, inputs, RESULT_##rule, itext)
#define EMIT_FC                                   EMIT_F
#define EMIT_FIC                                  EMIT_FI
#define ENTRY_F(name)
#define ENTRY_FI(name) [LT_OP_##name] = name##_,
#define ENTRY_I(name)  [LT_OP_##name] = name##_,
#define ENTRY_FC       ENTRY_F
#define ENTRY_FIC      ENTRY_FI
#endif

#define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)                               \
  EMIT_##types(name, inputs, rule, ftext, itext)
#include "ops.def"

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

#define LOAD(function, name, storage, category)                                                    \
  static void function(int64_t n, void *out_, const void *source, int64_t stride) {                \
    T *out = out_;                                                                                 \
    const char *p = source;                                                                        \
    if (stride == (int64_t)sizeof(storage)) {                                                      \
      const storage *dense = source;                                                               \
      _Pragma("omp simd")                                                                          \
      for (int64_t i = 0; i < n; i++) out[i] = LOADED_##category(name, dense[i]);                  \
    } else if (stride == 0) {                                                                      \
      const T value = LOADED_##category(name, *(const storage *)source);                           \
      _Pragma("omp simd")                                                                          \
      for (int64_t i = 0; i < n; i++) out[i] = value;                                              \
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
      _Pragma("omp simd")                                                                          \
      for (int64_t i = 0; i < n; i++) dense[i] = STORED_##category(name, storage, v[i]);           \
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

#define LT_DTYPE(name, storage, compute, accumulate, category, ...)                                \
  LOADS_##category(LOAD, load_##name, name, storage, category)                                     \
      STORES_##category(STORE, store_##name, name, storage, category)
#include "dtypes.def"
#undef LT_DTYPE
#define ENTRY(place, function) [place] = function,

static const lt_VectorFn entries[LT_OP_COUNT] = {
#define LT_ELEMENTWISE(name, inputs, rule, types, ...) ENTRY_##types(name)
#include "ops.def"
};

static const lt_MapFn maps[LT_MAP_COUNT] = {
#define LT_MAP(name, ...) MAP_ENTRY(name)
#include "ops.def"
};

const lt_Vectors JOIN(TABLE, _, LT_ISA, ) = {.op = entries,
                                             .map = maps,
                                             .load =
                                                 {
#define LT_DTYPE(name, storage, compute, accumulate, category, ...)                                \
  LOADS_##category(ENTRY, LT_##name, load_##name)
#include "dtypes.def"
#undef LT_DTYPE
                                                 },
                                             .store = {
#define LT_DTYPE(name, storage, compute, accumulate, category, ...)                                \
  STORES_##category(ENTRY, LT_##name, store_##name)
#include "dtypes.def"
#undef LT_DTYPE
                                             }};
