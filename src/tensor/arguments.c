/* arguments.c: reads the arguments of a call by the op's signature: types, defaults, limits. */
#include "infer.h"

static const char *const kind_names[] = {
    "nil",      "a tensor", "a list of tensors", "a number", "an int",     "a float", "a bool",
    "a string", "ints",     "a dtype",           "a device", "a Generator"};

/* Returns true when no number of a list is below the minimum. */
static bool are_at_least(const lt_Arg *list, double least) {
  for (int k = 0; k < list->count; k++)
    if ((double)list->ints[k] < least) return false;
  return true;
}

/* Converts argument i to a parameter's type: C callers pass plain ints, doubles and bools,
 * signatures are stricter. Returns false, without an error, when the kind does not fit or the value
 * is not allowed. */
static bool coerce(lt_Call *c, int i, const lt_Param *p, lt_ParamType type) {
  lt_Arg *a = &c->arg[i];
  switch (type) {
  case LT_PARAM_TENSOR:
  case LT_PARAM_INDEX:
    return a->kind == LT_ARG_TENSOR;
  case LT_PARAM_TENSORS:
    return a->kind == LT_ARG_TENSORS;
  case LT_PARAM_OPERAND:
    if (a->kind == LT_ARG_TENSOR) return true;
    /* fallthrough */
  case LT_PARAM_SCALAR:
    if (a->kind == LT_ARG_INT) *a = lt_arg_scalar(lt_scalar_int(a->i));
    if (a->kind == LT_ARG_FLOAT) *a = lt_arg_scalar(lt_scalar_float(a->f));
    if (a->kind == LT_ARG_BOOL) *a = lt_arg_scalar(lt_scalar_bool(a->b));
    return a->kind == LT_ARG_SCALAR;
  case LT_PARAM_FLOAT:
    if (a->kind == LT_ARG_INT) *a = lt_arg_float((double)a->i);
    if (a->kind == LT_ARG_SCALAR) *a = lt_arg_float(lt_scalar_to_double(a->scalar));
    return a->kind == LT_ARG_FLOAT && !(p->has_least && a->f < p->least);
  case LT_PARAM_INT:
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    if (a->kind == LT_ARG_SCALAR && a->scalar.kind == LT_INTEGER) *a = lt_arg_int(a->scalar.i);
    return a->kind == LT_ARG_INT && !(p->has_least && (double)a->i < p->least);
  case LT_PARAM_SIZES:
  case LT_PARAM_INTS:
  case LT_PARAM_DIMS:
    if (a->kind == LT_ARG_INT) {
      c->single[i] = a->i;
      *a = lt_arg_ints(&c->single[i], 1);
    }
    return a->kind == LT_ARG_INTS && !(p->has_least && !are_at_least(a, p->least));
  case LT_PARAM_BOOL: /* `true` is an int in C11 */
    if (a->kind == LT_ARG_INT && (a->i == 0 || a->i == 1)) *a = lt_arg_bool(a->i);
    return a->kind == LT_ARG_BOOL;
  case LT_PARAM_STRING:
    return a->kind == LT_ARG_STRING && lt_param_allows(p, a->string);
  case LT_PARAM_DTYPE:
    return a->kind == LT_ARG_DTYPE && (!p->dtypes || p->dtypes >> a->dtype & 1);
  case LT_PARAM_DEVICE:
    return a->kind == LT_ARG_DEVICE;
  case LT_PARAM_GENERATOR:
    return a->kind == LT_ARG_GENERATOR;
  default:
    return false;
  }
}

/* Converts argument i to the first type of a union that it fits. False for other parameters. */
static bool coerce_any(lt_Call *c, int i, const lt_Param *p) {
  for (int t = 0; p->type == LT_PARAM_UNION && t < LT_PARAM_UNION; t++)
    if (p->types & (1u << t) && coerce(c, i, p, (lt_ParamType)t)) return true;
  return false;
}

/* Reports that argument i has the wrong type or a value that its parameter does not allow. */
static bool fail_argument(const lt_Call *c, int i) {
  char choices[160];
  const lt_Param *p = &c->signature->param[i];
  const lt_Arg *a = &c->arg[i];
  if (a->kind == LT_ARG_STRING && p->has_choices)
    return lt_fail("expected %s for argument '%s', got the string \"%s\"",
                   lt_param_choices(p, choices, sizeof choices), p->name, a->string);
  if (a->kind == LT_ARG_DTYPE && p->dtypes)
    return lt_fail("expected %.*s for argument '%s', got \"%s\"", p->spelling_length, p->spelling,
                   p->name, lt_dtype_name(a->dtype));
  if (p->has_least && (a->kind == LT_ARG_INT || a->kind == LT_ARG_FLOAT || a->kind == LT_ARG_INTS))
    return lt_fail("expected a number of at least %g for argument '%s'", p->least, p->name);
  if (p->type == LT_PARAM_UNION)
    return lt_fail("expected %.*s for argument '%s', got %s", p->spelling_length, p->spelling,
                   p->name, kind_names[a->kind]);
  return lt_fail("expected %.*s for argument '%s', got %s", p->spelling_length, p->spelling,
                 p->name, kind_names[a->kind]);
}

/* Copies an argument, the most frequent kinds member by member: one wide load of what two stores
 * have just written would stall. */
static inline void copy_arg(lt_Arg *to, const lt_Arg *from) {
  switch (from->kind) {
  case LT_ARG_TENSOR:
  case LT_ARG_INT:
    to->kind = from->kind;
    to->count = 0;
    to->i = from->i; /* or the pointer */
    break;
  case LT_ARG_INTS:
    to->kind = LT_ARG_INTS;
    to->count = from->count;
    to->ints = from->ints;
    break;
  default:
    *to = *from;
  }
}

/* Returns true when an argument is of its parameter's type as it is; false for rare types, too. */
static inline bool is_of_type(const lt_Param *p, const lt_Arg *a) {
  switch (p->type) {
  case LT_PARAM_TENSOR:
    return a->kind == LT_ARG_TENSOR && !a->tensor->freed;
  case LT_PARAM_INT:
  case LT_PARAM_DIM:
  case LT_PARAM_POSITION:
    return a->kind == LT_ARG_INT && !p->has_least;
  case LT_PARAM_SIZES:
  case LT_PARAM_INTS:
  case LT_PARAM_DIMS:
    return a->kind == LT_ARG_INTS && !p->has_least;
  default:
    return false;
  }
}

bool lt_read_args(lt_Call *c, const lt_Arg *args, int nargs) {
  const lt_Signature *g = c->signature;
  for (int i = 0; i < nargs; i++)
    if (args[i].kind == LT_ARG_TENSOR && !args[i].tensor) return false;
  if (nargs > g->count) return lt_fail("expected at most %d arguments, got %d", g->count, nargs);
  for (int i = 0; i < g->count; i++) {
    const lt_Param *p = &g->param[i];
    if (i >= nargs || args[i].kind == LT_ARG_NIL) {
      c->arg[i] = p->value; /* of the parameter's type */
      if (p->value.kind == LT_ARG_NIL && !p->optional)
        return lt_fail("expected a value for argument '%s', got no value", p->name);
      continue;
    }
    copy_arg(&c->arg[i], &args[i]);
    if (is_of_type(p, &args[i])) continue;
    if (!coerce(c, i, p, p->type) && !coerce_any(c, i, p)) return fail_argument(c, i);
    if (!lt_arg_usable(&c->arg[i], p->name)) return false;
  }
  c->nargs = g->count;
  return true;
}
