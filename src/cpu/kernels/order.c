/* order.c: the table of loops over keys (order.h) of one instruction set. */
#include "cpu/order.h"
#include "cpu/rows.h"

#define BLOCK 64 /* keys that are compared together before the first match is located */

#define LOOPS(T, F)                                                                                \
  static int64_t below_##F(const T *keys, int64_t n, T limit) {                                    \
    int64_t i = 0;                                                                                 \
    for (; i + BLOCK <= n; i += BLOCK) {                                                           \
      T any = 0;                                                                                   \
      for (int64_t j = 0; j < BLOCK; j++) any |= (T)(keys[i + j] < limit);                         \
      if (any) break;                                                                              \
    }                                                                                              \
    while (i < n && keys[i] >= limit) i++;                                                         \
    return i;                                                                                      \
  }                                                                                                \
  static void least_##F(const T *keys, int64_t n, T *least) {                                      \
    T part[LT_ORDER_LANES];                                                                        \
    int64_t i = LT_ORDER_LANES;                                                                    \
    memcpy(part, keys, sizeof part);                                                               \
    for (; i + LT_ORDER_LANES <= n; i += LT_ORDER_LANES)                                           \
      for (int64_t j = 0; j < LT_ORDER_LANES; j++)                                                 \
        part[j] = keys[i + j] < part[j] ? keys[i + j] : part[j];                                   \
    for (int64_t j = 0; i + j < n; j++) part[j] = keys[i + j] < part[j] ? keys[i + j] : part[j];   \
    memcpy(least, part, sizeof part);                                                              \
  }                                                                                                \
  static void span_##F(const T *keys, int64_t n, T *low, T *high) {                                \
    T least = *low, most = *high;                                                                  \
    _Pragma("omp simd reduction(min : least) reduction(max : most)")                               \
    for (int64_t i = 0; i < n; i++) {                                                              \
      least = keys[i] < least ? keys[i] : least;                                                   \
      most = keys[i] > most ? keys[i] : most;                                                      \
    }                                                                                              \
    *low = least;                                                                                  \
    *high = most;                                                                                  \
  }                                                                                                \
  static void tally_##F(const T *keys, int64_t n, T low, int shift, int64_t *counts) {             \
    for (int64_t i = 0; i < n; i++) counts[(T)(keys[i] - low) >> shift]++;                         \
  }                                                                                                \
  static int64_t within_##F(const T *keys, int64_t n, T low, T high, T *to) {                      \
    int64_t count = 0;                                                                             \
    T width = high - low;                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                              \
      T key = keys[i];                                                                             \
      to[count] = key;                                                                             \
      count += (T)(key - low) <= width;                                                            \
    }                                                                                              \
    return count;                                                                                  \
  }                                                                                                \
  static int64_t equal_##F(const T *keys, int64_t n, T key) {                                      \
    T count = 0;                                                                                   \
    _Pragma("omp simd reduction(+ : count)")                                                       \
    for (int64_t i = 0; i < n; i++) count += keys[i] == key;                                       \
    return (int64_t)count;                                                                         \
  }
LOOPS(uint32_t, u32)
LOOPS(uint64_t, u64)

/* Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M): which
 * items are compared does not depend on them, so all columns are sorted by the same steps. */
static void sort_columns(int64_t *items, int64_t n, int64_t width) {
  int64_t half = 1;
  while (2 * half < n) half *= 2;
  for (int64_t p = half; p > 0; p /= 2)
    for (int64_t q = half, r = 0, d = p;; d = q - p, q /= 2, r = p) {
      for (int64_t i = 0; i < n - d; i++) {
        if ((i & p) != r) continue;
        int64_t *restrict a = items + i * width, *restrict b = items + (i + d) * width;
        for (int64_t j = 0; j < width; j++) {
          int64_t x = a[j], y = b[j];
          a[j] = x < y ? x : y;
          b[j] = x < y ? y : x;
        }
      }
      if (q == p) break;
    }
}

static void keys_f32(const float *x, int64_t n, uint32_t flip, uint32_t *keys) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    float f = x[i] + 0.0f; /* -0 becomes 0 */
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t key = u ^ ((uint32_t)((int32_t)u >> 31) | (uint32_t)1 << 31);
    keys[i] = (f == f ? key : UINT32_MAX) ^ flip;
  }
}

static void keys_f64(const double *x, int64_t n, uint64_t flip, uint64_t *keys) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) {
    double f = x[i] + 0.0;
    uint64_t u;
    memcpy(&u, &f, sizeof u);
    uint64_t key = u >> 63 ? ~u : u | (uint64_t)1 << 63;
    keys[i] = (f == f ? key : UINT64_MAX) ^ flip;
  }
}

static void keys_i64(const int64_t *x, int64_t n, uint64_t flip, uint64_t *keys) {
  for (int64_t i = 0; i < n; i++) keys[i] = (uint64_t)x[i] ^ (uint64_t)1 << 63 ^ flip;
}

/* Elements up to which indices of a row fit in 32 bits, so that more of them fit in a vector. */
#define SHORT    ((int64_t)1 << 30)
#define TOGETHER 32 /* values that are searched together */

/* Searches as binary_search.h does, with the same comparisons, but without branches that depend on
 * the data: `left` elements from `low` on are not decided yet. */
#define SEARCH_SOME(T, NAME, Int, FAIL)                                                            \
  static inline void NAME(const T *row, Int n, const T *values, int64_t *out) {                    \
    Int low[TOGETHER], left[TOGETHER];                                                             \
    for (int j = 0; j < TOGETHER; j++) low[j] = 0, left[j] = n;                                    \
    for (Int most = n; most > 0; most /= 2) {                                                      \
      _Pragma("omp simd")                                                                          \
      for (int j = 0; j < TOGETHER; j++) {                                                         \
        Int half = left[j] >> 1, at = low[j] + half;                                               \
        T x = row[at - (at == n)], value = values[j];                                              \
        bool before = !(FAIL) & (left[j] > 0);                                                     \
        low[j] = before ? at + 1 : low[j];                                                         \
        left[j] = before ? left[j] - half - 1 : half;                                              \
      }                                                                                            \
    }                                                                                              \
    for (int j = 0; j < TOGETHER; j++) out[j] = (int64_t)low[j] + LT_INDEX_BASE;                   \
  }
#define SEARCH(T, F)                                                                               \
  SEARCH_SOME(T, left_##F, int32_t, x >= value)                                                    \
  SEARCH_SOME(T, right_##F, int32_t, x > value)                                                    \
  SEARCH_SOME(T, left_of_many_##F, int64_t, x >= value)                                            \
  SEARCH_SOME(T, right_of_many_##F, int64_t, x > value)                                            \
  static void some_##F(const T *row, int64_t n, const T *values, bool right, int64_t *out) {       \
    if (n > SHORT)                                                                                 \
      right ? right_of_many_##F(row, n, values, out) : left_of_many_##F(row, n, values, out);      \
    else                                                                                           \
      right ? right_##F(row, (int32_t)n, values, out) : left_##F(row, (int32_t)n, values, out);    \
  }                                                                                                \
  static void search_##F(const T *row, int64_t n, const T *values, int64_t count, bool right,      \
                         int64_t *out) {                                                           \
    int64_t i = 0, found[TOGETHER];                                                                \
    T last[TOGETHER] = {0};                                                                        \
    for (; i + TOGETHER <= count; i += TOGETHER) some_##F(row, n, values + i, right, out + i);     \
    if (i == count) return;                                                                        \
    memcpy(last, values + i, (size_t)(count - i) * sizeof(T));                                     \
    some_##F(row, n, last, right, found);                                                          \
    memcpy(out + i, found, (size_t)(count - i) * sizeof(int64_t));                                 \
  }
SEARCH(float, f32)
SEARCH(double, f64)
SEARCH(int64_t, i64)

static void span_i64(const int64_t *x, int64_t n, int64_t *low, int64_t *high) {
  int64_t least = *low, most = *high;
#pragma omp simd reduction(min : least) reduction(max : most)
  for (int64_t i = 0; i < n; i++) {
    least = x[i] < least ? x[i] : least;
    most = x[i] > most ? x[i] : most;
  }
  *low = least;
  *high = most;
}

#define TABLE(F)                                                                                   \
  .below_##F = below_##F, .least_##F = least_##F, .span_##F = span_##F, .tally_##F = tally_##F,    \
  .within_##F = within_##F, .equal_##F = equal_##F

extern const lt_OrderKernels LT_FOR_ISA(lt_order_kernels);
const lt_OrderKernels LT_FOR_ISA(lt_order_kernels) = {
    TABLE(u32),
    TABLE(u64),
    .search_f32 = search_f32,
    .search_f64 = search_f64,
    .search_i64 = search_i64,
    .span_i64 = span_i64,
    .keys_f32 = keys_f32,
    .keys_f64 = keys_f64,
    .keys_i64 = keys_i64,
    .sort_columns = sort_columns,
};
