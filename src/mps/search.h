/* search.h: the arguments of the binary search in sorted rows. Included by C and by kernels. */
#ifndef LT_MPS_SEARCH_H
#define LT_MPS_SEARCH_H

#include "dtypes.h"

/* Value i is searched in the row of n sorted elements with the number i / each; in the only row if
 * one_row. The results are int64 indices from LT_INDEX_BASE. */
typedef struct lt_MpsSearch {
  int64_t n, each, count;
  int32_t one_row, right;
} lt_MpsSearch;

#endif
