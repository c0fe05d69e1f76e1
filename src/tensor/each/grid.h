/* grid.h: values of images at the places of a grid. */
#ifndef LT_EACH_GRID_H
#define LT_EACH_GRID_H

#include "each.h"

/* What stands for the elements outside of an image. */
typedef enum lt_GridPadding { LT_GRID_ZEROS, LT_GRID_BORDER, LT_GRID_REFLECTION } lt_GridPadding;

/* How values are computed from the elements around a place. */
typedef enum lt_GridMode {
  LT_GRID_LINEAR,  /* from the corners of its cell */
  LT_GRID_NEAREST, /* the nearest element */
  LT_GRID_CUBIC,   /* from four elements in each dim: Keys' cubic, a = -3/4 */
} lt_GridMode;

/* Images of `channels` planes of in[0] x in[1] x in[2] elements, with `points` places for each
 * image. A place has `dims` coordinates from -1 to 1, that of the last dimension first. Dimensions
 * that a call does not have come first, with size 1. */
typedef struct lt_Grid {
  int64_t in[3];
  int64_t channels, points, dims;
  int32_t mode;          /* a number of lt_GridMode */
  int32_t padding;       /* a number of lt_GridPadding */
  int32_t align_corners; /* nonzero: -1 and 1 are the centers of the outer elements */
} lt_Grid;

/* Kernels that number the elements of an image in 32 bits take images with less than these. */
#define LT_GRID_ELEMENTS (1 << 30)

#endif
