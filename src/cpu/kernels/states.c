/* states.c: the loops of reductions with a state of two or three numbers (BEST and CENTERED in
 * ops.def), for rows and columns. Sums of terms are accumulated in lanes, as in fold.c. */
#include "cpu/kernels/forms.h"

#define GROUP     16  /* a multiple of every vector's length */
#define TERMS     256 /* terms computed before they are summed; a multiple of GROUP */
#define ROW_GROUP 16  /* rows of columns that are added sequentially */
#define SHORT     96  /* shorter rows are processed without lanes */

#define ROW_FOLD      NOTHING
#define ROW_FOLD_WIDE NOTHING

#define ON_ALWAYS(...) __VA_ARGS__
#define ON_SUM         NOTHING
#define ON_ORDERED     NOTHING
#define ON_BOOL        NOTHING
#define ON_COUNT       NOTHING
#define ON_FLOATING    ON_ALWAYS
#define ON_FLOAT       ON_ALWAYS
#define ON_ARG         ON_ALWAYS
#define ON_ARG2        ON_ALWAYS

#define LOWEST  (-(T)INFINITY)
#define HIGHEST ((T)INFINITY)
#define PLUS    PLUS_FLOATS
#define TIMES   TIMES_FLOATS

/* ---- on vectors ------------------------------------------------------------------------------ */

#define PIVOTS_OF(name, V, combine)                                                                \
  LT_LANES V merge_##name##_##V(V x, V y) { return EACH(V, combine); }
#define PICKS_OF(name, V, better)                                                                  \
  LT_LANES V pick_##name##_##V(V x, V y) { return PICK((better) | (y != y), y, x); }

#define T                                          float
#define PICK(k, yes, no)                           PICK_VECTORS(FV, FM, k, yes, no)
#define ROW_CENTERED(name, identity, combine, ...) PIVOTS_OF(name, FV, combine)
#define ROW_CENTERED_WIDE                          NOTHING
#define ROW_BEST(name, better)                     PICKS_OF(name, FV, better)
#define LT_REDUCE(name, rule, form, ...)           ROW(name, rule, form)
#include "ops.def"
#undef T
#undef PICK
#undef ROW_CENTERED
#undef ROW_CENTERED_WIDE
#undef ROW_BEST

#define T                                          double
#define PICK(k, yes, no)                           PICK_VECTORS(DV, DM, k, yes, no)
#define ROW_CENTERED(name, identity, combine, ...) PIVOTS_OF(name, DV, combine)
#define ROW_CENTERED_WIDE                          ROW_CENTERED
#define ROW_BEST(name, better)                     PICKS_OF(name, DV, better)
#define LT_REDUCE(name, rule, form, ...)           ROW(name, rule, form)
#include "ops.def"
#undef T
#undef PICK
#undef ROW_CENTERED
#undef ROW_CENTERED_WIDE
#undef ROW_BEST

/* ---- loops ----------------------------------------------------------------------------------- */

#define PICK PICK_ONE

#define S                   F32
#define FROM                float
#define T                   float
#define AT                  int32_t
#define LT_FROM             LT_float32
#define LT_TO               LT_float32
#define M(g)                lt_m_##g##f
#define V                   FV
#define LANES               F16
#define LANES_N             F16_N
#define LANES_ALL           F16_ALL
#define LANES_JOIN          F16_JOIN
#define OPEN                F16_LOAD
#define LOAD                F16_LOAD
#define ROW_CENTERED        CENTERED_LOOPS
#define ROW_CENTERED_WIDE   NOTHING
#define ROW_BEST            BEST_LOOPS
#define ENTRY_CENTERED      CENTERED_ENTRY
#define ENTRY_CENTERED_WIDE NOTHING
#define ENTRY_BEST          BEST_ENTRY
#include "states_body.h"
#undef M
#undef V
#undef LANES_N
#undef OPEN
#undef LOAD
#undef LANES
#undef LANES_ALL
#undef LANES_JOIN

#define S                   F32_WIDE
#define FROM                float
#define T                   double
#define LT_FROM             LT_float32
#define LT_TO               LT_float64
#define M(g)                lt_m_##g
#define V                   DV
#define LANES               D8
#define LANES_N             D8_N
#define LANES_ALL           D8_ALL
#define LANES_JOIN          D8_JOIN
#define OPEN                D8_OF_FLOATS
#define LOAD                D8_LOAD
#define ROW_CENTERED        NOTHING
#define ROW_CENTERED_WIDE   CENTERED_LOOPS
#define ROW_BEST            NOTHING
#define ENTRY_CENTERED      NOTHING
#define ENTRY_CENTERED_WIDE CENTERED_ENTRY
#include "states_body.h"
#undef OPEN

#define S                   F64
#define FROM                double
#define T                   double
#define AT                  int64_t
#define LT_FROM             LT_float64
#define LT_TO               LT_float64
#define OPEN                D8_LOAD
#define ROW_CENTERED        CENTERED_LOOPS
#define ROW_CENTERED_WIDE   CENTERED_LOOPS
#define ROW_BEST            BEST_LOOPS
#define ENTRY_CENTERED      CENTERED_ENTRY
#define ENTRY_CENTERED_WIDE CENTERED_ENTRY
#define ENTRY_BEST          BEST_ENTRY
#include "states_body.h"
#undef M
#undef V
#undef LANES_N
#undef OPEN
#undef LOAD
#undef LANES
#undef LANES_ALL
#undef LANES_JOIN

#undef ON_FLOATING
#undef ON_FLOAT
#define ON_FLOATING NOTHING
#define ON_FLOAT    NOTHING

#define S                 I64
#define FROM              int64_t
#define T                 int64_t
#define AT                int64_t
#define ROW_CENTERED      NOTHING
#define ROW_CENTERED_WIDE NOTHING
#define ROW_BEST          BEST_LOOPS
#define ENTRY_BEST        BEST_ENTRY
#include "states_body.h"

#define S                 I32
#define FROM              int32_t
#define T                 int32_t
#define AT                int32_t
#define ROW_CENTERED      NOTHING
#define ROW_CENTERED_WIDE NOTHING
#define ROW_BEST          BEST_LOOPS
#define ENTRY_BEST        BEST_ENTRY
#include "states_body.h"

#define S                 I16
#define FROM              int16_t
#define T                 int16_t
#define AT                int16_t
#define ROW_CENTERED      NOTHING
#define ROW_CENTERED_WIDE NOTHING
#define ROW_BEST          BEST_LOOPS
#define ENTRY_BEST        BEST_ENTRY
#include "states_body.h"

#define S                 I8
#define FROM              int8_t
#define T                 int8_t
#define AT                int8_t
#define ROW_CENTERED      NOTHING
#define ROW_CENTERED_WIDE NOTHING
#define ROW_BEST          BEST_LOOPS
#define ENTRY_BEST        BEST_ENTRY
#include "states_body.h"

#define S                 UINT8
#define FROM              uint8_t
#define T                 uint8_t
#define AT                int8_t
#define ROW_CENTERED      NOTHING
#define ROW_CENTERED_WIDE NOTHING
#define ROW_BEST          BEST_LOOPS
#define ENTRY_BEST        BEST_ENTRY
#include "states_body.h"

extern const lt_Centered *const LT_FOR_ISA(lt_centereds)[LT_STATE_COUNT];
const lt_Centered *const LT_FOR_ISA(lt_centereds)[LT_STATE_COUNT] = {
    [LT_STATE_F32] = centereds_of_F32,
    [LT_STATE_F32_WIDE] = centereds_of_F32_WIDE,
    [LT_STATE_F64] = centereds_of_F64,
};
extern const lt_Best *const LT_FOR_ISA(lt_bests)[LT_STATE_COUNT];
const lt_Best *const LT_FOR_ISA(lt_bests)[LT_STATE_COUNT] = {
    [LT_STATE_F32] = bests_of_F32,     [LT_STATE_F64] = bests_of_F64, [LT_STATE_I64] = bests_of_I64,
    [LT_STATE_I32] = bests_of_I32,     [LT_STATE_I16] = bests_of_I16, [LT_STATE_I8] = bests_of_I8,
    [LT_STATE_UINT8] = bests_of_UINT8,
};
