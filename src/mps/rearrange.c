/* rearrange.c: ops that move elements without computing: cat, triu, tril, flip, roll. Elements are
 * copied as bytes, whatever the dtype. */
#include "rearrange.h"
#include "loops.h"

/* ---- cat ------------------------------------------------------------------------------------- */

bool lt_mps_cat(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_dim(c->arg[1].i, out->ndim);
  if (dim < 0 || !lt_mps_begin(c)) return false;
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
  lt_Tensor *x = lt_mps_begin(c) ? lt_as_contiguous(lt_in(c, 0), out->dtype) : NULL;
  if (!x) return false;
  int64_t diagonal = c->arg[1].i, n = out->shape[out->ndim - 2], m = out->shape[out->ndim - 1];
  /* past the corners the result is the same */
  if (diagonal > m) diagonal = m;
  if (diagonal < -n) diagonal = -n;
  lt_MpsTriangle t = {
      .numel = out->numel, .rows = n, .columns = m, .diagonal = diagonal, .upper = upper};
  lt_MpsLaunch launch = {.file = "rearrange",
                         .kernel = "triangle",
                         .constants = {(int)lt_dtype_size(out->dtype)},
                         .data = {lt_tensor_data(x), lt_tensor_data(out)},
                         .count = 2,
                         .arguments = &t,
                         .size = sizeof t};
  bool ok = lt_mps_launch_each(c, launch, out->numel);
  lt_release(x);
  return ok;
}

bool lt_mps_triu(lt_Call *c) { return triangle(c, true); }
bool lt_mps_tril(lt_Call *c) { return triangle(c, false); }

/* ---- flip, roll ------------------------------------------------------------------------------ */

static bool launch_roll(lt_Call *c, const lt_MpsRoll *r, const lt_Tensor *from) {
  lt_Tensor *out = c->out[0];
  lt_MpsLaunch launch = {.file = "rearrange",
                         .kernel = "roll",
                         .constants = {(int)lt_dtype_size(out->dtype)},
                         .data = {lt_tensor_data(from), lt_tensor_data(out)},
                         .count = 2,
                         .arguments = r,
                         .size = sizeof *r};
  return lt_mps_launch_each(c, launch, r->numel);
}

/* Fills in a roll of all dimensions of t, by 0. A 0-d tensor counts as having one dimension. */
static void roll_of(const lt_Tensor *t, lt_MpsRoll *r) {
  *r = (lt_MpsRoll){.numel = t->numel, .ndim = t->ndim, .shape = {1}};
  memcpy(r->shape, t->shape, sizeof *r->shape * (size_t)t->ndim);
  memcpy(r->strides, t->strides, sizeof *r->strides * (size_t)t->ndim);
}

bool lt_mps_flip(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  unsigned mask = 0;
  if (c->arg[1].count > 0 && !lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (self->numel == 0) return true;
  if (!lt_mps_begin(c)) return false;
  lt_MpsRoll r;
  roll_of(self, &r);
  r.flipped = mask;
  return launch_roll(c, &r, self);
}

/* Adds to the shift of a dimension, modulo its size: a dimension may be given more than once. */
static void add_shift(lt_MpsRoll *r, int dim, int64_t shift) {
  int64_t n = r->shape[dim];
  shift = shift % n + r->shift[dim];
  r->shift[dim] = shift < 0 ? shift + n : shift >= n ? shift - n : shift;
}

/* Rolls dims; without dims, the tensor as one dimension. */
bool lt_mps_roll(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int dims = c->arg[2].count;
  if (self->numel == 0) return true;
  lt_Tensor *x = !lt_mps_begin(c) ? NULL
                 : dims == 0      ? lt_as_contiguous(self, self->dtype)
                                  : lt_retain(self);
  if (!x) return false;
  lt_MpsRoll r;
  if (dims == 0) {
    r = (lt_MpsRoll){.numel = x->numel, .ndim = 1, .shape = {x->numel}, .strides = {1}};
    add_shift(&r, 0, c->arg[1].ints[0]);
  } else {
    roll_of(x, &r);
    for (int k = 0; k < dims; k++)
      add_shift(&r, lt_dim(c->arg[2].ints[k], x->ndim), c->arg[1].ints[k]);
  }
  bool ok = launch_roll(c, &r, x);
  lt_release(x);
  return ok;
}
