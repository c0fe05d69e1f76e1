/* scan.c: the loops of cumulative sums and products (rows.h). Each result waits for the one before
 * it, so four rows are processed at a time. */
#include "kernel.h"
#include "cpu/rows.h"
#include "cpu/kernels/shuffle.h"

/* Products of complex numbers without the recovery of infinities of C's annex G, as the loops of
 * mul. */
#ifdef __clang__
#pragma STDC CX_LIMITED_RANGE ON
#else
#pragma GCC optimize("cx-limited-range")
#endif

/* ---- four rows of floats, accumulated in float64 --------------------------------------------- */

typedef double Sums __attribute__((vector_size(32)));

/* GCC splits __builtin_convertvector in halves, through memory. */
#ifdef __AVX__
#define WIDEN(v)  ((Sums)_mm256_cvtps_pd((__m128)(v)))
#define NARROW(v) ((LT_F4)_mm256_cvtpd_ps((__m256d)(v)))
#else
#define WIDEN(v)  __builtin_convertvector(v, Sums)
#define NARROW(v) __builtin_convertvector(v, LT_F4)
#endif

#define FOUR_ROWS(NAME, JOIN, FIRST)                                                               \
  static void four_##NAME(const float *x, float *y, int64_t n, double *states) {                   \
    Sums s = {FIRST, FIRST, FIRST, FIRST};                                                         \
    if (states) memcpy(&s, states, sizeof s);                                                      \
    int64_t i = 0, whole = n / 4 * 4;                                                              \
    for (int64_t end; (end = lt_next_chunk(i, whole)) > i;)                                        \
      for (; i < end; i += 4) {                                                                    \
        LT_F4 v[4];                                                                                \
        for (int k = 0; k < 4; k++) memcpy(&v[k], x + k * n + i, sizeof v[k]);                     \
        lt_transpose_4(v);                                                                         \
        for (int k = 0; k < 4; k++) {                                                              \
          s = JOIN(s, WIDEN(v[k]));                                                                \
          v[k] = NARROW(s);                                                                        \
        }                                                                                          \
        lt_transpose_4(v);                                                                         \
        for (int k = 0; k < 4; k++) memcpy(y + k * n + i, &v[k], sizeof v[k]);                     \
      }                                                                                            \
    for (; i < n && !lt_stopped(); i++)                                                            \
      for (int k = 0; k < 4; k++) {                                                                \
        s[k] = JOIN(s[k], (double)x[k * n + i]);                                                   \
        y[k * n + i] = (float)s[k];                                                                \
      }                                                                                            \
    if (states) memcpy(states, &s, sizeof s);                                                      \
  }

/* ---- four rows of float64, integers or complex numbers --------------------------------------- */

#define FOUR_PLAIN_ROWS(NAME, T, ACC, JOIN, FIRST)                                                 \
  static void four_##NAME(const T *x, T *y, int64_t n, ACC *states) {                              \
    ACC a = FIRST, b = FIRST, c = FIRST, d = FIRST;                                                \
    if (states) a = states[0], b = states[1], c = states[2], d = states[3];                        \
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)                                     \
      for (; i < end; i++) {                                                                       \
        y[i] = (T)(a = JOIN(a, (ACC)x[i]));                                                        \
        y[i + n] = (T)(b = JOIN(b, (ACC)x[i + n]));                                                \
        y[i + 2 * n] = (T)(c = JOIN(c, (ACC)x[i + 2 * n]));                                        \
        y[i + 3 * n] = (T)(d = JOIN(d, (ACC)x[i + 3 * n]));                                        \
      }                                                                                            \
    if (states) states[0] = a, states[1] = b, states[2] = c, states[3] = d;                        \
  }

/* ---- all rows, and columns ------------------------------------------------------------------- */

#define SCAN(NAME, T, ACC, JOIN, FIRST)                                                            \
  static void one_##NAME(const T *x, T *y, int64_t n, ACC *state) {                                \
    ACC a = state ? *state : FIRST;                                                                \
    for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)                                     \
      for (; i < end; i++) {                                                                       \
        a = JOIN(a, (ACC)x[i]);                                                                    \
        y[i] = (T)a;                                                                               \
      }                                                                                            \
    if (state) *state = a;                                                                         \
  }                                                                                                \
  static void rows_##NAME(const void *from, void *to, int64_t rows, int64_t n, void *states) {     \
    const T *x = from;                                                                             \
    T *y = to;                                                                                     \
    ACC *s = states;                                                                               \
    int64_t r = 0;                                                                                 \
    for (; r + 4 <= rows && !lt_stopped(); r += 4)                                                 \
      four_##NAME(x + r * n, y + r * n, n, s ? s + r : NULL);                                      \
    for (; r < rows && !lt_stopped(); r++) one_##NAME(x + r * n, y + r * n, n, s ? s + r : NULL);  \
  }                                                                                                \
  static inline __attribute__((always_inline)) void all_columns_##NAME(                            \
      const T *x, T *y, int64_t n, int64_t stride, int64_t width) {                                \
    ACC a[LT_SCAN_WIDTH];                                                                          \
    for (int64_t j = 0; j < width; j++) a[j] = FIRST;                                              \
    for (int64_t i = 0; i < n && !lt_stopped_at(i); i++)                                           \
      for (int64_t j = 0; j < width; j++) {                                                        \
        a[j] = JOIN(a[j], (ACC)x[i * stride + j]);                                                 \
        y[i * stride + j] = (T)a[j];                                                               \
      }                                                                                            \
  }                                                                                                \
  /* The sums of a known, small number of columns are kept in registers. */                        \
  static void columns_##NAME(const void *x, void *y, int64_t n, int64_t stride, int64_t width) {   \
    if (width == 2)                                                                                \
      all_columns_##NAME(x, y, n, stride, 2);                                                      \
    else if (width == 3)                                                                           \
      all_columns_##NAME(x, y, n, stride, 3);                                                      \
    else if (width == 4)                                                                           \
      all_columns_##NAME(x, y, n, stride, 4);                                                      \
    else                                                                                           \
      all_columns_##NAME(x, y, n, stride, width);                                                  \
  }

#define ADD(a, b)   ((a) + (b))
#define TIMES(a, b) ((a) * (b))
FOUR_ROWS(sum_f32, ADD, 0)
FOUR_ROWS(prod_f32, TIMES, 1)
FOUR_PLAIN_ROWS(sum_f64, double, double, ADD, 0)
FOUR_PLAIN_ROWS(prod_f64, double, double, TIMES, 1)
FOUR_PLAIN_ROWS(sum_i64, int64_t, uint64_t, ADD, 0)
FOUR_PLAIN_ROWS(prod_i64, int64_t, uint64_t, TIMES, 1)
FOUR_PLAIN_ROWS(sum_c64, float _Complex, double _Complex, ADD, 0)
FOUR_PLAIN_ROWS(prod_c64, float _Complex, double _Complex, TIMES, 1)
FOUR_PLAIN_ROWS(sum_c128, double _Complex, double _Complex, ADD, 0)
FOUR_PLAIN_ROWS(prod_c128, double _Complex, double _Complex, TIMES, 1)
SCAN(sum_f32, float, double, ADD, 0)
SCAN(sum_f64, double, double, ADD, 0)
SCAN(sum_i64, int64_t, uint64_t, ADD, 0)
SCAN(prod_f32, float, double, TIMES, 1)
SCAN(prod_f64, double, double, TIMES, 1)
SCAN(prod_i64, int64_t, uint64_t, TIMES, 1)
SCAN(sum_c64, float _Complex, double _Complex, ADD, 0)
SCAN(sum_c128, double _Complex, double _Complex, ADD, 0)
SCAN(prod_c64, float _Complex, double _Complex, TIMES, 1)
SCAN(prod_c128, double _Complex, double _Complex, TIMES, 1)

#define ENTRY(NAME)                                                                                \
  { rows_##NAME, columns_##NAME }
#define ENTRIES(NAME)                                                                              \
  {                                                                                                \
    [LT_float32] = ENTRY(NAME##_f32), [LT_float64] = ENTRY(NAME##_f64),                            \
    [LT_int64] = ENTRY(NAME##_i64), [LT_complex64] = ENTRY(NAME##_c64),                            \
    [LT_complex128] = ENTRY(NAME##_c128),                                                          \
  }
extern const lt_Scan LT_FOR_ISA(lt_scans)[2][LT_DTYPE_COUNT];
const lt_Scan LT_FOR_ISA(lt_scans)[2][LT_DTYPE_COUNT] = {ENTRIES(sum), ENTRIES(prod)};
