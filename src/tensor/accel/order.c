/* order.c: sort and topk along any dim; see order.h. */
#include "accel/order.h"

/* Returns a view of x's memory, contiguous outer x m x inner, as outer x inner x m. */
static lt_Tensor *transposed(lt_Tensor *x, int64_t outer, int64_t m, int64_t inner) {
  return lt_tensor_on(x->storage, x->dtype, x->offset, 3, (int64_t[]){outer, inner, m},
                      (int64_t[]){m * inner, 1, inner});
}

/* Orders along another dim than the last, through transposed copies. */
static bool order_columns(const lt_Call *c, lt_Tensor *x, int64_t outer, int64_t n, int64_t inner,
                          int64_t k, bool descending, lt_OrderRows order_rows) {
  int64_t shape[3] = {outer, inner, k};
  lt_Tensor *view = transposed(x, outer, n, inner),
            *rows = view ? lt_as_contiguous(view, x->dtype) : NULL,
            *values = rows ? lt_empty(x->dtype, c->device, 3, shape) : NULL,
            *indices = values ? lt_empty(LT_int64, c->device, 3, shape) : NULL,
            *to = indices ? transposed(c->out[0], outer, k, inner) : NULL,
            *to_indices = to ? transposed(c->out[1], outer, k, inner) : NULL;
  bool ok = to_indices && order_rows(c, rows, n, k, descending, values, indices) &&
            lt_copy_into(to, values, false) && lt_copy_into(to_indices, indices, false);
  lt_release(view);
  lt_release(rows);
  lt_release(values);
  lt_release(indices);
  lt_release(to);
  lt_release(to_indices);
  return ok;
}

bool lt_accel_order(lt_Call *c, int dim, int64_t k, bool descending, lt_OrderRows order_rows) {
  lt_Tensor *self = lt_in(c, 0);
  int along = lt_dim(c->arg[dim].i, self->ndim);
  if (along < 0) return false;
  if (c->out[0]->numel == 0) return true;
  lt_Tensor *x = lt_as_contiguous(self, self->dtype);
  if (!x) return false;
  int64_t outer = 1, n = x->ndim ? x->shape[along] : 1, inner = 1;
  for (int d = 0; d < along; d++) outer *= x->shape[d];
  for (int d = along + 1; d < x->ndim; d++) inner *= x->shape[d];
  if (k < 0 || x->ndim == 0) k = n; /* a 0-d tensor has one element, whatever k is */
  bool ok = inner == 1 ? order_rows(c, x, n, k, descending, c->out[0], c->out[1])
                       : order_columns(c, x, outer, n, inner, k, descending, order_rows);
  lt_release(x);
  return ok;
}
