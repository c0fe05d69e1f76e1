/* memory_order.c: the order of a result's elements in memory. Elementwise results, clones and casts
 * keep the order of their inputs, so that memory is read and written in one direction: x:t() * 2 is
 * as fast as x * 2, and its result is a transposed tensor, too. */
#include "core.h"

/* Returns the stride of t in dimension d of the result, to whose shape it is broadcast; 0 where one
 * element is repeated. */
static int64_t stride_of(const lt_Tensor *t, const lt_Tensor *out, int d) {
  int own = d - (out->ndim - t->ndim);
  return own < 0 || (t->shape[own] == 1 && out->shape[d] != 1) ? 0 : t->strides[own];
}

/* Compares dimensions i and j: > 0 when i should be outside of j, < 0 when inside, 0 when no input
 * decides. The first input with two different strides decides; of equal strides, the larger
 * dimension is outside. This is the order that PyTorch gives to its results. */
static int compare(const lt_Tensor *out, int n, lt_Tensor *const *inputs, int i, int j) {
  for (int k = 0; k < n; k++) {
    if (!inputs[k]) continue;
    int64_t a = stride_of(inputs[k], out, i), b = stride_of(inputs[k], out, j);
    if (a == 0 || b == 0) continue;
    if (a != b) return a > b ? 1 : -1;
    if (out->shape[i] > out->shape[j]) return 1;
  }
  return 0;
}

void lt_keep_order(lt_Tensor *out, int n, lt_Tensor *const *inputs) {
  bool ordered = true;
  for (int k = 0; k < n; k++) ordered &= !inputs[k] || lt_tensor_is_contiguous(inputs[k]);
  if (ordered || out->numel < 2) return;
  int order[LT_MAX_DIMS]; /* the dimensions, the innermost first */
  for (int i = 0; i < out->ndim; i++) order[i] = out->ndim - 1 - i;
  for (int i = 1; i < out->ndim; i++) { /* insertion sort that passes over undecided pairs */
    for (int at = i, k = i - 1; k >= 0; k--) {
      int c = compare(out, n, inputs, order[k], order[at]);
      if (c < 0) break;
      if (c == 0) continue;
      int d = order[k];
      order[k] = order[at];
      order[at] = d;
      at = k;
    }
  }
  int64_t stride = 1;
  for (int i = 0; i < out->ndim; i++) {
    out->strides[order[i]] = stride;
    stride *= out->shape[order[i]];
  }
}

bool lt_same_order(const lt_Tensor *a, const lt_Tensor *b) {
  if (!lt_shape_equal(a->ndim, a->shape, b->ndim, b->shape)) return false;
  if (lt_tensor_is_contiguous(a)) return lt_tensor_is_contiguous(b);
  int64_t reach = 1;
  for (int i = 0; i < a->ndim; i++) {
    if (a->strides[i] != b->strides[i] && a->shape[i] > 1) return false;
    reach += (a->shape[i] - 1) * a->strides[i];
  }
  return reach == a->numel && !lt_tensor_overlaps_itself(a);
}
