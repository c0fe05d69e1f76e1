/* row_sums.c: the loops that add rows of a table (row_sums.h) of one instruction set. Successive
 * rows that are added to one row are summed in registers. */
#include "cpu/row_sums.h"
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"

#define TOGETHER 4 /* vectors of a row that are summed at once */
#define AHEAD    8 /* rows that are loaded into the cache before they are added */

typedef uint64_t IV __attribute__((vector_size(LT_VECTOR_SIZE)));

/* Define the loop for elements of type T in vectors V. */
#define ROW_SUMS(T, F, V)                                                                          \
  LT_LANES const T *row_##F(const lt_RowSums *s, int64_t i) {                                      \
    return (const T *)s->rows + (s->from ? s->from[i] - LT_INDEX_BASE : i) * s->n;                 \
  }                                                                                                \
  /* Adds elements column .. column + vectors * their length - 1 of the rows first .. last - 1. */ \
  LT_LANES void columns_##F(const lt_RowSums *s, const int64_t *own, int64_t first, int64_t last,  \
                            int64_t count, int64_t column, T *to, const int vectors) {             \
    const T *factors = s->factors;                                                                 \
    const int64_t step = (int64_t)(sizeof(V) / sizeof(T));                                         \
    V sum[TOGETHER];                                                                               \
    _Pragma("GCC unroll 4")                                                                        \
    for (int v = 0; v < vectors; v++) memcpy(&sum[v], to + column + v * step, sizeof(V));          \
    for (int64_t j = first; j < last; j++) {                                                       \
      const T *x = row_##F(s, own[j]) + column;                                                    \
      const T *later = row_##F(s, own[j + AHEAD < count ? j + AHEAD : j]) + column;                \
      const V factor = (V){0} + (factors ? factors[own[j]] : (T)1);                                \
      _Pragma("GCC unroll 4")                                                                      \
      for (int v = 0; v < vectors; v++) {                                                          \
        V e;                                                                                       \
        memcpy(&e, x + v * step, sizeof e);                                                        \
        __builtin_prefetch(later + v * step);                                                      \
        sum[v] += factor * e;                                                                      \
      }                                                                                            \
    }                                                                                              \
    _Pragma("GCC unroll 4")                                                                        \
    for (int v = 0; v < vectors; v++) memcpy(to + column + v * step, &sum[v], sizeof(V));          \
  }                                                                                                \
  static void sum_##F(const lt_RowSums *s, const int64_t *own, int64_t count) {                    \
    const T *factors = s->factors;                                                                 \
    const int64_t n = s->n, step = (int64_t)(sizeof(V) / sizeof(T));                               \
    for (int64_t k = 0, end; k < count; k = end) {                                                 \
      const int64_t row = s->to[own[k]];                                                           \
      T *to = (T *)s->out + (row - LT_INDEX_BASE) * n;                                             \
      for (end = k + 1; end < count && s->to[own[end]] == row;) end++;                             \
      int64_t j = 0;                                                                               \
      for (; j + TOGETHER * step <= n; j += TOGETHER * step)                                       \
        columns_##F(s, own, k, end, count, j, to, TOGETHER);                                       \
      for (; j + step <= n; j += step) columns_##F(s, own, k, end, count, j, to, 1);               \
      for (int64_t i = k; j < n && i < end; i++) {                                                 \
        const T *x = row_##F(s, own[i]), factor = factors ? factors[own[i]] : (T)1;                \
        for (int64_t c = j; c < n; c++) to[c] += factor * x[c];                                    \
      }                                                                                            \
    }                                                                                              \
  }
ROW_SUMS(float, f32, FV)
ROW_SUMS(double, f64, DV)
ROW_SUMS(uint64_t, i64, IV)

extern const lt_RowSumsFn LT_FOR_ISA(lt_row_sums)[3];
const lt_RowSumsFn LT_FOR_ISA(lt_row_sums)[3] = {sum_f32, sum_f64, sum_i64};
