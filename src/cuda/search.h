/* search.h: the launcher of the binary search in sorted rows. */
#ifndef LT_CUDA_SEARCH_H
#define LT_CUDA_SEARCH_H

#include "kernels.h"

/* Value i is searched in the row of n sorted elements with the number i / each; in the only row if
 * one_row. `out` are int64 indices from LT_INDEX_BASE. Both inputs have the dtype. */
typedef struct lt_CudaSearch {
  const void *sorted, *values;
  int dtype;
  bool is_float, one_row, right;
  int64_t *out;
  int64_t n, each, count;
} lt_CudaSearch;
/* Launches the search; count is at least 1. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_search(const lt_CudaSearch *s, cudaStream_t stream);

#endif
