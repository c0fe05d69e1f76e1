/* reduce.c: many elements into one: the folds (sum, mean, prod, amax, amin, all, any,
 * count_nonzero, _norm).
 *
 * A fold may take its elements in any order, so it takes them as they lie in memory: dims are
 * ordered by stride, neighbours that are both kept or both folded are merged, and what is left
 * alternates, kept x folded x kept ... Each stage removes the innermost folded group: rows when
 * nothing is inside it, else blocks of columns. A long fold with few results is cut in pieces of a
 * fixed size, whose results are folded again.
 *
 * var, argmax and logsumexp, which are not folds, are in reduce_line.c.
 */
#include "structured.h"
#include "opids.h"
#include "rows.h"

#include <math.h>

#define PIECE 65536 /* elements of a piece of a long fold */

/* ---- one stage: outer x n x inner elements into outer x inner -------------------------------- */

typedef struct Stage {
  const lt_Fold *f;
  const char *x;
  char *out;
  int64_t n, inner, width; /* columns of a block */
  size_t from, to;         /* bytes of an element */
} Stage;

static void fold_rows(void *context, int64_t from, int64_t to) {
  const Stage *s = context;
  for (int64_t i = from; i < to && !lt_stopped(); i++)
    s->f->row(s->x + (size_t)(i * s->n) * s->from, s->n, s->out + (size_t)i * s->to);
}

static void fold_columns(void *context, int64_t from, int64_t to) {
  const Stage *s = context;
  int64_t blocks = (s->inner + s->width - 1) / s->width;
  for (int64_t t = from; t < to && !lt_stopped(); t++) {
    int64_t i = t / blocks, j = t % blocks * s->width;
    s->f->columns(s->x + (size_t)(i * s->n * s->inner + j) * s->from, s->n, s->inner,
                  s->inner - j < s->width ? s->inner - j : s->width,
                  s->out + (size_t)(i * s->inner + j) * s->to);
  }
}

/* Pieces of `per` along n, of each of the outer lines: `count` of a line, of which the last may be
 * shorter. */
typedef struct Pieces {
  int64_t n, inner, per, count;
} Pieces;

static void fold_pieces(const lt_Fold *f, const char *x, Pieces p, char *part, int64_t first,
                        int64_t last) {
  size_t from = lt_dtype_size(f->from), to = lt_dtype_size(f->to);
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t start = t % p.count * p.per, m = p.n - start < p.per ? p.n - start : p.per;
    const char *at = x + (size_t)((t / p.count * p.n + start) * p.inner) * from;
    if (p.inner == 1)
      f->row(at, m, part + (size_t)t * to);
    else
      f->columns(at, m, p.inner, p.inner, part + (size_t)(t * p.inner) * to);
  }
}

static bool fold_stage(const lt_Fold *f, const char *x, int64_t outer, int64_t n, int64_t inner,
                       char *out) {
  size_t from = lt_dtype_size(f->from), to = lt_dtype_size(f->to);
  int64_t per = PIECE / inner > 0 ? PIECE / inner : 1; /* of n, that make a piece */
  if (outer * inner <= 512 && n >= 2 * per) {
    Pieces p = {n, inner, per, (n + per - 1) / per};
    char *part = malloc((size_t)(outer * p.count * inner) * to);
    if (!part) return lt_fail_memory();
    LT_IN_TEAM(lt_team(outer * n * inner, outer * p.count), outer * p.count,
               fold_pieces(f, x, p, part, first, last));
    bool ok = fold_stage(lt_fold(f->then), part, outer, p.count, inner, out);
    free(part);
    return ok;
  }
  int64_t width = inner < LT_FOLD_WIDTH ? inner : LT_FOLD_WIDTH;
  if (outer == 1 && inner > 128 && lt_team(n * inner, inner) > 1)
    width = 128; /* pieces for all threads */
  Stage s = {f, x, out, n, inner, width, from, to};
  if (inner == 1)
    lt_share(outer * n, outer, fold_rows, &s);
  else
    lt_share(outer * n * inner, outer * ((inner + width - 1) / width), fold_columns, &s);
  return lt_go_on();
}

/* ---- all stages ------------------------------------------------------------------------------ */

typedef struct Groups {
  int count;
  int64_t size[LT_MAX_DIMS + 1];
  bool folded[LT_MAX_DIMS + 1];
  int kept;             /* dims of the result (without those of size 1) in the order of memory */
  int dim[LT_MAX_DIMS]; /* which dims of self they are */
  bool in_order;        /* is that the order of the result? */
} Groups;

/* False when the elements of t do not fill their memory without holes. */
static bool groups_of(const lt_Tensor *t, unsigned mask, Groups *g) {
  int order[LT_MAX_DIMS], n = 0;
  for (int d = 0; d < t->ndim; d++) {
    if (t->shape[d] == 1) continue;
    int at = n++;
    for (; at > 0 && t->strides[order[at - 1]] < t->strides[d]; at--) order[at] = order[at - 1];
    order[at] = d;
  }
  int64_t dense = 1;
  for (int i = n - 1; i >= 0; i--) {
    if (t->strides[order[i]] != dense) return false;
    dense *= t->shape[order[i]];
  }
  g->count = g->kept = 0;
  g->in_order = true;
  for (int i = 0; i < n; i++) {
    int d = order[i];
    bool folded = mask >> d & 1;
    if (!folded) {
      if (g->kept > 0 && g->dim[g->kept - 1] > d) g->in_order = false;
      g->dim[g->kept++] = d;
    }
    if (g->count > 0 && g->folded[g->count - 1] == folded) {
      g->size[g->count - 1] *= t->shape[d];
    } else {
      g->size[g->count] = t->shape[d];
      g->folded[g->count++] = folded;
    }
  }
  bool any = false;
  for (int i = 0; i < g->count; i++) any |= g->folded[i];
  if (!any) { /* folds of one element each, which may still change it (SQUARES) */
    g->size[g->count] = 1;
    g->folded[g->count++] = true;
  }
  return true;
}

/* Removes the innermost folded group: a new tensor, of one dim, of f->to. The last group goes into
 * `out` (retained) if what is left has its dtype and order. */
static lt_Tensor *fold_group(const lt_Fold *f, const void *x, Groups *g, lt_Tensor *out) {
  int at = g->count - 1;
  while (!g->folded[at]) at--;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < at; i++) outer *= g->size[i];
  for (int i = at + 1; i < g->count; i++) inner *= g->size[i];
  bool last = g->in_order && f->to == out->dtype;
  for (int i = 0; i < g->count; i++) last &= i == at || !g->folded[i];
  lt_Tensor *to = last ? lt_retain(out) : lt_empty(f->to, lt_cpu(), 1, (int64_t[]){outer * inner});
  if (to && !fold_stage(f, x, outer, g->size[at], inner, lt_tensor_data(to))) {
    lt_release(to);
    return NULL;
  }
  g->count--;
  for (int i = at; i < g->count; i++) {
    g->size[i] = g->size[i + 1];
    g->folded[i] = g->folded[i + 1];
  }
  return to;
}

/* `flat`, whose kept dims are in the order of memory, with the geometry of `out`. */
static lt_Tensor *as_result(lt_Tensor *flat, const lt_Tensor *self, const Groups *g,
                            const lt_Tensor *out, unsigned mask) {
  int64_t stride_of[LT_MAX_DIMS] = {0}, strides[LT_MAX_DIMS], stride = 1;
  for (int i = g->kept - 1; i >= 0; i--) {
    stride_of[g->dim[i]] = stride;
    stride *= self->shape[g->dim[i]];
  }
  bool keep = out->ndim == self->ndim;
  int n = 0;
  for (int d = 0; d < self->ndim; d++)
    if (keep || !(mask >> d & 1)) strides[n++] = stride_of[d];
  return lt_geometry(flat, 0, out->ndim, out->shape, strides);
}

/* Folds the dims of mask. The result has out's shape and the fold's dtype, its dims in any order;
 * it may be out itself (retained). */
static lt_Tensor *fold(lt_FoldId id, lt_Tensor *self, unsigned mask, lt_Tensor *out) {
  const lt_Fold *f = lt_fold(id);
  Groups g;
  lt_Tensor *x = self->dtype == f->from && groups_of(self, mask, &g) ? lt_retain(self) : NULL;
  if (!x) {
    x = lt_as_contiguous(self, f->from);
    if (x) groups_of(x, mask, &g);
  }
  lt_Tensor *flat = x ? fold_group(f, lt_tensor_data(x), &g, out) : NULL;
  f = lt_fold(f->then);
  for (bool more = flat != NULL; more;) {
    more = false;
    for (int i = 0; i < g.count; i++) more |= g.folded[i];
    if (!more) break;
    lt_Tensor *next = fold_group(f, lt_tensor_data(flat), &g, out);
    lt_release(flat);
    flat = next;
    more = flat != NULL;
  }
  lt_Tensor *result = flat == out ? lt_retain(out)
                      : flat      ? as_result(flat, x, &g, out, mask)
                                  : NULL;
  lt_release(x);
  lt_release(flat);
  return result;
}

/* ---- kernels --------------------------------------------------------------------------------- */

static bool fill(lt_Tensor *out, double value) {
  return lt_loop_run(LT_OP_fill, out, lt_dtype_compute(out->dtype), 1, (lt_Arg[]){LT_ARG(out)},
                     lt_scalar_float(value), lt_scalar_int(0));
}

/* How many elements each result is made of. */
static int64_t folded_count(const lt_Tensor *self, unsigned mask) {
  int64_t n = 1;
  for (int d = 0; d < self->ndim; d++)
    if (mask >> d & 1) n *= self->shape[d];
  return n;
}

/* Folds argument 0 over the dims of argument 1 into the result; `empty` is the fold of nothing. */
static bool fold_into(lt_Call *c, lt_FoldId id, lt_Tensor *self, double empty) {
  unsigned mask;
  lt_Tensor *out = c->out[0];
  if (!lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (out->numel == 0) return true;
  if (self->numel == 0) return fill(out, empty);
  lt_Tensor *result = fold(id, self, mask, out);
  bool ok = result && (result == out || lt_copy_into(out, result, false));
  lt_release(result);
  return ok;
}

/* The fold of one kind for what self is worked on in. */
static lt_FoldId by_dtype(lt_Dtype work, lt_FoldId f32, lt_FoldId f64, lt_FoldId i64) {
  return work == LT_float32 ? f32 : work == LT_float64 ? f64 : i64;
}

/* self as the dtype that a sum or product is asked for in: itself (retained) unless they differ. */
static lt_Tensor *cast(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  return lt_given(c, 3) ? lt_as_contiguous(self, c->arg[3].dtype) : lt_retain(self);
}

bool lt_cpu_sum(lt_Call *c) {
  lt_Tensor *self = cast(c);
  if (!self) return false;
  lt_Dtype work = lt_work_dtype(c->out[0]->dtype);
  lt_FoldId id = self->dtype == LT_bool && work == LT_int64
                     ? LT_FOLD_SUM_U8
                     : by_dtype(work, LT_FOLD_SUM_F32, LT_FOLD_SUM_F64, LT_FOLD_SUM_I64);
  bool ok = fold_into(c, id, self, 0);
  lt_release(self);
  return ok;
}

bool lt_cpu_prod(lt_Call *c) {
  lt_Tensor *self = cast(c);
  if (!self) return false;
  lt_Dtype work = lt_work_dtype(c->out[0]->dtype);
  bool ok =
      fold_into(c, by_dtype(work, LT_FOLD_PROD_F32, LT_FOLD_PROD_F64, LT_FOLD_PROD_I64), self, 1);
  lt_release(self);
  return ok;
}

/* Halves are divided before they are rounded, so that only the mean has to fit. */
bool lt_cpu_mean(lt_Call *c) {
  lt_Tensor *self = cast(c), *out = c->out[0];
  if (!self) return false;
  unsigned mask;
  bool ok = lt_dims(&c->arg[1], self->ndim, &mask);
  if (ok && out->numel > 0) {
    if (self->numel == 0) {
      ok = fill(out, NAN);
    } else {
      lt_FoldId id = lt_work_dtype(out->dtype) == LT_float64 ? LT_FOLD_SUM_F64 : LT_FOLD_SUM_F32;
      lt_Tensor *sum = fold(id, self, mask, out);
      lt_Arg args[2] = {LT_ARG(sum), LT_ARG(lt_scalar_float((double)folded_count(self, mask)))};
      ok = sum && lt_loop_run(LT_OP__true_divide, out, lt_work_dtype(out->dtype), 2, args,
                              lt_scalar_int(0), lt_scalar_int(0));
      lt_release(sum);
    }
  }
  lt_release(self);
  return ok;
}

static bool ordered(lt_Call *c, lt_FoldId f32, lt_FoldId f64, lt_FoldId i64, lt_FoldId u8) {
  lt_Tensor *self = lt_in(c, 0);
  lt_FoldId id = self->dtype == LT_bool ? u8 : by_dtype(lt_work_dtype(self->dtype), f32, f64, i64);
  return fold_into(c, id, self, 0);
}

bool lt_cpu_amax(lt_Call *c) {
  return ordered(c, LT_FOLD_MAX_F32, LT_FOLD_MAX_F64, LT_FOLD_MAX_I64, LT_FOLD_MAX_U8);
}
bool lt_cpu_amin(lt_Call *c) {
  return ordered(c, LT_FOLD_MIN_F32, LT_FOLD_MIN_F64, LT_FOLD_MIN_I64, LT_FOLD_MIN_U8);
}

/* Folds which elements are not 0. */
static bool of_truth(lt_Call *c, lt_FoldId id, double empty) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Tensor *truth = self->dtype == LT_bool ? lt_retain(self) : lt_as_contiguous(self, LT_bool);
  bool ok = truth && fold_into(c, id, truth, empty);
  lt_release(truth);
  return ok;
}

bool lt_cpu_all(lt_Call *c) { return of_truth(c, LT_FOLD_MIN_U8, 1); }
bool lt_cpu_any(lt_Call *c) { return of_truth(c, LT_FOLD_MAX_U8, 0); }
bool lt_cpu_count_nonzero(lt_Call *c) { return of_truth(c, LT_FOLD_SUM_U8, 0); }

/* ---- _norm ----------------------------------------------------------------------------------- */

static bool loop1(lt_OpId op, lt_Tensor *out, lt_Dtype compute, lt_Tensor *x) {
  return lt_loop_run(op, out, compute, 1, (lt_Arg[]){LT_ARG(x)}, lt_scalar_int(0),
                     lt_scalar_int(0));
}

static bool power(lt_Tensor *out, lt_Tensor *x, double p) {
  return lt_loop_run(LT_OP_pow, out, LT_float64, 2,
                     (lt_Arg[]){LT_ARG(x), LT_ARG(lt_scalar_float(p))}, lt_scalar_int(0),
                     lt_scalar_int(0));
}

/* p = 2: squares are summed in float64, so that only the norm itself has to fit. */
static bool norm2(lt_Tensor *self, unsigned mask, lt_Tensor *out) {
  lt_FoldId id =
      lt_work_dtype(self->dtype) == LT_float64 ? LT_FOLD_SQUARES_F64 : LT_FOLD_SQUARES_F32;
  lt_Tensor *sum = fold(id, self, mask, out);
  bool ok = sum && loop1(LT_OP_sqrt, out, LT_float64, sum);
  lt_release(sum);
  return ok;
}

/* p = inf, -inf, 1 and the rest: |x| (and its power) in float64, then a fold, then the root. */
static bool norm_p(lt_Tensor *self, unsigned mask, double p, lt_Tensor *out) {
  lt_Tensor *x = lt_empty(LT_float64, lt_tensor_device(self), self->ndim, self->shape);
  bool ok = x && loop1(LT_OP_abs, x, LT_float64, self);
  bool plain = p == 1 || isinf(p);
  if (!plain) ok = ok && power(x, x, p);
  lt_FoldId id = !isinf(p) ? LT_FOLD_SUM_F64 : p > 0 ? LT_FOLD_MAX_F64 : LT_FOLD_MIN_F64;
  lt_Tensor *sum = ok ? fold(id, x, mask, out) : NULL;
  lt_release(x);
  ok = sum && (!plain ? power(out, sum, 1 / p) : sum == out || lt_copy_into(out, sum, false));
  lt_release(sum);
  return ok;
}

bool lt_cpu__norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  double p = c->arg[3].f;
  unsigned mask;
  if (!lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (out->numel == 0) return true;
  if (self->numel == 0) return fill(out, p < 0 ? INFINITY : 0);
  if (p == 0) return of_truth(c, LT_FOLD_SUM_U8, 0);
  return p == 2 ? norm2(self, mask, out) : norm_p(self, mask, p, out);
}
