/* reduce.h: reductions: what reduce.c asks of the kernels in reduce.cu and reduce_line.cu. */
#ifndef LT_CUDA_REDUCE_H
#define LT_CUDA_REDUCE_H

#include "kernels.h"

typedef enum lt_CudaReducer {
  LT_CUDA_SUM, /* divided by `a` unless that is 0 */
  LT_CUDA_PRODUCT,
  LT_CUDA_BEST,    /* the largest, or smallest, of x or |x|; NaN wins */
  LT_CUDA_COUNT,   /* of what is not 0 */
  LT_CUDA_ALL,     /* is nothing 0? */
  LT_CUDA_ANY,     /* is something not 0? */
  LT_CUDA_SQUARES, /* the root of their sum, in float64 */
  LT_CUDA_POWERS,  /* (sum |x|^a)^(1/a), in float64 */
  /* of reduce_line.cu: */
  LT_CUDA_ARG, /* where the first of the best is, from LT_INDEX_BASE; the value too if asked for */
  LT_CUDA_SPREAD, /* squared distances from the mean, summed, over `a`; in float64 */
  LT_CUDA_LOGSUMEXP
} lt_CudaReducer;

/* Results count from 0 in the order of the kept dims, elements of each in the order of the reduced
 * dims; both lists are outermost first, strides in elements. */
typedef struct lt_CudaReduce {
  lt_CudaReducer reducer;
  bool smallest, absolute; /* of BEST and ARG */
  double a;
  /* float32 (x: float16, bfloat16, float32), float64 (x: any float) or int64 (x: the rest). Of no
   * meaning to COUNT, ALL and ANY (x: any dtype) and to what is done in float64 (x: any float). */
  int work;
  const void *x;
  int dtype;
  void *out; /* of any dtype; NULL: not wanted (ARG) */
  int out_dtype;
  int64_t *at; /* ARG */

  int kept_ndim, reduced_ndim; /* reduced_ndim >= 1 */
  int64_t kept_shape[LT_MAX_DIMS], kept_x[LT_MAX_DIMS], kept_out[LT_MAX_DIMS];
  int64_t reduced_shape[LT_MAX_DIMS], reduced_x[LT_MAX_DIMS];
  int64_t results, n; /* both >= 1 */

  /* How threads share the work: `width` (a power of 2, at most `threads`) of them share a result;
   * they are neighbours (rows: at most 32 of them, or all of the block), or their neighbours work
   * on the next results (width * results of a block == threads). A result's elements are cut in
   * `splits` pieces of `piece` (a multiple of 8 * width), for as many blocks; then `room` holds
   * results * splits * LT_CUDA_PARTIAL bytes. packs: four elements at a time are aligned. */
  int threads, width;
  bool rows, packs;
  int64_t splits, piece;
  void *room;
} lt_CudaReduce;

#define LT_CUDA_PARTIAL      24 /* bytes of what is known of a piece, at most */
#define LT_CUDA_WARP         32
#define LT_CUDA_REDUCE_BLOCK 256 /* threads of a block, at most */

LT_C_LINKAGE cudaError_t lt_cuda_launch_reduce(const lt_CudaReduce *r, cudaStream_t stream);
/* Called by it for the reducers from LT_CUDA_ARG on. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_reduce_line(const lt_CudaReduce *r, cudaStream_t stream);

#endif
