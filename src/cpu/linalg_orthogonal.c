/* linalg_orthogonal.c: orthogonal factorizations by Householder reflections, products of
 * reflections, and least squares.
 *
 * Each kernel runs LAPACK on a column-major copy of every matrix of the batch. A workspace is
 * queried once, for the first matrix: its size depends on sizes only. Real matrices are factored by
 * reflections.c where there are products for the CPU. */
#include "kernel_support.h"
#include "lapack.h"
#include "reflections.h"
#include "triangle.h"

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

/* ---- QR -------------------------------------------------------------------------------------- */

/* A factorization of matrices {m, n}, k = min(m, n), into Q with `columns` columns (0: without Q)
 * and R with `rows` rows, or into LAPACK's form. */
typedef struct Qr {
  lt_Call *c;
  const lt_Lapack *f;
  int m, n, k, ld, columns, rows, lwork;
  bool own;    /* reflections.c is used */
  size_t room; /* bytes of its scratch memory */
  lt_Dtype dtype;
} Qr;

static size_t bytes_of(const lt_Lapack *f, int64_t r, int64_t c) {
  return (size_t)(r * c) * f->size;
}

/* Opens a call: the sizes of argument 0. Returns false with the error set when there is no LAPACK
 * or a size is too large for it. */
static bool open_qr(Qr *q, lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
  if (m > INT32_MAX || n > INT32_MAX)
    return lt_fail("cannot pass %s to LAPACK: a matrix has at most %d rows and columns",
                   lt_shape_text(a->ndim, a->shape), INT32_MAX);
  *q = (Qr){.c = c, .f = lt_lapack(a->dtype), .m = (int)m, .n = (int)n};
  q->k = least(q->m, q->n);
  q->ld = most(q->m, 1);
  q->dtype = a->dtype;
  return q->f != NULL;
}

/* Uses reflections.c if there are loops for the dtype. */
static void open_own(Qr *q) {
  q->own = lt_triangle_loops(q->dtype) != NULL;
  q->room = q->own ? (size_t)lt_reflections_room(q->m, q->n, q->columns) * q->f->size : 0;
}

/* Runs fn for each matrix, of so many multiplications, as lt_matrices_run does. */
static bool run_qr(Qr *q, double work, size_t scratch, lt_MatrixFn fn) {
  int64_t count = lt_matrices_count(lt_in(q->c, 0), 2);
  return q->own ? lt_matrices_each(count, work, scratch, fn, q)
                : lt_matrices_run(count, work, LT_ALONE_VECTORS, scratch, fn, q);
}

/* Sets lwork to what the factorization, and Q if it is computed, need. */
static void query_qr(Qr *q) {
  int query = -1, info;
  char answer[16];
  q->lwork = 1;
  if (!q->k || q->own) return;
  q->f->geqrf(&q->m, &q->n, NULL, &q->ld, NULL, answer, &query, &info);
  q->lwork = lt_lapack_work(q->f, answer);
  if (!q->columns) return;
  q->f->orgqr(&q->m, &q->columns, &q->k, NULL, &q->ld, NULL, answer, &query, &info);
  q->lwork = most(q->lwork, lt_lapack_work(q->f, answer));
}

/* Writes the upper triangle of a as matrix `at` of r. */
static void put_upper(const Qr *q, lt_Tensor *r, int64_t at, char *a, char *scratch) {
  int rows = q->rows;
  memset(scratch, 0, bytes_of(q->f, rows, q->n));
  for (int col = 0; col < q->n; col++)
    memcpy(lt_matrix_at(q->f, scratch, rows, 0, col), lt_matrix_at(q->f, a, q->ld, 0, col),
           bytes_of(q->f, least(col + 1, least(rows, q->m)), 1));
  lt_matrix_put(r, at, false, scratch, most(rows, 1), rows, q->n);
}

static void set_identity(const lt_Lapack *f, char *a, int m, int n, int ld) {
  const double one = 1;
  const float one_single = 1;
  memset(a, 0, bytes_of(f, ld, n));
  for (int i = 0; i < least(m, n); i++)
    memcpy(lt_matrix_at(f, a, ld, i, i),
           f->real_size == sizeof one ? (const void *)&one : &one_single, f->real_size);
}

static void qr_one(void *context, int64_t at, char *scratch) {
  const Qr *q = context;
  int info = 0, width = most(q->n, q->columns);
  char *a = lt_take(&scratch, bytes_of(q->f, q->ld, width));
  char *tau = lt_take(&scratch, bytes_of(q->f, q->k, 1));
  char *work = lt_take(&scratch, q->own ? q->room : bytes_of(q->f, q->lwork, 1));
  lt_matrix_get(lt_in(q->c, 0), at, false, a, q->ld);
  if (q->own)
    lt_reflections_factor(q->dtype, q->m, q->n, a, q->ld, tau, work);
  else if (q->k)
    q->f->geqrf(&q->m, &q->n, a, &q->ld, tau, work, &q->lwork, &info);
  put_upper(q, q->c->out[1], at, a, scratch);
  if (!q->columns) return;
  if (q->own)
    lt_reflections_expand(q->dtype, q->m, q->n, q->columns, a, q->ld, work);
  else if (q->k)
    q->f->orgqr(&q->m, &q->columns, &q->k, a, &q->ld, tau, work, &q->lwork, &info);
  else
    set_identity(q->f, a, q->m, q->columns, q->ld);
  lt_matrix_put(q->c->out[0], at, false, a, q->ld, q->m, q->columns);
}

/* _linalg_qr (self, mode): Q, R */
bool lt_cpu__linalg_qr(lt_Call *c) {
  Qr q;
  if (!open_qr(&q, c)) return false;
  const lt_Tensor *out = c->out[0], *r = c->out[1];
  q.rows = (int)r->shape[r->ndim - 2];
  q.columns = out->numel ? (int)out->shape[out->ndim - 1] : 0;
  open_own(&q);
  query_qr(&q);
  size_t scratch = lt_lines_of(bytes_of(q.f, q.ld, most(q.n, q.columns))) +
                   lt_lines_of(bytes_of(q.f, q.k, 1)) + lt_lines_of(bytes_of(q.f, q.lwork, 1)) +
                   lt_lines_of(q.room) + bytes_of(q.f, q.rows, q.n);
  return run_qr(&q, (double)q.m * q.n * q.k * 3, scratch, qr_one);
}

static void geqrf_one(void *context, int64_t at, char *scratch) {
  const Qr *q = context;
  int info = 0;
  char *a = lt_take(&scratch, bytes_of(q->f, q->ld, q->n));
  void *tau = lt_vector_at(q->c->out[1], at, q->k);
  lt_matrix_get(lt_in(q->c, 0), at, false, a, q->ld);
  if (q->own)
    lt_reflections_factor(q->dtype, q->m, q->n, a, q->ld, tau, scratch);
  else if (q->k)
    q->f->geqrf(&q->m, &q->n, a, &q->ld, tau, scratch, &q->lwork, &info);
  lt_matrix_put(q->c->out[0], at, false, a, q->ld, q->m, q->n);
}

/* geqrf (input): a, tau */
bool lt_cpu_geqrf(lt_Call *c) {
  Qr q;
  if (!open_qr(&q, c)) return false;
  open_own(&q);
  query_qr(&q);
  return run_qr(&q, (double)q.m * q.n * q.k * 2,
                lt_lines_of(bytes_of(q.f, q.ld, q.n)) + bytes_of(q.f, q.lwork, 1) + q.room,
                geqrf_one);
}

/* ---- products of reflections ----------------------------------------------------------------- */

static void reflections_one(void *context, int64_t at, char *scratch) {
  const Qr *q = context;
  int info = 0;
  char *a = lt_take(&scratch, bytes_of(q->f, q->ld, q->n));
  char *tau = lt_take(&scratch, bytes_of(q->f, q->k, 1));
  lt_matrix_get(lt_in(q->c, 0), at, false, a, q->ld);
  if (q->k) memcpy(tau, lt_vector_at(q->c->arg[1].tensor, at, q->k), bytes_of(q->f, q->k, 1));
  if (q->n) q->f->orgqr(&q->m, &q->n, &q->k, a, &q->ld, tau, scratch, &q->lwork, &info);
  lt_matrix_put(q->c->out[0], at, false, a, q->ld, q->m, q->n);
}

/* Runs a kernel whose argument 1, tau, must be contiguous. */
static bool with_tau(lt_Call *c, bool (*run)(lt_Call *c)) {
  lt_Tensor *given = c->arg[1].tensor, *tau = lt_as_contiguous(given, given->dtype);
  if (!tau) return false;
  c->arg[1].tensor = tau;
  bool ok = run(c);
  c->arg[1].tensor = given;
  lt_release(tau);
  return ok;
}

static bool run_reflections(lt_Call *c) {
  Qr q;
  if (!open_qr(&q, c)) return false;
  const lt_Tensor *tau = lt_in(c, 1);
  int query = -1, info;
  char answer[16];
  q.k = (int)tau->shape[tau->ndim - 1];
  q.lwork = 1;
  if (q.n) {
    q.f->orgqr(&q.m, &q.n, &q.k, NULL, &q.ld, NULL, answer, &query, &info);
    q.lwork = lt_lapack_work(q.f, answer);
  }
  size_t scratch = lt_lines_of(bytes_of(q.f, q.ld, q.n)) + lt_lines_of(bytes_of(q.f, q.k, 1)) +
                   bytes_of(q.f, q.lwork, 1);
  return lt_matrices_run(lt_matrices_count(c->out[0], 2), (double)q.m * q.n * q.k * 2,
                         LT_ALONE_VECTORS, scratch, reflections_one, &q);
}

/* _linalg_householder_product (self, tau) */
bool lt_cpu__linalg_householder_product(lt_Call *c) { return with_tau(c, run_reflections); }

/* A product of k reflections of order `order` with matrices {m, n}. */
typedef struct Apply {
  lt_Call *c;
  const lt_Lapack *f;
  int m, n, k, order, lda, ldc, lwork;
  const char *side, *trans;
} Apply;

static void apply_one(void *context, int64_t at, char *scratch) {
  const Apply *p = context;
  int info = 0;
  char *a =
      lt_take(&scratch, bytes_of(p->f, p->lda, lt_in(p->c, 0)->shape[lt_in(p->c, 0)->ndim - 1]));
  char *to = lt_take(&scratch, bytes_of(p->f, p->ldc, p->n));
  lt_matrix_get(lt_in(p->c, 0), at, false, a, p->lda);
  lt_matrix_get(lt_in(p->c, 2), at, false, to, p->ldc);
  if (p->m && p->n)
    p->f->ormqr(p->side, p->trans, &p->m, &p->n, &p->k, a, &p->lda,
                lt_vector_at(lt_in(p->c, 1), at, p->k), to, &p->ldc, scratch, &p->lwork, &info, 1,
                1);
  lt_matrix_put(p->c->out[0], at, false, to, p->ldc, p->m, p->n);
}

static bool run_apply(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *tau = lt_in(c, 1), *to = lt_in(c, 2);
  Apply p = {.c = c, .f = lt_lapack(a->dtype)};
  if (!p.f) return false;
  p.m = (int)to->shape[to->ndim - 2];
  p.n = (int)to->shape[to->ndim - 1];
  p.k = (int)tau->shape[tau->ndim - 1];
  p.order = (int)a->shape[a->ndim - 2];
  p.lda = most(p.order, 1);
  p.ldc = most(p.m, 1);
  p.side = c->arg[3].b ? "L" : "R";
  p.trans = !c->arg[4].b ? "N" : p.f->is_complex ? "C" : "T";
  int query = -1, info;
  char answer[16];
  p.lwork = 1;
  if (p.m && p.n) {
    p.f->ormqr(p.side, p.trans, &p.m, &p.n, &p.k, NULL, &p.lda, NULL, NULL, &p.ldc, answer, &query,
               &info, 1, 1);
    p.lwork = lt_lapack_work(p.f, answer);
  }
  size_t scratch = lt_lines_of(bytes_of(p.f, p.lda, a->shape[a->ndim - 1])) +
                   lt_lines_of(bytes_of(p.f, p.ldc, p.n)) + bytes_of(p.f, p.lwork, 1);
  return lt_matrices_run(lt_matrices_count(to, 2), (double)p.m * p.n * p.k * 2, LT_ALONE_MATRICES,
                         scratch, apply_one, &p);
}

/* _ormqr (self, tau, other, left, transpose) */
bool lt_cpu__ormqr(lt_Call *c) { return with_tau(c, run_apply); }

/* ---- least squares --------------------------------------------------------------------------- */

typedef enum Driver { GELS, GELSY, GELSD, GELSS } Driver;

/* A problem: minimizes |b - a x|, a {m, n}, b {m, nrhs}. */
typedef struct Problem {
  lt_Call *c;
  const lt_Lapack *f;
  Driver driver;
  int m, n, nrhs, lda, ldb, lwork;
  size_t lrwork, liwork; /* in bytes, in elements */
  char rcond[8];         /* in the dtype of the real part */
} Problem;

/* The memory of one matrix. */
typedef struct Memory {
  void *a, *b, *s, *work, *rwork;
  int *iwork;
} Memory;

/* Runs the driver, or, with *lwork -1, its query. */
static void run_driver(const Problem *p, const Memory *w, const int *lwork, int *rank, int *info) {
  const lt_Lapack *f = p->f;
  const int *m = &p->m, *n = &p->n, *nrhs = &p->nrhs, *lda = &p->lda, *ldb = &p->ldb;
  bool z = f->is_complex;
  if (p->driver == GELS)
    f->gels("N", m, n, nrhs, w->a, lda, w->b, ldb, w->work, lwork, info, 1);
  else if (p->driver == GELSY && z)
    f->gelsy_complex(m, n, nrhs, w->a, lda, w->b, ldb, w->iwork, p->rcond, rank, w->work, lwork,
                     w->rwork, info);
  else if (p->driver == GELSY)
    f->gelsy_real(m, n, nrhs, w->a, lda, w->b, ldb, w->iwork, p->rcond, rank, w->work, lwork, info);
  else if (p->driver == GELSS && z)
    f->gelss_complex(m, n, nrhs, w->a, lda, w->b, ldb, w->s, p->rcond, rank, w->work, lwork,
                     w->rwork, info);
  else if (p->driver == GELSS)
    f->gelss_real(m, n, nrhs, w->a, lda, w->b, ldb, w->s, p->rcond, rank, w->work, lwork, info);
  else if (z)
    f->gelsd_complex(m, n, nrhs, w->a, lda, w->b, ldb, w->s, p->rcond, rank, w->work, lwork,
                     w->rwork, w->iwork, info);
  else
    f->gelsd_real(m, n, nrhs, w->a, lda, w->b, ldb, w->s, p->rcond, rank, w->work, lwork, w->iwork,
                  info);
}

/* Queries the sizes of the workspaces. */
static void query_problem(Problem *p) {
  char answer[16] = {0}, real[16] = {0}, a[16], b[16], s[16];
  int query = -1, rank, info, integers[4] = {0};
  Memory w = {a, b, s, answer, real, integers};
  run_driver(p, &w, &query, &rank, &info);
  p->lwork = lt_lapack_work(p->f, answer);
  p->liwork = p->driver == GELSD ? (size_t)most(integers[0], 1) : (size_t)most(p->n, 1);
  size_t k = (size_t)least(p->m, p->n), most_reals = 5 * k + 2 * (size_t)p->n + 1;
  if (p->driver == GELSD && p->f->is_complex)
    most_reals = (size_t)lt_lapack_work(&(lt_Lapack){.real_size = p->f->real_size}, real);
  p->lrwork = p->f->is_complex ? most_reals * p->f->real_size : 0;
}

static void lstsq_one(void *context, int64_t at, char *scratch) {
  const Problem *p = context;
  const lt_Lapack *f = p->f;
  int info = 0, rank = 0, k = least(p->m, p->n);
  Memory w;
  w.a = lt_take(&scratch, bytes_of(f, p->lda, p->n));
  w.b = lt_take(&scratch, bytes_of(f, p->ldb, p->nrhs));
  w.s = lt_take(&scratch, f->real_size * (size_t)k);
  w.rwork = lt_take(&scratch, p->lrwork);
  w.iwork = lt_take(&scratch, sizeof(int) * p->liwork);
  w.work = scratch;
  lt_matrix_get(lt_in(p->c, 0), at, false, w.a, p->lda);
  memset(w.b, 0, bytes_of(f, p->ldb, p->nrhs));
  lt_matrix_get(lt_in(p->c, 1), at, false, w.b, p->ldb);
  memset(w.iwork, 0, sizeof(int) * p->liwork); /* GELSY: no column is fixed */
  if (k && p->nrhs) run_driver(p, &w, &p->lwork, &rank, &info);
  if (!k) memset(w.b, 0, bytes_of(f, p->ldb, p->nrhs));
  lt_matrix_put(p->c->out[0], at, false, w.b, p->ldb, p->n, p->nrhs);
  *((int64_t *)lt_tensor_data(p->c->out[1]) + at) = p->driver == GELS ? k : rank;
  if (k && (p->driver == GELSD || p->driver == GELSS))
    memcpy(lt_vector_at(p->c->out[2], at, k), w.s, f->real_size * (size_t)k);
}

/* _linalg_lstsq (self, B, rcond, driver): solution, rank, singular_values */
bool lt_cpu__linalg_lstsq(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1);
  const char *driver = c->arg[3].string;
  Problem p = {.c = c, .f = lt_lapack(a->dtype)};
  if (!p.f) return false;
  p.driver = strcmp(driver, "gels") == 0    ? GELS
             : strcmp(driver, "gelsy") == 0 ? GELSY
             : strcmp(driver, "gelsd") == 0 ? GELSD
                                            : GELSS;
  p.m = (int)a->shape[a->ndim - 2];
  p.n = (int)a->shape[a->ndim - 1];
  p.nrhs = (int)b->shape[b->ndim - 1];
  p.lda = most(p.m, 1);
  p.ldb = most(p.lda, p.n);
  double rcond = c->arg[2].f;
  float single = (float)rcond;
  memcpy(p.rcond, p.f->real_size == sizeof rcond ? (const void *)&rcond : &single, p.f->real_size);
  query_problem(&p);
  int k = least(p.m, p.n);
  if (p.driver != GELSD && p.driver != GELSS && c->out[2]->numel)
    memset(lt_tensor_data(c->out[2]), 0, (size_t)c->out[2]->numel * p.f->real_size);
  size_t scratch = lt_lines_of(bytes_of(p.f, p.lda, p.n)) +
                   lt_lines_of(bytes_of(p.f, p.ldb, p.nrhs)) +
                   lt_lines_of(p.f->real_size * (size_t)k) + lt_lines_of(p.lrwork) +
                   lt_lines_of(sizeof(int) * p.liwork) + bytes_of(p.f, p.lwork, 1);
  return lt_matrices_run(lt_matrices_count(a, 2), (double)p.m * p.n * k * 2, LT_ALONE_VECTORS,
                         scratch, lstsq_one, &p);
}
