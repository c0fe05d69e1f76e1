/* loops.h: launches of kernels that loop over n elements (LT_EACH of loops.metal.h). Included by C
 * and by kernels. */
#ifndef LT_MPS_LOOPS_H
#define LT_MPS_LOOPS_H

#define LT_LOOP_THREADS  256
#define LT_LOOP_ELEMENTS (4 * LT_LOOP_THREADS) /* of a threadgroup */

#ifndef __METAL_VERSION__
#include "mps.h"

/* The most threadgroups of a loop: with more elements, each processes several parts, because a grid
 * has less than 2^32 threads. */
#define LT_LOOP_GROUPS ((int64_t)1 << 22)

/* Queues a kernel that loops over n elements: with LT_EACH, or with LT_EACH_ALONE. */
static inline bool lt_mps_launch_each(const lt_Call *c, lt_MpsLaunch launch, int64_t n) {
  int64_t groups = lt_mps_groups(n, LT_LOOP_ELEMENTS);
  launch.groups[0] = groups < LT_LOOP_GROUPS ? groups : LT_LOOP_GROUPS;
  launch.threads[0] = LT_LOOP_THREADS;
  return lt_mps_launch(c, &launch);
}
static inline bool lt_mps_launch_each_alone(const lt_Call *c, lt_MpsLaunch launch, int64_t n) {
  int64_t groups = lt_mps_groups(n, LT_LOOP_THREADS);
  launch.groups[0] = groups < LT_LOOP_GROUPS ? groups : LT_LOOP_GROUPS;
  launch.threads[0] = LT_LOOP_THREADS;
  return lt_mps_launch(c, &launch);
}
#endif

#endif
