/* composite_complex.c: complex tensors from real ones, and their parts. */
#include "infer.h"

/* real (self): a view; self when it is real */
bool lt_composite_real(lt_Call *c) {
  if (!lt_dtype_is_complex(lt_in(c, 0)->dtype)) return lt_give(c, lt_in(c, 0));
  return lt_give(c, lt_do(select, LT_ARG(lt_do(view_as_real, c->arg[0])), LT_ARG(-1), LT_ARG(0)));
}

/* imag (self): a view */
bool lt_composite_imag(lt_Call *c) {
  if (!lt_check_complex(c, 0)) return false;
  return lt_give(c, lt_do(select, LT_ARG(lt_do(view_as_real, c->arg[0])), LT_ARG(-1), LT_ARG(1)));
}

/* Writes an operand into one part (0 or 1) of z; NULL on failure. */
static lt_Tensor *put_part(lt_Tensor *z, int part, lt_Arg value) {
  lt_Tensor *to = lt_do(select, LT_ARG(lt_do(view_as_real, LT_ARG(z))), LT_ARG(-1), LT_ARG(part));
  return value.kind == LT_ARG_TENSOR ? lt_do_in_place(_copy, LT_ARG(to), value)
                                     : lt_do_in_place(fill, LT_ARG(to), value);
}

/* complex (real, imag): operands that are broadcast */
bool lt_composite_complex(lt_Call *c) {
  lt_Dtype dtype = lt_result_type(c->arg, 2);
  if (lt_dtype_is_complex(dtype))
    return lt_fail("expected real tensors or numbers for arguments '%s' and '%s', got %s",
                   lt_arg_name(c, 0), lt_arg_name(c, 1), lt_dtype_name(dtype));
  if (!lt_autograd_check_complex(c)) return false;
  int ndim = 0;
  int64_t shape[LT_MAX_DIMS];
  for (int i = 0; i < 2; i++) {
    const lt_Tensor *t = lt_in(c, i);
    if (t && !lt_shape_broadcast(&ndim, shape, t->ndim, t->shape))
      return lt_fail("the shapes %s and %s cannot be broadcast together", lt_text(lt_in(c, 0)),
                     lt_text(lt_in(c, 1)));
  }
  lt_Tensor *z =
      lt_do(empty, LT_INTS(shape, ndim), lt_arg_dtype(lt_dtype_complex(dtype)), LT_ARG(c->device));
  bool ok = z && put_part(z, 0, c->arg[0]) && put_part(z, 1, c->arg[1]);
  return lt_give(c, ok ? z : NULL);
}

/* polar (abs, angle) */
bool lt_composite_polar(lt_Call *c) {
  lt_Arg abs = c->arg[0], angle = c->arg[1];
  lt_Tensor *real = lt_do(mul, abs, LT_ARG(lt_do(cos, angle)));
  lt_Tensor *imag = lt_do(mul, abs, LT_ARG(lt_do(sin, angle)));
  return lt_give(c, lt_do(complex, LT_ARG(real), LT_ARG(imag)));
}
