/* norm.h: the arguments of the kernels of layer norm over rows, and of its gradients. Included by C
 * and by kernels. */
#ifndef LT_MPS_NORM_H
#define LT_MPS_NORM_H

#include "dtypes.h"

/* rows x n contiguous elements. Backward divides the rows into `pieces`, whose sums for weight and
 * bias are stored in part[piece][0 or 1][n], and are then added in order. */
typedef struct lt_MpsNorm {
  int64_t rows, n, pieces;
  float eps;
} lt_MpsNorm;

#endif
