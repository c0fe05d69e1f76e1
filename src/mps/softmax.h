/* softmax.h: the arguments of the kernels of softmax. Included by C and by kernels. */
#ifndef LT_MPS_SOFTMAX_H
#define LT_MPS_SOFTMAX_H

#include "dtypes.h"

/* outer x n x inner contiguous elements; softmax is along n. */
typedef struct lt_MpsSoftmax {
  int64_t outer, n, inner;
} lt_MpsSoftmax;

/* Columns are processed by threadgroups of LT_COLUMNS neighbouring columns, each of which has
 * LT_COLUMN_THREADS threads. */
#define LT_COLUMNS        32
#define LT_COLUMN_THREADS 8

#endif
