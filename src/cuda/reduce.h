/* reduce.h: reductions: what reduce.c asks of the kernels in reduce.cu and reduce_line.cu. */
#ifndef LT_CUDA_REDUCE_H
#define LT_CUDA_REDUCE_H

#include "kernels.h"
#include "reductions.h"

/* (sum |x|^a)^(1/a), in float64: what _norm is for an `a` that has no form of its own. */
#define LT_CUDA_POWERS LT_REDUCTION_COUNT

/* Results count from 0 in the order of the kept dims, elements of each in the order of the reduced
 * dims; both lists are outermost first, strides in elements. */
typedef struct lt_CudaReduce {
  int reduction; /* an lt_ReductionId or LT_CUDA_POWERS */
  double a;      /* of its form */
  /* float32 (x: float16, bfloat16, float32), float64 (x: any float) or int64 (x: the rest). Of no
   * meaning to reductions of truth (x: any dtype). */
  int work;
  const void *x;
  int dtype;
  void *out; /* of any dtype; NULL: not wanted (BEST) */
  int out_dtype;
  int64_t *at; /* positions, from LT_INDEX_BASE: BEST */

  int kept_ndim, reduced_ndim; /* reduced_ndim >= 1 */
  int64_t kept_shape[LT_MAX_DIMS], kept_x[LT_MAX_DIMS], kept_out[LT_MAX_DIMS];
  int64_t reduced_shape[LT_MAX_DIMS], reduced_x[LT_MAX_DIMS];
  int64_t results, n; /* results >= 1 */

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
/* Called by it for the kinds BEST and CENTERED. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_reduce_line(const lt_CudaReduce *r, cudaStream_t stream);

#endif
