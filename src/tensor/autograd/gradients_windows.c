/* gradients_windows.c: gradients of pools, unfold, fold and interpolation. Each op is linear in its
 * first argument, once the maxima are known, so the gradient of its gradient is the op again. */
#include "gradients.h"

#define DY g->grad

/* Returns the last n sizes of argument 0, which is not saved. */
#define SIZES(n) LT_INTS(input(g, 0)->shape + input(g, 0)->ndim - (n), n)

void lt_grad_max_pool(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(_max_pool_backward, LT_ARG(DY), LT_ARG(g->result[1]), SIZES(g->arg[1].count),
                   g->arg[2], g->arg[3], g->arg[4], g->arg[5]));
}

/* The maxima are gathered by their indices. */
void lt_grad_max_pool_backward(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  const lt_Input *in = input(g, 0);
  int dim = in->ndim - g->arg[2].count;
  lt_Tensor *lines = lt_do(flatten, LT_ARG(DY), LT_ARG(dim), LT_ARG(-1)),
            *index = lt_do(flatten, g->arg[1], LT_ARG(dim), LT_ARG(-1)),
            *got = lt_do(gather, LT_ARG(lines), LT_ARG(dim), LT_ARG(index));
  set_grad(g, 0, lt_do(view, LT_ARG(got), LT_INTS(in->shape, in->ndim)));
}

void lt_grad_avg_pool(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(_avg_pool_backward, LT_ARG(DY), SIZES(g->arg[1].count), g->arg[2], g->arg[3],
                   g->arg[4], g->arg[5], g->arg[6]));
}
void lt_grad_avg_pool_backward(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(_avg_pool, LT_ARG(DY), SIZES(g->arg[1].count), g->arg[2], g->arg[3], g->arg[4],
                   g->arg[5], g->arg[6]));
}

void lt_grad_im2col(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(_col2im, LT_ARG(DY), SIZES(g->arg[1].count), g->arg[1], g->arg[2], g->arg[3],
                   g->arg[4]));
}
void lt_grad_col2im(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(_im2col, LT_ARG(DY), g->arg[2], g->arg[3], g->arg[4], g->arg[5]));
}

/* Returns the size of the dim in argument 1 of argument 0. */
static lt_Arg size_of_dim(const lt_Grad *g) {
  const lt_Input *in = input(g, 0);
  int64_t dim = g->arg[1].i;
  return LT_ARG(in->shape[dim < 0 ? dim + in->ndim : dim]);
}
void lt_grad_resample(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0,
             lt_do(_resample_backward, LT_ARG(DY), g->arg[1], size_of_dim(g), g->arg[3], g->arg[4],
                   g->arg[5]));
}
void lt_grad_resample_backward(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(
        g, 0,
        lt_do(_resample, LT_ARG(DY), g->arg[1], size_of_dim(g), g->arg[3], g->arg[4], g->arg[5]));
}
