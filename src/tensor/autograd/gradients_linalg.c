/* gradients_linalg.c: gradients of decompositions.
 *
 * A^H is the conjugate transpose; gX is the gradient of the result X. The formulas hold for batches
 * and complex matrices, and consist of differentiable ops. Sources:
 *   M. Giles, "An extended collection of matrix derivative results for forward and reverse mode
 *     algorithmic differentiation", 2008 (inverse, solution, determinant, eigenvalues)
 *   I. Murray, "Differentiation of the Cholesky decomposition", 2016
 *   S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions with
 *     application in optimum experimental design", 2010 (QR)
 *   J. Townsend, "Differentiating the singular value decomposition", 2016; Z. Wan and S. Zhang,
 *     "Automatic differentiation for complex valued SVD", 2019
 *   C. Boeddeker, P. Hanebrink et al., "On the computation of complex-valued gradients with
 *     application to statistically optimum beamforming", 2017 (eigenvectors)
 */
#include "gradients.h"
#include "../recorder.h"
#include "../infer.h"

/* ---- matrices -------------------------------------------------------------------------------- */

static bool is_complex(const lt_Tensor *t) { return t && lt_dtype_is_complex(t->dtype); }
static int64_t rows(const lt_Tensor *t) { return t->shape[t->ndim - 2]; }
static int64_t columns(const lt_Tensor *t) { return t->shape[t->ndim - 1]; }

static lt_Tensor *conjugate(lt_Tensor *t) { return is_complex(t) ? UNARY(conj, t) : t; }
/* Returns t^H. */
static lt_Tensor *adjoint(lt_Tensor *t) {
  return conjugate(lt_do(transpose, LT_ARG(t), LT_ARG(-2), LT_ARG(-1)));
}
static lt_Tensor *product(lt_Tensor *a, lt_Tensor *b) { return BINARY(matmul, a, b); }
static lt_Tensor *sum_of(lt_Tensor *a, lt_Tensor *b) { return !a ? b : !b ? a : ADD(a, b); }
static lt_Tensor *lower(lt_Tensor *t, int diagonal) { return BINARY(tril, t, diagonal); }
static lt_Tensor *upper(lt_Tensor *t, int diagonal) { return BINARY(triu, t, diagonal); }
static lt_Tensor *diagonal_of(lt_Tensor *t) {
  return lt_do(diagonal, LT_ARG(t), LT_ARG(0), LT_ARG(-2), LT_ARG(-1));
}
/* Returns a vector as a column, or as a row, of a matrix. */
static lt_Tensor *column(lt_Tensor *t) { return BINARY(unsqueeze, t, -1); }
static lt_Tensor *row(lt_Tensor *t) { return BINARY(unsqueeze, t, -2); }
/* Returns the columns (dim -1) or rows (dim -2) from `first` on. */
static lt_Tensor *part(lt_Tensor *t, int dim, int64_t first, int64_t count) {
  return lt_do(_slice, LT_ARG(t), LT_ARG(dim), LT_ARG(first), LT_ARG(count), LT_ARG(1));
}

/* Returns a^H \ b, or b / a^H, for triangular a. */
static lt_Tensor *divide_triangular(lt_Tensor *a, bool is_upper, bool left, bool unit,
                                    lt_Tensor *b) {
  return lt_do(_linalg_solve_triangular, LT_ARG(adjoint(a)), LT_ARG(b), lt_arg_bool(!is_upper),
               lt_arg_bool(left), lt_arg_bool(unit));
}

/* Returns a \ b, or b / a; without a check for singular matrices. */
static lt_Tensor *divide(lt_Tensor *a, bool left, lt_Tensor *b) {
  return lt_do(_linalg_solve, LT_ARG(a), LT_ARG(b), lt_arg_bool(left), NO);
}

/* Returns a with the diagonal d: a must be 0 there. */
static lt_Tensor *with_diagonal(lt_Tensor *a, lt_Tensor *d, lt_Tensor *eye) {
  lt_Tensor *diagonal = MUL(eye, row(d));
  return a ? ADD(a, diagonal) : diagonal;
}

/* Returns the identity matrix of n rows, in the dtype of t's real part, on its device. */
static lt_Tensor *identity(lt_Tensor *t, int64_t n) {
  if (!t) return NULL;
  return lt_do(eye, LT_ARG(n), LT_NIL, lt_arg_dtype(lt_dtype_real(t->dtype)),
               lt_arg_device(lt_tensor_device(t)));
}

/* Returns t in the dtype of `like`. */
static lt_Tensor *as(lt_Tensor *t, const lt_Tensor *like) {
  return !t || !like || t->dtype == like->dtype
             ? t
             : lt_do(to, LT_ARG(t), LT_NIL, lt_arg_dtype(like->dtype));
}

/* ---- factors --------------------------------------------------------------------------------- */

/* Murray: gA = L^-H sym(F) L^-1, where F is the lower triangle of L^H gL with half its diagonal. */
void lt_grad_linalg_cholesky(lt_Grad *g) {
  bool is_upper = g->arg[1].b;
  lt_Tensor *l = g->result[0], *gl = g->grad;
  if (is_upper) l = adjoint(l), gl = adjoint(gl);
  lt_Tensor *f = product(adjoint(l), gl);
  f = MUL(ADD(lower(f, 0), adjoint(lower(f, -1))), 0.5);
  f = divide_triangular(l, false, true, false, f);
  /* f L^-1 = (L^-H f^H)^H */
  set_grad(g, 0, adjoint(divide_triangular(l, false, true, false, adjoint(f))));
}

/* Giles: gA = -X^H gX X^H for X = A^-1. */
void lt_grad_linalg_inv(lt_Grad *g) {
  lt_Tensor *h = adjoint(g->result[0]);
  set_grad(g, 0, UNARY(neg, product(h, product(g->grad, h))));
}

/* With F = L^-1 dX U^-1 for X = P^T A = L U: dL = L tril(F, -1) and dU = triu(F) U on the square
 * part of X; a remaining part of U or L follows from L dU = dX - dL U or dL U = dX - L dU. */
void lt_grad_linalg_lu_factor(lt_Grad *g) {
  lt_Tensor *lu = g->result[0], *gr = g->grad;
  int64_t m = rows(lu), n = columns(lu), k = m < n ? m : n;
  lt_Tensor *square = part(part(lu, -2, 0, k), -1, 0, k);
  lt_Tensor *gsquare = part(part(gr, -2, 0, k), -1, 0, k);
  lt_Tensor *eye = identity(lu, k), *l = ADD(lower(square, -1), eye), *u = upper(square, 0);
  lt_Tensor *fl = product(adjoint(l), lower(gsquare, -1));
  lt_Tensor *fu = product(upper(gsquare, 0), adjoint(u)), *rest = NULL;
  if (n > k) {
    rest = part(gr, -1, k, n - k);
    fl = SUB(fl, product(rest, adjoint(part(lu, -1, k, n - k))));
    rest = divide_triangular(l, false, true, true, rest);
  } else if (m > k) {
    rest = part(gr, -2, k, m - k);
    fu = SUB(fu, product(adjoint(part(lu, -2, k, m - k)), rest));
    rest = divide_triangular(u, true, false, false, rest);
  }
  lt_Tensor *gx = ADD(lower(fl, -1), upper(fu, 0));
  gx = divide_triangular(l, false, true, true, gx);
  gx = divide_triangular(u, true, false, false, gx);
  if (m != n) {
    lt_Tensor *both[] = {gx, rest};
    gx = gx && rest ? lt_do(cat, LT_TENSORS(both, 2), LT_ARG(n > k ? -1 : -2)) : NULL;
  }
  /* Row i of X is row p[i] of A. */
  lt_Tensor *p = lt_do(_linalg_lu_permutation, LT_ARG(g->result[1]), LT_ARG(m));
  lt_Tensor *inverse = lt_do(argsort, LT_ARG(p));
  if (!gx || !inverse) {
    g->failed = true;
    return;
  }
  lt_Tensor *index = lt_do(expand, LT_ARG(column(inverse)), LT_INTS(gx->shape, gx->ndim));
  set_grad(g, 0, lt_do(gather, LT_ARG(gx), LT_ARG(-2), LT_ARG(index)));
}

/* ---- solutions ------------------------------------------------------------------------------- */

/* Returns gA = -gB X^H (left) or -X^H gB (right). */
static lt_Tensor *matrix_gradient(bool left, lt_Tensor *gb, lt_Tensor *x) {
  return UNARY(neg, left ? product(gb, adjoint(x)) : product(adjoint(x), gb));
}

/* Giles: gB = A^-H gX (left) or gX A^-H (right). */
void lt_grad_linalg_solve(lt_Grad *g) {
  bool left = g->arg[2].b;
  lt_Tensor *gb = divide(adjoint(g->arg[0].tensor), left, g->grad);
  if (needs_grad(g, 0)) set_grad(g, 0, matrix_gradient(left, gb, g->result[0]));
  if (needs_grad(g, 1)) set_grad(g, 1, gb);
}

void lt_grad_linalg_solve_triangular(lt_Grad *g) {
  bool is_upper = g->arg[2].b, left = g->arg[3].b, unit = g->arg[4].b;
  lt_Tensor *gb = divide_triangular(g->arg[0].tensor, is_upper, left, unit, g->grad);
  if (needs_grad(g, 0)) {
    lt_Tensor *ga = matrix_gradient(left, gb, g->result[0]);
    set_grad(g, 0, is_upper ? upper(ga, unit) : lower(ga, -unit));
  }
  if (needs_grad(g, 1)) set_grad(g, 1, gb);
}

/* Returns (c A^-1)^H for a number c of each matrix. */
static lt_Tensor *scaled_inverse(lt_Tensor *a, lt_Tensor *c) {
  if (!a) return NULL;
  lt_Tensor *eye = identity(a, rows(a));
  lt_Tensor *right = as(MUL(eye, column(column(c))), a);
  return right ? divide(adjoint(a), true, right) : NULL;
}

/* Returns true when an element of t is 0. */
static bool any_zero(lt_Tensor *t) {
  lt_Tensor *found = UNARY(any, BINARY(eq, t, 0.0));
  lt_Scalar yes;
  lt_recorder_refuse("a gradient depends on the values of a tensor");
  return found && !lt_tensor_is_meta(found) && lt_tensor_item(found, &yes) &&
         lt_scalar_to_int(yes) != 0;
}

/* Returns g (adj A)^H, which also exists for singular matrices: with A = U S V^H it is g
 * conj(det(U) det(V^H)) U diag(p) V^H, where p_i is the product of the other singular values. */
static lt_Tensor *scaled_adjugate(lt_Tensor *a, lt_Tensor *g) {
  lt_Tensor *usv[3];
  if (!lt_do_all(LT_OP__linalg_svd, (lt_Arg[]){LT_ARG(a), NO, YES}, 3, 3, usv)) return NULL;
  lt_Tensor *eye = identity(a, rows(a));
  lt_Tensor *others = WHERE(BINARY(gt, eye, 0.0), 1.0, row(usv[1]));
  others = lt_do(prod, LT_ARG(others), LT_INTS((&(int64_t){-1}), 1));
  lt_Tensor *c = MUL(UNARY(_linalg_det, usv[0]), UNARY(_linalg_det, usv[2]));
  c = MUL(g, conjugate(c));
  return MUL(product(MUL(usv[0], row(others)), usv[2]), column(column(c)));
}

/* Giles: gA = conj(det) g A^-H. */
void lt_grad_linalg_det(lt_Grad *g) {
  if (!lt_grad_enabled() && any_zero(g->result[0])) {
    set_grad(g, 0, scaled_adjugate(g->arg[0].tensor, g->grad));
    return;
  }
  lt_Tensor *c = MUL(g->grad, conjugate(g->result[0]));
  set_grad(g, 0, scaled_inverse(g->arg[0].tensor, c));
}

/* d log det = tr(A^-1 dA); its real part is d logabsdet, and d sign is i sign times its imaginary
 * part: gA = (glog - i Im(conj(gsign) sign)) A^-H. The sign of a real matrix is constant. */
void lt_grad_linalg_slogdet(lt_Grad *g) {
  lt_Tensor *sign = g->result[0], *gsign = g->grads[0], *c = g->grads[1];
  if (is_complex(sign)) {
    if (gsign) {
      lt_Tensor *turn = MUL(conjugate(gsign), sign);
      turn = MUL(SUB(turn, conjugate(turn)), -0.5);
      c = c ? ADD(turn, c) : turn;
    }
  } else if (!c) {
    set_grad(g, 0, lt_grad_zeros_of(g, 0));
    return;
  }
  set_grad(g, 0, scaled_inverse(g->arg[0].tensor, c));
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* Returns sym(w): the hermitian matrix with the upper triangle of w. */
static lt_Tensor *hermitian_of(lt_Tensor *w) {
  lt_Tensor *twice = ADD(upper(w, 0), upper(w, 1));
  return MUL(ADD(twice, adjoint(twice)), 0.5);
}

/* Walter and Lehmann: gA = (gQ + Q sym(gR R^H - Q^H gQ)) R^-H for square R. With more columns than
 * rows, A = (A1 A2), R = (R1 R2) and R2 = Q^H A2: gA2 = Q gR2, and gQ grows by A2 gR2^H = Q R2
 * gR2^H. */
void lt_grad_linalg_qr(lt_Grad *g) {
  lt_Tensor *q = g->result[0], *r = g->result[1], *gq = g->grads[0], *gr = g->grads[1];
  bool without_q = strcmp(g->arg[1].string, "r") == 0;
  int64_t n = columns(r), k = rows(r);
  if (without_q || k > n) {
    lt_fail("cannot compute the gradient: mode \"%s\" %s\nhint: mode = \"reduced\"",
            g->arg[1].string,
            without_q ? "computes no Q" : "of matrices with more rows than columns has none");
    g->failed = true;
    return;
  }
  lt_Tensor *r1 = n > k ? part(r, -1, 0, k) : r, *gr2 = NULL;
  if (n > k && gr) {
    gr2 = part(gr, -1, k, n - k);
    gq = sum_of(gq, product(q, product(part(r, -1, k, n - k), adjoint(gr2))));
    gr = part(gr, -1, 0, k);
  }
  lt_Tensor *w = gr ? product(gr, adjoint(r1)) : NULL;
  if (gq) w = sum_of(w, UNARY(neg, product(adjoint(q), gq)));
  lt_Tensor *ga = sum_of(gq, product(q, hermitian_of(w)));
  ga = divide_triangular(r1, true, false, false, ga);
  if (n > k && ga) {
    lt_Tensor *ga2 = gr2 ? product(q, gr2) : MUL(part(r, -1, k, n - k), 0.0);
    lt_Tensor *both[] = {ga, ga2};
    ga = ga2 ? lt_do(cat, LT_TENSORS(both, 2), LT_ARG(-1)) : NULL;
  }
  set_grad(g, 0, ga);
}

/* ---- singular values and eigenvalues --------------------------------------------------------- */

/* Returns the matrix of differences x_k - x_j (row j, column k), with 1 on its diagonal. */
static lt_Tensor *differences(lt_Tensor *x) {
  if (!x) return NULL;
  lt_Tensor *eye = identity(x, columns(x));
  return ADD(SUB(row(x), column(x)), eye);
}

static lt_Tensor *skew(lt_Tensor *t) { return SUB(t, adjoint(t)); }

/* Townsend, for complex matrices Wan and Zhang: with E_jk = s_k^2 - s_j^2 (1 on the diagonal),
 *   gA = U (skew(U^H gU) / E S + S skew(V^H gV) / E + diag(gS)) V^H
 *        + (I - U U^H) gU S^-1 V^H + U S^-1 gV^H (I - V V^H).
 * The phases of the columns of U and V may change together; of the complex diagonals the part i
 * Im(diag(U^H gU)) / S remains. */
void lt_grad_linalg_svd(lt_Grad *g) {
  lt_Tensor *u = g->result[0], *s = g->result[1], *vh = g->result[2];
  lt_Tensor *gu = g->grads[0], *gs = g->grads[1], *gvh = g->grads[2], *middle = NULL;
  if (!g->arg[2].b) {
    lt_fail("cannot compute the gradient: no singular vectors were computed");
    g->failed = true;
    return;
  }
  int64_t k = columns(s), m = rows(u), n = columns(vh);
  if (columns(u) > k) u = part(u, -1, 0, k), gu = gu ? part(gu, -1, 0, k) : NULL;
  if (rows(vh) > k) vh = part(vh, -2, 0, k), gvh = gvh ? part(gvh, -2, 0, k) : NULL;
  lt_Tensor *v = adjoint(vh), *gv = gvh ? adjoint(gvh) : NULL, *eye = identity(s, k);
  lt_Tensor *e = gu || gv ? differences(UNARY(square, s)) : NULL;
  if (gu) {
    lt_Tensor *turns = skew(product(adjoint(u), gu));
    middle = MUL(DIV(turns, e), row(s));
    if (is_complex(u))
      middle = ADD(MUL(middle, SUB(1.0, eye)), MUL(MUL(turns, eye), DIV(0.5, row(s))));
  }
  if (gv) {
    lt_Tensor *turns = MUL(column(s), DIV(skew(product(vh, gv)), e));
    if (is_complex(v)) turns = MUL(turns, SUB(1.0, eye));
    middle = sum_of(middle, turns);
  }
  if (gs) middle = with_diagonal(middle, gs, eye);
  lt_Tensor *ga = product(u, product(as(middle, u), vh));
  if (gu && m > k) {
    lt_Tensor *rest = SUB(gu, product(u, product(adjoint(u), gu)));
    ga = ADD(ga, product(DIV(rest, row(s)), vh));
  }
  if (gv && n > k) {
    lt_Tensor *rest = SUB(gvh, product(product(gvh, v), vh));
    ga = ADD(ga, product(u, DIV(rest, column(s))));
  }
  set_grad(g, 0, ga);
}

/* Giles: gA = sym(V (V^H gV / E + diag(gL)) V^H) with E_jk = l_k - l_j. */
void lt_grad_linalg_eigh(lt_Grad *g) {
  lt_Tensor *l = g->result[0], *v = g->result[1], *gl = g->grads[0], *gv = g->grads[1];
  if (!g->arg[2].b) {
    lt_fail("cannot compute the gradient: no eigenvectors were computed");
    g->failed = true;
    return;
  }
  lt_Tensor *eye = identity(l, columns(v)), *middle = NULL;
  if (gv) middle = MUL(DIV(product(adjoint(v), gv), differences(l)), SUB(1.0, eye));
  if (!gv) {
    set_grad(g, 0, product(MUL(v, row(gl)), adjoint(v)));
    return;
  }
  if (gl) middle = with_diagonal(middle, gl, eye);
  middle = MUL(ADD(middle, adjoint(middle)), 0.5);
  set_grad(g, 0, product(v, product(middle, adjoint(v))));
}

/* Boeddeker et al.: gA = V^-H (diag(gL) + (V^H gV - V^H V Re(diag(V^H gV))) / conj(E)) V^H with
 * E_jk = l_k - l_j, as the columns of V have norm 1. */
void lt_grad_linalg_eig(lt_Grad *g) {
  lt_Tensor *l = g->result[0], *v = g->result[1], *gl = g->grads[0], *gv = g->grads[1];
  if (!g->arg[1].b) {
    lt_fail("cannot compute the gradient: no eigenvectors were computed");
    g->failed = true;
    return;
  }
  lt_Tensor *eye = identity(l, columns(v)), *middle = NULL, *vh = adjoint(v);
  if (gv) {
    lt_Tensor *w = product(vh, gv), *d = diagonal_of(w);
    d = MUL(ADD(d, conjugate(d)), 0.5);
    w = SUB(w, MUL(product(vh, v), row(d)));
    middle = MUL(DIV(w, conjugate(differences(l))), SUB(1.0, eye));
  }
  if (gl) middle = with_diagonal(middle, gl, eye);
  lt_Tensor *ga = divide(vh, true, product(middle, vh));
  if (ga && !lt_dtype_is_complex(input(g, 0)->dtype)) ga = UNARY(real, ga);
  set_grad(g, 0, ga);
}
