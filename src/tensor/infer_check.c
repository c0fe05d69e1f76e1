/* infer_check.c: checks that many ops share, so that the same mistake gives the same message.
 *
 * Invariant: a check that fails has filled the error slot and changed nothing. */
#include "infer.h"

bool lt_check_float(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  if (lt_dtype_is_float(d)) return true;
  return lt_fail("expected a float dtype for argument '%s', got \"%s\"\nhint: %s:to(\"float32\")",
                 lt_arg_name(c, i), lt_dtype_name(d), lt_arg_name(c, i));
}

bool lt_check_complex(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  return lt_dtype_is_complex(d) ||
         lt_fail("expected a complex tensor for argument '%s', got \"%s\"", lt_arg_name(c, i),
                 lt_dtype_name(d));
}

bool lt_check_real_number(const lt_Call *c, int i) {
  lt_Scalar s = c->arg[i].scalar;
  return s.kind != LT_COMPLEX || lt_fail("expected a real number for argument '%s', got %s",
                                         lt_arg_name(c, i), lt_scalar_text(s));
}

bool lt_check_index(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  if (d == LT_uint8 && lt_in(c, i)->numel)
    return lt_fail(
        "expected dtype \"bool\" (a mask) or \"int64\" (indices) for argument '%s', got \"uint8\"",
        lt_arg_name(c, i));
  if (lt_dtype_category(d) != LT_INTEGER)
    return lt_fail("expected an integer dtype for argument '%s', an index tensor, got "
                   "\"%s\"\nhint: %s:to(\"int64\")",
                   lt_arg_name(c, i), lt_dtype_name(d), lt_arg_name(c, i));
  return true;
}

bool lt_check_mask(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  if (d == LT_bool) return true;
  return lt_fail("expected dtype \"bool\" for argument '%s', got \"%s\"\nhint: %s:to(\"bool\")",
                 lt_arg_name(c, i), lt_dtype_name(d), lt_arg_name(c, i));
}

/* Returns the method that converts a tensor or a module to a float dtype. */
static const char *conversion(lt_Dtype d) {
  switch (d) {
  case LT_float64:
    return "double";
  case LT_float32:
    return "float";
  case LT_float16:
    return "half";
  default:
    return lt_dtype_name(d);
  }
}

/* Returns whether layers have a parameter or buffer of this name. */
static bool is_parameter(const char *name) {
  return !strcmp(name, "weight") || !strcmp(name, "bias") || !strncmp(name, "running_", 8);
}

/* The hint is to convert the tensor that loses nothing: integers to floats, bool to integers; of
 * two floats the second. For a parameter of a layer it names the input and the module. */
bool lt_check_same_dtype(const lt_Call *c, int i, int j) {
  lt_Dtype a = lt_in(c, i)->dtype, b = lt_in(c, j)->dtype;
  if (a == b) return true;
  if (lt_dtype_category(a) == LT_FLOATING && lt_dtype_category(b) == LT_FLOATING &&
      is_parameter(lt_arg_name(c, j)))
    return lt_fail("expected the same dtype for arguments '%s' and '%s', got \"%s\" and "
                   "\"%s\"\nhint: %s:%s(), or net:%s() for the parameters of a module",
                   lt_arg_name(c, i), lt_arg_name(c, j), lt_dtype_name(a), lt_dtype_name(b),
                   lt_arg_name(c, i), conversion(b), conversion(a));
  bool first = lt_dtype_category(a) < lt_dtype_category(b);
  return lt_fail("expected the same dtype for arguments '%s' and '%s', got \"%s\" and "
                 "\"%s\"\nhint: %s:to(\"%s\")",
                 lt_arg_name(c, i), lt_arg_name(c, j), lt_dtype_name(a), lt_dtype_name(b),
                 lt_arg_name(c, first ? i : j), lt_dtype_name(first ? b : a));
}

bool lt_check_same_shape(const lt_Call *c, int i, int j) {
  const lt_Tensor *a = lt_in(c, i), *b = lt_in(c, j);
  if (lt_shape_equal(a->ndim, a->shape, b->ndim, b->shape)) return true;
  return lt_fail("expected the same shape for arguments '%s' and '%s', got %s and %s",
                 lt_arg_name(c, i), lt_arg_name(c, j), lt_text(a), lt_text(b));
}

bool lt_check_shape(const lt_Call *c, int i, int ndim, const int64_t *shape) {
  const lt_Tensor *t = lt_in(c, i);
  if (lt_shape_equal(t->ndim, t->shape, ndim, shape)) return true;
  return lt_fail("expected shape %s for argument '%s', got %s", lt_shape_text(ndim, shape),
                 lt_arg_name(c, i), lt_text(t));
}

bool lt_check_ndim(const lt_Call *c, int i, int least, int most) {
  const lt_Tensor *t = lt_in(c, i);
  if (t->ndim >= least && t->ndim <= most) return true;
  const char *name = lt_arg_name(c, i), *s = least == 1 ? "" : "s";
  if (least == most)
    return lt_fail("expected %d dimension%s for argument '%s', got %d: %s", least, s, name, t->ndim,
                   lt_text(t));
  if (most >= LT_MAX_DIMS)
    return lt_fail("expected at least %d dimension%s for argument '%s', got %d: %s", least, s, name,
                   t->ndim, lt_text(t));
  if (least == 0)
    return lt_fail("expected at most %d dimension%s for argument '%s', got %d: %s", most,
                   most == 1 ? "" : "s", name, t->ndim, lt_text(t));
  return lt_fail("expected %d to %d dimensions for argument '%s', got %d: %s", least, most, name,
                 t->ndim, lt_text(t));
}

bool lt_check_rank(int64_t ndim) {
  if (ndim <= LT_MAX_DIMS) return true;
  return lt_fail("cannot create a tensor of %lld dimensions: the limit is %d", (long long)ndim,
                 LT_MAX_DIMS);
}

bool lt_check_sizes(const lt_Arg *sizes, int *ndim, int64_t *shape) {
  if (sizes->count > LT_MAX_DIMS)
    return lt_fail("expected at most %d sizes, got %d", LT_MAX_DIMS, sizes->count);
  *ndim = sizes->count;
  for (int i = 0; i < *ndim; i++) shape[i] = sizes->ints[i];
  int64_t numel;
  return lt_shape_numel(NULL, *ndim, shape, &numel);
}

bool lt_check_count(const lt_Call *c, int i) {
  if (c->arg[i].i >= 0) return true;
  return lt_fail("expected an integer of at least 0 for argument '%s', got %lld", lt_arg_name(c, i),
                 (long long)c->arg[i].i);
}

bool lt_check_expands(const char *who, int from_ndim, const int64_t *from, const char *to_who,
                      int to_ndim, const int64_t *to) {
  int ndim = to_ndim;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, to, sizeof(int64_t) * (size_t)to_ndim);
  if (lt_shape_broadcast(&ndim, shape, from_ndim, from) && lt_shape_equal(ndim, shape, to_ndim, to))
    return true;
  return lt_fail("cannot broadcast %s %s to %s %s", who, lt_shape_text(from_ndim, from), to_who,
                 lt_shape_text(to_ndim, to));
}

void lt_dtype_range(lt_Dtype d, int64_t *low, int64_t *high) {
  if (d == LT_bool || d == LT_uint8) {
    *low = 0;
    *high = d == LT_bool ? 1 : UINT8_MAX;
    return;
  }
  int bits = 8 * (int)lt_dtype_size(d);
  *high = (int64_t)(UINT64_MAX >> (65 - bits));
  *low = -*high - 1;
}
