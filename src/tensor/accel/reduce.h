/* reduce.h: reductions on accelerators: how the dims of the input are ordered for the kernels, and
 * how threads share the work. A device launches what is described here. */
#ifndef LT_ACCEL_REDUCE_H
#define LT_ACCEL_REDUCE_H

#include "reductions.h"

#include <stdbool.h>
#include <stdint.h>

/* The reduction (sum |x|^a)^(1/a), in double: _norm for an `a` without a form of its own. */
#define LT_REDUCTION_POWERS LT_REDUCTION_COUNT

#ifndef __METAL_VERSION__ /* the description is for the host */
/* A reduction. Results are numbered from 0 in the order of the kept dims, and the elements of each
 * in the order of the reduced dims; both lists are outermost first, strides in elements. */
typedef struct lt_AccelReduce {
  int reduction; /* an lt_ReductionId or LT_REDUCTION_POWERS */
  double a;      /* the argument of its form */
  /* The type that is computed in: float32 (x is float16, bfloat16, float32), float64, or what a
   * device without float64 has instead (x is any float), or int64 (x is any other dtype). Ignored
   * by reductions of booleans (x is any dtype). */
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
   * `scratch` holds results * splits * LT_REDUCE_PARTIAL bytes. `packs`: four elements at a time
   * are aligned. */
  int threads, width;
  bool rows, packs;
  int64_t splits, piece;
  void *scratch;
} lt_AccelReduce;
#endif

#define LT_REDUCE_PARTIAL 40 /* the most bytes of a piece's state */
#define LT_REDUCE_LANES   32
#define LT_REDUCE_THREADS 256 /* the most threads of a block */

#ifndef __cplusplus
/* Launches the kernels of a reduction for a call. */
typedef bool (*lt_ReduceLauncher)(const lt_Call *c, const lt_AccelReduce *r);
/* Run a call of a reduction, or of _norm: describe it, allocate scratch memory and launch the
 * kernels. */
bool lt_accel_reduce(lt_Call *c, lt_ReduceLauncher launch);
bool lt_accel_norm(lt_Call *c, lt_ReduceLauncher launch);
#endif

#endif
