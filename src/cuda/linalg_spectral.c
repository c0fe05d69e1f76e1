/* linalg_spectral.c: eigenvalues of hermitian matrices and singular values. The host reads whether
 * the iterations converged. Other eigenvalues have no routine in cuSOLVER's older interface. */
#include "linalg.h"
#include "matrix_errors.h"
#include "solver.h"

/* Fails when the iteration of a matrix did not converge. For matrices with NaN the library may
 * report success; LAPACK does not. `r` is the result with n values of each matrix. */
static bool check_convergence(lt_SolverJob *j, int r, const char *values) {
  int64_t at;
  int value;
  return lt_cuda_launch_ok(lt_cuda_launch_mark_nan(j->s, j->c->out[r]->dtype, j->n, j->count,
                                                   j->info, lt_cuda_stream(j->c))) &&
         lt_solver_info(j, &at, &value) &&
         (at < 0 || lt_bad_convergence(values, lt_in(j->c, 0), at));
}

/* Returns the address of matrix `at` of `numel` elements. */
static char *part(const lt_SolverJob *j, char *first, int64_t numel, int64_t at) {
  return first ? first + numel * at * j->size : NULL;
}
/* Returns that of vector `at` of n real numbers. */
static char *reals(const lt_SolverJob *j, char *first, int64_t n, int64_t at) {
  return first + n * at * (j->f->is_complex ? j->size / 2 : j->size);
}

/* ---- eigenvalues of hermitian matrices ------------------------------------------------------- */

/* Flags: upper, vectors. */
static int syevd_query(lt_SolverJob *j, int64_t at) {
  (void)at;
  return j->f->syevd_size(j->solver, j->flag[1], j->flag[0], j->n, j->a, j->n, j->s, &j->lwork);
}
static int syevd_one(lt_SolverJob *j, int64_t at) {
  return j->f->syevd(j->solver, j->flag[1], j->flag[0], j->n,
                     part(j, j->a, (int64_t)j->n * j->n, at), j->n, reals(j, j->s, j->n, at),
                     j->work, j->lwork, j->info + at);
}

/* _linalg_eigh (self, upper, vectors): L, V */
bool lt_cuda__linalg_eigh(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  j.flag[0] = c->arg[1].b;
  j.flag[1] = c->arg[2].b;
  j.s = lt_tensor_data(c->out[0]);
  bool ok = lt_cuda_begin(c) && (j.info = lt_solver_memory(&j, LT_int32, j.count)) &&
            (j.a = lt_solver_load(&j, lt_in(c, 0), false)) &&
            lt_solver_query(&j, "syevd", syevd_query) &&
            lt_solver_run(&j, "syevd", syevd_one, j.count) &&
            (!j.flag[1] || lt_solver_store(&j, j.a, j.n, j.n, c->out[1])) &&
            check_convergence(&j, 0, "eigenvalues");
  return lt_solver_close(&j, ok);
}

/* ---- singular values ------------------------------------------------------------------------- */

/* gesvd requires at least as many rows as columns. A wide matrix is passed as its transpose A^T =
 * V* S U^T, whose column-major memory is the row-major memory of A: the library's U is then Vh, and
 * its Vh is U, in row-major order. `m` and `n` are the sizes of what is passed. Flags:
 * full_matrices, vectors. */
static int gesvd_query(lt_SolverJob *j, int64_t at) {
  (void)at;
  return j->f->gesvd_size(j->solver, j->m, j->n, &j->lwork);
}
static int gesvd_one(lt_SolverJob *j, int64_t at) {
  signed char job = !j->flag[1] ? 'N' : j->flag[0] ? 'A' : 'S';
  int64_t columns = j->flag[0] ? j->m : j->n;
  return j->f->gesvd(j->solver, job, job, j->m, j->n, part(j, j->a, (int64_t)j->m * j->n, at), j->m,
                     reals(j, j->s, j->n, at), part(j, j->u, j->m * columns, at), j->m,
                     part(j, j->v, (int64_t)j->n * j->n, at), j->n, j->work, j->lwork, j->b,
                     j->info + at);
}

/* Sets u and v to the memory of the vectors: that of the results for wide matrices, otherwise
 * scratch memory. */
static bool open_vectors(lt_SolverJob *j, bool wide) {
  lt_Tensor *u = j->c->out[0], *v = j->c->out[2];
  if (!j->flag[1]) return true;
  j->u = wide ? lt_tensor_data(v) : lt_solver_memory(j, u->dtype, u->numel);
  j->v = wide ? lt_tensor_data(u) : lt_solver_memory(j, v->dtype, v->numel);
  return j->u && j->v;
}

static bool store_vectors(lt_SolverJob *j, bool wide) {
  if (!j->flag[1] || wide) return true;
  return lt_solver_store(j, j->u, j->m, j->flag[0] ? j->m : j->n, j->c->out[0]) &&
         lt_solver_store(j, j->v, j->n, j->n, j->c->out[2]);
}

/* _linalg_svd (self, full_matrices, vectors): U, S, Vh */
bool lt_cuda__linalg_svd(lt_Call *c) {
  lt_SolverJob j;
  if (!lt_solver_open(&j, c)) return lt_host_run(c);
  bool wide = j.m < j.n;
  if (wide) {
    j.n = j.m;
    j.m = (int)lt_in(c, 0)->shape[lt_in(c, 0)->ndim - 1];
  }
  j.flag[0] = c->arg[1].b;
  j.flag[1] = c->arg[2].b;
  j.s = lt_tensor_data(c->out[1]);
  bool ok = lt_cuda_begin(c) && (j.info = lt_solver_memory(&j, LT_int32, j.count)) &&
            (j.b = lt_solver_memory(&j, c->out[1]->dtype, j.n)) &&
            (j.a = lt_solver_load(&j, lt_in(c, 0), wide)) && open_vectors(&j, wide) &&
            lt_solver_query(&j, "gesvd", gesvd_query) &&
            lt_solver_run(&j, "gesvd", gesvd_one, j.count) && store_vectors(&j, wide) &&
            check_convergence(&j, 1, "singular values");
  return lt_solver_close(&j, ok);
}
