/* order.h: sort and topk along any dim, for devices that sort rows. */
#ifndef LT_ACCEL_ORDER_H
#define LT_ACCEL_ORDER_H

#include "kernel.h"

/* Writes the first k elements in order of each row of n of contiguous x to contiguous values, and
 * their indices in the row to contiguous indices (int64, from LT_INDEX_BASE). Of equal elements the
 * first in the row comes first; NaN is the largest. Returns false with an error on failure. */
typedef bool (*lt_OrderRows)(const lt_Call *c, lt_Tensor *x, int64_t n, int64_t k, bool descending,
                             lt_Tensor *values, lt_Tensor *indices);

/* Writes the results of a call: the first k elements along the dim that is argument `dim` (k is -1:
 * all of them) and their indices. Rows are the last dim; another dim is transposed to it first. */
bool lt_accel_order(lt_Call *c, int dim, int64_t k, bool descending, lt_OrderRows order_rows);

#endif
