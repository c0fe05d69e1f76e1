/* fold.c: sums, products, largest and smallest of rows and of columns.
 *
 * Floats are kept in 64 bytes of lanes (16 float or 8 double), four of them side by side, over
 * blocks of 2,048 elements; blocks are joined in pairs. So the rounding error of a sum grows with
 * the logarithm of its length, and the result is the same whatever the width of the machine's
 * vectors. Columns are added row by row, which is friendly to caches, in blocks of 16 rows that
 * are joined in pairs too.
 */
#include "cpu/rows.h"
#include "cpu/kernels/lanes.h"

#define BLOCK    2048                      /* elements of a row that one set of lanes takes */
#define LT_APART __attribute__((noinline)) /* recursive: copies of it inside itself are of no use */
#define ROWS     16                        /* rows that are added to columns one after the other */

/* ---- floats: by lanes ------------------------------------------------------------------------ */

/* JOIN(a, b) joins two values or two sets of lanes; FROM is what goes in, T what it is folded in,
 * OPEN(x) lifts a set of lanes, ONE(x) an element. */
#define FLOAT_FOLD(NAME, FROM, T, L, JOIN, JOIN1, OPEN, ONE, IDENTITY)                             \
  static T block_##NAME(const FROM *x, int64_t n) {                                                \
    T a = IDENTITY;                                                                                \
    int64_t i = 0;                                                                                 \
    if (n >= L##_N) {                                                                              \
      L s0 = L##_ALL(IDENTITY), s1 = s0, s2 = s0, s3 = s0;                                         \
      for (; i + 4 * L##_N <= n; i += 4 * L##_N) {                                                 \
        L x0 = OPEN(x + i), x1 = OPEN(x + i + L##_N), x2 = OPEN(x + i + 2 * L##_N),                \
          x3 = OPEN(x + i + 3 * L##_N);                                                            \
        s0 = JOIN(s0, x0);                                                                         \
        s1 = JOIN(s1, x1);                                                                         \
        s2 = JOIN(s2, x2);                                                                         \
        s3 = JOIN(s3, x3);                                                                         \
      }                                                                                            \
      for (; i + L##_N <= n; i += L##_N) {                                                         \
        L x0 = OPEN(x + i);                                                                        \
        s0 = JOIN(s0, x0);                                                                         \
      }                                                                                            \
      s0 = JOIN(s0, s1);                                                                           \
      s2 = JOIN(s2, s3);                                                                           \
      s0 = JOIN(s0, s2);                                                                           \
      T lane[L##_N];                                                                               \
      memcpy(lane, &s0, sizeof s0);                                                                \
      for (int w = L##_N / 2; w > 0; w /= 2)                                                       \
        for (int k = 0; k < w; k++) lane[k] = JOIN1(lane[k], lane[k + w]);                         \
      a = lane[0];                                                                                 \
    }                                                                                              \
    for (; i < n; i++) {                                                                           \
      T e = ONE(x[i]);                                                                             \
      a = JOIN1(a, e);                                                                             \
    }                                                                                              \
    return a;                                                                                      \
  }                                                                                                \
  static LT_APART T pairs_##NAME(const FROM *x, int64_t n) {                                       \
    if (n <= BLOCK) return block_##NAME(x, n);                                                     \
    int64_t half = (n / BLOCK + 1) / 2 * BLOCK;                                                    \
    T a = pairs_##NAME(x, half), b = pairs_##NAME(x + half, n - half);                             \
    return JOIN1(a, b);                                                                            \
  }                                                                                                \
  static void row_##NAME(const void *x, int64_t n, void *out) { *(T *)out = pairs_##NAME(x, n); }  \
  COLUMNS(NAME, FROM, T, JOIN1, ONE)

/* Columns, of any dtype. Narrow dense columns are taken as wide rows of several, which fill the
 * vectors. */
#define COLUMNS(NAME, FROM, T, JOIN1, ONE)                                                         \
  static void few_##NAME(const FROM *restrict x, int64_t n, int64_t stride, int64_t width,         \
                         T *restrict out) {                                                        \
    for (int64_t j = 0; j < width; j++) out[j] = ONE(x[j]);                                        \
    for (int64_t i = 1; i < n; i++) {                                                              \
      const FROM *restrict r = x + i * stride;                                                     \
      for (int64_t j = 0; j < width; j++) {                                                        \
        T e = ONE(r[j]), a = out[j];                                                               \
        out[j] = JOIN1(a, e);                                                                      \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static LT_APART void split_##NAME(const FROM *x, int64_t n, int64_t stride, int64_t width,       \
                                    T *restrict out) {                                             \
    if (n <= ROWS) {                                                                               \
      few_##NAME(x, n, stride, width, out);                                                        \
      return;                                                                                      \
    }                                                                                              \
    T other[LT_FOLD_WIDTH];                                                                        \
    int64_t half = (n / ROWS + 1) / 2 * ROWS;                                                      \
    split_##NAME(x, half, stride, width, out);                                                     \
    split_##NAME(x + half * stride, n - half, stride, width, other);                               \
    for (int64_t j = 0; j < width; j++) {                                                          \
      T a = out[j], b = other[j];                                                                  \
      out[j] = JOIN1(a, b);                                                                        \
    }                                                                                              \
  }                                                                                                \
  static void columns_##NAME(const void *x, int64_t n, int64_t stride, int64_t width,              \
                             void *result) {                                                       \
    T *out = result;                                                                               \
    int64_t many = LT_FOLD_WIDTH / 2 / width;                                                      \
    if (width > 32 || stride != width || n < 2 * many) {                                           \
      split_##NAME(x, n, stride, width, out);                                                      \
      return;                                                                                      \
    }                                                                                              \
    T wide[LT_FOLD_WIDTH];                                                                         \
    split_##NAME(x, n / many, many * width, many * width, wide);                                   \
    few_##NAME##_again(wide, many, width, out);                                                    \
    for (int64_t i = n / many * many; i < n; i++)                                                  \
      for (int64_t j = 0; j < width; j++) {                                                        \
        T e = ONE(((const FROM *)x)[i * width + j]), a = out[j];                                   \
        out[j] = JOIN1(a, e);                                                                      \
      }                                                                                            \
  }

/* Joins `many` dense groups of `width`, in pairs. */
#define AGAIN(NAME, T, JOIN1)                                                                      \
  static void few_##NAME##_again(T *x, int64_t many, int64_t width, T *out) {                      \
    while (many > 1) {                                                                             \
      int64_t half = (many + 1) / 2;                                                               \
      for (int64_t j = 0; j < (many - half) * width; j++) {                                        \
        T a = x[j], b = x[half * width + j];                                                       \
        x[j] = JOIN1(a, b);                                                                        \
      }                                                                                            \
      many = half;                                                                                 \
    }                                                                                              \
    memcpy(out, x, (size_t)width * sizeof *out);                                                   \
  }

/* ---- integers: any order gives the same, so the compiler may choose -------------------------- */

#define INTEGER_FOLD(NAME, FROM, T, JOIN1, IDENTITY)                                               \
  static void row_##NAME(const void *x, int64_t n, void *out) {                                    \
    const FROM *v = x;                                                                             \
    T a = IDENTITY;                                                                                \
    for (int64_t i = 0; i < n; i++) {                                                              \
      T e = (T)v[i];                                                                               \
      a = JOIN1(a, e);                                                                             \
    }                                                                                              \
    *(T *)out = a;                                                                                 \
  }                                                                                                \
  COLUMNS(NAME, FROM, T, JOIN1, (T))

#define ADD(a, b)     ((a) + (b))
#define TIMES(a, b)   ((a) * (b))
#define IADD(a, b)    ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define ITIMES(a, b)  ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
#define LARGER(a, b)  ((b) > (a) ? (b) : (a))
#define SMALLER(a, b) ((b) < (a) ? (b) : (a))
/* NaN wins, and stays. */
#define FLARGER(a, b)  (((b) > (a)) | ((b) != (b)) ? (b) : (a))
#define FSMALLER(a, b) (((b) < (a)) | ((b) != (b)) ? (b) : (a))
#define SAME(x)        (x)
#define DOUBLE(x)      ((double)(x) * (double)(x))

AGAIN(SUM_F32, float, ADD)
FLOAT_FOLD(SUM_F32, float, float, F16, ADD, ADD, F16_LOAD, SAME, 0)
AGAIN(SUM_F64, double, ADD)
FLOAT_FOLD(SUM_F64, double, double, D8, ADD, ADD, D8_LOAD, SAME, 0)
AGAIN(PROD_F32, float, TIMES)
FLOAT_FOLD(PROD_F32, float, float, F16, TIMES, TIMES, F16_LOAD, SAME, 1)
AGAIN(PROD_F64, double, TIMES)
FLOAT_FOLD(PROD_F64, double, double, D8, TIMES, TIMES, D8_LOAD, SAME, 1)
AGAIN(MAX_F32, float, FLARGER)
FLOAT_FOLD(MAX_F32, float, float, F16, F16_LARGER, FLARGER, F16_LOAD, SAME, -INFINITY)
AGAIN(MAX_F64, double, FLARGER)
FLOAT_FOLD(MAX_F64, double, double, D8, D8_LARGER, FLARGER, D8_LOAD, SAME, -INFINITY)
AGAIN(MIN_F32, float, FSMALLER)
FLOAT_FOLD(MIN_F32, float, float, F16, F16_SMALLER, FSMALLER, F16_LOAD, SAME, INFINITY)
AGAIN(MIN_F64, double, FSMALLER)
FLOAT_FOLD(MIN_F64, double, double, D8, D8_SMALLER, FSMALLER, D8_LOAD, SAME, INFINITY)
AGAIN(SQUARES_F32, double, ADD)
FLOAT_FOLD(SQUARES_F32, float, double, D8, ADD, ADD, D8_SQUARES_OF_FLOATS, DOUBLE, 0)
AGAIN(SQUARES_F64, double, ADD)
FLOAT_FOLD(SQUARES_F64, double, double, D8, ADD, ADD, D8_SQUARES, DOUBLE, 0)
AGAIN(SUM_I64, int64_t, IADD)
INTEGER_FOLD(SUM_I64, int64_t, int64_t, IADD, 0)
AGAIN(SUM_U8, int64_t, IADD)
INTEGER_FOLD(SUM_U8, uint8_t, int64_t, IADD, 0)
AGAIN(PROD_I64, int64_t, ITIMES)
INTEGER_FOLD(PROD_I64, int64_t, int64_t, ITIMES, 1)
AGAIN(MAX_I64, int64_t, LARGER)
INTEGER_FOLD(MAX_I64, int64_t, int64_t, LARGER, INT64_MIN)
AGAIN(MIN_I64, int64_t, SMALLER)
INTEGER_FOLD(MIN_I64, int64_t, int64_t, SMALLER, INT64_MAX)
AGAIN(MAX_U8, uint8_t, LARGER)
INTEGER_FOLD(MAX_U8, uint8_t, uint8_t, LARGER, 0)
AGAIN(MIN_U8, uint8_t, SMALLER)
INTEGER_FOLD(MIN_U8, uint8_t, uint8_t, SMALLER, 255)

#define ENTRY(NAME, FROM, TO, THEN)                                                                \
  [LT_FOLD_##NAME] = {LT_##FROM, LT_##TO, LT_FOLD_##THEN, row_##NAME, columns_##NAME}
extern const lt_Fold LT_FOR_ISA(lt_folds)[LT_FOLD_COUNT];
const lt_Fold LT_FOR_ISA(lt_folds)[LT_FOLD_COUNT] = {
    ENTRY(SUM_F32, float32, float32, SUM_F32),
    ENTRY(SUM_F64, float64, float64, SUM_F64),
    ENTRY(SUM_I64, int64, int64, SUM_I64),
    ENTRY(SUM_U8, bool, int64, SUM_I64),
    ENTRY(PROD_F32, float32, float32, PROD_F32),
    ENTRY(PROD_F64, float64, float64, PROD_F64),
    ENTRY(PROD_I64, int64, int64, PROD_I64),
    ENTRY(MAX_F32, float32, float32, MAX_F32),
    ENTRY(MAX_F64, float64, float64, MAX_F64),
    ENTRY(MAX_I64, int64, int64, MAX_I64),
    ENTRY(MAX_U8, bool, bool, MAX_U8),
    ENTRY(MIN_F32, float32, float32, MIN_F32),
    ENTRY(MIN_F64, float64, float64, MIN_F64),
    ENTRY(MIN_I64, int64, int64, MIN_I64),
    ENTRY(MIN_U8, bool, bool, MIN_U8),
    ENTRY(SQUARES_F32, float32, float64, SUM_F64),
    ENTRY(SQUARES_F64, float64, float64, SUM_F64),
};
