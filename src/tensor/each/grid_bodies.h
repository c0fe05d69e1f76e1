/* grid_bodies.h: the body of sampling images at the places of a grid. */
#include "grid_places.h"

/* Adds to `sum` the value at a place, whose coordinates begin at number `grid` of input 1, by cubic
 * interpolation of the plane of two dims whose elements begin at number `first`. The neighbours are
 * added in the order of their numbers; those outside of the image count 0. */
#define CUBIC_VALUE(first, grid, sum)                                                              \
  do {                                                                                             \
    T row[4], column[4], down[4], across[4];                                                       \
    LT_EACH_CALL(grid_cubic)(p, 1, GET(1, (grid) + 1), row, down);                                 \
    LT_EACH_CALL(grid_cubic)(p, 2, GET(1, grid), column, across);                                  \
    for (int j = 0; j < 4; j++)                                                                    \
      for (int k = 0; k < 4; k++) {                                                                \
        T v = 0;                                                                                   \
        if (row[j] >= 0 && column[k] >= 0)                                                         \
          v = GET(0, (first) + (int64_t)row[j] * p->in[2] + (int64_t)column[k]);                   \
        sum += v * (down[j] * across[k]);                                                          \
      }                                                                                            \
  } while (0)

/* Inputs: images, and places. The elements of the cell around a place are added in the order of
 * their numbers, the last dim first; those outside of the image count 0. */
LT_EACH_BODY(_grid_sample) {
  int64_t point = i % p->points, plane = i / p->points, image = plane / p->channels;
  int64_t low[3] = {0, 0, 0}, first = plane * p->in[0] * p->in[1] * p->in[2];
  T part[3] = {0, 0, 0}, sum = 0;
  int used = (int)p->dims;
  if (p->mode == LT_GRID_CUBIC) {
    CUBIC_VALUE(first, (image * p->points + point) * 2, sum);
    PUT(0, i, sum);
    return;
  }
  bool nearest = p->mode == LT_GRID_NEAREST;
  for (int d = 3 - used; d < 3; d++) {
    T at = LT_EACH_CALL(grid_position)(p, d, GET(1, (image * p->points + point) * used + (2 - d)));
    T cell = nearest ? LT_EACH_CALL(grid_nearest)(at) : FLOOR(at);
    low[d] = (int64_t)cell;
    part[d] = nearest ? (T)0 : at - cell;
  }
  for (int corner = 0; corner < (nearest ? 1 : 1 << used); corner++) {
    T weight = 1;
    int64_t place = 0;
    bool inside = true;
    for (int d = 0; d < 3; d++) {
      int high = corner >> (2 - d) & 1;
      int64_t at = low[d] + high;
      weight = weight * (high != 0 ? part[d] : 1 - part[d]);
      inside = inside && at >= 0 && at < p->in[d];
      place = place * p->in[d] + at;
    }
    if (inside) sum += GET(0, first + place) * weight;
  }
  PUT(0, i, sum);
}
#undef CUBIC_VALUE
