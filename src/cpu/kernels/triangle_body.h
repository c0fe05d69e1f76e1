/* triangle_body.h: loops of factorizations and triangular systems for one type; see triangle.c. */
#define FN_(a, b) a##_##b
#define FN(a, b)  FN_(a, b)
#define NAME(x)   FN(x, F)

/* ---- triangular systems ---------------------------------------------------------------------- */

/* Solves rows i .. i + rows - 1 of `vectors` vectors of columns of b, or with `part` of n columns:
 * the rows above are solved. The counts and `part` are constants where it is inlined. */
LT_LANES void NAME(solve_rows)(const int rows, const int vectors, const bool part, int64_t i,
                               const T *l, int64_t l_row, int64_t l_column, bool unit, T *b,
                               int64_t b_row, int64_t n) {
  V x[ROWS][2];
  const T *row[ROWS];
  T *to = b + i * b_row;
  UNROLL for (int r = 0; r < rows; r++) {
    row[r] = l + (i + r) * l_row;
    UNROLL for (int j = 0; j < vectors; j++) x[r][j] =
        part ? V_PART(to + r * b_row, n) : V_LOAD(to + r * b_row + j * V_N);
  }
  for (int64_t k = 0; k < i; k++) {
    V y[2];
    UNROLL for (int j = 0; j < vectors; j++) y[j] =
        part ? V_PART(b + k * b_row, n) : V_LOAD(b + k * b_row + j * V_N);
    UNROLL for (int r = 0; r < rows; r++) {
      V f = -V_ALL(row[r][k * l_column]);
      UNROLL for (int j = 0; j < vectors; j++) x[r][j] = V_MADD(f, y[j], x[r][j]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) {
    UNROLL for (int k = 0; k < r; k++) {
      V f = -V_ALL(row[r][(i + k) * l_column]);
      UNROLL for (int j = 0; j < vectors; j++) x[r][j] = V_MADD(f, x[k][j], x[r][j]);
    }
    if (!unit) {
      V f = V_ALL(row[r][(i + r) * l_column]);
      UNROLL for (int j = 0; j < vectors; j++) x[r][j] /= f;
    }
    UNROLL for (int j = 0; j < vectors; j++) {
      if (part)
        V_STORE(to + r * b_row, x[r][j], n);
      else
        memcpy(to + r * b_row + j * V_N, &x[r][j], sizeof(V));
    }
  }
}

/* Solves all rows of such columns. */
LT_LANES void NAME(solve_columns)(const int vectors, const bool part, int64_t r, const T *l,
                                  int64_t l_row, int64_t l_column, bool unit, T *b, int64_t b_row,
                                  int64_t n) {
  int64_t i = 0;
  for (; i + ROWS <= r; i += ROWS)
    NAME(solve_rows)(ROWS, vectors, part, i, l, l_row, l_column, unit, b, b_row, n);
  for (; i + 2 <= r; i += 2)
    NAME(solve_rows)(2, vectors, part, i, l, l_row, l_column, unit, b, b_row, n);
  if (i < r) NAME(solve_rows)(1, vectors, part, i, l, l_row, l_column, unit, b, b_row, n);
}

static void NAME(solve)(int64_t r, int64_t n, const void *from, int64_t l_row, int64_t l_column,
                        bool unit, void *to, int64_t b_row) {
  const T *l = from;
  T *b = to;
  int64_t j = 0;
  for (; j + 2 * V_N <= n; j += 2 * V_N)
    NAME(solve_columns)(2, false, r, l, l_row, l_column, unit, b + j, b_row, 0);
  if (j + V_N <= n) {
    NAME(solve_columns)(1, false, r, l, l_row, l_column, unit, b + j, b_row, 0);
    j += V_N;
  }
  if (j < n) NAME(solve_columns)(1, true, r, l, l_row, l_column, unit, b + j, b_row, n - j);
}

/* ---- LU -------------------------------------------------------------------------------------- */

/* Returns the index from `first` to m - 1 of the first element of the largest size, or of a NaN. */
static int64_t NAME(largest)(int64_t first, int64_t m, const T *x) {
  const BITS sign = (BITS)1 << (sizeof(BITS) * 8 - 1);
  BITS most = 0, bits;
  int64_t at = first;
  if (m - first <= 16) { /* in one pass */
    for (int64_t i = first; i < m; i++) {
      memcpy(&bits, x + i, sizeof bits);
      bits &= ~sign;
      at = bits > most ? i : at;
      most = bits > most ? bits : most;
    }
    return at;
  }
  for (int64_t i = first; i < m; i++) {
    memcpy(&bits, x + i, sizeof bits);
    bits &= ~sign;
    most = bits > most ? bits : most;
  }
  do memcpy(&bits, x + at++, sizeof bits);
  while ((bits & ~sign) != most);
  return at - 1;
}

/* Subtracts from `count` vectors of column j the products of those of the columns before and the
 * elements x of the column. */
LT_LANES void NAME(update_vectors)(const int count, int j, T *a, const T *x, int64_t step) {
  V sum[2];
  UNROLL for (int t = 0; t < count; t++) sum[t] = V_LOAD(a + j * step + t * V_N);
  for (int k = 0; k < j; k++) {
    V f = -V_ALL(x[k]);
    UNROLL for (int t = 0; t < count; t++) sum[t] =
        V_MADD(f, V_LOAD(a + k * step + t * V_N), sum[t]);
  }
  UNROLL for (int t = 0; t < count; t++) memcpy(a + j * step + t * V_N, &sum[t], sizeof(V));
}

/* Subtracts the products of the columns before from column j, of m elements. */
static void NAME(update_column)(int64_t m, int j, T *a, int64_t step) {
  T *x = a + j * step;
  int64_t above = j < m ? j : m;
  for (int64_t k = 0; k < above; k++)
    for (int64_t i = k + 1; i < above; i++) x[i] -= a[k * step + i] * x[k];
  int64_t i = j;
  for (; i + V_N < m; i += 2 * V_N) NAME(update_vectors)(2, j, a + i, x, step);
  if (i < m) NAME(update_vectors)(1, j, a + i, x, step);
}

/* Exchanges rows i and p of n columns. */
LT_LANES void NAME(exchange)(int n, T *a, int64_t step, int64_t i, int64_t p) {
  for (int k = 0; p != i && k < n; k++) {
    T other = a[k * step + p];
    a[k * step + p] = a[k * step + i];
    a[k * step + i] = other;
  }
}

/* Factors columns of a few elements: vectors would be loaded from elements that are still being
 * stored. */
static int NAME(lu_of_few)(int64_t m, int n, T *a, int64_t step, int32_t *pivots) {
  int info = 0;
  for (int j = 0; j < n && j < m; j++) {
    T *x = a + j * step;
    int64_t p = NAME(largest)(j, m, x);
    pivots[j] = (int32_t)p + 1;
    NAME(exchange)(n, a, step, j, p);
    if (x[j] == 0 && !info) info = j + 1;
    for (int64_t i = j + 1; x[j] != 0 && i < m; i++) x[i] /= x[j];
    for (int k = j + 1; k < n; k++)
      for (int64_t i = j + 1; i < m; i++) a[k * step + i] -= x[i] * a[k * step + j];
  }
  return info;
}

static int NAME(lu)(int64_t m, int n, void *matrix, int64_t step, int32_t *pivots) {
  T *a = matrix;
  int info = 0;
  if (m <= FEW) return NAME(lu_of_few)(m, n, a, step, pivots);
  for (int j = 0; j < n; j++) {
    T *x = a + j * step;
    NAME(update_column)(m, j, a, step);
    if (j >= m) continue;
    int64_t p = NAME(largest)(j, m, x);
    pivots[j] = (int32_t)p + 1;
    NAME(exchange)(n, a, step, j, p);
    const T pivot = x[j];
    if (pivot == 0 && !info) info = j + 1;
    for (int64_t i = j + 1; pivot != 0 && i < m; i += V_N) {
      V v = V_LOAD(x + i) / V_ALL(pivot);
      memcpy(x + i, &v, sizeof v);
    }
  }
  return info;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* Computes what cholesky does for an order up to FEW, element by element. */
static int NAME(cholesky_of_few)(int n, T *a, int64_t row) {
  for (int k = 0; k < n; k++) {
    T *x = a + k * row;
    if (!(x[k] > 0)) return k + 1;
    x[k] = ROOT(x[k]);
    for (int j = k + 1; j < n; j++) x[j] /= x[k];
    for (int i = k + 1; i < n; i++)
      for (int j = i; j < n; j++) a[i * row + j] -= x[i] * x[j];
  }
  return 0;
}

static int NAME(cholesky)(int n, void *matrix, int64_t row) {
  enum { WIDTH = LT_CHOLESKY_ORDER };
  if (n <= FEW) return NAME(cholesky_of_few)(n, matrix, row);
  T *a = matrix, u[WIDTH * WIDTH];
  memset(u, 0, sizeof(T) * (size_t)(n * WIDTH));
  for (int i = 0; i < n; i++)
    memcpy(u + i * WIDTH + i, a + i * row + i, (size_t)(n - i) * sizeof *a);
  for (int k = 0; k < n; k++) {
    T *x = u + k * WIDTH;
    if (!(x[k] > 0)) return k + 1;
    const T root = ROOT(x[k]);
    for (int j = k / V_N * V_N; j < n; j += V_N) {
      V v = V_LOAD(x + j) / V_ALL(root);
      memcpy(x + j, &v, sizeof v);
    }
    x[k] = root; /* also of an infinity, whose quotient is NaN */
    for (int i = k + 1; i < n; i++) {
      const V f = -V_ALL(x[i]);
      T *y = u + i * WIDTH;
      for (int j = i / V_N * V_N; j < n; j += V_N) {
        V v = V_MADD(f, V_LOAD(x + j), V_LOAD(y + j));
        memcpy(y + j, &v, sizeof v);
      }
    }
  }
  for (int i = 0; i < n; i++)
    memcpy(a + i * row + i, u + i * WIDTH + i, (size_t)(n - i) * sizeof *a);
  return 0;
}

#undef NAME
#undef FN
#undef FN_
