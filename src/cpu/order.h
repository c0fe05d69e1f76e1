/* order.h: the inner loops of sort, topk, selection by rank and search, compiled once for each
 * instruction set (src/cpu/kernels/order.c): most find the few keys among many that can belong
 * to the result. Keys are unsigned integers whose order is the order of the numbers. */
#ifndef LT_CPU_ORDER_H
#define LT_CPU_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#define LT_ORDER_LANES 64

/* Loops for keys of type T. */
#define LT_ORDER(T, F)                                                                             \
  /* Returns the first of n keys that is below `limit`; n if there is none. */                     \
  int64_t (*below_##F)(const T *keys, int64_t n, T limit);                                         \
  /* Sets least[j] to the smallest of the keys j, j + LT_ORDER_LANES ... (n >= LT_ORDER_LANES). */ \
  void (*least_##F)(const T *keys, int64_t n, T *least);                                           \
  /* Lowers *low and raises *high to the smallest and the largest of n keys. */                    \
  void (*span_##F)(const T *keys, int64_t n, T *low, T *high);                                     \
  /* Adds to counts[b] the number of keys with (key - low) >> shift = b. */                        \
  void (*tally_##F)(const T *keys, int64_t n, T low, int shift, int64_t *counts);                  \
  /* Copies the keys from `low` to `high` next to one another, and returns their number. */        \
  /* `to` has room for n keys; it may be `keys`, or begin before it. */                            \
  int64_t (*within_##F)(const T *keys, int64_t n, T low, T high, T *to);                           \
  /* Returns the number of keys that equal `key`. */                                               \
  int64_t (*equal_##F)(const T *keys, int64_t n, T key);

/* Writes the indices (from LT_INDEX_BASE on) at which `count` values keep n sorted elements sorted,
 * as binary_search.h finds them. */
#define LT_SEARCH(T, F)                                                                            \
  void (*search_##F)(const T *row, int64_t n, const T *values, int64_t count, bool right,          \
                     int64_t *out);

typedef struct lt_OrderKernels {
  LT_ORDER(uint32_t, u32)
  LT_ORDER(uint64_t, u64)
  LT_SEARCH(float, f32)
  LT_SEARCH(double, f64)
  LT_SEARCH(int64_t, i64)
  /* Computes the keys of n floats, exclusive-or `flip`: NaN is the largest, -0 equals 0. */
  void (*keys_f32)(const float *x, int64_t n, uint32_t flip, uint32_t *keys);
  /* Lowers *low and raises *high to the smallest and the largest of n numbers. */
  void (*span_i64)(const int64_t *x, int64_t n, int64_t *low, int64_t *high);
  /* Sorts each of `width` columns of n items. */
  void (*sort_columns)(int64_t *items, int64_t n, int64_t width);
  /* Do the same as keys_f32 for doubles and for int64. */
  void (*keys_f64)(const double *x, int64_t n, uint64_t flip, uint64_t *keys);
  void (*keys_i64)(const int64_t *x, int64_t n, uint64_t flip, uint64_t *keys);
} lt_OrderKernels;

/* Returns the loops for this CPU. */
const lt_OrderKernels *lt_order(void);

#endif
