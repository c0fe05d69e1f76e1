/* product_body.h: loops of matrix products for one type; see product.c. It undefines the type's
 * macros. */
#ifndef UNROLL
#define UNROLL _Pragma("GCC unroll 14")

/* Makes the compiler use the variables as they are here, and no loads before this place: it would
 * keep the addresses of unrolled loops in more registers than there are. */
#define KEEP(x, y) __asm__ volatile("" : "+r"(x), "+r"(y) : : "memory")
#endif

#define FN_(a, b) a##_##b
#define FN(a, b)  FN_(a, b)
#define NAME(x)   FN(x, F)

/* Adds a term to the sums of a tile: column number `at` of a, of which `group` are every third
 * row, times the row b. */
LT_LANES void NAME(add_term)(const int rows, const int vectors, const bool part,
                             const T *const *group, int64_t row, int64_t at, const T *b, int64_t n,
                             V (*sum)[2]) {
  V x[2];
  UNROLL for (int j = 0; j < vectors; j++) x[j] = part ? V_PART(b, n) : V_LOAD(b + j * V_N);
  UNROLL for (int i = 0; i < rows; i++) {
    V y = V_ALL(group[i / 3][(i % 3 == 0 ? 0 : i % 3 == 1 ? row : 2 * row) + at]);
    UNROLL for (int j = 0; j < vectors; j++) V_ADD(sum[i][j], y, x[j]);
  }
}

/* Computes a tile: c = alpha * a @ b + beta * z, for `rows` rows and `vectors` vectors of columns,
 * of which n are written. With `part`, there are n columns of b, less than a vector. The counts and
 * `part` are constants where it is inlined, so that the sums are in registers. Rows of c are loaded
 * into the cache one by one, as more would delay the loads of a and b. */
LT_LANES void NAME(tile)(const int rows, const int vectors, const bool part, const lt_Panel *p,
                         const T *a, const T *b, const T *z, T *c, int64_t n) {
  V sum[LT_PRODUCT_ROWS][2];
  int64_t ar = p->a_row;
  const int64_t ac = p->a_column, bk = p->b_row;
  const T *group[(LT_PRODUCT_ROWS + 2) / 3]; /* each third row of a */
  UNROLL for (int i = 0; i < rows; i++) {
    if (i % 3 == 0) group[i / 3] = a + i * ar;
    UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = (V){0};
  }
#define ADD(at)                                                                                    \
  do {                                                                                             \
    NAME(add_term)(rows, vectors, part, group, ar, at, b, n, sum);                                 \
    b += bk;                                                                                       \
    KEEP(ar, b);                                                                                   \
  } while (0)
#define NEXT(by) UNROLL for (int g = 0; g < (rows + 2) / 3; g++) group[g] += (by)
  int64_t k = p->k;
  if (ac == 1) {
    const T *to = c;
    for (int i = 0; i < rows && k >= 4; i++, k -= 4, to += p->c_row) {
      ADD(0);
      ADD(1);
      ADD(2);
      ADD(3);
      NEXT(4);
      __builtin_prefetch(to, 1);
      __builtin_prefetch(to + vectors * V_N - 1, 1);
    }
    for (; k >= 4; k -= 4) {
      ADD(0);
      ADD(1);
      ADD(2);
      ADD(3);
      NEXT(4);
    }
  }
  for (; k > 0; k--) {
    ADD(0);
    NEXT(ac);
  }
#undef ADD
#undef NEXT
  const T alpha = (T)FACTOR(p->alpha), beta = (T)FACTOR(p->beta);
  bool dense = p->c_column == 1 && (beta == 0 || p->z_column == 1);
  if (dense && (part || n == vectors * V_N)) {
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) {
      const T *from = z + i * p->z_row + j * V_N;
      T *to = c + i * p->c_row + j * V_N;
      V v = alpha * sum[i][j];
      if (beta != 0) v += beta * (part ? V_PART(from, n) : V_LOAD(from));
      if (part)
        V_STORE(to, v, n);
      else
        memcpy(to, &v, sizeof v);
    }
    return;
  }
  T room[LT_PRODUCT_ROWS * 2 * V_N];
  if (n > vectors * V_N) __builtin_unreachable();
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      memcpy(room + (i * vectors + j) * V_N, &sum[i][j], sizeof(V));
  for (int64_t j = 0; j < n; j++)
    for (int i = 0; i < rows; i++) {
      T v = alpha * room[i * vectors * V_N + j];
      if (beta != 0) v += beta * z[i * p->z_row + j * p->z_column];
      c[i * p->c_row + j * p->c_column] = v;
    }
}

typedef enum NAME(Kind) { NAME(WIDE), NAME(NARROW), NAME(PART) } NAME(Kind);

#define TILE(r)                                                                                    \
  static void NAME(tile_##r)(const lt_Panel *p, const T *a, const T *b, const T *z, T *c,          \
                             int64_t n, NAME(Kind) kind) {                                         \
    if (kind == NAME(WIDE))                                                                        \
      NAME(tile)(r, 2, false, p, a, b, z, c, n);                                                   \
    else if (kind == NAME(NARROW))                                                                 \
      NAME(tile)(r, 1, false, p, a, b, z, c, n);                                                   \
    else                                                                                           \
      NAME(tile)(r, 1, true, p, a, b, z, c, n);                                                    \
  }
TILE(1)
TILE(2)
TILE(3)
TILE(4)
#if LT_PRODUCT_ROWS > 4
TILE(5)
TILE(6)
#endif
#if LT_PRODUCT_ROWS > 6
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif
#undef TILE

/* Computes n columns of c as tiles of one kind. The rows are divided into tiles of nearly equal
 * heights. */
static void NAME(tiles)(const lt_Panel *p, int64_t m, int64_t n, const T *a, const T *b, const T *z,
                        T *c, NAME(Kind) kind) {
  typedef void (*Tile)(const lt_Panel *, const T *, const T *, const T *, T *, int64_t, NAME(Kind));
  static const Tile tiles[] = {
    NAME(tile_1),
    NAME(tile_2),
    NAME(tile_3),
    NAME(tile_4),
#if LT_PRODUCT_ROWS > 4
    NAME(tile_5),
    NAME(tile_6),
#endif
#if LT_PRODUCT_ROWS > 6
    NAME(tile_7),
    NAME(tile_8),
    NAME(tile_9),
    NAME(tile_10),
    NAME(tile_11),
    NAME(tile_12),
    NAME(tile_13),
    NAME(tile_14)
#endif
  };
  int64_t count = (m + LT_PRODUCT_ROWS - 1) / LT_PRODUCT_ROWS;
  for (int64_t t = 0; t < count; t++) {
    int64_t first = m * t / count, rows = m * (t + 1) / count - first;
    tiles[rows - 1](p, a + first * p->a_row, b, z + first * p->z_row, c + first * p->c_row, n,
                    kind);
  }
}

static void NAME(panel)(const lt_Panel *p, int64_t m, int64_t n, const void *a, const void *from,
                        const void *add, void *to) {
  const T *b = from, *z = add;
  T *c = to;
  if (n == 2 * V_N || (p->b_padded && n > V_N)) {
    NAME(tiles)(p, m, n, a, b, z, c, NAME(WIDE));
    return;
  }
  if (n > V_N) {
    NAME(tiles)(p, m, V_N, a, b, z, c, NAME(NARROW));
    b += V_N, z += V_N * p->z_column, c += V_N * p->c_column, n -= V_N;
  }
  NAME(tiles)(p, m, n, a, b, z, c, p->b_padded || n == V_N ? NAME(NARROW) : NAME(PART));
}

/* Copies rows of b into panels, row by row, as they are in memory. */
static void NAME(pack_rows)(int64_t k, int64_t n, const T *b, int64_t row, T *to) {
  enum { COLUMNS = 2 * V_N };
  for (int64_t p = 0; p < k; p++, b += row, to += COLUMNS) {
    T *out = to;
    int64_t j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS, out += k * COLUMNS)
      memcpy(out, b + j, COLUMNS * sizeof *out);
    for (int64_t i = 0; j < n && i < COLUMNS; i++) out[i] = j + i < n ? b[j + i] : 0;
  }
}

/* Copies `count` elements of each of n columns of b to rows of a panel, of which `width` columns
 * are filled, with zeros at last. */
static void NAME(pack_part)(int64_t count, int64_t n, int64_t width, const T *b, int64_t row,
                            int64_t column, T *to) {
  enum { COLUMNS = 2 * V_N };
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = 0; i < count; i++) to[i * COLUMNS + j] = b[j * column + i * row];
  for (int64_t i = 0; n < width && i < count; i++)
    memset(to + i * COLUMNS + n, 0, (size_t)(width - n) * sizeof *to);
}

/* Copies n columns of b, at most a panel, in squares where they are dense. */
static void NAME(pack_columns)(int64_t k, int64_t n, const T *b, int64_t row, int64_t column,
                               T *to) {
  enum { COLUMNS = 2 * V_N };
  for (int64_t p = 0; p < k; p += 8, b += 8 * row, to += 8 * COLUMNS) {
    int64_t j = 0, count = k - p < 8 ? k - p : 8;
    bool square = count == 8 && row == 1;
    while (square && j + 8 <= n && TRANSPOSE_8(b + j * column, column, to + j, COLUMNS)) j += 8;
    if (j < COLUMNS)
      NAME(pack_part)(count, n - j, COLUMNS - j, b + j * column, row, column, to + j);
  }
}

static void NAME(pack)(int64_t k, int64_t n, const void *b, int64_t row, int64_t column, void *to) {
  enum { COLUMNS = 2 * V_N };
  if (column == 1) {
    NAME(pack_rows)(k, n, b, row, to);
    return;
  }
  for (int64_t j = 0; j < n; j += COLUMNS) NAME(pack_columns)
  (k, n - j < COLUMNS ? n - j : COLUMNS, (const T *)b + j * column, row, column, (T *)to + j * k);
}

/* ---- products with one row or column --------------------------------------------------------- */

/* Returns the sum of a vector's elements, pairwise. */
LT_LANES T NAME(total)(V v) {
  T lane[V_N];
  memcpy(lane, &v, sizeof v);
  UNROLL for (int half = V_N / 2; half > 0; half /= 2) UNROLL for (int j = 0; j < half; j++)
      lane[j] += lane[j + half];
  return lane[0];
}

/* Returns the sums of the elements of V_N vectors, each added up as NAME(total) does. */
LT_LANES V NAME(totals)(V *v) {
#if V_N == 16
#define FOLD_N LT_FOLD_16
#elif V_N == 8
#define FOLD_N LT_FOLD_8
#elif V_N == 4
#define FOLD_N LT_FOLD_4
#else
#define FOLD_N LT_FOLD_2
#endif
#define HALVE(h)                                                                                   \
  if ((h) < V_N)                                                                                   \
  UNROLL for (int i = 0; i < (h); i++) v[i] =                                                      \
      LT_SHUFFLE(M, v[i], v[i + (h)], FOLD_N(V_N, (h) < V_N ? (h) : 1, 0, 0)) +                    \
      LT_SHUFFLE(M, v[i], v[i + (h)], FOLD_N(V_N, (h) < V_N ? (h) : 1, 0, (h) < V_N ? (h) : 1))
  HALVE(8);
  HALVE(4);
  HALVE(2);
  HALVE(1);
#undef HALVE
#undef FOLD_N
  return v[0];
}

/* Computes the products of `rows` rows (at most 4, a constant) of A and x, or with `each` of as
 * many rows of x: sums whose elements are yet to be added. */
LT_LANES void NAME(dot_rows)(const int rows, const bool each, const lt_Panel *p, const T *a,
                             const T *x, V *out) {
  V sum[4][4];
  int64_t k = 0, ar = p->a_row, xr = p->x_row, left;
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 4; j++) sum[i][j] = (V){0};
#define ADD(load, at, j)                                                                           \
  do {                                                                                             \
    V f = load(x + (at));                                                                          \
    UNROLL for (int i = 0; i < rows; i++) sum[i][j] =                                              \
        V_MADD(load(a + i * ar + (at)), each && i > 0 ? load(x + i * xr + (at)) : f, sum[i][j]);   \
  } while (0)
#define REST(x) V_PART(x, left)
  for (; k + 4 * V_N <= p->k; k += 4 * V_N)
    UNROLL for (int j = 0; j < 4; j++) ADD(V_LOAD, k + j * V_N, j);
  for (; k + V_N <= p->k; k += V_N) ADD(V_LOAD, k, 0);
  if ((left = p->k - k) > 0) ADD(REST, k, 1);
#undef REST
#undef ADD
  UNROLL for (int i = 0; i < rows; i++) out[i] = (sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]);
}

/* Does the same for V_N rows of less than 2 * V_N elements: `vectors` (a constant) vectors, of
 * which the last is a part or whole. */
LT_LANES void NAME(dot_short_rows)(const int vectors, const bool each, const lt_Panel *p,
                                   const T *a, const T *x, V *out) {
  const int64_t first = (vectors - 1) * V_N, left = p->k - first, ar = p->a_row, xr = p->x_row;
  V f[2] = {vectors > 1 ? V_LOAD(x) : (V){0}, V_PART(x + first, left)};
  UNROLL for (int i = 0; i < V_N; i++) {
    const T *row = a + i * ar;
    if (each && vectors > 1) f[0] = V_LOAD(x + i * xr);
    if (each) f[1] = V_PART(x + i * xr + first, left);
    V sum = vectors > 1 ? V_MADD(V_LOAD(row), f[0], (V){0}) : (V){0};
    out[i] = sum + V_MADD(V_PART(row + first, left), f[1], (V){0});
  }
}

/* Computes V_N products as dot_rows does. */
LT_LANES V NAME(dot_vector)(const bool each, const lt_Panel *p, const T *a, const T *x) {
  enum { TOGETHER = V_N < 4 ? V_N : 4 };
  V sum[V_N];
  const int64_t ar = p->a_row, xr = each ? p->x_row : 0;
  if (p->k <= V_N)
    NAME(dot_short_rows)(1, each, p, a, x, sum);
  else if (p->k < 2 * V_N)
    NAME(dot_short_rows)(2, each, p, a, x, sum);
  for (int i = 0; i < V_N && p->k >= 2 * V_N; i += TOGETHER)
    NAME(dot_rows)(TOGETHER, each, p, a + i * ar, x + i * xr, sum + i);
  return NAME(totals)(sum);
}

/* Computes y = alpha * A x + beta * z: V_N rows at once, whose sums become one vector. */
LT_LANES void NAME(dots_of)(const bool each, const lt_Panel *p, int64_t m, const T *a, const T *x,
                            const T *z, T *y) {
  const T alpha = (T)FACTOR(p->alpha), beta = (T)FACTOR(p->beta);
  const int64_t ar = p->a_row, xr = each ? p->x_row : 0, yr = p->c_row, zr = p->z_row;
  int64_t i = 0;
  for (; i + V_N <= m; i += V_N) {
    V v = alpha * NAME(dot_vector)(each, p, a + i * ar, x + i * xr);
    if (beta != 0) {
      T added[V_N];
      for (int64_t j = 0; j < V_N; j++) added[j] = z[(i + j) * zr];
      v += beta * V_LOAD(added);
    }
    if (yr == 1) {
      memcpy(y + i, &v, sizeof v);
    } else {
      T lane[V_N];
      memcpy(lane, &v, sizeof v);
      for (int64_t j = 0; j < V_N; j++) y[(i + j) * yr] = lane[j];
    }
  }
  for (; i < m; i++) {
    V sum;
    NAME(dot_rows)(1, each, p, a + i * ar, x + i * xr, &sum);
    T v = alpha * NAME(total)(sum);
    if (beta != 0) v += beta * z[i * zr];
    y[i * yr] = v;
  }
}

static void NAME(dots)(const lt_Panel *p, int64_t m, const void *a, const void *x, const void *z,
                       void *y) {
  if (p->x_row)
    NAME(dots_of)(true, p, m, a, x, z, y);
  else
    NAME(dots_of)(false, p, m, a, x, z, y);
}

/* Computes `vectors` vectors (a constant) of y = alpha * x B + beta * z: sums of rows of B. With
 * `part`, n elements of one vector. */
LT_LANES void NAME(sum_rows)(const int vectors, const bool part, int64_t n, const lt_Panel *p,
                             const T *x, const T *b, const T *z, T *y) {
  V sum[8];
  const T alpha = (T)FACTOR(p->alpha), beta = (T)FACTOR(p->beta);
  UNROLL for (int j = 0; j < vectors; j++) sum[j] = (V){0};
  for (int64_t k = 0; k < p->k; k++, b += p->b_row) {
    V f = V_ALL(x[k]);
    UNROLL for (int j = 0; j < vectors; j++) sum[j] =
        V_MADD(f, part ? V_PART(b, n) : V_LOAD(b + j * V_N), sum[j]);
  }
  UNROLL for (int j = 0; j < vectors; j++) {
    V v = alpha * sum[j];
    if (beta != 0) v += beta * (part ? V_PART(z, n) : V_LOAD(z + j * V_N));
    if (part)
      V_STORE(y, v, n);
    else
      memcpy(y + j * V_N, &v, sizeof v);
  }
}

static void NAME(sums)(const lt_Panel *p, int64_t n, const void *x, const void *from,
                       const void *add, void *to) {
  const T *b = from, *z = add;
  T *y = to;
  int64_t j = 0;
  for (; j + 8 * V_N <= n; j += 8 * V_N) NAME(sum_rows)(8, false, 0, p, x, b + j, z + j, y + j);
  for (; j + 2 * V_N <= n; j += 2 * V_N) NAME(sum_rows)(2, false, 0, p, x, b + j, z + j, y + j);
  for (; j + V_N <= n; j += V_N) NAME(sum_rows)(1, false, 0, p, x, b + j, z + j, y + j);
  if (j < n) NAME(sum_rows)(1, true, n - j, p, x, b + j, z + j, y + j);
}

#undef NAME
#undef FN
#undef FN_
#undef T
#undef F
#undef V
#undef M
#undef V_N
#undef V_LOAD
#undef V_PART
#undef V_STORE
#undef V_ALL
#undef TRANSPOSE_8
