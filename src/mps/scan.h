/* scan.h: the arguments of the kernels of running sums, products and extremes. */
#ifndef LT_MPS_SCAN_H
#define LT_MPS_SCAN_H

#include "dtypes.h"

#define LT_MPS_SCAN_THREADS 256
#define LT_MPS_SCAN_EACH    4  /* consecutive elements for each thread of a tile */
#define LT_MPS_SCAN_PARTIAL 16 /* the most bytes of a piece's state */

/* A scan along the middle of outer x n x inner contiguous elements. `lines` is outer * inner. Lines
 * are divided into pieces of `size` elements, of which there are at most LT_MPS_SCAN_THREADS. */
typedef struct lt_MpsScan {
  int64_t lines, n, inner, pieces, size;
} lt_MpsScan;

#endif
