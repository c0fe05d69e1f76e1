/* sort.h: sorting of keys: unsigned integers whose order is the order of the numbers to sort. */
#ifndef LT_CPU_SORT_H
#define LT_CPU_SORT_H

#include "kernel.h"

typedef struct lt_Keyed {
  uint64_t key;
  int64_t at; /* index of the element, from 0 */
} lt_Keyed;

/* Sorts n items by key; the sort is stable. `scratch` is scratch memory for n items; the result is
 * in `items`. After an interrupt the order is undefined. */
void lt_keyed_sort(lt_Keyed *items, lt_Keyed *scratch, int64_t n);
/* Moves the first k items of the sorted order to the front of `items`, sorted; equal keys by
 * `at`. */
void lt_keyed_first(lt_Keyed *items, lt_Keyed *scratch, int64_t n, int64_t k);
/* Computes the keys of n elements of the working dtype, `stride` elements apart: uint32_t for
 * float32, which has half as many digits to sort by, else uint64_t. NaN is the largest, -0 equals
 * 0. Descending order complements them. */
void lt_order_keys(lt_Dtype work, const void *x, int64_t n, int64_t stride, bool descending,
                   void *keys);

/* Returns the key of rank *k (from 0) among n keys, and sets *k to its rank among the keys that are
 * equal to it. `some` is scratch memory for n keys. After an interrupt the result is undefined. */
uint32_t lt_select_u32(const uint32_t *keys, int64_t n, int64_t *k, uint32_t *some);
uint64_t lt_select_u64(const uint64_t *keys, int64_t n, int64_t *k, uint64_t *some);

#define LT_SHORT_LINE   128 /* most elements of lines that are sorted side by side, */
#define LT_SIDE_BY_SIDE 32  /* so many at a time */

/* Sorts a few short lines of float32, which begin at all[start[j]], of n elements that are `step`
 * elements apart. Item r of line j is items[r * lines + j]: its upper 32 bits are the key of rank
 * r, as a signed integer (INT32_MAX: NaN, in ascending order), its lower ones the index, from 0. */
void lt_sort_side_by_side(const float *all, const int64_t *start, int64_t lines, int64_t n,
                          int64_t step, bool descending, int64_t *items);

#endif
