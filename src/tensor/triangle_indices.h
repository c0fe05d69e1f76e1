/* triangle_indices.h: the elements of a row x col matrix on and below, or on and above, a diagonal,
 * in row-major order. */
#ifndef LT_TRIANGLE_INDICES_H
#define LT_TRIANGLE_INDICES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lt_Triangle {
  int64_t row, col, offset; /* the shape; the offset of the diagonal, in -row..col */
  bool upper;
} lt_Triangle;

/* Returns the number of columns that row r, from 1 on, has up to the diagonal `offset`. */
static inline int64_t lt_triangle_width(const lt_Triangle *t, int64_t r, int64_t offset) {
  int64_t width = r + offset;
  return width < 0 ? 0 : width < t->col ? width : t->col;
}

/* Returns the number of elements of the first r rows; row * col must not overflow. */
static inline int64_t lt_triangle_before(const lt_Triangle *t, int64_t r) {
  int64_t offset = t->upper ? t->offset - 1 : t->offset, low = offset < 0 ? 1 - offset : 1,
          high = r < t->col - offset ? r : t->col - offset; /* rows that end at the diagonal */
  int64_t below = high >= low ? (low + high + 2 * offset) * (high - low + 1) / 2 : 0,
          full = r - (high > low - 1 ? high : low - 1);
  if (full > 0) below += full * t->col;
  return t->upper ? r * t->col - below : below;
}

#endif
