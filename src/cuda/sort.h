/* sort.h: sorting by keys that are unsigned integers. */
#ifndef LT_CUDA_SORT_H
#define LT_CUDA_SORT_H

#include "kernels.h"

/* Sorts n keys upwards, with a value each; equal keys stay in the order they came in. The inputs
 * are only read; inputs and outputs do not overlap. Bits of the keys from `bits` (1 to 64) on are
 * taken to be equal in all. `room` is scratch memory of *room_size bytes; with room NULL, nothing
 * runs and *room_size becomes what is needed (at least 1). n may be 0. The scratch may be released
 * (on the same stream) at once. */
LT_C_LINKAGE cudaError_t lt_cuda_sort_pairs_u64(void *room, size_t *room_size, const uint64_t *keys,
                                                uint64_t *keys_out, const int64_t *values,
                                                int64_t *values_out, int64_t n, int bits,
                                                cudaStream_t stream);
/* The same for 32-bit keys and values. */
LT_C_LINKAGE cudaError_t lt_cuda_sort_pairs_u32(void *room, size_t *room_size, const uint32_t *keys,
                                                uint32_t *keys_out, const uint32_t *values,
                                                uint32_t *values_out, int64_t n, int bits,
                                                cudaStream_t stream);

/* The first k of each of `rows` dense rows of n elements in order (of equal ones the one that came
 * first; NaN the largest), their values and their positions from LT_INDEX_BASE: rows x k each. */
typedef struct lt_CudaOrder {
  const void *x;
  int dtype;
  int64_t rows, n, k;
  bool descending;
  void *values;
  int64_t *positions;
} lt_CudaOrder;

/* Keys of a dtype have so many bits (8 to 64). */
LT_C_LINKAGE int lt_cuda_key_bits(int dtype);

/* Blocks sort stretches of LT_CUDA_STRETCH elements in shared memory, and keep the first k of each
 * as candidates: `to` holds k for each stretch of each row, of LT_CUDA_CANDIDATE bytes. `count`
 * candidates for each row come from `from`, or are the elements of x where that is NULL (count is n
 * then). Where count is no more than a stretch, values and positions are written, and `to` is not
 * used. */
#define LT_CUDA_STRETCH   2048
#define LT_CUDA_CANDIDATE 16
LT_C_LINKAGE cudaError_t lt_cuda_order_stretches(const lt_CudaOrder *o, const void *from,
                                                 int64_t count, void *to, cudaStream_t stream);

/* Of whole rows. Elements are numbered, row after row; wide: their numbers and the keys have 64
 * bits, else 32. The key of element i: its own, and above it its row where with_rows. */
LT_C_LINKAGE cudaError_t lt_cuda_order_keys(const lt_CudaOrder *o, bool wide, bool with_rows,
                                            void *keys, void *numbers, cudaStream_t stream);
/* The rows of the elements of these numbers, as keys. */
LT_C_LINKAGE cudaError_t lt_cuda_order_rows(const lt_CudaOrder *o, bool wide, const void *numbers,
                                            void *keys, cudaStream_t stream);
/* Values and positions from the numbers of all elements, sorted. */
LT_C_LINKAGE cudaError_t lt_cuda_order_gather(const lt_CudaOrder *o, bool wide, const void *numbers,
                                              cudaStream_t stream);

#endif
