/* gradients_unary.c: gradients of elementwise ops of one input, and of their one-pass gradients
 * (_tanh_backward ...). x is the input, y the result, g the gradient of the result. */
#include "gradients.h"

#define X  g->arg[0]
#define Y  g->result[0]
#define DY g->grad
#define GIVE(name, formula)                                                                        \
  void lt_grad_##name(lt_Grad *g) {                                                                \
    if (wants(g, 0)) give(g, 0, formula);                                                          \
  }

#define LN2          0.69314718055994530942
#define LN10         2.30258509299404568402
#define TWO_SQRTPI   1.12837916709551257390 /* 2 / sqrt(pi) */
#define INV_SQRT_2PI 0.39894228040143267794
#define SQRT_2_PI    0.79788456080286535588 /* sqrt(2 / pi) */

GIVE(same, DY)
GIVE(neg, UNARY(neg, DY))
GIVE(abs, MUL(DY, UNARY(sign, X)))
GIVE(square, MUL(MUL(DY, X), 2.0))
GIVE(relu, lt_do(_relu_backward, A(DY), A(Y)))
GIVE(exp, MUL(DY, Y))
GIVE(exp2, MUL(MUL(DY, Y), LN2))
GIVE(expm1, MUL(DY, ADD(Y, 1.0)))
GIVE(log, DIV(DY, X))
GIVE(log2, DIV(DY, MUL(X, LN2)))
GIVE(log10, DIV(DY, MUL(X, LN10)))
GIVE(log1p, DIV(DY, ADD(X, 1.0)))
GIVE(sqrt, DIV(DY, MUL(Y, 2.0)))
GIVE(rsqrt, MUL(MUL(DY, POWER(Y, 3.0)), -0.5))
GIVE(reciprocal, UNARY(neg, MUL(DY, UNARY(square, Y))))
GIVE(sin, MUL(DY, UNARY(cos, X)))
GIVE(cos, UNARY(neg, MUL(DY, UNARY(sin, X))))
GIVE(tan, MUL(DY, ADD(UNARY(square, Y), 1.0)))
GIVE(asin, MUL(DY, UNARY(rsqrt, SUB(1.0, UNARY(square, X)))))
GIVE(acos, UNARY(neg, MUL(DY, UNARY(rsqrt, SUB(1.0, UNARY(square, X))))))
GIVE(atan, DIV(DY, ADD(UNARY(square, X), 1.0)))
GIVE(sinh, MUL(DY, UNARY(cosh, X)))
GIVE(cosh, MUL(DY, UNARY(sinh, X)))
GIVE(tanh, lt_do(_tanh_backward, A(DY), A(Y)))
GIVE(asinh, MUL(DY, UNARY(rsqrt, ADD(UNARY(square, X), 1.0))))
GIVE(acosh, MUL(DY, UNARY(rsqrt, SUB(UNARY(square, X), 1.0))))
GIVE(atanh, DIV(DY, SUB(1.0, UNARY(square, X))))
GIVE(erf, MUL(DY, MUL(UNARY(exp, UNARY(neg, UNARY(square, X))), TWO_SQRTPI)))
GIVE(erfc, MUL(DY, MUL(UNARY(exp, UNARY(neg, UNARY(square, X))), -TWO_SQRTPI)))
GIVE(sigmoid, lt_do(_sigmoid_backward, A(DY), A(Y)))
GIVE(logsigmoid, MUL(DY, UNARY(sigmoid, UNARY(neg, X))))
GIVE(silu, lt_do(_silu_backward, A(DY), X))
GIVE(gelu_erf, lt_do(_gelu_erf_backward, A(DY), X))
GIVE(gelu_tanh, lt_do(_gelu_tanh_backward, A(DY), X))
GIVE(nan_to_num, FILL(DY, UNARY(logical_not, UNARY(isfinite, X)), 0.0))

/* Past the threshold softplus is the identity. */
GIVE(softplus, WHERE(lt_do(gt, A(MUL(X, g->arg[1])), g->arg[2]), DY,
                     MUL(DY, UNARY(sigmoid, MUL(X, g->arg[1])))))
GIVE(leaky_relu, WHERE(lt_do(gt, X, A(0.0)), DY, MUL(DY, g->arg[1])))
/* exp is taken of min(x, 0): its overflow at the side not chosen would spoil gradients of
 * gradients. */
GIVE(elu,
     WHERE(lt_do(le, X, A(0.0)),
           MUL(MUL(DY, g->arg[1]), UNARY(exp, lt_do(_clamp, X, A((double)-INFINITY), A(0.0)))), DY))

/* ---- gradients of gradients: argument 0 is the gradient that came in, 1 is y or x ------------ */

#define FIRST_DY g->arg[0] /* the gradient that the first backward was given */
#define V        g->arg[1] /* the value: y of tanh and sigmoid, x of the others */

/* Linear in the gradient: op(g, v) = g * s(v). `slope` is s'(v). */
#define GIVE_TWICE(name, op, slope)                                                                \
  void lt_grad_##name(lt_Grad *g) {                                                                \
    if (wants(g, 0)) give(g, 0, lt_do(op, A(DY), V));                                              \
    if (wants(g, 1)) give(g, 1, MUL(MUL(DY, FIRST_DY), slope));                                    \
  }

void lt_grad_relu_backward(lt_Grad *g) {
  if (wants(g, 0)) give(g, 0, lt_do(_relu_backward, A(DY), V));
}

GIVE_TWICE(tanh_backward, _tanh_backward, MUL(V, -2.0))
GIVE_TWICE(sigmoid_backward, _sigmoid_backward, SUB(1.0, MUL(V, 2.0)))

/* gelu'' = phi(x) (2 - x^2) */
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

GIVE_TWICE(gelu_erf_backward, _gelu_erf_backward, gelu_erf_curve(V))
GIVE_TWICE(gelu_tanh_backward, _gelu_tanh_backward, gelu_tanh_curve(V))
GIVE_TWICE(silu_backward, _silu_backward, silu_curve(V))
