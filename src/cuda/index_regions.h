/* index_regions.h: the places in a tensor that index tensors name: for reading (index.c) and
 * writing (index_update.c, embedding.c).
 *
 * The region is what the named places look like: the shape of x[index]. Each of its elements has a
 * place in self, which is an offset by its coordinates plus `step` times the position that one
 * element of the index holds. All three ways of indexing are that: positions of one dimension, a
 * position for every element (gather), and several index tensors (their positions are added up to
 * one offset first). */
#ifndef LT_CUDA_INDEX_REGIONS_H
#define LT_CUDA_INDEX_REGIONS_H

#include "kernels.h"

/* To kernels by value. Element i of the region (row by row) at coordinates c, all in elements:
 *   self   sum c[d] * self[d] + at[sum c[d] * index[d]] * step
 *   other  sum c[d] * other[d]     the tensor that is read from, or written from */
typedef struct lt_IndexRegion {
  int ndim;
  int64_t count; /* elements of the region */
  int64_t shape[LT_MAX_DIMS], self[LT_MAX_DIMS], index[LT_MAX_DIMS], other[LT_MAX_DIMS];
  const int64_t *at; /* positions, from 0 */
  int64_t step;
} lt_IndexRegion;

/* A tensor's shape and strides, in elements, by value to kernels. */
typedef struct lt_CudaLayout {
  int ndim;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
} lt_CudaLayout;

/* sum[i] (+)= mult * the position of an index tensor that is broadcast to the sum's shape: `p` has
 * the sum's shape, index its strides. `*any` becomes 1 where *bad is. first: sum[i] =. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_add_positions(const lt_IndexRegion *p, int64_t mult,
                                                      bool first, const int *bad, int *any,
                                                      int64_t *sum, cudaStream_t stream);
/* to[i] = from[place i], elements of `unit` bytes: 1, 2, 4, 8, 16. */
LT_C_LINKAGE cudaError_t lt_cuda_launch_take(const lt_IndexRegion *p, const void *from, void *to,
                                             int unit, cudaStream_t stream);

#ifndef __cplusplus
#include "cuda.h"

typedef struct lt_Indexed {
  lt_IndexRegion p;
  lt_Tensor *positions; /* p.at's */
  lt_Tensor *flag;      /* of several: memory of `bad` */
  const int *bad;       /* the device's: set when a position was out of range */
  /* The index seen as outer x length x inner: only positions of one line (all lengths of an outer
   * and inner) may name the same place, where they are the same number, below n. */
  int64_t outer, length, inner, n;
} lt_Indexed;

/* The three ways. Positions are checked by the device. False with the reason; else the caller
 * closes. */
bool lt_cuda_index_line(lt_Call *c, lt_Indexed *x, const lt_Tensor *self, int dim, lt_Tensor *index,
                        const char *name);
bool lt_cuda_index_each(lt_Call *c, lt_Indexed *x, const lt_Tensor *self, int dim,
                        lt_Tensor *index);
bool lt_cuda_index_several(lt_Call *c, lt_Indexed *x, const lt_Tensor *self, const lt_Arg *indices,
                           const int64_t *dims);
void lt_cuda_index_close(lt_Indexed *x);

/* What is written: t broadcast to the region. Without it `other` is the region's own order, dense:
 * what is read into. */
void lt_cuda_index_other(lt_Indexed *x, const lt_Tensor *t);
/* Merges dimensions where the places allow it. */
void lt_cuda_region_collapse(lt_IndexRegion *p);
/* t broadcast to a shape, its dimensions merged where they can be. */
lt_CudaLayout lt_cuda_layout(const lt_Tensor *t, int ndim, const int64_t *shape);
/* After it: rows become rows of larger units where all fits; returns the unit's bytes. `other` may
 * be NULL: there is none. */
int lt_cuda_region_widen(lt_IndexRegion *p, size_t size, const void *self, const void *other);
#endif

#endif
