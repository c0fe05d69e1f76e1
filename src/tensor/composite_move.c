/* composite_move.c: ops that join, copy, select and repeat. */
#include "infer.h"

#include <math.h>

/* ---- copies ---------------------------------------------------------------------------------- */

/* clone (self, memory_format): keeps the order in memory by default */
bool lt_composite_clone(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  bool keeps = !lt_given(c, 1) || !strcmp(c->arg[1].string, "preserve_format");
  if (!keeps || lt_tensor_is_contiguous(self)) return lt_result_set(c, lt_do(copy, c->arg[0]));
  return lt_result_set(c, lt_do(_to_copy, c->arg[0], LT_ARG(lt_tensor_device(self)),
                                lt_arg_dtype(self->dtype), LT_ARG((bool)false)));
}

bool lt_composite_contiguous(lt_Call *c) {
  return lt_result_set(c,
                       lt_tensor_is_contiguous(lt_in(c, 0)) ? lt_in(c, 0) : lt_do(copy, c->arg[0]));
}

/* Returns a copy of t, on the CPU, of this dtype and with the order in memory of t, without a
 * call. */
static lt_Tensor *copied_at_once(lt_Tensor *t, lt_Dtype dtype) {
  lt_Tensor *copy = lt_scope_own(lt_empty(dtype, lt_cpu(), t->ndim, t->shape));
  if (!copy) return NULL;
  lt_keep_order(copy, 1, &t);
  return lt_copy_into(copy, t, false) ? copy : NULL;
}

/* to (self, device?, dtype?, non_blocking, copy): real dtypes get the real parts */
bool lt_composite_to(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  lt_Device device = lt_given(c, 1) ? c->arg[1].device : lt_tensor_device(self);
  lt_Dtype dtype = lt_dtype_or(c, 2, self->dtype);
  bool stays = lt_device_equal(device, lt_tensor_device(self));
  if (stays && dtype == self->dtype && !c->arg[4].b) return lt_result_set(c, self);
  if (lt_dtype_is_complex(self->dtype) && !lt_dtype_is_complex(dtype) && dtype != LT_bool)
    self = lt_do(real, c->arg[0]);
  else if (stays && lt_is_unobserved(c))
    return lt_result_set(c, copied_at_once(self, dtype));
  return lt_result_set(
      c, lt_do(_to_copy, LT_ARG(self), LT_ARG(device), lt_arg_dtype(dtype), c->arg[3]));
}

/* copy_ (self, source, non_blocking) */
bool lt_composite_copy_(lt_Call *c) {
  return lt_result_set(c,
                       lt_do_in_place(_copy, c->arg[0], c->arg[1], c->arg[2]) ? lt_in(c, 0) : NULL);
}

/* scatter (self, dim, index, src?, reduce?, value?) */
bool lt_composite_scatter(lt_Call *c) {
  if (lt_given(c, 3) == lt_given(c, 5))
    return lt_fail("expected one of src and value, got %s", lt_given(c, 3) ? "both" : "neither");
  lt_Arg args[] = {c->arg[0], c->arg[1], c->arg[2], lt_given(c, 3) ? c->arg[3] : c->arg[5],
                   lt_arg_string("prod")};
  if (!lt_given(c, 4)) return lt_result_set(c, lt_do_(LT_OP__scatter, c->in_place, args, 4, 0));
  const lt_Tensor *self = lt_in(c, 0), *index = lt_in(c, 2);
  if (args[3].kind != LT_ARG_TENSOR)
    args[3] = LT_ARG(lt_do(full, LT_INTS(index->shape, index->ndim), args[3],
                           lt_arg_dtype(self->dtype), LT_ARG(lt_tensor_device(self))));
  bool add = !strcmp(c->arg[4].string, "add");
  lt_OpId op = add ? LT_OP_scatter_add : LT_OP__scatter_reduce;
  return lt_result_set(c, lt_do_(op, c->in_place, args, add ? 4 : 5, 0));
}

bool lt_composite_positive(lt_Call *c) {
  if (lt_in(c, 0)->dtype == LT_bool)
    return lt_fail("expected a number dtype for argument 'self', got \"bool\"");
  return lt_result_set(c, lt_in(c, 0));
}

bool lt_composite_zero_(lt_Call *c) {
  lt_Arg zero = lt_arg_scalar(lt_scalar_int(0));
  return lt_result_set(c, lt_do_in_place(fill, c->arg[0], zero) ? lt_in(c, 0) : NULL);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* Checks that all tensors of the list have the same shape. */
static bool check_stack(const lt_Call *c) {
  int n = c->arg[0].count;
  lt_Tensor *const *list = c->arg[0].tensors;
  if (n == 0)
    return lt_fail("expected at least one tensor for argument 'tensors', got an empty list");
  for (int k = 1; k < n; k++)
    if (!lt_shape_equal(list[0]->ndim, list[0]->shape, list[k]->ndim, list[k]->shape))
      return lt_fail(
          "expected shape %s, that of the first tensor, for argument 'tensors[%d]', got %s",
          lt_text(list[0]), k + 1, lt_text(list[k]));
  return lt_check_rank(list[0]->ndim + 1);
}

/* Returns t with a new dimension of size 1. */
static lt_Tensor *with_dim(lt_Tensor *t, int dim, bool observed) {
  if (observed) return lt_do(unsqueeze, LT_ARG(t), LT_ARG(dim));
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  for (int d = 0; d <= t->ndim; d++) {
    shape[d] = d == dim ? 1 : t->shape[d - (d > dim)];
    strides[d] = d == dim ? 1 : t->strides[d - (d > dim)];
  }
  return lt_scope_own(lt_geometry(t, 0, t->ndim + 1, shape, strides));
}

/* stack (tensors, dim) */
bool lt_composite_stack(lt_Call *c) {
  int n = c->arg[0].count, dim;
  if (!check_stack(c) || (dim = lt_dim(c->arg[1].i, c->arg[0].tensors[0]->ndim + 1)) < 0)
    return false;
  lt_Tensor **list = malloc((size_t)n * sizeof *list), *joined = NULL;
  if (!list) return lt_fail_memory();
  int made = 0;
  bool observed = !lt_is_unobserved(c);
  while (made < n && (list[made] = with_dim(c->arg[0].tensors[made], dim, observed))) made++;
  if (made == n) joined = lt_do(cat, LT_TENSORS(list, n), LT_ARG(dim));
  free(list);
  return lt_result_set(c, joined);
}

/* ---- arithmetic that chooses its op ---------------------------------------------------------- */

/* div (self, other, rounding_mode?) */
bool lt_composite_div(lt_Call *c) {
  bool rounds = lt_given(c, 2), floors = rounds && !strcmp(c->arg[2].string, "floor");
  lt_OpId op = floors ? LT_OP_floor_divide : rounds ? LT_OP__trunc_divide : LT_OP__true_divide;
  lt_Dtype d = lt_result_type(c->arg, 2);
  if (rounds && !floors && (d == LT_float16 || d == LT_bfloat16)) {
    /* as in PyTorch, the quotient is rounded to the dtype first */
    lt_Tensor *quotient = lt_do_(LT_OP__true_divide, c->in_place, c->arg, 2, 0);
    return lt_result_set(c, lt_do_(LT_OP_trunc, c->in_place, LT_ARGS_(LT_ARG(quotient)), 0));
  }
  return lt_result_set(c, lt_do_(op, c->in_place, c->arg, 2, 0));
}

/* Returns a bound that no value of the dtype exceeds. */
static lt_Arg no_bound(lt_Dtype dtype, bool upper) {
  int64_t low, high;
  /* Of complex numbers the call is refused, whatever the bound. */
  if (lt_dtype_is_float(dtype) || lt_dtype_is_complex(dtype))
    return LT_ARG(upper ? (double)INFINITY : -(double)INFINITY);
  lt_dtype_range(dtype, &low, &high);
  if (dtype == LT_bool) return LT_ARG(lt_scalar_bool(upper));
  return LT_ARG(lt_scalar_int(upper ? high : low));
}

/* Replaces an integer bound outside an integer dtype's range by the nearest value of the dtype.
 * Fails when no value of the dtype is within the bound. */
static bool fit_bound(lt_Dtype dtype, const char *name, bool upper, lt_Arg *bound) {
  int64_t low, high;
  if (bound->kind != LT_ARG_SCALAR || bound->scalar.kind != LT_INTEGER ||
      lt_dtype_has_gradient(dtype))
    return true;
  int64_t v = bound->scalar.i;
  lt_dtype_range(dtype, &low, &high);
  if (upper ? v < low : v > high)
    return lt_fail("expected a value in the range of \"%s\" for argument '%s', got %lld",
                   lt_dtype_name(dtype), name, (long long)v);
  bound->scalar.i = v < low ? low : v > high ? high : v;
  return true;
}

/* clamp (self, min?, max?): a missing bound is replaced by one that no value exceeds; for
 * gradients, an infinite bound means that there is none. */
bool lt_composite_clamp(lt_Call *c) {
  lt_Arg low = c->arg[1], high = c->arg[2];
  if (!lt_given(c, 1) && !lt_given(c, 2)) return lt_fail("expected min, max or both, got neither");
  lt_Dtype dtype = lt_result_type(c->arg, 3);
  if (!lt_given(c, 1)) low = no_bound(dtype, false);
  if (!lt_given(c, 2)) high = no_bound(dtype, true);
  if (!fit_bound(dtype, "min", false, &low) || !fit_bound(dtype, "max", true, &high)) return false;
  return lt_result_set(c, lt_do_(LT_OP__clamp, c->in_place, LT_ARGS_(c->arg[0], low, high), 0));
}

/* round (self, decimals): scales by a power of 10, by which it multiplies or divides exactly. */
bool lt_composite_round(lt_Call *c) {
  int64_t decimals = c->arg[1].i;
  lt_Tensor *self = lt_in(c, 0);
  if (decimals == 0) return lt_result_set(c, lt_do_(LT_OP__round, c->in_place, c->arg, 1, 0));
  if (!lt_dtype_is_float(self->dtype))
    return lt_fail("expected a float dtype with argument 'decimals' = %lld, got \"%s\"",
                   (long long)decimals, lt_dtype_name(self->dtype));
  double factor = decimals > 0 ? pow(10, (double)decimals) : 1;
  double divisor = decimals < 0 ? pow(10, -(double)decimals) : 1;
  lt_Arg args[] = {c->arg[0], LT_ARG(factor), LT_ARG(divisor)};
  return lt_result_set(c, lt_do_(LT_OP__round_decimals, c->in_place, args, 3, 0));
}

/* hardtanh (self, min_val, max_val) */
bool lt_composite_hardtanh(lt_Call *c) {
  double low = lt_scalar_to_double(c->arg[1].scalar), high = lt_scalar_to_double(c->arg[2].scalar);
  if (low > high)
    return lt_fail("expected a number up to %s for argument 'min_val', got %s",
                   lt_scalar_text(c->arg[2].scalar), lt_scalar_text(c->arg[1].scalar));
  lt_Dtype dtype = lt_in(c, 0)->dtype;
  if (!fit_bound(dtype, "min_val", false, &c->arg[1]) ||
      !fit_bound(dtype, "max_val", true, &c->arg[2]))
    return false;
  return lt_result_set(c, lt_do_(LT_OP__hardtanh, c->in_place, c->arg, 3, 0));
}

/* Returns argument i, or the default: the largest or smallest finite number of self's dtype. */
static lt_Arg finite_or(const lt_Call *c, int i, double sign) {
  lt_Dtype d = lt_dtype_real(c->arg[0].tensor->dtype);
  if (lt_given(c, i)) return c->arg[i];
  return lt_dtype_is_float(d) ? LT_ARG(sign * lt_dtype_largest(d)) : LT_ARG((int64_t)0);
}

/* nan_to_num (self, nan, posinf?, neginf?) */
bool lt_composite_nan_to_num(lt_Call *c) {
  lt_Dtype d = c->arg[0].tensor->dtype;
  if (!lt_dtype_is_float(d) && !lt_dtype_is_complex(d))
    return lt_result_set(c, c->in_place ? lt_in(c, 0) : lt_do(clone, c->arg[0]));
  lt_Arg args[] = {c->arg[0], finite_or(c, 2, 1), finite_or(c, 3, -1), c->arg[1]};
  return lt_result_set(c, lt_do_(LT_OP__nan_to_num, c->in_place, args, 4, 0));
}

/* Returns the indices at which the condition is true, a tensor for each dimension. */
static bool indices_of_true(lt_Call *c) {
  lt_Tensor *condition = lt_in(c, 0);
  if (condition->ndim == 0) condition = lt_do(unsqueeze, LT_ARG(condition), LT_ARG(0));
  lt_Tensor *table = lt_do(nonzero, LT_ARG(condition));
  if (!table) return false;
  if (!lt_result_list_open(c, condition->ndim)) return false;
  for (int d = 0; d < condition->ndim; d++)
    if (!lt_result_list_add(c, lt_do(select, LT_ARG(table), LT_ARG(1), LT_ARG(d)))) return false;
  return true;
}

/* where (condition, self?, other?): a uint8 condition is true where it is not 0. */
bool lt_composite_where(lt_Call *c) {
  if (!lt_given(c, 1) && !lt_given(c, 2)) return indices_of_true(c);
  if (!lt_given(c, 1) || !lt_given(c, 2))
    return lt_fail("expected self and other, or the condition alone, got one of the two");
  lt_Arg condition = c->arg[0];
  if (lt_in(c, 0)->dtype == LT_uint8) condition = LT_ARG(lt_do(ne, condition, LT_ARG(0)));
  return lt_result_set(c, lt_do(_where, condition, c->arg[1], c->arg[2]));
}

/* ---- repetition ------------------------------------------------------------------------------ */

/* tile (self, dims): inserts a dimension of the number of repeats before each dimension by
 * expanding, without a copy, and merges both by one reshape, which copies. */
bool lt_composite_tile(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int n = c->arg[1].count, ndim = n > self->ndim ? n : self->ndim, room = 0;
  if (!lt_check_rank(ndim)) return false;
  int64_t wide[2 * LT_MAX_DIMS], repeated[2 * LT_MAX_DIMS], shape[LT_MAX_DIMS];
  bool changed = false;
  for (int d = 0; d < ndim; d++) {
    int64_t times = d < ndim - n ? 1 : c->arg[1].ints[d - (ndim - n)];
    int64_t size = d < ndim - self->ndim ? 1 : self->shape[d - (ndim - self->ndim)];
    if (times < 0)
      return lt_fail("expected integers of at least 0 for argument 'dims', got %lld",
                     (long long)times);
    if (__builtin_mul_overflow(size, times, &shape[d]))
      return lt_fail("cannot repeat: dim %d of the result does not fit int64", d + 1);
    if (times != 1 && size != 1) {
      wide[room] = 1;
      repeated[room++] = times;
    }
    wide[room] = size;
    repeated[room++] = size == 1 ? times : size;
    changed |= times != 1;
  }
  if (!lt_check_rank(room)) return false;
  lt_Tensor *seen = lt_do_reshape(self, room, wide);
  if (changed) seen = lt_do(expand, LT_ARG(seen), LT_INTS(repeated, room));
  return lt_result_set(c, lt_do_view(lt_do(copy, LT_ARG(seen)), ndim, shape));
}

/* Repeats each element of dim by a number: expands a new dimension behind dim. */
static lt_Tensor *repeat_equally(lt_Tensor *self, int64_t repeats, int dim) {
  int64_t shape[LT_MAX_DIMS];
  if (!lt_check_rank(self->ndim + 1)) return NULL;
  memcpy(shape, self->shape, sizeof(int64_t) * (size_t)(dim + 1));
  shape[dim + 1] = repeats;
  for (int d = dim + 1; d < self->ndim; d++) shape[d + 1] = self->shape[d];
  lt_Tensor *seen = lt_do(unsqueeze, LT_ARG(self), LT_ARG(dim + 1));
  seen = lt_do(copy, LT_ARG(lt_do(expand, LT_ARG(seen), LT_INTS(shape, self->ndim + 1))));
  return lt_do(flatten, LT_ARG(seen), LT_ARG(dim), LT_ARG(dim + 1));
}

/* Returns the sum of the counts; -1 with an error for a negative one. */
static int64_t total_of(lt_Tensor *counts) {
  lt_Scalar least = lt_scalar_int(0), sum;
  lt_Tensor *t = lt_do(sum, LT_ARG(counts));
  if (lt_tensor_is_meta(counts))
    return lt_fail("cannot compute the size of the result: a meta tensor has no data\nhint: pass "
                   "output_size"),
           -1;
  if (!t || !lt_tensor_item(t, &sum)) return -1;
  if (counts->numel) {
    lt_Tensor *smallest = lt_do(amin, LT_ARG(counts));
    if (!smallest || !lt_tensor_item(smallest, &least)) return -1;
  }
  if (least.i < 0)
    return lt_fail("expected integers of at least 0 for argument 'repeats', got %lld",
                   (long long)least.i),
           -1;
  return sum.i;
}

/* Returns the 1-based indices of elements that are repeated by these counts, `total` of them:
 * element p belongs to the element after all those whose runs end before p. */
static lt_Tensor *repeated_indices(lt_Tensor *counts, int64_t total) {
  int64_t room = total + 1;
  lt_Arg device = LT_ARG(lt_tensor_device(counts));
  lt_Tensor *ends = lt_do(cumsum, LT_ARG(counts), LT_ARG(0), lt_arg_dtype(LT_int64));
  lt_Tensor *marks = lt_do(zeros, LT_INTS(&room, 1), lt_arg_dtype(LT_int64), device);
  marks = lt_do_in_place(index_add, LT_ARG(marks), LT_ARG(0),
                         LT_ARG(lt_do(add, LT_ARG(ends), LT_ARG(1))),
                         LT_ARG(lt_do(ones_like, LT_ARG(ends))));
  lt_Tensor *ended = lt_do(cumsum, LT_ARG(marks), LT_ARG(0));
  return lt_do_in_place(add, LT_ARG(lt_do_slice(ended, 0, 0, total)), LT_ARG(1));
}

/* Checks a tensor of counts for n elements (-1: any number). */
static bool check_counts(const lt_Tensor *counts, int64_t n) {
  if (counts->dtype != LT_int64 && counts->dtype != LT_int32)
    return lt_fail("expected dtype \"int64\" or \"int32\" for argument 'repeats', got \"%s\"",
                   lt_dtype_name(counts->dtype));
  if (counts->ndim > 1 || (n >= 0 && counts->numel != 1 && counts->numel != n))
    return lt_fail("expected one number, or one for each of the %lld elements, for argument "
                   "'repeats', got shape %s",
                   (long long)n, lt_text(counts));
  return true;
}

/* repeat_interleave (self, repeats?, dim?, output_size?) */
bool lt_composite_repeat_interleave(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0), *counts = lt_given(c, 1) ? lt_in(c, 1) : self;
  int64_t dim = lt_given(c, 2) ? c->arg[2].i : 0, all = -1;
  if (!lt_given(c, 1) && (lt_given(c, 2) || !check_counts(counts, -1)))
    return lt_given(c, 2) ? lt_fail("expected no dim without repeats") : false;
  if (!counts && !lt_check_count(c, 1)) return false;
  if (lt_given(c, 1) && (!lt_given(c, 2) || self->ndim == 0)) self = lt_do_reshape(self, 1, &all);
  if (!self || (lt_given(c, 1) && (dim = lt_dim(dim, self->ndim)) < 0)) return false;
  if (!counts) return lt_result_set(c, repeat_equally(self, c->arg[1].i, (int)dim));
  if (lt_given(c, 1) && !check_counts(counts, self->shape[dim])) return false;
  counts = lt_do_reshape(counts, 1, &all);
  if (lt_given(c, 1)) counts = lt_do(expand, LT_ARG(counts), LT_INTS(&self->shape[dim], 1));
  if (!counts) return false;
  int64_t total = lt_given(c, 3) ? c->arg[3].i : total_of(counts);
  if (total < 0) return false;
  lt_Tensor *index = repeated_indices(counts, total);
  if (!lt_given(c, 1)) return lt_result_set(c, index);
  return lt_result_set(c, lt_do(index_select, LT_ARG(self), LT_ARG(dim), LT_ARG(index)));
}

/* ---- diagonals ------------------------------------------------------------------------------- */

/* Returns a matrix of zeros with the vector on a diagonal. In a contiguous matrix, the elements of
 * a diagonal are size + 1 apart. */
static lt_Tensor *diagonal_matrix(lt_Tensor *vector, int64_t diagonal) {
  if (diagonal > INT32_MAX || diagonal < -(int64_t)INT32_MAX)
    return lt_fail("expected a diagonal that fits 32 bits for argument 'diagonal', got %lld",
                   (long long)diagonal),
           NULL;
  int64_t n = vector->shape[0], out = diagonal < 0 ? -diagonal : diagonal, size = n + out;
  lt_Arg device = LT_ARG(lt_tensor_device(vector));
  lt_Tensor *matrix =
      lt_do(zeros, LT_INTS(((int64_t[]){size, size}), 2), lt_arg_dtype(vector->dtype), device);
  if (!matrix) return NULL;
  if (!lt_grad_enabled() || !lt_tensor_requires_grad(vector)) {
    lt_Tensor *place = lt_do(diagonal, LT_ARG(matrix), LT_ARG(diagonal));
    return lt_do_in_place(_copy, LT_ARG(place), LT_ARG(vector)) ? matrix : NULL;
  }
  int64_t first = (diagonal < 0 ? out * size : out) + LT_INDEX_BASE,
          last = first + (n - 1) * (size + 1);
  lt_Tensor *places =
      lt_do(_arange, LT_ARG(first), LT_ARG(last), LT_ARG(size + 1), lt_arg_dtype(LT_int64), device);
  lt_Tensor *flat = lt_do_view(matrix, 1, (int64_t[]){size * size});
  return lt_do_view(lt_do(index_copy, LT_ARG(flat), LT_ARG(0), LT_ARG(places), LT_ARG(vector)), 2,
                    matrix->shape);
}

/* diag (self, diagonal) */
bool lt_composite_diag(lt_Call *c) {
  if (!lt_check_ndim(c, 0, 1, 2)) return false;
  if (lt_in(c, 0)->ndim == 1) return lt_result_set(c, diagonal_matrix(lt_in(c, 0), c->arg[1].i));
  return lt_result_set(c, lt_do(copy, LT_ARG(lt_do(diagonal, c->arg[0], c->arg[1]))));
}

/* diag_embed (self, offset, dim1, dim2) */
bool lt_composite_diag_embed(lt_Call *c) {
  lt_Tensor *x = lt_in(c, 0);
  int64_t shape[LT_MAX_DIMS], offset = c->arg[1].i;
  if (!lt_check_ndim(c, 0, 1, LT_MAX_DIMS) || !lt_check_rank(x->ndim + 1)) return false;
  int a = lt_dim(c->arg[2].i, x->ndim + 1), b = lt_dim(c->arg[3].i, x->ndim + 1);
  if (a < 0 || b < 0) return false;
  if (a == b)
    return lt_fail("expected two different dims for dim1 and dim2, got dim %d twice", a + 1);
  if (offset < -INT32_MAX || offset > INT32_MAX)
    return lt_fail("expected at most 2147483647 for the size of argument 'offset', got %lld",
                   (long long)offset);
  int64_t size = x->shape[x->ndim - 1] + (offset < 0 ? -offset : offset);
  for (int d = 0, own = 0; d <= x->ndim; d++) shape[d] = d == a || d == b ? size : x->shape[own++];
  lt_Tensor *out = lt_do(zeros, LT_INTS(shape, x->ndim + 1), lt_arg_dtype(x->dtype),
                         LT_ARG(lt_tensor_device(x)));
  lt_Tensor *place = lt_do(diagonal, LT_ARG(out), c->arg[1], LT_ARG(a), LT_ARG(b));
  return lt_result_set(c, lt_do_in_place(_copy, LT_ARG(place), c->arg[0]) ? out : NULL);
}

/* _block_diag (blocks) */
bool lt_composite__block_diag(lt_Call *c) {
  lt_Tensor *const *blocks = c->arg[0].tensors;
  int n = c->arg[0].count;
  int64_t shape[2] = {0, 0}, top = 0, left = 0;
  for (int i = 0; i < n; i++) {
    if (blocks[i]->ndim != 2)
      return lt_fail("expected 2 dimensions for argument 'blocks[%d]', got %d", i + 1,
                     blocks[i]->ndim);
    shape[0] += blocks[i]->shape[0];
    shape[1] += blocks[i]->shape[1];
  }
  if (n == 0) return lt_fail("expected at least one tensor for argument 'blocks'");
  lt_Tensor *out = lt_do(zeros, LT_INTS(shape, 2), lt_arg_dtype(blocks[0]->dtype),
                         LT_ARG(lt_tensor_device(blocks[0])));
  for (int i = 0; i < n && out; i++) {
    lt_Tensor *rows = lt_do_slice(out, 0, top, blocks[i]->shape[0]);
    lt_Tensor *place = rows ? lt_do_slice(rows, 1, left, blocks[i]->shape[1]) : NULL;
    if (!lt_do_in_place(_copy, LT_ARG(place), LT_ARG(blocks[i]))) return false;
    top += blocks[i]->shape[0];
    left += blocks[i]->shape[1];
  }
  return lt_result_set(c, out);
}

bool lt_composite_trace(lt_Call *c) {
  if (!lt_check_ndim(c, 0, 2, 2)) return false;
  return lt_result_set(c, lt_do(sum, LT_ARG(lt_do(diagonal, c->arg[0]))));
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Computes the largest class label, at least 1. */
static bool count_classes(lt_Tensor *self, int64_t *classes) {
  lt_Scalar largest;
  if (lt_tensor_is_meta(self))
    return lt_fail("cannot compute num_classes: a meta tensor has no data\nhint: pass num_classes");
  if (self->numel == 0)
    return lt_fail("cannot compute num_classes: self is empty\nhint: pass num_classes");
  lt_Tensor *t = lt_do(amax, LT_ARG(self));
  if (!t || !lt_tensor_item(t, &largest)) return false;
  *classes = largest.i < 1 ? 1 : largest.i;
  return true;
}

/* one_hot (self, num_classes) */
bool lt_composite_one_hot(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  int64_t classes = c->arg[1].i, shape[LT_MAX_DIMS];
  if (!lt_check_index(c, 0) || !lt_check_rank(self->ndim + 1)) return false;
  if (classes == -1 && !count_classes(self, &classes)) return false;
  if (classes < 1)
    return lt_fail("expected an integer of at least 1 for argument 'num_classes', got %lld",
                   (long long)classes);
  memcpy(shape, self->shape, sizeof(int64_t) * (size_t)self->ndim);
  shape[self->ndim] = classes;
  lt_Tensor *zeros = lt_do(zeros, LT_INTS(shape, self->ndim + 1), lt_arg_dtype(LT_int64),
                           LT_ARG(lt_tensor_device(self)));
  lt_UserIndex before = lt_user_index_set((lt_UserIndex){lt_arg_name(c, 0), self->ndim});
  lt_Tensor *hot = lt_do_in_place(_scatter, LT_ARG(zeros), LT_ARG(-1),
                                  LT_ARG(lt_do(unsqueeze, LT_ARG(self), LT_ARG(-1))), LT_ARG(1));
  lt_user_index_set(before);
  return lt_result_set(c, hot);
}
