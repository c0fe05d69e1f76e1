/* gradients.h: the functions and macros that gradient functions are written in.
 *
 * A gradient function gets g->grad, the gradient of the op's result, and stores the gradient of
 * each argument that needs one by set_grad. It is written in ops, so it runs on every device, and
 * can be recorded for gradients of gradients: for that it must compute from the saved arguments and
 * results alone. A gradient may have the broadcast shape and another dtype: apply.c sums and casts
 * it. An argument without a set_grad has the gradient zero. A NULL gradient is a failure, with the
 * error in the slot.
 *
 * gradients.c makes the function of an op from its row of ops.def. Where the row says BY(function),
 * that function is in one of the files gradients_*.c. */
#ifndef LT_GRADIENTS_H
#define LT_GRADIENTS_H

#include "autograd.h"
#include "../opids.h"

#include <math.h>

/* The functions that rows of ops.def name. */
#define LT_GRADIENT(op, text, ...) __VA_ARGS__
#define D(i, formula)
#define BY(function) void lt_grad_##function(lt_Grad *g);
#define KEEP(values)
#define KEEP_FOR(i, values)
#define FIRST
#define CONJUGATES
#define ZERO
#define NONE
#include "../ops.def"
#undef D
#undef BY
#undef KEEP
#undef KEEP_FOR
#undef FIRST
#undef CONJUGATES
#undef ZERO
#undef NONE

/* Returns true when the gradient of argument i (of entry k of a list) is required. */
static inline bool needs_grad(const lt_Grad *g, int i) {
  return g->node->slot[i] >= 0 && g->want[g->node->slot[i]];
}
static inline bool needs_grad_of(const lt_Grad *g, int i, int k) {
  return g->want[g->node->slot[i] + k];
}

/* Stores the gradient of argument i (of entry k of a list). NULL makes the backward fail. */
static inline void set_grad_of(lt_Grad *g, int i, int k, lt_Tensor *t) {
  g->in[g->node->slot[i] + k] = t;
  if (!t) g->failed = true;
}
static inline void set_grad(lt_Grad *g, int i, lt_Tensor *t) { set_grad_of(g, i, 0, t); }

/* Returns shape, dtype and device of argument i, which are known even if it was not saved. */
static inline const lt_Input *input(const lt_Grad *g, int i) {
  return &g->node->input[g->node->slot[i]];
}

#define ADD(a, b)      lt_do(add, LT_ARG(a), LT_ARG(b))
#define SUB(a, b)      lt_do(sub, LT_ARG(a), LT_ARG(b))
#define MUL(a, b)      lt_do(mul, LT_ARG(a), LT_ARG(b))
#define DIV(a, b)      lt_do(_true_divide, LT_ARG(a), LT_ARG(b))
#define POWER(a, b)    lt_do(pow, LT_ARG(a), LT_ARG(b))
#define FILL(a, m, v)  lt_do(masked_fill, LT_ARG(a), LT_ARG(m), LT_ARG(v))
#define WHERE(c, a, b) lt_do(_where, LT_ARG(c), LT_ARG(a), LT_ARG(b))
#define SCALED(a, n)   lt_grad_scaled(LT_ARG(a), n)
#define YES            lt_arg_bool(true)
#define NO             lt_arg_bool(false)
/* A result of a reduction (or its gradient) in a shape that broadcasts against argument 0. */
#define BACK(t) lt_grad_back(g, t)
/* The complex conjugate; t itself when it is real. */
#define CONJUGATE(t) lt_grad_conjugate(t)
/* An op of one to five arguments. */
#define UNARY(op, a)               lt_do(op, LT_ARG(a))
#define BINARY(op, a, b)           lt_do(op, LT_ARG(a), LT_ARG(b))
#define TERNARY(op, a, b, c)       lt_do(op, LT_ARG(a), LT_ARG(b), LT_ARG(c))
#define QUATERNARY(op, a, b, c, d) lt_do(op, LT_ARG(a), LT_ARG(b), LT_ARG(c), LT_ARG(d))
#define QUINARY(op, a, b, c, d, e) lt_do(op, LT_ARG(a), LT_ARG(b), LT_ARG(c), LT_ARG(d), LT_ARG(e))

/* All of these return tensors that the open scope owns, NULL on failure. */

/* Returns zeros (ones) of a shape, with the gradient's dtype and device. */
lt_Tensor *lt_grad_zeros(const lt_Grad *g, int ndim, const int64_t *shape);
lt_Tensor *lt_grad_ones(const lt_Grad *g, int ndim, const int64_t *shape);
/* Returns zeros of argument i's shape. */
lt_Tensor *lt_grad_zeros_of(const lt_Grad *g, int i);
/* Returns t times a number; t itself when the number is 1, as it usually is. */
lt_Tensor *lt_grad_scaled(lt_Arg t, lt_Arg number);
/* Returns the complex conjugate of t; t itself when it is real. */
lt_Tensor *lt_grad_conjugate(lt_Tensor *t);
/* Returns t, of the shape of a reduction's result, with the reduced dims as sizes of 1. */
lt_Tensor *lt_grad_back(const lt_Grad *g, lt_Tensor *t);
/* Writes values into `part`, a view of `whole`, and returns `whole`. */
lt_Tensor *lt_grad_put(lt_Tensor *whole, lt_Tensor *part, lt_Tensor *values);

#endif
