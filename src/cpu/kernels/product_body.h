/* product_body.h: loops of matrix products for one type; see product.c. */
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
  const T alpha = (T)p->alpha, beta = (T)p->beta;
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
TILE(5)
TILE(6)
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
    NAME(tile_5),
    NAME(tile_6),
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

/* Computes y = alpha * A x + beta * z for `rows` rows (at most 4, a constant) of A: dot
 * products. */
LT_LANES void NAME(dot_rows)(const int rows, const lt_Panel *p, const T *a, const T *x, const T *z,
                             T *y) {
  V sum[4][4];
  int64_t k = 0, ar = p->a_row, left;
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < 4; j++) sum[i][j] = (V){0};
  for (; k + 4 * V_N <= p->k; k += 4 * V_N) UNROLL for (int j = 0; j < 4; j++) {
      V f = V_LOAD(x + k + j * V_N);
      UNROLL for (int i = 0; i < rows; i++) sum[i][j] =
          V_MADD(V_LOAD(a + i * ar + k + j * V_N), f, sum[i][j]);
    }
  for (; k + V_N <= p->k; k += V_N)
    UNROLL for (int i = 0; i < rows; i++) sum[i][0] =
        V_MADD(V_LOAD(a + i * ar + k), V_LOAD(x + k), sum[i][0]);
  if ((left = p->k - k) > 0)
    UNROLL for (int i = 0; i < rows; i++) sum[i][1] =
        V_MADD(V_PART(a + i * ar + k, left), V_PART(x + k, left), sum[i][1]);
  UNROLL for (int i = 0; i < rows; i++) {
    T v = (T)p->alpha * NAME(total)((sum[i][0] + sum[i][1]) + (sum[i][2] + sum[i][3]));
    if (p->beta != 0) v += (T)p->beta * z[i * p->z_row];
    y[i * p->c_row] = v;
  }
}

static void NAME(dots)(const lt_Panel *p, int64_t m, const void *from, const void *x,
                       const void *add, void *to) {
  const T *a = from, *z = add;
  T *y = to;
  int64_t i = 0;
  for (; i + 4 <= m; i += 4)
    NAME(dot_rows)(4, p, a + i * p->a_row, x, z + i * p->z_row, y + i * p->c_row);
  for (; i < m; i++) NAME(dot_rows)(1, p, a + i * p->a_row, x, z + i * p->z_row, y + i * p->c_row);
}

/* Computes `vectors` vectors (a constant) of y = alpha * x B + beta * z: sums of rows of B. With
 * `part`, n elements of one vector. */
LT_LANES void NAME(sum_rows)(const int vectors, const bool part, int64_t n, const lt_Panel *p,
                             const T *x, const T *b, const T *z, T *y) {
  V sum[8];
  UNROLL for (int j = 0; j < vectors; j++) sum[j] = (V){0};
  for (int64_t k = 0; k < p->k; k++, b += p->b_row) {
    V f = V_ALL(x[k]);
    UNROLL for (int j = 0; j < vectors; j++) sum[j] =
        V_MADD(f, part ? V_PART(b, n) : V_LOAD(b + j * V_N), sum[j]);
  }
  UNROLL for (int j = 0; j < vectors; j++) {
    V v = (T)p->alpha * sum[j];
    if (p->beta != 0) v += (T)p->beta * (part ? V_PART(z, n) : V_LOAD(z + j * V_N));
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
