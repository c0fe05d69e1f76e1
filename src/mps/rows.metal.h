/* rows.metal.h: rows of numbers, for kernels that make several passes over each. A row is processed
 * by a team of neighbouring threads: a SIMD group, where rows are short, or a whole threadgroup
 * (K7 is the number of threads of a team). */
#ifndef LT_MPS_ROWS_METAL_H
#define LT_MPS_ROWS_METAL_H

#include "loops.metal.h"

#define TEAM K7

/* Which thread of its team this thread is, and the memory that the team needs. */
struct Team {
  uint member;
  threadgroup float *scratch; /* LT_SIMD floats */
  uint index;
};
#define LT_TEAM(index, scratch)                                                                    \
  Team { (index) % (uint)TEAM, (scratch), (index) }

/* Reduces over the threads of a team; each of them gets the result. All threads of the threadgroup
 * call it. */
template <typename Join>
static inline float team_all(float v, float nothing, Join join, Team team) {
  if (TEAM == LT_SIMD) return simd_all(v, join);
  return group_all(v, nothing, join, team.scratch, team.index, LT_LOOP_THREADS);
}

/* Return the first row of a threadgroup, the rows that all threadgroups process at once, and the
 * row of this thread's team among them. */
static inline int64_t first_row(Place place) {
  return (int64_t)place.group * (LT_LOOP_THREADS / TEAM);
}
static inline int64_t row_step(Place place) {
  return (int64_t)place.groups * (LT_LOOP_THREADS / TEAM);
}
static inline int64_t row_of_team(Place place) { return place.index / (uint)TEAM; }

#endif
