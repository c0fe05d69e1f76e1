/* distance.h: the loops of distances between rows, for the instruction set of this CPU. */
#ifndef LT_CPU_DISTANCE_H
#define LT_CPU_DISTANCE_H

#include "kernel.h"

enum {
  LT_DISTANCE_BYTES = 128, /* of the columns that a loop computes at once */
  LT_DISTANCE_DEPTH = 128, /* most elements of the rows that it takes at once */
};

/* Returns the index of the pair of rows i < j among all pairs of n rows: (0, 1), (0, 2), ... . */
static inline int64_t lt_pair_at(int64_t n, int64_t i, int64_t j) {
  return i * (2 * n - i - 1) / 2 + (j - i - 1);
}

/* Adds to out[i][j], the distance of row i of x and column j of y, the elements k < depth <=
 * LT_DISTANCE_DEPTH of both: the sum of |x - y| or of its squares, or the largest of |x - y|, which
 * is NaN if one is. Or, if `first`, sets out to that. `rows` rows of x and of out are x_row and
 * out_row elements apart; y has depth rows of LT_DISTANCE_BYTES, of which `width` columns are
 * used. */
typedef void (*lt_DistanceLoop)(const void *x, int64_t x_row, const void *y, void *out,
                                int64_t out_row, int64_t rows, int64_t depth, int64_t width,
                                bool first);
typedef struct lt_DistanceLoops {
  lt_DistanceLoop sum, squares, largest;
  /* Replaces `width` elements of each row of out by their square roots. */
  void (*roots)(void *out, int64_t out_row, int64_t rows, int64_t width);
  /* Computes rows from..to of dx, the gradient for the n rows of x, of d elements, of the Euclidean
   * distances of their pairs (lt_pair_at), whose gradients are g. `weight` has room for n elements
   * of the type. */
  void (*pull)(const void *x, const void *g, const void *distance, void *dx, int64_t n, int64_t d,
               int64_t from, int64_t to, void *weight);
} lt_DistanceLoops;

/* Returns the loops for float32 or float64. */
const lt_DistanceLoops *lt_distance_loops(lt_Dtype dtype);

#endif
