/* elementwise_copy.metal: copies of elements without conversion, and fills. They treat elements as
 * bytes, whatever the dtype. */
#include "device.metal.h"
#include "elementwise.h"

#define SIZE  K0 /* of an element in bytes: 1, 2, 4, 8 or 16 */
#define FILLS K1 /* with the bits of the arguments, instead of a source */

/* ---- any layout ------------------------------------------------------------------------------ */

template <typename V>
static inline void move(device char *to, device const char *from, int64_t t, int64_t f, V bits) {
  ((device V *)to)[t] = FILLS ? bits : ((device const V *)from)[f];
}

kernel void move_any(device char *to [[buffer(0)]], device const char *from [[buffer(1)]],
                     constant lt_MpsMove &args [[buffer(2)]],
                     uint3 group [[threadgroup_position_in_grid]],
                     uint3 groups [[threadgroups_per_grid]],
                     uint thread_index [[thread_index_in_threadgroup]]) {
  int64_t step = (int64_t)groups.x * LT_MPS_THREADS;
  uint first = (uint)args.bits[0], second = (uint)(args.bits[0] >> 32), third = (uint)args.bits[1],
       fourth = (uint)(args.bits[1] >> 32);
  for (int64_t i = (int64_t)group.x * LT_MPS_THREADS + thread_index; i < args.numel; i += step) {
    int64_t at[2];
    offsets_at<2>(args.geometry, i, at);
    if (SIZE == 1)
      move(to, from, at[0], at[1], (uint8_t)first);
    else if (SIZE == 2)
      move(to, from, at[0], at[1], (uint16_t)first);
    else if (SIZE == 4)
      move(to, from, at[0], at[1], first);
    else if (SIZE == 8)
      move(to, from, at[0], at[1], uint2(first, second));
    else
      move(to, from, at[0], at[1], uint4(first, second, third, fourth));
  }
}

/* ---- transposes ------------------------------------------------------------------------------ */

/* Transposes tiles in threadgroup memory, so that both sides are accessed in consecutive runs. The
 * rows of a tile are padded to avoid bank conflicts. */
template <typename V>
static inline void transpose(device V *to, device const V *from, constant lt_MpsTiles &t,
                             threadgroup V *tile, uint3 group, uint3 groups, uint3 at) {
  for (int64_t b = group.x; b < t.tiles; b += groups.x) {
    int64_t next = b / t.tiles_last, last = (b - next * t.tiles_last) * LT_MPS_TILE, offset[2];
    int64_t outer = next / t.tiles_across, across = (next - outer * t.tiles_across) * LT_MPS_TILE;
    int x = (int)at.x, y = (int)at.y;
    offsets_at<2>(t.outer, outer, offset);
    for (int r = y; r < LT_MPS_TILE; r += LT_MPS_ROWS)
      if (across + x < t.across && last + r < t.last)
        tile[r * (LT_MPS_TILE + 1) + x] = from[offset[1] + (last + r) * t.from_last + across + x];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int r = y; r < LT_MPS_TILE; r += LT_MPS_ROWS)
      if (across + r < t.across && last + x < t.last)
        to[offset[0] + (across + r) * t.to_across + last + x] = tile[x * (LT_MPS_TILE + 1) + r];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

kernel void move_tiles(device char *to [[buffer(0)]], device const char *from [[buffer(1)]],
                       constant lt_MpsTiles &args [[buffer(2)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint3 groups [[threadgroups_per_grid]],
                       uint3 at [[thread_position_in_threadgroup]]) {
  threadgroup uint2 tile[LT_MPS_TILE * (LT_MPS_TILE + 1)];
  if (SIZE == 1)
    transpose((device uint8_t *)to, (device const uint8_t *)from, args, (threadgroup uint8_t *)tile,
              group, groups, at);
  else if (SIZE == 2)
    transpose((device uint16_t *)to, (device const uint16_t *)from, args,
              (threadgroup uint16_t *)tile, group, groups, at);
  else if (SIZE == 4)
    transpose((device uint *)to, (device const uint *)from, args, (threadgroup uint *)tile, group,
              groups, at);
  else
    transpose((device uint2 *)to, (device const uint2 *)from, args, tile, group, groups, at);
}

/* ---- dense memory ---------------------------------------------------------------------------- */

/* Fills with a repeated pattern of 8 bytes, 16 bytes at a time; the first `head` and the last few
 * bytes one by one. `head` is a multiple of the element's size, so that the pattern stays aligned
 * with the elements. */
kernel void fill_bytes(device uint8_t *to [[buffer(0)]], constant lt_MpsFill &args [[buffer(1)]],
                       uint3 group [[threadgroup_position_in_grid]],
                       uint3 groups [[threadgroups_per_grid]],
                       uint thread_index [[thread_index_in_threadgroup]]) {
  int64_t step = (int64_t)groups.x * LT_MPS_THREADS;
  uint low = (uint)args.bits, high = (uint)(args.bits >> 32);
  int64_t i = (int64_t)group.x * LT_MPS_THREADS + thread_index;
  if (i < 16) {
    uint8_t byte = (uint8_t)(args.bits >> 8 * (i % 8));
    int64_t tail = args.head + args.quads * 16 + i;
    if (i < args.head) to[i] = byte;
    if (tail < args.nbytes) to[tail] = byte;
  }
  for (; i < args.quads; i += step)
    ((device uint4 *)(to + args.head))[i] = uint4(low, high, low, high);
}
