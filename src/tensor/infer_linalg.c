/* infer_linalg.c: decompositions of matrices and what is computed from them.
 *
 * The ops are internal: their callers in lib/lutra/ops/ have broadcast batch dimensions and turned
 * vectors into matrices. Matrices are the last two dimensions, the others are the batch. */
#include "infer.h"

/* ---- checks ---------------------------------------------------------------------------------- */

/* Checks that argument i is a matrix or a batch of them in a dtype that LAPACK has. */
static bool check_matrix(const lt_Call *c, int i) {
  const lt_Tensor *t = lt_in(c, i);
  if (t->dtype != LT_float32 && t->dtype != LT_float64 && !lt_dtype_is_complex(t->dtype))
    return lt_fail("expected dtype \"float32\", \"float64\", \"complex64\" or \"complex128\" for "
                   "argument '%s', got \"%s\"\nhint: %s:to(\"float32\")",
                   lt_arg_name(c, i), lt_dtype_name(t->dtype), lt_arg_name(c, i));
  if (t->ndim >= 2) return true;
  return lt_fail("expected a matrix or a batch of matrices for argument '%s', got shape %s",
                 lt_arg_name(c, i), lt_text(t));
}

static bool check_square(const lt_Call *c, int i) {
  const lt_Tensor *t = lt_in(c, i);
  if (!check_matrix(c, i)) return false;
  if (t->shape[t->ndim - 1] == t->shape[t->ndim - 2]) return true;
  return lt_fail("expected square matrices for argument '%s', got shape %s", lt_arg_name(c, i),
                 lt_text(t));
}

/* Checks that arguments i and j have the same dtype and batch, and argument j `dims` dimensions
 * besides. */
static bool check_batch(const lt_Call *c, int i, int j, int dims) {
  const lt_Tensor *a = lt_in(c, i), *b = lt_in(c, j);
  if (b->ndim == a->ndim - 2 + dims &&
      memcmp(a->shape, b->shape, sizeof *a->shape * (size_t)(a->ndim - 2)) == 0)
    return true;
  return lt_fail("expected the batch dimensions of '%s', %s, for argument '%s', got %s",
                 lt_arg_name(c, i), lt_text(a), lt_arg_name(c, j), lt_text(b));
}

/* Checks that argument j has the right sides for the square matrices of argument i, as columns
 * (`left`) or rows. */
static bool check_right_sides(const lt_Call *c, int i, int j, bool left) {
  const lt_Tensor *a = lt_in(c, i), *b = lt_in(c, j);
  if (!check_square(c, i) || !check_matrix(c, j) || !lt_check_same_dtype(c, i, j)) return false;
  int64_t n = a->shape[a->ndim - 1], size = b->shape[b->ndim - (left ? 2 : 1)];
  if (n != size)
    return lt_fail("expected %lld %s, the size of '%s', for argument '%s', got %s", (long long)n,
                   left ? "rows" : "columns", lt_arg_name(c, i), lt_arg_name(c, j), lt_text(b));
  return check_batch(c, i, j, 2);
}

/* ---- specs ----------------------------------------------------------------------------------- */

/* Sets result r: a batch like t's of matrices {m, n}, or of vectors {m} when n < 0, or of numbers
 * when m < 0, too. */
static void spec_batch(lt_Call *c, int r, lt_Dtype dtype, const lt_Tensor *t, int64_t m,
                       int64_t n) {
  int64_t shape[LT_MAX_DIMS];
  int ndim = t->ndim - 2;
  memcpy(shape, t->shape, sizeof *shape * (size_t)ndim);
  if (m >= 0) shape[ndim++] = m;
  if (n >= 0) shape[ndim++] = n;
  lt_spec(c, r, dtype, ndim, shape);
}

static int64_t rows(const lt_Tensor *t) { return t->shape[t->ndim - 2]; }
static int64_t columns(const lt_Tensor *t) { return t->shape[t->ndim - 1]; }
static int64_t least(const lt_Tensor *t) { return rows(t) < columns(t) ? rows(t) : columns(t); }

/* ---- factors --------------------------------------------------------------------------------- */

/* _linalg_cholesky (self, upper, check): L, info; _linalg_inv (self, check): inverse, info */
bool lt_infer_linalg_square(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_square(c, 0)) return false;
  lt_spec_like(c, 0, a);
  spec_batch(c, 1, LT_int32, a, -1, -1);
  return true;
}

/* _linalg_lu_factor (self, check): LU, pivots, info */
bool lt_infer_linalg_lu_factor(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_matrix(c, 0)) return false;
  lt_spec_like(c, 0, a);
  spec_batch(c, 1, LT_int32, a, least(a), -1);
  spec_batch(c, 2, LT_int32, a, -1, -1);
  return true;
}

/* _linalg_lu_permutation (pivots, rows) */
bool lt_infer_linalg_lu_permutation(lt_Call *c) {
  const lt_Tensor *pivots = lt_in(c, 0);
  if (!lt_check_ndim(c, 0, 1, LT_MAX_DIMS) || !lt_check_index(c, 0) || !lt_check_count(c, 1))
    return false;
  if (columns(pivots) > c->arg[1].i)
    return lt_fail("expected at most %lld pivots, one for each row, got %s", (long long)c->arg[1].i,
                   lt_text(pivots));
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, pivots->shape, sizeof *shape * (size_t)pivots->ndim);
  shape[pivots->ndim - 1] = c->arg[1].i;
  lt_spec(c, 0, LT_int64, pivots->ndim, shape);
  return true;
}

/* _linalg_ldl_factor (self, hermitian, check): LD, pivots, info */
bool lt_infer_linalg_ldl_factor(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_square(c, 0)) return false;
  lt_spec_like(c, 0, a);
  spec_batch(c, 1, LT_int32, a, rows(a), -1);
  spec_batch(c, 2, LT_int32, a, -1, -1);
  return true;
}

/* _linalg_ldl_solve (LD, pivots, B, hermitian) */
bool lt_infer_linalg_ldl_solve(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *pivots = lt_in(c, 1);
  if (!check_right_sides(c, 0, 2, true) || !lt_check_index(c, 1) || !check_batch(c, 0, 1, 1))
    return false;
  if (columns(pivots) != rows(a))
    return lt_fail("expected %lld pivots, one for each row, got %s", (long long)rows(a),
                   lt_text(pivots));
  lt_spec_like(c, 0, lt_in(c, 2));
  return true;
}

/* ---- solutions ------------------------------------------------------------------------------- */

/* _linalg_solve (self, B, left, check): X, info */
bool lt_infer_linalg_solve(lt_Call *c) {
  if (!check_right_sides(c, 0, 1, c->arg[2].b)) return false;
  lt_spec_like(c, 0, lt_in(c, 1));
  spec_batch(c, 1, LT_int32, lt_in(c, 0), -1, -1);
  return true;
}

/* _linalg_solve_triangular (self, B, upper, left, unitriangular) */
bool lt_infer_linalg_solve_triangular(lt_Call *c) {
  if (!check_right_sides(c, 0, 1, c->arg[3].b)) return false;
  lt_spec_like(c, 0, lt_in(c, 1));
  return true;
}

/* _linalg_lstsq (self, B, rcond, driver): solution, rank, singular_values */
bool lt_infer_linalg_lstsq(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1);
  if (!check_matrix(c, 0) || !check_matrix(c, 1) || !lt_check_same_dtype(c, 0, 1) ||
      !check_batch(c, 0, 1, 2))
    return false;
  if (rows(a) != rows(b))
    return lt_fail("expected %lld rows, those of '%s', for argument '%s', got %s",
                   (long long)rows(a), lt_arg_name(c, 0), lt_arg_name(c, 1), lt_text(b));
  spec_batch(c, 0, a->dtype, a, columns(a), columns(b));
  spec_batch(c, 1, LT_int64, a, -1, -1);
  spec_batch(c, 2, lt_dtype_real(a->dtype), a, least(a), -1);
  return true;
}

/* _linalg_det (self) */
bool lt_infer_linalg_det(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_square(c, 0)) return false;
  spec_batch(c, 0, a->dtype, a, -1, -1);
  return true;
}

/* _linalg_slogdet (self): sign, logabsdet */
bool lt_infer_linalg_slogdet(lt_Call *c) {
  if (!lt_infer_linalg_det(c)) return false;
  spec_batch(c, 1, lt_dtype_real(lt_in(c, 0)->dtype), lt_in(c, 0), -1, -1);
  return true;
}

/* ---- orthogonal factors ---------------------------------------------------------------------- */

/* _linalg_qr (self, mode): Q, R; Q has no elements in mode 'r' */
bool lt_infer_linalg_qr(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_matrix(c, 0)) return false;
  const char *mode = c->arg[1].string;
  int64_t k = strcmp(mode, "complete") == 0 ? rows(a) : least(a);
  if (strcmp(mode, "r") == 0)
    lt_spec(c, 0, a->dtype, 1, (int64_t[]){0});
  else
    spec_batch(c, 0, a->dtype, a, rows(a), k);
  spec_batch(c, 1, a->dtype, a, k, columns(a));
  return true;
}

/* geqrf (input): a, tau */
bool lt_infer_geqrf(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_matrix(c, 0)) return false;
  lt_spec_like(c, 0, a);
  spec_batch(c, 1, a->dtype, a, least(a), -1);
  return true;
}

/* Checks that argument 1 has a factor tau for at most each column of argument 0. */
static bool check_tau(const lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *tau = lt_in(c, 1);
  if (!check_matrix(c, 0) || !lt_check_same_dtype(c, 0, 1) || !check_batch(c, 0, 1, 1))
    return false;
  if (columns(tau) <= columns(a)) return true;
  return lt_fail("expected at most %lld numbers, one for each column of '%s', for argument "
                 "'tau', got %s",
                 (long long)columns(a), lt_arg_name(c, 0), lt_text(tau));
}

/* _linalg_householder_product (self, tau) */
bool lt_infer_linalg_householder_product(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_tau(c)) return false;
  if (rows(a) < columns(a))
    return lt_fail("expected at least as many rows as columns for argument '%s', got %s",
                   lt_arg_name(c, 0), lt_text(a));
  lt_spec_like(c, 0, a);
  return true;
}

/* _ormqr (self, tau, other, left, transpose) */
bool lt_infer_ormqr(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *tau = lt_in(c, 1), *other = lt_in(c, 2);
  if (!check_tau(c) || !check_matrix(c, 2) || !lt_check_same_dtype(c, 0, 2) ||
      !check_batch(c, 0, 2, 2))
    return false;
  int64_t size = c->arg[3].b ? rows(other) : columns(other);
  if (size != rows(a) || columns(tau) > rows(a))
    return lt_fail("cannot multiply: Q has %lld rows and %lld reflections, other has the shape %s",
                   (long long)rows(a), (long long)columns(tau), lt_text(other));
  lt_spec_like(c, 0, other);
  return true;
}

/* ---- singular values and eigenvalues --------------------------------------------------------- */

/* _linalg_svd (self, full_matrices, vectors): U, S, Vh; without vectors, U and Vh are empty */
bool lt_infer_linalg_svd(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_matrix(c, 0)) return false;
  bool full = c->arg[1].b, vectors = c->arg[2].b;
  spec_batch(c, 1, lt_dtype_real(a->dtype), a, least(a), -1);
  if (!vectors) {
    lt_spec(c, 0, a->dtype, 1, (int64_t[]){0});
    lt_spec(c, 2, a->dtype, 1, (int64_t[]){0});
    return true;
  }
  spec_batch(c, 0, a->dtype, a, rows(a), full ? rows(a) : least(a));
  spec_batch(c, 2, a->dtype, a, full ? columns(a) : least(a), columns(a));
  return true;
}

/* _linalg_eigh (self, upper, vectors): L, V; without vectors, V is empty */
bool lt_infer_linalg_eigh(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_square(c, 0)) return false;
  spec_batch(c, 0, lt_dtype_real(a->dtype), a, rows(a), -1);
  lt_spec_like(c, 1, a);
  if (!c->arg[2].b) lt_spec(c, 1, a->dtype, 1, (int64_t[]){0});
  return true;
}

/* _linalg_eig (self, vectors): L, V, complex; without vectors, V is empty */
bool lt_infer_linalg_eig(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  if (!check_square(c, 0)) return false;
  lt_Dtype complex = lt_dtype_is_complex(a->dtype) ? a->dtype : lt_dtype_complex(a->dtype);
  spec_batch(c, 0, complex, a, rows(a), -1);
  if (c->arg[1].b)
    spec_batch(c, 1, complex, a, rows(a), rows(a));
  else
    lt_spec(c, 1, complex, 1, (int64_t[]){0});
  return true;
}
