/* rearrange.c: ops that copy elements as bytes, for any dtype: cat, triu, tril, flip, roll, and
 * copies. */
#include "kernel_support.h"

/* ---- cat ------------------------------------------------------------------------------------- */

/* A copy of blocks that are consecutive in `from`, and `step` bytes apart in `to`. */
typedef struct Piece {
  char *to;
  const char *from;
  size_t block, step;
} Piece;

static void put_blocks(void *context, int64_t from, int64_t to) {
  const Piece *p = context;
  for (int64_t i = from; i < to; i++)
    memcpy(p->to + (size_t)i * p->step, p->from + (size_t)i * p->block, p->block);
}

#define LARGE ((size_t)1 << 20) /* blocks from this size on are shared among threads */

/* Copies t to the part of dim that starts at `first`. */
static bool put_piece(lt_Tensor *out, lt_Tensor *t, int dim, int64_t first) {
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  size_t size = lt_dtype_size(t->dtype), block = (size_t)(t->shape[dim] * l.inner) * size;
  if (t->dtype != out->dtype || !lt_tensor_is_contiguous(t) || block >= LARGE) {
    int64_t offset = first * l.inner;
    lt_Tensor *place = lt_geometry(out, offset, t->ndim, t->shape, out->strides);
    bool ok = place && lt_copy_into(place, t, false);
    lt_release(place);
    return ok;
  }
  Piece p = {(char *)lt_tensor_data(out) + (size_t)(first * l.inner) * size, lt_tensor_data(t),
             block, (size_t)(l.n * l.inner) * size};
  lt_share(t->numel, l.outer, put_blocks, &p);
  return true;
}

bool lt_cpu_cat(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  int64_t first = 0;
  for (int k = 0; k < c->arg[0].count; k++) {
    lt_Tensor *t = c->arg[0].tensors[k];
    if (t->ndim != out->ndim) continue; /* shape {0}, which cat ignores */
    if (t->numel > 0 && !put_piece(out, t, dim, first)) return false;
    first += t->shape[dim];
  }
  return true;
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* Matrices of n x m elements, of which the upper part (from `diagonal` on) or the lower part is
 * copied, and the rest is set to 0. */
typedef struct Triangle {
  const char *from;
  char *to;
  int64_t n, m, diagonal;
  size_t size; /* bytes of an element */
  bool upper;
} Triangle;

/* Copies rows first..last of all matrices. */
static void triangle_rows(const Triangle *t, int64_t first, int64_t last) {
  for (int64_t r = first; r < last && !lt_stopped(); r++) {
    /* first column of the upper part, in 0..m */
    int64_t edge = r % t->n + t->diagonal + (t->upper ? 0 : 1);
    edge = edge < 0 ? 0 : edge > t->m ? t->m : edge;
    size_t left = (size_t)edge * t->size, right = (size_t)(t->m - edge) * t->size,
           at = (size_t)(r * t->m) * t->size;
    if (t->upper) {
      memset(t->to + at, 0, left);
      memcpy(t->to + at + left, t->from + at + left, right);
    } else {
      memcpy(t->to + at, t->from + at, left);
      memset(t->to + at + left, 0, right);
    }
  }
}

/* Runs triu or tril. */
static bool triangle(lt_Call *c, bool upper) {
  lt_Tensor *out = c->out[0], *x = lt_as_contiguous(lt_in(c, 0), out->dtype);
  if (!x) return false;
  int64_t diagonal = c->arg[1].i, n = out->shape[out->ndim - 2], m = out->shape[out->ndim - 1];
  int64_t rows = m > 0 ? out->numel / m : 0;
  /* beyond the corners the result does not change */
  if (diagonal > m) diagonal = m;
  if (diagonal < -n) diagonal = -n;
  Triangle t = {lt_tensor_data(x), lt_tensor_data(out),       n,    m,
                diagonal,          lt_dtype_size(out->dtype), upper};
  LT_IN_TEAM(lt_team(rows * m, rows), rows, triangle_rows(&t, first, last));
  lt_release(x);
  return true;
}

bool lt_cpu_triu(lt_Call *c) { return triangle(c, true); }
bool lt_cpu_tril(lt_Call *c) { return triangle(c, false); }

/* ---- flip, roll ------------------------------------------------------------------------------ */

bool lt_cpu_flip(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  unsigned mask = 0;
  if (c->arg[1].count > 0 && !lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (out->numel == 0) return true;
  int64_t size = (int64_t)lt_dtype_size(out->dtype);
  lt_Odometer o = {.ndim = self->ndim > 0 ? self->ndim - 1 : 0};
  const char *from = lt_tensor_data(self);
  char *to = lt_tensor_data(out);
  int64_t strides[LT_MAX_DIMS], n = self->ndim ? self->shape[self->ndim - 1] : 1;
  for (int d = 0; d < self->ndim; d++) {
    strides[d] = self->strides[d] * size;
    if (mask >> d & 1) {
      from += strides[d] * (self->shape[d] - 1);
      strides[d] = -strides[d];
    }
    o.shape[d] = self->shape[d];
    o.strides[0][d] = strides[d];
  }
  int64_t step = self->ndim ? strides[self->ndim - 1] : 0;
  for (int64_t i = 0; i < out->numel / n && !lt_stopped(); i++) {
    for (int64_t j = 0, end; (end = lt_next_chunk(j, n)) > j; j = end)
      lt_move(to + (i * n + j) * size, size, from + o.offset[0] + j * step, step, end - j,
              (size_t)size);
    lt_odometer_step(&o);
  }
  return true;
}

/* Copies n bytes, in pieces between which an interrupt stops it. */
static void put(char *to, const char *from, size_t n) {
  for (size_t i = 0; i < n && !lt_stopped(); i += LARGE)
    memcpy(to + i, from + i, n - i < LARGE ? n - i : LARGE);
}

/* Rolls one dimension of contiguous memory. */
static void roll_lines(const char *from, char *to, lt_Lines l, int64_t shift, size_t size) {
  shift %= l.n;
  if (shift < 0) shift += l.n;
  size_t block = (size_t)l.inner * size, head = (size_t)(l.n - shift) * block,
         tail = (size_t)shift * block;
  for (int64_t i = 0; i < l.outer; i++) {
    const char *x = from + (size_t)i * (head + tail);
    char *y = to + (size_t)i * (head + tail);
    put(y, x + head, tail);
    put(y + tail, x, head);
  }
}

/* Rolls one dim after the other, each into a new tensor; without dims, the flattened tensor. */
bool lt_cpu_roll(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dims = c->arg[2].count;
  if (out->numel == 0) return true;
  lt_Tensor *x = lt_as_contiguous(self, self->dtype);
  size_t size = lt_dtype_size(out->dtype);
  if (x && dims == 0) {
    roll_lines(lt_tensor_data(x), lt_tensor_data(out), (lt_Lines){1, out->numel, 1},
               c->arg[1].ints[0], size);
  } else if (x) {
    for (int k = 0; k < dims && x; k++) {
      lt_Tensor *to =
          k == dims - 1 ? lt_retain(out) : lt_empty(out->dtype, lt_cpu(), out->ndim, out->shape);
      int dim = lt_dim(c->arg[2].ints[k], out->ndim);
      if (to)
        roll_lines(lt_tensor_data(x), lt_tensor_data(to), lt_lines(out->ndim, out->shape, dim),
                   c->arg[1].ints[k], size);
      lt_release(x);
      x = to;
    }
  }
  bool ok = x != NULL;
  lt_release(x);
  return ok;
}

/* ---- copies ---------------------------------------------------------------------------------- */

bool lt_cpu__to_copy(lt_Call *c) { return lt_copy_into(c->out[0], lt_in(c, 0), c->arg[3].b); }
bool lt_cpu__copy(lt_Call *c) { return lt_copy_into(c->out[0], lt_in(c, 1), c->arg[2].b); }
