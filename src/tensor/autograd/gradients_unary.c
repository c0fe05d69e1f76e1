/* gradients_unary.c: gradients of elementwise ops of one input, and of their backward ops
 * (_gelu_erf_backward, ...), where ops.def has no formula. */
#include "gradients.h"

#define DY           g->grad
#define INV_SQRT_2PI 0.39894228040143267794
#define SQRT_2_PI    0.79788456080286535588 /* sqrt(2 / pi) */

/* The exponential is computed of min(x, 0): an overflow where the other side is chosen would make
 * gradients of gradients NaN. */
void lt_grad_elu(lt_Grad *g) {
  lt_Arg x = g->arg[0];
  if (!needs_grad(g, 0)) return;
  lt_Tensor *negative = lt_do(_clamp, x, LT_ARG((double)-INFINITY), LT_ARG(0.0));
  lt_Tensor *slope = MUL(MUL(DY, g->arg[1]), UNARY(exp, negative));
  set_grad(g, 0, WHERE(lt_do(le, x, LT_ARG(0.0)), slope, DY));
}

/* ---- gradients of gradients: argument 0 is the gradient of the first backward, 1 is x -------- */

#define FIRST_DY g->arg[0] /* the gradient that the first backward was given */
#define V        g->arg[1] /* the value, x */

/* Defines the gradient of an op that is linear in the gradient: op(g, v) = g * s(v), with `slope`
 * s'(v). */
#define SECOND_GRADIENT(name, op, slope)                                                           \
  void lt_grad_##name(lt_Grad *g) {                                                                \
    if (needs_grad(g, 0)) set_grad(g, 0, lt_do(op, LT_ARG(DY), V));                                \
    if (needs_grad(g, 1)) set_grad(g, 1, MUL(MUL(DY, FIRST_DY), slope));                           \
  }

/* Returns gelu'' = phi(x) (2 - x^2). */
static lt_Tensor *gelu_erf_curve(lt_Arg x) {
  lt_Tensor *xx = UNARY(square, x);
  lt_Tensor *phi = MUL(UNARY(exp, MUL(xx, -0.5)), INV_SQRT_2PI);
  return MUL(phi, SUB(2.0, xx));
}

/* f = x/2 (1 + t), t = tanh(u), u = k (x + c x^3): f'' = (1 - t^2) (u' + x u''/2 - x t u'^2) */
static lt_Tensor *gelu_tanh_curve(lt_Arg x) {
  const double k = SQRT_2_PI, c = 0.044715;
  lt_Tensor *xx = UNARY(square, x);
  lt_Tensor *t = UNARY(tanh, MUL(MUL(x, ADD(MUL(xx, c), 1.0)), k));
  lt_Tensor *u1 = MUL(ADD(MUL(xx, 3 * c), 1.0), k);
  lt_Tensor *half_xu2 = MUL(xx, 3 * k * c);
  lt_Tensor *inner = SUB(ADD(u1, half_xu2), MUL(MUL(x, t), UNARY(square, u1)));
  return MUL(SUB(1.0, UNARY(square, t)), inner);
}

/* silu'' = s (1 - s) (2 + x (1 - 2 s)) */
static lt_Tensor *silu_curve(lt_Arg x) {
  lt_Tensor *s = UNARY(sigmoid, x);
  return MUL(MUL(s, SUB(1.0, s)), ADD(MUL(x, SUB(1.0, MUL(s, 2.0))), 2.0));
}

SECOND_GRADIENT(gelu_erf_backward, _gelu_erf_backward, gelu_erf_curve(V))
SECOND_GRADIENT(gelu_tanh_backward, _gelu_tanh_backward, gelu_tanh_curve(V))
SECOND_GRADIENT(silu_backward, _silu_backward, silu_curve(V))
