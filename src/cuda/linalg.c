/* linalg.c: triangular factorizations and what is computed from them: Cholesky and LU factors,
 * inverses, solutions of linear systems, determinants. */
#include "linalg.h"
#include "matrix_errors.h"
#include "solver.h"

/* Fails with the text when `check` is true and the info of a matrix is not 0. Only then is the host
 * blocked. */
static bool check_info(lt_SolverJob *j, bool check, const char *text) {
  int64_t at;
  int value;
  if (!check) return true;
  return lt_solver_info(j, &at, &value) &&
         (at < 0 || lt_bad_matrix(text, lt_in(j->c, 0), at, value));
}

static char *matrix_at(const lt_SolverJob *j, char *first, int64_t rows, int64_t columns,
                       int64_t at) {
  return first + rows * columns * at * j->size;
}

/* A factorization in place: the library's routines, for one matrix and for batches. */
typedef struct Factorization {
  const char *name, *batched;
  lt_SolverFn query, one, all;
} Factorization;

/* Factors the matrices in j->a, small square ones all at once. */
static bool run_factorization(lt_SolverJob *j, const Factorization *f) {
  if (j->m != j->n || !lt_solver_is_batched(j, j->n))
    return lt_solver_query(j, f->name, f->query) && lt_solver_run(j, f->name, f->one, j->count);
  j->work = lt_solver_addresses(j, j->a, (int64_t)j->n * j->n);
  return j->work && lt_solver_run(j, f->batched, f->all, 1);
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

/* The row-major memory of A is that of conj(A) in column-major order. With U^H U = conj(A), L is
 * U^T, whose row-major memory is that of U: the other triangle is factored in place. */
static int triangle_of(const lt_SolverJob *j) {
  return j->flag[0] ? LT_SOLVER_LOWER : LT_SOLVER_UPPER;
}

static int potrf_query(lt_SolverJob *j, int64_t at) {
  (void)at;
  return j->f->potrf_size(j->solver, triangle_of(j), j->n, j->a, j->n, &j->lwork);
}
static int potrf_one(lt_SolverJob *j, int64_t at) {
  return j->f->potrf(j->solver, triangle_of(j), j->n, matrix_at(j, j->a, j->n, j->n, at), j->n,
                     j->work, j->lwork, j->info + at);
}
static int potrf_all(lt_SolverJob *j, int64_t at) {
  (void)at;
  return j->f->potrf_batched(j->solver, triangle_of(j), j->n, j->work, j->n, j->info,
                             (int)j->count);
}

static const Factorization potrf = {"potrf", "potrfBatched", potrf_query, potrf_one, potrf_all};

/* _linalg_cholesky (self, upper, check): L, info */
bool lt_cuda__linalg_cholesky(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  j.flag[0] = c->arg[1].b;
  j.a = lt_tensor_data(c->out[0]);
  j.info = lt_tensor_data(c->out[1]);
  bool ok = lt_cuda_begin(c) && lt_copy_into(c->out[0], lt_in(c, 0), false) &&
            run_factorization(&j, &potrf) && lt_solver_triangle(&j, c->out[0], j.flag[0]) &&
            check_info(&j, c->arg[2].b, LT_NOT_DEFINITE);
  return lt_solver_close(&j, ok);
}

/* ---- LU -------------------------------------------------------------------------------------- */

static int getrf_query(lt_SolverJob *j, int64_t at) {
  (void)at;
  return j->f->getrf_size(j->solver, j->m, j->n, j->a, j->m, &j->lwork);
}
static int getrf_one(lt_SolverJob *j, int64_t at) {
  return j->f->getrf(j->solver, j->m, j->n, matrix_at(j, j->a, j->m, j->n, at), j->m, j->work,
                     j->pivots + at * j->k, j->info + at);
}
static int getrf_all(lt_SolverJob *j, int64_t at) {
  (void)at;
  return j->f->getrf_batched(j->blas, j->n, j->work, j->n, j->pivots, j->info, (int)j->count);
}

static const Factorization getrf = {"getrf", "getrfBatched", getrf_query, getrf_one, getrf_all};

/* Copies the matrices of argument 0 to j->a and factors them. Allocates pivots and info where the
 * row has not set them. */
static bool factor(lt_SolverJob *j) {
  if (!j->pivots) j->pivots = lt_solver_memory(j, LT_int32, j->count * j->k);
  if (!j->info) j->info = lt_solver_memory(j, LT_int32, j->count);
  j->a = lt_solver_load(j, lt_in(j->c, 0), false);
  return j->pivots && j->info && j->a && run_factorization(j, &getrf);
}

/* _linalg_lu_factor (self, check): LU, pivots, info */
bool lt_cuda__linalg_lu_factor(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  j.pivots = lt_tensor_data(c->out[1]);
  j.info = lt_tensor_data(c->out[2]);
  bool ok = lt_cuda_begin(c) && factor(&j) && lt_solver_store(&j, j.a, j.m, j.n, c->out[0]) &&
            check_info(&j, c->arg[1].b, LT_SINGULAR_FACTORS);
  return lt_solver_close(&j, ok);
}

/* _linalg_lu_permutation (pivots, rows): the rows of A in the order of the rows of L U */
bool lt_cuda__linalg_lu_permutation(lt_Call *c) {
  lt_Tensor *out = c->out[0], *given = lt_in(c, 0);
  int64_t rows = c->arg[1].i, k = given->shape[given->ndim - 1];
  lt_CudaFault fault;
  if (!lt_cuda_begin(c)) return false;
  if (out->numel == 0) return true;
  lt_Tensor *pivots = lt_cuda_checked_indices(c, given, rows, false, lt_arg_name(c, 0), &fault);
  bool ok = pivots && lt_cuda_launch_ok(lt_cuda_launch_permutation(
                          lt_tensor_data(pivots), k, rows, out->numel / rows, lt_tensor_data(out),
                          lt_cuda_stream(c)));
  lt_release(pivots);
  return ok;
}

/* ---- inverses and solutions ------------------------------------------------------------------ */

/* Solves by the factors for the right sides in j->b; with flag[0], by those of the transposes. Its
 * info, in j->s and on the host, is that of invalid arguments only. */
static int getrs_one(lt_SolverJob *j, int64_t at) {
  return j->f->getrs(j->solver, j->flag[0] ? LT_SOLVER_TRANSPOSED : LT_SOLVER_PLAIN, j->n, j->nrhs,
                     matrix_at(j, j->a, j->n, j->n, at), j->n, j->pivots + at * j->n,
                     matrix_at(j, j->b, j->n, j->nrhs, at), j->n, (int *)(void *)j->s);
}
static int getrs_all(lt_SolverJob *j, int64_t at) {
  int info = 0;
  (void)at;
  return j->f->getrs_batched(j->blas, j->flag[0] ? LT_SOLVER_TRANSPOSED : LT_SOLVER_PLAIN, j->n,
                             j->nrhs, j->work, j->n, j->pivots, (void **)(void *)j->u, j->n, &info,
                             (int)j->count);
}

/* Replaces the right sides j->b by the solutions. */
static bool solve(lt_SolverJob *j) {
  if (!lt_solver_is_batched(j, j->n)) {
    j->s = lt_solver_memory(j, LT_int32, 1);
    return j->s && lt_solver_run(j, "getrs", getrs_one, j->count);
  }
  j->u = (char *)lt_solver_addresses(j, j->b, (int64_t)j->n * j->nrhs);
  return j->u && lt_solver_run(j, "getrsBatched", getrs_all, 1);
}

/* The solution of A^T X = I, column-major, is the memory of A's inverse, row-major. */
static bool run_inverse(lt_SolverJob *j) {
  lt_Tensor *out = j->c->out[0];
  j->flag[0] = true;
  j->b = lt_tensor_data(out);
  j->nrhs = j->n;
  return factor(j) &&
         lt_cuda_launch_ok(
             lt_cuda_launch_identity(j->b, out->dtype, out->numel, j->n, lt_cuda_stream(j->c))) &&
         solve(j);
}

/* _linalg_inv (self, check): inverse, info */
bool lt_cuda__linalg_inv(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  j.info = lt_tensor_data(c->out[1]);
  bool ok = lt_cuda_begin(c) && run_inverse(&j) && check_info(&j, c->arg[1].b, LT_SINGULAR_INVERSE);
  return lt_solver_close(&j, ok);
}

/* Solves A X = B on a column-major copy of B; X A = B as A^T X^T = B^T, where the row-major memory
 * of B is that of B^T in column-major order. */
static bool run_solve(lt_SolverJob *j, bool left) {
  lt_Tensor *b = lt_in(j->c, 1), *out = j->c->out[0];
  j->nrhs = (int)b->shape[b->ndim - (left ? 1 : 2)];
  j->flag[0] = !left;
  if (!left) {
    j->b = lt_tensor_data(out);
    return lt_copy_into(out, b, false) && factor(j) && solve(j);
  }
  j->b = lt_solver_load(j, b, false);
  return j->b && factor(j) && solve(j) && lt_solver_store(j, j->b, j->n, j->nrhs, out);
}

/* _linalg_solve (self, B, left, check): X, info */
bool lt_cuda__linalg_solve(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  j.info = lt_tensor_data(c->out[1]);
  bool ok = lt_cuda_begin(c) && run_solve(&j, c->arg[2].b) &&
            check_info(&j, c->arg[3].b, LT_SINGULAR_SYSTEM);
  return lt_solver_close(&j, ok);
}

/* ---- triangular systems ---------------------------------------------------------------------- */

/* The arguments of trsm, for the transposed system X^T A^T = B^T: the memory of A and B, row-major,
 * is that of their transposes, column-major. Flags: upper, left, unitriangular. */
static int trsm_one(lt_SolverJob *j, int64_t at) {
  const double one[2] = {1, 0};
  const float single[2] = {1, 0};
  bool upper = j->flag[0], left = j->flag[1];
  int columns = left ? j->nrhs : j->n, rows = left ? j->n : j->nrhs;
  const void *alpha = j->size == (j->f->is_complex ? 16 : 8) ? (const void *)one : single;
  int side = left ? LT_SOLVER_RIGHT : LT_SOLVER_LEFT;
  int uplo = upper ? LT_SOLVER_LOWER : LT_SOLVER_UPPER;
  if (j->u)
    return j->f->trsm_batched(j->blas, side, uplo, LT_SOLVER_PLAIN, j->flag[2], columns, rows,
                              alpha, (void **)(void *)j->u, j->n, (void **)(void *)j->v, columns,
                              (int)j->count);
  return j->f->trsm(j->blas, side, uplo, LT_SOLVER_PLAIN, j->flag[2], columns, rows, alpha,
                    matrix_at(j, j->a, j->n, j->n, at), j->n, matrix_at(j, j->b, rows, columns, at),
                    columns);
}

static bool run_triangular(lt_SolverJob *j) {
  if (!lt_solver_is_batched(j, j->n)) return lt_solver_run(j, "trsm", trsm_one, j->count);
  j->u = (char *)lt_solver_addresses(j, j->a, (int64_t)j->n * j->n);
  j->v = (char *)lt_solver_addresses(j, j->b, (int64_t)j->n * j->nrhs);
  return j->u && j->v && lt_solver_run(j, "trsmBatched", trsm_one, 1);
}

/* _linalg_solve_triangular (self, B, upper, left, unitriangular) */
bool lt_cuda__linalg_solve_triangular(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  const lt_Tensor *b = lt_in(c, 1);
  for (int i = 0; i < 3; i++) j.flag[i] = c->arg[2 + i].b;
  j.nrhs = (int)b->shape[b->ndim - (j.flag[1] ? 1 : 2)];
  j.b = lt_tensor_data(c->out[0]);
  bool ok = lt_cuda_begin(c) && (j.a = lt_solver_load(&j, lt_in(c, 0), true)) &&
            lt_copy_into(c->out[0], b, false) && run_triangular(&j);
  return lt_solver_close(&j, ok);
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* _linalg_det (self), and _linalg_slogdet (self): sign, logabsdet */
bool lt_cuda__linalg_det(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  bool ok = lt_cuda_begin(c) && factor(&j) &&
            lt_cuda_launch_ok(lt_cuda_launch_determinant(
                j.a, lt_in(c, 0)->dtype, j.pivots, j.n, j.count, lt_tensor_data(c->out[0]),
                c->nout == 2 ? lt_tensor_data(c->out[1]) : NULL, lt_cuda_stream(c)));
  return lt_solver_close(&j, ok);
}

bool lt_cuda__linalg_slogdet(lt_Call *c) { return lt_cuda__linalg_det(c); }
