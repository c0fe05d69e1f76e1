/* rows.h: launches of kernels that process rows by teams of threads (rows.metal.h). */
#ifndef LT_MPS_ROWS_H
#define LT_MPS_ROWS_H

#include "loops.h"

/* Rows up to this size are processed by one SIMD group, longer ones by a threadgroup. */
#define LT_SHORT_ROW 1024

/* Queues a kernel that processes rows of n elements. Sets K7. */
static inline bool lt_mps_launch_rows(const lt_Call *c, lt_MpsLaunch launch, int64_t rows,
                                      int64_t n) {
  int team = n <= LT_SHORT_ROW ? 32 : LT_LOOP_THREADS;
  int64_t groups = lt_mps_groups(rows, LT_LOOP_THREADS / team);
  launch.constants[7] = team;
  launch.groups[0] = groups < LT_LOOP_GROUPS ? groups : LT_LOOP_GROUPS;
  launch.threads[0] = LT_LOOP_THREADS;
  return lt_mps_launch(c, &launch);
}

#endif
