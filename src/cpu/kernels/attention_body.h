/* attention_body.h: the loops of attention.h for one float type. attention.c defines T, its suffix
 * F and dtype DTYPE, the vectors V (VM: masks) with V_N elements, V_LOAD, V_MADD, V_JOIN, EXP,
 * LOG and TRANSPOSE_FOUR, and includes this file.
 *
 * A panel is a matrix whose rows are two vectors, WIDTH elements: one for each of WIDTH queries.
 * TILE queries are TILE / WIDTH panels. Queries behind the last one are zeros. */
#define FN(name) LT_PASTE(name, F)
#define WIDTH    (2 * V_N)
#define PANELS   (TILE / WIDTH)
#define STEP     (V_N < 4 ? 4 : V_N) /* to which sizes are rounded; see TRANSPOSE_FOUR */

LT_LANES V FN(all)(T x) { return x - (V){0}; } /* a sum would change -0 */
LT_LANES void FN(store)(T *to, V v) { memcpy(to, &v, sizeof v); }
LT_LANES V FN(larger)(V a, V b) { return LT_CHOOSE(V, VM, b > a, a, b); }

/* ---- products -------------------------------------------------------------------------------- */

/* Adds to sum[r] for r < rows the sum over i < n of x[r * row + i * step] times the vectors at y +
 * i * ys. `rows` and `vectors`, 1 or 2, are constants where it is called. */
LT_LANES void FN(multiply)(int rows, int vectors, const T *x, int64_t row, int64_t step, const T *y,
                           int64_t ys, int64_t n, V (*sum)[2]) {
  for (int64_t i = 0; i < n; i++) {
    V y0 = V_LOAD(y + i * ys), y1 = vectors > 1 ? V_LOAD(y + i * ys + V_N) : y0;
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++) {
      V a = FN(all)(x[r * row + i * step]);
      sum[r][0] = V_MADD(a, y0, sum[r][0]);
      if (vectors > 1) sum[r][1] = V_MADD(a, y1, sum[r][1]);
    }
  }
}

/* Runs DO(rows, r) for rows r .. r + rows - 1 that together are 0 .. n - 1. */
#define FOR_ROWS(n, DO)                                                                            \
  do {                                                                                             \
    int64_t r = 0;                                                                                 \
    for (; r + TILE_ROWS <= (n); r += TILE_ROWS) DO(TILE_ROWS, r);                                 \
    if (TILE_ROWS > 4 && r + 4 <= (n)) {                                                           \
      DO(4, r);                                                                                    \
      r += 4;                                                                                      \
    }                                                                                              \
    if (r + 2 <= (n)) {                                                                            \
      DO(2, r);                                                                                    \
      r += 2;                                                                                      \
    }                                                                                              \
    if (r < (n)) DO(1, r);                                                                         \
  } while (0)

/* Sets panel s, of `rows` rows, to the product of x, rows of n elements, and panel y. */
LT_LANES void FN(score_rows)(int rows, const T *x, int64_t n, const T *y, T *s) {
  V sum[TILE_ROWS][2];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (V){0};
  FN(multiply)(rows, 2, x, n, 1, y, WIDTH, n, sum);
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    FN(store)(s + r * WIDTH, sum[r][0]);
    FN(store)(s + r * WIDTH + V_N, sum[r][1]);
  }
}
static void FN(score)(const T *x, int64_t n, int64_t rows, const T *y, T *s) {
#define DO(count, r) FN(score_rows)(count, x + (r)*n, n, y, s + (r)*WIDTH)
  FOR_ROWS(rows, DO);
#undef DO
}

/* Sets panel s, of `columns` rows, to s * factor + x^T p, with `rows` rows of x and of panel p. */
LT_LANES void FN(gather_rows)(int columns, const T *x, int64_t row, int64_t rows, const T *p,
                              const V *factor, T *s) {
  V sum[TILE_ROWS][2];
#pragma GCC unroll 8
  for (int r = 0; r < columns; r++) {
    sum[r][0] = V_LOAD(s + r * WIDTH) * factor[0];
    sum[r][1] = V_LOAD(s + r * WIDTH + V_N) * factor[1];
  }
  FN(multiply)(columns, 2, x, 1, row, p, WIDTH, rows, sum);
#pragma GCC unroll 8
  for (int r = 0; r < columns; r++) {
    FN(store)(s + r * WIDTH, sum[r][0]);
    FN(store)(s + r * WIDTH + V_N, sum[r][1]);
  }
}
static void FN(gather)(const T *x, int64_t columns, int64_t rows, const T *p, const V *factor,
                       T *s) {
#define DO(count, r) FN(gather_rows)(count, x + (r), columns, rows, p, factor, s + (r)*WIDTH)
  FOR_ROWS(columns, DO);
#undef DO
}

/* Adds the first n elements of v. */
LT_LANES void FN(add_part)(T *to, V v, int64_t n) {
  if (n >= V_N) {
    FN(store)(to, V_LOAD(to) + v);
    return;
  }
  T part[V_N];
  FN(store)(part, v);
  for (int64_t i = 0; i < n; i++) to[i] += part[i];
}

/* Adds to `rows` rows of n elements, of which `width` are computed, the product of panels first ..
 * last - 1 of p, each of TILE rows, and y, with one row for each query. */
LT_LANES void FN(spread_rows)(int rows, int vectors, const T *p, int first, int last, const T *y,
                              int64_t ys, T *to, int64_t n, int64_t width) {
  V sum[TILE_ROWS][2];
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (V){0};
  for (int k = first; k < last; k++)
    FN(multiply)(rows, vectors, p + k * WIDTH * TILE, WIDTH, 1, y + k * WIDTH * ys, ys, WIDTH, sum);
#pragma GCC unroll 8
  for (int r = 0; r < rows; r++) {
    FN(add_part)(to + r * n, sum[r][0], width);
    if (vectors > 1) FN(add_part)(to + r * n + V_N, sum[r][1], width - V_N);
  }
}
static void FN(spread)(const T *p, int first, int last, int64_t rows, const T *y, int64_t ys, T *to,
                       int64_t n) {
  for (int64_t j = 0; j < n; j += WIDTH) {
#define TWO(count, r)                                                                              \
  FN(spread_rows)(count, 2, p + (r)*WIDTH, first, last, y + j, ys, to + (r)*n + j, n, n - j)
#define ONE(count, r)                                                                              \
  FN(spread_rows)(count, 1, p + (r)*WIDTH, first, last, y + j, ys, to + (r)*n + j, n, n - j)
    if (n - j > V_N)
      FOR_ROWS(rows, TWO);
    else
      FOR_ROWS(rows, ONE);
#undef TWO
#undef ONE
  }
}

/* ---- rows and panels ------------------------------------------------------------------------- */

/* Transposes a matrix with rows of `row` elements to one with rows of `column`. Both sizes are
 * multiples of 4. */
static void FN(transpose)(const T *from, int64_t row, int64_t rows, int64_t columns, T *to,
                          int64_t column) {
  for (int64_t j = 0; j < columns; j += 4)
    for (int64_t i = 0; i < rows; i += 4)
      TRANSPOSE_FOUR(from + i * row + j, row, to + j * column + i, column);
}

/* Copies rows from .. from + n - 1, times `scale`, to rows of `width` elements, and zeros behind
 * the columns and in rows n .. TILE - 1; then to panels. */
static void FN(load_queries)(const lt_HeadMatrix *m, int64_t from, int64_t n, int64_t columns,
                             T scale, T *rows, int64_t width, T *panels) {
  for (int64_t i = 0; i < n; i++) {
    T *to = rows + i * width;
    LT_PASTE(read, F)(m, from + i, columns, scale, to);
    for (int64_t j = columns; j < width; j++) to[j] = 0;
  }
  memset(rows + n * width, 0, (size_t)((TILE - n) * width) * sizeof(T));
  for (int64_t p = 0; p * WIDTH < n; p++)
    FN(transpose)(rows + p * WIDTH * width, width, WIDTH, width, panels + p * WIDTH * width, WIDTH);
}

/* Returns rows from .. from + n - 1 as dense memory: the matrix itself or a copy in `copy`. */
static const T *FN(dense)(const lt_HeadMatrix *m, int64_t from, int64_t n, int64_t columns,
                          T *copy) {
  if (m->dtype == DTYPE && m->column == 1 && m->row == columns)
    return (const T *)m->data + from * columns;
  for (int64_t i = 0; i < n; i++) LT_PASTE(read, F)(m, from + i, columns, 1, copy + i * columns);
  return copy;
}

/* Copies n elements of a row of the mask as numbers that are added to scores. */
static void FN(read_mask)(const lt_HeadMatrix *m, int64_t row, int64_t from, int64_t n, T *to) {
  if (m->dtype != LT_bool) {
    lt_HeadMatrix part = *m;
    part.data = (const T *)m->data + from * m->column;
    LT_PASTE(read, F)(&part, row, n, 1, to);
    return;
  }
  const uint8_t *x = (const uint8_t *)m->data + row * m->row + from * m->column;
  int64_t step = m->column;
  for (int64_t i = 0; i < n; i++) to[i] = x[i * step] ? 0 : -(T)INFINITY;
}

/* Masks the scores of a panel: of WIDTH queries from `query` on and n keys from `key` on. `more`
 * has space for two tiles of WIDTH x TILE. */
static void FN(mask_scores)(const lt_Head *h, int64_t query, int64_t key, int64_t n, T *s,
                            T *more) {
  if (h->mask.data) {
    T *rows = more, *panel = more + WIDTH * TILE;
    for (int64_t w = 0; w < WIDTH; w++) {
      int64_t row = query + w < h->queries ? query + w : h->queries - 1;
      if (w > 0 && (h->mask.row == 0 || row == query + w - 1))
        memcpy(rows + w * TILE, rows + (w - 1) * TILE, (size_t)n * sizeof(T));
      else
        FN(read_mask)(&h->mask, row, key, n, rows + w * TILE);
    }
    FN(transpose)(rows, TILE, WIDTH, ROUND(n, 4), panel, WIDTH);
    for (int64_t i = 0; i < n * WIDTH; i++)
      s[i] = panel[i] == -(T)INFINITY ? panel[i] : s[i] + panel[i];
  }
  if (!h->causal || key + n - 1 <= query) return;
  for (int64_t r = 0; r < n; r++) {
    int hidden = (int)(key + r - query); /* queries before the key's own */
    for (int w = 0; w < WIDTH; w++) s[r * WIDTH + w] = w < hidden ? -(T)INFINITY : s[r * WIDTH + w];
  }
}

/* Returns how many of n keys from `key` on the WIDTH queries from `query` on have. */
static int64_t FN(visible)(const lt_Head *h, int64_t query, int64_t key, int64_t n) {
  int64_t most = query + WIDTH - key;
  return !h->causal || most > n ? n : most < 0 ? 0 : most;
}

/* ---- forward, panels ------------------------------------------------------------------------- */

/* Replaces scores s of a panel by e^(s - base), where base is the largest score of each query so
 * far, and sum the sum of these exponentials. Both are updated; factor is what earlier sums are
 * multiplied by. */
static void FN(exponentials)(T *s, int64_t n, T *base, T *sum, V *factor) {
  V m0 = FN(all)(-(T)INFINITY), m1 = m0, m2 = m0, m3 = m0, s0 = {0}, s1 = s0;
  int64_t r = 0;
  for (; r + 2 <= n; r += 2) {
    m0 = FN(larger)(m0, V_LOAD(s + r * WIDTH));
    m1 = FN(larger)(m1, V_LOAD(s + r * WIDTH + V_N));
    m2 = FN(larger)(m2, V_LOAD(s + r * WIDTH + WIDTH));
    m3 = FN(larger)(m3, V_LOAD(s + r * WIDTH + WIDTH + V_N));
  }
  if (r < n) {
    m0 = FN(larger)(m0, V_LOAD(s + r * WIDTH));
    m1 = FN(larger)(m1, V_LOAD(s + r * WIDTH + V_N));
  }
  T m[WIDTH], f[WIDTH];
  FN(store)(m, FN(larger)(m0, m2));
  FN(store)(m + V_N, FN(larger)(m1, m3));
#pragma omp simd
  for (int w = 0; w < WIDTH; w++) {
    T top = m[w] > base[w] ? m[w] : base[w];
    T less = top == -(T)INFINITY ? 0 : top; /* no key yet: -inf - -inf would be NaN */
    f[w] = EXP(base[w] - less);
    base[w] = top;
    m[w] = less;
  }
  for (r = 0; r < n; r++) {
    T *row = s + r * WIDTH;
#pragma omp simd
    for (int w = 0; w < WIDTH; w++) {
      row[w] = EXP(row[w] - m[w]);
    }
  }
  for (r = 0; r < n; r++) {
    s0 += V_LOAD(s + r * WIDTH);
    s1 += V_LOAD(s + r * WIDTH + V_N);
  }
  factor[0] = V_LOAD(f), factor[1] = V_LOAD(f + V_N);
  FN(store)(sum, V_LOAD(sum) * factor[0] + s0);
  FN(store)(sum + V_N, V_LOAD(sum + V_N) * factor[1] + s1);
}

/* The scratch memory of `forward`; sizes in elements. */
typedef struct FN(Forward) {
  int64_t size, value_size; /* rounded to STEP */
  T *rows, *q, *out, *scores, *mask, *k, *v, *base, *sum;
} FN(Forward);

/* Divides memory of this size, or, if it is NULL, returns only the size in bytes. */
static size_t FN(forward_layout)(const lt_Head *h, T *memory, FN(Forward) * f) {
  f->size = ROUND(h->size, STEP), f->value_size = ROUND(h->value_size, STEP);
  int64_t widest = f->size > f->value_size ? f->size : f->value_size, at = 0;
#define PART(name, n)                                                                              \
  f->name = memory ? memory + at : NULL;                                                           \
  at += ROUND(n, 64 / (int)sizeof(T));
  PART(rows, TILE * widest)
  PART(q, TILE * f->size)
  PART(out, TILE * f->value_size)
  PART(scores, WIDTH * TILE)
  PART(mask, 2 * WIDTH * TILE)
  PART(k, TILE * h->size)
  PART(v, TILE * h->value_size)
  PART(base, TILE)
  PART(sum, TILE)
  return (size_t)at * sizeof(T);
}

static size_t FN(forward_bytes)(const lt_Head *h) {
  FN(Forward) f;
  return FN(forward_layout)(h, NULL, &f);
}

/* Adds n keys from `key` on to the results of panel p, whose first query is `query`. */
static void FN(add_keys)(const lt_Head *h, FN(Forward) * f, int p, int64_t query, int64_t key,
                         int64_t n, const T *k, const T *v) {
  V factor[2];
  FN(score)(k, h->size, n, f->q + p * WIDTH * f->size, f->scores);
  FN(mask_scores)(h, query, key, n, f->scores, f->mask);
  FN(exponentials)(f->scores, n, f->base + p * WIDTH, f->sum + p * WIDTH, factor);
  FN(gather)(v, h->value_size, n, f->scores, factor, f->out + p * WIDTH * f->value_size);
}

/* Divides the results of panel p by the sums, and stores those of n queries from `query` on. */
static void FN(store_results)(const lt_Head *h, FN(Forward) * f, int p, int64_t query, int64_t n) {
  T *base = f->base + p * WIDTH, *sum = f->sum + p * WIDTH;
  FN(transpose)
  (f->out + p * WIDTH * f->value_size, WIDTH, f->value_size, WIDTH, f->rows, f->value_size);
  for (int64_t i = 0; i < n; i++) {
    T inverse = sum[i] == 0 ? 0 : 1 / sum[i], *out = (T *)h->out + (query + i) * h->value_size;
    for (int64_t j = 0; j < h->value_size; j++) out[j] = f->rows[i * f->value_size + j] * inverse;
    ((T *)h->lse)[query + i] = base[i] + LOG(sum[i]);
  }
}

/* ---- forward, few queries -------------------------------------------------------------------- */

/* Fewer queries would leave most lanes of a panel empty: then lanes are elements of the rows of key
 * and value. */
#define FEW (V_N / 2)

/* Returns the sum of the elements of v. */
LT_LANES T FN(total)(V v) {
  V v_ = v;
  V_JOIN(PLUS)
  return v_[0];
}

/* Starts to load n elements, which are used next, into the cache. */
LT_LANES void FN(prefetch)(const T *x, int64_t n) {
  for (int64_t i = 0; i < n; i += 64 / (int)sizeof(T)) __builtin_prefetch(x + i);
}

/* Sets s[r] to the product of q and row r of k, for n rows of `size` elements. `next` are the rows
 * of `next_size` elements that are used next. */
static void FN(row_scores)(const T *k, int64_t size, int64_t n, const T *q, T *s, const T *next,
                           int64_t next_size) {
  for (int64_t r = 0; r < n; r++) {
    FN(prefetch)(next + r * next_size, next_size);
    const T *row = k + r * size;
    V sum = {0}, more = {0};
    int64_t i = 0;
    for (; i + WIDTH <= size; i += WIDTH) {
      sum = V_MADD(V_LOAD(row + i), V_LOAD(q + i), sum);
      more = V_MADD(V_LOAD(row + i + V_N), V_LOAD(q + i + V_N), more);
    }
    T rest = 0;
    if (i + V_N <= size) {
      sum = V_MADD(V_LOAD(row + i), V_LOAD(q + i), sum);
      i += V_N;
    }
    for (; i < size; i++) rest += row[i] * q[i];
    s[r] = FN(total)(sum + more) + rest;
  }
}

/* Sets out to out * factor + p^T v, for n rows of `size` elements. */
static void FN(row_values)(const T *v, int64_t size, int64_t n, const T *p, T factor, T *out,
                           const T *next, int64_t next_size) {
  for (int64_t i = 0; i < size; i++) out[i] *= factor;
  int64_t r = 0, whole = size / V_N * V_N;
  for (; r + 4 <= n; r += 4) {
    const T *row = v + r * size;
    FN(prefetch)(next + r * next_size, 4 * next_size);
    V p0 = FN(all)(p[r]), p1 = FN(all)(p[r + 1]), p2 = FN(all)(p[r + 2]), p3 = FN(all)(p[r + 3]);
    for (int64_t i = 0; i < whole; i += V_N) {
      V a = V_MADD(p0, V_LOAD(row + i), V_LOAD(out + i)), b = p2 * V_LOAD(row + 2 * size + i);
      a = V_MADD(p1, V_LOAD(row + size + i), a);
      b = V_MADD(p3, V_LOAD(row + 3 * size + i), b);
      FN(store)(out + i, a + b);
    }
    for (int64_t i = whole; i < size; i++)
      for (int64_t j = 0; j < 4; j++) out[i] += p[r + j] * row[j * size + i];
  }
  for (; r < n; r++)
    for (int64_t i = 0; i < size; i++) out[i] += p[r] * v[r * size + i];
}

/* Replaces scores by exponentials, as `exponentials` does, for one query; returns the factor. */
static T FN(row_exponentials)(T *s, int64_t n, T *base, T *sum) {
  T top = -(T)INFINITY, total = 0;
  for (int64_t r = 0; r < n; r++) top = s[r] > top ? s[r] : top;
  top = top > *base ? top : *base;
  T less = top == -(T)INFINITY ? 0 : top, factor = EXP(*base - less);
  for (int64_t r = n; r < TILE; r++) s[r] = -(T)INFINITY;
#pragma omp simd
  for (int r = 0; r < TILE; r++) {
    s[r] = EXP(s[r] - less);
  }
  for (int64_t r = 0; r < TILE; r += V_N) total += FN(total)(V_LOAD(s + r));
  *base = top;
  *sum = *sum * factor + total;
  return factor;
}

/* Adds n keys from `key` on to the result of query `query`, row i of f->rows and f->out. */
static void FN(add_keys_to_row)(const lt_Head *h, FN(Forward) * f, int64_t i, int64_t query,
                                int64_t key, int64_t n, const T *k, const T *v) {
  T *s = f->scores;
  if (h->causal && query - key + 1 < n) n = query - key + 1;
  if (n <= 0) return;
  FN(row_scores)(k, h->size, n, f->rows + i * f->size, s, v, h->value_size);
  if (h->mask.data) {
    FN(read_mask)(&h->mask, query, key, n, f->mask);
    for (int64_t r = 0; r < n; r++)
      s[r] = f->mask[r] == -(T)INFINITY ? f->mask[r] : s[r] + f->mask[r];
  }
  T factor = FN(row_exponentials)(s, n, f->base + i, f->sum + i);
  int64_t more = key + 2 * TILE <= h->keys ? h->size : 0; /* the next tile is complete */
  FN(row_values)(v, h->value_size, n, s, factor, f->out + i * f->value_size, k + more * TILE, more);
}

/* Divides the result of query `query`, row i, by the sum, and stores it. */
static void FN(store_row)(const lt_Head *h, FN(Forward) * f, int64_t i, int64_t query) {
  T inverse = f->sum[i] == 0 ? 0 : 1 / f->sum[i], *out = (T *)h->out + query * h->value_size;
  for (int64_t j = 0; j < h->value_size; j++) out[j] = f->out[i * f->value_size + j] * inverse;
  ((T *)h->lse)[query] = f->base[i] + LOG(f->sum[i]);
}

/* ---- forward --------------------------------------------------------------------------------- */

static void FN(forward)(const lt_Head *h, int64_t from, int64_t n) {
  FN(Forward) f;
  bool few = h->queries <= FEW;
  FN(forward_layout)(h, h->scratch, &f);
  FN(load_queries)(&h->q, from, n, h->size, (T)h->scale, f.rows, f.size, f.q);
  memset(f.out, 0, (size_t)(TILE * f.value_size) * sizeof(T));
  for (int i = 0; i < TILE; i++) f.base[i] = -(T)INFINITY, f.sum[i] = 0;
  int64_t keys = h->causal && from + n < h->keys ? from + n : h->keys;
  for (int64_t key = 0; key < keys && !lt_stopped(); key += TILE) {
    int64_t m = keys - key < TILE ? keys - key : TILE;
    const T *k = FN(dense)(&h->k, key, m, h->size, f.k);
    const T *v = FN(dense)(&h->v, key, m, h->value_size, f.v);
    for (int64_t i = 0; few && i < n; i++) FN(add_keys_to_row)(h, &f, i, from + i, key, m, k, v);
    for (int p = 0; !few && p * WIDTH < n; p++) {
      int64_t query = from + p * WIDTH, seen = FN(visible)(h, query, key, m);
      if (seen > 0) FN(add_keys)(h, &f, p, query, key, seen, k, v);
    }
  }
  for (int64_t i = 0; few && i < n; i++) FN(store_row)(h, &f, i, from + i);
  for (int p = 0; !few && p * WIDTH < n; p++)
    FN(store_results)(h, &f, p, from + p * WIDTH, n - p * WIDTH < WIDTH ? n - p * WIDTH : WIDTH);
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The scratch memory of `backward`. Arrays of panels have one panel for each WIDTH queries. */
typedef struct FN(Backward) {
  int64_t size, value_size;
  T *rows, *grad_rows;   /* the queries, times `scale`, and the gradients of the results */
  T *q, *grad;           /* the same as panels */
  T *dq, *p, *ds;        /* panels of dq, of probabilities and of gradients of the scores */
  T *mask, *k, *v, *row; /* `row`: a row of the result */
  T *base, *delta;       /* log-sum-exps; sums of the result times its gradient */
} FN(Backward);

static size_t FN(backward_layout)(const lt_Head *h, T *memory, FN(Backward) * f) {
  f->size = ROUND(h->size, STEP), f->value_size = ROUND(h->value_size, STEP);
  int64_t at = 0;
  PART(rows, TILE * f->size)
  PART(grad_rows, TILE * f->value_size)
  PART(q, TILE * f->size)
  PART(grad, TILE * f->value_size)
  PART(dq, TILE * f->size)
  PART(p, TILE * TILE)
  PART(ds, TILE * TILE)
  PART(mask, 2 * WIDTH * TILE)
  PART(k, TILE * h->size)
  PART(v, TILE * h->value_size)
  PART(row, f->value_size)
  PART(base, TILE)
  PART(delta, TILE)
#undef PART
  return (size_t)at * sizeof(T);
}

static size_t FN(backward_bytes)(const lt_Head *h) {
  FN(Backward) f;
  return FN(backward_layout)(h, NULL, &f);
}

/* Computes base and delta of n queries from `from` on; base is infinite, so that probabilities are
 * 0, for queries without keys and behind the last query. */
static void FN(load_sums)(const lt_Head *h, FN(Backward) * f, int64_t from, int64_t n) {
  const T *lse = (const T *)h->lse + from;
  for (int64_t i = 0; i < TILE; i++) f->base[i] = (T)INFINITY, f->delta[i] = 0;
  for (int64_t i = 0; i < n; i++) {
    const T *grad = f->grad_rows + i * f->value_size;
    V sum = {0};
    LT_PASTE(read, F)(&h->result, from + i, h->value_size, 1, f->row);
    for (int64_t j = h->value_size; j < f->value_size; j++) f->row[j] = 0;
    for (int64_t j = 0; j < f->value_size; j += V_N)
      sum = V_MADD(V_LOAD(grad + j), V_LOAD(f->row + j), sum);
    for (int j = 0; j < V_N; j++) f->delta[i] += sum[j];
    if (lse[i] != -(T)INFINITY) f->base[i] = lse[i];
  }
}

/* Replaces the scores by probabilities, and the gradients of the probabilities by those of the
 * scores. */
static void FN(score_gradients)(T *s, T *ds, int64_t n, const T *base, const T *delta) {
  for (int64_t r = 0; r < n; r++) {
    T *row = s + r * WIDTH, *grad = ds + r * WIDTH;
#pragma omp simd
    for (int w = 0; w < WIDTH; w++) {
      T p = EXP(row[w] - base[w]);
      row[w] = p;
      grad[w] = p * (grad[w] - delta[w]);
    }
  }
}

/* Computes panel i of p and ds for n keys from `key` on, of which the first `seen` are visible, and
 * adds to panel i of dq. */
static void FN(gradients_of_panel)(const lt_Head *h, FN(Backward) * f, int i, int64_t query,
                                   int64_t key, int64_t n, int64_t seen, const T *k, const T *v) {
  T *p = f->p + i * WIDTH * TILE, *ds = f->ds + i * WIDTH * TILE;
  const V same[2] = {FN(all)(1), FN(all)(1)};
  FN(score)(k, h->size, seen, f->q + i * WIDTH * f->size, p);
  FN(mask_scores)(h, query, key, seen, p, f->mask);
  FN(score)(v, h->value_size, seen, f->grad + i * WIDTH * f->value_size, ds);
  FN(score_gradients)(p, ds, seen, f->base + i * WIDTH, f->delta + i * WIDTH);
  FN(gather)(k, h->size, seen, ds, same, f->dq + i * WIDTH * f->size);
  memset(p + seen * WIDTH, 0, (size_t)((n - seen) * WIDTH) * sizeof(T));
  memset(ds + seen * WIDTH, 0, (size_t)((n - seen) * WIDTH) * sizeof(T));
}

/* Adds the gradients from n queries from `query` on and m keys from `key` on. */
static void FN(gradients_of_tile)(const lt_Head *h, FN(Backward) * f, int64_t query, int64_t n,
                                  int64_t key, int64_t m) {
  const T *k = FN(dense)(&h->k, key, m, h->size, f->k);
  const T *v = FN(dense)(&h->v, key, m, h->value_size, f->v);
  int first = 0, last = (int)((n + WIDTH - 1) / WIDTH);
  for (int i = last - 1; i >= 0; i--) {
    int64_t seen = FN(visible)(h, query + i * WIDTH, key, m);
    if (seen == 0) break;
    FN(gradients_of_panel)(h, f, i, query + i * WIDTH, key, m, seen, k, v);
    first = i;
  }
  FN(spread)
  (f->p, first, last, m, f->grad_rows, f->value_size, (T *)h->dv + key * h->value_size,
   h->value_size);
  FN(spread)(f->ds, first, last, m, f->rows, f->size, (T *)h->dk + key * h->size, h->size);
}

static void FN(backward)(const lt_Head *h, int64_t from, int64_t to) {
  FN(Backward) f;
  FN(backward_layout)(h, h->scratch, &f);
  for (int64_t query = 0; query < h->queries && !lt_stopped(); query += TILE) {
    int64_t n = h->queries - query < TILE ? h->queries - query : TILE;
    int64_t end = h->causal && query + n < to ? query + n : to;
    T *dq = (T *)h->dq + query * h->size;
    if (end <= from) {
      memset(dq, 0, (size_t)(n * h->size) * sizeof(T));
      continue;
    }
    FN(load_queries)(&h->q, query, n, h->size, (T)h->scale, f.rows, f.size, f.q);
    FN(load_queries)(&h->grad, query, n, h->value_size, 1, f.grad_rows, f.value_size, f.grad);
    FN(load_sums)(h, &f, query, n);
    memset(f.dq, 0, (size_t)(TILE * f.size) * sizeof(T));
    for (int64_t key = from; key < end && !lt_stopped(); key += TILE)
      FN(gradients_of_tile)(h, &f, query, n, key, end - key < TILE ? end - key : TILE);
    for (int64_t i = 0; i < n; i++) {
      if (i % WIDTH == 0) FN(transpose)(f.dq + i * f.size, WIDTH, f.size, WIDTH, f.q, f.size);
      for (int64_t j = 0; j < h->size; j++)
        dq[i * h->size + j] = (T)h->scale * f.q[i % WIDTH * f.size + j];
    }
  }
}

#undef FN
#undef WIDTH
#undef STEP
#undef FEW
#undef PANELS
#undef FOR_ROWS
