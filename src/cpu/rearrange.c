/* rearrange.c: ops that copy elements as bytes, for any dtype: cat, triu, tril, flip, roll, and
 * copies. */
#include "cpu.h"
#include "moves.h"
#include "opids.h"
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
    lt_copy_bytes(p->to + (size_t)i * p->step, p->from + (size_t)i * p->block, p->block);
}

/* The most inputs that are written together, the most bytes of their blocks, and the bytes at a
 * time. */
enum { WOVEN = 16, WOVEN_BLOCK = 64, WOVEN_BYTES = 1 << 14 };

/* The bytes from which a block is shared among threads: one of many, or a single one. */
enum { LARGE = 1 << 20, LARGE_ALONE = 1 << 17 };

/* Copies t to the part of dim that starts at `first`. */
static bool put_piece(lt_Tensor *out, lt_Tensor *t, int dim, int64_t first) {
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  size_t size = lt_dtype_size(t->dtype), block = (size_t)(t->shape[dim] * l.inner) * size;
  if (t->dtype != out->dtype || !lt_tensor_is_contiguous(t) ||
      block >= (size_t)(l.outer > 1 ? LARGE : LARGE_ALONE)) {
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

/* An input whose blocks of `block` bytes are consecutive. */
typedef struct Strand {
  const char *from;
  int64_t block;
} Strand;

/* Rows of a result, each of a short block of every input. */
typedef struct Weave {
  int count;
  int64_t size, step; /* bytes of an element, and of a row */
  bool single;        /* each block is one element */
  Strand *strands;
  char *to;
} Weave;

/* Writes the blocks of `count` inputs, `bytes` bytes of a row, from `column` on, to the rows
 * from..to - 1: a few rows at a time, which the first cache keeps until they are complete. */
static void weave_few(const Weave *w, const Strand *in, int count, int64_t bytes, char *column,
                      int64_t from, int64_t to) {
  const lt_Mover *mover = lt_mover(w->size);
  const int64_t at_once = WOVEN_BYTES / bytes, to_strides[] = {w->size, w->step};
  for (int64_t i = from; i < to; i += at_once) {
    int64_t rows = to - i < at_once ? to - i : at_once;
    char *out = column + i * w->step;
    if (w->single && w->count <= 4) {
      const char *rest[4];
      for (int k = 0; k < count; k++) rest[k] = in[k].from + i * w->size;
      mover->weave(count, rows, out, rest);
      continue;
    }
    for (int k = 0; k < count; out += in[k++].block) {
      const int64_t from_strides[] = {w->size, in[k].block};
      const char *source = in[k].from + i * in[k].block;
      if (in[k].block == w->size)
        mover->move(rows, out, w->step, source, w->size);
      else
        mover->plane(rows, in[k].block / w->size, out, to_strides, source, from_strides);
    }
  }
}

static void weave_rows(void *context, int64_t from, int64_t to) {
  const Weave *w = context;
  char *column = w->to;
  for (int first = 0; first < w->count; first += WOVEN) {
    int count = w->count - first < WOVEN ? w->count - first : WOVEN;
    int64_t bytes = 0;
    for (int k = 0; k < count; k++) bytes += w->strands[first + k].block;
    weave_few(w, w->strands + first, count, bytes, column, from, to);
    column += bytes;
  }
}

/* Sets w's inputs. Returns false unless they are several dense ones with short blocks. */
static bool are_strands(Weave *w, const lt_Tensor *out, lt_Tensor *const *tensors, int count,
                        int dim, int64_t inner) {
  for (int k = 0; k < count; k++) {
    lt_Tensor *t = tensors[k];
    if (t->ndim != out->ndim || t->numel == 0) continue;
    int64_t block = t->shape[dim] * inner * w->size;
    if (block > WOVEN_BLOCK || t->dtype != out->dtype || !lt_tensor_is_contiguous(t)) return false;
    w->single &= block == w->size;
    w->strands[w->count++] = (Strand){lt_tensor_data(t), block};
  }
  return w->count >= 2;
}

/* Joins short blocks of dense inputs. Returns false if they are others, or if memory is out. */
static bool weave(lt_Tensor *out, lt_Tensor *const *tensors, int count, int dim) {
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  if (l.outer == 1) return false;
  Weave w = {.size = (int64_t)lt_dtype_size(out->dtype), .single = true};
  w.step = l.n * l.inner * w.size;
  w.to = lt_tensor_data(out);
  w.strands = malloc(sizeof *w.strands * (size_t)count);
  bool ok = w.strands && are_strands(&w, out, tensors, count, dim, l.inner);
  if (ok) lt_share(out->numel, l.outer, weave_rows, &w);
  free(w.strands);
  return ok;
}

bool lt_cpu_cat(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  if (weave(out, c->arg[0].tensors, c->arg[0].count, dim)) return true;
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
 * copied, and the rest is set to 0. In place, rows that have no such rest are left out. */
typedef struct Triangle {
  const char *from;
  char *to;
  int64_t n, m, diagonal;
  size_t size; /* bytes of an element */
  bool upper;
  int64_t start, rows; /* the rows of a matrix that change: its first, and their number */
} Triangle;

/* Computes a row at `to` whose upper part begins at column `edge`. */
static inline void triangle_row(const Triangle *t, char *to, const char *from, int64_t edge) {
  size_t left = (size_t)edge * t->size, right = (size_t)(t->m - edge) * t->size;
  size_t kept = t->upper ? left : 0, rest = t->upper ? 0 : left;
  memset(to + rest, 0, t->upper ? left : right);
  if (to != from) lt_copy_bytes(to + kept, from + kept, t->upper ? right : left);
}

/* Computes the rows first..last of those that change in all matrices. */
static void triangle_rows(const Triangle *t, int64_t first, int64_t last) {
  int64_t matrix = first / t->rows, row = first % t->rows;
  for (int64_t r = first; r < last && !lt_stopped(); r++) {
    /* first column of the upper part, in 0..m */
    int64_t i = t->start + row, edge = i + t->diagonal + (t->upper ? 0 : 1);
    edge = edge < 0 ? 0 : edge > t->m ? t->m : edge;
    size_t at = (size_t)((matrix * t->n + i) * t->m) * t->size;
    triangle_row(t, t->to + at, t->from + at, edge);
    if (++row < t->rows) continue;
    row = 0;
    matrix++;
  }
}

/* Runs triu or tril. */
static bool triangle(lt_Call *c, bool upper) {
  lt_Tensor *out = c->out[0], *x = lt_as_contiguous(lt_in(c, 0), out->dtype);
  if (!x) return false;
  int64_t diagonal = c->arg[1].i, n = out->shape[out->ndim - 2], m = out->shape[out->ndim - 1];
  /* beyond the corners the result does not change */
  if (diagonal > m) diagonal = m;
  if (diagonal < -n) diagonal = -n;
  Triangle t = {.from = lt_tensor_data(x),
                .to = lt_tensor_data(out),
                .n = n,
                .m = m,
                .diagonal = diagonal,
                .size = lt_dtype_size(out->dtype),
                .upper = upper,
                .rows = n};
  if (t.to == t.from) { /* an upper part leaves the first rows as they are, a lower one the last */
    int64_t left = upper && diagonal <= 0 ? 1 - diagonal : 0, end = upper ? n : m - 1 - diagonal;
    t.start = left < n ? left : n;
    t.rows = (end < n ? end : n) - t.start;
  }
  int64_t all = t.rows > 0 && out->numel > 0 ? out->numel / (n * m) * t.rows : 0;
  if (all > 0) LT_IN_TEAM(lt_team(all * m, all), all, triangle_rows(&t, first, last));
  lt_release(x);
  return true;
}

bool lt_cpu_triu(lt_Call *c) { return triangle(c, true); }
bool lt_cpu_tril(lt_Call *c) { return triangle(c, false); }

/* ---- flip, roll ------------------------------------------------------------------------------ */

/* Runs backwards along the result those dims of a flip along which the input is dense, so that a
 * transposition is copied in tiles. */
static void turn_dense(lt_Loop *l, int64_t size) {
  lt_Operand *to = &l->operand[0], *from = &l->operand[1];
  for (int k = 0; k < l->ndim - 1; k++) {
    if (from->strides[k] != -size) continue;
    from->data -= size * (l->shape[k] - 1);
    from->strides[k] = size;
    to->data += to->strides[k] * (l->shape[k] - 1);
    to->strides[k] = -to->strides[k];
  }
}

/* Copies elements whose strides are negative in the dims that are flipped. Neighbouring dims that
 * are one run of memory are merged. */
bool lt_cpu_flip(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  unsigned mask = 0;
  if (c->arg[1].count > 0 && !lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (out->numel == 0) return true;
  int64_t size = (int64_t)lt_dtype_size(out->dtype), run = size * out->numel;
  lt_Loop l = {.op = LT_OP_copy, .inputs = 1, .layout = LT_LAYOUT_GENERAL, .numel = out->numel};
  lt_Operand *to = &l.operand[0], *from = &l.operand[1];
  *to = (lt_Operand){.data = lt_tensor_data(out), .dtype = out->dtype};
  *from = (lt_Operand){.data = lt_tensor_data(self), .dtype = out->dtype};
  for (int d = 0; d < self->ndim; d++) {
    int64_t n = self->shape[d], stride = self->strides[d] * size;
    run /= n;
    if (n == 1) continue;
    if (mask >> d & 1) {
      from->data += stride * (n - 1);
      stride = -stride;
    }
    bool merged = l.ndim > 0 && from->strides[l.ndim - 1] == stride * n;
    int k = merged ? l.ndim - 1 : l.ndim++;
    l.shape[k] = merged ? l.shape[k] * n : n;
    to->strides[k] = run;
    from->strides[k] = stride;
  }
  if (l.ndim == 0) { /* one element */
    l.ndim = 1;
    l.shape[0] = 1;
    to->strides[0] = from->strides[0] = size;
  }
  turn_dense(&l, size);
  return lt_cpu_copy_same(&l);
}

/* Copies the elements first..first + n - 1 of a dim of `from` to those from `at` on of `to`. */
static bool put_part(lt_Tensor *to, int64_t at, lt_Tensor *from, int64_t first, int64_t n,
                     int dim) {
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, to->shape, sizeof *shape * (size_t)to->ndim);
  shape[dim] = n;
  lt_Tensor *target = lt_geometry(to, at * to->strides[dim], to->ndim, shape, to->strides);
  lt_Tensor *source = lt_geometry(from, first * from->strides[dim], to->ndim, shape, from->strides);
  bool ok = target && source && lt_copy_into(target, source, false);
  lt_release(target);
  lt_release(source);
  return ok;
}

/* Rolls one dim of `from`. */
static bool roll_dim(lt_Tensor *to, lt_Tensor *from, int dim, int64_t shift) {
  int64_t n = to->shape[dim];
  shift %= n;
  if (shift < 0) shift += n;
  return put_part(to, shift, from, 0, n - shift, dim) &&
         (shift == 0 || put_part(to, 0, from, n - shift, shift, dim));
}

/* Rolls the flattened tensor. */
static bool roll_flat(lt_Tensor *out, lt_Tensor *self, int64_t shift) {
  static const int64_t dense[] = {1};
  lt_Tensor *from = lt_as_contiguous(self, self->dtype), *flat = NULL, *to = NULL;
  if (from) flat = lt_geometry(from, 0, 1, &out->numel, dense);
  if (flat) to = lt_geometry(out, 0, 1, &out->numel, dense);
  bool ok = to && roll_dim(to, flat, 0, shift);
  lt_release(from);
  lt_release(flat);
  lt_release(to);
  return ok;
}

/* Rolls one dim after the other, each into a new tensor; without dims, the flattened tensor. A 0-d
 * tensor has no size for its dim. */
bool lt_cpu_roll(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0], *x = lt_retain(self);
  int dims = out->ndim ? c->arg[2].count : 0;
  if (out->numel == 0) {
    lt_release(x);
    return true;
  }
  bool ok = dims > 0 || roll_flat(out, self, c->arg[1].ints[0]);
  for (int k = 0; k < dims && ok; k++) {
    lt_Tensor *to =
        k == dims - 1 ? lt_retain(out) : lt_empty(out->dtype, lt_cpu(), out->ndim, out->shape);
    ok = to && roll_dim(to, x, lt_dim(c->arg[2].ints[k], out->ndim), c->arg[1].ints[k]);
    lt_release(x);
    x = to;
  }
  lt_release(x);
  return ok;
}

/* ---- copies ---------------------------------------------------------------------------------- */

bool lt_cpu__to_copy(lt_Call *c) { return lt_copy_into(c->out[0], lt_in(c, 0), c->arg[3].b); }
bool lt_cpu__copy(lt_Call *c) { return lt_copy_into(c->out[0], lt_in(c, 1), c->arg[2].b); }
