/* rearrange.metal: kernels that move elements: triangles, rolls, flips. They copy bytes, whatever
 * the dtype. */
#include "loops.metal.h"
#include "rearrange.h"

#define UNIT K0 /* bytes */

template <typename U>
static inline void copy_triangle(device const U *from, device U *to, constant lt_MpsTriangle &t,
                                 Place place) {
  LT_EACH(place, i, t.numel) {
    int64_t column, row, line = divide(i, t.columns, &column);
    divide(line, t.rows, &row);
    bool kept = t.upper != 0 ? column >= row + t.diagonal : column <= row + t.diagonal;
    U v = U(0);
    if (kept) v = from[i];
    to[i] = v;
  }
}

kernel void triangle(device const char *from [[buffer(0)]], device char *to [[buffer(1)]],
                     constant lt_MpsTriangle &t [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  if (UNIT == 1)
    copy_triangle((device const uint8_t *)from, (device uint8_t *)to, t, place);
  else if (UNIT == 2)
    copy_triangle((device const uint16_t *)from, (device uint16_t *)to, t, place);
  else if (UNIT == 4)
    copy_triangle((device const uint *)from, (device uint *)to, t, place);
  else
    copy_triangle((device const uint2 *)from, (device uint2 *)to, t, place);
}

template <typename U>
static inline void copy_rolled(device const U *from, device U *to, constant lt_MpsRoll &r,
                               Place place) {
  LT_EACH(place, i, r.numel) {
    int64_t left = i, offset = 0;
    for (int d = r.ndim - 1; d >= 0; d--) {
      int64_t at;
      left = divide(left, r.shape[d], &at);
      if ((r.flipped >> d & 1u) != 0)
        at = r.shape[d] - 1 - at;
      else
        at = at < r.shift[d] ? at - r.shift[d] + r.shape[d] : at - r.shift[d];
      offset += at * r.strides[d];
    }
    to[i] = from[offset];
  }
}

kernel void roll(device const char *from [[buffer(0)]], device char *to [[buffer(1)]],
                 constant lt_MpsRoll &r [[buffer(2)]], LT_GRID) {
  const Place place = LT_PLACE;
  if (UNIT == 1)
    copy_rolled((device const uint8_t *)from, (device uint8_t *)to, r, place);
  else if (UNIT == 2)
    copy_rolled((device const uint16_t *)from, (device uint16_t *)to, r, place);
  else if (UNIT == 4)
    copy_rolled((device const uint *)from, (device uint *)to, r, place);
  else
    copy_rolled((device const uint2 *)from, (device uint2 *)to, r, place);
}
