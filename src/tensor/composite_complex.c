/* composite_complex.c: complex tensors: creating them from real ones, their parts, and ops that are
 * computed on the parts.
 *
 * The comment of a composite is its op's signature: the parameters' numbers are the indices in
 * c->arg. */
#include "infer.h"
#include "reductions.h"

/* real (self): a view; self when it is real */
bool lt_composite_real(lt_Call *c) {
  if (!lt_dtype_is_complex(lt_in(c, 0)->dtype)) return lt_result_set(c, lt_in(c, 0));
  return lt_result_set(
      c, lt_do(select, LT_ARG(lt_do(view_as_real, c->arg[0])), LT_ARG(-1), LT_ARG(0)));
}

/* imag (self): a view */
bool lt_composite_imag(lt_Call *c) {
  if (!lt_check_complex(c, 0)) return false;
  return lt_result_set(
      c, lt_do(select, LT_ARG(lt_do(view_as_real, c->arg[0])), LT_ARG(-1), LT_ARG(1)));
}

/* complex (real, imag): operands that are broadcast */
bool lt_composite_complex(lt_Call *c) {
  lt_Dtype dtype = lt_result_type(c->arg, 2);
  if (lt_dtype_is_complex(dtype))
    return lt_fail("expected real tensors or numbers for arguments '%s' and '%s', got \"%s\"",
                   lt_arg_name(c, 0), lt_arg_name(c, 1), lt_dtype_name(dtype));
  int ndim = 0;
  int64_t shape[LT_MAX_DIMS];
  for (int i = 0; i < 2; i++) {
    const lt_Tensor *t = lt_in(c, i);
    if (t && !lt_shape_broadcast(&ndim, shape, t->ndim, t->shape))
      return lt_fail("cannot broadcast the shapes %s and %s together", lt_text(lt_in(c, 0)),
                     lt_text(lt_in(c, 1)));
  }
  lt_Tensor *part[2];
  dtype = lt_dtype_real(lt_dtype_complex(dtype));
  for (int i = 0; i < 2; i++) {
    part[i] = lt_in(c, i);
    if (part[i])
      part[i] = lt_do(expand, LT_ARG(lt_do(to, LT_ARG(part[i]), LT_NIL, lt_arg_dtype(dtype))),
                      LT_INTS(shape, ndim));
    else
      part[i] =
          lt_do(full, LT_INTS(shape, ndim), c->arg[i], lt_arg_dtype(dtype), LT_ARG(c->device));
    if (!part[i]) return false;
  }
  return lt_result_set(
      c, lt_do(view_as_complex, LT_ARG(lt_do(stack, LT_TENSORS(part, 2), LT_ARG(-1)))));
}

/* polar (abs, angle) */
bool lt_composite_polar(lt_Call *c) {
  lt_Arg abs = c->arg[0], angle = c->arg[1];
  lt_Tensor *real = lt_do(mul, abs, LT_ARG(lt_do(cos, angle)));
  lt_Tensor *imag = lt_do(mul, abs, LT_ARG(lt_do(sin, angle)));
  return lt_result_set(c, lt_do(complex, LT_ARG(real), LT_ARG(imag)));
}

/* ---- ops by parts ---------------------------------------------------------------------------- */

/* Returns true when argument i is a tensor of values, not an index tensor. */
static bool is_value(const lt_Call *c, int i) {
  return c->arg[i].kind == LT_ARG_TENSOR && c->signature->param[i].type == LT_PARAM_TENSOR;
}

/* Checks the complex arguments of an op by parts: all tensors have one dtype; indices and numbers
 * are real. `args` is a copy of the call's arguments, of which the first is converted to the
 * argument `dtype` if that is given. */
static bool check_parts(const lt_Call *c, lt_Arg *args) {
  const lt_Tensor *t;
  for (int i = 0; i < c->nargs; i++) {
    if (is_value(c, i) && !lt_check_same_dtype(c, 0, i)) return false;
    if ((args[i].kind == LT_ARG_TENSOR || args[i].kind == LT_ARG_TENSORS) && !is_value(c, i) &&
        lt_arg_is_complex(&args[i], &t))
      return lt_fail("expected a real tensor for argument '%s', got \"%s\"", lt_arg_name(c, i),
                     lt_dtype_name(t->dtype));
    if (args[i].kind == LT_ARG_SCALAR && !lt_check_real_number(c, i)) return false;
  }
  int dtype = c->signature->dtype_param;
  if (dtype < 0 || !lt_given(c, dtype)) return true;
  args[0] = LT_ARG(lt_do(to, args[0], LT_NIL, args[dtype]));
  if (lt_dtype_is_complex(args[dtype].dtype)) args[dtype] = LT_NIL;
  return args[0].tensor != NULL;
}

/* Replaces the factors of a BILINEAR op by real tensors with the parts in the first dimension: each
 * part is used twice, and kernels would copy one that is not dense. */
static void separate_factors(const lt_Call *c, lt_Arg *args) {
  for (int i = 0; i < 2; i++) {
    if (!is_value(c, i)) continue;
    lt_Tensor *parts = lt_do(movedim, LT_ARG(lt_do(view_as_real, args[i])), LT_ARG(-1), LT_ARG(0));
    args[i] = LT_ARG(lt_do(contiguous, LT_ARG(parts)));
  }
}

/* Returns a part (0 or 1) of a complex tensor, or of one that separate_factors has separated. */
static lt_Tensor *part_of(lt_Arg t, int part) {
  if (t.tensor && !lt_dtype_is_complex(t.tensor->dtype))
    return lt_do(select, t, LT_ARG(0), LT_ARG(part));
  return part ? lt_do(imag, t) : lt_do(real, t);
}

/* Runs the op on one part (0 or 1) of each of the tensors; of a BILINEAR op `second` is the part of
 * the second tensor. Returns NULL on failure. */
static lt_Tensor *of_parts(const lt_Call *c, const lt_Arg *args, int part, int second) {
  lt_Arg own[LT_MAX_ARGS];
  for (int i = 0; i < c->nargs; i++) {
    own[i] = args[i];
    if (!is_value(c, i)) continue;
    own[i] = LT_ARG(part_of(args[i], i == 1 ? second : part));
  }
  return lt_do_(c->op, false, own, c->nargs, 0);
}

/* Reduces both parts in one call: the parts become a last dimension, which is not reduced. Returns
 * NULL on failure. */
static lt_Tensor *reduced(const lt_Call *c, const lt_Arg *args, unsigned mask) {
  lt_Arg own[LT_MAX_ARGS];
  int64_t dims[LT_MAX_DIMS];
  int n = 0;
  memcpy(own, args, sizeof *own * (size_t)c->nargs);
  for (int d = 0; d < args[0].tensor->ndim; d++)
    if (mask >> d & 1) dims[n++] = d;
  own[0] = LT_ARG(lt_do(view_as_real, args[0]));
  own[1] = LT_INTS(dims, n);
  return lt_do(view_as_complex, LT_ARG(lt_do_(c->op, false, own, c->nargs, 0)));
}

/* The argument dtype is real: self is converted to it first. */
bool lt_form_by_dtype(lt_Call *c) {
  lt_Arg args[LT_MAX_ARGS];
  memcpy(args, c->arg, sizeof *args * (size_t)c->nargs);
  args[0] = LT_ARG(lt_do(to, args[0], LT_NIL, args[c->signature->dtype_param]));
  return lt_result_set(c, args[0].tensor ? lt_do_(c->op, c->in_place, args, c->nargs, 0) : NULL);
}

/* A BILINEAR op is computed by (x + iy)(u + iv) = xu - yv + i(xv + yu). An in-place op writes self
 * at the end, so that a failure changes nothing. */
bool lt_form_by_parts(lt_Call *c) {
  lt_Arg args[LT_MAX_ARGS];
  memcpy(args, c->arg, sizeof *args * (size_t)c->nargs);
  const unsigned product = LT_TRAIT_BILINEAR | LT_TRAIT_COMPLEX_CPU;
  if ((c->info->traits & product) == product && !c->info->infer(c)) return false; /* as the CPU */
  if (!check_parts(c, args)) return false;
  if (!lt_dtype_is_complex(args[0].tensor->dtype)) /* the argument dtype is bool */
    return lt_result_set(c, lt_do_(c->op, false, args, c->nargs, 0));
  int ndim = args[0].tensor->ndim;
  if (c->info->kind == LT_KIND_REDUCE && ndim > 0 && ndim < LT_MAX_DIMS) {
    unsigned mask;
    return lt_reduced_dims(c, &mask) && lt_result_set(c, reduced(c, args, mask));
  }
  lt_Tensor *re, *im;
  if (c->info->traits & LT_TRAIT_BILINEAR) {
    separate_factors(c, args);
    re = lt_do(sub, LT_ARG(of_parts(c, args, 0, 0)), LT_ARG(of_parts(c, args, 1, 1)));
    im = lt_do(add, LT_ARG(of_parts(c, args, 0, 1)), LT_ARG(of_parts(c, args, 1, 0)));
  } else {
    re = of_parts(c, args, 0, 0);
    im = of_parts(c, args, 1, 1);
  }
  lt_Tensor *result = lt_do(complex, LT_ARG(re), LT_ARG(im));
  if (!c->in_place) return lt_result_set(c, result);
  bool ok = lt_do_in_place(_copy, c->arg[0], LT_ARG(result)) != NULL;
  return lt_result_set(c, ok ? lt_in(c, 0) : NULL);
}
