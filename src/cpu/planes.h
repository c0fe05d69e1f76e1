/* planes.h: the inner loops of pools, unfold, fold, interpolation, padding and grid sampling:
 * faster forms of their bodies (each/), for float and double, compiled once for each instruction
 * set (rows.h says how). They add in the same order as the bodies. */
#ifndef LT_CPU_PLANES_H
#define LT_CPU_PLANES_H

#include "each/args.h"

#include <stdbool.h>

/* A window of an average pool in one dim. */
typedef struct lt_PoolSpan {
  int64_t first, end; /* the part that is inside of the input */
  int64_t count;      /* the number of elements by which the sum is divided */
} lt_PoolSpan;

/* The windows of an average pool: those of each dim, and the counts in the last dim again. */
typedef struct lt_PoolTable {
  const lt_PoolSpan *dim[3];
  const int32_t *columns;
} lt_PoolTable;

/* The weights of a resampling, for each element of the result: `count` of them, of which those of
 * element o begin at o * width, for the elements at place[o * width + k] of a line. */
typedef struct lt_ResampleTable {
  int64_t width;
  const int64_t *count, *place;
  const void *weight;
  bool doubles;       /* the result has each element of a line twice */
  bool doubles_pairs; /* it has two elements for each pair of neighbours, with the same two pairs of
                       * weights everywhere: those of elements 1 and 2 */
} lt_ResampleTable;

/* The loops of one type. A row of max_pool, max_values and avg_pool is all windows with the same
 * coordinates but the last. */
#define LT_PLANES(T, F)                                                                            \
  /* Maxima, and their indices, of rows from..to. */                                               \
  void (*max_pool_##F)(const lt_Windows *w, const T *x, T *y, int64_t *index, int64_t from,        \
                       int64_t to);                                                                \
  void (*max_values_##F)(const lt_Windows *w, const T *x, T *y, int64_t from, int64_t to);         \
  /* Averages of rows from..to. */                                                                 \
  void (*avg_pool_##F)(const lt_Windows *w, const lt_PoolTable *t, const T *x, T *y, int64_t from, \
                       int64_t to);                                                                \
  /* The gradient of planes from..to. */                                                           \
  void (*avg_pool_backward_##F)(const lt_Windows *w, const lt_PoolTable *t, const T *g, T *dx,     \
                                int64_t from, int64_t to);                                         \
  void (*max_pool_backward_##F)(const lt_Windows *w, const T *g, const int64_t *index, T *dx,      \
                                int64_t from, int64_t to);                                         \
  /* Rows from..to of the columns; a row is an element of the kernel in a plane. */                \
  void (*im2col_##F)(const lt_Windows *w, const T *x, T *y, int64_t from, int64_t to);             \
  void (*col2im_##F)(const lt_Windows *w, const T *y, T *x, int64_t from, int64_t to);             \
  /* Lines from..to of `inner` neighbours each. */                                                 \
  void (*resample_##F)(const lt_Resample *p, const lt_ResampleTable *t, const T *x, T *y,          \
                       int64_t from, int64_t to);                                                  \
  void (*resample_backward_##F)(const lt_Resample *p, const lt_ResampleTable *t, const T *g,       \
                                T *dx, int64_t from, int64_t to);                                  \
  /* Lines from..to of the result. */                                                              \
  void (*pad_##F)(const lt_Pad *p, const T *x, T *y, int64_t from, int64_t to);                    \
  /* Blocks from..to of LT_GRID_BLOCK places of all channels; the last of an image has fewer. */   \
  void (*grid_sample_##F)(const lt_Grid *p, const T *x, const T *grid, T *y, int64_t from,         \
                          int64_t to);                                                             \
  /* Its gradients: of planes from..to of the images, and of blocks from..to of the grid. */       \
  void (*grid_sample_backward_##F)(const lt_Grid *p, const T *g, const T *grid, T *dx,             \
                                   int64_t from, int64_t to);                                      \
  void (*grid_sample_grid_backward_##F)(const lt_Grid *p, const T *g, const T *x, const T *grid,   \
                                        T *dgrid, int64_t from, int64_t to);

/* Places whose elements and weights are computed before the values of the channels are. */
#define LT_GRID_BLOCK 128

/* Lines of `inner` = 1 that a resampling computes together, as neighbours in vectors. */
#define LT_RESAMPLE_LINES 16

typedef struct lt_PlaneKernels {
  LT_PLANES(float, f32)
  LT_PLANES(double, f64)
} lt_PlaneKernels;

/* Returns the loops for this CPU. */
const lt_PlaneKernels *lt_planes(void);

#endif
