/* index_regions.metal.h: offsets of a region's elements; see accel/index_regions.h. */
#ifndef LT_MPS_INDEX_REGIONS_METAL_H
#define LT_MPS_INDEX_REGIONS_METAL_H

#include "loops.metal.h"

#include "fault.h"
#include "index_regions.h"

/* The offsets of element i of a region: in self (without the part of the index), in the index, and
 * in the other tensor. */
struct RegionOffsets {
  int64_t self, index, other;
};

/* Returns the offsets of element i of a region. */
static inline RegionOffsets region_offsets(constant lt_IndexRegion &p, int64_t i) {
  RegionOffsets at = {0, 0, 0};
  for (int d = p.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, p.shape[d], &c);
    at.self += c * p.self[d];
    at.index += c * p.index[d];
    at.other += c * p.other[d];
  }
  return at;
}

/* Returns the offset of element i of a tensor. */
static inline int64_t offset_of(constant lt_IndexLayout &l, int64_t i) {
  int64_t offset = 0;
  for (int d = l.ndim - 1; d >= 0; d--) {
    int64_t c = i;
    if (d > 0) i = divide(i, l.shape[d], &c);
    offset += c * l.strides[d];
  }
  return offset;
}

/* Returns true when a check has reported a bad value. */
static inline bool is_bad(device const uint *slot) { return *slot != LT_MPS_NO_FAULT; }

#endif
