/* index.h: the places that several index tensors name together, for reading (_index) and writing
 * (_index_put). */
#ifndef LT_CPU_INDEX_H
#define LT_CPU_INDEX_H

#include "kernel_support.h"

/* Where the result's elements lie in self, in the result's order: for each `lead` (dims before
 * neighbouring indices), each of `offsets`, each `mid` (dims between indices that are not
 * neighbours), a block of elements in a row (the dims after the last index). Offsets count
 * elements. */
typedef struct lt_Places {
  lt_Tensor *offsets; /* int64; the caller releases it */
  lt_Odometer leads, mids;
  int64_t lead, mid, block;
} lt_Places;

/* Dims in ascending order, the blocks of self dense. False with a message when a position is out
 * of range. */
bool lt_places_open(lt_Places *p, lt_Tensor *self, const lt_Arg *indices, const int64_t *dims);

/* n elements from `place` in self are the result's elements from `at`. */
typedef void (*lt_PlaceFn)(void *context, int64_t place, int64_t at, int64_t n);
void lt_places_each(lt_Places *p, lt_PlaceFn fn, void *context);

#endif
