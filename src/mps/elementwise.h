/* elementwise.h: the arguments of the kernels of elementwise loops.
 *
 *   elementwise.c              chooses a kernel and fills its struct
 *   elementwise_<type>.metal   any op and dtypes, computed in one type: elementwise.metal.h
 *   elementwise_copy.metal     copies, transposes and fills, for any dtype
 */
#ifndef LT_MPS_ELEMENTWISE_H
#define LT_MPS_ELEMENTWISE_H

#include "geometry.h"

#define LT_MPS_THREADS 256       /* of a threadgroup */
#define LT_MPS_GROUPS  (1 << 23) /* the most threadgroups: their threads loop over the rest */

/* How a kernel reads an input: the values of SOURCE(k). */
#define LT_MPS_NONE   0 /* the op has no such input */
#define LT_MPS_VALUE  1 /* a number that is passed with the launch */
#define LT_MPS_SINGLE 2 /* the same element for all elements of a row */
#define LT_MPS_DENSE  3 /* consecutive elements */

/* A number in the type that is computed in: floats and complex numbers, or integers and bool. */
typedef struct lt_MpsNumber {
  float re, im;
  int64_t integer;
} lt_MpsNumber;

/* Operand 0 of the geometry is the output. Kernels of four elements at a time have a geometry of
 * groups: the last dimension is divided by 4. */
typedef struct lt_MpsElementwise {
  int64_t numel; /* of the output */
  lt_MpsNumber value[3];
  lt_MpsNumber a, b; /* scalar arguments */
  float limit;       /* the largest finite number of the result's dtype */
  lt_MpsGeometry4 geometry;
} lt_MpsElementwise;

/* Copies and fills of elements as bytes. Operand 0 is the target. A fill repeats `bits`. */
typedef struct lt_MpsMove {
  int64_t numel; /* elements */
  uint64_t bits[2];
  lt_MpsGeometry2 geometry;
} lt_MpsMove;

/* A fill of contiguous memory: `head` bytes up to an address that is a multiple of 16, then `quads`
 * times 16 bytes, then the rest. */
typedef struct lt_MpsFill {
  uint64_t bits;
  int64_t head, quads, nbytes;
} lt_MpsFill;

#define LT_MPS_TILE 32
#define LT_MPS_ROWS 8 /* rows of a tile at a time: a threadgroup is LT_MPS_TILE x LT_MPS_ROWS */

/* A transpose: dimension `across` is dense in the source, `last` in the target. The geometry has
 * the other dimensions. */
typedef struct lt_MpsTiles {
  int64_t across, last, tiles_across, tiles_last; /* sizes, in elements and in tiles */
  int64_t to_across, from_last;                   /* strides */
  int64_t tiles;                                  /* in all */
  lt_MpsGeometry2 outer;
} lt_MpsTiles;

#endif
