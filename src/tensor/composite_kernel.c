/* composite_kernel.c: composite forms of ops that have kernels: they compute the op by core ops, on
 * devices without a kernel for it. Each calls the op's infer function, so that errors are the same
 * on every device. That of an op with an in-place variant handles c->in_place. */
#include "infer.h"

#define LT_KERNEL_NAME(op) lt_form_##op
#define LT_KERNEL_LINK     __attribute__((weak))
#include "kernel_table.def"

/* Returns beta * self. If beta is 0, returns zeros with gradient 0, even if self contains NaN. */
static lt_Tensor *scaled(const lt_Arg *self, const lt_Arg *beta) {
  lt_Scalar factor = beta->scalar;
  if (lt_scalar_is(factor, 1)) return self->tensor;
  if (!lt_scalar_is(factor, 0)) return lt_do(mul, *self, *beta);
  lt_Tensor *all = lt_do(ones_like, *self, lt_arg_dtype(LT_bool));
  return lt_do(masked_fill, *self, LT_ARG(all), LT_ARG(0));
}

/* addmm (self, mat1, mat2, beta, alpha) */
bool lt_form_addmm(lt_Call *c) {
  if (!c->info->infer(c)) return false;
  const lt_Tensor *self = lt_in(c, 0);
  const lt_Spec *s = &c->spec[0];
  if (c->in_place && !lt_shape_equal(self->ndim, self->shape, s->ndim, s->shape))
    return lt_fail("cannot store the result in self: the result has the shape %s, self has %s",
                   lt_shape_text(s->ndim, s->shape), lt_text(self));
  lt_Tensor *product = lt_do(mm, c->arg[1], c->arg[2]);
  lt_Tensor *sum = lt_do(add, LT_ARG(scaled(&c->arg[0], &c->arg[3])), LT_ARG(product), c->arg[4]);
  return lt_result_set(c, c->in_place ? lt_do_in_place(_copy, c->arg[0], LT_ARG(sum)) : sum);
}

/* mean (self, dim?, keepdim, dtype?): divides before the sum is rounded to a 16-bit dtype, in which
 * it could overflow. */
bool lt_form_mean(lt_Call *c) {
  if (!c->info->infer(c)) return false;
  const lt_Spec result = c->spec[0];
  lt_Dtype wide = lt_dtype_compute(result.dtype);
  int64_t left = 1, n = lt_in(c, 0)->numel;
  for (int i = 0; i < result.ndim; i++) left *= result.shape[i];
  double each = left ? (double)n / (double)left : 1;
  lt_Tensor *sum = lt_do(sum, c->arg[0], c->arg[1], c->arg[2], lt_arg_dtype(wide));
  lt_Tensor *quotient = lt_do(_true_divide, LT_ARG(sum), LT_ARG(each));
  return lt_result_set(c, wide == result.dtype
                              ? quotient
                              : lt_do(to, LT_ARG(quotient), LT_NIL, lt_arg_dtype(result.dtype)));
}

/* _embedding_sum (weight, input, index, bags, factors?) */
bool lt_form__embedding_sum(lt_Call *c) {
  if (!c->info->infer(c)) return false;
  const lt_Spec s = c->spec[0];
  lt_Tensor *rows = lt_do(embedding, c->arg[0], c->arg[1]);
  if (lt_in(c, 4)) rows = lt_do(mul, LT_ARG(rows), LT_ARG(lt_do(unsqueeze, c->arg[4], LT_ARG(1))));
  lt_Tensor *none = lt_do(new_zeros, c->arg[0], LT_INTS(s.shape, s.ndim));
  return lt_result_set(c, lt_do(index_add, LT_ARG(none), LT_ARG(0), c->arg[2], LT_ARG(rows)));
}

/* uniform_ (self, from, to, generator?) of complex numbers: of both parts. */
bool lt_form_uniform(lt_Call *c) {
  lt_Tensor *parts = lt_do(view_as_real, c->arg[0]);
  if (!parts || !lt_do_in_place(uniform, LT_ARG(parts), c->arg[1], c->arg[2], c->arg[3]))
    return false;
  return lt_result_set(c, lt_in(c, 0));
}

/* normal_ (self, mean, std, generator?) of complex numbers: both parts have half the variance. */
bool lt_form_normal(lt_Call *c) {
  lt_Tensor *parts = lt_do(view_as_real, c->arg[0]);
  lt_Arg std = LT_ARG(c->arg[2].f * 0.70710678118654752440);
  if (!parts || !lt_do_in_place(normal, LT_ARG(parts), LT_ARG(0.0), std, c->arg[3])) return false;
  return lt_result_set(c, lt_do_in_place(add, c->arg[0], LT_ARG(c->arg[1].f)));
}

lt_KernelFn lt_composite_form(lt_OpId op) { return kernels[op]; }
