/* gradients.c: the gradient functions of the rows of ops.def, made from their formulas, and
 * functions that several files gradients_*.c share. */
#include "gradients.h"

/* ---- from the rows --------------------------------------------------------------------------- */

#define GRAD         g->grad
#define X            g->arg[0]
#define Y            g->arg[1]
#define Z            g->arg[2]
#define ARG(i)       g->arg[i]
#define NUMBER(i)    g->arg[i]
#define RESULT       g->result[0]
#define RESULT_AT(r) g->result[r]

#define LT_GRADIENT(op, text, ...)                                                                 \
  _Static_assert(sizeof(text) > 1, #op ": its row in ops.def names no gradient");                  \
  void lt_grad_of_##op(lt_Grad *g) {                                                               \
    (void)g;                                                                                       \
    __VA_ARGS__                                                                                    \
  }
#define D(i, formula)                                                                              \
  if (needs_grad(g, i)) set_grad(g, i, formula);
#define BY(function) lt_grad_##function(g);
#define KEEP(values)
#define KEEP_FOR(i, values)
#define FIRST
#define CONJUGATES
#define ZERO
#define NONE
#include "../ops.def"

/* ---- shared ---------------------------------------------------------------------------------- */

static lt_Arg device_of(const lt_Grad *g) { return lt_arg_device(lt_tensor_device(g->grad)); }

lt_Tensor *lt_grad_zeros(const lt_Grad *g, int ndim, const int64_t *shape) {
  return lt_do(zeros, LT_INTS(shape, ndim), lt_arg_dtype(g->grad->dtype), device_of(g));
}

lt_Tensor *lt_grad_ones(const lt_Grad *g, int ndim, const int64_t *shape) {
  return lt_do(ones, LT_INTS(shape, ndim), lt_arg_dtype(g->grad->dtype), device_of(g));
}

lt_Tensor *lt_grad_zeros_of(const lt_Grad *g, int i) {
  const lt_Input *in = input(g, i);
  return lt_grad_zeros(g, in->ndim, in->shape);
}

lt_Tensor *lt_grad_scaled(lt_Arg t, lt_Arg number) {
  return lt_scalar_to_double(number.scalar) == 1 && number.scalar.im == 0 ? t.tensor
                                                                          : MUL(t, number);
}

lt_Tensor *lt_grad_conjugate(lt_Tensor *t) {
  return t && lt_dtype_is_complex(t->dtype) ? UNARY(conj, t) : t;
}

lt_Tensor *lt_grad_put(lt_Tensor *whole, lt_Tensor *part, lt_Tensor *values) {
  return lt_do_in_place(_copy, LT_ARG(part), LT_ARG(values)) ? whole : NULL;
}
