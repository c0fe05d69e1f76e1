/* index.c: reading by index tensors and masks: index_select, gather, _index, masked_select,
 * nonzero, embedding; and _bincount. Elements are copied as bytes, for any dtype. Every index is
 * checked before anything that a program has is written. */
#include "index.h"
#include "kernel_support.h"
#include "moves.h"
#include "order.h"
#include "rows.h"
#include "short_rows.h"

/* ---- one index for a dimension --------------------------------------------------------------- */

/* A copy of rows of `bytes` bytes that are `step` bytes apart: `count` of them, selected by index,
 * and again for each `lead` bytes of `from`. */
typedef struct Rows {
  const char *from;
  char *to;
  const int64_t *at;
  size_t bytes;
  int64_t count, lead, step;
} Rows;

#define COPY_EACH(N)                                                                               \
  for (int64_t j = 0; j < n; j++) memcpy(to + j * N, from + (at[j] - LT_INDEX_BASE) * r->step, N)

/* Copies n rows that start at `from`; rows of the size of an element without calls. */
static void copy_selected(const Rows *r, const char *from, char *to, const int64_t *at, int64_t n) {
  switch (r->bytes) {
  case 1:
    COPY_EACH(1);
    break;
  case 2:
    COPY_EACH(2);
    break;
  case 4:
    COPY_EACH(4);
    break;
  case 8:
    COPY_EACH(8);
    break;
  default:
    for (int64_t j = 0; j < n; j++, to += r->bytes)
      lt_copy_bytes(to, from + (at[j] - LT_INDEX_BASE) * r->step, r->bytes);
    break;
  }
}

/* Copies rows from..to - 1 of the result. */
static void copy_rows(void *context, int64_t from, int64_t to) {
  const Rows *r = context;
  for (int64_t t = from, n; t < to; t += n) {
    int64_t first = t % r->count;
    n = r->count - first < to - t ? r->count - first : to - t;
    copy_selected(r, r->from + t / r->count * r->lead, r->to + (size_t)t * r->bytes, r->at + first,
                  n);
  }
}

bool lt_cpu_index_select(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  lt_Lines l = lt_lines(self->ndim, self->shape, dim);
  lt_Tensor *index = lt_index_open(lt_in(c, 2), l.n, false, "index"),
            *x = index ? lt_as_contiguous(self, self->dtype) : NULL;
  if (x && out->numel > 0) {
    size_t block = (size_t)l.inner * lt_dtype_size(x->dtype);
    Rows r = {lt_tensor_data(x), lt_tensor_data(out),  lt_tensor_data(index), block,
              index->numel,      l.n * (int64_t)block, (int64_t)block};
    lt_share(out->numel, l.outer * r.count, copy_rows, &r);
  }
  bool ok = x != NULL;
  lt_release(index);
  lt_release(x);
  return ok;
}

/* A gather: an index along dim for each element of `to`, whose last dim has n elements. Steps and
 * the odometer's strides, of the other dims, are in bytes. */
typedef struct Gather {
  const char *from;
  char *to;
  const int64_t *at;
  size_t size;
  int64_t n, across, along; /* `across`: along the last dim; `along`: from one index to the next */
  lt_Odometer rows;
  int64_t indices;      /* the largest index that is allowed */
  atomic_bool *outside; /* set when another one was found */
  lt_ShortRows *few;    /* of rows of few elements */
} Gather;

/* Gathers elements first .. last - 1 of a row, or of short rows with these shifts; returns false at
 * an index that is not allowed. */
#define GATHER_AT(T, source)                                                                       \
  _Pragma("GCC unroll 4")                                                                          \
  for (int64_t j = first; j < last; j++) {                                                         \
    uint64_t k = (uint64_t)at[j] - LT_INDEX_BASE;                                                  \
    if (k >= indices) return false;                                                                \
    out[j] = *(const T *)(const void *)(source);                                                   \
  }
#define GATHER(T)                                                                                  \
  do {                                                                                             \
    T *out = (T *)(void *)to;                                                                      \
    const bool dense = along == (int64_t)sizeof(T);                                                \
    if (dense && shift)                                                                            \
      GATHER_AT(T, from + shift[j] + k * sizeof(T))                                                \
    else if (dense && across == 0)                                                                 \
      GATHER_AT(T, from + k * sizeof(T))                                                           \
    else                                                                                           \
      GATHER_AT(T, from + (shift ? shift[j] : j * across) + (int64_t)k * along)                    \
  } while (0)
static bool gather_row(const Gather *g, const char *from, char *to, const int64_t *at,
                       const int64_t *shift, int64_t first, int64_t last) {
  int64_t across = g->across, along = g->along;
  uint64_t indices = (uint64_t)g->indices;
  LT_BY_SIZE(g->size, GATHER)
  return true;
}

/* Gathers elements first .. last - 1 of the result: parts of rows, or whole ones. */
static void gather_range(void *context, int64_t first, int64_t last) {
  const Gather *g = context;
  lt_Odometer o = g->rows;
  int64_t row = first / g->n, start = row * g->n;
  lt_odometer_seek(&o, row);
  for (; start < last; start += g->n) {
    int64_t end = last - start < g->n ? last : start + g->n;
    if (!gather_row(g, g->from + o.offset[0], g->to + (size_t)start * g->size, g->at + start, NULL,
                    first > start ? first - start : 0, end - start)) {
      atomic_store(g->outside, true);
      return;
    }
    lt_odometer_step(&o);
  }
}

/* Gathers n elements of whole rows; an lt_ShortRowsFn. */
static bool gather_few(const void *context, const int64_t offset[2], int64_t first, int64_t n) {
  const Gather *g = context;
  bool inside = gather_row(g, g->from + offset[0], g->to + (size_t)first * g->size, g->at + first,
                           g->few->shift, 0, n);
  if (!inside) atomic_store(g->outside, true);
  return inside;
}

static void gather_short_rows(void *context, int64_t first, int64_t last) {
  const Gather *g = context;
  lt_short_rows_each(g->few, first, last, gather_few, g);
}

/* An index along dim for each element: index has the shape of the result; self may be larger in the
 * other dims. */
bool lt_cpu_gather(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  int dim = lt_arg_dim(c, 1, self);
  if (dim < 0) return false;
  int64_t n = self->ndim ? self->shape[dim] : 1, size = (int64_t)lt_dtype_size(self->dtype);
  lt_Tensor *index = lt_writes_new(c) ? lt_as_contiguous(lt_in(c, 2), LT_int64)
                                      : lt_index_open(lt_in(c, 2), n, false, "index");
  if (!index) return false;
  atomic_bool outside = false;
  if (out->numel > 0) {
    int last = out->ndim - 1;
    Gather g = {.from = lt_tensor_data(self),
                .to = lt_tensor_data(out),
                .at = lt_tensor_data(index),
                .size = (size_t)size,
                .n = last >= 0 ? out->shape[last] : 1,
                .across = last >= 0 && self->ndim && dim != last ? self->strides[last] * size : 0,
                .along = self->ndim ? self->strides[dim] * size : 0,
                .rows = {.ndim = last > 0 ? last : 0},
                .indices = n,
                .outside = &outside};
    for (int d = 0; d < g.rows.ndim; d++) {
      g.rows.shape[d] = out->shape[d];
      g.rows.strides[0][d] = d == dim ? 0 : self->strides[d] * size;
    }
    lt_ShortRows few;
    g.few = &few;
    if (lt_short_rows_open(&few, &g.rows, g.n, g.across, 0))
      lt_share(4 * out->numel, out->numel / g.n, gather_short_rows, &g);
    else
      lt_share(4 * out->numel, out->numel, gather_range, &g);
  }
  bool ok = !outside || lt_index_check(index, lt_in(c, 2), n, false, "index");
  lt_release(index);
  return ok;
}

/* ---- several index tensors (NumPy's rules) --------------------------------------------------- */

/* Returns the offsets in self, in elements, that the broadcast index tensors select: int64, of
 * their common shape. NULL with the error set for an index out of range. */
static lt_Tensor *common_offsets(lt_Tensor *self, const lt_Arg *indices, const int64_t *dims) {
  int ndim = 0;
  int64_t shape[LT_MAX_DIMS];
  for (int k = 0; k < indices->count; k++)
    lt_shape_broadcast(&ndim, shape, indices->tensors[k]->ndim, indices->tensors[k]->shape);
  lt_Tensor *sum = lt_empty(LT_int64, lt_cpu(), ndim, shape);
  if (!sum) return NULL;
  int64_t *to = lt_tensor_data(sum);
  for (int k = 0; k < indices->count; k++) {
    int64_t stride = self->strides[dims[k]];
    lt_Tensor *index = lt_index_open(indices->tensors[k], self->shape[dims[k]], true, "index");
    lt_Tensor *wide = index ? lt_expanded_contiguous(index, LT_int64, ndim, shape) : NULL;
    lt_release(index);
    if (!wide) {
      lt_release(sum);
      return NULL;
    }
    const int64_t *at = lt_tensor_data(wide);
    for (int64_t i = 0, end; (end = lt_next_chunk(i, sum->numel)) > i;)
      for (; i < end; i++) to[i] = (k ? to[i] : 0) + (at[i] - LT_INDEX_BASE) * stride;
    lt_release(wide);
  }
  if (!lt_stopped()) return sum;
  lt_release(sum); /* the offsets are incomplete */
  lt_fail("interrupted");
  return NULL;
}

bool lt_index_blocks_open(lt_IndexBlocks *p, lt_Tensor *self, const lt_Arg *indices,
                          const int64_t *dims) {
  int n = indices->count, first = (int)dims[0], last = (int)dims[n - 1];
  bool neighbours = last - first == n - 1;
  *p = (lt_IndexBlocks){.lead = 1, .mid = 1, .block = 1};
  p->offsets = common_offsets(self, indices, dims);
  if (!p->offsets) return false;
  for (int d = last + 1; d < self->ndim; d++) p->block *= self->shape[d];
  for (int d = 0, k = 0; d <= last; d++) {
    if (k < n && dims[k] == d) {
      k++;
      continue;
    }
    lt_Odometer *o = neighbours ? &p->leads : &p->mids;
    o->shape[o->ndim] = self->shape[d];
    o->strides[0][o->ndim++] = self->strides[d];
    *(neighbours ? &p->lead : &p->mid) *= self->shape[d];
  }
  return true;
}

/* A copy of selected blocks next to one another, of elements of `size` bytes. */
typedef struct Pick {
  const lt_IndexBlocks *blocks;
  const char *from;
  char *to;
  size_t size;
} Pick;

#define READ_ONE(T)                                                                                \
  for (int64_t i = 0; i < n; i++) ((T *)(void *)to)[i] = ((const T *)(const void *)from)[at[i]]

/* Copies what n offsets select from one lead. */
static void pick_offsets(const Pick *p, const char *from, const int64_t *at, int64_t n, char *to) {
  const int64_t mids = p->blocks->mid;
  const size_t bytes = (size_t)p->blocks->block * p->size;
  if (p->blocks->block * mids == 1) {
    LT_BY_SIZE(p->size, READ_ONE)
    return;
  }
  lt_Odometer mid = p->blocks->mids; /* it is at the first again after the last */
  const int64_t size = (int64_t)p->size;
  if (p->blocks->block == 1 && mid.ndim == 1) {
    for (int64_t i = 0; i < n; i++, to += mids * size)
      lt_move(to, size, from + at[i] * size, mid.strides[0][0] * size, mids, p->size);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t m = 0; m < mids; m++, to += bytes, lt_odometer_step(&mid))
      lt_copy_bytes(to, from + (size_t)(at[i] + mid.offset[0]) * p->size, bytes);
}

/* Copies what offsets from..to - 1 select, counted through all leads. */
static void pick(void *context, int64_t from, int64_t to) {
  const Pick *p = context;
  const int64_t *at = lt_tensor_data(p->blocks->offsets), count = p->blocks->offsets->numel;
  const size_t bytes = (size_t)(p->blocks->mid * p->blocks->block) * p->size;
  lt_Odometer lead = p->blocks->leads;
  lt_odometer_seek(&lead, from / count);
  for (int64_t t = from, n; t < to; t += n, lt_odometer_step(&lead)) {
    int64_t first = t % count;
    n = count - first < to - t ? count - first : to - t;
    pick_offsets(p, p->from + (size_t)lead.offset[0] * p->size, at + first, n,
                 p->to + (size_t)t * bytes);
  }
}

/* Returns whether the dims after the last indexed one are dense, so that a selected block is
 * contiguous. */
static bool blocks_are_dense(const lt_Tensor *t, int last) {
  int64_t n = 1;
  for (int d = t->ndim - 1; d > last; d--) {
    if (t->shape[d] != 1 && t->strides[d] != n) return false;
    n *= t->shape[d];
  }
  return true;
}

/* _index by one tensor along the first dim of x, whose other dims are dense. */
static bool index_first(lt_Call *c, const lt_Tensor *x) {
  lt_Tensor *out = c->out[0];
  lt_Tensor *index = lt_index_open(c->arg[1].tensors[0], x->shape[0], true, "index");
  if (index && out->numel > 0) {
    int64_t size = (int64_t)lt_dtype_size(x->dtype), n = index->numel;
    Rows r = {.from = lt_tensor_data(x),
              .to = lt_tensor_data(out),
              .at = lt_tensor_data(index),
              .bytes = (size_t)(out->numel / n * size),
              .count = n,
              .step = x->strides[0] * size};
    lt_share(4 * out->numel, n, copy_rows, &r);
  }
  lt_release(index);
  return index != NULL;
}

bool lt_cpu__index(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *out = c->out[0];
  const int64_t *dims = c->arg[2].ints;
  bool dense = blocks_are_dense(self, (int)dims[c->arg[1].count - 1]);
  if (dense && c->arg[1].count == 1 && dims[0] == 0) return index_first(c, self);
  lt_Tensor *x = dense ? lt_retain(self) : lt_as_contiguous(self, self->dtype);
  lt_IndexBlocks p;
  bool ok = x && lt_index_blocks_open(&p, x, &c->arg[1], dims);
  if (ok) {
    Pick all = {&p, lt_tensor_data(x), lt_tensor_data(out), lt_dtype_size(x->dtype)};
    if (out->numel > 0) lt_share(4 * out->numel, p.lead * p.offsets->numel, pick, &all);
    lt_release(p.offsets);
  }
  lt_release(x);
  return ok;
}

/* ---- masks: the kernel creates its own result, whose size depends on the data ---------------- */

int64_t lt_mask_count(const uint8_t *mask, int64_t n) {
  int64_t count = 0;
  const lt_Fold *f = lt_fold(LT_REDUCTION_count_nonzero, LT_int64, true);
  if (n > 0) f->elements.rows(mask, 1, n, n, &count);
  return count;
}

/* Copies the `count` elements whose mask byte is 1 next to one another. Every element is written to
 * the next free place, selected or not, so that no branch depends on the mask. */
#define SELECT(T)                                                                                  \
  do {                                                                                             \
    const T *x = from;                                                                             \
    T *y = to;                                                                                     \
    for (int64_t i = 0, k = 0; k < count && !lt_stopped();)                                        \
      for (int64_t end = i + LT_CHUNK; i < end && k < count; i++) {                                \
        y[k] = x[i];                                                                               \
        k += mask_bytes[i];                                                                        \
      }                                                                                            \
  } while (0)
static void select_elements(const void *from, void *to, const uint8_t *mask_bytes, int64_t count,
                            size_t size) {
  LT_BY_SIZE(size, SELECT)
}

/* Does so for the elements first .. last - 1, after those selected before them. */
static void select_part(const char *from, char *to, const uint8_t *mask_bytes, size_t size,
                        int64_t first, int64_t last) {
  int64_t before = lt_mask_count(mask_bytes, first);
  select_elements(from + (size_t)first * size, to + (size_t)before * size, mask_bytes + first,
                  lt_mask_count(mask_bytes + first, last - first), size);
}

bool lt_cpu_masked_select(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *mask = lt_in(c, 1);
  int ndim = self->ndim;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, self->shape, sizeof shape);
  lt_shape_broadcast(&ndim, shape, mask->ndim, mask->shape);
  lt_Tensor *x = lt_expanded_contiguous(self, self->dtype, ndim, shape);
  lt_Tensor *m = x ? lt_expanded_contiguous(mask, LT_bool, ndim, shape) : NULL, *out = NULL;
  if (m) {
    const uint8_t *mask_bytes = lt_tensor_data(m);
    int64_t count = lt_mask_count(mask_bytes, m->numel);
    out = lt_empty(self->dtype, lt_cpu(), 1, &count);
    int team = out ? lt_team(m->numel, m->numel) : 0;
    const char *from = lt_tensor_data(x);
    if (team == 1)
      select_elements(from, lt_tensor_data(out), mask_bytes, count, lt_dtype_size(self->dtype));
    else if (team > 1)
      LT_IN_TEAM(team, m->numel,
                 select_part(from, lt_tensor_data(out), mask_bytes, lt_dtype_size(self->dtype),
                             first, last));
  }
  lt_release(x);
  lt_release(m);
  c->out[0] = out;
  c->nout = out ? 1 : 0;
  return out != NULL;
}

#define FOUND 256 /* elements whose positions are collected together */

/* Writes the coordinates of the true elements among the elements first .. end - 1: but for the
 * last, they are constant along a row. */
static void write_positions(const lt_Tensor *m, int64_t first, int64_t end, int64_t *to) {
  int last = m->ndim - 1;
  int64_t n = m->shape[last], at[LT_MAX_DIMS], rest = first / n;
  const uint8_t *mask_bytes = (const uint8_t *)lt_tensor_data(m);
  for (int d = last - 1; d >= 0; d--) {
    at[d] = rest % m->shape[d] + LT_INDEX_BASE;
    rest /= m->shape[d];
  }
  for (int64_t row = first / n * n; row < end; row += n) {
    int64_t j = first > row ? first - row : 0, stop, row_end = end - row < n ? end - row : n;
    for (; j < row_end && !lt_stopped(); j = stop) {
      int64_t found[FOUND], count = 0; /* without a branch that depends on the mask */
      stop = row_end - j < FOUND ? row_end : j + FOUND;
      for (int64_t i = j; i < stop; i++) {
        found[count] = i + LT_INDEX_BASE;
        count += mask_bytes[row + i];
      }
      if (last == 1) {
        for (int64_t k = 0; k < count; k++) to[2 * k] = at[0], to[2 * k + 1] = found[k];
        to += 2 * count;
        continue;
      }
      for (int64_t k = 0; k < count; k++) {
        for (int d = 0; d < last; d++) *to++ = at[d];
        *to++ = found[k];
      }
    }
    if (lt_stopped()) return;
    for (int d = last - 1; d >= 0; d--) {
      if (++at[d] < m->shape[d] + LT_INDEX_BASE) break;
      at[d] = LT_INDEX_BASE;
    }
  }
}

/* Writes the coordinates of all true elements. Each thread counts those before its elements. */
static void write_all_positions(const lt_Tensor *m, int64_t *to) {
  const uint8_t *mask_bytes = lt_tensor_data(m);
  LT_IN_TEAM(lt_team(4 * m->numel, m->numel), m->numel,
             write_positions(m, first, last, to + m->ndim * lt_mask_count(mask_bytes, first)));
}

bool lt_cpu_nonzero(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *m = lt_as_contiguous(self, LT_bool), *out = NULL;
  if (m) {
    int64_t shape[2] = {lt_mask_count(lt_tensor_data(m), m->numel), self->ndim};
    out = lt_empty(LT_int64, lt_cpu(), 2, shape);
    if (out && out->numel > 0) write_all_positions(m, lt_tensor_data(out));
  }
  lt_release(m);
  c->out[0] = out;
  c->nout = out ? 1 : 0;
  return out != NULL;
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* Adds the number of each value of at to counts, which has one element for each from 1 on. */
static void count_values(const int64_t *at, int64_t n, int64_t *counts) {
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i;)
    for (; i < end; i++) counts[at[i] - LT_INDEX_BASE]++;
}

/* Counts in pieces, one for each thread, in tables of their own, where there are few values.
 * Returns false where that does not pay, or memory is out. */
static bool count_in_pieces(const int64_t *at, int64_t n, int64_t *counts, int64_t size) {
  int team = lt_team(n, n / (4 * size + 1));
  int64_t *tables = team > 1 ? calloc((size_t)(team * size), sizeof *tables) : NULL;
  if (!tables) return false;
  LT_IN_TEAM(team, team,
             count_values(at + n * first / team, n * last / team - n * first / team,
                          tables + first * size));
  for (int64_t i = 0; i < team * size; i++) counts[i % size] += tables[i];
  free(tables);
  return true;
}

/* _bincount (self, minlength) */
bool lt_cpu__bincount(lt_Call *c) {
  lt_Tensor *x = lt_as_contiguous(lt_in(c, 0), LT_int64), *out = NULL;
  if (!x) return false;
  const int64_t *at = lt_tensor_data(x);
  int64_t low = LT_INDEX_BASE, high = c->arg[1].i, n = x->numel;
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i; i = end)
    lt_order()->span_i64(at + i, end - i, &low, &high);
  if (lt_stopped()) {
    lt_fail("interrupted");
  } else if (low < LT_INDEX_BASE) {
    lt_fail("expected values from 1 on for argument 'self', got %lld", (long long)low);
  } else if ((out = lt_empty(LT_int64, lt_cpu(), 1, &high))) {
    int64_t *counts = lt_tensor_data(out);
    if (high > 0) memset(counts, 0, (size_t)high * sizeof *counts);
    if (!count_in_pieces(at, n, counts, high)) count_values(at, n, counts);
  }
  lt_release(x);
  c->out[0] = out;
  c->nout = out ? 1 : 0;
  return out != NULL;
}

/* ---- embedding ------------------------------------------------------------------------------- */

bool lt_cpu_embedding(lt_Call *c) {
  lt_Tensor *weight = lt_in(c, 0), *out = c->out[0];
  lt_Tensor *index = lt_index_open(lt_in(c, 1), weight->shape[0], false, "input");
  if (!index) return false;
  bool dense = weight->shape[1] == 1 || weight->strides[1] == 1;
  lt_Tensor *w = dense ? lt_retain(weight) : lt_as_contiguous(weight, weight->dtype);
  if (w && out->numel > 0) {
    size_t size = lt_dtype_size(w->dtype), row = (size_t)w->shape[1] * size;
    Rows r = {lt_tensor_data(w),
              lt_tensor_data(out),
              lt_tensor_data(index),
              row,
              index->numel,
              0,
              w->strides[0] * (int64_t)size};
    lt_share(out->numel, r.count, copy_rows, &r);
  }
  bool ok = w != NULL;
  lt_release(index);
  lt_release(w);
  return ok;
}
