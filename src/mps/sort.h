/* sort.h: sorting by keys that are unsigned integers. Included by C and by kernels.
 *
 * What is sorted are items: a key and the index of an element, which orders equal keys, so that
 * every sort is stable. Narrow items have 8 bytes, keys of up to 32 bits and indices below
 * 2^32 - 1; wide ones have 16 bytes and a key of 64 bits. sort.metal.h defines them for kernels. */
#ifndef LT_MPS_SORT_H
#define LT_MPS_SORT_H

#include "dtypes.h"

/* Items that a threadgroup sorts in its memory. */
#define LT_SORT_NARROW 2048
#define LT_SORT_WIDE   1024

/* The arguments of order_segments. The input are `count` items, or n elements, for each of `rows`
 * rows, in segments of `size`, a power of 2; the first `keep` of each sorted segment are kept. */
typedef struct lt_MpsSegments {
  int64_t rows, n, count, keep;
  int64_t each, groups; /* segments of a row, and threadgroups */
  int32_t size;
  int32_t together; /* segments of a threadgroup */
} lt_MpsSegments;

/* The arguments of merge_items: rows of n items in sorted runs of `run`. */
typedef struct lt_MpsMerge {
  int64_t rows, n, run;
} lt_MpsMerge;

/* The arguments of order_gather: the first k of each row of n items. */
typedef struct lt_MpsOrder {
  int64_t rows, n, k;
} lt_MpsOrder;

#ifndef __METAL_VERSION__
#include "mps.h"

/* Returns uninitialized memory for n items (one reference), or NULL on failure. */
lt_Tensor *lt_mps_items(const lt_Call *c, int64_t n, bool wide);
/* Sorts each of `rows` rows of n items in ascending order of their keys, then their indices, which
 * differ within a row. Releases `items`, and returns the sorted items (one reference), or NULL on
 * failure. */
lt_Tensor *lt_mps_sort_items(const lt_Call *c, lt_Tensor *items, int64_t rows, int64_t n,
                             bool wide);
/* Does the same for the first k items (at least 1) of each row. The result may have more: *step is
 * set to the number of items from one row to the next. */
lt_Tensor *lt_mps_first_items(const lt_Call *c, lt_Tensor *items, int64_t rows, int64_t n,
                              int64_t k, bool wide, int64_t *step);
#endif

#endif
