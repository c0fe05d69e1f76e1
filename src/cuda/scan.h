/* scan.h: the launchers of running sums, products and extremes. */
#ifndef LT_CUDA_SCAN_H
#define LT_CUDA_SCAN_H

#include "kernels.h"

/* Writes out[i] = the sum of the elements of `flags` before i (n elements of any integer dtype or
 * bool, contiguous; bool counts as 0 or 1), and out[n] = the sum of all: out has room for n + 1.
 * `scratch` is device memory of *scratch_size bytes. With scratch NULL, nothing runs and
 * *scratch_size becomes the size that is required (at least 1). n may be 0. There are at most
 * three launches. The scratch memory may be released at once, on the same stream. */
LT_C_LINKAGE cudaError_t lt_cuda_scan_exclusive_i64(void *scratch, size_t *scratch_size,
                                                    const void *flags, int dtype, int64_t n,
                                                    int64_t *out, cudaStream_t stream);

/* Running sums or products of x along the middle of outer x n x inner contiguous elements. Sums are
 * computed in float64 if in_double, else in int64, which wraps. */
typedef struct lt_CudaScan {
  bool product, in_double;
  const void *x;
  int dtype;
  void *out;
  int out_dtype;
  int64_t outer, n, inner;
  /* For rows (inner == 1): each is divided into pieces of `tiles` tiles of LT_CUDA_SCAN_TILE
   * elements. With more than one piece, `scratch` holds outer * pieces numbers of 8 bytes. */
  int64_t pieces, tiles;
  void *scratch;
} lt_CudaScan;

#define LT_CUDA_SCAN_TILE 2048

/* Sets pieces and tiles from outer, n and inner. */
LT_C_LINKAGE void lt_cuda_scan_plan(lt_CudaScan *s);
/* Computes the scan. `pieces` and `tiles` must be set. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_scan(const lt_CudaScan *s, cudaStream_t stream);

/* Running maxima (`largest`) or minima along the middle of outer x n x inner contiguous elements,
 * and the index in the line of each, from LT_INDEX_BASE: of equal elements the last; NaN is more
 * extreme than any number. */
typedef struct lt_CudaExtremes {
  bool largest, is_float;
  const void *x;
  int dtype;
  void *values; /* of x's dtype */
  int64_t *indices;
  int64_t outer, n, inner;
  /* Lines are divided into pieces of `size` elements. With more than one piece, `scratch` holds an
   * int64 for each piece of each line. */
  int64_t pieces, size, *scratch;
} lt_CudaExtremes;

/* Sets pieces and size from outer, n and inner. */
LT_C_LINKAGE void lt_cuda_extremes_plan(lt_CudaExtremes *s);
/* Computes the extremes. `pieces` and `size` must be set. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_extremes(const lt_CudaExtremes *s, cudaStream_t stream);

#endif
