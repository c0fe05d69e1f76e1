/* linalg_spectral.c: singular values and eigenvalues.
 *
 * Each kernel runs LAPACK on a column-major copy of every matrix of the batch. A workspace is
 * queried once: its size depends on sizes only. Eigenvalues of real symmetric matrices are computed
 * by symmetric.h where there are products for the CPU. */
#include "kernel_support.h"
#include "lapack.h"
#include "matrix_errors.h"
#include "reflections.h"
#include "symmetric.h"
#include "triangle.h"

#include <math.h>

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

/* A call over matrices {m, n}. */
typedef struct Spectrum {
  lt_Call *c;
  const lt_Lapack *f;
  int m, n, k, ld; /* k = min(m, n) */
  bool vectors;
  bool own;          /* symmetric.h is used */
  const char *job;   /* LAPACK's letter for the vectors */
  const char *uplo;  /* the triangle that is read */
  int ucols, vrows;  /* sizes of U and Vh */
  int lwork, liwork; /* in elements */
  int lrwork;        /* of heevd, in real elements */
  int64_t rwork;     /* of gesdd, in real elements */
  atomic_llong bad;  /* first matrix whose iteration failed, plus 1 */
} Spectrum;

static size_t bytes_of(const lt_Lapack *f, int64_t r, int64_t c) {
  return (size_t)(r * c) * f->size;
}
static size_t reals(const lt_Lapack *f, int64_t n) { return (size_t)n * f->real_size; }

/* LAPACK computes the size of a workspace, 4 n^2 and more, in int. */
enum { MOST = 20000 };

/* Opens a call: the sizes of argument 0. Returns false with the error set when there is no LAPACK
 * or a size is too large for it. */
static bool open_spectrum(Spectrum *p, lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  int64_t m = a->shape[a->ndim - 2], n = a->shape[a->ndim - 1];
  if (m > INT32_MAX || n > INT32_MAX)
    return lt_fail("cannot pass %s to LAPACK: a matrix has at most %d rows and columns",
                   lt_shape_text(a->ndim, a->shape), INT32_MAX);
  if (m > MOST && n > MOST)
    return lt_fail("cannot pass %s to LAPACK: its workspace would be too large for matrices with "
                   "more than %d rows and columns",
                   lt_shape_text(a->ndim, a->shape), MOST);
  *p = (Spectrum){.c = c, .f = lt_lapack(a->dtype), .m = (int)m, .n = (int)n};
  p->k = least(p->m, p->n);
  p->ld = most(p->m, 1);
  return p->f != NULL;
}

static void note_failure(Spectrum *p, int info, int64_t at) {
  long long none = 0;
  if (info) atomic_compare_exchange_strong(&p->bad, &none, (long long)at + 1);
}

/* Returns true unless the iteration of a matrix failed. */
static bool check_all(Spectrum *p, const char *values) {
  long long bad = atomic_load(&p->bad);
  return !bad || lt_stopped() || lt_bad_convergence(values, lt_in(p->c, 0), bad - 1);
}

/* ---- singular values ------------------------------------------------------------------------- */

/* The memory of one matrix. */
typedef struct Memory {
  void *a, *s, *u, *v, *work, *rwork;
  int *iwork;
} Memory;

static void run_gesdd(const Spectrum *p, const Memory *w, const int *lwork, int *info) {
  int ldv = most(p->vrows, 1);
  if (p->f->is_complex)
    p->f->gesdd_complex(p->job, &p->m, &p->n, w->a, &p->ld, w->s, w->u, &p->ld, w->v, &ldv, w->work,
                        lwork, w->rwork, w->iwork, info, 1);
  else
    p->f->gesdd_real(p->job, &p->m, &p->n, w->a, &p->ld, w->s, w->u, &p->ld, w->v, &ldv, w->work,
                     lwork, w->iwork, info, 1);
}

static void svd_one(void *context, int64_t at, char *scratch) {
  Spectrum *p = context;
  const lt_Lapack *f = p->f;
  int info = 0;
  Memory w;
  w.a = lt_take(&scratch, bytes_of(f, p->ld, p->n));
  w.u = lt_take(&scratch, bytes_of(f, p->ld, p->ucols));
  w.v = lt_take(&scratch, bytes_of(f, most(p->vrows, 1), p->n));
  w.rwork = lt_take(&scratch, reals(f, p->rwork));
  w.iwork = lt_take(&scratch, sizeof(int) * (size_t)p->liwork);
  w.work = scratch;
  w.s = lt_vector_at(p->c->out[1], at, p->k);
  lt_matrix_get(lt_in(p->c, 0), at, false, w.a, p->ld);
  run_gesdd(p, &w, &p->lwork, &info);
  note_failure(p, info, at);
  if (!p->vectors) return;
  lt_matrix_put(p->c->out[0], at, false, w.u, p->ld, p->m, p->ucols);
  lt_matrix_put(p->c->out[2], at, false, w.v, most(p->vrows, 1), p->vrows, p->n);
}

/* Writes identity matrices, the singular vectors of matrices without elements. */
static void put_identity(lt_Tensor *t, const lt_Lapack *f) {
  int64_t n = t->ndim ? t->shape[t->ndim - 1] : 0;
  const double one = 1;
  const float one_single = 1;
  if (t->numel) memset(lt_tensor_data(t), 0, (size_t)t->numel * f->size);
  for (int64_t i = 0; i < t->numel; i += i % (n * n) == n * n - 1 ? 1 : n + 1)
    memcpy((char *)lt_tensor_data(t) + (size_t)i * f->size,
           f->real_size == sizeof one ? (const void *)&one : &one_single, f->real_size);
}

/* Queries the workspaces of gesdd; that of rwork is from its documentation. */
static void query_gesdd(Spectrum *p) {
  char answer[16] = {0}, other[16];
  int query = -1, info, integers[2];
  Memory w = {other, other, other, other, answer, other, integers};
  run_gesdd(p, &w, &query, &info);
  p->lwork = lt_lapack_work(p->f, answer);
  p->liwork = 8 * p->k;
  int64_t k = p->k, wide = most(p->m, p->n);
  int64_t full = 5 * k * k + 5 * k, other_way = 2 * wide * k + 2 * k * k + k;
  int64_t rwork = !p->vectors ? 7 * k : full > other_way ? full : other_way;
  p->rwork = p->f->is_complex ? rwork : 0;
}

/* _linalg_svd (self, full_matrices, vectors): U, S, Vh */
bool lt_cpu__linalg_svd(lt_Call *c) {
  Spectrum p;
  if (!open_spectrum(&p, c)) return false;
  bool full = c->arg[1].b;
  p.vectors = c->arg[2].b;
  p.job = !p.vectors ? "N" : full ? "A" : "S";
  p.ucols = !p.vectors ? 0 : full ? p.m : p.k;
  p.vrows = !p.vectors ? 0 : full ? p.n : p.k;
  if (p.k == 0) {
    put_identity(c->out[0], p.f);
    put_identity(c->out[2], p.f);
    return true;
  }
  query_gesdd(&p);
  size_t scratch =
      lt_lines_of(bytes_of(p.f, p.ld, p.n)) + lt_lines_of(bytes_of(p.f, p.ld, p.ucols)) +
      lt_lines_of(bytes_of(p.f, most(p.vrows, 1), p.n)) + lt_lines_of(reals(p.f, p.rwork)) +
      lt_lines_of(sizeof(int) * (size_t)p.liwork) + bytes_of(p.f, p.lwork, 1);
  return lt_matrices_run(lt_matrices_count(lt_in(c, 0), 2), (double)p.m * p.n * p.k * 8,
                         LT_ALONE_VECTORS, scratch, svd_one, &p) &&
         check_all(&p, "singular values");
}

/* ---- eigenvalues of hermitian matrices ------------------------------------------------------- */

static void run_evd(const Spectrum *p, const Memory *w, const int *lwork, const int *lrwork,
                    const int *liwork, int *info) {
  if (p->f->is_complex)
    p->f->heevd(p->job, p->uplo, &p->n, w->a, &p->ld, w->s, w->work, lwork, w->rwork, lrwork,
                w->iwork, liwork, info, 1, 1);
  else
    p->f->syevd(p->job, p->uplo, &p->n, w->a, &p->ld, w->s, w->work, lwork, w->iwork, liwork, info,
                1, 1);
}

/* The memory of a matrix whose eigenvalues symmetric.h computes. */
typedef struct Own {
  char *a, *q, *tau, *room, *d, *e;
  double *wide_d, *wide_e;
} Own;

/* The rows from which on eigenvectors are computed faster than by LAPACK, and up to which they are:
 * LAPACK's products use several threads for larger matrices. */
enum { OWN_LEAST = 20, OWN_MOST = 1024 };

/* Splits `scratch`, and returns the bytes that are needed. */
static size_t own_memory(const Spectrum *p, Own *o, char *scratch) {
  char *from = scratch;
  int64_t n = p->n, ld = n + LT_SYMMETRIC_PADDING, numbers = lt_symmetric_room(n);
  if (p->vectors && numbers < lt_reflections_room(n, n, n)) numbers = lt_reflections_room(n, n, n);
  size_t room = p->vectors ? lt_tridiagonal_room(lt_in(p->c, 0)->dtype, n) : 0;
  if (room < bytes_of(p->f, numbers, 1)) room = bytes_of(p->f, numbers, 1);
  o->a = lt_take(&scratch, bytes_of(p->f, ld, n + 1));
  o->q = lt_take(&scratch, p->vectors ? bytes_of(p->f, n, n) : 0);
  o->tau = lt_take(&scratch, bytes_of(p->f, n, 1));
  o->d = lt_take(&scratch, bytes_of(p->f, n, 1));
  o->e = lt_take(&scratch, bytes_of(p->f, n, 1));
  o->wide_d = lt_take(&scratch, sizeof(double) * (size_t)n);
  o->wide_e = lt_take(&scratch, sizeof(double) * (size_t)n);
  o->room = lt_take(&scratch, room);
  return (size_t)(scratch - from);
}

static double number_at(const lt_Lapack *f, const char *numbers, int64_t i) {
  if (f->real_size == sizeof(double)) return ((const double *)(const void *)numbers)[i];
  return (double)((const float *)(const void *)numbers)[i];
}

/* Returns whether the elements of T are numbers far from the limits of the dtype: LAPACK scales
 * other matrices. */
static bool is_moderate(const Spectrum *p, const Own *o) {
  double most = 0, limit = p->f->real_size == sizeof(double) ? 0x1p400 : 0x1p50;
  for (int64_t i = 0; i < p->n; i++) {
    double d = fabs(o->wide_d[i]), e = fabs(o->wide_e[i]);
    if (!(d < limit && e < limit)) return false;
    most = fmax(most, fmax(d, e));
  }
  return most == 0 || most > 1 / limit;
}

/* Computes the eigenvalues, and eigenvectors, of matrix `at`; returns false if LAPACK has to. */
static bool eigh_own(Spectrum *p, int64_t at, char *scratch) {
  const lt_Lapack *f = p->f;
  lt_Dtype dtype = lt_in(p->c, 0)->dtype;
  int64_t n = p->n, ld = n + LT_SYMMETRIC_PADDING;
  char *values = lt_vector_at(p->c->out[0], at, n);
  Own o;
  own_memory(p, &o, scratch);
  lt_matrix_get(lt_in(p->c, 0), at, *p->uplo == 'U', o.a, ld);
  lt_symmetric_reduce(dtype, n, o.a, ld, o.d, o.e, o.tau, o.room);
  for (int64_t i = 0; i < n; i++) {
    o.wide_d[i] = number_at(f, o.d, i);
    o.wide_e[i] = i < n - 1 ? number_at(f, o.e, i) : 0;
  }
  if (lt_stopped()) return true;
  if (!is_moderate(p, &o)) return false;
  if (!p->vectors) {
    int info = 0;
    f->sterf(&p->n, o.d, o.e, &info);
    memcpy(values, o.d, bytes_of(f, n, 1));
    note_failure(p, info, at);
    return true;
  }
  lt_tridiagonal_solve(dtype, n, o.wide_d, o.wide_e, o.q, n, o.room);
  for (int64_t i = 0; i < n; i++)
    if (f->real_size == sizeof(double))
      ((double *)(void *)values)[i] = o.wide_d[i];
    else
      ((float *)(void *)values)[i] = (float)o.wide_d[i];
  lt_reflections_apply(dtype, n - 1, n, n - 1, o.a + f->size, ld, o.tau, o.q + f->size, n, o.room);
  lt_matrix_put(p->c->out[1], at, false, o.q, n, n, n);
  return true;
}

static void eigh_one(void *context, int64_t at, char *scratch) {
  Spectrum *p = context;
  int info = 0;
  if (p->own && eigh_own(p, at, scratch)) return;
  Memory w;
  w.a = lt_take(&scratch, bytes_of(p->f, p->ld, p->n));
  w.rwork = lt_take(&scratch, reals(p->f, p->lrwork));
  w.iwork = lt_take(&scratch, sizeof(int) * (size_t)p->liwork);
  w.work = scratch;
  w.s = lt_vector_at(p->c->out[0], at, p->n);
  lt_matrix_get(lt_in(p->c, 0), at, false, w.a, p->ld);
  run_evd(p, &w, &p->lwork, &p->lrwork, &p->liwork, &info);
  note_failure(p, info, at);
  if (p->vectors) lt_matrix_put(p->c->out[1], at, false, w.a, p->ld, p->n, p->n);
}

/* _linalg_eigh (self, upper, vectors): L, V */
bool lt_cpu__linalg_eigh(lt_Call *c) {
  Spectrum p;
  if (!open_spectrum(&p, c)) return false;
  if (p.n == 0) return true;
  p.uplo = c->arg[1].b ? "U" : "L";
  p.vectors = c->arg[2].b;
  p.job = p.vectors ? "V" : "N";
  char answer[16] = {0}, real[16] = {0}, other[16];
  int query = -1, info, integers[2] = {1, 1};
  Memory w = {other, other, NULL, NULL, answer, real, integers};
  run_evd(&p, &w, &query, &query, &query, &info);
  p.lwork = lt_lapack_work(p.f, answer);
  p.liwork = most(integers[0], 1);
  p.lrwork = p.f->is_complex ? lt_lapack_work(p.f, real) : 0;
  size_t scratch = lt_lines_of(bytes_of(p.f, p.ld, p.n)) + lt_lines_of(reals(p.f, p.lrwork)) +
                   lt_lines_of(sizeof(int) * (size_t)p.liwork) + bytes_of(p.f, p.lwork, 1);
  p.own = lt_triangle_loops(lt_in(c, 0)->dtype) && p.n >= (p.vectors ? OWN_LEAST : 2) &&
          p.n <= OWN_MOST;
  Own o; /* not used: only the size is needed */
  size_t own = p.own ? own_memory(&p, &o, other) : 0;
  double n = p.n;
  return lt_matrices_run(lt_matrices_count(lt_in(c, 0), 2), n * n * n * 4, LT_ALONE_VECTORS,
                         own > scratch ? own : scratch, eigh_one, &p) &&
         check_all(&p, "eigenvalues");
}

/* ---- eigenvalues of other matrices ----------------------------------------------------------- */

/* Combines the real and imaginary parts of n numbers, `step` bytes apart in `to`. */
static void interleave(const lt_Lapack *f, int n, const char *re, const char *im, char *to) {
  for (int i = 0; i < n; i++) {
    memcpy(to + reals(f, 2 * i), re + reals(f, i), f->real_size);
    memcpy(to + reals(f, 2 * i + 1), im + reals(f, i), f->real_size);
  }
}

static bool is_zero(const lt_Lapack *f, const char *number) {
  double wide;
  float single;
  if (f->real_size == sizeof wide) {
    memcpy(&wide, number, sizeof wide);
    return wide == 0;
  }
  memcpy(&single, number, sizeof single);
  return single == 0;
}

static void negate(const lt_Lapack *f, char *number) {
  double wide;
  float single;
  if (f->real_size == sizeof wide) {
    memcpy(&wide, number, sizeof wide);
    wide = -wide;
    memcpy(number, &wide, sizeof wide);
  } else {
    memcpy(&single, number, sizeof single);
    single = -single;
    memcpy(number, &single, sizeof single);
  }
}

/* Expands LAPACK's real eigenvectors: columns j and j + 1 of a pair of conjugate eigenvalues hold
 * the real and the imaginary part. `zeros` has n zeros. */
static void expand_vectors(const Spectrum *p, const char *imaginary, char *from, const char *zeros,
                           char *to) {
  const lt_Lapack *f = p->f;
  size_t column = reals(f, p->n), wide = 2 * column;
  for (int j = 0; j < p->n; j++) {
    char *re = from + column * (size_t)j, *out = to + wide * (size_t)j;
    if (is_zero(f, imaginary + reals(f, j)) || j + 1 == p->n) {
      interleave(f, p->n, re, zeros, out);
      continue;
    }
    interleave(f, p->n, re, re + column, out);
    interleave(f, p->n, re, re + column, out + wide);
    for (int i = 0; i < p->n; i++) negate(f, out + wide + reals(f, 2 * i + 1));
    j++;
  }
}

static void eig_real(Spectrum *p, int64_t at, char *scratch) {
  const lt_Lapack *f = p->f;
  int info = 0, one = 1;
  char *a = lt_take(&scratch, bytes_of(f, p->ld, p->n));
  char *v = lt_take(&scratch, bytes_of(f, p->ld, p->n));
  char *both = lt_take(&scratch, 2 * bytes_of(f, p->ld, p->n));
  char *re = lt_take(&scratch, reals(f, p->n)), *im = lt_take(&scratch, reals(f, p->n));
  char *zeros = lt_take(&scratch, reals(f, p->n));
  lt_matrix_get(lt_in(p->c, 0), at, false, a, p->ld);
  f->geev_real("N", p->job, &p->n, a, &p->ld, re, im, NULL, &one, v, &p->ld, scratch, &p->lwork,
               &info, 1, 1);
  note_failure(p, info, at);
  interleave(f, p->n, re, im, lt_vector_at(p->c->out[0], at, p->n));
  if (!p->vectors) return;
  memset(zeros, 0, reals(f, p->n));
  expand_vectors(p, im, v, zeros, both);
  lt_matrix_put(p->c->out[1], at, false, both, p->ld, p->n, p->n);
}

static void eig_complex(Spectrum *p, int64_t at, char *scratch) {
  const lt_Lapack *f = p->f;
  int info = 0, one = 1;
  char *a = lt_take(&scratch, bytes_of(f, p->ld, p->n));
  char *v = lt_take(&scratch, bytes_of(f, p->ld, p->n));
  char *rwork = lt_take(&scratch, reals(f, 2 * p->n));
  lt_matrix_get(lt_in(p->c, 0), at, false, a, p->ld);
  f->geev_complex("N", p->job, &p->n, a, &p->ld, lt_vector_at(p->c->out[0], at, p->n), NULL, &one,
                  v, &p->ld, scratch, &p->lwork, rwork, &info, 1, 1);
  note_failure(p, info, at);
  if (p->vectors) lt_matrix_put(p->c->out[1], at, false, v, p->ld, p->n, p->n);
}

static void eig_one(void *context, int64_t at, char *scratch) {
  Spectrum *p = context;
  if (p->f->is_complex)
    eig_complex(p, at, scratch);
  else
    eig_real(p, at, scratch);
}

static void query_geev(Spectrum *p) {
  char answer[16] = {0}, other[16];
  int query = -1, info, one = 1;
  if (p->f->is_complex)
    p->f->geev_complex("N", p->job, &p->n, other, &p->ld, other, NULL, &one, other, &p->ld, answer,
                       &query, other, &info, 1, 1);
  else
    p->f->geev_real("N", p->job, &p->n, other, &p->ld, other, other, NULL, &one, other, &p->ld,
                    answer, &query, &info, 1, 1);
  p->lwork = lt_lapack_work(p->f, answer);
}

/* Fails when an element is NaN or infinite: geev may not return for such a matrix. */
static bool check_finite(const Spectrum *p) {
  lt_Tensor *t = lt_as_contiguous(lt_in(p->c, 0), lt_in(p->c, 0)->dtype);
  if (!t) return false;
  bool finite = true;
  int64_t n = t->numel * (p->f->is_complex ? 2 : 1);
  const void *data = lt_tensor_data(t);
  for (int64_t i = 0; i < n && finite; i++) {
    double x = number_at(p->f, data, i);
    finite = x - x == 0;
  }
  lt_release(t);
  return finite || lt_fail("cannot compute the eigenvalues: the matrix contains NaN or infinity");
}

/* _linalg_eig (self, vectors): L, V */
bool lt_cpu__linalg_eig(lt_Call *c) {
  Spectrum p;
  if (!open_spectrum(&p, c)) return false;
  if (p.n == 0) return true;
  if (!check_finite(&p)) return false;
  p.vectors = c->arg[1].b;
  p.job = p.vectors ? "V" : "N";
  query_geev(&p);
  size_t scratch = 4 * lt_lines_of(bytes_of(p.f, p.ld, p.n)) + 4 * lt_lines_of(reals(p.f, p.n)) +
                   bytes_of(p.f, p.lwork, 1);
  double n = p.n;
  return lt_matrices_run(lt_matrices_count(lt_in(c, 0), 2), n * n * n * 10, LT_ALONE_VECTORS,
                         scratch, eig_one, &p) &&
         check_all(&p, "eigenvalues");
}
