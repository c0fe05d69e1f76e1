/* planes_body.h: the loops over windows of planes (planes.h), and those of pad, for one type T.
 * FN(name) is a function's name. */

#define CHUNK 256 /* windows of a row that are computed together */

/* Returns n / s of numbers that are not negative, where s is small, most often 1 or 2. */
static inline int64_t FN(quotient)(int64_t n, int64_t s) {
  return s == 1 ? n : s == 2 ? n >> 1 : n / s;
}

/* Positions of window elements in the last dim: window x has element `offset` + x * stride. Returns
 * in *low and *high the windows of first..last whose element is inside of the input. */
static inline void FN(inside)(const lt_Windows *w, int64_t offset, int64_t first, int64_t last,
                              int64_t *low, int64_t *high) {
  int64_t s = w->stride[2], end = w->in[2] - 1 - offset;
  *low = offset + first * s >= 0 ? first : FN(quotient)(-offset + s - 1, s);
  *high = (last - 1) * s <= end ? last : end < 0 ? 0 : FN(quotient)(end, s) + 1;
}

/* A row of windows: all with the same coordinates but the last. */
typedef struct FN(Row) {
  int64_t z, y;   /* these coordinates */
  int64_t source; /* the first element of its plane of the input */
} FN(Row);
static inline FN(Row) FN(row_at)(const lt_Windows *w, int64_t row) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2];
  return (FN(Row)){.z = row / w->out[1] % w->out[0],
                   .y = row % w->out[1],
                   .source = row / w->out[1] / w->out[0] * plane};
}
/* Goes to the next row, without the divisions. */
static inline void FN(next_row)(const lt_Windows *w, FN(Row) * r) {
  if (++r->y < w->out[1]) return;
  r->y = 0;
  if (++r->z < w->out[0]) return;
  r->z = 0;
  r->source += w->in[0] * w->in[1] * w->in[2];
}

/* Updates maxima and their indices by a row of elements, `s` apart. */
static inline __attribute__((always_inline)) void
FN(take_larger)(const T *x, int64_t s, int32_t at, int64_t n, T *best, int32_t *index) {
  int32_t step = (int32_t)s;
  for (int32_t i = 0; i < (int32_t)n; i++) {
    T v = x[i * s];
    bool larger = v > best[i] || v != v;
    best[i] = larger ? v : best[i];
    index[i] = larger ? at + i * step : index[i];
  }
}
/* Adds a row of elements to sums. */
static inline __attribute__((always_inline)) void FN(add_row)(const T *x, int64_t s, int64_t n,
                                                              T *sum) {
  for (int64_t i = 0; i < n; i++) sum[i] += x[i * s];
}
/* Adds sums to a row of elements. */
static inline __attribute__((always_inline)) void FN(add_to_row)(T *x, int64_t s, int64_t n,
                                                                 const T *sum) {
  for (int64_t i = 0; i < n; i++) x[i * s] += sum[i];
}
/* Calls one of these functions with a constant step where that is faster. */
#define BY_STEP(call, s, ...)                                                                      \
  do {                                                                                             \
    if ((s) == 1)                                                                                  \
      call(1, __VA_ARGS__);                                                                        \
    else if ((s) == 2)                                                                             \
      call(2, __VA_ARGS__);                                                                        \
    else                                                                                           \
      call(s, __VA_ARGS__);                                                                        \
  } while (0)
#define TAKE_LARGER(s, x, at, n, best, index) FN(take_larger)(x, s, at, n, best, index)
#define ADD_ROW(s, x, n, sum)                 FN(add_row)(x, s, n, sum)
#define ADD_TO_ROW(s, x, n, sum)              FN(add_to_row)(x, s, n, sum)

/* The part of windows that is inside of the input, in one dim. */
typedef struct FN(Span) {
  int64_t first, end, step;
} FN(Span);
static inline FN(Span) FN(span)(const lt_Windows *w, int d, int64_t o) {
  FN(Span) s = {lt_window_first(w, d, o), lt_window_end(w, d, o), lt_window_step(w, d)};
  s.first = lt_window_inside(s.first, s.step);
  if (s.end > w->in[d]) s.end = w->in[d];
  return s;
}

/* Columns of an adaptive pool that are computed together: the maxima of the rows of a window, and
 * their indices. Of equal numbers in a column the first is taken, of several NaN the last. */
#define COLUMNS 1024
typedef struct FN(Columns) {
  T best[COLUMNS];
  int32_t at[COLUMNS];
  int64_t first, end; /* the columns that they hold */
} FN(Columns);
static void FN(take_columns)(const lt_Windows *w, const T *x, FN(Span) z, FN(Span) r, int64_t first,
                             FN(Columns) * c) {
  int64_t n = w->in[2] - first < COLUMNS ? w->in[2] - first : COLUMNS;
  c->first = first;
  c->end = first + n;
  int64_t top = (z.first * w->in[1] + r.first) * w->in[2] + first;
  memcpy(c->best, x + top, (size_t)n * sizeof(T));
  for (int32_t i = 0; i < (int32_t)n; i++) c->at[i] = (int32_t)top + i;
  for (int64_t k = z.first; k < z.end; k++)
    for (int64_t j = r.first; j < r.end; j++) {
      int64_t row = (k * w->in[1] + j) * w->in[2] + first;
      if (row != top) FN(take_larger)(x + row, 1, (int32_t)row, n, c->best, c->at);
    }
}
/* Replaces *best and its index by a number that is larger, or equal and before it, or a NaN after
 * it. */
static inline void FN(take_one)(T v, int32_t index, T *best, int32_t *at) {
  bool better = v != v ? *best == *best || index > *at : v > *best || (v == *best && index < *at);
  *best = better ? v : *best;
  *at = better ? index : *at;
}
/* The same for n columns. */
static void FN(take_best)(const T *v, const int32_t *index, int64_t n, T *best, int32_t *at) {
  enum { LANES = 64 / sizeof(T) };
  int64_t i = 0;
  if (n >= 4 * LANES) {
    T most[LANES];
    int32_t first[LANES];
    memcpy(most, v, sizeof most);
    memcpy(first, index, sizeof first);
    for (i = LANES; i + LANES <= n; i += LANES)
      for (int l = 0; l < LANES; l++) {
        T e = v[i + l], b = most[l];
        int32_t a = index[i + l], f = first[l];
        bool is_nan = e != e,
             better = (e > b) | ((e == b) & (a < f)) | (is_nan & ((b == b) | (a > f)));
        most[l] = better ? e : b;
        first[l] = better ? a : f;
      }
    for (int l = 0; l < LANES; l++) FN(take_one)(most[l], first[l], best, at);
  }
  for (; i < n; i++) FN(take_one)(v[i], index[i], best, at);
}
/* Maxima of a row of adaptive windows. */
static void FN(max_adaptive)(const lt_Windows *w, const T *x, T *y, int64_t *index, FN(Span) z,
                             FN(Span) r) {
  FN(Columns) columns;
  columns.first = columns.end = 0;
  for (int64_t o = 0; o < w->out[2]; o++) {
    FN(Span) c = FN(span)(w, 2, o);
    int32_t at = (int32_t)((z.first * w->in[1] + r.first) * w->in[2] + c.first);
    T best = x[at];
    for (int64_t i = c.first, end; i < c.end; i = end) {
      if (i < columns.first || i >= columns.end) FN(take_columns)(w, x, z, r, i, &columns);
      end = c.end < columns.end ? c.end : columns.end;
      FN(take_best)
      (columns.best + (i - columns.first), columns.at + (i - columns.first), end - i, &best, &at);
    }
    y[o] = best;
    index[o] = (int64_t)at + LT_INDEX_BASE;
  }
}

/* Maxima of `n` windows of a row from window x0 on. */
static void FN(max_chunk)(const lt_Windows *w, const T *x, T *y, int64_t *index, FN(Span) z,
                          FN(Span) r, int64_t x0, int64_t n) {
  T best[CHUNK];
  int32_t at[CHUNK];
  for (int64_t i = 0; i < n; i++) {
    int64_t c = lt_window_inside((x0 + i) * w->stride[2] - w->padding[2], w->dilation[2]);
    best[i] = (T)-INFINITY;
    at[i] = (int32_t)((z.first * w->in[1] + r.first) * w->in[2] + c);
  }
  for (int64_t k = z.first; k < z.end; k += z.step)
    for (int64_t j = r.first; j < r.end; j += r.step) {
      int64_t row = (k * w->in[1] + j) * w->in[2];
      for (int64_t a = 0; a < w->window[2]; a++) {
        int64_t offset = a * w->dilation[2] - w->padding[2], low, high, s = w->stride[2];
        FN(inside)(w, offset, x0, x0 + n, &low, &high);
        if (low >= high) continue;
        int64_t from = row + low * s + offset;
        BY_STEP(TAKE_LARGER, s, x + from, (int32_t)from, high - low, best + (low - x0),
                at + (low - x0));
      }
    }
  memcpy(y, best, (size_t)n * sizeof(T));
  for (int64_t i = 0; i < n; i++) index[i] = (int64_t)at[i] + LT_INDEX_BASE;
}

/* Sets *even to windows of equal sizes, side by side, that are the same as adaptive ones; returns
 * false where those differ in size. */
static bool FN(are_even)(const lt_Windows *w, lt_Windows *even) {
  *even = *w;
  for (int d = 0; d < 3; d++) {
    if (w->window[d] != 0) continue;
    if (w->in[d] % w->out[d] != 0) return false;
    even->window[d] = even->stride[d] = w->in[d] / w->out[d];
    even->padding[d] = 0;
    even->dilation[d] = 1;
  }
  return w->in[0] * w->in[1] * w->in[2] < INT32_MAX;
}

static void FN(max_pool)(const lt_Windows *w, const T *x, T *y, int64_t *index, int64_t from,
                         int64_t to) {
  lt_Windows even;
  bool many = w->out[2] >= 8 && w->in[2] <= 4 * w->out[2]; /* windows in a row */
  if (w->window[2] == 0 && many && FN(are_even)(w, &even)) w = &even;
  FN(Row) at = FN(row_at)(w, from);
  for (int64_t row = from; row < to; row++, FN(next_row)(w, &at)) {
    FN(Span) r = FN(span)(w, 1, at.y), z = FN(span)(w, 0, at.z);
    const T *source = x + at.source;
    T *target = y + row * w->out[2];
    int64_t *indices = index + row * w->out[2];
    if (w->window[2] == 0) {
      FN(max_adaptive)(w, source, target, indices, z, r);
      continue;
    }
    for (int64_t i = 0; i < w->out[2]; i += CHUNK) FN(max_chunk)
    (w, source, target + i, indices + i, z, r, i, w->out[2] - i < CHUNK ? w->out[2] - i : CHUNK);
  }
}

/* Updates maxima by a row of elements, `s` apart. */
static inline __attribute__((always_inline)) void FN(keep_larger)(const T *x, int64_t s, int64_t n,
                                                                  T *best) {
  for (int64_t i = 0; i < n; i++) {
    T v = x[i * s];
    best[i] = v > best[i] || v != v ? v : best[i];
  }
}
#define KEEP_LARGER(s, x, n, best) FN(keep_larger)(x, s, n, best)
/* Returns whether all elements of all windows of a row are inside of the input. */
static inline bool FN(all_inside)(const lt_Windows *w) {
  return w->padding[2] == 0 && w->dilation[2] == 1 &&
         (w->out[2] - 1) * w->stride[2] + w->window[2] <= w->in[2];
}
/* Returns whether the windows of a row are pairs of neighbours, one after the other. */
static inline bool FN(are_pairs)(const lt_Windows *w) {
  return w->window[2] == 2 && w->stride[2] == 2 && FN(all_inside)(w);
}

/* Maxima of squares of two by two elements, of two rows. */
static inline void FN(max_squares)(const T *x, const T *x2, int64_t n, T *best) {
  for (int64_t i = 0; i < n; i++) {
    T b = x[2 * i], u = x[2 * i + 1], v = x2[2 * i], t = x2[2 * i + 1];
    b = u > b || u != u ? u : b;
    b = v > b || v != v ? v : b;
    best[i] = t > b || t != t ? t : b;
  }
}
/* Sums of squares of two by two elements. */
static inline void FN(sum_squares)(const T *x, const T *x2, int64_t n, T *sum) {
  for (int64_t i = 0; i < n; i++)
    sum[i] = (T)0 + x[2 * i] + x[2 * i + 1] + x2[2 * i] + x2[2 * i + 1]; /* 0 + -0 = 0 */
}

static inline __attribute__((always_inline)) T FN(larger)(T b, T v) {
  return v > b || v != v ? v : b;
}
/* Updates maxima by pairs of neighbours. */
static inline void FN(keep_largest)(const T *x, int64_t n, T *best) {
  for (int64_t i = 0; i < n; i++) best[i] = FN(larger)(FN(larger)(best[i], x[2 * i]), x[2 * i + 1]);
}
/* Sets y to maxima of n windows of a row; size and steps are constants. */
static inline __attribute__((always_inline)) void FN(max_windows)(const int64_t size,
                                                                  const int64_t s,
                                                                  const T *restrict x, int64_t n,
                                                                  T *restrict y) {
  for (int64_t i = 0; i < n; i++) {
    T b = x[i * s];
    for (int64_t a = 1; a < size; a++) b = FN(larger)(b, x[i * s + a]);
    y[i] = b;
  }
}
/* The sizes and steps that have functions of their own. */
#define EACH_WINDOW(DO)                                                                            \
  DO(2, 1) DO(2, 2) DO(3, 1) DO(3, 2) DO(3, 3) DO(4, 1) DO(4, 2) DO(4, 4) DO(5, 1) DO(5, 2) DO(8, 8)
#define MAX_WINDOWS(size, s)                                                                       \
  static void FN(max_windows_##size##_##s)(const T *x, int64_t n, T *y) {                          \
    FN(max_windows)(size, s, x, n, y);                                                             \
  }
EACH_WINDOW(MAX_WINDOWS)
typedef void (*FN(MaxWindows))(const T *x, int64_t n, T *y);

/* Returns the function above for these windows; NULL where there is none. */
static FN(MaxWindows) FN(max_windows_of)(const lt_Windows *w) {
#define RETURN_WINDOWS(size, s)                                                                    \
  if (w->window[2] == (size) && w->stride[2] == (s)) return FN(max_windows_##size##_##s);
  if (w->dilation[2] != 1) return NULL;
  EACH_WINDOW(RETURN_WINDOWS)
  return NULL;
}
#undef EACH_WINDOW
#undef MAX_WINDOWS
#undef RETURN_WINDOWS

/* The windows of a row, from `low` to `high`, whose elements are all inside of the input. */
typedef struct FN(Inner) {
  FN(MaxWindows) largest; /* NULL: there is no function for them */
  int64_t low, high;
} FN(Inner);

static FN(Inner) FN(inner_of)(const lt_Windows *w) {
  FN(Inner) p = {FN(max_windows_of)(w), 0, 0};
  if (!p.largest) return p;
  int64_t s = w->stride[2], end = w->in[2] + w->padding[2] - w->window[2];
  p.low = FN(quotient)(w->padding[2] + s - 1, s);
  p.high = end < 0 ? 0 : FN(quotient)(end, s) + 1;
  if (p.high > w->out[2]) p.high = w->out[2];
  if (p.high < p.low) p.largest = NULL;
  return p;
}

/* Sets y to maxima of the windows from..to, parts of which are outside of the input. */
static inline void FN(max_edge)(const lt_Windows *w, const T *x, int64_t from, int64_t to, T *y) {
  for (int64_t i = from; i < to; i++) {
    T b = (T)-INFINITY;
    int64_t at = i * w->stride[2] - w->padding[2], end = at + w->window[2];
    for (at = at < 0 ? 0 : at; at < end && at < w->in[2]; at++) b = FN(larger)(b, x[at]);
    y[i] = b;
  }
}

/* Does so for all windows of a row of the input. */
static inline void FN(max_inner)(const lt_Windows *w, const FN(Inner) * p, const T *x, T *y) {
  FN(max_edge)(w, x, 0, p->low, y);
  p->largest(x + p->low * w->stride[2] - w->padding[2], p->high - p->low, y + p->low);
  FN(max_edge)(w, x, p->high, w->out[2], y);
}

/* Updates maxima of the windows of a row: one element of all windows after the other. */
static inline void FN(max_row)(const lt_Windows *w, const T *x, T *y) {
  int64_t s = w->stride[2], low, high;
  for (int64_t a = 0; a < w->window[2]; a++) {
    int64_t offset = a * w->dilation[2] - w->padding[2];
    FN(inside)(w, offset, 0, w->out[2], &low, &high);
    if (low < high) BY_STEP(KEEP_LARGER, s, x + low * s + offset, high - low, y + low);
  }
}

/* Returns whether each row of windows is computed from the row of the input with its number. */
static bool FN(are_lines)(const lt_Windows *w) {
  for (int d = 0; d < 2; d++)
    if (w->window[d] != 1 || w->padding[d] != 0 || w->in[d] != w->out[d]) return false;
  return true;
}

/* Maxima of such rows. */
static void FN(max_lines)(const lt_Windows *w, const FN(Inner) * p, const T *x, T *y, int64_t from,
                          int64_t to) {
  int64_t n = w->out[2], length = w->in[2];
  if (FN(all_inside)(w) && length == n * w->stride[2]) /* they are one */
    p->largest(x + from * length, (to - from) * n, y + from * n);
  else
    for (int64_t row = from; row < to; row++) FN(max_inner)(w, p, x + row * length, y + row * n);
}

static void FN(max_values)(const lt_Windows *w, const T *x, T *y, int64_t from, int64_t to) {
  const FN(Inner) inner = FN(inner_of)(w);
  if (inner.largest && FN(are_lines)(w)) {
    FN(max_lines)(w, &inner, x, y, from, to);
    return;
  }
  bool pairs = FN(are_pairs)(w);
  FN(Row) at = FN(row_at)(w, from);
  for (int64_t row = from; row < to; row++, FN(next_row)(w, &at)) {
    FN(Span) r = FN(span)(w, 1, at.y), z = FN(span)(w, 0, at.z);
    T *target = y + row * w->out[2];
    if (pairs && z.end - z.first == 1 && r.end - r.first == 2) {
      const T *input = x + at.source + (z.first * w->in[1] + r.first) * w->in[2];
      FN(max_squares)(input, input + w->in[2], w->out[2], target);
      continue;
    }
    for (int64_t i = 0; i < w->out[2]; i++) target[i] = (T)-INFINITY;
    for (int64_t k = z.first; k < z.end; k += z.step)
      for (int64_t j = r.first; j < r.end; j += r.step) {
        const T *input = x + at.source + (k * w->in[1] + j) * w->in[2];
        if (pairs)
          FN(keep_largest)(input, w->out[2], target);
        else /* several short loops, whose ends have no branches by values, are faster here */
          FN(max_row)(w, input, target);
      }
  }
}

/* Divides the sums of the windows of a row by their numbers of elements; `rows`: the number in the
 * dims before the last. */
static inline void FN(divide)(const lt_Windows *w, const int32_t *columns, int64_t rows,
                              const T *sum, T *y, int64_t n) {
  if (w->divisor != 0) {
    for (int64_t i = 0; i < n; i++) y[i] = sum[i] / (T)w->divisor;
  } else {
    for (int64_t i = 0; i < n; i++) y[i] = sum[i] / (T)((int32_t)rows * columns[i]);
  }
}

/* Adds pairs of neighbours to sums. */
static inline void FN(add_pairs)(const T *x, int64_t n, T *sum) {
  for (int64_t i = 0; i < n; i++) sum[i] = sum[i] + x[2 * i] + x[2 * i + 1];
}
/* Returns the sum of `total` and n elements; n is small most often. */
static inline T FN(add_few)(const T *x, int64_t n, T total) {
  if (n == 2) return total + x[0] + x[1];
  if (n == 3) return total + x[0] + x[1] + x[2];
  if (n == 4) return total + x[0] + x[1] + x[2] + x[3];
  for (; n >= 4; n -= 4, x += 4) total = total + x[0] + x[1] + x[2] + x[3];
  for (int64_t c = 0; c < n; c++) total += x[c];
  return total;
}
/* Adds the elements of spans of a row of the input to sums. */
static inline void FN(add_spans)(const T *x, const lt_PoolSpan *spans, int64_t n, T *sum) {
  for (int64_t i = 0; i < n; i++)
    sum[i] = FN(add_few)(x + spans[i].first, spans[i].end - spans[i].first, sum[i]);
}
/* Sets sums to those of n windows of a row, one after the other. */
static inline void FN(sum_spans)(const lt_Windows *w, const T *x, lt_PoolSpan z, lt_PoolSpan r,
                                 const lt_PoolSpan *spans, int64_t n, T *sum) {
  for (int64_t i = 0; i < n; i++) {
    T total = 0;
    for (int64_t k = z.first; k < z.end; k++)
      for (int64_t j = r.first; j < r.end; j++)
        total = FN(add_few)(x + (k * w->in[1] + j) * w->in[2] + spans[i].first,
                            spans[i].end - spans[i].first, total);
    sum[i] = total;
  }
}

/* Adds a row of the input to the sums of n windows of a row, from window x0 on. */
static inline void FN(add_input)(const lt_Windows *w, const T *input, int64_t x0, int64_t n,
                                 T *sum) {
  int64_t s = w->stride[2], low, high;
  for (int64_t a = 0; a < w->window[2]; a++) {
    int64_t offset = a - w->padding[2];
    FN(inside)(w, offset, x0, x0 + n, &low, &high);
    if (low >= high) continue;
    BY_STEP(ADD_ROW, s, input + low * s + offset, high - low, sum + (low - x0));
  }
}

static void FN(avg_pool)(const lt_Windows *w, const lt_PoolTable *t, const T *x, T *y, int64_t from,
                         int64_t to) {
  bool pairs = FN(are_pairs)(w);
  bool by_span = w->window[2] == 0 || w->stride[2] > 2 || w->out[2] < 16; /* slow in vectors */
  /* long sums are faster beside each other */
  bool narrow = w->window[2] == 0 ? w->in[2] <= 8 * w->out[2] : w->window[2] <= 8;
  FN(Row) at = FN(row_at)(w, from);
  for (int64_t row = from; row < to; row++, FN(next_row)(w, &at)) {
    lt_PoolSpan z = t->dim[0][at.z], r = t->dim[1][at.y];
    for (int64_t x0 = 0; x0 < w->out[2]; x0 += CHUNK) {
      int64_t n = w->out[2] - x0 < CHUNK ? w->out[2] - x0 : CHUNK;
      T sum[CHUNK];
      if (pairs && z.end - z.first == 1 && r.end - r.first == 2) {
        const T *input = x + at.source + (z.first * w->in[1] + r.first) * w->in[2] + 2 * x0;
        FN(sum_squares)(input, input + w->in[2], n, sum);
      } else if (by_span && narrow && !pairs) {
        FN(sum_spans)(w, x + at.source, z, r, t->dim[2] + x0, n, sum);
      } else {
        for (int64_t i = 0; i < n; i++) sum[i] = 0;
        for (int64_t k = z.first; k < z.end; k++)
          for (int64_t j = r.first; j < r.end; j++) {
            const T *input = x + at.source + (k * w->in[1] + j) * w->in[2];
            if (pairs)
              FN(add_pairs)(input + 2 * x0, n, sum);
            else if (by_span)
              FN(add_spans)(input, t->dim[2] + x0, n, sum);
            else
              FN(add_input)(w, input, x0, n, sum);
          }
      }
      FN(divide)(w, t->columns + x0, z.count * r.count, sum, y + row * w->out[2] + x0, n);
    }
  }
}

/* Adds the gradients `g` of n windows of a row, from window x0 on, to a row of the input. */
static inline void FN(spread)(const lt_Windows *w, const lt_PoolTable *t, T *line, const T *g,
                              int64_t x0, int64_t n) {
  int64_t s = w->stride[2], low, high;
  if (w->window[2] == 0) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t c = t->dim[2][x0 + i].first; c < t->dim[2][x0 + i].end; c++) line[c] += g[i];
    return;
  }
  if (FN(are_pairs)(w)) {
    line += 2 * x0;
    for (int64_t i = 0; i < n; i++) {
      line[2 * i] += g[i];
      line[2 * i + 1] += g[i];
    }
    return;
  }
  for (int64_t a = w->window[2] - 1; a >= 0; a--) { /* so that windows are added in their order */
    int64_t offset = a - w->padding[2];
    FN(inside)(w, offset, x0, x0 + n, &low, &high);
    if (low >= high) continue;
    BY_STEP(ADD_TO_ROW, s, line + low * s + offset, high - low, g + (low - x0));
  }
}

static void FN(avg_pool_backward)(const lt_Windows *w, const lt_PoolTable *t, const T *g, T *dx,
                                  int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], rows = w->out[0] * w->out[1];
  memset(dx + from * plane, 0, (size_t)((to - from) * plane) * sizeof(T));
  FN(Row) at = {.source = from * plane};
  for (int64_t row = from * rows; row < to * rows; row++, FN(next_row)(w, &at)) {
    lt_PoolSpan z = t->dim[0][at.z], r = t->dim[1][at.y];
    T *target = dx + at.source, part[CHUNK];
    for (int64_t x0 = 0; x0 < w->out[2]; x0 += CHUNK) {
      int64_t n = w->out[2] - x0 < CHUNK ? w->out[2] - x0 : CHUNK;
      FN(divide)(w, t->columns + x0, z.count * r.count, g + row * w->out[2] + x0, part, n);
      for (int64_t k = z.first; k < z.end; k++)
        for (int64_t j = r.first; j < r.end; j++)
          FN(spread)(w, t, target + (k * w->in[1] + j) * w->in[2], part, x0, n);
    }
  }
}

static void FN(max_pool_backward)(const lt_Windows *w, const T *g, const int64_t *index, T *dx,
                                  int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], n = w->out[0] * w->out[1] * w->out[2];
  for (int64_t k = from; k < to; k++) {
    T *target = dx + k * plane;
    memset(target, 0, (size_t)plane * sizeof(T));
    for (int64_t i = k * n; i < (k + 1) * n; i++) {
      uint64_t at = (uint64_t)(index[i] - LT_INDEX_BASE);
      if (at < (uint64_t)plane) target[at] += g[i];
    }
  }
}

static void FN(im2col)(const lt_Windows *w, const T *x, T *y, int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], s = w->stride[2], low, high;
  for (int64_t row = from; row < to; row++) {
    int64_t a = row % w->window[2], b = row / w->window[2] % w->window[1],
            c = row / w->window[2] / w->window[1] % w->window[0],
            offset = a * w->dilation[2] - w->padding[2];
    const T *source = x + row / w->window[2] / w->window[1] / w->window[0] * plane;
    T *target = y + row * w->out[0] * w->out[1] * w->out[2];
    FN(inside)(w, offset, 0, w->out[2], &low, &high);
    for (int64_t o = 0; o < w->out[0] * w->out[1]; o++, target += w->out[2]) {
      int64_t k = o / w->out[1] * w->stride[0] - w->padding[0] + c * w->dilation[0],
              j = o % w->out[1] * w->stride[1] - w->padding[1] + b * w->dilation[1];
      bool none = k < 0 || k >= w->in[0] || j < 0 || j >= w->in[1] || low >= high;
      memset(target, 0, (size_t)(none ? w->out[2] : low) * sizeof(T));
      if (none) continue;
      const T *line = source + (k * w->in[1] + j) * w->in[2] + offset;
      if (s == 1)
        memcpy(target + low, line + low, (size_t)(high - low) * sizeof(T));
      else
        for (int64_t i = low; i < high; i++) target[i] = line[i * s];
      memset(target + high, 0, (size_t)(w->out[2] - high) * sizeof(T));
    }
  }
}

/* Planes from..to. */
static void FN(col2im)(const lt_Windows *w, const T *y, T *x, int64_t from, int64_t to) {
  int64_t plane = w->in[0] * w->in[1] * w->in[2], s = w->stride[2], low, high;
  int64_t kernel = w->window[0] * w->window[1] * w->window[2];
  memset(x + from * plane, 0, (size_t)((to - from) * plane) * sizeof(T));
  for (int64_t row = from * kernel; row < to * kernel; row++) {
    int64_t a = row % w->window[2], b = row / w->window[2] % w->window[1],
            c = row / w->window[2] / w->window[1] % w->window[0],
            offset = a * w->dilation[2] - w->padding[2];
    T *target = x + row / kernel * plane;
    const T *source = y + row * w->out[0] * w->out[1] * w->out[2];
    FN(inside)(w, offset, 0, w->out[2], &low, &high);
    for (int64_t o = 0; o < w->out[0] * w->out[1]; o++, source += w->out[2]) {
      int64_t k = o / w->out[1] * w->stride[0] - w->padding[0] + c * w->dilation[0],
              j = o % w->out[1] * w->stride[1] - w->padding[1] + b * w->dilation[1];
      if (k < 0 || k >= w->in[0] || j < 0 || j >= w->in[1] || low >= high) continue;
      T *line = target + (k * w->in[1] + j) * w->in[2] + low * s + offset;
      BY_STEP(ADD_TO_ROW, s, line, high - low, source + low);
    }
  }
}

static void FN(pad)(const lt_Pad *p, const T *x, T *y, int64_t from, int64_t to) {
  int64_t in = p->in[2], out = p->out[2], before = p->before[2];
  int64_t lead = before < 0 ? 0 : before < out ? before : out, skip = before < 0 ? -before : 0;
  int64_t middle = in - skip < out - lead ? in - skip : out - lead;
  if (middle < 0) middle = 0;
  int64_t ends[CHUNK], tail = out - lead - middle; /* where the elements at the ends come from */
  bool listed = lead + tail <= CHUNK;
  for (int64_t o = 0; o < lead && listed; o++) ends[o] = lt_pad_place(p, 2, o);
  for (int64_t o = 0; o < tail && listed; o++)
    ends[lead + o] = lt_pad_place(p, 2, lead + middle + o);
  int64_t row = from % p->out[1], plane = from / p->out[1];
  for (int64_t line = from; line < to; line++) {
    int64_t i = lt_pad_place(p, 1, row), k = lt_pad_place(p, 0, plane % p->out[0]);
    const T *source = x + ((plane / p->out[0] * p->in[0] + k) * p->in[1] + i) * in;
    T *target = y + line * out, *after = target + lead + middle;
    for (int64_t o = 0; o < lead; o++) target[o] = source[listed ? ends[o] : lt_pad_place(p, 2, o)];
    lt_copy_bytes(target + lead, source + skip, (size_t)middle * sizeof(T));
    for (int64_t o = 0; o < tail; o++)
      after[o] = source[listed ? ends[lead + o] : lt_pad_place(p, 2, lead + middle + o)];
    if (++row == p->out[1]) row = 0, plane++;
  }
}

#undef CHUNK
#undef COLUMNS
#undef BY_STEP
#undef TAKE_LARGER
#undef KEEP_LARGER
#undef ADD_ROW
#undef ADD_TO_ROW
