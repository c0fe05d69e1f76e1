/* grid_places.h: the places of a grid among the elements of an image. Included once for each T. */
#include "cubic.h"

/* Returns the position of a coordinate in dim d: 0 to size - 1 inside of the image. */
LT_EACH_OF_T T LT_EACH_NAME(grid_scaled)(LT_EACH_ARGS(lt_Grid) p, int d, T v) {
  T corners = (v + 1) / 2 * (T)(p->in[d] - 1), edges = ((v + 1) * (T)p->in[d] - 1) / 2;
  return p->align_corners != 0 ? corners : edges;
}

/* Returns a position reflected at the borders, which are the centers of the outer elements with
 * align_corners, else their outer edges. */
LT_EACH_OF_T T LT_EACH_NAME(grid_reflected)(LT_EACH_ARGS(lt_Grid) p, T at, int64_t size) {
  T low = p->align_corners != 0 ? (T)0 : -(T)1 / (T)2;
  T span = (T)(p->align_corners != 0 ? size - 1 : size);
  T distance = at < low ? low - at : at - low, turns = FLOOR(distance / span),
    rest = distance - turns * span;
  bool even = 2 * FLOOR(turns / 2) == turns, near = turns < (T)((int64_t)1 << 60);
  T inside = (even ? rest : span - rest) + low;
  return span == 0 ? at * 0 : near ? inside : IS_NAN(at) ? at : 0;
}

/* Returns the position, from 0 to size - 1, of a coordinate in dim d; with zeros as padding, it may
 * be outside. A position that is not a number is -2. */
LT_EACH_OF_T T LT_EACH_NAME(grid_position)(LT_EACH_ARGS(lt_Grid) p, int d, T v) {
  int64_t size = p->in[d];
  T most = (T)(size - 1), at = LT_EACH_CALL(grid_scaled)(p, d, v);
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
  T most = (T)(size - 1), slope = (T)span / 2, at = LT_EACH_CALL(grid_scaled)(p, d, v);
  if (p->padding == LT_GRID_REFLECTION) {
    T low = p->align_corners != 0 ? (T)0 : -(T)1 / (T)2, distance = at < low ? low - at : at - low,
      turns = FLOOR(distance / (T)span);
    bool even = 2 * FLOOR(turns / 2) == turns, near = turns < (T)((int64_t)1 << 60);
    slope = !near || span == 0 ? 0 : even == (at < low) ? -slope : slope;
    at = LT_EACH_CALL(grid_reflected)(p, at, size);
  }
  if (p->padding == LT_GRID_ZEROS) return slope + (at - at); /* NaN unless at is finite */
  return at > 0 && at < most ? slope : 0;
}

/* Returns the nearest integer; the even one of two. */
LT_EACH_OF_T T LT_EACH_NAME(grid_nearest)(T at) {
  T low = FLOOR(at), rest = 2 * (at - low);
  return (rest > 1) | ((rest == 1) & (2 * FLOOR(low / 2) != low)) ? low + 1 : low;
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

/* Returns the place of the last of `size` elements, or of the nearest before it that T can hold: a
 * float's distance from the next is at most twice last >> 24. */
LT_EACH_OF_T T LT_EACH_NAME(grid_last)(int64_t size) {
  int64_t last = size - 1;
  T place = (T)last; /* may be rounded up, with float from 2^24 on */
  return (int64_t)place > last ? (T)(last - (last >> 24)) : place;
}

/* Computes the four neighbours, in dim d, of the place at coordinate v for cubic interpolation:
 * their numbers, -1 for those outside of the image, and their weights. Returns how far the place is
 * behind the second one: NaN unless its position is finite. */
LT_EACH_OF_T T LT_EACH_NAME(grid_cubic)(LT_EACH_ARGS(lt_Grid) p, int d, T v, LT_EACH_LOCAL(T) place,
                                        LT_EACH_LOCAL(T) weight) {
  T most = LT_EACH_CALL(grid_last)(p->in[d]), at = LT_EACH_CALL(grid_scaled)(p, d, v);
  T low = FLOOR(at);
  bool zeros = p->padding == LT_GRID_ZEROS;
  T before = zeros ? (T)-1 : 0, after = zeros ? (T)-1 : most; /* instead of those outside */
  LT_EACH_CALL(grid_weights)(at - low, weight);
  for (int k = 0; k < 4; k++) {
    T next = low + (T)(k - 1);
    if (p->padding == LT_GRID_REFLECTION) next = LT_EACH_CALL(grid_reflected)(p, next, p->in[d]);
    next = next < 0 ? before : next;
    next = next > most ? after : next;
    place[k] = IS_NAN(next) ? -1 : next;
  }
  return at - low;
}
