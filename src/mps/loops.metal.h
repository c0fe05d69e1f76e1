/* loops.metal.h: loops over n elements, for kernels that lt_mps_launch_each launches (loops.h). A
 * kernel has the parameters LT_GRID, and its functions take LT_PLACE. */
#ifndef LT_MPS_LOOPS_METAL_H
#define LT_MPS_LOOPS_METAL_H

#include "device.metal.h"
#include "loops.h"

/* Which part of the loop is this thread's. */
struct Place {
  uint group, groups, index;
};
#define LT_GRID                                                                                    \
  uint3 group [[threadgroup_position_in_grid]], uint3 groups [[threadgroups_per_grid]],            \
      uint index [[thread_index_in_threadgroup]]
#define LT_PLACE                                                                                   \
  Place { group.x, groups.x, index }

/* Loops over the elements 0..n-1, a few to each thread; neighbouring threads have neighbouring
 * elements. */
#define LT_EACH(place, i, n)                                                                       \
  for (int64_t first_ = (int64_t)(place).group * LT_LOOP_ELEMENTS; first_ < (n);                   \
       first_ += (int64_t)(place).groups * LT_LOOP_ELEMENTS)                                       \
    for (int64_t i = first_ + (place).index; i < (n) && i < first_ + LT_LOOP_ELEMENTS;             \
         i += LT_LOOP_THREADS)
/* The same with one element to each thread, where an element may be much work. */
#define LT_EACH_ALONE(place, i, n)                                                                 \
  for (int64_t i = (int64_t)(place).group * LT_LOOP_THREADS + (place).index; i < (n);              \
       i += (int64_t)(place).groups * LT_LOOP_THREADS)

/* Returns i / n and writes the remainder; i >= 0, n > 0. 32-bit division is several times
 * faster. */
static inline int64_t divide(int64_t i, int64_t n, thread int64_t *rest) {
  if ((((uint64_t)i | (uint64_t)n) >> 32) != 0) {
    int64_t quotient = i / n;
    *rest = i - quotient * n;
    return quotient;
  }
  uint quotient = (uint)i / (uint)n;
  *rest = (int64_t)((uint)i - quotient * (uint)n);
  return (int64_t)quotient;
}

#endif
