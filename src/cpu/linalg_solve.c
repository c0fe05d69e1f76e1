/* linalg_solve.c: triangular factorizations and what is computed from them: Cholesky, LU and LDL
 * factors, inverses, solutions of linear systems, determinants.
 *
 * Each kernel runs on a copy of every matrix of the batch: of small real matrices, a block of them
 * at once, the loops of small_matrices.h; of other real ones, by rows, the loops of triangle.c
 * where there are some for the CPU, else LAPACK by columns. */
#include "kernel_support.h"
#include "lapack.h"
#include "matrix_errors.h"
#include "small_matrices.h"
#include "triangle.h"

#include <math.h>

/* A call over a batch of matrices {m, n} with nrhs right sides. */
typedef struct Job {
  lt_Call *c;
  const lt_Lapack *f;
  int m, n, nrhs;
  int ld, ldb; /* leading dimensions of a matrix and of the right sides */
  int lwork;
  bool by_rows;               /* triangle.c is used */
  const lt_SmallLoops *small; /* for blocks of matrices; NULL: they are too large */
  lt_Dtype dtype;
  bool flag[3]; /* the bool arguments that the kernel reads */
} Job;

/* Opens a call: the sizes of argument 0. Returns false with the error set when there is no LAPACK
 * or a size is too large for it. */
static bool open_job(Job *j, lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
  if (m > INT32_MAX || n > INT32_MAX)
    return lt_fail("cannot pass %s to LAPACK: a matrix has at most %d rows and columns",
                   lt_shape_text(a->ndim, a->shape), INT32_MAX);
  *j = (Job){.c = c, .f = lt_lapack(a->dtype), .m = (int)m, .n = (int)n};
  j->ld = j->ldb = j->m > 1 ? j->m : 1;
  j->dtype = a->dtype;
  return j->f != NULL;
}

/* Returns elements from one row to the next for rows of n: rows that are a multiple of 512 bytes
 * apart would share few lines of the cache. */
static int padded(const Job *j, int64_t n) {
  int64_t unit = 512 / (int64_t)j->f->size;
  return (int)(n > 1 ? n % unit ? n : n + 64 / (int64_t)j->f->size : 1);
}

/* Opens a call that triangle.c can compute. */
static bool open_rows(Job *j, lt_Call *c) {
  if (!open_job(j, c)) return false;
  j->by_rows = lt_triangle_loops(j->dtype) != NULL && j->n < INT32_MAX - 64;
  if (j->by_rows) j->ld = padded(j, j->n);
  if (j->m == j->n && j->n > 0 && j->n <= LT_SMALL_ORDER) j->small = lt_small_loops(j->dtype);
  return true;
}

/* Runs fn as lt_matrices_run does, or `block` for the blocks of small matrices, unless it is
 * NULL. */
static bool run(Job *j, double work, double alone, size_t scratch, lt_MatrixFn fn,
                lt_MatrixFn block) {
  int64_t count = lt_matrices_count(lt_in(j->c, 0), 2), unit = LT_BLOCK_BYTES / (int)j->f->size;
  if (j->small && block)
    return lt_matrices_each((count + unit - 1) / unit, work * (double)unit, 0, block, j);
  return j->by_rows ? lt_matrices_each(count, work, scratch, fn, j)
                    : lt_matrices_run(count, work, alone, scratch, fn, j);
}

static lt_Matrix rows_of(void *data, int64_t ld) { return (lt_Matrix){data, ld, 1}; }

static size_t bytes_of(const Job *j, int64_t r, int64_t c) { return (size_t)(r * c) * j->f->size; }

/* Returns element `at` of the int32 result r, where `info` of a matrix is stored. */
static int32_t *info_at(const Job *j, int r, int64_t at) {
  return (int32_t *)lt_tensor_data(j->c->out[r]) + at;
}

/* Fails when an element of the int32 result r is not 0, with that text of matrix_errors.h. */
static bool check_info(const Job *j, int r, const char *text) {
  const lt_Tensor *info = j->c->out[r];
  for (int64_t i = 0; i < info->numel; i++)
    if (*info_at(j, r, i)) return lt_bad_matrix(text, lt_in(j->c, 0), i, *info_at(j, r, i));
  return true;
}

/* A block of small matrices. */
typedef struct Block {
  int64_t first; /* matrix */
  int used;      /* matrices */
  _Alignas(LT_BLOCK_BYTES) char a[LT_SMALL_ORDER * LT_SMALL_ORDER * LT_BLOCK_BYTES];
  char x[LT_SMALL_ORDER * LT_SMALL_SIDES * LT_BLOCK_BYTES]; /* right sides */
  char pivots[LT_SMALL_ORDER * LT_BLOCK_BYTES], info[LT_BLOCK_BYTES];
} Block;

/* Copies block `at` of argument 0. */
static void open_block(const Job *j, int64_t at, bool transposed, Block *b) {
  int64_t unit = LT_BLOCK_BYTES / (int)j->f->size;
  int64_t rest = lt_matrices_count(lt_in(j->c, 0), 2) - at * unit;
  b->first = at * unit;
  b->used = (int)(rest < unit ? rest : unit);
  lt_block_get(lt_in(j->c, 0), b->first, b->used, transposed, b->a);
}

static void factor_block(const Job *j, int64_t at, Block *b) {
  open_block(j, at, false, b);
  j->small->lu(j->n, b->used, b->a, b->pivots, b->info);
}

static void put_info(const Job *j, int r, const Block *b) {
  lt_block_integers(j->f->size, 1, 0, b->used, b->info, info_at(j, r, b->first));
}

/* Sets the elements of a column-major matrix outside one triangle to 0. */
static void clear_triangle(const lt_Lapack *f, char *a, int n, int ld, bool upper) {
  for (int col = 0; col < n; col++) {
    int from = upper ? col + 1 : 0, to = upper ? n : col;
    if (to > from) memset(lt_matrix_at(f, a, ld, from, col), 0, (size_t)(to - from) * f->size);
  }
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

static void cholesky_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  bool upper = j->flag[0];
  int info = 0;
  if (j->by_rows) { /* L by columns is U by rows */
    lt_matrix_get(lt_in(j->c, 0), at, upper, scratch, j->ld);
    info = lt_triangle_cholesky(j->dtype, j->n, rows_of(scratch, j->ld));
    clear_triangle(j->f, scratch, j->n, j->ld, false);
    lt_matrix_put(j->c->out[0], at, upper, scratch, j->ld, j->n, j->n);
    *info_at(j, 1, at) = info;
    return;
  }
  lt_matrix_get(lt_in(j->c, 0), at, false, scratch, j->ld);
  j->f->potrf(upper ? "U" : "L", &j->n, scratch, &j->ld, &info, 1);
  clear_triangle(j->f, scratch, j->n, j->ld, upper);
  lt_matrix_put(j->c->out[0], at, false, scratch, j->ld, j->n, j->n);
  *info_at(j, 1, at) = info;
}

static void cholesky_block(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  Block b;
  (void)scratch;
  open_block(j, at, j->flag[0], &b);
  j->small->cholesky(j->n, b.used, b.a, b.info);
  lt_block_put(j->c->out[0], b.first, b.used, j->flag[0], b.a);
  put_info(j, 1, &b);
}

/* _linalg_cholesky (self, upper, check): L, info */
bool lt_cpu__linalg_cholesky(lt_Call *c) {
  Job j;
  if (!open_rows(&j, c)) return false;
  j.flag[0] = c->arg[1].b;
  double n = j.n;
  if (!run(&j, n * n * n / 3, LT_ALONE_MATRICES, bytes_of(&j, j.ld, j.n), cholesky_one,
           cholesky_block))
    return false;
  return !c->arg[2].b || check_info(&j, 1, LT_NOT_DEFINITE);
}

/* ---- LU -------------------------------------------------------------------------------------- */

/* Returns the bytes that `factor` needs for a matrix, and for its work. */
static size_t matrix_bytes(const Job *j) { return bytes_of(j, j->ld, j->by_rows ? j->m : j->n); }
static size_t factor_bytes(const Job *j) {
  return j->by_rows ? lt_triangle_room(j->dtype, j->m) : 0;
}

/* Copies matrix `at` and factors it. Returns LAPACK's info: above 0 when U is singular. */
static int factor(const Job *j, int64_t at, char *a, int *pivots, void *room) {
  int info = 0;
  if (j->by_rows) {
    lt_matrix_get(lt_in(j->c, 0), at, true, a, j->ld);
    return lt_triangle_lu(j->dtype, j->m, j->n, rows_of(a, j->ld), pivots, room);
  }
  lt_matrix_get(lt_in(j->c, 0), at, false, a, j->ld);
  if (j->m && j->n) j->f->getrf(&j->m, &j->n, a, &j->ld, pivots, &info);
  return info;
}

static int least(int a, int b) { return a < b ? a : b; }

static void lu_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  int *pivots = lt_vector_at(j->c->out[1], at, least(j->m, j->n));
  char *a = lt_take(&scratch, matrix_bytes(j));
  *info_at(j, 2, at) = factor(j, at, a, pivots, scratch);
  if (j->by_rows)
    lt_matrix_put(j->c->out[0], at, true, a, j->ld, j->n, j->m);
  else
    lt_matrix_put(j->c->out[0], at, false, a, j->ld, j->m, j->n);
}

static void lu_block(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  Block b;
  (void)scratch;
  factor_block(j, at, &b);
  lt_block_put(j->c->out[0], b.first, b.used, false, b.a);
  lt_block_integers(j->f->size, j->n, 0, b.used, b.pivots,
                    lt_vector_at(j->c->out[1], b.first, j->n));
  put_info(j, 2, &b);
}

/* Returns the multiplications of an LU factorization. */
static double lu_work(const Job *j) { return (double)j->m * j->n * least(j->m, j->n) * 2 / 3; }

/* _linalg_lu_factor (self, check): LU, pivots, info */
bool lt_cpu__linalg_lu_factor(lt_Call *c) {
  Job j;
  if (!open_rows(&j, c)) return false;
  if (!run(&j, lu_work(&j), LT_ALONE_MATRICES, lt_lines_of(matrix_bytes(&j)) + factor_bytes(&j),
           lu_one, lu_block))
    return false;
  return !c->arg[1].b || check_info(&j, 2, LT_SINGULAR_FACTORS);
}

/* Applies the row exchanges of one vector of pivots to the rows 1..m. Returns k, or the index of
 * the first pivot that is out of range. */
static int64_t exchange(const int32_t *pivots, int64_t k, int64_t *rows, int64_t m) {
  for (int64_t i = 0; i < m; i++) rows[i] = i + LT_INDEX_BASE;
  for (int64_t i = 0; i < k; i++) {
    if (pivots[i] < 1 || pivots[i] > m) return i;
    int64_t other = rows[pivots[i] - 1];
    rows[pivots[i] - 1] = rows[i];
    rows[i] = other;
  }
  return k;
}

/* _linalg_lu_permutation (pivots, rows): the rows of A in the order of the rows of L U */
bool lt_cpu__linalg_lu_permutation(lt_Call *c) {
  lt_Tensor *pivots = lt_as_contiguous(lt_in(c, 0), LT_int32);
  if (!pivots) return false;
  int64_t k = pivots->shape[pivots->ndim - 1], m = c->arg[1].i;
  int64_t count = lt_matrices_count(pivots, 1);
  bool ok = true;
  for (int64_t at = 0; ok && at < count && !lt_stopped(); at++) {
    const int32_t *each = lt_vector_at(pivots, at, k);
    int64_t done = exchange(each, k, lt_vector_at(c->out[0], at, m), m);
    ok = done == k || lt_bad_index(lt_arg_name(c, 0), pivots->ndim, pivots->shape, at * k + done,
                                   each[done], m, false);
  }
  lt_release(pivots);
  return ok;
}

/* ---- inverses and solutions ------------------------------------------------------------------ */

/* Writes x with its columns exchanged as the rows of a were: the inverse of P^T L U is the inverse
 * of L U, times P. */
#define PUT_COLUMNS(T)                                                                             \
  static void put_columns_##T(int64_t n, const int32_t *column, const T *x, int64_t row, T *to) {  \
    for (int64_t i = 0; i < n; i++, x += row, to += n)                                             \
      for (int64_t k = 0; k < n; k++) to[column[k]] = x[k];                                        \
  }
PUT_COLUMNS(float)
PUT_COLUMNS(double)

static void inverse_by_rows(const Job *j, int64_t at, char *scratch) {
  char *a = lt_take(&scratch, matrix_bytes(j)), *x = lt_take(&scratch, matrix_bytes(j));
  int n = j->n, *pivots = lt_take(&scratch, sizeof(int) * (size_t)j->ld);
  int *column = lt_take(&scratch, sizeof(int) * (size_t)j->ld);
  int info = factor(j, at, a, pivots, scratch);
  void *to = lt_vector_at(j->c->out[0], at, (int64_t)n * n);
  *info_at(j, 1, at) = info;
  if (info) {
    lt_matrix_put(j->c->out[0], at, true, a, j->ld, n, n);
    return;
  }
  lt_triangle_invert(j->dtype, n, rows_of(a, j->ld), rows_of(x, j->ld));
  lt_triangle_solve(j->dtype, n, n, rows_of(a, j->ld), true, false, rows_of(x, j->ld));
  for (int i = 0; i < n; i++) column[i] = i;
  for (int i = 0; i < n; i++) {
    int other = column[pivots[i] - 1];
    column[pivots[i] - 1] = column[i];
    column[i] = other;
  }
  if (j->dtype == LT_float32)
    put_columns_float(n, column, (const float *)(void *)x, j->ld, to);
  else
    put_columns_double(n, column, (const double *)(void *)x, j->ld, to);
}

static void inverse_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  if (j->by_rows) {
    inverse_by_rows(j, at, scratch);
    return;
  }
  char *a = lt_take(&scratch, bytes_of(j, j->ld, j->n));
  int *pivots = lt_take(&scratch, sizeof(int) * (size_t)j->ld);
  int info = factor(j, at, a, pivots, NULL);
  if (info == 0 && j->n) j->f->getri(&j->n, a, &j->ld, pivots, scratch, &j->lwork, &info);
  lt_matrix_put(j->c->out[0], at, false, a, j->ld, j->n, j->n);
  *info_at(j, 1, at) = info;
}

/* Writes inverses, but the factors of a matrix that has none. */
static void inverse_block(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  Block b;
  (void)scratch;
  factor_block(j, at, &b);
  j->small->invert(j->n, b.used, b.a, b.pivots, b.info, b.x);
  lt_block_put(j->c->out[0], b.first, b.used, false, b.x);
  put_info(j, 1, &b);
}

/* _linalg_inv (self, check): inverse, info */
bool lt_cpu__linalg_inv(lt_Call *c) {
  Job j;
  if (!open_rows(&j, c)) return false;
  int query = -1, info;
  char answer[16];
  if (j.n && !j.by_rows) j.f->getri(&j.n, NULL, &j.ld, NULL, answer, &query, &info);
  j.lwork = j.n && !j.by_rows ? lt_lapack_work(j.f, answer) : 1;
  size_t scratch = 2 * lt_lines_of(matrix_bytes(&j)) + 2 * lt_lines_of(sizeof(int) * (size_t)j.ld) +
                   factor_bytes(&j) + bytes_of(&j, j.lwork, 1);
  if (!run(&j, 3 * lu_work(&j), LT_ALONE_MATRICES / 2, scratch, inverse_one, inverse_block))
    return false;
  return !c->arg[1].b || check_info(&j, 1, LT_SINGULAR_INVERSE);
}

/* X A = B is solved as A^T X^T = B^T, with A^T = U^T L^T P. */
static void solve_by_rows(const Job *j, int64_t at, char *scratch) {
  bool right = !j->flag[0];
  char *a = lt_take(&scratch, matrix_bytes(j)), *b = lt_take(&scratch, bytes_of(j, j->ldb, j->n));
  int *pivots = lt_take(&scratch, sizeof(int) * (size_t)j->ld);
  *info_at(j, 1, at) = factor(j, at, a, pivots, scratch);
  lt_Matrix f = rows_of(a, j->ld), x = rows_of(b, j->ldb);
  lt_Matrix first = right ? (lt_Matrix){a, 1, j->ld} : f;
  lt_matrix_get(lt_in(j->c, 1), at, !right, b, j->ldb);
  if (!right) lt_triangle_exchange(j->dtype, j->n, pivots, false, j->nrhs, x);
  lt_triangle_solve(j->dtype, j->n, j->nrhs, first, false, !right, x);
  lt_triangle_solve(j->dtype, j->n, j->nrhs, first, true, right, x);
  if (right) lt_triangle_exchange(j->dtype, j->n, pivots, true, j->nrhs, x);
  lt_matrix_put(j->c->out[0], at, !right, b, j->ldb, j->nrhs, j->n);
}

/* X A = B is solved as A^T X^T = B^T. */
static void solve_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  if (j->by_rows) {
    solve_by_rows(j, at, scratch);
    return;
  }
  bool right = !j->flag[0];
  char *a = lt_take(&scratch, bytes_of(j, j->ld, j->n));
  int *pivots = lt_take(&scratch, sizeof(int) * (size_t)j->ld);
  int info = factor(j, at, a, pivots, NULL), status = 0;
  lt_matrix_get(lt_in(j->c, 1), at, right, scratch, j->ldb);
  if (j->n && j->nrhs)
    j->f->getrs(right ? "T" : "N", &j->n, &j->nrhs, a, &j->ld, pivots, scratch, &j->ldb, &status,
                1);
  lt_matrix_put(j->c->out[0], at, right, scratch, j->ldb, j->n, j->nrhs);
  *info_at(j, 1, at) = info;
}

/* Solves A X = B. */
static void solve_block(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  Block b;
  (void)scratch;
  factor_block(j, at, &b);
  lt_block_get(lt_in(j->c, 1), b.first, b.used, false, b.x);
  j->small->solve(j->n, j->nrhs, b.used, b.a, b.pivots, b.x);
  lt_block_put(j->c->out[0], b.first, b.used, false, b.x);
  put_info(j, 1, &b);
}

/* Reads the number of right sides from argument 1, which are columns (left) or rows. */
static bool open_right_sides(Job *j, bool left) {
  const lt_Tensor *b = lt_in(j->c, 1);
  int64_t n = b->shape[b->ndim - (left ? 1 : 2)];
  j->nrhs = (int)n;
  return n <= INT32_MAX || lt_fail("cannot solve for more than %d right sides", INT32_MAX);
}

/* _linalg_solve (self, B, left, check): X, info */
bool lt_cpu__linalg_solve(lt_Call *c) {
  Job j;
  if (!open_rows(&j, c) || !open_right_sides(&j, c->arg[2].b)) return false;
  j.flag[0] = c->arg[2].b;
  if (j.by_rows) j.ldb = padded(&j, j.nrhs);
  size_t scratch = lt_lines_of(matrix_bytes(&j)) + lt_lines_of(sizeof(int) * (size_t)j.ld) +
                   lt_lines_of(bytes_of(&j, j.ldb, j.by_rows ? j.n : j.nrhs)) + factor_bytes(&j);
  double n = j.n;
  bool few = j.flag[0] && j.nrhs > 0 && j.nrhs <= LT_SMALL_SIDES;
  if (!run(&j, lu_work(&j) + n * n * j.nrhs, LT_ALONE_MATRICES, scratch, solve_one,
           few ? solve_block : NULL))
    return false;
  return !c->arg[3].b || check_info(&j, 1, LT_SINGULAR_SYSTEM);
}

static void triangular_by_rows(const Job *j, int64_t at, char *scratch) {
  bool left = j->flag[1];
  lt_Matrix a = lt_matrix_of(lt_in(j->c, 0), at);
  if (!left) a = (lt_Matrix){a.data, a.column, a.row};
  if (!lt_gemm_takes(a, j->n, j->n)) {
    char *copy = lt_take(&scratch, matrix_bytes(j));
    lt_matrix_get(lt_in(j->c, 0), at, left, copy, j->ld);
    a = rows_of(copy, j->ld);
  }
  lt_matrix_get(lt_in(j->c, 1), at, left, scratch, j->ldb);
  lt_triangle_solve(j->dtype, j->n, j->nrhs, a, j->flag[0] == left, j->flag[2],
                    rows_of(scratch, j->ldb));
  lt_matrix_put(j->c->out[0], at, left, scratch, j->ldb, j->nrhs, j->n);
}

static void triangular_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  if (j->by_rows) {
    triangular_by_rows(j, at, scratch);
    return;
  }
  bool left = j->flag[1];
  const double one[2] = {1, 0};
  const float one_single[2] = {1, 0};
  char *a = lt_take(&scratch, bytes_of(j, j->ld, j->n));
  int rows = left ? j->n : j->nrhs, columns = left ? j->nrhs : j->n, ld = rows > 1 ? rows : 1;
  lt_matrix_get(lt_in(j->c, 0), at, false, a, j->ld);
  lt_matrix_get(lt_in(j->c, 1), at, false, scratch, ld);
  if (rows && columns)
    j->f->trsm(left ? "L" : "R", j->flag[0] ? "U" : "L", "N", j->flag[2] ? "U" : "N", &rows,
               &columns, j->f->real_size == sizeof(double) ? (const void *)one : one_single, a,
               &j->ld, scratch, &ld, 1, 1, 1, 1);
  lt_matrix_put(j->c->out[0], at, false, scratch, ld, rows, columns);
}

/* _linalg_solve_triangular (self, B, upper, left, unitriangular) */
bool lt_cpu__linalg_solve_triangular(lt_Call *c) {
  Job j;
  if (!open_rows(&j, c) || !open_right_sides(&j, c->arg[3].b)) return false;
  for (int i = 0; i < 3; i++) j.flag[i] = c->arg[2 + i].b;
  j.ldb = padded(&j, j.nrhs);
  double n = j.n;
  return run(&j, n * n * j.nrhs / 2, LT_ALONE_MATRICES,
             lt_lines_of(matrix_bytes(&j)) + bytes_of(&j, j.ld, j.ldb), triangular_one, NULL);
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* Reads a number of the matrix's dtype. */
static void read_number(const lt_Lapack *f, const char *from, double number[2]) {
  float single[2] = {0, 0};
  number[1] = 0;
  if (f->real_size == sizeof(double)) {
    memcpy(number, from, f->size);
    return;
  }
  memcpy(single, from, f->size);
  number[0] = (double)single[0];
  if (f->is_complex) number[1] = (double)single[1];
}

static void write_number(size_t real_size, bool is_complex, void *to, const double number[2]) {
  float single[2] = {(float)number[0], (float)number[1]};
  memcpy(to, real_size == sizeof(double) ? (const void *)number : single,
         real_size << (int)is_complex);
}

/* Multiplies x by y. */
static void times(double x[2], const double y[2], bool is_complex) {
  double re = x[0] * y[0] - (is_complex ? x[1] * y[1] : 0);
  x[1] = is_complex ? x[0] * y[1] + x[1] * y[0] : 0;
  x[0] = re;
}

/* Computes the product of the signs of the row exchanges and, as `sign * exp(log)`, of the diagonal
 * of U, elements `step` elements apart; without `log`, the product itself in `sign`. */
static void product(const Job *j, const char *a, int64_t step, const int *pivots, double sign[2],
                    double *log_size) {
  sign[0] = 1;
  sign[1] = 0;
  if (log_size) *log_size = 0;
  for (int i = 0; i < j->n; i++) {
    double u[2];
    read_number(j->f, a + i * step * (int64_t)j->f->size, u);
    if (log_size) {
      double size = j->f->is_complex ? hypot(u[0], u[1]) : fabs(u[0]);
      *log_size += log(size);
      if (j->f->is_complex) {
        u[0] = size == 0 ? 0 : u[0] / size;
        u[1] = size == 0 ? 0 : u[1] / size;
      } else if (!isnan(size)) {
        u[0] = (u[0] > 0) - (u[0] < 0);
      }
    }
    times(sign, u, j->f->is_complex);
    if (pivots[i] == i + 1) continue;
    sign[0] = -sign[0];
    sign[1] = -sign[1];
  }
}

/* Writes the determinant of matrix `at` from its factors. */
static void put_det(const Job *j, int64_t at, const char *a, int64_t step, const int *pivots) {
  bool with_log = j->c->nout == 2;
  double sign[2], log_size[2] = {0, 0};
  product(j, a, step, pivots, sign, with_log ? log_size : NULL);
  write_number(j->f->real_size, j->f->is_complex, lt_vector_at(j->c->out[0], at, 1), sign);
  if (with_log) write_number(j->f->real_size, false, lt_vector_at(j->c->out[1], at, 1), log_size);
}

static void det_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  char *a = lt_take(&scratch, matrix_bytes(j));
  int *pivots = lt_take(&scratch, sizeof(int) * (size_t)j->ld);
  factor(j, at, a, pivots, scratch);
  put_det(j, at, a, j->ld + 1, pivots);
}

/* Writes the determinant of matrix k of a block. Up to 8 factors of common sizes have a product,
 * whose logarithm is the sum of theirs. */
static void put_block_det(const Job *j, const Block *b, int k, const lt_BlockProduct *p) {
  bool with_log = j->c->nout == 2;
  int pivots[LT_SMALL_ORDER], unit = LT_BLOCK_BYTES / (int)j->f->size;
  double det[2] = {p->det[k], 0}, sign[2] = {det[0] < 0 ? -1 : 1, 0};
  bool common = p->least[k] > 1e-30 && p->most[k] < 1e30 && !isnan(det[0]);
  if (with_log && !common) {
    lt_block_integers(j->f->size, j->n, k, 1, b->pivots, pivots);
    put_det(j, b->first + k, b->a + (size_t)k * j->f->size, (j->n + 1) * unit, pivots);
    return;
  }
  write_number(j->f->real_size, false, lt_vector_at(j->c->out[0], b->first + k, 1),
               with_log ? sign : det);
  if (!with_log) return;
  det[0] = log(fabs(det[0]));
  write_number(j->f->real_size, false, lt_vector_at(j->c->out[1], b->first + k, 1), det);
}

static void det_block(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  Block b;
  lt_BlockProduct p;
  (void)scratch;
  factor_block(j, at, &b);
  j->small->product(j->n, b.a, b.pivots, &p);
  for (int k = 0; k < b.used; k++) put_block_det(j, &b, k, &p);
}

/* _linalg_det (self), and _linalg_slogdet (self): sign, logabsdet */
bool lt_cpu__linalg_det(lt_Call *c) {
  Job j;
  if (!open_rows(&j, c)) return false;
  return run(&j, lu_work(&j), LT_ALONE_MATRICES,
             lt_lines_of(matrix_bytes(&j)) + lt_lines_of(sizeof(int) * (size_t)j.ld) +
                 factor_bytes(&j),
             det_one, det_block);
}

bool lt_cpu__linalg_slogdet(lt_Call *c) { return lt_cpu__linalg_det(c); }

/* ---- LDL ------------------------------------------------------------------------------------- */

static void ldl_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  int info = 0, *pivots = lt_vector_at(j->c->out[1], at, j->n);
  char *a = lt_take(&scratch, bytes_of(j, j->ld, j->n));
  lt_matrix_get(lt_in(j->c, 0), at, false, a, j->ld);
  if (j->n)
    (j->flag[0] ? j->f->hetrf : j->f->sytrf)("L", &j->n, a, &j->ld, pivots, scratch, &j->lwork,
                                             &info, 1);
  clear_triangle(j->f, a, j->n, j->ld, false);
  lt_matrix_put(j->c->out[0], at, false, a, j->ld, j->n, j->n);
  *info_at(j, 2, at) = info;
}

/* _linalg_ldl_factor (self, hermitian, check): LD, pivots, info */
bool lt_cpu__linalg_ldl_factor(lt_Call *c) {
  Job j;
  if (!open_job(&j, c)) return false;
  j.flag[0] = c->arg[1].b && j.f->is_complex;
  int query = -1, info, pivot;
  char answer[16], element[16];
  if (j.n)
    (j.flag[0] ? j.f->hetrf : j.f->sytrf)("L", &j.n, element, &j.ld, &pivot, answer, &query, &info,
                                          1);
  j.lwork = j.n ? lt_lapack_work(j.f, answer) : 1;
  double n = j.n;
  if (!lt_matrices_run(lt_matrices_count(lt_in(c, 0), 2), n * n * n / 3, LT_ALONE_MATRICES,
                       lt_lines_of(bytes_of(&j, j.ld, j.n)) + bytes_of(&j, j.lwork, 1), ldl_one,
                       &j))
    return false;
  return !c->arg[2].b || check_info(&j, 2, LT_SINGULAR_BLOCKS);
}

static void ldl_solve_one(void *context, int64_t at, char *scratch) {
  const Job *j = context;
  int info = 0;
  const lt_Tensor *pivots = lt_in(j->c, 1);
  char *a = lt_take(&scratch, bytes_of(j, j->ld, j->n));
  lt_matrix_get(lt_in(j->c, 0), at, false, a, j->ld);
  lt_matrix_get(lt_in(j->c, 2), at, false, scratch, j->ldb);
  if (j->n && j->nrhs)
    (j->flag[0] ? j->f->hetrs : j->f->sytrs)("L", &j->n, &j->nrhs, a, &j->ld,
                                             lt_vector_at(pivots, at, j->n), scratch, &j->ldb,
                                             &info, 1);
  lt_matrix_put(j->c->out[0], at, false, scratch, j->ldb, j->n, j->nrhs);
}

/* Checks that every pivot is a row, as LAPACK uses them as indices, and that negative ones, of
 * 2 x 2 blocks, come in pairs. */
static bool check_pivots(const lt_Tensor *pivots, int n) {
  const int32_t *p = lt_tensor_data(pivots);
  bool second = false; /* of a pair */
  for (int64_t i = 0; i < pivots->numel; i++) {
    bool last = i % n == n - 1, starts = p[i] < 0 && !second;
    if (p[i] == 0 || p[i] > n || p[i] < -n || (second && p[i] > 0) || (starts && last))
      return lt_fail("expected pivots from 1 to %d or pairs of negative ones for argument "
                     "'pivots', got %d",
                     n, p[i]);
    second = starts;
  }
  return true;
}

/* _linalg_ldl_solve (LD, pivots, B, hermitian) */
bool lt_cpu__linalg_ldl_solve(lt_Call *c) {
  Job j;
  if (!open_job(&j, c)) return false;
  const lt_Tensor *b = lt_in(c, 2);
  j.nrhs = (int)b->shape[b->ndim - 1];
  j.flag[0] = c->arg[3].b && j.f->is_complex;
  lt_Tensor *given = c->arg[1].tensor, *pivots = lt_as_contiguous(given, LT_int32);
  if (!pivots) return false;
  c->arg[1].tensor = pivots;
  double n = j.n;
  bool ok = check_pivots(pivots, j.n) &&
            lt_matrices_run(lt_matrices_count(lt_in(c, 0), 2), n * n * j.nrhs, LT_ALONE_MATRICES,
                            lt_lines_of(bytes_of(&j, j.ld, j.n)) + bytes_of(&j, j.ldb, j.nrhs),
                            ldl_solve_one, &j);
  c->arg[1].tensor = given;
  lt_release(pivots);
  return ok;
}
