/* gradients_binary.c: gradients of elementwise ops of two and three inputs, where ops.def has no
 * formula. Gradients have the broadcast shape; apply.c sums them to the shape of the input. */
#include "gradients.h"

#include <math.h>

#define DY g->grad

/* Returns a and b. */
static lt_Tensor *both(lt_Tensor *a, lt_Tensor *b) {
  return lt_do(logical_and, LT_ARG(a), LT_ARG(b));
}
/* Returns a or b. */
static lt_Tensor *either(lt_Tensor *a, lt_Tensor *b) {
  return lt_do(logical_or, LT_ARG(a), LT_ARG(b));
}

/* d(x^n)/dx for a number n. */
static lt_Tensor *power_slope(lt_Arg x, lt_Scalar n) {
  double e = lt_scalar_to_double(n);
  if (n.kind == LT_COMPLEX) {
    lt_Scalar less = n;
    less.f -= 1;
    return MUL(POWER(x, lt_arg_scalar(less)), lt_arg_scalar(n));
  }
  if (e == 2) return MUL(x, 2.0);
  return MUL(POWER(x, lt_scalar_float(e - 1)), e);
}

/* d(x^y)/dx = y x^(y - 1). It is 0 where y = 0, for every x; there x is replaced by 1, because 0
 * times infinity or NaN is not 0. */
static void power_base(lt_Grad *g, lt_Arg x, lt_Arg y) {
  if (y.kind == LT_ARG_SCALAR) {
    if (lt_scalar_to_double(y.scalar) != 0 || y.scalar.im != 0)
      set_grad(g, 0, MUL(DY, power_slope(x, y.scalar)));
    return;
  }
  lt_Tensor *safe = WHERE(lt_do(eq, y, LT_ARG(0.0)), 1.0, x);
  set_grad(g, 0, MUL(DY, MUL(y, POWER(safe, SUB(y, 1.0)))));
}

/* The same for complex numbers; a number x has its logarithm as a 0-d tensor. */
static void complex_power_exponent(lt_Grad *g, lt_Arg x, lt_Arg y) {
  if (x.kind == LT_ARG_SCALAR) x = LT_ARG(lt_do(full_like, y, x, lt_arg_dtype(DY->dtype)));
  lt_Tensor *real = lt_dtype_is_complex(y.tensor->dtype) ? UNARY(real, y) : y.tensor;
  lt_Tensor *flat = both(lt_do(eq, x, LT_ARG(0.0)), lt_do(ge, LT_ARG(real), LT_ARG(0.0)));
  set_grad(g, 1, MUL(DY, MUL(g->result[0], UNARY(log, WHERE(flat, 1.0, x)))));
}

/* d(x^y)/dy = x^y log x, and 0 where x = 0 and y >= 0. */
static void power_exponent(lt_Grad *g, lt_Arg x, lt_Arg y) {
  if (DY && lt_dtype_is_complex(DY->dtype)) {
    complex_power_exponent(g, x, y);
    return;
  }
  if (x.kind == LT_ARG_SCALAR) {
    double base = lt_scalar_to_double(x.scalar);
    if (base != 0) {
      set_grad(g, 1, MUL(MUL(DY, g->result[0]), log(base)));
      return;
    }
    lt_Tensor *slope = MUL(g->result[0], (double)-INFINITY);
    set_grad(g, 1, MUL(DY, FILL(slope, lt_do(ge, y, LT_ARG(0.0)), 0.0)));
    return;
  }
  lt_Tensor *flat =
      lt_do(logical_and, LT_ARG(lt_do(eq, x, LT_ARG(0.0))), LT_ARG(lt_do(ge, y, LT_ARG(0.0))));
  set_grad(g, 1, MUL(DY, MUL(g->result[0], UNARY(log, WHERE(flat, 1.0, x)))));
}

void lt_grad_pow(lt_Grad *g) {
  if (needs_grad(g, 0)) power_base(g, g->arg[0], g->arg[1]);
  if (needs_grad(g, 1)) power_exponent(g, g->arg[0], g->arg[1]);
}

/* Returns the gradient, halved where arguments 0 and i are equal. */
static lt_Tensor *shared_with(lt_Grad *g, int i) {
  return WHERE(lt_do(eq, g->arg[0], g->arg[i]), MUL(DY, 0.5), DY);
}

/* The gradient goes to the larger of arguments 0 and i. Equal ones get half of it each; if one is
 * NaN, both get it, as in PyTorch. */
static void larger(lt_Grad *g, int i) {
  lt_Arg x = g->arg[0], y = g->arg[i];
  lt_Tensor *shared = shared_with(g, i);
  if (needs_grad(g, 0)) set_grad(g, 0, FILL(shared, lt_do(lt, x, y), 0.0));
  if (needs_grad(g, i)) set_grad(g, i, FILL(shared, lt_do(gt, x, y), 0.0));
}

/* Does the same for the smaller of arguments 0 and i. */
static void smaller(lt_Grad *g, int i) {
  lt_Arg x = g->arg[0], y = g->arg[i];
  lt_Tensor *shared = shared_with(g, i);
  if (needs_grad(g, 0)) set_grad(g, 0, FILL(shared, lt_do(gt, x, y), 0.0));
  if (needs_grad(g, i)) set_grad(g, i, FILL(shared, lt_do(lt, x, y), 0.0));
}

void lt_grad_maximum(lt_Grad *g) { larger(g, 1); }
void lt_grad_minimum(lt_Grad *g) { smaller(g, 1); }

/* The gradient goes to x where `first` is true, otherwise to y; equal ones get half of it each. */
static void choose(lt_Grad *g, lt_Tensor *first) {
  lt_Tensor *shared = shared_with(g, 1), *differ = lt_do(ne, g->arg[0], g->arg[1]);
  if (needs_grad(g, 0)) set_grad(g, 0, WHERE(first, shared, 0.0));
  if (needs_grad(g, 1)) set_grad(g, 1, FILL(shared, both(first, differ), 0.0));
}

/* Returns whether an operand is NaN: for a number a number, because an op on numbers alone would
 * run on the default device. */
static lt_Arg is_nan(lt_Arg y) {
  if (y.kind == LT_ARG_TENSOR) return LT_ARG(lt_do(ne, y, y));
  return lt_arg_scalar(lt_scalar_bool(isnan(lt_scalar_to_double(y.scalar))));
}

void lt_grad_fmax(lt_Grad *g) {
  choose(g, lt_do(logical_or, LT_ARG(lt_do(ge, g->arg[0], g->arg[1])), is_nan(g->arg[1])));
}

void lt_grad_fmin(lt_Grad *g) {
  choose(g, lt_do(logical_or, LT_ARG(lt_do(le, g->arg[0], g->arg[1])), is_nan(g->arg[1])));
}

/* Returns the square of an operand as a float, because an integer square could overflow. */
static lt_Arg squared(const lt_Grad *g, lt_Arg x) {
  if (x.kind == LT_ARG_TENSOR && x.tensor && !lt_dtype_is_float(x.tensor->dtype) && DY)
    x = LT_ARG(lt_do(to, x, LT_NIL, lt_arg_dtype(DY->dtype)));
  if (x.kind == LT_ARG_TENSOR) return LT_ARG(UNARY(square, x));
  double v = lt_scalar_to_double(x.scalar);
  return lt_arg_scalar(lt_scalar_float(v * v));
}

/* The gradient at the origin is 0. */
void lt_grad_atan2(lt_Grad *g) {
  lt_Arg y = g->arg[0], x = g->arg[1];
  lt_Tensor *length = ADD(squared(g, y), squared(g, x));
  lt_Tensor *slope = DIV(DY, FILL(length, lt_do(eq, LT_ARG(length), LT_ARG(0.0)), 1.0));
  if (needs_grad(g, 0)) set_grad(g, 0, MUL(slope, x));
  if (needs_grad(g, 1)) set_grad(g, 1, UNARY(neg, MUL(slope, y)));
}

/* The gradient is 1 or -1, depending on whether the sign was changed; 0 at 0, and NaN at NaN and,
 * as in PyTorch, at infinity. The gradient of `other` is 0. */
void lt_grad_copysign(lt_Grad *g) {
  if (!needs_grad(g, 0)) return;
  lt_Tensor *zero = lt_do(eq, g->arg[0], LT_ARG(0.0));
  set_grad(g, 0, FILL(MUL(DY, DIV(g->result[0], WHERE(zero, 1.0, g->arg[0]))), zero, 0.0));
}

static bool is_number(lt_Arg a, double v) {
  return a.kind == LT_ARG_SCALAR && lt_scalar_to_double(a.scalar) == v;
}

/* For bounds that are numbers, the gradient passes between them, excluding the bounds. An infinite
 * bound does not limit. */
static void clamp_by_numbers(lt_Grad *g, bool has_min, bool has_max) {
  lt_Arg x = g->arg[0];
  lt_Tensor *inside = NULL, *below = NULL;
  if (!needs_grad(g, 0)) return;
  if (has_min) inside = lt_do(gt, x, g->arg[1]);
  if (has_max) below = lt_do(lt, x, g->arg[2]);
  if (has_min && has_max) inside = both(inside, below);
  set_grad(g, 0, has_min || has_max ? WHERE(has_min ? inside : below, DY, 0.0) : DY);
}

/* If a bound is a tensor, as in PyTorch: where x equals a bound, both get half of the gradient,
 * unless the bounds are equal. Where min exceeds max, max is the result and gets the gradient. */
static void clamp_by_tensors(lt_Grad *g) {
  lt_Arg x = g->arg[0], min = g->arg[1], max = g->arg[2];
  lt_Tensor *under = lt_do(lt, x, min), *over = lt_do(gt, x, max);
  lt_Tensor *apart = lt_do(lt, min, max), *ordered = lt_do(le, min, max);
  lt_Tensor *at_min = both(lt_do(eq, x, min), apart), *at_max = both(lt_do(eq, x, max), apart);
  lt_Tensor *half = MUL(DY, 0.5);
  if (needs_grad(g, 0))
    set_grad(g, 0, FILL(WHERE(either(at_min, at_max), half, DY), either(under, over), 0.0));
  if (needs_grad(g, 1)) set_grad(g, 1, WHERE(both(under, ordered), DY, WHERE(at_min, half, 0.0)));
  if (needs_grad(g, 2)) {
    lt_Tensor *is_max = either(both(over, ordered), lt_do(gt, min, max));
    set_grad(g, 2, WHERE(is_max, DY, WHERE(at_max, half, 0.0)));
  }
}

void lt_grad_clamp(lt_Grad *g) {
  bool has_min = !is_number(g->arg[1], -INFINITY), has_max = !is_number(g->arg[2], INFINITY);
  if (g->arg[1].kind == LT_ARG_SCALAR && g->arg[2].kind == LT_ARG_SCALAR)
    clamp_by_numbers(g, has_min, has_max);
  else if (!has_max)
    larger(g, 1);
  else if (!has_min)
    smaller(g, 2);
  else
    clamp_by_tensors(g);
}

void lt_grad_lerp(lt_Grad *g) {
  lt_Arg w = g->arg[2];
  if (needs_grad(g, 1)) set_grad(g, 1, MUL(DY, w));
  if (needs_grad(g, 2)) set_grad(g, 2, MUL(DY, SUB(g->arg[1], g->arg[0])));
  if (!needs_grad(g, 0)) return;
  if (w.kind == LT_ARG_TENSOR)
    set_grad(g, 0, MUL(DY, SUB(1.0, w)));
  else {
    lt_Scalar rest = lt_scalar_float(1 - lt_scalar_to_double(w.scalar));
    if (w.scalar.kind == LT_COMPLEX) rest.kind = LT_COMPLEX, rest.im = -w.scalar.im;
    set_grad(g, 0, MUL(DY, lt_arg_scalar(rest)));
  }
}

/* _huber_backward (grad, self, target, delta, divisor) is grad * clamp(self - target) / divisor. */
void lt_grad_huber_backward(lt_Grad *g) {
  lt_Arg grad = g->arg[0], x = g->arg[1], y = g->arg[2];
  if (needs_grad(g, 0))
    set_grad(g, 0, lt_do(_huber_backward, LT_ARG(DY), x, y, g->arg[3], g->arg[4]));
  if (!needs_grad(g, 1) && !needs_grad(g, 2)) return;
  lt_Tensor *beyond = lt_do(gt, LT_ARG(UNARY(abs, SUB(x, y))), g->arg[3]);
  lt_Tensor *slope = FILL(DIV(MUL(DY, grad), g->arg[4]), beyond, 0.0);
  if (needs_grad(g, 1)) set_grad(g, 1, slope);
  if (needs_grad(g, 2)) set_grad(g, 2, UNARY(neg, slope));
}

/* _binary_cross_entropy_backward (grad, self, target) is grad * (x - t) / m(x), where m(x) is
 * x (1 - x), or constant below 1e-12. */
void lt_grad_binary_cross_entropy_backward(lt_Grad *g) {
  lt_Arg grad = g->arg[0], x = g->arg[1], t = g->arg[2];
  if (needs_grad(g, 0)) set_grad(g, 0, lt_do(_binary_cross_entropy_backward, LT_ARG(DY), x, t));
  if (!needs_grad(g, 1) && !needs_grad(g, 2)) return;
  lt_Tensor *product = MUL(x, SUB(1.0, x));
  lt_Tensor *m = lt_do(clamp, LT_ARG(product), LT_ARG(1e-12));
  lt_Tensor *slope = DIV(MUL(DY, grad), m);
  if (needs_grad(g, 2)) set_grad(g, 2, UNARY(neg, slope));
  if (!needs_grad(g, 1)) return;
  lt_Tensor *bend = DIV(MUL(SUB(x, t), SUB(1.0, MUL(x, 2.0))), m);
  bend = FILL(bend, lt_do(lt, LT_ARG(product), LT_ARG(1e-12)), 0.0);
  set_grad(g, 1, MUL(slope, SUB(1.0, bend)));
}
