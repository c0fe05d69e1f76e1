/* rearrange.h: the arguments of the kernels that move elements of 1, 2, 4 or 8 bytes into
 * contiguous memory. Included by C and by kernels. */
#ifndef LT_MPS_REARRANGE_H
#define LT_MPS_REARRANGE_H

#include "dtypes.h"

/* A batch of matrices of rows x columns. The elements on and above the diagonal (`upper`), or on
 * and below it, are kept, the others become 0. The result may replace its source. */
typedef struct lt_MpsTriangle {
  int64_t numel, rows, columns, diagonal;
  int32_t upper;
} lt_MpsTriangle;

/* Element i of dimension d comes from element i - shift[d], modulo the dimension's size, with 0 <=
 * shift < size, or, where the dimension is flipped (a bit of `flipped`), from size - 1 - i. The
 * strides of the source are in elements. Result and source do not overlap. */
typedef struct lt_MpsRoll {
  int64_t numel;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS], shift[LT_MAX_DIMS];
  int32_t ndim;
  uint32_t flipped;
} lt_MpsRoll;

#endif
