/* index_regions.h: the arguments of the kernels that read and write regions
 * (accel/index_regions.h). Included by C and by kernels. */
#ifndef LT_MPS_INDEX_REGIONS_H
#define LT_MPS_INDEX_REGIONS_H

#ifdef __METAL_VERSION__
#define LT_INDEX_MEMORY int64_t /* not used: the indices are an argument of their own */
#endif
#include "accel/index_regions.h"

/* The arguments of add_indices: sum[i] = mult * index, plus sum[i] unless `first`. */
typedef struct lt_MpsAddIndices {
  lt_IndexRegion p;
  int64_t mult;
  int32_t first;
} lt_MpsAddIndices;

#ifndef __METAL_VERSION__
#include "mps.h"

extern const lt_IndexDriver lt_mps_index_driver; /* index.c */
#endif

#endif
