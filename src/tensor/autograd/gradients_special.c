/* gradients_special.c: gradients of activations and special functions, where ops.def has no
 * formula. */
#include "gradients.h"

#define DY     g->grad
#define X      g->arg[0]
#define Y      g->arg[1]
#define RESULT g->result[0]

/* Returns a mask that is true where x, a tensor, is 0. */
static lt_Tensor *is_zero(lt_Arg x) { return lt_do(eq, x, LT_ARG(0.0)); }

/* Returns x, with 1 in place of 0: a divisor. */
static lt_Tensor *divisor(lt_Arg x) { return WHERE(is_zero(x), 1.0, x); }

/* ---- activations ----------------------------------------------------------------------------- */

/* mish' = t + x s (1 - t^2), t = tanh(softplus(x)), s = sigmoid(x). */
void lt_grad_mish(lt_Grad *g) {
  lt_Tensor *t = UNARY(tanh, TERNARY(softplus, X, 1.0, 20.0));
  lt_Tensor *slope = MUL(MUL(X, UNARY(sigmoid, X)), SUB(1.0, UNARY(square, t)));
  set_grad(g, 0, MUL(DY, ADD(t, slope)));
}

/* Stores the gradient of scale * (x > 0 ? x : alpha * (e^(x / width) - 1)). The exponential is
 * computed of min(x, 0): an overflow where the other side is chosen would make gradients of
 * gradients NaN. */
static void exponential_unit(lt_Grad *g, double scale, double alpha, double width) {
  lt_Tensor *negative = lt_do(_clamp, X, LT_ARG((double)-INFINITY), LT_ARG(0.0));
  lt_Tensor *grown = UNARY(exp, width == 1 ? negative : DIV(negative, width));
  lt_Tensor *slope = MUL(DY, MUL(grown, scale * alpha / width));
  set_grad(g, 0, WHERE(lt_do(le, X, LT_ARG(0.0)), slope, scale == 1 ? DY : MUL(DY, scale)));
}

void lt_grad_selu(lt_Grad *g) {
  exponential_unit(g, 1.0507009873554804934193349852946, 1.6732632423543772848170429916717, 1);
}
void lt_grad_celu(lt_Grad *g) {
  double alpha = lt_scalar_to_double(g->arg[1].scalar);
  exponential_unit(g, 1, alpha, alpha);
}

/* ---- functions of complex numbers ------------------------------------------------------------ */

static bool is_complex(lt_Arg x) {
  return x.kind == LT_ARG_TENSOR && x.tensor && lt_dtype_is_complex(x.tensor->dtype);
}

/* The angle grows at a right angle to z: i z / |z|^2, and 0 at 0. Of real numbers it is 0. */
void lt_grad_angle(lt_Grad *g) {
  if (!is_complex(X)) {
    set_grad(g, 0, lt_grad_zeros_of(g, 0));
    return;
  }
  lt_Tensor *size = UNARY(square, UNARY(abs, X)), *zero = is_zero(X);
  lt_Scalar i = {.kind = LT_COMPLEX, .f = 0, .im = 1};
  lt_Tensor *turned = MUL(X, lt_arg_scalar(i));
  set_grad(g, 0, FILL(MUL(turned, DIV(DY, WHERE(zero, 1.0, size))), zero, 0.0));
}

/* The sign of a complex number moves at a right angle to it: (dy - Re(dy conj(s)) s) / |x|, and 0
 * at 0. Of real numbers the gradient is 0. */
void lt_grad_sgn(lt_Grad *g) {
  if (!is_complex(X)) {
    set_grad(g, 0, lt_grad_zeros_of(g, 0));
    return;
  }
  lt_Tensor *size = UNARY(abs, X), *zero = is_zero(X);
  lt_Tensor *along = UNARY(real, MUL(DY, UNARY(conj, RESULT)));
  lt_Tensor *across = SUB(DY, MUL(RESULT, along));
  set_grad(g, 0, FILL(DIV(across, WHERE(zero, 1.0, size)), zero, 0.0));
}

/* ---- functions of one argument --------------------------------------------------------------- */

void lt_grad_polygamma(lt_Grad *g) {
  double n = lt_scalar_to_double(g->arg[1].scalar);
  set_grad(g, 0, MUL(DY, BINARY(_polygamma, X, n + 1)));
}

/* 1 / (x (1 - x)), and 0 where x was clamped. Without eps, the gradient outside of [0, 1] is NaN.
 */
void lt_grad_logit(lt_Grad *g) {
  double eps = lt_scalar_to_double(g->arg[1].scalar), low = eps >= 0 ? eps : 0;
  lt_Tensor *slope = DIV(DY, MUL(X, SUB(1.0, X)));
  lt_Tensor *outside = BINARY(logical_or, BINARY(lt, X, low), BINARY(gt, X, 1 - low));
  set_grad(g, 0, FILL(slope, outside, eps >= 0 ? 0.0 : (double)NAN));
}

/* (cos(pi x) - sinc(x)) / x, and 0 at 0. */
void lt_grad_sinc(lt_Grad *g) {
  lt_Tensor *rise = SUB(UNARY(cos, MUL(X, 3.14159265358979323846)), RESULT);
  set_grad(g, 0, MUL(DY, FILL(DIV(rise, divisor(X)), is_zero(X), 0.0)));
}

/* f' = first - f / x, which has the limit 1/2 at 0. */
static void order_one(lt_Grad *g, lt_Tensor *first) {
  lt_Tensor *slope = SUB(first, DIV(RESULT, divisor(X)));
  set_grad(g, 0, MUL(DY, FILL(slope, is_zero(X), 0.5)));
}
void lt_grad_i1(lt_Grad *g) { order_one(g, UNARY(i0, X)); }
void lt_grad_bessel_j1(lt_Grad *g) { order_one(g, UNARY(special_bessel_j0, X)); }
void lt_grad_i1e(lt_Grad *g) {
  order_one(g, SUB(UNARY(special_i0e, X), MUL(UNARY(sign, X), RESULT)));
}

/* ---- functions of two arguments -------------------------------------------------------------- */

static void no_gradient(lt_Grad *g, const char *name) {
  if (!needs_grad(g, 0)) return;
  lt_fail("cannot compute the gradient of argument '%s': it has no formula", name);
  g->failed = true;
}

void lt_grad_zeta(lt_Grad *g) {
  no_gradient(g, "self");
  if (!g->failed && needs_grad(g, 1))
    set_grad(g, 1, MUL(UNARY(neg, DY), MUL(BINARY(special_zeta, ADD(X, 1.0), Y), X)));
}

/* d P(a, x) / dx = x^(a - 1) e^-x / Gamma(a). */
static void incomplete_gamma(lt_Grad *g, double sign) {
  no_gradient(g, "self");
  if (g->failed || !needs_grad(g, 1)) return;
  lt_Tensor *power = BINARY(xlogy, SUB(X, 1.0), Y);
  lt_Tensor *density = UNARY(exp, SUB(SUB(power, Y), UNARY(lgamma, X)));
  set_grad(g, 1, MUL(DY, sign == 1 ? density : UNARY(neg, density)));
}
void lt_grad_igamma(lt_Grad *g) { incomplete_gamma(g, 1); }
void lt_grad_igammac(lt_Grad *g) { incomplete_gamma(g, -1); }

/* d (x log(y + shift)) / dx is log(y + shift), and 0 where x = 0 and y + shift <= 0. */
static void slope_of_factor(lt_Grad *g, double shift) {
  if (Y.kind == LT_ARG_SCALAR) {
    double y = lt_scalar_to_double(Y.scalar) + shift;
    lt_Tensor *slope = MUL(DY, shift == 1 ? log1p(y - shift) : log(y));
    set_grad(g, 0, y <= 0 ? FILL(slope, is_zero(X), 0.0) : slope);
    return;
  }
  lt_Tensor *zero = BINARY(logical_and, is_zero(X), BINARY(le, Y, -shift));
  lt_Tensor *slope = shift == 1 ? UNARY(log1p, Y) : UNARY(log, Y);
  set_grad(g, 0, MUL(DY, FILL(slope, zero, 0.0)));
}

void lt_grad_xlogy(lt_Grad *g) {
  if (needs_grad(g, 0)) slope_of_factor(g, 0);
  if (needs_grad(g, 1)) set_grad(g, 1, MUL(DY, DIV(X, Y)));
}
void lt_grad_xlog1py(lt_Grad *g) {
  if (needs_grad(g, 0)) slope_of_factor(g, 1);
  if (needs_grad(g, 1)) set_grad(g, 1, MUL(DY, DIV(X, ADD(Y, 1.0))));
}
