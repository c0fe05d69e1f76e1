/* index_update.h: the arguments of the kernels that write to the elements selected by index tensors
 * (accel/index_regions.h). Results are the same on every run where an element is selected more than
 * once: the last write wins, and sums are added in the order of the index. Included by C and by
 * kernels. */
#ifndef LT_MPS_INDEX_UPDATE_H
#define LT_MPS_INDEX_UPDATE_H

#include "index_regions.h"

/* The index as lines, see lt_Indexed. Element e of the index selects the cell line * n + at[e];
 * elements with the same cell select the same elements of self. */
typedef struct lt_MpsLines {
  int64_t outer, length, inner, n;
} lt_MpsLines;

/* The arguments of index_put. `value` is written where there is no other tensor: 16 bytes, as many
 * units as fit. */
typedef struct lt_MpsPut {
  lt_IndexRegion p;
  uint32_t value[4];
} lt_MpsPut;

/* The arguments of index_add. The dimensions of the index (its elements are the lines) are separate
 * from the others (the columns): every column of every run of equal cells has a thread. */
typedef struct lt_MpsAdd {
  lt_IndexRegion lines, columns;
  int64_t step;         /* the offset of a line is its index times this */
  int64_t skip;         /* the index that is ignored; -1: none */
  int64_t scale_int;    /* for integers */
  float scale;          /* for floats */
  int32_t lines_inside; /* neighbouring threads have neighbouring lines, not columns */
} lt_MpsAdd;

#endif
