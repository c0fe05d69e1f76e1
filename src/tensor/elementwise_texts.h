/* elementwise_texts.h: the macros used in the expressions of ops.def, for the type T, in kernels of
 * devices. A file defines
 *
 *   T, U                 the type, and of integers its unsigned counterpart
 *   LT_IS_FLOAT, LT_IS_INTEGER, LT_IS_BOOL or LT_IS_COMPLEX      its kind
 *   R                    of complex numbers, the type of their parts
 *   m_exp, m_sin, ...    the math functions for T
 *   LT_TEXTS_INLINE      the qualifiers of functions ("static inline")
 *   LT_SPECIAL           only for rows of type W, in place of all others: see special.h
 *
 * and LT_ELEMENTWISE as
 *
 *   #define LT_ELEMENTWISE(name, inputs, rule, types, ftext, itext, ...)
 *     TEXT_##types(name, inputs, rule, ftext, itext)
 *
 * Then LT_TEXT(name, inputs, result, text) is expanded for each op that supports T; result(text) is
 * the op's value, a T.
 */
#define M(f) m_##f
#ifdef LT_IS_FLOAT
#define LT_MATHX_FLOAT LT_TEXTS_INLINE
#elif defined LT_IS_COMPLEX
#define LT_MATHX_COMPLEX LT_TEXTS_INLINE
#define RM(f)            m_##f
#define RE(z)            ((z).re)
#define IM(z)            ((z).im)
#define MAKE(re, im)     T(re, im)
#else
#define LT_MATHX_INTEGER LT_TEXTS_INLINE
#endif
#include "mathx.h"
#include "opids.h"

#ifdef LT_IS_BOOL
#undef NOT
#define NOT(x)   (!(x))
#define VALUE(e) ((T)((e) != 0))
#else
#define VALUE(e) ((T)(e))
#endif
#define TRUTH_VALUE(e) ((T)((e) != 0))

#define RESULT_SAME       VALUE
#define RESULT_NUMBER     VALUE
#define RESULT_WIDEN      VALUE
#define RESULT_DIVIDE     VALUE
#define RESULT_POWER      VALUE
#define RESULT_FLOAT      VALUE
#define RESULT_FLOATING   VALUE
#define RESULT_REAL       VALUE
#define RESULT_REAL_FLOAT VALUE
#define RESULT_INTEGRAL   VALUE
#define RESULT_SELF       VALUE
#define RESULT_MASK       VALUE
#define RESULT_LIMIT      VALUE
#define RESULT_SELECT     VALUE
#define RESULT_TEST       TRUTH_VALUE

#ifdef LT_SPECIAL
#include "special.h"
#define TEXT_F(...)
#define TEXT_FI(...)
#define TEXT_I(...)
#define TEXT_FC(...)
#define TEXT_FIC(...)
#define TEXT_W(name, inputs, rule, ftext, itext) LT_TEXT(name, inputs, RESULT_##rule, ftext)
#define TEXT_WF                                  TEXT_W
#elif defined LT_IS_FLOAT
#define TEXT_W(...)
#define TEXT_WF(...)
#define TEXT_F(name, inputs, rule, ftext, itext)  LT_TEXT(name, inputs, RESULT_##rule, ftext)
#define TEXT_FI(name, inputs, rule, ftext, itext) LT_TEXT(name, inputs, RESULT_##rule, ftext)
#define TEXT_I(name, inputs, rule, ftext, itext)
#define TEXT_FC  TEXT_F
#define TEXT_FIC TEXT_FI
#elif defined LT_IS_COMPLEX
#define TEXT_W(...)
#define TEXT_WF(...)
#define TEXT_F(...)
#define TEXT_FI(...)
#define TEXT_I(...)
#define TEXT_FC(name, inputs, rule, ftext, itext) LT_TEXT(name, inputs, RESULT_##rule, ftext)
#define TEXT_FIC                                  TEXT_FC
#else
#define TEXT_W(...)
#define TEXT_WF(...)
#define TEXT_F(name, inputs, rule, ftext, itext)
#define TEXT_FI(name, inputs, rule, ftext, itext) LT_TEXT(name, inputs, RESULT_##rule, itext)
#define TEXT_I(name, inputs, rule, ftext, itext)  LT_TEXT(name, inputs, RESULT_##rule, itext)
#define TEXT_FC                                   TEXT_F
#define TEXT_FIC                                  TEXT_FI
#endif

/* ---- ops as types ---------------------------------------------------------------------------- */

/* For files with a kernel for each op: with LT_OP_STRUCT as LT_TEXT, each op is a struct
 * Op_<name>. */
#define TEST_VALUE       0
#define TEST_TRUTH_VALUE 1
#define LT_OP_STRUCT(name, count, result, text)                                                    \
  struct Op_##name {                                                                               \
    static constexpr int inputs = count;                                                           \
    static constexpr bool test = TEST_OF(result);                                                  \
    LT_TEXTS_INLINE T of(T x, T y, T z, T a, T b, T MAXFINITE) {                                   \
      (void)x, (void)y, (void)z, (void)a, (void)b, (void)MAXFINITE;                                \
      return result(text);                                                                         \
    }                                                                                              \
  };
#define TEST_OF(result)  TEST_OF_(result)
#define TEST_OF_(result) TEST_##result
