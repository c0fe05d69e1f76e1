/* sort.h: the launchers of sorting by keys that are unsigned integers. */
#ifndef LT_CUDA_SORT_H
#define LT_CUDA_SORT_H

#include "kernels.h"

/* Sorts n keys, with a value each, in ascending order, stably. The inputs are not changed; inputs
 * and outputs do not overlap. Only the low `bits` (1 to 64) bits of the keys are compared; the
 * others must be equal in all keys. `scratch` is device memory of *scratch_size bytes. With
 * scratch NULL, nothing runs and *scratch_size becomes the size that is required (at least 1). n
 * may be 0. The scratch memory may be released at once, on the same stream. */
LT_C_LINKAGE cudaError_t lt_cuda_sort_pairs_u64(void *scratch, size_t *scratch_size,
                                                const uint64_t *keys, uint64_t *keys_out,
                                                const int64_t *values, int64_t *values_out,
                                                int64_t n, int bits, cudaStream_t stream);
/* Does the same for 32-bit keys and values. */
LT_C_LINKAGE cudaError_t lt_cuda_sort_pairs_u32(void *scratch, size_t *scratch_size,
                                                const uint32_t *keys, uint32_t *keys_out,
                                                const uint32_t *values, uint32_t *values_out,
                                                int64_t n, int bits, cudaStream_t stream);

/* A sort of each of `rows` contiguous rows of n elements: the first k in order (of equal elements
 * the first in the row; NaN is the largest), as values and as indices from LT_INDEX_BASE: rows x k
 * each. */
typedef struct lt_CudaOrder {
  const void *x;
  int dtype;
  int64_t rows, n, k;
  bool descending;
  void *values;
  int64_t *indices;
} lt_CudaOrder;

/* Returns the number of bits of a dtype's keys (8 to 64). */
LT_C_LINKAGE int lt_cuda_key_bits(int dtype);

/* Sorts segments of LT_CUDA_SEGMENT elements in shared memory, and keeps the first k of each as
 * candidates: `to` gets k candidates of LT_CUDA_CANDIDATE bytes for each segment of each row. The
 * input is `from`, with `count` candidates for each row, or, where that is NULL, the elements of x
 * (then count is n). Where count is at most one segment, values and indices are written, and `to`
 * is not used. */
#define LT_CUDA_SEGMENT   2048
#define LT_CUDA_CANDIDATE 16
LT_C_LINKAGE cudaError_t lt_cuda_order_segments(const lt_CudaOrder *o, const void *from,
                                                int64_t count, void *to, cudaStream_t stream);

/* Writes the keys and numbers of all elements of whole rows. Elements are numbered row by row. With
 * `wide`, numbers and keys have 64 bits, else 32. With `with_rows`, the row is above the element's
 * key. */
LT_C_LINKAGE cudaError_t lt_cuda_order_keys(const lt_CudaOrder *o, bool wide, bool with_rows,
                                            void *keys, void *numbers, cudaStream_t stream);
/* Writes the rows of the elements with these numbers, as keys. */
LT_C_LINKAGE cudaError_t lt_cuda_order_rows(const lt_CudaOrder *o, bool wide, const void *numbers,
                                            void *keys, cudaStream_t stream);
/* Writes values and indices from the numbers of all elements, sorted. */
LT_C_LINKAGE cudaError_t lt_cuda_order_gather(const lt_CudaOrder *o, bool wide, const void *numbers,
                                              cudaStream_t stream);

#endif
