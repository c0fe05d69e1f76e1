/* cummax.c: the loops of cummax and cummin (lt_Extremes in rows.h) of one instruction set. */
#include "cpu/rows.h"
#include "kernel.h"

#define STEP 16 /* neighbours compared together with the extreme before them */

/* Few elements of a long line are extremes: where none of several neighbours is, all get the one
 * before them. */
#define EXTREMES(NAME, T, REACHES, MISSES, IS_NAN)                                                 \
  static void line_##NAME(const void *from, void *to, int64_t *indices, int64_t n) {               \
    const T *x = from;                                                                             \
    T *values = to;                                                                                \
    T best = x[0];                                                                                 \
    int64_t at = LT_INDEX_BASE;                                                                    \
    for (int64_t i = 0, end; i < n && !lt_stopped_at(i); i = end) {                                \
      unsigned found = n - i < STEP;                                                               \
      end = found ? n : i + STEP;                                                                  \
      if (!found)                                                                                  \
        for (int64_t j = 0; j < STEP; j++) found |= !(x[i + j] MISSES best); /* NaN, too */        \
      if (found) {                                                                                 \
        for (int64_t j = i; j < end; j++) {                                                        \
          if (x[j] REACHES best || IS_NAN(x[j])) best = x[j], at = j + LT_INDEX_BASE;              \
          values[j] = best;                                                                        \
          indices[j] = at;                                                                         \
        }                                                                                          \
      } else {                                                                                     \
        for (int64_t j = 0; j < STEP; j++) values[i + j] = best;                                   \
        for (int64_t j = 0; j < STEP; j++) indices[i + j] = at;                                    \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void columns_##NAME(const void *from, void *to, int64_t *indices, int64_t n,              \
                             int64_t step, int64_t width) {                                        \
    const T *x = from;                                                                             \
    T *values = to;                                                                                \
    T best[LT_SCAN_WIDTH];                                                                         \
    int64_t at[LT_SCAN_WIDTH];                                                                     \
    for (int64_t j = 0; j < width; j++) best[j] = x[j], at[j] = LT_INDEX_BASE;                     \
    for (int64_t i = 0; i < n && !lt_stopped_at(i); i++)                                           \
      for (int64_t j = 0; j < width; j++) {                                                        \
        int64_t k = i * step + j;                                                                  \
        T v = x[k];                                                                                \
        bool taken = v REACHES best[j] || IS_NAN(v);                                               \
        values[k] = best[j] = taken ? v : best[j];                                                 \
        indices[k] = at[j] = taken ? i + LT_INDEX_BASE : at[j];                                    \
      }                                                                                            \
  }

#define DIFFERS(v) ((v) != (v))
#define NEVER(v)   false
EXTREMES(max_f32, float, >=, <, DIFFERS)
EXTREMES(max_f64, double, >=, <, DIFFERS)
EXTREMES(max_i64, int64_t, >=, <, NEVER)
EXTREMES(min_f32, float, <=, >, DIFFERS)
EXTREMES(min_f64, double, <=, >, DIFFERS)
EXTREMES(min_i64, int64_t, <=, >, NEVER)

#define ENTRY(NAME)                                                                                \
  { line_##NAME, columns_##NAME }
extern const lt_Extremes LT_FOR_ISA(lt_extremes)[2][3];
const lt_Extremes LT_FOR_ISA(lt_extremes)[2][3] = {
    {ENTRY(min_f32), ENTRY(min_f64), ENTRY(min_i64)},
    {ENTRY(max_f32), ENTRY(max_f64), ENTRY(max_i64)},
};
