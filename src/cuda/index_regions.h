/* index_regions.h: launchers that read regions (accel/index_regions.h), and the device's part in
 * building them. index_update.h has the launchers that write. */
#ifndef LT_CUDA_INDEX_REGIONS_H
#define LT_CUDA_INDEX_REGIONS_H

#include "kernels.h"
#include "accel/index_regions.h"

/* Computes sum[i] += mult * index, or, with `first`, sum[i] = mult * index, of an index tensor
 * broadcast to the sum's shape: `p` has the sum's shape and the index's strides. Sets *any to 1
 * where *bad is set; with `first`, to 0 where it is not. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_add_indices(const lt_IndexRegion *p, int64_t mult,
                                                    bool first, const int *bad, int *any,
                                                    int64_t *sum, cudaStream_t stream);
/* Reads the region: to[i] = from[self offset of i], in elements of `unit` bytes: 1, 2, 4, 8, 16. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_take(const lt_IndexRegion *p, const void *from, void *to,
                                             int unit, cudaStream_t stream);

#ifndef __cplusplus
#include "cuda.h"

extern const lt_IndexDriver lt_cuda_index_driver; /* index.c */
#endif

#endif
