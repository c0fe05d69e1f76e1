/* triangle.c: factorizations and triangular systems in halves: what is not on the diagonal is
 * computed by products of matrices, and small triangles by the loops of kernels/triangle.c.
 *
 * Invariant: the halves depend on sizes only. */
#include "triangle.h"
#include "kernel_support.h"
#include "moves.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static lt_Matrix at(lt_Dtype dtype, lt_Matrix a, int64_t row, int64_t column) {
  a.data = (char *)a.data + (row * a.row + column * a.column) * (int64_t)lt_dtype_size(dtype);
  return a;
}

/* Returns about half of n >= 1, a multiple of `unit`. */
static int64_t half_of(int64_t n, int64_t unit) { return ((n + 1) / 2 + unit - 1) / unit * unit; }

/* Subtracts a @ b from c. */
static void subtract(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, lt_Matrix a, lt_Matrix b,
                     lt_Matrix c) {
  if (m > 0 && n > 0 && k > 0) lt_gemm(dtype, m, n, k, -1, a, b, 1, c);
}

/* ---- triangular systems ---------------------------------------------------------------------- */

void lt_triangle_solve(lt_Dtype dtype, int64_t r, int64_t n, lt_Matrix factor, bool upper,
                       bool unit, lt_Matrix b) {
  const lt_TriangleLoops *loops = lt_triangle_loops(dtype);
  if (r == 0 || n == 0 || lt_stopped()) return;
  if (r <= LT_SOLVE_ORDER && upper) { /* a lower triangle, from its last row and column on */
    lt_Matrix f = at(dtype, factor, r - 1, r - 1), last = at(dtype, b, r - 1, 0);
    loops->solve(r, n, f.data, -f.row, -f.column, unit, last.data, -b.row);
    return;
  }
  if (r <= LT_SOLVE_ORDER) {
    loops->solve(r, n, factor.data, factor.row, factor.column, unit, b.data, b.row);
    return;
  }
  int64_t h = half_of(r, LT_SOLVE_ORDER / 4), first = upper ? h : 0, rest = upper ? 0 : h;
  int64_t first_rows = upper ? r - h : h;
  lt_Matrix x = at(dtype, b, first, 0), y = at(dtype, b, rest, 0);
  lt_triangle_solve(dtype, first_rows, n, at(dtype, factor, first, first), upper, unit, x);
  subtract(dtype, r - first_rows, n, first_rows, at(dtype, factor, rest, first), x, y);
  lt_triangle_solve(dtype, r - first_rows, n, at(dtype, factor, rest, rest), upper, unit, y);
}

/* Sets a {m, n} to 0, and its diagonal to `diagonal`. */
static void set_diagonal(lt_Dtype dtype, int64_t m, int64_t n, lt_Matrix a, double diagonal) {
  for (int64_t i = 0; i < m; i++) {
    memset(at(dtype, a, i, 0).data, 0, (size_t)n * lt_dtype_size(dtype));
    if (diagonal == 0) continue;
    void *element = at(dtype, a, i, i).data;
    if (dtype == LT_float32)
      *(float *)element = (float)diagonal;
    else
      *(double *)element = diagonal;
  }
}

void lt_triangle_invert(lt_Dtype dtype, int64_t r, lt_Matrix l, lt_Matrix inverse) {
  if (r <= LT_SOLVE_ORDER) {
    set_diagonal(dtype, r, r, inverse, 1);
    lt_triangle_solve(dtype, r, r, l, false, true, inverse);
    return;
  }
  int64_t h = half_of(r, LT_SOLVE_ORDER / 4);
  lt_Matrix low = at(dtype, l, h, h), below = at(dtype, inverse, h, 0);
  lt_triangle_invert(dtype, h, l, inverse);
  set_diagonal(dtype, h, r - h, at(dtype, inverse, 0, h), 0);
  lt_gemm(dtype, r - h, h, h, -1, at(dtype, l, h, 0), inverse, 0, below);
  lt_triangle_solve(dtype, r - h, h, low, false, true, below);
  lt_triangle_invert(dtype, r - h, low, at(dtype, inverse, h, h));
}

/* ---- LU -------------------------------------------------------------------------------------- */

static void exchange_rows(char *a, char *b, size_t bytes) {
  char room[512];
  for (; bytes > 0; a += sizeof room, b += sizeof room) {
    size_t n = bytes < sizeof room ? bytes : sizeof room;
    memcpy(room, a, n);
    memcpy(a, b, n);
    memcpy(b, room, n);
    bytes -= n;
  }
}

void lt_triangle_exchange(lt_Dtype dtype, int64_t k, const int32_t *pivots, bool back, int64_t n,
                          lt_Matrix b) {
  for (int64_t t = 0; t < k; t++) {
    int64_t i = back ? k - 1 - t : t, other = pivots[i] - 1;
    if (other != i)
      exchange_rows(at(dtype, b, i, 0).data, at(dtype, b, other, 0).data,
                    (size_t)n * lt_dtype_size(dtype));
  }
}

size_t lt_triangle_room(lt_Dtype dtype, int64_t m) {
  return (size_t)(LT_LU_COLUMNS * (m + LT_TRIANGLE_PADDING)) * lt_dtype_size(dtype);
}

/* Factors a few columns, in dense memory. */
static int factor_columns(lt_Dtype dtype, int64_t m, int64_t n, lt_Matrix a, int32_t *pivots,
                          void *room) {
  int64_t size = (int64_t)lt_dtype_size(dtype), step = m + LT_TRIANGLE_PADDING;
  lt_mover(size)->tile(n, m, room, step * size, a.data, a.row * size);
  int info = lt_triangle_loops(dtype)->lu(m, (int)n, room, step, pivots);
  lt_mover(size)->tile(m, n, a.data, a.row * size, room, step * size);
  return info;
}

int lt_triangle_lu(lt_Dtype dtype, int64_t m, int64_t n, lt_Matrix a, int32_t *pivots, void *room) {
  if (m == 0 || n == 0) return 0;
  if (lt_stopped()) { /* the pivots select rows in any case */
    for (int64_t i = 0; i < least(m, n); i++) pivots[i] = (int32_t)i + 1;
    return 0;
  }
  if (n <= LT_LU_COLUMNS) return factor_columns(dtype, m, n, a, pivots, room);
  int64_t h = half_of(least(m, n), LT_LU_COLUMNS), rest = n - h, k = least(m, h);
  lt_Matrix right = at(dtype, a, 0, h), low = at(dtype, a, k, h);
  int info = lt_triangle_lu(dtype, m, h, a, pivots, room);
  lt_triangle_exchange(dtype, k, pivots, false, rest, right);
  lt_triangle_solve(dtype, k, rest, a, false, true, right);
  if (m == k) return info;
  subtract(dtype, m - k, rest, k, at(dtype, a, k, 0), right, low);
  int64_t more = least(m - k, rest);
  int low_info = lt_triangle_lu(dtype, m - k, rest, low, pivots + k, room);
  lt_triangle_exchange(dtype, more, pivots + k, false, h, at(dtype, a, k, 0));
  for (int64_t i = k; i < k + more; i++) pivots[i] += (int32_t)k;
  return info ? info : low_info ? low_info + (int)k : 0;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* Subtracts b^T b, b {k, n}, from the upper triangle of c, and some elements from the lower. */
static void subtract_square(lt_Dtype dtype, int64_t n, int64_t k, lt_Matrix b, lt_Matrix c) {
  lt_Matrix transposed = {b.data, b.column, b.row};
  if (n <= 2 * LT_SOLVE_ORDER) {
    subtract(dtype, n, n, k, transposed, b, c);
    return;
  }
  int64_t h = half_of(n, LT_SOLVE_ORDER / 2);
  subtract_square(dtype, h, k, b, c);
  subtract(dtype, h, n - h, k, transposed, at(dtype, b, 0, h), at(dtype, c, 0, h));
  subtract_square(dtype, n - h, k, at(dtype, b, 0, h), at(dtype, c, h, h));
}

int lt_triangle_cholesky(lt_Dtype dtype, int64_t n, lt_Matrix a) {
  if (n == 0 || lt_stopped()) return 0;
  if (n <= LT_CHOLESKY_ORDER) return lt_triangle_loops(dtype)->cholesky((int)n, a.data, a.row);
  int64_t h = half_of(n, LT_CHOLESKY_ORDER / 2);
  lt_Matrix right = at(dtype, a, 0, h), low = at(dtype, a, h, h);
  int info = lt_triangle_cholesky(dtype, h, a);
  if (info) return info;
  lt_triangle_solve(dtype, h, n - h, (lt_Matrix){a.data, a.column, a.row}, false, false, right);
  subtract_square(dtype, n - h, h, right, low);
  info = lt_triangle_cholesky(dtype, n - h, low);
  return info ? info + (int)h : 0;
}
