/* reduce.h: the launchers of the reductions in reduce.cu and reduce_line.cu, as reduce.c calls
 * them. */
#ifndef LT_CUDA_REDUCE_H
#define LT_CUDA_REDUCE_H

#include "kernels.h"
#include "reductions.h"

/* The reduction (sum |x|^a)^(1/a), in float64: _norm for an `a` without a form of its own. */
#define LT_CUDA_POWERS LT_REDUCTION_COUNT

/* A reduction. Results are numbered from 0 in the order of the kept dims, and the elements of each
 * in the order of the reduced dims; both lists are outermost first, strides in elements. */
typedef struct lt_CudaReduce {
  int reduction; /* an lt_ReductionId or LT_CUDA_POWERS */
  double a;      /* the argument of its form */
  /* The type that is computed in: float32 (x is float16, bfloat16, float32), float64 (x is any
   * float) or int64 (x is any other dtype). Ignored by reductions of booleans (x is any dtype). */
  int work;
  const void *x;
  int dtype;
  void *out; /* of any dtype; may be NULL for BEST */
  int out_dtype;
  int64_t *at; /* for BEST: indices, from LT_INDEX_BASE */

  int kept_ndim, reduced_ndim; /* reduced_ndim >= 1 */
  int64_t kept_shape[LT_MAX_DIMS], kept_x[LT_MAX_DIMS], kept_out[LT_MAX_DIMS];
  int64_t reduced_shape[LT_MAX_DIMS], reduced_x[LT_MAX_DIMS];
  int64_t results, n; /* results >= 1 */

  /* How threads share the work: `width` threads (a power of 2, at most `threads`) share a result.
   * With `rows` they are neighbours (at most 32 of them, or the whole block); else their neighbours
   * compute the next results (width * results of a block == threads). A result's elements are
   * divided into `splits` pieces of `piece` (a multiple of 8 * width), for as many blocks; then
   * `scratch` holds results * splits * LT_CUDA_PARTIAL bytes. `packs`: four elements at a time are
   * aligned. */
  int threads, width;
  bool rows, packs;
  int64_t splits, piece;
  void *scratch;
} lt_CudaReduce;

#define LT_CUDA_PARTIAL      24 /* the most bytes of a piece's state */
#define LT_CUDA_WARP         32
#define LT_CUDA_REDUCE_BLOCK 256 /* the most threads of a block */

/* Launches the reduction. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_reduce(const lt_CudaReduce *r, cudaStream_t stream);
/* Launches a reduction of the kind BEST or CENTERED; called by lt_cuda_launch_reduce. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_reduce_line(const lt_CudaReduce *r, cudaStream_t stream);

#endif
