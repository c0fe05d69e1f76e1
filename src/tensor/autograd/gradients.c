/* gradients.c: the table of gradients, and what several families of gradient functions share. */
#include "gradients.h"

#define GRADIENT(op, keep, function) [LT_OP_##op] = {LT_ROW_GRADIENT, keep, lt_grad_##function},
#define FIRST(op, keep, function)    [LT_OP_##op] = {LT_ROW_FIRST, keep, lt_grad_##function},
#define ZERO(op)                     [LT_OP_##op] = {LT_ROW_ZERO, 0, NULL},
#define NONE(op)                     [LT_OP_##op] = {LT_ROW_NONE, 0, NULL},
const lt_GradientRow lt_gradients[LT_OP_COUNT] = {
#include "gradients.def"
};

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

lt_Tensor *lt_grad_put(lt_Tensor *whole, lt_Tensor *part, lt_Tensor *values) {
  return lt_do_in_place(_copy, A(part), A(values)) ? whole : NULL;
}
