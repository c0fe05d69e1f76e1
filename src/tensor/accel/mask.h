/* mask.h: the host's part of ops that read or write the true elements of a mask: masked_select,
 * nonzero and masked_scatter. All three block the host until the device has counted the mask's true
 * elements. */
#ifndef LT_ACCEL_MASK_H
#define LT_ACCEL_MASK_H

#include "accel/index_regions.h"

/* A mask that the device has packed and counted. */
typedef struct lt_Mask {
  lt_Tensor *words, *before, *parts; /* in the form of the device; those that it lacks are NULL */
  int64_t n, count;                  /* elements, and true elements */
} lt_Mask;

typedef enum lt_MaskMove {
  LT_MASK_SELECT,  /* to[k] = from[the k-th true element] */
  LT_MASK_INDICES, /* to[k][d] = the index, from 1, of the k-th true element in dimension d */
  LT_MASK_FILL     /* sets the k-th true element of `to` to from[k] */
} lt_MaskMove;

/* What a device does for masks. `begin` starts a kernel function. `pack` packs a mask of at least
 * one element, contiguous bytes that are 0 or 1: it allocates the tensors of *m, which the caller
 * releases also on failure, and sets the count. `move` queues a kernel; `layout` is that of `from`,
 * which is NULL for LT_MASK_INDICES: then it has the shape of the mask. */
typedef struct lt_MaskDriver {
  bool (*begin)(const lt_Call *c);
  bool (*pack)(lt_Call *c, lt_Mask *m, const lt_Tensor *bytes);
  bool (*move)(lt_Call *c, const lt_Mask *m, lt_MaskMove what, const lt_IndexLayout *layout,
               const lt_Tensor *from, lt_Tensor *to);
} lt_MaskDriver;

/* Returns new memory for n elements of a mask's form, or NULL. */
static inline lt_Tensor *lt_mask_scratch(lt_Call *c, lt_Dtype dtype, int64_t n) {
  return lt_empty(dtype, c->device, 1, &n);
}

/* Run a call: of (self, mask), whose result has the elements of self where the mask is true; of
 * (self), whose result has the indices of its true elements; of (self, mask, source), which fills
 * in the true elements of the output. */
bool lt_mask_select(lt_Call *c, const lt_MaskDriver *driver);
bool lt_mask_indices(lt_Call *c, const lt_MaskDriver *driver);
bool lt_mask_fill(lt_Call *c, const lt_MaskDriver *driver);

#endif
