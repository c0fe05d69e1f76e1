/* index_update.h: writing at the places that index tensors name (index_regions.h), the same on
 * every run where places repeat: the last write stays, and sums are added up in the order of the
 * index. */
#ifndef LT_CUDA_INDEX_UPDATE_H
#define LT_CUDA_INDEX_UPDATE_H

#include "index_regions.h"

/* The index as lines, see lt_Indexed. Element e of it names the cell line * n + at[e]; elements of
 * one cell name the same places. */
typedef struct lt_CudaLines {
  int64_t outer, length, inner, n;
  const int64_t *at;
} lt_CudaLines;

/* ---- which elements share a cell ------------------------------------------------------------- */

/* keep[e] = 1 where no later element has e's cell. By looking at all of the line. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keep_near(const lt_CudaLines *lines, uint8_t *keep,
                                                  cudaStream_t stream);
/* The same by a note in each cell: `notes` has lines * n of them, all 0. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keep_noted(const lt_CudaLines *lines,
                                                   unsigned long long *notes, uint8_t *keep,
                                                   cudaStream_t stream);
/* The same from the order. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_keep_ordered(const uint64_t *cells, const int64_t *order,
                                                     int64_t count, uint8_t *keep,
                                                     cudaStream_t stream);
/* The elements ordered by cell, those of one cell as they came, and their cells. By looking at all
 * of the line. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_order_near(const lt_CudaLines *lines, uint64_t *cells,
                                                   int64_t *order, cudaStream_t stream);
/* The cells of the elements as they come, and their numbers 0, 1, ...: what is to be sorted. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_cells(const lt_CudaLines *lines, uint64_t *cells,
                                              int64_t *number, cudaStream_t stream);

/* ---- writing: nothing happens where *bad is set ---------------------------------------------- */

/* to[place i] = from[other i], or the value (16 bytes: as many units as fit) where from is NULL.
 * `keep` may be NULL: no place is named twice. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_put(const lt_IndexRegion *p, void *to, const void *from,
                                            const void *value, int unit, const uint8_t *keep,
                                            const int *bad, cudaStream_t stream);

/* Offsets of two tensors by the same coordinates, in elements. */
typedef struct lt_CudaPair {
  int ndim;
  int64_t count, shape[LT_MAX_DIMS], self[LT_MAX_DIMS], other[LT_MAX_DIMS];
} lt_CudaPair;

/* to[place] += scale * from[other], for elements of a dtype. The dimensions of the index (its
 * elements: lines) and the rest (columns) are apart: every column of every run of equal cells has a
 * thread. */
typedef struct lt_CudaAdd {
  lt_CudaPair lines, columns;
  const int64_t *at; /* of each line; its place is that times the step */
  int64_t step;
  void *to;
  const void *from;
  int dtype;
  const uint64_t *cells; /* with order; both NULL: no place is named twice */
  const int64_t *order;
  int64_t skip;      /* this position is left out; -1: none */
  bool lines_inside; /* neighbouring threads have neighbouring lines, not columns */
  bool by_four;      /* a column is four elements side by side, aligned; floats up to float32 */
  double scale;      /* of floats */
  int64_t scale_int; /* of integers */
  const int *bad;
} lt_CudaAdd;
LT_C_LINKAGE cudaError_t lt_cuda_launch_add(const lt_CudaAdd *a, cudaStream_t stream);

#ifndef __cplusplus
/* to += scale * from at x's places, `from` broadcast to the region (index_update.c). Does not
 * close x. */
bool lt_cuda_index_add_to(lt_Call *c, lt_Indexed *x, lt_Tensor *to, const lt_Tensor *from,
                          lt_Scalar scale, int64_t skip);
#endif

#endif
