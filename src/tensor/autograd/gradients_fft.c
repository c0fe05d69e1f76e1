/* gradients_fft.c: gradients of Fourier transforms. A transform is linear, so the gradient is
 * that of the result times the conjugate transpose of its matrix: the transform with the other
 * sign of the exponent, and the same scale. */
#include "gradients.h"

#define DY g->grad

void lt_grad_fft_c2c(lt_Grad *g) {
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(_fft_c2c, LT_ARG(DY), g->arg[1], LT_ARG((bool)!g->arg[2].b), g->arg[3]));
}

/* Multiplies the values along dim by `factor`, except the first and, if n is even, the last: those
 * stand for one value of a Hermitian sequence of n, each of the others for two. */
static lt_Tensor *weighted(lt_Grad *g, lt_Tensor *t, lt_Arg dim, int64_t n, double factor) {
  int ndim = input(g, 0)->ndim, d = (int)(dim.i < 0 ? dim.i + ndim : dim.i);
  int64_t shape[LT_MAX_DIMS], m = n / 2 + 1;
  for (int i = 0; i < ndim; i++) shape[i] = i == d ? m : 1;
  if (!t) return NULL;
  lt_Dtype real = t->dtype == LT_complex128 ? LT_float64 : LT_float32;
  lt_Tensor *w = lt_do(full, LT_INTS(shape, ndim), LT_ARG(factor), lt_arg_dtype(real),
                       LT_ARG(lt_tensor_device(t)));
  for (int64_t k = 0; w && k<m; k += m> 1 ? m - 1 : 1)
    if (k == 0 || n % 2 == 0) {
      lt_Tensor *one = lt_do(select, LT_ARG(w), LT_ARG((int64_t)d), LT_ARG(k));
      if (!one || !lt_do_(LT_OP_fill, true, LT_ARGS_(LT_ARG(one), LT_ARG(1.0)), 0)) return NULL;
    }
  return MUL(t, w);
}

void lt_grad_fft_r2c(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  int ndim = input(g, 0)->ndim;
  int64_t d = g->arg[1].i, n = input(g, 0)->shape[d < 0 ? d + ndim : d];
  lt_Tensor *half = weighted(g, DY, g->arg[1], n, 0.5);
  set_grad(g, 0, lt_do(_fft_c2r, LT_ARG(half), g->arg[1], LT_ARG(n), g->arg[2]));
}

void lt_grad_fft_c2r(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  lt_Tensor *back = lt_do(_fft_r2c, LT_ARG(DY), g->arg[1], g->arg[3]);
  set_grad(g, 0, weighted(g, back, g->arg[1], g->arg[2].i, 2));
}
