/* linalg.h: launchers of what decompositions need besides cuSOLVER. */
#ifndef LT_CUDA_LINALG_H
#define LT_CUDA_LINALG_H

#include "kernels.h"

/* Writes identity matrices {n, n}: `numel` numbers of a float or complex dtype. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_identity(void *data, int dtype, int64_t numel, int64_t n,
                                                 cudaStream_t stream);
/* Writes the addresses first, first + step, ... (in bytes). */
LT_C_LINKAGE cudaError_t lt_cuda_launch_addresses(void **to, char *first, int64_t step,
                                                  int64_t count, cudaStream_t stream);
/* Computes, from LU factors {n, n} and their pivots, sign * exp(log) of each determinant, or, where
 * `log` is NULL, the determinant as `sign`. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_determinant(const void *lu, int dtype, const int *pivots,
                                                    int64_t n, int64_t count, void *sign, void *log,
                                                    cudaStream_t stream);
/* Writes the order of `rows` rows after the exchanges of each of `count` vectors of k pivots, which
 * count from 0 and are below `rows`. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_permutation(const int64_t *pivots, int64_t k, int64_t rows,
                                                    int64_t count, int64_t *to,
                                                    cudaStream_t stream);
/* Sets the info of each matrix whose n values contain NaN, float32 or float64, to 1 where it is
 * 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_mark_nan(const void *values, int dtype, int64_t n,
                                                 int64_t count, int *info, cudaStream_t stream);
/* Finds the first of `count` numbers that is not 0: *found is its index times 2^32, plus the number
 * as uint32, or -1. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_first_info(const int *info, int64_t count, int64_t *found,
                                                   cudaStream_t stream);

#endif
