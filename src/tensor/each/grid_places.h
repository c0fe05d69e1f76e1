/* grid_places.h: the places of a grid among the elements of an image. Included once for each T. */
#include "cubic.h"

/* Returns a position reflected at the borders, which are the centers of the outer elements with
 * align_corners, else their outer edges. */
LT_EACH_OF_T T LT_EACH_NAME(grid_reflected)(LT_EACH_ARGS(lt_Grid) p, T at, int64_t size) {
  T low = p->align_corners != 0 ? (T)0 : -(T)1 / (T)2;
  int64_t span = p->align_corners != 0 ? size - 1 : size;
  if (span == 0) return at * 0;
  T distance = at < low ? low - at : at - low, turns = distance / (T)span;
  if (!(turns < (T)((int64_t)1 << 60))) return IS_NAN(at) ? at : 0; /* far outside */
  int64_t flips = (int64_t)turns;
  T rest = distance - (T)flips * (T)span;
  return (flips % 2 == 0 ? rest : (T)span - rest) + low;
}

/* Returns the position, from 0 to size - 1, of a coordinate in dim d; with zeros as padding, it may
 * be outside. A position that is not a number is -2. */
LT_EACH_OF_T T LT_EACH_NAME(grid_position)(LT_EACH_ARGS(lt_Grid) p, int d, T v) {
  int64_t size = p->in[d];
  T most = (T)(size - 1),
    at = p->align_corners != 0 ? (v + 1) / 2 * most : ((v + 1) * (T)size - 1) / 2;
  if (p->padding == LT_GRID_REFLECTION) at = LT_EACH_CALL(grid_reflected)(p, at, size);
  T beyond = p->padding == LT_GRID_ZEROS ? 2 : 0; /* how far it may be outside */
  T low = -beyond, high = most + beyond;
  at = at < low ? low : at;
  at = at > high ? high : at;
  return IS_NAN(at) ? -2 : at;
}

/* Returns the derivative of grid_position: 0 at the limits of positions and beyond. The limits with
 * zeros as padding are outside of the image, where no element depends on the position. */
LT_EACH_OF_T T LT_EACH_NAME(grid_slope)(LT_EACH_ARGS(lt_Grid) p, int d, T v) {
  int64_t size = p->in[d], span = p->align_corners != 0 ? size - 1 : size;
  T most = (T)(size - 1), slope = (T)span / 2,
    at = p->align_corners != 0 ? (v + 1) / 2 * most : ((v + 1) * (T)size - 1) / 2;
  if (p->padding == LT_GRID_REFLECTION) {
    T low = p->align_corners != 0 ? (T)0 : -(T)1 / (T)2, distance = at < low ? low - at : at - low;
    if (span == 0 || !(distance / (T)span < (T)((int64_t)1 << 60))) return 0;
    bool odd = (int64_t)(distance / (T)span) % 2 != 0;
    if (odd != (at < low)) slope = -slope;
    at = LT_EACH_CALL(grid_reflected)(p, at, size);
  }
  if (p->padding == LT_GRID_ZEROS) return slope + (at - at); /* NaN unless at is finite */
  return at > 0 && at < most ? slope : 0;
}

/* Returns the largest integer up to a position. */
LT_EACH_OF_T int64_t LT_EACH_NAME(grid_floor)(T at) {
  int64_t low = (int64_t)at;
  return (T)low > at ? low - 1 : low;
}

/* Returns the nearest integer; the even one of two. */
LT_EACH_OF_T int64_t LT_EACH_NAME(grid_nearest)(T at) {
  int64_t low = LT_EACH_CALL(grid_floor)(at);
  T rest = 2 * (at - (T)low);
  return rest > 1 || (rest == 1 && low % 2 != 0) ? low + 1 : low;
}

/* Computes the weights of four neighbours of a place for cubic interpolation, which is t behind the
 * second one: Keys' cubic, a = -3/4. */
LT_EACH_OF_T void LT_EACH_NAME(grid_weights)(T t, LT_EACH_LOCAL(T) weight) {
  T u = 1 - t, a = -(T)3 / (T)4;
  weight[0] = LT_CUBIC_FAR(t + 1, a);
  weight[1] = LT_CUBIC_NEAR(t, a);
  weight[2] = LT_CUBIC_NEAR(u, a);
  weight[3] = LT_CUBIC_FAR(u + 1, a);
}

/* Computes the four neighbours, in dim d, of the place at coordinate v for cubic interpolation:
 * their numbers, -1 for those outside of the image, and their weights. Returns how far the place is
 * behind the second one: NaN unless its position is finite. */
LT_EACH_OF_T T LT_EACH_NAME(grid_cubic)(LT_EACH_ARGS(lt_Grid) p, int d, T v,
                                        LT_EACH_LOCAL(int64_t) place, LT_EACH_LOCAL(T) weight) {
  int64_t size = p->in[d];
  T most = (T)(size - 1), far = (T)((int64_t)1 << 60),
    at = p->align_corners != 0 ? (v + 1) / 2 * most : ((v + 1) * (T)size - 1) / 2,
    low = at > -far && at < far ? (T)LT_EACH_CALL(grid_floor)(at) : at;
  LT_EACH_CALL(grid_weights)(at - low, weight);
  for (int k = 0; k < 4; k++) {
    T next = low + (T)(k - 1);
    if (p->padding == LT_GRID_REFLECTION) next = LT_EACH_CALL(grid_reflected)(p, next, size);
    if (p->padding != LT_GRID_ZEROS) next = next < 0 ? 0 : next > most ? most : next;
    place[k] = next >= 0 && next <= most ? (int64_t)next : -1;
  }
  return at - low;
}
