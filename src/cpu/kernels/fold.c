/* fold.c: the loops of reductions with a state of one number (FOLD in ops.def), for rows and
 * columns.
 *
 * Floats are accumulated in 64 bytes of lanes (16 float or 8 double, or their complex pairs), in
 * four vectors side by side, over blocks (of 2,048 elements; of complex ones, fewer); blocks are
 * combined in pairs (the largest and the smallest, which are exact in any order, need no blocks).
 * So the rounding error of a sum grows with the logarithm of its length, and the result is the same
 * for every width of the CPU's vectors. Columns are added row by row, which uses caches well, in
 * blocks of 16 rows that are also combined in pairs. */
#include "cpu/kernels/forms.h"
#include "cpu/kernels/complex_lanes.h"
#include "cpu/kernels/half_lanes.h"
#include "cpu/moves.h"

#define TOGETHER  64 /* short rows that are transposed together; a multiple of lanes */
#define ROW_GROUP 16 /* rows that are added to columns sequentially */

#define ROW_CENTERED      NOTHING
#define ROW_CENTERED_WIDE NOTHING
#define ROW_BEST          NOTHING

/* ---- element and combine on vectors ---------------------------------------------------------- */

#define LOWEST         (-(T)INFINITY)
#define HIGHEST        ((T)INFINITY)
#define PLUS           PLUS_FLOATS
#define TIMES          TIMES_FLOATS
#define ON_ALWAYS(...) __VA_ARGS__
#define ON_SUM         ON_ALWAYS
#define ON_ORDERED     ON_ALWAYS
#define ON_FLOATING    ON_ALWAYS
#define ON_FLOAT       ON_ALWAYS
#define ON_BOOL        NOTHING
#define ON_COUNT       NOTHING
#define ON_ARG         NOTHING
#define ON_ARG2        NOTHING

/* quick_<row> selects the larger or smaller of two elements by one instruction, which has another
 * result for NaN: loops that use it look for NaN. */
#define VECTORS_OF(name, V, element, combine)                                                      \
  LT_LANES V lift_##name##_##V(V x) { return EACH(V, element); }                                   \
  LT_LANES V merge_##name##_##V(V x, V y) {                                                        \
    enum { quick = false };                                                                        \
    return EACH(V, combine);                                                                       \
  }                                                                                                \
  LT_LANES V quick_##name##_##V(V x, V y) {                                                        \
    enum { quick = true };                                                                         \
    return EACH(V, combine);                                                                       \
  }

#pragma push_macro("LARGER")
#pragma push_macro("SMALLER")
#undef LARGER
#undef SMALLER
#define LARGER(x, y)  (quick ? PEAK(x, y) : PICK(((y) > (x)) | ((y) != (y)), y, x))
#define SMALLER(x, y) (quick ? LEAST(x, y) : PICK(((y) < (x)) | ((y) != (y)), y, x))

#define T                                                  float
#define PEAK                                               FV_PEAK
#define LEAST                                              FV_LEAST
#define PICK(k, yes, no)                                   PICK_VECTORS(FV, FM, k, yes, no)
#define ROW_FOLD(name, identity, element, combine, finish) VECTORS_OF(name, FV, element, combine)
#define ROW_FOLD_WIDE                                      NOTHING
#define LT_REDUCE(name, rule, form, ...)                   ROW(name, rule, form)
#define LT_FORM(name, rule, form)                          ROW(name, rule, form)
#include "ops.def"
#undef T
#undef PEAK
#undef LEAST
#undef PICK
#undef ROW_FOLD
#undef ROW_FOLD_WIDE

#define T                                                  double
#define PEAK                                               DV_PEAK
#define LEAST                                              DV_LEAST
#define PICK(k, yes, no)                                   PICK_VECTORS(DV, DM, k, yes, no)
#define ROW_FOLD(name, identity, element, combine, finish) VECTORS_OF(name, DV, element, combine)
#define ROW_FOLD_WIDE                                      ROW_FOLD
#define LT_REDUCE(name, rule, form, ...)                   ROW(name, rule, form)
#define LT_FORM(name, rule, form)                          ROW(name, rule, form)
#include "ops.def"
#undef T
#undef PEAK
#undef LEAST
#undef PICK
#undef ROW_FOLD
#undef ROW_FOLD_WIDE
#pragma pop_macro("LARGER")
#pragma pop_macro("SMALLER")

/* ---- loops of floats ------------------------------------------------------------------------- */

#define PICK     PICK_ONE
#define OF_FORMS ON_ALWAYS

#define S               F32
#define FROM            float
#define T               float
#define LT_FROM         LT_float32
#define LT_TO           LT_float32
#define SAME_TYPE       true
#define M(g)            lt_m_##g##f
#define V               FV
#define LANES           F16
#define LANES_N         F16_N
#define LANES_ALL       F16_ALL
#define LANES_JOIN      F16_JOIN
#define MASK            FNAN
#define MASK_ANY        FNAN_ANY
#define NAN_OF          FV_NAN
#define OPEN            F16_LOAD
#define LOAD            F16_LOAD
#define AHEAD           0
#define BLOCK           2048
#define OF_HALVES       ON_ALWAYS
#define ROW_FOLD        LOOPS
#define ROW_FOLD_WIDE   NOTHING
#define ENTRY_FOLD      ENTRY
#define ENTRY_FOLD_WIDE NOTHING
#include "fold_body.h"
#undef AHEAD
#undef OF_HALVES
#define OF_HALVES NOTHING
#undef M
#undef V
#undef LANES_N
#undef OPEN
#undef LOAD
#undef LANES
#undef LANES_ALL
#undef LANES_JOIN
#undef MASK
#undef MASK_ANY
#undef NAN_OF

/* Here the conversion takes so many instructions that too few loads are in flight. */
#define S               F32_WIDE
#define FROM            float
#define T               double
#define LT_FROM         LT_float32
#define LT_TO           LT_float64
#define SAME_TYPE       false
#define M(g)            lt_m_##g
#define V               DV
#define LANES           D8
#define LANES_N         D8_N
#define LANES_ALL       D8_ALL
#define LANES_JOIN      D8_JOIN
#define MASK            DNAN
#define MASK_ANY        DNAN_ANY
#define NAN_OF          DV_NAN
#define OPEN            D8_OF_FLOATS
#define AHEAD           1024
#define LOAD            D8_LOAD
#define ROW_FOLD        NOTHING
#define ROW_FOLD_WIDE   LOOPS
#define ENTRY_FOLD      NOTHING
#define ENTRY_FOLD_WIDE ENTRY
#include "fold_body.h"
#undef OPEN
#undef AHEAD

#define S               F64
#define FROM            double
#define T               double
#define LT_FROM         LT_float64
#define LT_TO           LT_float64
#define SAME_TYPE       true
#define OPEN            D8_LOAD
#define AHEAD           0
#define ROW_FOLD        LOOPS
#define ROW_FOLD_WIDE   LOOPS
#define ENTRY_FOLD      ENTRY
#define ENTRY_FOLD_WIDE ENTRY
#include "fold_body.h"
#undef M
#undef V
#undef LANES_N
#undef OPEN
#undef LOAD
#undef LANES
#undef LANES_ALL
#undef LANES_JOIN
#undef MASK
#undef MASK_ANY
#undef NAN_OF

/* ---- loops of integers and bool -------------------------------------------------------------- */

#undef ON_FLOATING
#undef ON_FLOAT
#undef LOWEST
#undef HIGHEST
#undef PLUS
#undef TIMES
#define ON_FLOATING NOTHING
#define ON_FLOAT    NOTHING
#define PLUS        PLUS_INTEGERS
#define TIMES       TIMES_INTEGERS

#define S         I64
#define FROM      int64_t
#define T         int64_t
#define U         uint64_t
#define LOWEST    INT64_MIN
#define HIGHEST   INT64_MAX
#define LT_FROM   LT_int64
#define LT_TO     LT_int64
#define SAME_TYPE true
#include "fold_integers.h"

/* The largest and the smallest of narrow integers; of bytes also whether all or any are not 0. */
#undef ON_SUM
#define ON_SUM NOTHING

#define S         I32
#define FROM      int32_t
#define T         int32_t
#define U         uint32_t
#define LOWEST    INT32_MIN
#define HIGHEST   INT32_MAX
#define LT_FROM   LT_int32
#define LT_TO     LT_int32
#define SAME_TYPE true
#include "fold_integers.h"

#define S         I16
#define FROM      int16_t
#define T         int16_t
#define U         uint16_t
#define LOWEST    INT16_MIN
#define HIGHEST   INT16_MAX
#define LT_FROM   LT_int16
#define LT_TO     LT_int16
#define SAME_TYPE true
#include "fold_integers.h"

#define S         I8
#define FROM      int8_t
#define T         int8_t
#define U         uint8_t
#define LOWEST    INT8_MIN
#define HIGHEST   INT8_MAX
#define LT_FROM   LT_int8
#define LT_TO     LT_int8
#define SAME_TYPE true
#include "fold_integers.h"

#undef ON_BOOL
#define ON_BOOL   ON_ALWAYS
#define S         UINT8
#define FROM      uint8_t
#define T         uint8_t
#define U         uint8_t
#define LOWEST    0
#define HIGHEST   UINT8_MAX
#define LT_FROM   LT_uint8
#define LT_TO     LT_uint8
#define SAME_TYPE true
#include "fold_integers.h"

/* Sums and products of narrow integers to int64. */
#undef ON_SUM
#undef ON_BOOL
#undef ON_ORDERED
#define ON_SUM     ON_ALWAYS
#define ON_BOOL    NOTHING
#define ON_ORDERED NOTHING

#define S         I32_SUM
#define FROM      int32_t
#define T         int64_t
#define U         uint64_t
#define LOWEST    INT64_MIN
#define HIGHEST   INT64_MAX
#define LT_FROM   LT_int32
#define LT_TO     LT_int64
#define SAME_TYPE false
#include "fold_integers.h"

#define S         I16_SUM
#define FROM      int16_t
#define T         int64_t
#define U         uint64_t
#define LOWEST    INT64_MIN
#define HIGHEST   INT64_MAX
#define LT_FROM   LT_int16
#define LT_TO     LT_int64
#define SAME_TYPE false
#include "fold_integers.h"

#define S         I8_SUM
#define FROM      int8_t
#define T         int64_t
#define U         uint64_t
#define LOWEST    INT64_MIN
#define HIGHEST   INT64_MAX
#define LT_FROM   LT_int8
#define LT_TO     LT_int64
#define SAME_TYPE false
#include "fold_integers.h"

#define S         UINT8_SUM
#define FROM      uint8_t
#define T         int64_t
#define U         uint64_t
#define LOWEST    INT64_MIN
#define HIGHEST   INT64_MAX
#define LT_FROM   LT_uint8
#define LT_TO     LT_int64
#define SAME_TYPE false
#include "fold_integers.h"

/* Bytes of bool to int64. */
#undef ON_COUNT
#define ON_COUNT  ON_ALWAYS
#define S         U8_COUNT
#define FROM      uint8_t
#define T         int64_t
#define U         uint64_t
#define LOWEST    INT64_MIN
#define HIGHEST   INT64_MAX
#define LT_FROM   LT_bool
#define LT_TO     LT_int64
#define SAME_TYPE false
#include "fold_integers.h"

/* Bytes of bool to bytes. */
#undef ON_SUM
#undef ON_ORDERED
#undef ON_COUNT
#undef ON_BOOL
#define ON_SUM     NOTHING
#define ON_ORDERED ON_ALWAYS
#define ON_COUNT   NOTHING
#define ON_BOOL    ON_ALWAYS
#define S          U8
#define FROM       uint8_t
#define T          uint8_t
#define U          uint8_t
#define LOWEST     0
#define HIGHEST    UINT8_MAX
#define LT_FROM    LT_bool
#define LT_TO      LT_bool
#define SAME_TYPE  true
#include "fold_integers.h"

/* ---- loops of complex numbers ---------------------------------------------------------------- */

/* Without the recovery of infinities of C's annex G, as the loops of mul. */
#ifdef __clang__
#pragma STDC CX_LIMITED_RANGE ON
#else
#pragma GCC optimize("cx-limited-range")
#endif

#undef ON_SUM
#undef ON_ORDERED
#undef ON_BOOL
#undef ON_COUNT
#undef ON_FLOATING
#undef OF_FORMS
#undef PLUS
#define ON_SUM      ON_ALWAYS
#define ON_ORDERED  NOTHING
#define ON_BOOL     NOTHING
#define ON_COUNT    NOTHING
#define ON_FLOATING ON_ALWAYS
#define OF_FORMS    NOTHING
#define PLUS        PLUS_FLOATS

#undef TIMES
#undef PICK
#define ROW_FOLD(name, identity, element, combine, finish) VECTORS_OF(name, CFV, element, combine)
#define ROW_FOLD_WIDE                                      NOTHING
#define TIMES                                              CFV_TIMES

#define PICK(k, yes, no) PICK_VECTORS(FV, FM, CFV_BOTH(k), yes, no)

#define LT_REDUCE(name, rule, form, ...) ROW(name, rule, form)
#include "ops.def"
#undef ROW_FOLD
#undef TIMES
#undef PICK

#define ROW_FOLD(name, identity, element, combine, finish) VECTORS_OF(name, CDV, element, combine)
#define TIMES                                              CDV_TIMES

#define PICK(k, yes, no) PICK_VECTORS(DV, DM, CDV_BOTH(k), yes, no)

#define LT_REDUCE(name, rule, form, ...) ROW(name, rule, form)
#include "ops.def"
#undef ROW_FOLD
#undef ROW_FOLD_WIDE
#undef TIMES
#undef PICK

#define TIMES TIMES_FLOATS
#define PICK  PICK_ONE
#define AHEAD 0

#define S         C64
#define FROM      float _Complex
#define T         float _Complex
#define NUMBER    float
#define LT_FROM   LT_complex64
#define LT_TO     LT_complex64
#define SAME_TYPE true
#define U         T
#define LOWEST    0
#define HIGHEST   0
#undef BLOCK
#define V          CFV
#define BLOCK      512
#define LANES      F16
#define LANES_N    C8_N
#define LANES_ALL  C8_ALL
#define LANES_JOIN C8_JOIN
#define MASK       FNAN
#define MASK_ANY   FNAN_ANY
#define NAN_OF     FV_NAN
#define OPEN       C8_LOAD
#define LOAD       C8_LOAD
#include "fold_integers.h"
#undef V
#undef LANES
#undef LANES_N
#undef LANES_ALL
#undef LANES_JOIN
#undef MASK
#undef MASK_ANY
#undef NAN_OF
#undef OPEN
#undef LOAD

#define S         C128
#define FROM      double _Complex
#define T         double _Complex
#define NUMBER    double
#define LT_FROM   LT_complex128
#define LT_TO     LT_complex128
#define SAME_TYPE true
#define U         T
#define LOWEST    0
#define HIGHEST   0
#undef BLOCK
#define V          CDV
#define BLOCK      256
#define LANES      D8
#define LANES_N    C4_N
#define LANES_ALL  C4_ALL
#define LANES_JOIN C4_JOIN
#define MASK       DNAN
#define MASK_ANY   DNAN_ANY
#define NAN_OF     DV_NAN
#define OPEN       C4_LOAD
#define LOAD       C4_LOAD
#include "fold_integers.h"

extern const lt_Fold *const LT_FOR_ISA(lt_folds)[LT_STATE_COUNT];
const lt_Fold *const LT_FOR_ISA(lt_folds)[LT_STATE_COUNT] = {
    [LT_STATE_F32] = folds_of_F32,         [LT_STATE_F32_WIDE] = folds_of_F32_WIDE,
    [LT_STATE_F64] = folds_of_F64,         [LT_STATE_I64] = folds_of_I64,
    [LT_STATE_I32] = folds_of_I32,         [LT_STATE_I16] = folds_of_I16,
    [LT_STATE_I8] = folds_of_I8,           [LT_STATE_UINT8] = folds_of_UINT8,
    [LT_STATE_U8] = folds_of_U8,           [LT_STATE_U8_COUNT] = folds_of_U8_COUNT,
    [LT_STATE_C64] = folds_of_C64,         [LT_STATE_C128] = folds_of_C128,
    [LT_STATE_I32_SUM] = folds_of_I32_SUM, [LT_STATE_I16_SUM] = folds_of_I16_SUM,
    [LT_STATE_I8_SUM] = folds_of_I8_SUM,   [LT_STATE_UINT8_SUM] = folds_of_UINT8_SUM,
};
