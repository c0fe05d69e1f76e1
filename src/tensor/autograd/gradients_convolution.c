/* gradients_convolution.c: gradients of convolutions, which are convolutions, of batch norm and of
 * group norm. */
#include "gradients.h"

#define DY g->grad

/* ---- convolutions ---------------------------------------------------------------------------- */

/* The arguments after size are the same in all forms: stride, padding, dilation and groups, from
 * argument `first` on. Both functions run a form whose result has the size of `like`, its dims
 * after the first two. */

/* Runs _convolution or _convolution_transpose. */
static lt_Tensor *side(const lt_Grad *g, lt_OpId op, lt_Arg a, lt_Arg b, const lt_Input *like,
                       int first) {
  const lt_Arg *rest = &g->arg[first];
  lt_Arg size = LT_INTS(like->shape + 2, like->ndim - 2);
  lt_Arg args[] = {a, b, LT_NIL, size, rest[0], rest[1], rest[2], rest[3]};
  return lt_do_(op, false, args, 8, 0);
}

/* Runs _convolution_weight. */
static lt_Tensor *weight(const lt_Grad *g, lt_Arg a, lt_Arg b, const lt_Input *like, int first) {
  const lt_Arg *rest = &g->arg[first];
  lt_Arg size = LT_INTS(like->shape + 2, like->ndim - 2);
  return lt_do(_convolution_weight, a, b, size, rest[0], rest[1], rest[2], rest[3]);
}

/* Returns the sum over all dimensions but that of the channels. */
static lt_Tensor *channel_sums(lt_Tensor *t) {
  int64_t dims[LT_MAX_DIMS] = {0};
  for (int d = 2; d < t->ndim; d++) dims[d - 1] = d;
  return lt_do(sum, LT_ARG(t), LT_INTS(dims, t->ndim - 1), NO);
}

/* out = C(x, w) + bias: dx = T(dy, w), dw = W(dy, x). */
void lt_grad_convolution(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, side(g, LT_OP__convolution_transpose, LT_ARG(DY), g->arg[1], input(g, 0), 4));
  if (needs_grad(g, 1)) set_grad(g, 1, weight(g, LT_ARG(DY), g->arg[0], input(g, 1), 4));
  if (needs_grad(g, 2)) set_grad(g, 2, channel_sums(DY));
}

/* out = T(x, w) + bias: dx = C(dy, w), dw = W(x, dy). */
void lt_grad_convolution_transpose(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, side(g, LT_OP__convolution, LT_ARG(DY), g->arg[1], input(g, 0), 4));
  if (needs_grad(g, 1)) set_grad(g, 1, weight(g, g->arg[0], LT_ARG(DY), input(g, 1), 4));
  if (needs_grad(g, 2)) set_grad(g, 2, channel_sums(DY));
}

/* out = W(a, x): da = C(x, dout), dx = T(a, dout). */
void lt_grad_convolution_weight(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, side(g, LT_OP__convolution, g->arg[1], LT_ARG(DY), input(g, 0), 3));
  if (needs_grad(g, 1))
    set_grad(g, 1, side(g, LT_OP__convolution_transpose, g->arg[0], LT_ARG(DY), input(g, 1), 3));
}

/* ---- batch norm ------------------------------------------------------------------------------ */

/* Computes the gradients by one kernel, for a backward without create_graph. `first`: the arguments
 * after the tensors. */
static void norm_kernel(lt_Grad *g, lt_OpId op, int first) {
  lt_Results r;
  lt_Arg args[] = {LT_ARG(DY),           g->arg[0],     g->arg[1],        LT_ARG(g->result[1]),
                   LT_ARG(g->result[2]), g->arg[first], g->arg[first + 1]};
  if (!lt_call(op, false, args, 7, &r)) {
    g->failed = true;
    return;
  }
  for (int i = 0; i < 3; i++) {
    lt_Tensor *t = lt_scope_own(r.few[i]);
    if (needs_grad(g, i)) set_grad(g, i, t);
  }
}

/* Returns t {channels}, in x's dtype, in a shape that broadcasts against x. */
static lt_Tensor *over_channels(lt_Tensor *t, const lt_Tensor *x) {
  int64_t shape[LT_MAX_DIMS] = {1, x->shape[1]};
  for (int d = 2; d < x->ndim; d++) shape[d] = 1;
  return lt_do(view, LT_ARG(t), LT_INTS(shape, x->ndim));
}

/* Computes the same by ops, including the statistics, for gradients of gradients: with the
 * normalized n and h = g weight, dx = (h - mean(h) - n mean(h n)) / std; in evaluation, h / std. */
static void batch_norm_ops(lt_Grad *g) {
  lt_Tensor *x = g->arg[0].tensor, *mean = g->result[1], *var = g->result[2];
  int64_t dims[LT_MAX_DIMS] = {0};
  for (int d = 2; d < x->ndim; d++) dims[d - 1] = d;
  lt_Arg over = LT_INTS(dims, x->ndim - 1);
  bool training = g->arg[5].b;
  lt_Tensor *off = SUB(x, training ? lt_do(mean, LT_ARG(x), over, YES) : over_channels(mean, x));
  var =
      training ? lt_do(mean, LT_ARG(UNARY(square, LT_ARG(off))), over, YES) : over_channels(var, x);
  lt_Tensor *rstd = UNARY(rsqrt, ADD(var, g->arg[6].f)), *n = MUL(off, rstd);
  if (needs_grad(g, 0)) {
    lt_Tensor *h = g->arg[1].kind != LT_ARG_NIL ? MUL(DY, over_channels(g->arg[1].tensor, x)) : DY;
    if (training) {
      lt_Tensor *mean_h = lt_do(mean, LT_ARG(h), over, YES),
                *mean_hn = lt_do(mean, LT_ARG(MUL(h, n)), over, YES);
      h = SUB(SUB(h, mean_h), MUL(n, mean_hn));
    }
    set_grad(g, 0, MUL(h, rstd));
  }
  if (needs_grad(g, 1)) set_grad(g, 1, channel_sums(MUL(DY, n)));
  if (needs_grad(g, 2)) set_grad(g, 2, channel_sums(DY));
}

void lt_grad_batch_norm(lt_Grad *g) {
  if (lt_grad_enabled())
    batch_norm_ops(g);
  else
    norm_kernel(g, LT_OP__batch_norm_backward, 5);
}

/* ---- group norm ------------------------------------------------------------------------------ */

/* Computes the gradients by ops, of x {N, groups, channels of a group, elements of a channel}, by
 * the formula of batch_norm_ops. */
static void group_norm_ops(lt_Grad *g) {
  const lt_Tensor *input = g->arg[0].tensor;
  int64_t groups = g->arg[3].i, channels = input->shape[1];
  int64_t shape[] = {input->shape[0], groups, channels / groups, -1};
  lt_Arg over = LT_INTS(((int64_t[]){2, 3}), 2), sizes = LT_INTS(shape, 4);
  lt_Tensor *x = lt_do(reshape, g->arg[0], sizes), *dy = lt_do(reshape, LT_ARG(DY), sizes);
  lt_Tensor *off = SUB(x, lt_do(mean, LT_ARG(x), over, YES));
  lt_Tensor *var = lt_do(mean, LT_ARG(UNARY(square, LT_ARG(off))), over, YES);
  lt_Tensor *rstd = UNARY(rsqrt, ADD(var, g->arg[4].f)), *n = MUL(off, rstd);
  if (needs_grad(g, 0)) {
    lt_Tensor *h = dy;
    if (g->arg[1].kind != LT_ARG_NIL)
      h = MUL(dy,
              lt_do(reshape, g->arg[1], LT_INTS(((int64_t[]){groups, channels / groups, 1}), 3)));
    lt_Tensor *mean_h = lt_do(mean, LT_ARG(h), over, YES),
              *mean_hn = lt_do(mean, LT_ARG(MUL(h, n)), over, YES);
    h = MUL(SUB(SUB(h, mean_h), MUL(n, mean_hn)), rstd);
    set_grad(g, 0, lt_do(reshape, LT_ARG(h), LT_INTS(input->shape, input->ndim)));
  }
  if (needs_grad(g, 1))
    set_grad(g, 1,
             channel_sums(lt_do(reshape, LT_ARG(MUL(dy, n)), LT_INTS(input->shape, input->ndim))));
  if (needs_grad(g, 2)) set_grad(g, 2, channel_sums(DY));
}

void lt_grad_group_norm(lt_Grad *g) {
  if (lt_grad_enabled())
    group_norm_ops(g);
  else
    norm_kernel(g, LT_OP__group_norm_backward, 3);
}
