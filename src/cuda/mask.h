/* mask.h: the elements where a mask is true, in their order: masked_select, nonzero,
 * masked_scatter.
 *
 * A mask is dense bytes, 0 or 1. It is cut into chunks; the number of true ones before each chunk
 * tells a thread where its chunk's elements stand among all that are true.
 */
#ifndef LT_CUDA_MASK_H
#define LT_CUDA_MASK_H

#include "places.h"

#define LT_CUDA_MASK_CHUNK 16

/* How many are true in each chunk of n bytes: at most the chunk, so a byte each. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_count_mask(const uint8_t *mask, int64_t n, uint8_t *counts,
                                                   cudaStream_t stream);
/* `before`: the running sum of the counts, from 0. Elements of `size` bytes. */
/* to[k] = from[the k-th true one], where `from` has that layout. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_select(const uint8_t *mask, const int64_t *before,
                                               int64_t n, const lt_CudaLayout *layout,
                                               const void *from, void *to, int size,
                                               cudaStream_t stream);
/* The k-th true one of `to` becomes from[k], where `from` has that layout. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_deselect(const uint8_t *mask, const int64_t *before,
                                                 int64_t n, const lt_CudaLayout *layout,
                                                 const void *from, void *to, int size,
                                                 cudaStream_t stream);
/* to[k][d] = the position, from 1, of the k-th true one in dimension d. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_positions_of(const uint8_t *mask, const int64_t *before,
                                                     int64_t n, const lt_CudaLayout *shape,
                                                     int64_t *to, cudaStream_t stream);

#endif
