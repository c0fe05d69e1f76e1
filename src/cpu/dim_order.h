/* dim_order.h: the order of a tensor's dims in memory, in which reductions read it. */
#ifndef LT_CPU_DIM_ORDER_H
#define LT_CPU_DIM_ORDER_H

#include "kernel.h"

/* Returns whether dim d is outside of dim e in memory: its stride is larger, or the same with more
 * elements, so that overlapping windows are read one after another. A dim of stride 0 is outside of
 * all others. */
static inline bool lt_is_outside(const lt_Tensor *t, int d, int e) {
  uint64_t a = (uint64_t)t->strides[d] - 1, b = (uint64_t)t->strides[e] - 1;
  return a != b ? a > b : t->strides[d] > 0 && t->shape[d] > t->shape[e];
}

/* Writes the dims of t, without those of size 1, in the order of memory. Returns their number. */
static inline int lt_order_of_memory(const lt_Tensor *t, int *order) {
  int n = 0;
  for (int d = 0; d < t->ndim; d++) {
    if (t->shape[d] == 1) continue;
    int at = n++;
    for (; at > 0 && lt_is_outside(t, d, order[at - 1]); at--) order[at] = order[at - 1];
    order[at] = d;
  }
  return n;
}

#endif
