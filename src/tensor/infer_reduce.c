/* infer_reduce.c: shapes and dtypes of reductions, cumulative ops and sorting.
 *
 * The rule of a reduction (ops.def) determines its dtypes:
 *   SUM       any dtype; integers and bool are summed as int64, unless a dtype is given
 *   FLOATING  floats only; the result has the same dtype
 *   FLOAT     like FLOATING, but integers and bool become the default float
 *   ORDERED   any dtype, which is that of the result; reducing no elements is an error
 *   BOOL      any dtype; the result is bool, for uint8 it is uint8
 *   COUNT     any dtype; the result is int64
 *   ARG       the result is an index (int64); reducing no elements is an error
 *   ARG2      the results are a value and its index
 */
#include "infer.h"
#include "reductions.h"

/* Returns the index of the argument `dtype`; -1 when the op has none. */
static int dtype_argument(const lt_Call *c) {
  for (int i = 0; i < c->signature->count; i++)
    if (c->signature->param[i].type == LT_PARAM_DTYPE) return i;
  return -1;
}

/* Reports a dtype that is not a float. */
static bool refuse_numbers(const lt_Call *c, lt_Dtype got) {
  if (dtype_argument(c) >= 0)
    return lt_fail(
        "expected a float dtype, got \"%s\"\nhint: dtype = \"float32\", or x:to(\"float32\")",
        lt_dtype_name(got));
  return lt_fail("expected a float dtype, got \"%s\"\nhint: x:to(\"float32\")", lt_dtype_name(got));
}

/* Computes the dtype in which the reduction is computed. */
static bool reduced_dtype(const lt_Call *c, lt_Dtype *dtype) {
  const lt_Tensor *self = lt_in(c, 0);
  int place = dtype_argument(c);
  bool given = place >= 0 && lt_given(c, place);
  *dtype = given ? c->arg[place].dtype : self->dtype;
  bool is_float = lt_dtype_is_float(*dtype), whole = lt_dtype_category(*dtype) < LT_FLOATING;
  if (c->info->rule == LT_RULE_FLOATING && whole) return refuse_numbers(c, *dtype);
  if (c->info->rule == LT_RULE_SUM && whole && !given) *dtype = LT_int64;
  if (c->info->rule == LT_RULE_FLOAT && !is_float) *dtype = lt_dtype_default();
  return true;
}

bool lt_reduced_dims(const lt_Call *c, unsigned *mask) {
  int ndim = lt_in(c, 0)->ndim;
  if (c->info->rule != LT_RULE_ARG && c->info->rule != LT_RULE_ARG2)
    return lt_dims(&c->arg[1], ndim, mask);
  *mask = ~0u;
  if (!lt_given(c, 1)) return true;
  int dim = lt_dim(c->arg[1].i, ndim);
  if (dim < 0) return false;
  *mask = 1u << dim;
  return true;
}

/* Returns true for reductions that need at least one element. */
static bool has_no_identity(const lt_Call *c) {
  switch (c->info->rule) {
  case LT_RULE_ORDERED:
  case LT_RULE_ARG:
  case LT_RULE_ARG2:
    return true;
  default:
    return false;
  }
}

/* Checks that such a reduction has elements. */
static bool check_not_empty(const lt_Call *c, unsigned mask) {
  const lt_Tensor *self = lt_in(c, 0);
  for (int d = 0; d < self->ndim; d++)
    if ((mask >> d & 1) && self->shape[d] == 0)
      return lt_fail("cannot reduce dim %d of %s: its size is 0", d + 1, lt_text(self));
  return true;
}

/* Computes the shape of the result. */
static int reduced_shape(const lt_Tensor *self, unsigned mask, bool keepdim, int64_t *shape) {
  int ndim = 0;
  for (int d = 0; d < self->ndim; d++) {
    if (!(mask >> d & 1))
      shape[ndim++] = self->shape[d];
    else if (keepdim)
      shape[ndim++] = 1;
  }
  return ndim;
}

bool lt_infer_reduce(lt_Call *c) {
  unsigned mask;
  lt_Dtype dtype;
  if (!lt_reduced_dims(c, &mask) || !reduced_dtype(c, &dtype)) return false;
  if (has_no_identity(c) && !check_not_empty(c, mask)) return false;
  bool keepdim = c->nargs > 2 && c->arg[2].kind == LT_ARG_BOOL && c->arg[2].b;
  int64_t shape[LT_MAX_DIMS];
  int ndim = reduced_shape(lt_in(c, 0), mask, keepdim, shape);
  c->compute = dtype;
  switch (c->info->rule) {
  case LT_RULE_BOOL:
    lt_spec(c, 0, dtype == LT_uint8 ? LT_uint8 : LT_bool, ndim, shape);
    break;
  case LT_RULE_COUNT:
  case LT_RULE_ARG:
    lt_spec(c, 0, LT_int64, ndim, shape);
    break;
  case LT_RULE_ARG2:
    lt_spec(c, 0, dtype, ndim, shape);
    lt_spec(c, 1, LT_int64, ndim, shape);
    break;
  default:
    lt_spec(c, 0, dtype, ndim, shape);
  }
  return true;
}

/* _norm (self, dim, keepdim, p): a p below 0 or infinite selects an element, so there must be
 * one. */
bool lt_infer_norm(lt_Call *c) {
  unsigned mask;
  bool chooses = c->arg[3].f < 0 || c->arg[3].f > 1e308;
  if (!lt_reduced_dims(c, &mask)) return false;
  if (!lt_dtype_is_float(lt_in(c, 0)->dtype)) return refuse_numbers(c, lt_in(c, 0)->dtype);
  return (!chooses || check_not_empty(c, mask)) && lt_infer_reduce(c);
}

/* cumsum, cumprod (self, dim, dtype?) */
bool lt_infer_cumulate(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (lt_dim(c->arg[1].i, self->ndim) < 0) return false;
  bool whole = !lt_dtype_is_float(self->dtype) && !lt_dtype_is_complex(self->dtype);
  c->compute = lt_dtype_or(c, 2, whole ? LT_int64 : self->dtype);
  lt_spec(c, 0, c->compute, self->ndim, self->shape);
  return true;
}

/* sort, cummax, cummin (self, dim, ...) */
bool lt_infer_sort(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (lt_dim(c->arg[1].i, self->ndim) < 0) return false;
  lt_spec(c, 0, self->dtype, self->ndim, self->shape);
  lt_spec(c, 1, LT_int64, self->ndim, self->shape);
  return true;
}

/* topk (self, k, dim, largest, sorted) */
bool lt_infer_topk(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int64_t k = c->arg[1].i;
  int dim = lt_dim(c->arg[2].i, self->ndim);
  if (dim < 0 || !lt_check_count(c, 1)) return false;
  if (k > lt_size_at(self, dim))
    return lt_fail("expected at most %lld, the size of dim %d of %s, for argument 'k', got %lld",
                   (long long)lt_size_at(self, dim), dim + 1, lt_text(self), (long long)k);
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, self->shape, sizeof shape);
  if (self->ndim) shape[dim] = k;
  lt_spec(c, 0, self->dtype, self->ndim, shape);
  lt_spec(c, 1, LT_int64, self->ndim, shape);
  return true;
}

/* _mode (self, dim, keepdim) */
bool lt_infer_mode(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0 || !check_not_empty(c, 1u << dim)) return false;
  int64_t shape[LT_MAX_DIMS];
  int ndim = reduced_shape(self, 1u << dim, c->arg[2].b, shape);
  lt_spec(c, 0, self->dtype, ndim, shape);
  lt_spec(c, 1, LT_int64, ndim, shape);
  return true;
}

/* _kthvalue (self, dim, keepdim, rank, or_nan) */
bool lt_infer_kthvalue(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!lt_infer_mode(c)) return false;
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (c->arg[3].i <= lt_size_at(self, dim)) return true;
  return lt_fail("expected a rank of at most %lld, the size of dim %d of %s, got %lld",
                 (long long)lt_size_at(self, dim), dim + 1, lt_text(self), (long long)c->arg[3].i);
}

/* _aminmax (self) */
bool lt_infer_aminmax(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!check_not_empty(c, (1u << self->ndim) - 1)) return false;
  lt_spec(c, 0, self->dtype, 0, NULL);
  lt_spec(c, 1, self->dtype, 0, NULL);
  return true;
}

/* _logcumsumexp (self, dim) */
bool lt_infer_logcumsumexp(lt_Call *c) {
  if (!lt_check_float(c, 0) || lt_dim(c->arg[1].i, lt_in(c, 0)->ndim) < 0) return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* softmax, log_softmax (self, dim, dtype?) */
bool lt_infer_softmax(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (lt_dim(c->arg[1].i, self->ndim) < 0) return false;
  c->compute = lt_dtype_or(c, 2, self->dtype);
  if (!lt_dtype_is_float(c->compute)) return refuse_numbers(c, c->compute);
  lt_spec(c, 0, c->compute, self->ndim, self->shape);
  return true;
}

/* The gradients of softmax and log_softmax (grad, result, dim). */
bool lt_infer_softmax_backward(lt_Call *c) {
  if (!lt_check_float(c, 0) || !lt_check_same_dtype(c, 0, 1) || !lt_check_same_shape(c, 0, 1))
    return false;
  if (lt_dim(c->arg[2].i, lt_in(c, 0)->ndim) < 0) return false;
  lt_spec_like(c, 0, lt_in(c, 0));
  return true;
}

/* _searchsorted (sorted_sequence, self, right): the rows of a sequence with several dims match
 * those of self. */
bool lt_infer_searchsorted(lt_Call *c) {
  const lt_Tensor *sorted = lt_in(c, 0), *self = lt_in(c, 1);
  if (!lt_check_ndim(c, 0, 1, LT_MAX_DIMS) || !lt_check_same_dtype(c, 0, 1)) return false;
  if (sorted->ndim > 1 &&
      !lt_shape_equal(sorted->ndim - 1, sorted->shape, self->ndim - 1, self->shape))
    return lt_fail("expected a vector, or the dims of %s but the last, for argument '%s', got %s",
                   lt_text(self), lt_arg_name(c, 0), lt_text(sorted));
  lt_spec(c, 0, LT_int64, self->ndim, self->shape);
  return true;
}
