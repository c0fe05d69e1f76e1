/* index.metal: kernels that read the elements selected by index tensors. They copy bytes, whatever
 * the dtype; rows in units of up to 16 bytes. */
#include "index_regions.metal.h"

#define UNIT K0 /* bytes */

/* `any` becomes a slot like `bad`: it has a report where one of the checks has one. */
kernel void add_indices(device const int64_t *at [[buffer(0)]],
                        device const uint *bad [[buffer(1)]], device uint *any [[buffer(2)]],
                        device int64_t *sum [[buffer(3)]],
                        constant lt_MpsAddIndices &args [[buffer(4)]], LT_GRID) {
  const Place place = LT_PLACE;
  if (group.x == 0 && index == 0) {
    if (args.first != 0)
      *any = *bad;
    else if (is_bad(bad))
      *any = *bad;
  }
  LT_EACH(place, i, args.p.count) {
    int64_t v = at[region_offsets(args.p, i).index] * args.mult;
    sum[i] = args.first != 0 ? v : sum[i] + v;
  }
}

template <typename U>
static inline void take(device const U *from, device const int64_t *at, device U *to,
                        constant lt_IndexRegion &p, Place place) {
  LT_EACH(place, i, p.count) {
    RegionOffsets offsets = region_offsets(p, i);
    to[i] = from[offsets.self + at[offsets.index] * p.step];
  }
}

kernel void index_take(device const char *from [[buffer(0)]],
                       device const int64_t *at [[buffer(1)]], device char *to [[buffer(2)]],
                       constant lt_IndexRegion &p [[buffer(3)]], LT_GRID) {
  const Place place = LT_PLACE;
  if (UNIT == 1)
    take((device const uint8_t *)from, at, (device uint8_t *)to, p, place);
  else if (UNIT == 2)
    take((device const uint16_t *)from, at, (device uint16_t *)to, p, place);
  else if (UNIT == 4)
    take((device const uint *)from, at, (device uint *)to, p, place);
  else if (UNIT == 8)
    take((device const uint2 *)from, at, (device uint2 *)to, p, place);
  else
    take((device const uint4 *)from, at, (device uint4 *)to, p, place);
}
