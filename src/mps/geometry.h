/* geometry.h: shapes and strides as arguments of kernels. Included by C and by kernels. */
#ifndef LT_MPS_GEOMETRY_H
#define LT_MPS_GEOMETRY_H

#include "dtypes.h"

/* A shape, and the strides of N operands in elements. `narrow`: the number of elements and all
 * offsets fit in 31 bits, and no stride is negative. */
#define LT_MPS_GEOMETRY(N)                                                                         \
  typedef struct lt_MpsGeometry##N {                                                               \
    int32_t ndim, narrow;                                                                          \
    int64_t shape[LT_MAX_DIMS];                                                                    \
    int64_t strides[N][LT_MAX_DIMS];                                                               \
  } lt_MpsGeometry##N;
LT_MPS_GEOMETRY(1)
LT_MPS_GEOMETRY(2)
LT_MPS_GEOMETRY(3)
LT_MPS_GEOMETRY(4)

#endif
