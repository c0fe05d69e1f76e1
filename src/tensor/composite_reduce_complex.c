/* composite_reduce_complex.c: reductions and scans of complex tensors that are not linear: their
 * composite forms, by ops that accept complex tensors. */
#include "infer.h"
#include "reductions.h"

#define LT_KERNEL_NAME(op) lt_complex_##op
#define LT_KERNEL_LINK     __attribute__((weak))
#include "kernel_table.def"

lt_KernelFn lt_complex_form(lt_OpId op) { return kernels[op]; }

/* Returns argument 0, converted to the dtype in argument `dtype` if that is given. */
static lt_Tensor *source(const lt_Call *c, int dtype) {
  if (dtype < 0 || !lt_given(c, dtype)) return lt_in(c, 0);
  return lt_do(to, c->arg[0], LT_NIL, c->arg[dtype]);
}

/* Returns the result of a reduction of x, whose reduced dims have size 1, with or without them. */
static bool set_reduced(lt_Call *c, const lt_Tensor *x, unsigned mask, bool keepdim, lt_Tensor *t) {
  int64_t shape[LT_MAX_DIMS];
  int ndim = 0;
  for (int d = 0; d < x->ndim; d++) {
    if (!(mask >> d & 1))
      shape[ndim++] = x->shape[d];
    else if (keepdim)
      shape[ndim++] = 1;
  }
  return lt_result_set(c, lt_do_reshape(t, ndim, shape));
}

/* Returns elements from..from + count of the last dim. */
static lt_Tensor *part(lt_Tensor *x, int64_t from, int64_t count) {
  return lt_do_slice(x, x->ndim - 1, from, count);
}

static lt_Tensor *joined(lt_Tensor *a, lt_Tensor *b, int dim) {
  if (!a || !b) return NULL;
  return lt_do(cat, LT_TENSORS(((lt_Tensor *[]){a, b}), 2), LT_ARG(dim));
}

/* prod (self, dim?, keepdim, dtype?): the reduced dims become the last dim, whose halves are
 * multiplied until one element is left. */
bool lt_complex_prod(lt_Call *c) {
  unsigned mask;
  int64_t order[LT_MAX_DIMS], shape[LT_MAX_DIMS], n = 1;
  int count = 0, kept = 0;
  lt_Tensor *x = source(c, 3);
  if (!x || !lt_reduced_dims(c, &mask)) return false;
  if (!lt_dtype_is_complex(x->dtype))
    return lt_result_set(c, lt_do(prod, LT_ARG(x), c->arg[1], c->arg[2]));
  for (int d = 0; d < x->ndim; d++)
    if (!(mask >> d & 1)) {
      order[count++] = d;
      shape[kept++] = x->shape[d];
    }
  for (int d = 0; d < x->ndim; d++)
    if (mask >> d & 1) {
      order[count++] = d;
      n *= x->shape[d];
    }
  shape[kept] = n;
  lt_Tensor *line = lt_do(permute, LT_ARG(x), LT_INTS(order, count));
  line = lt_do_reshape(line, kept + 1, shape);
  const int64_t last = kept;
  if (n == 0) /* 1, which depends on x as the graph requires */
    line = lt_do(add, LT_ARG(lt_do(sum, LT_ARG(line), LT_INTS(&last, 1), lt_arg_bool(true))),
                 LT_ARG(1));
  while (line && line->shape[kept] > 1) {
    int64_t size = line->shape[kept], half = size / 2;
    lt_Tensor *product = lt_do(mul, LT_ARG(part(line, 0, half)), LT_ARG(part(line, half, half)));
    line = size % 2 ? joined(product, part(line, 2 * half, 1), kept) : product;
  }
  return set_reduced(c, x, mask, c->arg[2].b, line);
}

/* cumprod (self, dim, dtype?): after step k, each element is the product of up to 2^k elements. */
bool lt_complex_cumprod(lt_Call *c) {
  lt_Tensor *x = source(c, 2);
  int dim = x ? lt_dim(c->arg[1].i, x->ndim) : -1;
  if (dim < 0) return false;
  if (!lt_dtype_is_complex(x->dtype)) return lt_result_set(c, lt_do(cumprod, LT_ARG(x), c->arg[1]));
  if (x->ndim == 0) return lt_result_set(c, lt_do(clone, LT_ARG(x)));
  int64_t n = x->shape[dim];
  if (n < 2) return lt_result_set(c, lt_do(clone, LT_ARG(x)));
  for (int64_t step = 1; step < n && x; step *= 2) {
    lt_Tensor *later = lt_do(mul, LT_ARG(lt_do_slice(x, dim, step, n - step)),
                             LT_ARG(lt_do_slice(x, dim, 0, n - step)));
    x = joined(lt_do_slice(x, dim, 0, step), later, dim);
  }
  return lt_result_set(c, x);
}

/* _var (self, dim?, keepdim, correction): the sum of the variances of both parts. */
bool lt_complex__var(lt_Call *c) {
  lt_Tensor *re = lt_do(_var, LT_ARG(lt_do(real, c->arg[0])), c->arg[1], c->arg[2], c->arg[3]);
  lt_Tensor *im = lt_do(_var, LT_ARG(lt_do(imag, c->arg[0])), c->arg[1], c->arg[2], c->arg[3]);
  return lt_result_set(c, lt_do(add, LT_ARG(re), LT_ARG(im)));
}

/* _norm (self, dim?, keepdim, p): of the moduli. */
bool lt_complex__norm(lt_Call *c) {
  return lt_result_set(
      c, lt_do(_norm, LT_ARG(lt_do(abs, c->arg[0])), c->arg[1], c->arg[2], c->arg[3]));
}

/* logsumexp (self, dim, keepdim): e^x is divided by e to the largest real part. */
bool lt_complex_logsumexp(lt_Call *c) {
  unsigned mask;
  lt_Tensor *x = lt_in(c, 0);
  if (!lt_reduced_dims(c, &mask)) return false;
  lt_Arg yes = lt_arg_bool(true);
  lt_Tensor *top = lt_do(real, LT_ARG(x));
  if (x->numel == 0) {
    top = lt_do(sum, LT_ARG(top), c->arg[1], yes);
  } else {
    top = lt_do(detach, LT_ARG(lt_do(amax, LT_ARG(top), c->arg[1], yes)));
    lt_Tensor *finite = lt_do(isfinite, LT_ARG(top));
    top = lt_do(_where, LT_ARG(finite), LT_ARG(top), LT_ARG(0.0));
  }
  lt_Tensor *terms = lt_do(exp, LT_ARG(lt_do(sub, LT_ARG(x), LT_ARG(top))));
  lt_Tensor *sum = lt_do(sum, LT_ARG(terms), c->arg[1], yes);
  lt_Tensor *result = lt_do(add, LT_ARG(lt_do(log, LT_ARG(sum))), LT_ARG(top));
  return set_reduced(c, x, mask, c->arg[2].b, result);
}
