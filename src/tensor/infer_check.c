/* infer_check.c: checks that many ops share, so that the same mistake gives the same message.
 *
 * Invariant: a check that fails has filled the error slot and changed nothing. */
#include "infer.h"

bool lt_check_float(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  if (lt_dtype_is_float(d)) return true;
  return lt_fail("%s wants a float dtype, got %s: convert it with :to \"float32\"",
                 lt_arg_name(c, i), lt_dtype_name(d));
}

bool lt_check_complex(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  return lt_dtype_is_complex(d) || lt_fail("expected a complex tensor for argument '%s', got %s",
                                           lt_arg_name(c, i), lt_dtype_name(d));
}

bool lt_check_real_number(const lt_Call *c, int i) {
  lt_Scalar s = c->arg[i].scalar;
  return s.kind != LT_COMPLEX || lt_fail("expected a real number for argument '%s', got %s",
                                         lt_arg_name(c, i), lt_scalar_text(s));
}

bool lt_check_index(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  if (d == LT_uint8)
    return lt_fail("%s is uint8, which could mean a mask or positions: wants bool or int64",
                   lt_arg_name(c, i));
  if (lt_dtype_category(d) != LT_INTEGER)
    return lt_fail(
        "%s holds positions and wants an integer dtype, got %s: convert it with :to \"int64\"",
        lt_arg_name(c, i), lt_dtype_name(d));
  return true;
}

bool lt_check_mask(const lt_Call *c, int i) {
  lt_Dtype d = lt_in(c, i)->dtype;
  if (d == LT_bool) return true;
  return lt_fail("%s wants dtype bool, got %s: convert it with :to \"bool\"", lt_arg_name(c, i),
                 lt_dtype_name(d));
}

/* The hint is to convert the tensor that loses nothing: integers to floats, bool to integers; of
 * two floats the second. */
bool lt_check_same_dtype(const lt_Call *c, int i, int j) {
  lt_Dtype a = lt_in(c, i)->dtype, b = lt_in(c, j)->dtype;
  if (a == b) return true;
  bool first = lt_dtype_category(a) < lt_dtype_category(b);
  return lt_fail("%s is %s and %s is %s, wants one dtype: convert one, %s:to \"%s\"",
                 lt_arg_name(c, i), lt_dtype_name(a), lt_arg_name(c, j), lt_dtype_name(b),
                 lt_arg_name(c, first ? i : j), lt_dtype_name(first ? b : a));
}

bool lt_check_same_shape(const lt_Call *c, int i, int j) {
  const lt_Tensor *a = lt_in(c, i), *b = lt_in(c, j);
  if (lt_shape_equal(a->ndim, a->shape, b->ndim, b->shape)) return true;
  return lt_fail("%s is %s and %s is %s, wants one shape", lt_arg_name(c, i), lt_text(a),
                 lt_arg_name(c, j), lt_text(b));
}

bool lt_check_shape(const lt_Call *c, int i, int ndim, const int64_t *shape) {
  const lt_Tensor *t = lt_in(c, i);
  if (lt_shape_equal(t->ndim, t->shape, ndim, shape)) return true;
  return lt_fail("%s is %s, wants %s", lt_arg_name(c, i), lt_text(t), lt_shape_text(ndim, shape));
}

bool lt_check_ndim(const lt_Call *c, int i, int least, int most) {
  const lt_Tensor *t = lt_in(c, i);
  if (t->ndim >= least && t->ndim <= most) return true;
  const char *name = lt_arg_name(c, i), *s = least == 1 ? "" : "s";
  if (least == most)
    return lt_fail("%s wants %d dimension%s, got %d: %s", name, least, s, t->ndim, lt_text(t));
  if (most >= LT_MAX_DIMS)
    return lt_fail("%s wants at least %d dimension%s, got %d: %s", name, least, s, t->ndim,
                   lt_text(t));
  if (least == 0)
    return lt_fail("%s wants at most %d dimension%s, got %d: %s", name, most, most == 1 ? "" : "s",
                   t->ndim, lt_text(t));
  return lt_fail("%s wants %d to %d dimensions, got %d: %s", name, least, most, t->ndim,
                 lt_text(t));
}

bool lt_check_rank(int64_t ndim) {
  if (ndim <= LT_MAX_DIMS) return true;
  return lt_fail("the result would have %lld dimensions, a tensor has at most %d", (long long)ndim,
                 LT_MAX_DIMS);
}

bool lt_check_sizes(const lt_Arg *sizes, int *ndim, int64_t *shape) {
  if (sizes->count > LT_MAX_DIMS)
    return lt_fail("got %d sizes, a tensor has at most %d dimensions", sizes->count, LT_MAX_DIMS);
  *ndim = sizes->count;
  for (int i = 0; i < *ndim; i++) shape[i] = sizes->ints[i];
  int64_t numel;
  return lt_shape_numel(lt_user_op(), *ndim, shape, &numel);
}

bool lt_check_count(const lt_Call *c, int i) {
  if (c->arg[i].i >= 0) return true;
  return lt_fail("%s is %lld, wants 0 or more", lt_arg_name(c, i), (long long)c->arg[i].i);
}

bool lt_check_expands(const char *who, int from_ndim, const int64_t *from, const char *to_who,
                      int to_ndim, const int64_t *to) {
  int ndim = to_ndim;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, to, sizeof(int64_t) * (size_t)to_ndim);
  if (lt_shape_broadcast(&ndim, shape, from_ndim, from) && lt_shape_equal(ndim, shape, to_ndim, to))
    return true;
  return lt_fail("%s %s cannot be broadcast to %s %s", who, lt_shape_text(from_ndim, from), to_who,
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
