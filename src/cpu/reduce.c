/* reduce.c: the kernel of all reductions, the loops over folds (reductions with a state of one
 * number: FOLD in ops.def), and _norm, which is computed by folds.
 *
 * A fold may combine its elements in any order, so it uses the order of memory: dims are sorted by
 * stride, adjacent dims that are both kept or both folded are merged, and the result alternates,
 * kept x folded x kept ... Each stage removes the innermost folded group: by rows if nothing is
 * inside it, else by blocks of columns. A long fold with few results is split into pieces of a
 * fixed size, whose states are folded again. */
#include "kernel_support.h"
#include "dim_order.h"
#include "moves.h"
#include "opids.h"
#include "rows.h"
#include "vector.h"

#include <math.h>

#define PIECE     65536    /* elements of a piece of a long fold of columns */
#define ROW_PIECE 4096     /* likewise of a long row: a thread then reads about what it wrote */
#define LONG_ROW  LT_GRAIN /* least elements of a row that is split into pieces */
#define RESULTS   4096     /* largest number of results of a fold that is split into pieces */
#define NARROWEST 64       /* columns of a block that a thread gets */
#define CONVERTED 128      /* most columns of a block whose elements are converted */
#define FEWEST    16       /* least columns that are apart in memory and are not copied */
#define SOME      2048     /* numbers in float64 converted together; at least LT_FOLD_WIDTH */

/* ---- loops over elements of any dtype -------------------------------------------------------- */

/* The input of a stage: elements or states, and their dtype in memory. Elements of another dtype
 * than the fold's are converted a few at a time, so that they stay in the cache. */
typedef struct Folded {
  const lt_Fold *f;
  bool states;
  lt_Dtype dtype;
} Folded;

static size_t size_of(Folded f) { return lt_dtype_size(f.dtype); }

/* Returns the loops for elements of a dtype; NULL if they are converted before. */
static const lt_FoldLoops *loops_for(const lt_Fold *f, lt_Dtype dtype) {
  const lt_FoldLoops *loops = dtype == f->from       ? &f->elements
                              : dtype == LT_bfloat16 ? &f->bfloat16
                              : dtype == LT_float16  ? &f->half
                                                     : NULL;
  return loops && loops->rows ? loops : NULL;
}

static const lt_FoldLoops *loops_of(Folded f) {
  return f.states ? &f.f->states : loops_for(f.f, f.dtype);
}
static bool converts(Folded f) { return !loops_of(f); }

/* Combines the `count` states in `more` with those in `out`; `both` has room for them twice. */
static void add_states(Folded f, int64_t count, const void *more, void *both, char *out) {
  size_t bytes = (size_t)count * lt_dtype_size(f.f->to);
  memcpy(both, out, bytes);
  memcpy((char *)both + bytes, more, bytes);
  f.f->states.columns(both, 2, count, count, out);
}

/* Copies rows of n elements, `stride` elements apart, to dense memory, converted if the fold has no
 * loops for them. The first elements of the rows are `apart` elements apart. */
static void gather(Folded f, const char *x, int64_t rows, int64_t n, int64_t stride, int64_t apart,
                   char *to) {
  int64_t size = (int64_t)size_of(f), bytes = (int64_t)lt_dtype_size(f.f->from);
  if (apart == n * stride) {
    n *= rows;
    rows = 1;
  }
  if (!converts(f))
    lt_mover(size)->plane(rows, n, to, (int64_t[]){size, n * size}, x,
                          (int64_t[]){stride * size, apart * size});
  for (int64_t r = 0; converts(f) && r < rows; r++)
    lt_vector_load(f.f->from, n, to + r * n * bytes, f.dtype, x + r * apart * size, stride * size);
}

/* Does what run_rows does, with elements that are gathered before. */
static void run_gathered_rows(Folded f, const char *x, int64_t rows, int64_t n, int64_t stride,
                              int64_t apart, char *out) {
  _Alignas(64) char some[SOME * sizeof(double)];
  double both[4], state[2]; /* room for any type */
  const lt_FoldLoops *loops = converts(f) ? &f.f->elements : loops_of(f);
  int64_t from = (int64_t)size_of(f), to = (int64_t)lt_dtype_size(f.f->to);
  int64_t room = (int64_t)(sizeof some / (converts(f) ? lt_dtype_size(f.f->from) : (size_t)from));
  int64_t together = n < room ? room / n : 1;
  for (int64_t r = 0, m; r < rows && !lt_stopped(); r += m) {
    m = rows - r < together ? rows - r : together;
    for (int64_t i = 0, w; i < n; i += w) {
      w = n - i < room ? n - i : room;
      gather(f, x + (r * apart + i * stride) * from, m, w, stride, apart, some);
      loops->rows(some, m, w, w, i ? (char *)state : out + r * to);
      if (i) add_states(f, 1, state, both, out + r * to);
    }
  }
}

/* Sets out[i] to the fold of row i of n elements, for i < rows. The elements of a row are `stride`
 * elements apart, and the first ones of the rows `apart`. */
static void run_rows(Folded f, const char *x, int64_t rows, int64_t n, int64_t stride,
                     int64_t apart, char *out) {
  if (converts(f) || (stride != 1 && n > 1))
    run_gathered_rows(f, x, rows, n, stride, apart, out);
  else
    loops_of(f)->rows(x, rows, n, apart, out);
}

/* Sets out[j] to the fold of column j of n elements, `stride` elements apart, for j < width <=
 * LT_FOLD_WIDTH. */
static void run_columns(Folded f, const char *x, int64_t n, int64_t stride, int64_t width,
                        char *out) {
  if (!converts(f)) {
    loops_of(f)->columns(x, n, stride, width, out);
    return;
  }
  _Alignas(64) double some[SOME];
  double both[2 * LT_FOLD_WIDTH], more[LT_FOLD_WIDTH];
  size_t from = lt_dtype_size(f.f->from);
  int64_t together = (int64_t)(sizeof some / from) / width;
  for (int64_t i = 0, m; i < n; i += m) {
    m = n - i < together ? n - i : together;
    gather(f, x + (size_t)(i * stride) * size_of(f), m, width, 1, stride, (char *)some);
    f.f->elements.columns(some, m, width, width, i ? (char *)more : out);
    if (i) add_states(f, width, more, both, out);
  }
}

/* ---- one stage: outer x n x inner elements to outer x inner ---------------------------------- */

/* n elements, `stride` elements apart, of each of `inner` neighbours: `outer` times, where a tensor
 * of this shape and strides has its elements. */
typedef struct Lines {
  int dims; /* at least 1 */
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  int64_t outer, n, stride, inner;
} Lines;

/* Returns the lines of dense memory. */
static Lines dense_lines(int64_t outer, int64_t n, int64_t inner) {
  return (Lines){1, {outer}, {n * inner}, outer, n, inner, inner};
}

/* Returns the first element of line i. */
static int64_t start_of(const Lines *l, int64_t i) {
  int64_t at = 0;
  for (int d = l->dims - 1; d > 0; d--) {
    at += i % l->shape[d] * l->strides[d];
    i /= l->shape[d];
  }
  return at + i * l->strides[0];
}

typedef struct Stage {
  Folded f;
  const char *x;
  char *out;
  const Lines *l;
  int64_t width;   /* columns of a block */
  size_t from, to; /* bytes of an element of x, of out */
} Stage;

static void fold_rows(void *context, int64_t from, int64_t to) {
  const Stage *s = context;
  const Lines *l = s->l;
  const int64_t rows = l->shape[l->dims - 1];
  for (int64_t r = from, m; r < to && !lt_stopped(); r += m) {
    m = rows - r % rows < to - r ? rows - r % rows : to - r;
    run_rows(s->f, s->x + (size_t)start_of(l, r) * s->from, m, l->n, l->stride,
             l->strides[l->dims - 1], s->out + (size_t)r * s->to);
  }
}

/* Folds blocks of columns from..to of a stage. */
static void fold_columns(void *context, int64_t from, int64_t to) {
  const Stage *s = context;
  const Lines *l = s->l;
  int64_t blocks = (l->inner + s->width - 1) / s->width;
  for (int64_t t = from; t < to && !lt_stopped(); t++) {
    int64_t i = t / blocks, j = t % blocks * s->width;
    run_columns(s->f, s->x + (size_t)(start_of(l, i) + j) * s->from, l->n, l->stride,
                l->inner - j < s->width ? l->inner - j : s->width,
                s->out + (size_t)(i * l->inner + j) * s->to);
  }
}

/* Folds pieces first..last of all lines to the states in `part`: `count` pieces of `per` elements
 * of each line, the last of which may be shorter. */
static void fold_pieces(Folded folded, const char *x, const Lines *l, int64_t per, int64_t count,
                        char *part, int64_t first, int64_t last) {
  size_t from = size_of(folded), to = lt_dtype_size(folded.f->to);
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t start = t % count * per, m = l->n - start < per ? l->n - start : per;
    const char *at = x + (size_t)(start_of(l, t / count) + start * l->stride) * from;
    char *out = part + (size_t)(t * l->inner) * to;
    if (l->inner == 1) run_rows(folded, at, 1, m, l->stride, m * l->stride, out);
    for (int64_t j = 0; l->inner > 1 && j < l->inner; j += LT_FOLD_WIDTH)
      run_columns(folded, at + (size_t)j * from, m, l->stride,
                  l->inner - j < LT_FOLD_WIDTH ? l->inner - j : LT_FOLD_WIDTH,
                  out + (size_t)j * to);
  }
}

/* Returns the width of blocks of `inner` columns, of which each thread of a team has the same
 * number. The result of a column does not depend on it, unless elements are converted. */
static int64_t equal_width(int64_t inner, int64_t team) {
  int64_t blocks = (inner + LT_FOLD_WIDTH - 1) / LT_FOLD_WIDTH;
  blocks = (blocks + team - 1) / team * team;
  int64_t width = ((inner + blocks - 1) / blocks + 15) / 16 * 16;
  return width < NARROWEST ? NARROWEST : width < LT_FOLD_WIDTH ? width : LT_FOLD_WIDTH;
}

/* Folds n of outer x n x inner elements to outer x inner states in `out`. Returns false with the
 * error set. */
static bool fold_stage(Folded f, const char *x, const Lines *l, char *out) {
  size_t to = lt_dtype_size(f.f->to);
  const int64_t outer = l->outer, n = l->n, inner = l->inner;
  int64_t per = inner == 1 ? ROW_PIECE : PIECE / inner > 0 ? PIECE / inner : 1; /* along n */
  if (outer * inner <= RESULTS && n >= (inner == 1 ? LONG_ROW : 2 * per)) {
    int64_t count = (n + per - 1) / per;
    char *part = malloc((size_t)(outer * count * inner) * to);
    if (!part) return lt_fail_memory();
    LT_IN_TEAM(lt_team(outer * n * inner, outer * count), outer * count,
               fold_pieces(f, x, l, per, count, part, first, last));
    Lines parts = dense_lines(outer, count, inner);
    bool ok = fold_stage((Folded){f.f, true, f.f->to}, part, &parts, out);
    free(part);
    return ok;
  }
  int64_t width = inner < LT_FOLD_WIDTH ? inner : LT_FOLD_WIDTH;
  if (outer == 1 && converts(f))
    width = width < CONVERTED ? width : CONVERTED;
  else if (outer == 1 && inner > NARROWEST)
    width = equal_width(inner, lt_team(n * inner, inner));
  Stage s = {f, x, out, l, width, size_of(f), to};
  if (inner == 1)
    lt_share(outer * n, outer, fold_rows, &s);
  else
    lt_share(outer * n * inner, outer * ((inner + width - 1) / width), fold_columns, &s);
  return lt_check_interrupt();
}

/* Folds n equal rows of `inner` elements, of which x has one. */
static bool fold_repeats(Folded f, const char *x, int64_t n, int64_t inner, char *out) {
  int64_t width = converts(f) ? CONVERTED : equal_width(inner, lt_team(n * inner, inner));
  Lines l = {1, {1}, {0}, 1, n, 0, inner};
  Stage s = {f, x, out, &l, width, size_of(f), lt_dtype_size(f.f->to)};
  lt_share(n * inner, (inner + width - 1) / width, fold_columns, &s);
  return lt_check_interrupt();
}

/* ---- all stages ------------------------------------------------------------------------------ */

typedef struct Groups {
  int count;
  int64_t size[LT_MAX_DIMS + 1];
  bool folded[LT_MAX_DIMS + 1];
  int kept;             /* number of kept dims, without those of size 1 */
  int dim[LT_MAX_DIMS]; /* the kept dims of self, in the order of memory */
  bool in_order;        /* whether that is the order of the result */
  int64_t repeats; /* more than 1: the size of the first group, whose elements are one in memory */
} Groups;

/* Returns whether n dims fill their memory without holes. */
static bool is_dense(const lt_Tensor *t, const int *order, int n) {
  int64_t dense = 1;
  for (int i = n - 1; i >= 0; i--) {
    if (t->strides[order[i]] != dense) return false;
    dense *= t->shape[order[i]];
  }
  return true;
}

/* Computes the groups of n dims of t. */
static void groups_of(const lt_Tensor *t, const int *order, int n, unsigned mask, Groups *g) {
  g->count = g->kept = 0;
  g->in_order = true;
  if (g->repeats > 1) {
    g->size[0] = g->repeats;
    g->folded[g->count++] = true;
  }
  const int first = g->count;
  for (int i = 0; i < n; i++) {
    int d = order[i];
    bool folded = mask >> d & 1;
    if (!folded) {
      if (g->kept > 0 && g->dim[g->kept - 1] > d) g->in_order = false;
      g->dim[g->kept++] = d;
    }
    if (g->count > first && g->folded[g->count - 1] == folded) {
      g->size[g->count - 1] *= t->shape[d];
    } else {
      g->size[g->count] = t->shape[d];
      g->folded[g->count++] = folded;
    }
  }
}

/* Returns whether a group is still to be folded. */
static bool has_folded(const Groups *g) {
  bool any = false;
  for (int i = 0; i < g->count; i++) any |= g->folded[i];
  return any;
}

/* Folds the innermost folded group. Returns a new tensor of states, of one dim; the last group is
 * folded to `out` (retained) if the result has its dtype and order. NULL with the error set. */
static lt_Tensor *fold_group(Folded f, const void *x, Groups *g, lt_Tensor *out) {
  int at = g->count - 1;
  while (!g->folded[at]) at--;
  int64_t outer = 1, inner = 1;
  for (int i = g->repeats > 1; i < at; i++) outer *= g->size[i]; /* x has repeats once */
  for (int i = at + 1; i < g->count; i++) inner *= g->size[i];
  bool last = g->in_order && f.f->to == out->dtype;
  for (int i = 0; i < g->count; i++) last &= i == at || !g->folded[i];
  lt_Tensor *to =
      last ? lt_retain(out) : lt_empty(f.f->to, lt_cpu(), 1, (int64_t[]){outer * inner});
  bool repeats = at == 0 && g->repeats > 1;
  Lines l = dense_lines(outer, g->size[at], inner);
  if (to && !(repeats ? fold_repeats(f, x, g->size[at], inner, lt_tensor_data(to))
                      : fold_stage(f, x, &l, lt_tensor_data(to)))) {
    lt_release(to);
    return NULL;
  }
  if (repeats) g->repeats = 1;
  g->count--;
  for (int i = at; i < g->count; i++) {
    g->size[i] = g->size[i + 1];
    g->folded[i] = g->folded[i + 1];
  }
  return to;
}

/* Folds the innermost folded dims of a tensor with holes or overlaps in its memory, unless the
 * innermost dim is kept and its elements are apart or few. Sets g to the groups of the dims left.
 * Returns a new tensor of states like fold_group, NULL with *ok true when it folds none. */
static lt_Tensor *fold_strided(Folded f, lt_Tensor *self, unsigned mask, const int *order, int dims,
                               Groups *g, lt_Tensor *out, bool *ok) {
  Lines l = {.outer = 1, .n = 1, .inner = 1};
  int left[LT_MAX_DIMS], to = dims, at;
  for (; to > 0 && !(mask >> order[to - 1] & 1); to--) {
    if (self->strides[order[to - 1]] != l.inner) break;
    l.inner *= self->shape[order[to - 1]];
  }
  for (at = to; at > 0 && !(mask >> order[at - 1] & 1);) at--;
  *ok = true;
  if (at == 0 || (l.inner == 1 && at < to)) return NULL;
  l.stride = self->strides[order[at - 1]];
  if (l.inner > 1 && l.inner < FEWEST && l.inner != l.stride) return NULL;
  int first = at;
  while (first > 0 && mask >> order[first - 1] & 1 &&
         self->strides[order[first - 1]] == l.n * l.stride)
    l.n *= self->shape[order[--first]];
  int count = 0;
  for (int i = 0; i < dims; i++) {
    if (i >= first && i < at) continue;
    left[count++] = order[i];
    if (i >= to) continue;
    int64_t size = self->shape[order[i]], stride = self->strides[order[i]];
    if (l.dims > 0 && l.strides[l.dims - 1] == size * stride) size *= l.shape[--l.dims];
    l.shape[l.dims] = size;
    l.strides[l.dims++] = stride;
    l.outer *= self->shape[order[i]];
  }
  if (l.dims == 0) l.shape[l.dims++] = 1;
  groups_of(self, left, count, mask, g);
  bool last = g->in_order && f.f->to == out->dtype && !has_folded(g);
  lt_Tensor *states =
      last ? lt_retain(out) : lt_empty(f.f->to, lt_cpu(), 1, (int64_t[]){l.outer * l.inner});
  *ok = states && fold_stage(f, lt_tensor_data(self), &l, lt_tensor_data(states));
  if (*ok) return states;
  lt_release(states);
  return NULL;
}

/* Returns a view of `flat`, whose kept dims are in the order of memory, with the geometry of
 * `out`. */
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

typedef struct Finish {
  const lt_Fold *f;
  char *x;
  double n, a;
} Finish;

static void finish_range(void *context, int64_t from, int64_t to) {
  const Finish *s = context;
  s->f->finish(s->x + (size_t)from * lt_dtype_size(s->f->to), to - from, s->n, s->a);
}

/* Converts the states in t, of n elements each, to results. */
static bool finish(const lt_Fold *f, lt_Tensor *t, int64_t n, double a) {
  if (!f->finish) return true;
  Finish s = {f, lt_tensor_data(t), (double)n, a};
  lt_share(t->numel, t->numel, finish_range, &s);
  return lt_check_interrupt();
}

/* Returns the number of elements that each result combines. */
static int64_t folded_count(const lt_Tensor *self, unsigned mask) {
  int64_t n = 1;
  for (int d = 0; d < self->ndim; d++)
    if (mask >> d & 1) n *= self->shape[d];
  return n;
}

/* Returns true if elements are converted as they are folded: to bool, from a 16-bit float or from a
 * smaller integer. */
static bool loads(lt_Dtype work, lt_Dtype dtype) {
  if (work == LT_bool) return !lt_dtype_is_complex(dtype);
  if (work == LT_float32) return dtype == LT_float16 || dtype == LT_bfloat16;
  return work == LT_int64 && !lt_dtype_is_float(dtype) && dtype != LT_bool &&
         !lt_dtype_is_complex(dtype);
}

/* Returns a view of self in which the folded dims of stride 0 have size 1, and sets *repeats to the
 * number of their elements; self itself (retained) if there are none, or few results, which would
 * not fill vectors. NULL with the error set. */
static lt_Tensor *without_repeats(lt_Tensor *self, unsigned mask, int64_t results,
                                  int64_t *repeats) {
  int64_t shape[LT_MAX_DIMS];
  *repeats = 1;
  for (int d = 0; d < self->ndim; d++) {
    bool repeated = mask >> d & 1 && self->strides[d] == 0 && results >= NARROWEST;
    shape[d] = repeated ? 1 : self->shape[d];
    if (repeated) *repeats *= self->shape[d];
  }
  return *repeats == 1 ? lt_retain(self) : lt_geometry(self, 0, self->ndim, shape, self->strides);
}

enum { FEW = 4096 }; /* bytes of a strided vector that is copied to the stack */

/* Copies the elements of a vector to dense memory if they are few. Returns false if they are not,
 * or if the tensor has several dims. */
static bool gather_few(const lt_Tensor *t, const int *order, int dims, char *to) {
  int64_t size = (int64_t)lt_dtype_size(t->dtype);
  if (dims != 1 || t->numel * size > FEW) return false;
  lt_move(to, size, lt_tensor_data(t), t->strides[order[0]] * size, t->numel, (size_t)size);
  return true;
}

/* Folds the dims of mask. The result has out's shape and the fold's dtype, with its dims in any
 * order in memory; it may be out itself (retained). NULL with the error set. */
static lt_Tensor *fold(const lt_Fold *f, lt_Tensor *all, unsigned mask, double a, lt_Tensor *out) {
  Groups g;
  lt_Tensor *self = without_repeats(all, mask, out->numel, &g.repeats);
  if (!self) return NULL;
  bool direct = self->dtype == f->from || loads(f->from, self->dtype), ok = true;
  int order[LT_MAX_DIMS], n = lt_order_of_memory(self, order);
  bool dense = is_dense(self, order, n);
  lt_Tensor *flat = direct && !dense ? fold_strided((Folded){f, false, self->dtype}, self, mask,
                                                    order, n, &g, out, &ok)
                                     : NULL;
  _Alignas(64) char few[FEW];
  bool gathered = ok && !flat && direct && !dense && gather_few(self, order, n, few);
  lt_Tensor *x = !ok ? NULL
                 : flat || gathered || (direct && dense)
                     ? lt_retain(self)
                     : lt_as_contiguous(self, direct ? self->dtype : f->from);
  if (x && !flat) {
    if (x != self) n = lt_order_of_memory(x, order);
    groups_of(x, order, n, mask, &g);
    if (!has_folded(&g)) { /* folds of one element, which may still change its value */
      g.size[g.count] = 1;
      g.folded[g.count++] = true;
    }
    const void *data = gathered ? few : lt_tensor_data(x);
    flat = fold_group((Folded){f, false, x->dtype}, data, &g, out);
  }
  for (bool more = flat != NULL; more && has_folded(&g);) {
    lt_Tensor *next = fold_group((Folded){f, true, f->to}, lt_tensor_data(flat), &g, out);
    lt_release(flat);
    flat = next;
    more = flat != NULL;
  }
  if (flat && !finish(f, flat, folded_count(all, mask), a)) {
    lt_release(flat);
    flat = NULL;
  }
  lt_Tensor *result = flat == out ? lt_retain(out)
                      : flat      ? as_result(flat, x, &g, out, mask)
                                  : NULL;
  lt_release(self);
  lt_release(x);
  lt_release(flat);
  return result;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Writes the fold of no elements. */
static bool fold_nothing(const lt_Fold *f, double a, lt_Tensor *out) {
  lt_Tensor *y = lt_output_open(out, f->to);
  if (!y) return false;
  f->identity(lt_tensor_data(y), y->numel);
  bool ok = finish(f, y, 0, a);
  return lt_output_close(out, y) && ok;
}

/* Copies a result of another dtype. A single float needs no loop. */
static bool copy_result(lt_Tensor *out, lt_Tensor *result) {
  if (out->numel != 1 || !lt_dtype_is_float(out->dtype) || !lt_dtype_is_float(result->dtype))
    return lt_copy_into(out, result, false);
  lt_Scalar s = lt_scalar_load(result->dtype, lt_tensor_data(result));
  return lt_scalar_store(s, out->dtype, lt_tensor_data(out));
}

/* Folds all elements of a short dense tensor, without the steps of `fold`, which take longer than
 * the elements do. Returns false, and writes nothing, for any other tensor. */
static bool fold_short(const lt_Fold *f, const lt_Tensor *self, double a, lt_Tensor *out) {
  double state[2]; /* room for any dtype */
  bool same = f->to == out->dtype;
  if (out->numel != 1 || self->numel >= LONG_ROW || !lt_tensor_is_contiguous(self) ||
      !(self->dtype == f->from || loads(f->from, self->dtype)) ||
      !(same || (lt_dtype_is_float(f->to) && lt_dtype_is_float(out->dtype))))
    return false;
  void *to = same ? lt_tensor_data(out) : state;
  run_rows((Folded){f, false, self->dtype}, lt_tensor_data(self), 1, self->numel, 1, self->numel,
           to);
  if (f->finish) f->finish(to, 1, (double)self->numel, a);
  return same || lt_scalar_store(lt_scalar_load(f->to, to), out->dtype, lt_tensor_data(out));
}

static bool fold_into(const lt_Fold *f, lt_Tensor *self, unsigned mask, double a, lt_Tensor *out) {
  if (out->numel == 0) return true;
  if (self->numel == 0) return fold_nothing(f, a, out);
  if (fold_short(f, self, a, out)) return true;
  lt_Tensor *result = fold(f, self, mask, a, out);
  bool ok = result && (result == out || copy_result(out, result));
  lt_release(result);
  return ok;
}

/* Folds bytes of which only matters whether they are 0. */
static bool fold_truth(const lt_Fold *f, lt_Tensor *self, unsigned mask, lt_Tensor *out) {
  lt_Tensor *truth = lt_empty(LT_bool, lt_cpu(), out->ndim, out->shape);
  bool ok = truth && fold_into(f, self, mask, 0, truth) && lt_copy_into(out, truth, false);
  lt_release(truth);
  return ok;
}

/* Folds self, whose elements already have the dtype of the reduction. */
static bool fold_by(lt_ReductionId id, lt_Tensor *self, unsigned mask, double a, lt_Tensor *out) {
  bool as_bool = lt_reductions[id].of_truth;
  lt_Tensor *made = NULL;
  const lt_Fold *narrow = lt_narrow_fold(id, self->dtype);
  if (narrow)
    return as_bool ? fold_truth(narrow, self, mask, out) : fold_into(narrow, self, mask, a, out);
  if (as_bool && lt_dtype_is_complex(self->dtype) &&
      !(self = made = lt_as_contiguous(self, LT_bool)))
    return false;
  bool bytes = as_bool || (self->dtype == LT_bool && lt_work_dtype(out->dtype) == LT_int64);
  lt_Dtype work = lt_work_dtype(lt_dtype_is_float(self->dtype) ? self->dtype : out->dtype);
  bool ok = fold_into(lt_fold(id, work, bytes), self, mask, a, out);
  if (made) lt_release(made);
  return ok;
}

/* Runs every reduction of ops.def, by the kind of its form. */
bool lt_cpu_reduce(lt_Call *c) {
  lt_ReductionCall r;
  lt_Tensor *self = lt_in(c, 0), *made = NULL;
  if (!lt_reduction_of_call(c, &r)) return false;
  lt_FormKind kind = lt_reductions[r.id].kind;
  if (kind == LT_FORM_BEST) return lt_reduce_to_best(&r, self, c->out, c->nout);
  if (c->out[0]->numel == 0) return true;
  if (self->dtype != r.dtype && !(self = made = lt_as_contiguous(self, r.dtype))) return false;
  bool is_fold = kind == LT_FORM_FOLD || kind == LT_FORM_FOLD_WIDE;
  bool ok = is_fold ? fold_by(r.id, self, r.mask, r.a, c->out[0])
                    : lt_reduce_centered(&r, self, c->out[0]);
  if (made) lt_release(made);
  return ok;
}

/* ---- _aminmax ------------------------------------------------------------------------------- */

typedef void (*RowsFn)(const void *x, int64_t rows, int64_t n, int64_t apart, void *out);

/* Both extremes of pieces of a vector, each of which is read twice while caches hold it. */
typedef struct Extremes {
  RowsFn least, largest;
  const char *x;
  int64_t n, size, piece, state; /* elements; bytes of one; elements of a piece; bytes of a state */
  char *low, *high;              /* the states of the pieces */
} Extremes;

static void fold_extremes(const Extremes *e, int64_t first, int64_t last) {
  for (int64_t p = first; p < last && !lt_stopped(); p++) {
    int64_t at = p * e->piece, n = e->n - at < e->piece ? e->n - at : e->piece;
    e->least(e->x + at * e->size, 1, n, n, e->low + p * e->state);
    e->largest(e->x + at * e->size, 1, n, n, e->high + p * e->state);
  }
}

/* Returns the fold of a reduction for elements of a dtype. */
static const lt_Fold *fold_of(lt_ReductionId id, lt_Dtype dtype) {
  const lt_Fold *narrow = lt_narrow_fold(id, dtype);
  return narrow ? narrow : lt_fold(id, lt_work_dtype(dtype), dtype == LT_bool);
}

/* _aminmax (self) */
bool lt_cpu__aminmax(lt_Call *c) {
  enum { PIECE_BYTES = 1 << 14 };
  lt_Tensor *self = lt_in(c, 0);
  const lt_Fold *least = fold_of(LT_REDUCTION_amin, self->dtype),
                *largest = fold_of(LT_REDUCTION_amax, self->dtype);
  bool direct = loops_for(least, self->dtype) && loops_for(largest, self->dtype);
  lt_Dtype from = direct ? self->dtype : least->from;
  lt_Tensor *x = lt_as_contiguous(self, from),
            *low = x ? lt_output_open(c->out[0], least->to) : NULL,
            *high = low ? lt_output_open(c->out[1], largest->to) : NULL;
  int64_t size = (int64_t)lt_dtype_size(from), state = (int64_t)lt_dtype_size(least->to),
          pieces = (self->numel * size + PIECE_BYTES - 1) / PIECE_BYTES;
  char *states = high ? malloc((size_t)(2 * pieces * state)) : NULL;
  if (states) {
    Extremes e = {.least = loops_for(least, from)->rows,
                  .largest = loops_for(largest, from)->rows,
                  .x = lt_tensor_data(x),
                  .n = self->numel,
                  .size = size,
                  .piece = PIECE_BYTES / size,
                  .state = state,
                  .low = states,
                  .high = states + pieces * state};
    LT_IN_TEAM(lt_team(self->numel, pieces), pieces, fold_extremes(&e, first, last));
    least->states.rows(e.low, 1, pieces, pieces, lt_tensor_data(low));
    largest->states.rows(e.high, 1, pieces, pieces, lt_tensor_data(high));
  } else if (high) {
    lt_fail_memory();
  }
  bool ok = states && lt_check_interrupt();
  free(states);
  lt_release(x);
  ok = lt_output_close(c->out[0], low) && ok;
  return lt_output_close(c->out[1], high) && ok;
}

/* ---- _norm ----------------------------------------------------------------------------------- */

static bool unary_loop(lt_OpId op, lt_Tensor *out, lt_Dtype compute, lt_Tensor *x) {
  return lt_loop_run(op, out, compute, 1, (lt_Arg[]){LT_ARG(x)}, lt_scalar_int(0),
                     lt_scalar_int(0));
}

static bool power(lt_Tensor *out, lt_Tensor *x, double p) {
  return lt_loop_run(LT_OP_pow, out, LT_float64, 2,
                     (lt_Arg[]){LT_ARG(x), LT_ARG(lt_scalar_float(p))}, lt_scalar_int(0),
                     lt_scalar_int(0));
}

/* Computes the norm for any p but 0, 1, 2, inf and -inf: powers of |x| in float64, their sum, then
 * the root. */
static bool norm_p(lt_Tensor *self, unsigned mask, double p, lt_Tensor *out) {
  lt_Tensor *x = lt_empty(LT_float64, lt_tensor_device(self), self->ndim, self->shape);
  bool ok = x && unary_loop(LT_OP_abs, x, LT_float64, self) && power(x, x, p);
  const lt_Fold *f = lt_fold(LT_REDUCTION_sum, LT_float64, false);
  lt_Tensor *sum = ok ? fold(f, x, mask, 0, out) : NULL;
  lt_release(x);
  ok = sum && power(out, sum, 1 / p);
  lt_release(sum);
  return ok;
}

bool lt_cpu__norm(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  double p = c->arg[3].f;
  unsigned mask;
  if (!lt_dims(&c->arg[1], self->ndim, &mask)) return false;
  if (p == 0) return fold_by(LT_REDUCTION_count_nonzero, self, mask, 0, out);
  if (p == 1 || self->numel == 0) return fold_by(LT_REDUCTION_norm_1, self, mask, 0, out);
  if (p == 2) return fold_by(LT_REDUCTION_norm_2, self, mask, 0, out);
  if (isinf(p)) {
    lt_ReductionId id = p > 0 ? LT_REDUCTION_norm_largest : LT_REDUCTION_norm_smallest;
    return fold_by(id, self, mask, 0, out);
  }
  return out->numel == 0 || norm_p(self, mask, p, out);
}
