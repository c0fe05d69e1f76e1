/* grid_places.h: the places of a grid among the elements of an image. Included once for each T. */

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
  if (IS_NAN(at)) return -2;
  if (p->padding == LT_GRID_ZEROS) return at < -2 ? (T)-2 : at > most + 2 ? most + 2 : at;
  return at < 0 ? (T)0 : at > most ? most : at;
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
