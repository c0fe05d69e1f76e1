/* index_update.h: launchers that write to the elements selected by index tensors (index_regions.h).
 * Results are the same on every run where an element is selected more than once: the last write
 * wins, and sums are added in the order of the index. */
#ifndef LT_CUDA_INDEX_UPDATE_H
#define LT_CUDA_INDEX_UPDATE_H

#include "index_regions.h"

/* The index as lines, see lt_Indexed. Element e of the index selects the cell line * n + at[e];
 * elements with the same cell select the same elements of self. */
typedef struct lt_CudaLines {
  int64_t outer, length, inner, n;
  const int64_t *at;
} lt_CudaLines;

/* ---- which elements share a cell ------------------------------------------------------------- */

/* Sets keep[e] = 1 where no later element of the index has e's cell, else 0. Compares all elements
 * of a line. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keep_near(const lt_CudaLines *lines, uint8_t *keep,
                                                  cudaStream_t stream);
/* Does the same by a mark in each cell: `notes` has lines * n of them, all 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keep_noted(const lt_CudaLines *lines,
                                                   unsigned long long *notes, uint8_t *keep,
                                                   cudaStream_t stream);
/* Does the same from elements sorted by cell. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keep_ordered(const uint64_t *cells, const int64_t *order,
                                                     int64_t count, uint8_t *keep,
                                                     cudaStream_t stream);
/* Sorts the elements of the index by cell, stably, and writes their cells. Compares all elements of
 * a line. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_order_near(const lt_CudaLines *lines, uint64_t *cells,
                                                   int64_t *order, cudaStream_t stream);
/* Writes the cells of the elements in their order, and their numbers 0, 1, ...: the keys and values
 * to sort. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_cells(const lt_CudaLines *lines, uint64_t *cells,
                                              int64_t *number, cudaStream_t stream);

/* ---- writing: does nothing where *bad is set ------------------------------------------------- */

/* Writes from[other offset of i] to element i of the region, or the value (16 bytes: as many units
 * as fit) where from is NULL. `keep` may be NULL: no element is selected twice. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_put(const lt_IndexRegion *p, void *to, const void *from,
                                            const void *value, int unit, const uint8_t *keep,
                                            const int *bad, cudaStream_t stream);

/* The offsets of two tensors at the same coordinates, in elements. */
typedef struct lt_CudaPair {
  int ndim;
  int64_t count, shape[LT_MAX_DIMS], self[LT_MAX_DIMS], other[LT_MAX_DIMS];
} lt_CudaPair;

/* Adds scale * from to the region of `to`. The dimensions of the index (its elements are the lines)
 * are separate from the others (the columns): every column of every run of equal cells has a
 * thread. */
typedef struct lt_CudaAdd {
  lt_CudaPair lines, columns;
  const int64_t *at; /* the index of each line; its offset is that times `step` */
  int64_t step;
  void *to;
  const void *from;
  int dtype;
  const uint64_t *cells; /* with `order`; both NULL: no element is selected twice */
  const int64_t *order;
  int64_t skip;      /* the index that is ignored; -1: none */
  bool lines_inside; /* neighbouring threads have neighbouring lines, not columns */
  bool by_four;      /* a column is four consecutive elements, aligned; floats up to float32 */
  double scale;      /* for floats */
  int64_t scale_int; /* for integers */
  const int *bad;
} lt_CudaAdd;
/* Launches the addition. Each sum is added by one thread, in the order of the index. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_add(const lt_CudaAdd *a, cudaStream_t stream);

/* Launches another fold of the same geometry, without scale and skip: a product, or the largest or
 * smallest value (NaN is both). */
typedef enum lt_CudaFold { LT_FOLD_PROD, LT_FOLD_AMAX, LT_FOLD_AMIN } lt_CudaFold;
LT_C_LINKAGE cudaError_t lt_cuda_launch_fold(const lt_CudaAdd *a, int fold, cudaStream_t stream);

#ifndef __cplusplus
/* Adds scale * from to the region x of `to`, with `from` broadcast to the region. `skip` is an
 * index that is ignored, or -1. Does not close x. */
bool lt_cuda_index_add_to(lt_Call *c, lt_Indexed *x, lt_Tensor *to, const lt_Tensor *from,
                          lt_Scalar scale, int64_t skip);
#endif

#endif
