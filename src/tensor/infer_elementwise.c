/* infer_elementwise.c: the dtype and shape of an elementwise op's result, by the rule of its row,
 * and the complex arguments of any op. */
#include "infer.h"

#include <math.h>

/* Checks that argument i, a condition, is a bool tensor. */
static bool check_bool(const lt_Call *c, int i) {
  const lt_Tensor *t = c->arg[i].tensor;
  if (t->dtype == LT_bool) return true;
  return lt_fail("expected dtype \"bool\" for argument '%s', got \"%s\"\nhint: %s:ne(0)",
                 c->signature->param[i].name, lt_dtype_name(t->dtype), c->signature->param[i].name);
}

bool lt_arg_is_complex(const lt_Arg *a, const lt_Tensor **found) {
  if (a->kind == LT_ARG_SCALAR) return a->scalar.kind == LT_COMPLEX;
  if (a->kind == LT_ARG_DTYPE) return lt_dtype_is_complex(a->dtype);
  for (int k = 0; a->kind == LT_ARG_TENSORS && k < a->count; k++)
    if (a->tensors[k] && lt_dtype_is_complex(a->tensors[k]->dtype))
      return *found = a->tensors[k], true;
  if (a->kind != LT_ARG_TENSOR || !lt_dtype_is_complex(a->tensor->dtype)) return false;
  return *found = a->tensor, true;
}

bool lt_has_complex_arg(const lt_Call *c) {
  const lt_Tensor *t;
  for (int i = 0; i < c->nargs; i++)
    if (lt_arg_is_complex(&c->arg[i], &t)) return true;
  return false;
}

bool lt_refuse_complex(const lt_Call *c) {
  const lt_Tensor *t = NULL;
  int i = 0;
  while (!lt_arg_is_complex(&c->arg[i], &t) && i < c->nargs - 1) i++;
  const char *name = c->signature->param[i].name;
  if (c->arg[i].kind == LT_ARG_SCALAR)
    return lt_fail("expected a real number for argument '%s', got %s", name,
                   lt_scalar_text(c->arg[i].scalar));
  if (c->arg[i].kind == LT_ARG_DTYPE)
    return lt_fail("expected a real dtype for argument '%s', got \"%s\"", name,
                   lt_dtype_name(c->arg[i].dtype));
  return lt_fail(
      "expected a real tensor for argument '%s', got \"%s\"\nhint: %s.real, %s.imag or %s:abs()",
      name, lt_dtype_name(t->dtype), name, name, name);
}

/* Returns the type in which integers are compared with arguments first .. last - 1: int64 in place
 * of int32 if one of them may be beyond int32. */
static lt_Dtype comparison_compute(const lt_Call *c, lt_Dtype compute, int first, int last) {
  if (compute != LT_int32) return compute;
  for (int i = first; i < last; i++) {
    const lt_Arg *a = &c->arg[i];
    if (a->kind == LT_ARG_TENSOR && a->tensor->dtype == LT_int64) return LT_int64;
    if (a->kind != LT_ARG_SCALAR) continue;
    int64_t v = lt_scalar_to_int(a->scalar);
    if (v < INT32_MIN || v > INT32_MAX) return LT_int64;
  }
  return compute;
}

/* Rounds the number with which integers are compared down: they are above both or neither. */
static void floor_limit(lt_Arg *a) {
  if (a->kind != LT_ARG_SCALAR || a->scalar.kind != LT_FLOATING) return;
  double v = floor(a->scalar.f);
  if (v >= -0x1p63 && v < 0x1p63) a->scalar = lt_scalar_int((int64_t)v);
}

/* Computes the dtype of the result, and c->compute, by the rule of the op. Refuses dtypes that the
 * rule excludes. */
static bool elementwise_dtype(lt_Call *c, lt_Dtype *result) {
  const lt_OpInfo *info = c->info;
  lt_Dtype d = LT_DTYPE_NONE;
  switch (info->rule) {
  case LT_RULE_SELECT:
    d = lt_result_type(c->arg + 1, info->inputs - 1);
    break;
  case LT_RULE_SELF:
  case LT_RULE_MASK:
  case LT_RULE_LIMIT:
    d = c->arg[0].tensor->dtype;
    break;
  default:
    if (info->inputs == 1)
      d = c->arg[0].tensor->dtype;
    else if (c->arg[0].kind == LT_ARG_TENSOR && c->arg[1].kind == LT_ARG_TENSOR &&
             info->inputs == 2 && c->arg[0].tensor->dtype == c->arg[1].tensor->dtype)
      d = c->arg[0].tensor->dtype;
    else
      d = lt_result_type(c->arg, info->inputs);
  }
  lt_Category k = lt_dtype_category(d);
  bool more =
      c->nargs > info->inputs || info->rule >= LT_RULE_SELF; /* than those that determine d */
  if (k == LT_COMPLEX ? !info->has_complex : more && lt_has_complex_arg(c))
    return lt_refuse_complex(c);
  switch (info->rule) {
  case LT_RULE_NUMBER:
  case LT_RULE_DIVIDE:
  case LT_RULE_POWER:
  case LT_RULE_LIMIT:
    if (k == LT_BOOL)
      return lt_fail("expected a number dtype, got \"bool\"\nhint: x:to(\"float32\")");
    break;
  case LT_RULE_WIDEN:
    if (k == LT_BOOL) d = LT_int64;
    break;
  case LT_RULE_FLOAT:
  case LT_RULE_REAL_FLOAT:
    if (k < LT_FLOATING) d = lt_dtype_default();
    break;
  case LT_RULE_FLOATING:
    if (k < LT_FLOATING)
      return lt_fail("expected a float dtype, got \"%s\"\nhint: x:to(\"float32\")",
                     lt_dtype_name(d));
    break;
  case LT_RULE_INTEGRAL:
    if (k == LT_FLOATING)
      return lt_fail("expected an integer dtype or \"bool\", got \"%s\"", lt_dtype_name(d));
    break;
  case LT_RULE_SELECT:
    if (!check_bool(c, 0)) return false;
    break;
  case LT_RULE_MASK:
    if (!check_bool(c, 1)) return false;
    break;
  default:
    break;
  }
  c->compute = info->is_wide ? LT_float64 : lt_dtype_compute(d);
  if (info->rule == LT_RULE_TEST) c->compute = comparison_compute(c, c->compute, 0, info->inputs);
  if (info->rule == LT_RULE_LIMIT) {
    if (k == LT_INTEGER) floor_limit(&c->arg[info->inputs]);
    c->compute = comparison_compute(c, c->compute, info->inputs, info->inputs + 1);
  }
  bool real = info->rule == LT_RULE_REAL || info->rule == LT_RULE_REAL_FLOAT;
  *result = info->rule == LT_RULE_TEST ? LT_bool : real ? lt_dtype_real(d) : d;
  return true;
}

/* Reports the first pair of sizes, from the last dimension, that differ and of which neither is
 * 1. */
static bool broadcast_failed(const lt_Spec *s, const lt_Tensor *t) {
  int i = 1;
  while (s->shape[s->ndim - i] == t->shape[t->ndim - i] || s->shape[s->ndim - i] == 1 ||
         t->shape[t->ndim - i] == 1)
    i++;
  return lt_fail("cannot broadcast the shapes %s and %s together: at dim -%d the sizes %lld and "
                 "%lld differ, and neither is 1",
                 lt_shape_text(s->ndim, s->shape), lt_shape_text(t->ndim, t->shape), i,
                 (long long)s->shape[s->ndim - i], (long long)t->shape[t->ndim - i]);
}

/* Broadcasts the shapes of the inputs. */
static bool elementwise_shape(lt_Call *c, lt_Spec *s) {
  const lt_Tensor *first = NULL;
  s->ndim = 0;
  for (int i = 0; i < c->info->inputs; i++) {
    if (c->arg[i].kind != LT_ARG_TENSOR) continue;
    const lt_Tensor *t = c->arg[i].tensor;
    if (!first) {
      first = t;
      s->ndim = t->ndim;
      for (int k = 0; k < t->ndim; k++) s->shape[k] = t->shape[k];
    } else if (!lt_shape_equal(s->ndim, s->shape, t->ndim, t->shape) &&
               !lt_shape_broadcast(&s->ndim, s->shape, t->ndim, t->shape)) {
      return broadcast_failed(s, t);
    }
  }
  return true;
}

/* Checks number arguments: one that is stored in an integer tensor must fit its dtype, integer
 * powers must not be negative, and factors of integers must be finite. */
static bool elementwise_numbers(const lt_Call *c) {
  _Alignas(LT_MAX_ELEMENT) char element[LT_MAX_ELEMENT];
  switch (c->info->rule) {
  case LT_RULE_SELF:
  case LT_RULE_MASK:
  case LT_RULE_LIMIT:
    for (int i = 1; i < c->nargs; i++) {
      bool limit = c->info->rule == LT_RULE_LIMIT && i == c->info->inputs;
      if (c->arg[i].kind == LT_ARG_SCALAR &&
          !lt_scalar_store(c->arg[i].scalar, limit ? c->compute : c->arg[0].tensor->dtype, element))
        return false;
    }
    return true;
  case LT_RULE_POWER:
    if (lt_dtype_category(c->compute) != LT_INTEGER || c->arg[1].kind != LT_ARG_SCALAR ||
        lt_scalar_to_int(c->arg[1].scalar) >= 0)
      return true;
    return lt_fail("cannot raise integers to a negative power: the result is not an integer\nhint: "
                   "self:to(\"float32\")");
  default:
    break;
  }
  if (lt_dtype_category(c->compute) != LT_INTEGER || c->info->inputs < 2) return true;
  for (int i = c->info->inputs; i < c->nargs; i++) /* alpha, value */
    if (c->arg[i].kind == LT_ARG_SCALAR && !isfinite(lt_scalar_to_double(c->arg[i].scalar)))
      return lt_fail("expected a finite number for argument '%s', got %s: the result is \"%s\"",
                     c->signature->param[i].name, lt_scalar_text(c->arg[i].scalar),
                     lt_dtype_name(c->compute));
  return true;
}

bool lt_infer_elementwise(lt_Call *c) {
  lt_Spec *s = &c->spec[0];
  if (!elementwise_dtype(c, &s->dtype) || !elementwise_shape(c, s) || !elementwise_numbers(c))
    return false;
  s->device = c->device;
  c->nout = 1;
  return true;
}
