/* mask.h: launchers for the true elements of a mask, in their order: masked_select, nonzero,
 * masked_scatter.
 *
 * A mask is contiguous bytes, 0 or 1. It is packed into words of 32 bits. The number of true
 * elements before each word, and the bits below an element's own, give its rank among the true
 * elements.
 */
#ifndef LT_CUDA_MASK_H
#define LT_CUDA_MASK_H

#include "index_regions.h"

/* Packs n bytes into (n + 31) / 32 words, and counts the bits that are set in each. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_pack_mask(const uint8_t *mask, int64_t n, uint32_t *words,
                                                  uint8_t *counts, cudaStream_t stream);

/* A packed mask of n elements, and the running sum of its counts, from 0. */
typedef struct lt_CudaMask {
  const uint32_t *words;
  const int64_t *before;
  int64_t n;
} lt_CudaMask;

/* Copies the true elements: to[k] = from[the k-th true element], in elements of `size` bytes;
 * `from` has that layout. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_select(const lt_CudaMask *mask,
                                               const lt_IndexLayout *layout, const void *from,
                                               void *to, int size, cudaStream_t stream);
/* Sets the k-th true element of `to` to from[k]; `from` has that layout. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_fill_in(const lt_CudaMask *mask,
                                                const lt_IndexLayout *layout, const void *from,
                                                void *to, int size, cudaStream_t stream);
/* Writes to[k][d] = the index, from 1, of the k-th true element in dimension d. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_true_indices(const lt_CudaMask *mask,
                                                     const lt_IndexLayout *shape, int64_t *to,
                                                     cudaStream_t stream);

#endif
