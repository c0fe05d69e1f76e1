/* scan.h: running sums and products. */
#ifndef LT_CUDA_SCAN_H
#define LT_CUDA_SCAN_H

#include "kernels.h"

/* out[i] = the sum of the elements before i of `flags` (n elements of any integer dtype or bool,
 * dense; bool counts as 0 or 1), and out[n] = the sum of all: out has room for n + 1. `room` is
 * scratch memory of *room_size bytes; with room NULL, nothing runs and *room_size becomes what is
 * needed (at least 1). n may be 0. Three launches at most; the scratch may be released (on the same
 * stream) at once. */
LT_C_LINKAGE cudaError_t lt_cuda_scan_exclusive_i64(void *room, size_t *room_size,
                                                    const void *flags, int dtype, int64_t n,
                                                    int64_t *out, cudaStream_t stream);

#endif
