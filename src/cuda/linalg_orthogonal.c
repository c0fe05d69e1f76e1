/* linalg_orthogonal.c: orthogonal factorizations by Householder reflections, and products of
 * reflections. Least squares have no routine in cuSOLVER. */
#include "solver.h"

/* Operands of a job here: a, the matrices {m, n}, whose memory has `width` columns; s, tau, k
 * numbers of each matrix; b, the other operand, {rows, nrhs}; info, one for all, which is that of
 * invalid arguments only. */
typedef struct Reflections {
  lt_SolverJob job; /* first, as the functions below get its address */
  int width;        /* columns of a's memory */
  int columns;      /* of Q */
  int rows, side, trans;
} Reflections;

static char *a_at(const Reflections *q, int64_t at) {
  return q->job.a + (int64_t)q->job.m * q->width * at * q->job.size;
}
static char *tau_at(const Reflections *q, int64_t at) {
  return q->job.s + q->job.k * at * q->job.size;
}

/* ---- QR -------------------------------------------------------------------------------------- */

static int geqrf_query(lt_SolverJob *j, int64_t at) {
  (void)at;
  return j->f->geqrf_size(j->solver, j->m, j->n, j->a, j->m, &j->lwork);
}
static int geqrf_one(lt_SolverJob *j, int64_t at) {
  const Reflections *q = (const Reflections *)j;
  return j->f->geqrf(j->solver, j->m, j->n, a_at(q, at), j->m, tau_at(q, at), j->work, j->lwork,
                     j->info);
}
static int orgqr_query(lt_SolverJob *j, int64_t at) {
  const Reflections *q = (const Reflections *)j;
  (void)at;
  return j->f->orgqr_size(j->solver, j->m, q->columns, j->k, j->a, j->m, j->s, &j->lwork);
}
static int orgqr_one(lt_SolverJob *j, int64_t at) {
  const Reflections *q = (const Reflections *)j;
  return j->f->orgqr(j->solver, j->m, q->columns, j->k, a_at(q, at), j->m, tau_at(q, at), j->work,
                     j->lwork, j->info);
}

static bool factor(Reflections *q) {
  lt_SolverJob *j = &q->job;
  j->info = lt_solver_memory(j, LT_int32, 1);
  return j->info && lt_solver_query(j, "geqrf", geqrf_query) &&
         lt_solver_run(j, "geqrf", geqrf_one, j->count);
}

/* Replaces the reflections in a by the first columns of their product. */
static bool multiply_out(Reflections *q) {
  return lt_solver_query(&q->job, "orgqr", orgqr_query) &&
         lt_solver_run(&q->job, "orgqr", orgqr_one, q->job.count);
}

/* _linalg_qr (self, mode): Q, R */
bool lt_cuda__linalg_qr(lt_Call *c) {
  Reflections q = {.width = 0};
  lt_SolverJob *j = &q.job;
  if (!lt_solver_open(j, c)) return lt_host_run(c);
  lt_Tensor *out = c->out[0], *r = c->out[1];
  q.columns = out->numel ? (int)out->shape[out->ndim - 1] : 0;
  q.width = j->n > q.columns ? j->n : q.columns;
  bool ok = lt_cuda_begin(c) && (j->s = lt_solver_memory(j, lt_in(c, 0)->dtype, j->count * j->k)) &&
            (j->a = lt_solver_load_wide(j, lt_in(c, 0), q.width)) && factor(&q) &&
            lt_solver_store(j, j->a, j->m, q.width, r) && lt_solver_triangle(j, r, true) &&
            (!q.columns || (multiply_out(&q) && lt_solver_store(j, j->a, j->m, q.width, out)));
  return lt_solver_close(j, ok);
}

/* geqrf (self): a, tau */
bool lt_cuda_geqrf(lt_Call *c) {
  Reflections q = {.width = 0};
  lt_SolverJob *j = &q.job;
  if (!lt_solver_open(j, c)) return lt_host_run(c);
  q.width = j->n;
  j->s = lt_tensor_data(c->out[1]);
  bool ok = lt_cuda_begin(c) && (j->a = lt_solver_load(j, lt_in(c, 0), false)) && factor(&q) &&
            lt_solver_store(j, j->a, j->m, j->n, c->out[0]);
  return lt_solver_close(j, ok);
}

/* ---- products of reflections ----------------------------------------------------------------- */

/* Copies reflections and tau, arguments 0 and 1, and allocates info. */
static bool load_reflections(Reflections *q) {
  lt_SolverJob *j = &q->job;
  lt_Tensor *tau = lt_in(j->c, 1);
  q->width = j->n;
  j->k = (int)tau->shape[tau->ndim - 1];
  j->a = lt_solver_load(j, lt_in(j->c, 0), false);
  j->s = lt_solver_hold(j, lt_as_contiguous(tau, tau->dtype));
  j->info = lt_solver_memory(j, LT_int32, 1);
  return j->a && j->s && j->info;
}

/* _linalg_householder_product (self, tau) */
bool lt_cuda__linalg_householder_product(lt_Call *c) {
  Reflections q = {.width = 0};
  lt_SolverJob *j = &q.job;
  if (!lt_solver_open(j, c)) return lt_host_run(c);
  q.columns = j->n;
  bool ok = lt_cuda_begin(c) && load_reflections(&q) && multiply_out(&q) &&
            lt_solver_store(j, j->a, j->m, j->n, c->out[0]);
  return lt_solver_close(j, ok);
}

static int ormqr_query(lt_SolverJob *j, int64_t at) {
  const Reflections *q = (const Reflections *)j;
  (void)at;
  return j->f->ormqr_size(j->solver, q->side, q->trans, q->rows, j->nrhs, j->k, j->a, j->m, j->s,
                          j->b, q->rows, &j->lwork);
}
static int ormqr_one(lt_SolverJob *j, int64_t at) {
  const Reflections *q = (const Reflections *)j;
  char *b = j->b + (int64_t)q->rows * j->nrhs * at * j->size;
  return j->f->ormqr(j->solver, q->side, q->trans, q->rows, j->nrhs, j->k, a_at(q, at), j->m,
                     tau_at(q, at), b, q->rows, j->work, j->lwork, j->info);
}

/* _ormqr (self, tau, other, left, transpose) */
bool lt_cuda__ormqr(lt_Call *c) {
  Reflections q = {.width = 0};
  lt_SolverJob *j = &q.job;
  lt_Tensor *other = lt_in(c, 2);
  if (!lt_solver_open(j, c)) return lt_host_run(c);
  q.rows = (int)other->shape[other->ndim - 2];
  j->nrhs = (int)other->shape[other->ndim - 1];
  q.side = c->arg[3].b ? LT_SOLVER_LEFT : LT_SOLVER_RIGHT;
  q.trans = !c->arg[4].b       ? LT_SOLVER_PLAIN
            : j->f->is_complex ? LT_SOLVER_ADJOINT
                               : LT_SOLVER_TRANSPOSED;
  bool ok = lt_cuda_begin(c) && load_reflections(&q) && (j->b = lt_solver_load(j, other, false)) &&
            lt_solver_query(j, "ormqr", ormqr_query) &&
            lt_solver_run(j, "ormqr", ormqr_one, j->count) &&
            lt_solver_store(j, j->b, q.rows, j->nrhs, c->out[0]);
  return lt_solver_close(j, ok);
}
