/* reduce_line.c: reductions with a state of two or three numbers (BEST and CENTERED in ops.def):
 * the extreme value and its index, variance, logsumexp.
 *
 * Their elements are arranged as lines: a contiguous tensor outer x n x inner of the working dtype,
 * where n are the reduced dims in the user's order. That is self if the reduced dims are adjacent
 * in this order, or in that of memory, else a copy with the reduced dims last. */
#include "kernel_support.h"
#include "dim_order.h"
#include "moves.h"
#include "opids.h"
#include "rows.h"

#define PIECE    16384 /* elements of a piece of a row */
#define FEW      256   /* most elements of columns that are summed one after another */
#define SOME     128   /* rows of logsumexp that are processed together */
#define NARROW   32    /* fewer columns are copied to rows if a term calls a function */
#define SHORT    64    /* shorter rows are transposed to find the extreme value, */
#define TOGETHER 64    /* so many at a time */
#define WIDE     256   /* least columns that are not copied to rows where dims are permuted */

/* Returns a view of self with its dims in the order of memory, and sets *mask to its reduced dims.
 * Returns self (retained) if reduced or kept dims would change their order, or columns were few.
 * NULL with the error set. */
static lt_Tensor *in_order_of_memory(lt_Tensor *self, unsigned *mask) {
  int order[LT_MAX_DIMS], n = lt_order_of_memory(self, order), last[2] = {-1, -1};
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  unsigned moved = 0;
  bool same = true;
  for (int i = 0; i < n; i++) {
    bool reduced = *mask >> order[i] & 1;
    if (order[i] < last[reduced]) return lt_retain(self);
    same &= order[i] > last[!reduced];
    last[reduced] = order[i];
    shape[i] = self->shape[order[i]];
    strides[i] = self->strides[order[i]];
    moved |= (unsigned)reduced << i;
  }
  if (same || (!(moved >> (n - 1) & 1) && shape[n - 1] < WIDE)) return lt_retain(self);
  *mask = moved;
  return lt_geometry(self, 0, n, shape, strides);
}

/* Returns `self` with the dims of mask as one line. NULL with the error set when out of memory. */
static lt_Tensor *lines_in_order(lt_Tensor *self, unsigned mask, lt_Dtype work, lt_Lines *l) {
  int first = -1, last = -1;
  bool neighbours = true;
  for (int d = 0; d < self->ndim; d++) {
    if (!(mask >> d & 1) || self->shape[d] == 1) continue;
    for (int k = last + 1; first >= 0 && k < d; k++) neighbours &= self->shape[k] == 1;
    if (first < 0) first = d;
    last = d;
  }
  *l = (lt_Lines){1, 1, 1};
  if (first < 0) { /* no dims, or only dims of size 1 */
    l->outer = self->numel;
    return lt_as_contiguous(self, work);
  }
  for (int d = first; d <= last; d++)
    if (mask >> d & 1) l->n *= self->shape[d];
  if (neighbours) {
    for (int d = 0; d < first; d++) l->outer *= self->shape[d];
    for (int d = last + 1; d < self->ndim; d++) l->inner *= self->shape[d];
    return lt_as_contiguous(self, work);
  }
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  int n = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int d = 0; d < self->ndim; d++)
      if ((int)(mask >> d & 1) == pass) {
        if (pass == 0) l->outer *= self->shape[d];
        shape[n] = self->shape[d];
        strides[n++] = self->strides[d];
      }
  lt_Tensor *moved = lt_geometry(self, 0, n, shape, strides);
  lt_Tensor *dense = moved ? lt_as_contiguous(moved, work) : NULL;
  lt_release(moved);
  return dense;
}

/* Does the same for dims in any order in memory. */
static lt_Tensor *as_lines(lt_Tensor *self, unsigned mask, lt_Dtype work, lt_Lines *l) {
  lt_Tensor *ordered = in_order_of_memory(self, &mask),
            *lines = ordered ? lines_in_order(ordered, mask, work, l) : NULL;
  lt_release(ordered);
  return lines;
}

/* ---- the extreme value and its index --------------------------------------------------------- */

typedef struct Best {
  const lt_Best *f;
  lt_Lines l;
  const char *x;
  char *values; /* NULL: only indices are computed */
  int64_t *at;
  size_t size; /* bytes of an element */
} Best;

/* Processes short rows first..last, transposed a few at a time: as columns. */
static void best_short_rows(const Best *b, int64_t first, int64_t last) {
  double tile[TOGETHER * SHORT], room[TOGETHER]; /* room for any type */
  int64_t n = b->l.n, size = (int64_t)b->size;
  for (int64_t r = first, m; r < last && !lt_stopped(); r += m) {
    m = last - r < TOGETHER ? last - r : TOGETHER;
    void *values = b->values ? b->values + r * size : (char *)room;
    lt_mover(size)->tile(n, m, (char *)tile, m * size, b->x + r * n * size, n * size);
    b->f->columns(tile, n, m, m, values, b->at + r);
    for (int64_t k = 0; k < m; k++) b->at[r + k] += LT_INDEX_BASE;
  }
}

/* Processes blocks of lines first..last: a row, or columns together. */
static void best_blocks(const Best *b, int64_t first, int64_t last) {
  if (b->l.inner == 1 && b->l.n < SHORT) {
    best_short_rows(b, first, last);
    return;
  }
  int64_t blocks = (b->l.inner + LT_CENTERED_WIDTH - 1) / LT_CENTERED_WIDTH;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t i = t / blocks, j = t % blocks * LT_CENTERED_WIDTH, left = b->l.inner - j,
            width = left < LT_CENTERED_WIDTH ? left : LT_CENTERED_WIDTH, to = i * b->l.inner + j;
    const char *from = b->x + (size_t)(i * b->l.n * b->l.inner + j) * b->size;
    double room[LT_CENTERED_WIDTH]; /* room for values of any type */
    void *values = b->values ? b->values + (size_t)to * b->size : (char *)room;
    if (b->l.inner == 1)
      b->f->row(from, b->l.n, values, b->at + to);
    else
      b->f->columns(from, b->l.n, b->l.inner, width, values, b->at + to);
    for (int64_t k = 0; k < width; k++) b->at[to + k] += LT_INDEX_BASE;
  }
}

bool lt_reduce_to_best(const lt_ReductionCall *r, lt_Tensor *self, lt_Tensor *const *out,
                       int nout) {
  lt_Tensor *positions = out[nout - 1], *values = nout == 2 ? out[0] : NULL;
  if (positions->numel == 0) return true;
  lt_Lines l;
  bool integer = lt_dtype_category(r->dtype) == LT_INTEGER; /* these have loops of their own */
  lt_Dtype work = integer ? r->dtype : lt_work_dtype(r->dtype);
  lt_Tensor *x = as_lines(self, r->mask, work, &l);
  lt_Tensor *v = x && values ? lt_output_open(values, work) : NULL;
  bool ok = x && (v || !values);
  if (ok) {
    Best b = {lt_best(r->id, work),      l,
              lt_tensor_data(x),         v ? lt_tensor_data(v) : NULL,
              lt_tensor_data(positions), lt_dtype_size(work)};
    int64_t count = l.outer * ((l.inner + LT_CENTERED_WIDTH - 1) / LT_CENTERED_WIDTH);
    LT_IN_TEAM(lt_team(l.outer * l.n * l.inner, count), count, best_blocks(&b, first, last));
  }
  lt_release(x);
  if (values) ok = lt_output_close(values, v) && ok;
  return ok;
}

/* ---- sums around a pivot --------------------------------------------------------------------- */

typedef struct Centered {
  const lt_Centered *f;
  lt_Lines l;
  const char *x;
  char *out, *part;
  int64_t pieces;  /* number of pieces of a row */
  size_t from, to; /* bytes of an element, and of a number of a state */
  double a;
  bool logs; /* whether the loops of softmax compute the result */
} Centered;

/* Processes pieces of rows. A row of one piece is finished at once. */
static void row_pieces(const Centered *c, int64_t first, int64_t last) {
  double state[3];
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t i = t / c->pieces, at = t % c->pieces * PIECE, left = c->l.n - at;
    char *to = c->part ? c->part + (size_t)(3 * t) * c->to : (char *)state;
    c->f->row(c->x + (size_t)(i * c->l.n + at) * c->from, left < PIECE ? left : PIECE, to);
    if (!c->part) c->f->finish(to, c->a, c->out + (size_t)i * c->to);
  }
}

/* Processes all rows. A long row is split into pieces, whose states are combined in order, so that
 * the result does not depend on the number of threads. */
static bool centered_rows(Centered *c) {
  c->pieces = c->l.n > PIECE ? (c->l.n + PIECE - 1) / PIECE : 1;
  int64_t count = c->l.outer * c->pieces;
  if (c->pieces > 1 && !(c->part = calloc((size_t)count, 3 * c->to))) return lt_fail_memory();
  LT_IN_TEAM(lt_team(c->l.outer * c->l.n, count), count, row_pieces(c, first, last));
  if (!c->part) return true;
  for (int64_t i = 0; i < c->l.outer; i++) {
    char *state = c->part + (size_t)(3 * i * c->pieces) * c->to;
    for (int64_t k = 1; k < c->pieces; k++) c->f->join(state, state + (size_t)(3 * k) * c->to);
    c->f->finish(state, c->a, c->out + (size_t)i * c->to);
  }
  free(c->part);
  return true;
}

/* Computes the results of `width` columns from x on. */
static void plain_columns(const Centered *c, const char *x, int64_t width, char *out) {
  double states[3 * LT_CENTERED_WIDTH]; /* also holds float states */
  c->f->columns(x, c->l.n, c->l.inner, width, states);
  for (int64_t k = 0; k < width; k++)
    c->f->finish((char *)states + (size_t)(3 * k) * c->to, c->a, out + (size_t)k * c->to);
}

/* logsumexp of rows and of columns, by the loops of softmax; a line for which they give NaN, which
 * may also be that of infinities, is computed again. */
#define LOG_SUMS(T, F)                                                                             \
  static void log_sums_##F(void *context, int64_t from, int64_t to) {                              \
    const Centered *c = context;                                                                   \
    const T *x = (const T *)(const void *)c->x;                                                    \
    T *out = (T *)(void *)c->out, peak[SOME], log_sum[SOME], state[3];                             \
    int64_t n = c->l.n;                                                                            \
    for (int64_t r = from, m; r < to && !lt_stopped(); r += m) {                                   \
      m = to - r < SOME ? to - r : SOME;                                                           \
      lt_rows()->log_sums_##F(x + r * n, m, n, peak, log_sum);                                     \
      for (int64_t k = 0; k < m; k++) {                                                            \
        out[r + k] = peak[k] + log_sum[k];                                                         \
        if (log_sum[k] == log_sum[k]) continue;                                                    \
        c->f->row(x + (r + k) * n, n, state);                                                      \
        c->f->finish(state, c->a, out + r + k);                                                    \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void log_sum_columns_##F(const Centered *c, const char *x, int64_t width, char *to) {     \
    T *out = (T *)(void *)to, peak[LT_CENTERED_WIDTH], log_sum[LT_CENTERED_WIDTH];                 \
    lt_rows()->log_sums_columns_##F((const T *)(const void *)x, c->l.n, c->l.inner, width, peak,   \
                                    log_sum);                                                      \
    for (int64_t k = 0; k < width; k++) {                                                          \
      out[k] = peak[k] + log_sum[k];                                                               \
      if (log_sum[k] == log_sum[k]) continue;                                                      \
      plain_columns(c, x + k * (int64_t)sizeof(T), 1, to + k * (int64_t)sizeof(T));                \
    }                                                                                              \
  }
LOG_SUMS(float, f32)
LOG_SUMS(double, f64)

static bool log_sums(Centered *c) {
  bool wide = c->to == sizeof(double);
  lt_share(4 * c->l.outer * c->l.n, c->l.outer, wide ? log_sums_f64 : log_sums_f32, c);
  return true;
}

/* Processes blocks of columns first..last. */
static void column_blocks(const Centered *c, int64_t first, int64_t last) {
  int64_t blocks = (c->l.inner + LT_CENTERED_WIDTH - 1) / LT_CENTERED_WIDTH;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t i = t / blocks, j = t % blocks * LT_CENTERED_WIDTH, left = c->l.inner - j,
            width = left < LT_CENTERED_WIDTH ? left : LT_CENTERED_WIDTH;
    const char *x = c->x + (size_t)(i * c->l.n * c->l.inner + j) * c->from;
    char *out = c->out + (size_t)(i * c->l.inner + j) * c->to;
    if (c->logs)
      (c->to == sizeof(double) ? log_sum_columns_f64 : log_sum_columns_f32)(c, x, width, out);
    else
      plain_columns(c, x, width, out);
  }
}

static bool centered_columns(const Centered *c) {
  int64_t count = c->l.outer * ((c->l.inner + LT_CENTERED_WIDTH - 1) / LT_CENTERED_WIDTH);
  LT_IN_TEAM(lt_team(c->l.outer * c->l.n * c->l.inner, count), count,
             column_blocks(c, first, last));
  return true;
}

/* Returns a copy of x with its lines as rows, and updates *l; consumes the reference to x. NULL
 * with the error set when out of memory. */
static lt_Tensor *lines_to_rows(lt_Tensor *x, lt_Lines *l) {
  int64_t shape[3] = {l->outer, l->inner, l->n}, strides[3] = {l->n * l->inner, 1, l->inner};
  lt_Tensor *view = lt_geometry(x, 0, 3, shape, strides);
  lt_Tensor *rows = view ? lt_as_contiguous(view, x->dtype) : NULL;
  lt_release(x);
  lt_release(view);
  *l = (lt_Lines){l->outer * l->inner, l->n, 1};
  return rows;
}

bool lt_reduce_centered(const lt_ReductionCall *r, lt_Tensor *self, lt_Tensor *out) {
  lt_Lines l;
  const lt_Centered *f = lt_centered(r->id, lt_work_dtype(r->dtype));
  lt_Tensor *x = as_lines(self, r->mask, f->from, &l);
  if (x && lt_centered_calls(f) && l.inner > 1 && l.inner < NARROW) x = lines_to_rows(x, &l);
  lt_Tensor *y = x ? lt_output_open(out, f->to) : NULL;
  bool ok = y != NULL;
  if (ok) {
    Centered c = {.f = f, .l = l, .x = lt_tensor_data(x), .out = lt_tensor_data(y), .a = r->a};
    c.from = lt_dtype_size(f->from);
    c.to = lt_dtype_size(f->to);
    c.logs = r->id == LT_REDUCTION_logsumexp && l.n > 0 && l.n <= (l.inner > 1 ? FEW : PIECE);
    ok = l.inner > 1 ? centered_columns(&c) : c.logs ? log_sums(&c) : centered_rows(&c);
  }
  lt_release(x);
  return lt_output_close(out, y) && ok && lt_check_interrupt();
}
