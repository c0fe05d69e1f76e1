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

#endif
