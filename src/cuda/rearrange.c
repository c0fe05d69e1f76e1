/* rearrange.c: ops that move elements without computing: cat, triu, tril, flip, roll. Elements are
 * copied as bytes, whatever the dtype. */
#include "cuda.h"
#include "elementwise.h"
#include "rearrange.h"

/* ---- cat ------------------------------------------------------------------------------------- */

bool lt_cuda_cat(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, out->ndim);
  if (dim < 0 || !lt_cuda_begin(c)) return false;
  int64_t first = 0;
  bool ok = true;
  for (int k = 0; k < c->arg[0].count && ok; k++) {
    lt_Tensor *t = c->arg[0].tensors[k];
    if (t->ndim != out->ndim) continue; /* an empty tensor of shape {0}, which cat ignores */
    lt_Tensor *place =
        lt_tensor_on(out->storage, out->dtype, out->offset + first * out->strides[dim], t->ndim,
                     t->shape, out->strides);
    ok = place && lt_copy_into(place, t, false);
    lt_release(place);
    first += t->shape[dim];
  }
  return ok;
}

/* ---- triangles ------------------------------------------------------------------------------- */

static bool triangle(lt_Call *c, bool upper) {
  lt_Tensor *out = c->out[0];
  if (out->numel == 0) return true;
  lt_Tensor *x = lt_cuda_begin(c) ? lt_as_contiguous(lt_in(c, 0), out->dtype) : NULL;
  if (!x) return false;
  int64_t diagonal = c->arg[1].i, n = out->shape[out->ndim - 2], m = out->shape[out->ndim - 1];
  /* past the corners the result is the same */
  if (diagonal > m) diagonal = m;
  if (diagonal < -n) diagonal = -n;
  lt_CudaTriangle t = {.to = lt_tensor_data(out),
                       .from = lt_tensor_data(x),
                       .size = (int)lt_dtype_size(out->dtype),
                       .upper = upper,
                       .numel = out->numel,
                       .rows = n,
                       .columns = m,
                       .diagonal = diagonal};
  bool ok = lt_cuda_launch_ok(lt_cuda_launch_triangle(&t, lt_cuda_stream(c)));
  lt_release(x);
  return ok;
}

bool lt_cuda_triu(lt_Call *c) { return triangle(c, true); }
bool lt_cuda_tril(lt_Call *c) { return triangle(c, false); }

/* ---- flip, roll ------------------------------------------------------------------------------ */

/* Launches a copy with negative strides. */
bool lt_cuda_flip(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  unsigned mask = 0;
  if (c->arg[1].count > 0 && !lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (out->numel == 0) return true;
  if (!lt_cuda_begin(c)) return false;
  size_t size = lt_dtype_size(out->dtype);
  const char *from = lt_tensor_data(self);
  lt_CudaShape s = {.ndim = self->ndim ? self->ndim : 1, .shape = {1}};
  for (int d = 0; d < self->ndim; d++) {
    s.shape[d] = self->shape[d];
    s.strides[0][d] = out->strides[d];
    s.strides[1][d] = self->strides[d];
    if (!(mask >> d & 1)) continue;
    from += self->strides[d] * (self->shape[d] - 1) * (int64_t)size;
    s.strides[1][d] = -self->strides[d];
  }
  lt_CudaMove m = {.to = lt_tensor_data(out), .from = from, .size = (int)size, .numel = out->numel};
  return lt_cuda_launch_ok(lt_cuda_launch_move(&m, &s, lt_cuda_stream(c)));
}

/* Adds to the shift of a dimension, modulo its size: a dimension may be given more than once. */
static void add_shift(lt_CudaRoll *r, int dim, int64_t shift) {
  int64_t n = r->shape[dim];
  shift = shift % n + r->shift[dim];
  r->shift[dim] = shift < 0 ? shift + n : shift >= n ? shift - n : shift;
}

/* Rolls dims; without dims, the tensor as one dimension. */
bool lt_cuda_roll(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dims = c->arg[2].count;
  if (out->numel == 0) return true;
  lt_Tensor *x = !lt_cuda_begin(c) ? NULL
                 : dims == 0       ? lt_as_contiguous(self, self->dtype)
                                   : lt_retain(self);
  if (!x) return false;
  lt_CudaRoll r = {.to = lt_tensor_data(out),
                   .from = lt_tensor_data(x),
                   .size = (int)lt_dtype_size(out->dtype),
                   .ndim = dims ? out->ndim : 1,
                   .numel = out->numel,
                   .shape = {out->numel},
                   .strides = {1}};
  if (dims == 0) {
    add_shift(&r, 0, c->arg[1].ints[0]);
  } else {
    memcpy(r.shape, out->shape, sizeof *r.shape * (size_t)out->ndim);
    memcpy(r.strides, x->strides, sizeof *r.strides * (size_t)out->ndim);
    for (int k = 0; k < dims; k++)
      add_shift(&r, lt_dim(c->arg[2].ints[k], out->ndim), c->arg[1].ints[k]);
  }
  bool ok = lt_cuda_launch_ok(lt_cuda_launch_roll(&r, lt_cuda_stream(c)));
  lt_release(x);
  return ok;
}
