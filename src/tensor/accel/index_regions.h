/* index_regions.h: the elements of a tensor that index tensors select, for the kernels of
 * accelerators that read and write them.
 *
 * The region is the selection: it has the shape of x[index]. Each of its elements corresponds to an
 * element of self, at an offset given by its coordinates plus `step` times the index that one
 * element of the index tensor holds. All three kinds of indexing have this form: indices along one
 * dimension, an index for each element (gather), and several index tensors (which are first added
 * up to one offset).
 *
 * The structs are passed to kernels by value, so C++ and Metal include them, too.
 */
#ifndef LT_ACCEL_INDEX_REGIONS_H
#define LT_ACCEL_INDEX_REGIONS_H

#include "dtypes.h"

/* The type of the indices' address; in Metal, where structs hold no addresses, an integer. */
#ifndef LT_INDEX_MEMORY
#define LT_INDEX_MEMORY const int64_t *
#endif

/* A region, passed to kernels by value. The offsets of the element at coordinates c, in elements:
 *   self   sum c[d] * self[d] + at[sum c[d] * index[d]] * step
 *   other  sum c[d] * other[d]     in the tensor that is written to, or read from
 * Elements are numbered in row-major order. */
typedef struct lt_IndexRegion {
  int ndim;
  int64_t count; /* number of elements */
  int64_t shape[LT_MAX_DIMS], self[LT_MAX_DIMS], index[LT_MAX_DIMS], other[LT_MAX_DIMS];
  LT_INDEX_MEMORY at; /* the indices, from 0 */
  int64_t step;
} lt_IndexRegion;

/* A tensor's shape and strides, in elements. Passed to kernels by value. */
typedef struct lt_IndexLayout {
  int ndim;
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
} lt_IndexLayout;

#ifndef __cplusplus
#include "kernel.h"

/* What a device does for regions. `begin` starts a kernel function. `check` converts an index
 * tensor to contiguous int64 indices that count from 0 (one reference; NULL on failure), reports
 * those outside of 1..n, or of -n..-1 if `negative`, and sets *bad to the device memory that
 * tells whether there is one. `add` computes sum[i] += mult * index, or, with `first`, sum[i] =
 * mult * index, of an index tensor broadcast to the sum's shape: `p` has the sum's shape and the
 * index's strides. It also makes `any`, of LT_INDEX_FLAG bytes, tell what `bad` tells, or,
 * unless `first`, what either of them tells. `take` copies the elements of a region of `from` to
 * contiguous memory, in units of so many bytes. */
typedef struct lt_IndexDriver {
  bool (*begin)(const lt_Call *c);
  lt_Tensor *(*check)(lt_Call *c, lt_Tensor *index, int64_t n, bool negative, const char *name,
                      const void **bad);
  bool (*add)(lt_Call *c, const lt_IndexRegion *p, int64_t mult, bool first, const void *bad,
              void *any, int64_t *sum);
  bool (*take)(lt_Call *c, const lt_IndexRegion *p, int unit, const void *from, void *to);
} lt_IndexDriver;
#define LT_INDEX_FLAG 16

/* A region and the tensors that it uses, which lt_index_close releases. */
typedef struct lt_Indexed {
  const lt_IndexDriver *driver;
  lt_IndexRegion p;
  lt_Tensor *indices; /* the memory of p.at */
  lt_Tensor *flag;    /* with several index tensors, the memory of `bad` */
  const void *bad;    /* device memory: tells that an index was out of range */
  /* The index seen as outer x length x inner: only elements of one line (all of `length` for an
   * outer and an inner) can select the same element of self; they do where they hold the same
   * number, which is below n. */
  int64_t outer, length, inner, n;
} lt_Indexed;

/* Build the region of one index tensor along `dim` (index_select), of an index for each element
 * (gather), and of several index tensors for `dims`, by NumPy's rules. Indices are checked on the
 * device. Return false with a message; else the caller closes x. */
bool lt_index_line(lt_Call *c, const lt_IndexDriver *driver, lt_Indexed *x, const lt_Tensor *self,
                   int dim, lt_Tensor *index, const char *name);
bool lt_index_each(lt_Call *c, const lt_IndexDriver *driver, lt_Indexed *x, const lt_Tensor *self,
                   int dim, lt_Tensor *index);
bool lt_index_several(lt_Call *c, const lt_IndexDriver *driver, lt_Indexed *x,
                      const lt_Tensor *self, const lt_Arg *indices, const int64_t *dims);
/* Releases the region's tensors. May be called twice. */
void lt_index_close(lt_Indexed *x);

/* Run a call that reads elements of argument 0 into its first output, through the region that the
 * function above of the same ending builds. */
bool lt_take_line(lt_Call *c, const lt_IndexDriver *driver, int64_t dim, lt_Tensor *index,
                  const char *name);
bool lt_take_each(lt_Call *c, const lt_IndexDriver *driver, int64_t dim, lt_Tensor *index);
bool lt_take_several(lt_Call *c, const lt_IndexDriver *driver, const lt_Arg *indices,
                     const int64_t *dims);

/* Sets the strides of `other` to those of t broadcast to the region, to write from t. Without this
 * call, `other` is contiguous in the region's order, to read into. */
void lt_index_other(lt_Indexed *x, const lt_Tensor *t);
/* Merges neighbouring dimensions where the strides allow it. */
void lt_region_collapse(lt_IndexRegion *p);
/* Returns the region's dimensions that the index has, or those that it does not have, merged where
 * possible. Only the count, the shape and the strides `self` and `other` are set. */
lt_IndexRegion lt_region_part(const lt_IndexRegion *p, bool of_index);
/* Returns true when neighbouring elements of the region have neighbouring elements of the index. */
bool lt_region_index_is_last(const lt_IndexRegion *p);
/* Fills 16 bytes with the bytes of a number in the dtype, repeated. Fails where the dtype cannot
 * hold the number. */
bool lt_index_number(lt_Scalar s, lt_Dtype dtype, char value[16]);
/* Returns the layout of t broadcast to a shape, with its dimensions merged where possible. */
lt_IndexLayout lt_index_layout(const lt_Tensor *t, int ndim, const int64_t *shape);
/* Combines elements of dense rows into units of up to 16 bytes, where sizes, strides and addresses
 * allow it. Returns the unit's size in bytes. Call it after lt_region_collapse. `other` may be
 * NULL: there is none. */
int lt_region_widen(lt_IndexRegion *p, size_t size, const void *self, const void *other);
#endif

#endif
