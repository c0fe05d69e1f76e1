/* index_update.c: writing by index tensors and masks: _scatter, scatter_add, _scatter_reduce,
 * index_add, index_copy, index_fill, _index_put, masked_scatter. The output holds self's values
 * and is changed; where that is self, every index is checked before the first write.
 *
 * Where indices repeat, writes happen in the order of the index, so that the last one remains and
 * sums are the same in each run. Sums of float16 and bfloat16 are computed in float32, of small
 * integers in int64. */
#include "kernel_support.h"
#include "moves.h"
#include "index.h"
#include "opids.h"
#include "short_rows.h"
#include "vector.h"

#define LONG_RUN   32 /* elements that are worth a call of a vector loop */
#define LONG_SLICE 8 /* elements that are worth a call of a vector loop in place of their indices */
#define SHORT_ROW  2048 /* bytes of a row that is filled once and then copied */

/* Computes to[i] += scale->a * from[i] for n dense elements of a working dtype, or to[i] = the
 * result of `change` (if not NULL) for to[i] and from[i]. */
static inline void add_run(lt_Dtype work, lt_VectorFn change, void *to, const void *from, int64_t n,
                           const lt_Numbers *scale) {
  if (change) {
    change(n, to, to, from, NULL, scale);
  } else if (n >= LONG_RUN) {
    lt_cpu_isa()->vectors[work]->op[LT_OP_add](n, to, to, from, NULL, scale);
  } else if (work == LT_float32) {
    float *t = to;
    const float *f = from;
    for (int64_t i = 0; i < n; i++) t[i] += scale->a.float32 * f[i];
  } else if (work == LT_float64) {
    double *t = to;
    const double *f = from;
    for (int64_t i = 0; i < n; i++) t[i] += scale->a.float64 * f[i];
  } else {
    int64_t *t = to;
    const int64_t *f = from;
    uint64_t s = (uint64_t)scale->a.int64;
    for (int64_t i = 0; i < n; i++) t[i] = (int64_t)((uint64_t)t[i] + s * (uint64_t)f[i]);
  }
}

/* ---- _scatter, scatter_add, _scatter_reduce: an index for each element ----------------------- */

/* What is done with a value: it replaces the element, is added to it, multiplied with it, or
 * replaces it if it is larger or smaller (NaN is both). */
typedef enum Change { PUT, ADD, MULTIPLY, LARGEST, SMALLEST } Change;

/* A scatter. Steps are in bytes: along the last dim of `to` (0 if that is the dim of the index) and
 * of src, and from one index to the next. The odometer holds the other dims' strides of both. */
typedef struct Scatter {
  const int64_t *at;
  char *to;
  const char *src;
  int64_t n, across, along, step;
  lt_Odometer rows;
  lt_Dtype work;
  Change how;
  int64_t block;        /* rows that may change the same elements */
  int64_t indices;      /* the largest index that is allowed */
  atomic_bool *outside; /* set when another one was found */
  lt_ShortRows *few;    /* of rows of few elements, or NULL */
} Scatter;

/* Changes elements by values first .. last - 1 of a row, or of short rows with these shifts.
 * Returns false at an index that is not allowed. */
#define EACH_AT(T, CHANGE, target, value)                                                          \
  _Pragma("GCC unroll 4")                                                                          \
  for (int64_t j = first; j < last; j++) {                                                         \
    uint64_t k = (uint64_t)at[j] - LT_INDEX_BASE;                                                  \
    if (k >= indices) return false;                                                                \
    T *t = target, f = value;                                                                      \
    CHANGE;                                                                                        \
  }
#define EACH(T, CHANGE)                                                                            \
  do {                                                                                             \
    const bool dense = along == (int64_t)sizeof(T) && step == (int64_t)sizeof(T);                  \
    if (dense && shift)                                                                            \
      EACH_AT(T, CHANGE, (T *)(void *)(to + shift[j]) + k, ((const T *)(const void *)src)[j])      \
    else if (dense && across == 0)                                                                 \
      EACH_AT(T, CHANGE, (T *)(void *)to + k, ((const T *)(const void *)src)[j])                   \
    else                                                                                           \
      EACH_AT(T, CHANGE, (T *)(void *)(to + (shift ? shift[j] : j * across) + (int64_t)k * along), \
              *(const T *)(const void *)(src + j * step))                                          \
  } while (0)
#define CHANGE_ROW(T, sum, product)                                                                \
  do {                                                                                             \
    if (s->how == ADD)                                                                             \
      EACH(T, *t = sum);                                                                           \
    else if (s->how == MULTIPLY)                                                                   \
      EACH(T, *t = product);                                                                       \
    else if (s->how == LARGEST)                                                                    \
      EACH(T, *t = (f > *t) | (f != f) ? f : *t);                                                  \
    else                                                                                           \
      EACH(T, *t = (f < *t) | (f != f) ? f : *t);                                                  \
  } while (0)

#define PUT_ROW(T) EACH(T, *t = f)

/* Puts values first .. last - 1 of a row into elements of this size, in this order. Returns false
 * at an index that is not allowed. */
static bool put_row(const Scatter *s, char *to, const char *src, const int64_t *at,
                    const int64_t *shift, int64_t first, int64_t last) {
  int64_t across = s->across, along = s->along, step = s->step;
  uint64_t indices = (uint64_t)s->indices;
  LT_BY_SIZE(lt_dtype_size(s->work), PUT_ROW)
  return true;
}

/* Does the same for the other changes. */
static bool change_row(const Scatter *s, char *to, const char *src, const int64_t *at,
                       const int64_t *shift, int64_t first, int64_t last) {
  int64_t across = s->across, along = s->along, step = s->step;
  uint64_t indices = (uint64_t)s->indices;
  if (s->work == LT_float32)
    CHANGE_ROW(float, *t + f, *t * f);
  else if (s->work == LT_float64)
    CHANGE_ROW(double, *t + f, *t * f);
  else
    CHANGE_ROW(int64_t, (int64_t)((uint64_t)*t + (uint64_t)f),
               (int64_t)((uint64_t)*t * (uint64_t)f));
  return true;
}

/* Scatters values first .. last - 1 of the rows first_row .. last_row - 1. */
static void scatter_rows(const Scatter *s, int64_t first_row, int64_t last_row, int64_t first,
                         int64_t last) {
  lt_Odometer o = s->rows;
  lt_odometer_seek(&o, first_row);
  for (int64_t r = first_row; r < last_row && !lt_stopped(); r++) {
    char *to = s->to + o.offset[0];
    const char *src = s->src + o.offset[1];
    for (int64_t j = first; j < last && !lt_stopped(); j += LT_CHUNK) {
      int64_t end = last - j < LT_CHUNK ? last : j + LT_CHUNK;
      if (!(s->how == PUT ? put_row : change_row)(s, to, src, s->at + r * s->n, NULL, j, end)) {
        atomic_store(s->outside, true);
        return;
      }
    }
    lt_odometer_step(&o);
  }
}

/* Scatters n values of whole rows; an lt_ShortRowsFn. */
static bool scatter_few(const void *context, const int64_t offset[2], int64_t first, int64_t n) {
  const Scatter *s = context;
  bool inside = (s->how == PUT ? put_row : change_row)(s, s->to + offset[0], s->src + offset[1],
                                                       s->at + first, s->few->shift, 0, n);
  if (!inside) atomic_store(s->outside, true);
  return inside;
}

/* Scatters all rows. Threads share blocks of rows, or columns, that change different elements.
 * Parts of rows share cache lines, so these pay only for more elements. */
static void scatter_all(const Scatter *s, int64_t numel) {
  int64_t rows = numel / s->n, blocks = rows / s->block, n = s->n;
  int team = lt_team(4 * numel, blocks);
  if (team == 1 && s->across && !s->few) {
    LT_IN_TEAM(lt_team(numel, n / 16), n, scatter_rows(s, 0, rows, first, last));
  } else if (s->few) {
    LT_IN_TEAM(team, blocks,
               lt_short_rows_each(s->few, first * s->block, last * s->block, scatter_few, s));
  } else {
    LT_IN_TEAM(team, blocks, scatter_rows(s, first * s->block, last * s->block, 0, n));
  }
}

/* Describes the scatter of values (NULL: of one number) by the index into `to`, both of the dtype
 * `work` (for PUT: of any). */
static Scatter scatter_of(const lt_Tensor *index, lt_Tensor *to, lt_Tensor *values, char *number,
                          int dim, lt_Dtype work, Change how) {
  int64_t size = (int64_t)lt_dtype_size(work);
  int last = index->ndim - 1;
  Scatter s = {.at = lt_tensor_data(index),
               .to = lt_tensor_data(to),
               .src = values ? lt_tensor_data(values) : number,
               .n = last >= 0 ? index->shape[last] : 1,
               .along = to->ndim ? to->strides[dim] * size : 0,
               .across = last >= 0 && to->ndim && dim != last ? to->strides[last] * size : 0,
               .step = last >= 0 && values && values->ndim ? values->strides[last] * size : 0,
               .rows = {.ndim = last > 0 ? last : 0},
               .work = work,
               .how = how,
               .block = 1,
               .indices = to->ndim ? to->shape[dim] : 1};
  for (int d = 0; d < s.rows.ndim; d++) {
    s.rows.shape[d] = index->shape[d];
    s.rows.strides[0][d] = d == dim ? 0 : to->strides[d] * size;
    s.rows.strides[1][d] = values ? values->strides[d] * size : 0;
    if (d >= dim) s.block *= index->shape[d];
  }
  return s;
}

/* Runs _scatter, scatter_add or _scatter_reduce; argument 3 is a tensor or a number. */
static bool scatter(lt_Call *c, Change how) {
  lt_Tensor *out = c->out[0], *src = lt_in(c, 3);
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  _Alignas(LT_MAX_ELEMENT) char number[LT_MAX_ELEMENT];
  if (!src && !lt_scalar_store(c->arg[3].scalar, out->dtype, number)) return false;
  int64_t n = out->ndim ? out->shape[dim] : 1;
  lt_Tensor *index = lt_writes_new(c) ? lt_as_contiguous(lt_in(c, 2), LT_int64)
                                      : lt_index_open(lt_in(c, 2), n, false, "index");
  if (!index) return false;
  if (index->numel == 0) {
    lt_release(index);
    return true;
  }
  lt_Dtype work = how == PUT ? out->dtype : lt_work_dtype(out->dtype);
  lt_Tensor *to = lt_update_open(out, work), *from = src && to ? lt_as_contiguous(src, work) : NULL;
  bool ok = to && (from || !src);
  if (ok) {
    Scatter s = scatter_of(index, to, from, number, dim, work, how);
    atomic_bool outside = false;
    s.outside = &outside;
    lt_ShortRows few;
    if (lt_short_rows_open(&few, &s.rows, s.n, s.across, s.step)) s.few = &few;
    scatter_all(&s, index->numel);
    if (outside) ok = lt_index_check(index, lt_in(c, 2), n, false, "index");
  }
  lt_release(index);
  lt_release(from);
  if (!ok) lt_release(to);
  return ok && lt_output_close(out, to);
}

/* ---- blocks of elements ---------------------------------------------------------------------- */

/* Blocks of `from`, one after the other, that replace blocks of `to`, or are added to them. */
typedef struct Write {
  char *to;
  const char *from;
  size_t size;
  lt_Dtype sum;       /* NONE: values replace elements; else they are added in this dtype */
  bool one;           /* `from` is a single element */
  lt_Numbers factor;  /* a: what values that are added are multiplied by */
  lt_VectorFn change; /* see add_run */
} Write;

/* Writes the block of n elements from `place` on, or adds to it, from element `at` on. */
static inline void write_block(const Write *w, int64_t place, int64_t at, int64_t n) {
  char *to = w->to + (size_t)place * w->size;
  int64_t step = w->one ? 0 : (int64_t)w->size;
  const char *from = w->from + at * step;
  if (w->sum == LT_DTYPE_NONE && !w->one)
    lt_copy_bytes(to, from, (size_t)n * w->size);
  else if (w->sum == LT_DTYPE_NONE)
    lt_move(to, (int64_t)w->size, from, step, n, w->size);
  else if (w->one)
    for (int64_t i = 0; i < n; i++)
      add_run(w->sum, w->change, to + (size_t)i * w->size, from, 1, &w->factor);
  else
    add_run(w->sum, w->change, to, from, n, &w->factor);
}

/* Writes the blocks of n elements whose numbers at[i] are in first .. last - 1, in order: block k
 * begins at element k * unit. The places of later blocks are loaded into the cache meanwhile. */
static void write_own_blocks(const Write *w, const int64_t *at, int64_t unit, int64_t count,
                             int64_t n, int64_t first, int64_t last) {
  enum { AHEAD = 16, TOGETHER = 1024 };
  const size_t bytes = (size_t)n * w->size;
  for (int64_t i = 0, end; i < count && !lt_stopped(); i = end) {
    int64_t own[TOGETHER + AHEAD], found = 0; /* without a branch that depends on the numbers */
    for (end = count - i < TOGETHER ? count : i + TOGETHER; i < end; i++) {
      own[found] = i;
      found += at[i] >= first && at[i] < last;
    }
    for (int64_t k = found; k < found + AHEAD; k++) own[k] = found ? own[found - 1] : 0;
    for (int64_t k = 0; k < found; k++) {
      const char *later = w->to + (size_t)(at[own[k + AHEAD]] * unit) * w->size;
      __builtin_prefetch(later, 1);
      __builtin_prefetch(later + bytes - 1, 1);
      write_block(w, at[own[k]] * unit, own[k] * n, n);
    }
  }
}

/* ---- index_add, index_copy, index_fill: indices along one dimension -------------------------- */

/* Adds to rows selected by index; sizes count elements of the working dtype. */
typedef struct RowSums {
  lt_Dtype work;
  lt_Lines to;   /* the result's shape */
  int64_t count; /* number of indices */
  const int64_t *at;
  char *out;
  const char *from;
  int64_t step;       /* between rows of `from`, in rows: 1, or 0 where all are the same */
  lt_Numbers scale;   /* a: what values are multiplied by */
  lt_VectorFn change; /* see add_run; not for rows of one element */
} RowSums;

#define ADD_EACH(T, sum)                                                                           \
  do {                                                                                             \
    T *to = (T *)(void *)s->out + i * s->to.n - LT_INDEX_BASE, *t;                                 \
    const T *from = (const T *)(const void *)s->from + i * s->count * s->step;                     \
    const int64_t *at = s->at, count = s->count, step = s->step;                                   \
    for (int64_t j = 0; j < count && !lt_stopped();)                                               \
      for (int64_t end = count - j < LT_CHUNK ? count : j + LT_CHUNK; j < end; j++) {              \
        T f = from[j * step];                                                                      \
        t = to + at[j];                                                                            \
        *t = sum;                                                                                  \
      }                                                                                            \
  } while (0)

/* Adds the values of block i, which has rows of one element. */
static void add_elements(const RowSums *s, int64_t i) {
  if (s->work == LT_float32) {
    float scale = s->scale.a.float32;
    ADD_EACH(float, *t + scale * f);
  } else if (s->work == LT_float64) {
    double scale = s->scale.a.float64;
    ADD_EACH(double, *t + scale * f);
  } else {
    uint64_t scale = (uint64_t)s->scale.a.int64;
    ADD_EACH(int64_t, (int64_t)((uint64_t)*t + scale * (uint64_t)f));
  }
}

/* Adds row j of block i from column `first` on to the row that the index selects. */
static void add_row(const RowSums *s, int64_t i, int64_t j, int64_t first, int64_t last) {
  int64_t size = (int64_t)lt_dtype_size(s->work), inner = s->to.inner,
          row = i * s->to.n + s->at[j] - LT_INDEX_BASE;
  add_run(s->work, s->change, s->out + (row * inner + first) * size,
          s->from + ((i * s->count + j) * inner + first) * size, last - first, &s->scale);
}

/* Adds columns first .. last - 1 of all rows of the blocks first_block .. last_block - 1. */
static void add_rows(const RowSums *s, int64_t first_block, int64_t last_block, int64_t first,
                     int64_t last) {
  for (int64_t i = first_block; i < last_block && s->to.inner == 1; i++) add_elements(s, i);
  for (int64_t i = first_block; i < last_block && s->to.inner > 1; i++)
    for (int64_t j = 0; j < s->count && !lt_stopped_at(j); j++) add_row(s, i, j, first, last);
}

/* Returns whether about as many rows are added to each of `team` equal parts of the rows, by a few
 * thousand of the indices. */
static bool is_even(const RowSums *s, int team) {
  enum { MOST = 64, SEEN = 4096 };
  int64_t counts[MOST] = {0}, largest = 0, seen = 0, step = s->count / SEEN + 1;
  if (team > MOST) return false;
  for (int64_t j = 0; j < s->count; j += step, seen++)
    counts[((s->at[j] - LT_INDEX_BASE + 1) * team - 1) / s->to.n]++;
  for (int k = 0; k < team; k++) largest = counts[k] > largest ? counts[k] : largest;
  return 4 * largest * team <= 5 * seen;
}

/* Adds the pieces first .. last - 1 of s, of `size` indices each, to tables of their own. */
static void add_pieces(const RowSums *s, int64_t size, int64_t *tables, int64_t first,
                       int64_t last) {
  for (int64_t p = first; p < last; p++) {
    RowSums piece = *s;
    piece.at += p * size;
    piece.from += p * size * s->step * (int64_t)sizeof(int64_t);
    piece.count = s->count - p * size < size ? s->count - p * size : size;
    piece.out = (char *)(tables + p * s->to.n);
    add_elements(&piece, 0);
  }
}

/* Adds integers, whose order does not matter, to a few elements on several threads. Returns false
 * where that does not pay, or memory is out. */
static bool add_in_pieces(const RowSums *s) {
  int64_t n = s->to.n, *out = (int64_t *)(void *)s->out;
  if (s->work != LT_int64 || s->to.outer != 1 || s->to.inner != 1) return false;
  int team = lt_team(s->count, s->count / (4 * n));
  int64_t *tables = team > 1 ? calloc((size_t)(team * n), sizeof *tables) : NULL;
  if (!tables) return false;
  LT_IN_TEAM(team, team, add_pieces(s, (s->count + team - 1) / team, tables, first, last));
  for (int64_t i = 0; i < team * n; i++)
    out[i % n] = (int64_t)((uint64_t)out[i % n] + (uint64_t)tables[i]);
  free(tables);
  return true;
}

/* Adds all rows. Threads share blocks, rows of the result, or columns, as no two may add to one
 * element. Rows are better than columns: parts of rows share cache lines. */
static void add_all_rows(const RowSums *s, int64_t numel) {
  if (add_in_pieces(s)) return;
  const int64_t inner = s->to.inner, size = (int64_t)lt_dtype_size(s->work);
  int team = lt_team(numel, s->to.outer);
  if (s->to.outer > 1 || inner == 1) {
    LT_IN_TEAM(team, s->to.outer, add_rows(s, first, last, 0, inner));
    return;
  }
  team = lt_team(numel, s->to.n);
  if (team > 1 && is_even(s, team)) {
    Write w = {.to = s->out - LT_INDEX_BASE * inner * size,
               .from = s->from,
               .size = (size_t)size,
               .sum = s->work,
               .factor = s->scale,
               .change = s->change};
    LT_IN_TEAM(team, s->to.n,
               write_own_blocks(&w, s->at, inner, s->count, inner, first + LT_INDEX_BASE,
                                last + LT_INDEX_BASE));
  } else {
    LT_IN_TEAM(lt_team(numel, inner / 16), inner, add_rows(s, 0, 1, first, last));
  }
}

/* Adds scale * argument 3 to the slices along dim that the checked index, which it releases,
 * selects; or changes them by `change`. */
static bool add_slices(lt_Call *c, int dim, lt_Tensor *index, lt_Scalar scale, lt_VectorFn change) {
  lt_Tensor *out = c->out[0], *source = lt_in(c, 3), *from = NULL;
  lt_Dtype work = lt_work_dtype(out->dtype);
  bool same = source->ndim == 1 && source->strides[0] == 0 && source->dtype == work;
  if (index) from = same ? lt_retain(source) : lt_as_contiguous(source, work);
  lt_Tensor *to = from ? lt_update_open(out, work) : NULL;
  if (to && from->numel > 0) {
    RowSums s = {.work = work,
                 .to = lt_lines(out->ndim, out->shape, dim),
                 .count = index->numel,
                 .at = lt_tensor_data(index),
                 .out = lt_tensor_data(to),
                 .from = lt_tensor_data(from),
                 .step = same ? 0 : 1,
                 .change = change};
    lt_cpu_numbers(&s.scale, work, work, &scale, &scale);
    add_all_rows(&s, from->numel);
  }
  lt_release(index);
  lt_release(from);
  return lt_output_close(out, to);
}

bool lt_cpu_index_add(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  int64_t n = lt_lines(out->ndim, out->shape, dim).n;
  return add_slices(c, dim, lt_index_open(lt_in(c, 2), n, false, "index"), c->arg[4].scalar, NULL);
}

/* ---- scatters of slices ---------------------------------------------------------------------- */

/* Returns whether all elements of a slice along dim of a scatter have one index, which was
 * expanded, and slices have at least so many elements. */
static bool is_of_slices(const lt_Tensor *out, int dim, const lt_Tensor *index,
                         const lt_Tensor *src, int64_t least) {
  if (index->numel == 0 || !src ||
      !lt_shape_equal(src->ndim, src->shape, index->ndim, index->shape))
    return false;
  for (int d = 0; d < out->ndim; d++)
    if (d != dim && (index->shape[d] != out->shape[d] || (out->shape[d] > 1 && index->strides[d])))
      return false;
  return lt_lines(out->ndim, out->shape, dim).inner >= least;
}

/* Runs scatter_add or _scatter_reduce, by slices where these have one index. */
static bool scatter_slices(lt_Call *c, Change how) {
  lt_Tensor *out = c->out[0], *wide = lt_in(c, 2);
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0 || !is_of_slices(out, dim, wide, lt_in(c, 3), how == ADD ? 2 : LONG_SLICE))
    return scatter(c, how);
  lt_Tensor *line = lt_geometry(wide, 0, 1, &wide->shape[dim], &wide->strides[dim]);
  lt_Tensor *index = line ? lt_index_open(line, out->shape[dim], false, "index") : NULL;
  lt_release(line);
  if (!index) return scatter(c, how); /* reports the index */
  const lt_VectorFn *op = lt_cpu_isa()->vectors[lt_work_dtype(out->dtype)]->op;
  return add_slices(c, dim, index, lt_scalar_int(1),
                    how == ADD        ? NULL
                    : how == MULTIPLY ? op[LT_OP_mul]
                    : how == LARGEST  ? op[LT_OP_maximum]
                                      : op[LT_OP_minimum]);
}

bool lt_cpu__scatter(lt_Call *c) { return scatter(c, PUT); }
bool lt_cpu_scatter_add(lt_Call *c) { return scatter_slices(c, ADD); }

bool lt_cpu__scatter_reduce(lt_Call *c) {
  const char *how = c->arg[4].string;
  return scatter_slices(c, !strcmp(how, "prod")   ? MULTIPLY
                           : !strcmp(how, "amax") ? LARGEST
                                                  : SMALLEST);
}

/* Writes to rows selected by index: the rows of `from`, or one element that fills all of them, or
 * one row. Sizes count elements of `size` bytes. */
typedef struct RowWrites {
  lt_Lines to;   /* the result's shape */
  int64_t count; /* number of indices */
  const int64_t *at;
  char *out;
  const char *from;
  int64_t size, step; /* bytes of an element; between those of `from`: 0 where there is one */
  bool one_row;       /* `from` is the row of every index */
} RowWrites;

#define WRITE_EACH(T)                                                                              \
  for (int64_t j = first; j < last; j++)                                                           \
  ((T *)(void *)to)[w->at[j] - LT_INDEX_BASE] = *(const T *)(const void *)(from + j * w->step)

/* Writes elements first .. last - 1 of block i, which has rows of one element. */
static void write_elements(const RowWrites *w, int64_t i, int64_t first, int64_t last) {
  char *to = w->out + i * w->to.n * w->size;
  const char *from = w->from + i * w->count * w->step;
  LT_BY_SIZE(w->size, WRITE_EACH)
}

/* Writes row j of block i. */
static void write_row(const RowWrites *w, int64_t i, int64_t j) {
  int64_t row = i * w->to.n + w->at[j] - LT_INDEX_BASE, n = w->to.inner;
  char *to = w->out + row * n * w->size;
  if (w->step || w->one_row)
    lt_copy_bytes(to, w->one_row ? w->from : w->from + (i * w->count + j) * n * w->size,
                  (size_t)(n * w->size));
  else
    lt_move(to, w->size, w->from, 0, n, (size_t)w->size);
}

/* Writes all rows of the blocks first .. last - 1. */
static void write_rows(const RowWrites *w, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; i++)
    if (w->to.inner == 1)
      for (int64_t j = 0; j < w->count && !lt_stopped(); j += LT_CHUNK)
        write_elements(w, i, j, w->count - j < LT_CHUNK ? w->count : j + LT_CHUNK);
    else
      for (int64_t j = 0; j < w->count && !lt_stopped_at(j); j++) write_row(w, i, j);
}

/* Writes all rows. Threads share blocks, as no two may write one element; parts of rows would share
 * cache lines, and take longer than one thread does. */
static void write_all_rows(const RowWrites *w) {
  int64_t blocks = w->to.outer;
  LT_IN_TEAM(lt_team(blocks * w->count * w->to.inner, blocks), blocks, write_rows(w, first, last));
}

bool lt_cpu_index_copy(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  if (dim < 0) return false;
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  lt_Tensor *index = lt_index_open(lt_in(c, 2), l.n, false, "index");
  lt_Tensor *from = index ? lt_as_contiguous(lt_in(c, 3), out->dtype) : NULL;
  int64_t size = (int64_t)lt_dtype_size(out->dtype);
  if (from && from->numel > 0)
    write_all_rows(&(RowWrites){l, index->numel, lt_tensor_data(index), lt_tensor_data(out),
                                lt_tensor_data(from), size, size, false});
  bool ok = from != NULL;
  lt_release(index);
  lt_release(from);
  return ok;
}

bool lt_cpu_index_fill(lt_Call *c) {
  lt_Tensor *out = c->out[0];
  int dim = lt_arg_dim(c, 1, out);
  _Alignas(LT_MAX_ELEMENT) char number[LT_MAX_ELEMENT];
  lt_Scalar value;
  if (dim < 0 || !lt_number_of(c, 3, &value) || !lt_scalar_store(value, out->dtype, number))
    return false;
  lt_Lines l = lt_lines(out->ndim, out->shape, dim);
  lt_Tensor *index = lt_index_open(lt_in(c, 2), l.n, false, "index");
  if (!index) return false;
  if (out->numel > 0 && index->numel > 0) {
    _Alignas(LT_MAX_ELEMENT) char row[SHORT_ROW];
    int64_t size = (int64_t)lt_dtype_size(out->dtype);
    bool short_rows = l.inner > 1 && l.inner * size <= SHORT_ROW;
    if (short_rows) lt_move(row, size, number, 0, l.inner, (size_t)size);
    write_all_rows(&(RowWrites){l, index->numel, lt_tensor_data(index), lt_tensor_data(out),
                                short_rows ? row : number, size, 0, short_rows});
  }
  lt_release(index);
  return true;
}

/* ---- _index_put: several index tensors ------------------------------------------------------- */

#define WRITE_OFFSETS(T, change)                                                                   \
  for (int64_t i = first; i < last; i++) {                                                         \
    T *t = (T *)(void *)w->to + offset[i], f = ((const T *)(const void *)w->from)[i * step];       \
    *t = change;                                                                                   \
  }

#define PUT_OFFSETS(T) WRITE_OFFSETS(T, f)

/* Writes elements first .. last - 1, or adds to them, where each block is one element. */
static void write_at_offsets(const Write *w, const int64_t *offset, int64_t first, int64_t last) {
  int64_t step = w->one ? 0 : 1;
  if (w->sum == LT_float32)
    WRITE_OFFSETS(float, *t + f)
  else if (w->sum == LT_float64)
    WRITE_OFFSETS(double, *t + f)
  else if (w->sum == LT_int64)
    WRITE_OFFSETS(int64_t, (int64_t)((uint64_t)*t + (uint64_t)f))
  else
    LT_BY_SIZE(w->size, PUT_OFFSETS)
}

/* The blocks that a write selects. */
typedef struct WriteBlocks {
  const lt_IndexBlocks *blocks;
  const Write *write;
} WriteBlocks;

/* Writes the blocks of the leads from..to - 1, which have no mids. */
static void write_leads(void *context, int64_t from, int64_t to) {
  const WriteBlocks *s = context;
  const int64_t *offset = lt_tensor_data(s->blocks->offsets), n = s->blocks->block,
                count = s->blocks->offsets->numel;
  lt_Odometer lead = s->blocks->leads;
  lt_odometer_seek(&lead, from);
  for (int64_t i = from; i < to && !lt_stopped(); i++, lt_odometer_step(&lead)) {
    Write w = *s->write;
    w.to += (size_t)lead.offset[0] * w.size;
    if (!w.one) w.from += (size_t)(i * count * n) * w.size;
    for (int64_t b = 0, end; n > 1 && (end = lt_next_chunk(b, count)) > b;)
      for (; b < end; b++) write_block(&w, offset[b], b * n, n);
    for (int64_t b = 0, end; n == 1 && (end = lt_next_chunk(b, count)) > b; b = end)
      write_at_offsets(&w, offset, b, end);
  }
}

/* Writes all blocks, with mids. */
static void write_mids(const lt_IndexBlocks *p, const Write *w) {
  const int64_t *offset = lt_tensor_data(p->offsets);
  lt_Odometer mid = p->mids; /* it is at the first again after the last */
  int64_t at = 0, size = (int64_t)w->size, step = w->one ? 0 : size;
  if (w->sum == LT_DTYPE_NONE && p->block == 1 && mid.ndim == 1) {
    for (int64_t b = 0; b < p->offsets->numel && !lt_stopped_at(b); b++, at += p->mid)
      lt_move(w->to + offset[b] * size, mid.strides[0][0] * size, w->from + at * step, step, p->mid,
              w->size);
    return;
  }
  for (int64_t b = 0; b < p->offsets->numel && !lt_stopped_at(b); b++)
    for (int64_t m = 0; m < p->mid; m++, at += p->block, lt_odometer_step(&mid))
      write_block(w, offset[b] + mid.offset[0], at, p->block);
}

/* Writes all selected blocks into `numel` elements. Threads share leads, or the places: not the
 * blocks, so that of equal indices the last wins. */
static void write_blocks(const lt_IndexBlocks *p, const Write *w, int64_t numel) {
  int64_t count = p->offsets->numel, all = p->lead * count * p->block;
  int team = p->lead == 1 && p->block > 1 ? lt_team(all, numel) : 1;
  if (p->mid > 1)
    write_mids(p, w);
  else if (team > 1)
    LT_IN_TEAM(team, numel,
               write_own_blocks(w, lt_tensor_data(p->offsets), 1, count, p->block, first, last));
  else
    lt_share(all, p->lead, write_leads, &(WriteBlocks){p, w});
}

/* Computes the shape to which values are broadcast: lead dims, those of the index, mid dims, and
 * those of the block. Returns the number of dims. */
static int blocks_shape(const lt_IndexBlocks *p, const lt_Tensor *self, int last, int64_t *shape) {
  int n = 0;
  for (int d = 0; d < p->leads.ndim; d++) shape[n++] = p->leads.shape[d];
  for (int d = 0; d < p->offsets->ndim; d++) shape[n++] = p->offsets->shape[d];
  for (int d = 0; d < p->mids.ndim; d++) shape[n++] = p->mids.shape[d];
  for (int d = last + 1; d < self->ndim; d++) shape[n++] = self->shape[d];
  return n;
}

bool lt_cpu__index_put(lt_Call *c) {
  lt_Tensor *out = c->out[0], *values = lt_in(c, 3);
  const int64_t *dims = c->arg[2].ints;
  bool add = c->arg[4].b;
  lt_Dtype work = add ? lt_work_dtype(out->dtype) : out->dtype;
  lt_IndexBlocks p;
  if (!lt_index_blocks_open(&p, out, &c->arg[1], dims)) return false;
  int64_t shape[LT_MAX_DIMS];
  int ndim = blocks_shape(&p, out, (int)dims[c->arg[1].count - 1], shape);
  bool one = values->numel == 1;
  lt_Tensor *from =
      one ? lt_as_contiguous(values, work) : lt_expanded_contiguous(values, work, ndim, shape);
  lt_Tensor *to = from ? lt_update_open(out, work) : NULL;
  if (to && from->numel > 0 && to->numel > 0) {
    Write w = {.to = lt_tensor_data(to),
               .from = lt_tensor_data(from),
               .size = lt_dtype_size(work),
               .sum = add ? work : LT_DTYPE_NONE,
               .one = one};
    const lt_Scalar factor = lt_scalar_int(1);
    if (add) lt_cpu_numbers(&w.factor, work, work, &factor, &factor);
    write_blocks(&p, &w, to->numel);
  }
  lt_release(p.offsets);
  lt_release(from);
  return lt_output_close(out, to);
}

/* ---- masked_scatter -------------------------------------------------------------------------- */

/* Copies `count` elements to the places whose mask byte is 1. Every place is written, with its own
 * element where it is not selected, and the address is computed, so that no branch depends on the
 * mask. */
#define SPREAD(T)                                                                                  \
  do {                                                                                             \
    const T *x = from;                                                                             \
    T *y = to;                                                                                     \
    for (int64_t i = 0, k = 0; k < count && !lt_stopped();)                                        \
      for (int64_t end = i + LT_CHUNK; i < end && k < count; i++) {                                \
        const uintptr_t own = (uintptr_t)(y + i), next = (uintptr_t)(x + k), taken = take[i];      \
        y[i] = *(const T *)(own ^ ((own ^ next) & (0 - taken)));                                   \
        k += take[i];                                                                              \
      }                                                                                            \
  } while (0)
static void spread_elements(const void *from, void *to, const uint8_t *take, int64_t count,
                            size_t size) {
  LT_BY_SIZE(size, SPREAD)
}

/* Does so for the places first .. last - 1, with the elements after those before them. */
static void spread_part(const char *from, char *to, const uint8_t *take, size_t size, int64_t first,
                        int64_t last) {
  int64_t before = lt_mask_count(take, first);
  spread_elements(from + (size_t)before * size, to + (size_t)first * size, take + first,
                  lt_mask_count(take + first, last - first), size);
}

bool lt_cpu_masked_scatter(lt_Call *c) {
  lt_Tensor *out = c->out[0], *source = lt_in(c, 2);
  lt_Tensor *mask = lt_expanded_contiguous(lt_in(c, 1), LT_bool, out->ndim, out->shape);
  lt_Tensor *from = mask ? lt_as_contiguous(source, out->dtype) : NULL;
  bool ok = from != NULL;
  if (ok) {
    const uint8_t *take = lt_tensor_data(mask);
    int64_t count = lt_mask_count(take, mask->numel);
    if (count > from->numel)
      ok = lt_fail("expected at least %lld elements for argument 'source', one for each true "
                   "element of the mask, got %lld",
                   (long long)count, (long long)from->numel);
    else if (count > 0)
      LT_IN_TEAM(lt_team(2 * mask->numel, mask->numel), mask->numel,
                 spread_part(lt_tensor_data(from), lt_tensor_data(out), take,
                             lt_dtype_size(out->dtype), first, last));
  }
  lt_release(mask);
  lt_release(from);
  return ok;
}
