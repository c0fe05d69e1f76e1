/* gradients_linear.c: gradients of matrix products, softmax, layer norm and losses. */
#include "gradients.h"

#define DY g->grad

static lt_Tensor *flipped(lt_Arg m) { return lt_do(transpose, m, LT_ARG(-1), LT_ARG(-2)); }

/* ---- products -------------------------------------------------------------------------------- */

static lt_Tensor *matmul(bool batch, lt_Arg a, lt_Arg b) {
  return batch ? lt_do(bmm, a, b) : lt_do(mm, a, b);
}

/* Computes dL/da of c = a b in the memory order of a: for a transposed `a`, as the transpose of
 * the transposed product, so that the gradient of the parameter of which `a` is a view is
 * contiguous. */
static lt_Tensor *left_gradient(bool batch, const lt_Input *a, lt_Tensor *dc, lt_Arg b) {
  if (!a->transposed) return matmul(batch, LT_ARG(dc), LT_ARG(flipped(b)));
  return flipped(LT_ARG(matmul(batch, b, LT_ARG(flipped(LT_ARG(dc))))));
}

/* Computes dL/db in the same way. */
static lt_Tensor *right_gradient(bool batch, const lt_Input *b, lt_Tensor *dc, lt_Arg a) {
  if (!b->transposed) return matmul(batch, LT_ARG(flipped(a)), LT_ARG(dc));
  return flipped(LT_ARG(matmul(batch, LT_ARG(flipped(LT_ARG(dc))), a)));
}

/* The gradients of a matrix product: d/da = dc b^T, d/db = a^T dc. */
static void product(lt_Grad *g, bool batch) {
  if (needs_grad(g, 0)) set_grad(g, 0, left_gradient(batch, input(g, 0), DY, g->arg[1]));
  if (needs_grad(g, 1)) set_grad(g, 1, right_gradient(batch, input(g, 1), DY, g->arg[0]));
}

void lt_grad_mm(lt_Grad *g) { product(g, false); }
void lt_grad_bmm(lt_Grad *g) { product(g, true); }

void lt_grad_addmm(lt_Grad *g) {
  if (needs_grad(g, 0)) set_grad(g, 0, SCALED(DY, g->arg[3]));
  if (needs_grad(g, 1))
    set_grad(g, 1, SCALED(left_gradient(false, input(g, 1), DY, g->arg[2]), g->arg[4]));
  if (needs_grad(g, 2))
    set_grad(g, 2, SCALED(right_gradient(false, input(g, 2), DY, g->arg[1]), g->arg[4]));
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* Sums along dim, which stays as a size of 1. */
static lt_Tensor *sum_along(lt_Tensor *t, lt_Arg dim) {
  return lt_do(sum, LT_ARG(t), LT_INTS(&dim.i, 1), YES);
}

/* out = y (a - sum(a y)). It is symmetric in a, and d/dy = h a - h sum(a y) - a sum(h y), with h
 * the gradient of out. */
void lt_grad_softmax_backward(lt_Grad *g) {
  lt_Arg a = g->arg[0], y = g->arg[1], dim = g->arg[2];
  if (needs_grad(g, 0)) set_grad(g, 0, lt_do(_softmax_backward, LT_ARG(DY), y, dim));
  if (!needs_grad(g, 1)) return;
  lt_Tensor *h = MUL(DY, SUB(a, sum_along(MUL(a, y), dim)));
  set_grad(g, 1, SUB(h, MUL(a, sum_along(MUL(DY, y), dim))));
}

/* out = a - e^y sum(a): d/da = h - sum(h e^y), d/dy = -h e^y sum(a), with h the gradient of out. */
void lt_grad_log_softmax_backward(lt_Grad *g) {
  lt_Tensor *hy = MUL(DY, UNARY(exp, g->arg[1]));
  if (needs_grad(g, 0)) set_grad(g, 0, SUB(DY, sum_along(hy, g->arg[2])));
  if (needs_grad(g, 1)) set_grad(g, 1, UNARY(neg, MUL(hy, sum_along(g->arg[0].tensor, g->arg[2]))));
}

/* ---- layer norm ------------------------------------------------------------------------------ */

/* Computes the gradients by one kernel, for a backward without create_graph. */
static void layer_norm_kernel(lt_Grad *g) {
  lt_Results r;
  lt_Arg args[] = {LT_ARG(DY),           g->arg[0], g->arg[1], LT_ARG(g->result[1]),
                   LT_ARG(g->result[2]), g->arg[2]};
  if (!lt_call(LT_OP__layer_norm_backward, false, args, 6, &r)) {
    g->failed = true;
    return;
  }
  const int argument[] = {0, 2, 3};
  for (int i = 0; i < 3; i++) {
    lt_Tensor *t = lt_scope_own(r.few[i]);
    if (needs_grad(g, argument[i])) set_grad(g, argument[i], t);
  }
}

/* Computes the same by ops, including the statistics, for gradients of gradients: dx = (h - mean(h)
 * - n mean(h n)) / std, with n the normalized x and h = g weight. */
static void layer_norm_ops(lt_Grad *g) {
  lt_Arg x = g->arg[0];
  int count = (int)g->arg[1].i;
  int64_t dims[LT_MAX_DIMS];
  for (int i = 0; i < count; i++) dims[i] = i - count;
  lt_Arg over = LT_INTS(dims, count);
  lt_Tensor *off = SUB(x, lt_do(mean, x, over, YES));
  lt_Tensor *var = lt_do(mean, LT_ARG(UNARY(square, off)), over, YES);
  lt_Tensor *rstd = UNARY(rsqrt, ADD(var, g->arg[4].f));
  lt_Tensor *n = MUL(off, rstd);
  if (needs_grad(g, 0)) {
    lt_Tensor *h = g->arg[2].kind != LT_ARG_NIL ? MUL(DY, g->arg[2]) : DY;
    lt_Tensor *mean_h = lt_do(mean, LT_ARG(h), over, YES),
              *mean_hn = lt_do(mean, LT_ARG(MUL(h, n)), over, YES);
    set_grad(g, 0, MUL(SUB(SUB(h, mean_h), MUL(n, mean_hn)), rstd));
  }
  if (needs_grad(g, 2)) set_grad(g, 2, MUL(DY, n));
  if (needs_grad(g, 3)) set_grad(g, 3, DY);
}

void lt_grad_layer_norm(lt_Grad *g) {
  if (lt_grad_enabled())
    layer_norm_ops(g);
  else
    layer_norm_kernel(g);
}

/* ---- negative log likelihood ----------------------------------------------------------------- */

void lt_grad_nll_loss(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(_nll_loss_backward, LT_ARG(DY), g->arg[0], g->arg[1], g->arg[2], g->arg[3],
                   g->arg[4], LT_ARG(g->result[1])));
}

/* The op is linear in the gradient, and _nll_loss is its adjoint. */
void lt_grad_nll_loss_backward(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(_nll_loss, LT_ARG(DY), g->arg[2], g->arg[3], g->arg[4], g->arg[5]));
}

/* For gradients of gradients, computes the same by ops that have gradients. */
void lt_grad_cross_entropy(lt_Grad *g) {
  lt_Arg sums = LT_ARG(g->result[1]), total = LT_ARG(g->result[2]);
  if (!needs_grad(g, 0)) return;
  if (!lt_grad_enabled()) {
    set_grad(g, 0,
             lt_do(_cross_entropy_backward, LT_ARG(DY), g->arg[0], g->arg[1], g->arg[2], g->arg[3],
                   g->arg[4], sums, total));
    return;
  }
  lt_Tensor *logp = lt_do(log_softmax, g->arg[0], LT_ARG(1));
  lt_Tensor *d = lt_do(_nll_loss_backward, LT_ARG(DY), LT_ARG(logp), g->arg[1], g->arg[2],
                       g->arg[3], g->arg[4], total);
  set_grad(g, 0, lt_do(_log_softmax_backward, LT_ARG(d), LT_ARG(logp), LT_ARG(1)));
}
