/* composite_reduce.c: statistics, extremes and comparisons, computed by reductions. */
#include "infer.h"

/* ---- max and min ----------------------------------------------------------------------------- */

/* The ops that max or min are computed by, for each form of the call. */
typedef struct Extreme {
  lt_OpId all, along, pairs;
} Extreme;

/* Converts a 1-based dim to a 0-based one. */
static bool dim_from_one(int64_t *dim) {
  if (*dim == 0)
    return lt_fail("expected a 1-based dim for argument 'dim', got 0\nhint: dims count from 1 (-1 "
                   "is the last)");
  if (*dim > 0) *dim -= LT_INDEX_BASE;
  return true;
}

/* (self): the extreme of all elements; (self, dim): values and indices along dim; (self, other):
 * elementwise. */
static bool extreme(lt_Call *c, Extreme ops) {
  lt_Tensor *found[2];
  if (!lt_given(c, 1))
    return lt_result_set(c, lt_do_(ops.all, false, LT_ARGS_(c->arg[0], LT_NIL, c->arg[2]), 0));
  if (lt_in(c, 1))
    return lt_result_set(c, lt_do_(ops.pairs, false, LT_ARGS_(c->arg[0], c->arg[1]), 0));
  int64_t dim = c->arg[1].i;
  if (!dim_from_one(&dim)) return false;
  if (!lt_do_all(ops.along, LT_ARGS_(c->arg[0], LT_ARG(dim), c->arg[2]), 2, found)) return false;
  return lt_result_set_two(c, found[0], found[1]);
}

bool lt_composite_max(lt_Call *c) {
  return extreme(c, (Extreme){LT_OP_amax, LT_OP__max, LT_OP_maximum});
}
bool lt_composite_min(lt_Call *c) {
  return extreme(c, (Extreme){LT_OP_amin, LT_OP__min, LT_OP_minimum});
}

/* argsort (self, dim, descending, stable) */
bool lt_composite_argsort(lt_Call *c) {
  return lt_result_set(c, lt_do_(LT_OP_sort, false, c->arg, c->nargs, 1));
}

/* ---- spread and length ----------------------------------------------------------------------- */

/* (self, dim?, unbiased, keepdim, correction?); a boolean in place of dim is `unbiased`. */
static lt_Tensor *variance(const lt_Call *c) {
  int64_t dims[LT_MAX_DIMS];
  lt_Arg dim = c->arg[1];
  bool unbiased = dim.kind == LT_ARG_BOOL ? dim.b : c->arg[2].b;
  if (dim.kind == LT_ARG_BOOL) dim = LT_NIL;
  if (dim.kind == LT_ARG_INTS && dim.count <= LT_MAX_DIMS) {
    for (int i = 0; i < dim.count; i++) {
      dims[i] = dim.ints[i];
      if (!dim_from_one(&dims[i])) return NULL;
    }
    dim = LT_INTS(dims, dim.count);
  }
  double correction = lt_given(c, 4) ? c->arg[4].f : unbiased;
  return lt_do(_var, c->arg[0], dim, c->arg[3], LT_ARG(correction));
}

bool lt_composite_var(lt_Call *c) { return lt_result_set(c, variance(c)); }

/* If all elements are equal, the derivative of the root is infinite and the gradient of the
 * variance is 0. Their product must be 0, not NaN, so the root's argument is kept away from 0. */
bool lt_composite_std(lt_Call *c) {
  lt_Tensor *v = variance(c);
  if (!v || !v->requires_grad) return lt_result_set(c, lt_do(sqrt, LT_ARG(v)));
  lt_Tensor *flat = lt_do(eq, LT_ARG(v), LT_ARG(0));
  lt_Tensor *root = lt_do(sqrt, LT_ARG(lt_do(masked_fill, LT_ARG(v), LT_ARG(flat), LT_ARG(1))));
  return lt_result_set(c, lt_do(masked_fill, LT_ARG(root), LT_ARG(flat), LT_ARG(0)));
}

/* ---- equality -------------------------------------------------------------------------------- */

/* Returns a bool tensor of one element as a boolean result. */
static bool set_truth(lt_Call *c, lt_Tensor *t) {
  lt_Scalar truth;
  if (!t) return false;
  if (lt_tensor_is_meta(t)) return lt_fail("cannot compare meta tensors: they have no data");
  return lt_tensor_item(t, &truth) && lt_result_set_flag(c, lt_scalar_to_int(truth) != 0);
}

/* Returns a view of at least `count` of more than twice as many elements: the first along the
 * longest dimension. */
static lt_Tensor *first_of(lt_Tensor *t, int64_t count) {
  int d = 0;
  for (int i = 1; i < t->ndim; i++) d = t->shape[i] > t->shape[d] ? i : d;
  int64_t length = 1 + t->shape[d] / (t->numel / count);
  return lt_do_slice(t, d, 0, length);
}

/* equal (self, other): on the CPU, large tensors are often found to differ in the first part. */
bool lt_composite_equal(lt_Call *c) {
  enum { PART = 4096 };
  lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1);
  if (!lt_shape_equal(a->ndim, a->shape, b->ndim, b->shape)) return lt_result_set_flag(c, false);
  if (lt_is_unobserved(c) && a->numel > 2 * PART) {
    lt_Tensor *same = lt_do(eq, LT_ARG(first_of(a, PART)), LT_ARG(first_of(b, PART)));
    if (!set_truth(c, lt_do(all, LT_ARG(same)))) return false;
    if (!c->results->flag) return true;
  }
  return set_truth(c, lt_do(all, LT_ARG(lt_do(eq, c->arg[0], c->arg[1]))));
}

/* Computes |self - other| <= atol + rtol * |other| in floats; infinities are only close to
 * themselves. */
static lt_Tensor *closeness(const lt_Call *c) {
  double rtol = c->arg[2].f, atol = c->arg[3].f;
  if (!(rtol >= 0))
    return lt_fail("expected a number of at least 0 for argument 'rtol', got %s",
                   lt_number_text(rtol)),
           NULL;
  if (!(atol >= 0))
    return lt_fail("expected a number of at least 0 for argument 'atol', got %s",
                   lt_number_text(atol)),
           NULL;
  lt_Arg self = c->arg[0], other = c->arg[1];
  lt_Tensor *near = lt_do(eq, self, other);
  bool floats = lt_dtype_category(self.tensor->dtype) >= LT_FLOATING &&
                lt_dtype_category(other.tensor->dtype) >= LT_FLOATING;
  if (c->arg[4].b && floats)
    near =
        lt_do(logical_or, LT_ARG(near),
              LT_ARG(lt_do(logical_and, LT_ARG(lt_do(isnan, self)), LT_ARG(lt_do(isnan, other)))));
  if (rtol == 0 && atol == 0) return near;
  if (lt_dtype_category(other.tensor->dtype) < LT_FLOATING)
    other = LT_ARG(lt_do(to, other, LT_NIL, lt_arg_dtype(lt_dtype_default())));
  lt_Tensor *allowed =
      lt_do(add, LT_ARG(lt_do(mul, LT_ARG(lt_do(abs, other)), LT_ARG(rtol))), LT_ARG(atol));
  lt_Tensor *apart = lt_do(abs, LT_ARG(lt_do(sub, self, other)));
  lt_Tensor *inside = lt_do(logical_and, LT_ARG(lt_do(isfinite, LT_ARG(apart))),
                            LT_ARG(lt_do(le, LT_ARG(apart), LT_ARG(allowed))));
  return lt_do(logical_or, LT_ARG(near), LT_ARG(inside));
}

bool lt_composite_isclose(lt_Call *c) { return lt_result_set(c, closeness(c)); }
bool lt_composite_allclose(lt_Call *c) { return set_truth(c, lt_do(all, LT_ARG(closeness(c)))); }
