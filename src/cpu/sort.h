/* sort.h: numbers as keys whose order as unsigned integers is the order wanted, and sorting by
 * them. */
#ifndef LT_CPU_SORT_H
#define LT_CPU_SORT_H

#include "kernel.h"

typedef struct lt_Keyed {
  uint64_t key;
  int64_t at; /* where it came from, from 0 */
} lt_Keyed;

/* Sorts n by key, equal ones in the order they came in. `room` is for n more. The result is in
 * `items`. */
void lt_keyed_sort(lt_Keyed *items, lt_Keyed *room, int64_t n);
/* The first k of the sorted order into the front of `items`, sorted. Equal keys: smaller `at`
 * first. */
void lt_keyed_first(lt_Keyed *items, lt_Keyed *room, int64_t n, int64_t k);

#endif
