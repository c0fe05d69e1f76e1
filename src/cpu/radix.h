/* radix.h: sorting of elements whose keys fit in 32 bits. */
#ifndef LT_CPU_RADIX_H
#define LT_CPU_RADIX_H

#include "kernel.h"

#include <stdint.h>

/* An item: a key, and in its lower 32 bits the index of the element, from 0. */
typedef uint64_t lt_Packed;
#define LT_PACKED_MOST ((int64_t)UINT32_MAX) /* items that can be sorted together */

/* Elements to sort: integers, bool or float32, `stride` elements apart. */
typedef struct lt_Unsorted {
  lt_Dtype dtype;
  const void *x;
  int64_t n, stride;
  bool descending;
} lt_Unsorted;

/* Sorts at most LT_PACKED_MOST integers of a small range, without items, and writes them and their
 * indices (from LT_INDEX_BASE on), both `stride` apart. Returns false if the elements are others,
 * or few, or after an interrupt. */
bool lt_counting_sort(const lt_Unsorted *s, int team, void *values, int64_t *positions);

/* Sorts at most LT_PACKED_MOST elements on `team` threads. The sort is stable, also in descending
 * order; NaN is the largest, -0 equals 0. `items` and `others` are scratch memory for n items.
 * Returns the one that holds the sorted items; NULL if the elements have another dtype or differ by
 * more than 32 bits, or after an interrupt. */
lt_Packed *lt_packed_sort(const lt_Unsorted *s, int team, lt_Packed *items, lt_Packed *others);

#endif
