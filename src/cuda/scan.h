/* scan.h: running sums, products and extremes. */
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

/* Running sums or products along the middle of outer x n x inner dense elements, of x into `out`.
 * Both kinds are kept in float64 where in_double, else in int64, which wraps. */
typedef struct lt_CudaScan {
  bool product, in_double;
  const void *x;
  int dtype;
  void *out;
  int out_dtype;
  int64_t outer, n, inner;
  /* Of rows (inner == 1): each is cut in pieces of `tiles` tiles of LT_CUDA_SCAN_TILE elements;
   * where that is more than one, `room` holds outer * pieces numbers of 8 bytes. */
  int64_t pieces, tiles;
  void *room;
} lt_CudaScan;

#define LT_CUDA_SCAN_TILE 2048

/* Chooses pieces and tiles. */
LT_C_LINKAGE void lt_cuda_scan_plan(lt_CudaScan *s);
LT_C_LINKAGE cudaError_t lt_cuda_launch_scan(const lt_CudaScan *s, cudaStream_t stream);

/* Running maxima (largest) or minima along the middle of outer x n x inner dense elements, and
 * where in the line each comes from, from LT_INDEX_BASE: of equal elements the last one; a NaN
 * wins. */
typedef struct lt_CudaExtremes {
  bool largest, is_float;
  const void *x;
  int dtype;
  void *values; /* of the same dtype */
  int64_t *indices;
  int64_t outer, n, inner;
  /* Lines are cut in pieces of `size` elements; where that is more than one, `room` holds an int64
   * for each piece of each line. */
  int64_t pieces, size, *room;
} lt_CudaExtremes;

/* Chooses pieces and their size. */
LT_C_LINKAGE void lt_cuda_extremes_plan(lt_CudaExtremes *s);
LT_C_LINKAGE cudaError_t lt_cuda_launch_extremes(const lt_CudaExtremes *s, cudaStream_t stream);

#endif
