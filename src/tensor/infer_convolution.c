/* infer_convolution.c: convolutions and batch norm. */
#include "infer.h"

/* ---- convolutions ---------------------------------------------------------------------------- */

/* Checks that argument i is a list of `n` integers of at least `least`. */
static bool check_list(const lt_Call *c, int i, int n, int64_t least) {
  const lt_Arg *a = &c->arg[i];
  if (a->count != n)
    return lt_fail("expected %d integer%s for argument '%s', got %d", n, n == 1 ? "" : "s",
                   lt_arg_name(c, i), a->count);
  for (int d = 0; d < n; d++)
    if (a->ints[d] < least || a->ints[d] > INT32_MAX)
      return lt_fail("expected integers of at least %lld for argument '%s', got %lld",
                     (long long)least, lt_arg_name(c, i), (long long)a->ints[d]);
  return true;
}

/* Checks the lists size, stride, padding, dilation and the int groups, which begin at argument
 * `first`. */
static bool check_lists(const lt_Call *c, int first, int n) {
  if (!check_list(c, first, n, 0) || !check_list(c, first + 1, n, 1) ||
      !check_list(c, first + 2, n, 0) || !check_list(c, first + 3, n, 1))
    return false;
  return c->arg[first + 4].i >= 1 ||
         lt_fail("expected an integer of at least 1 for argument 'groups'"
                 ", got %lld",
                 (long long)c->arg[first + 4].i);
}

/* Checks that a bias, unless it is nil, has one element for each of `channels`. */
static bool check_bias(const lt_Call *c, int64_t channels) {
  const lt_Tensor *bias = lt_in(c, 2);
  if (!bias) return true;
  if (bias->ndim != 1 || bias->shape[0] != channels)
    return lt_fail(
        "expected shape {%lld}, one number for each output channel, for argument 'bias', "
        "got %s",
        (long long)channels, lt_text(bias));
  return lt_check_same_dtype(c, 0, 2);
}

/* Sets the spec of a result {batch, channels, size...}. */
static void spec(lt_Call *c, int64_t batch, int64_t channels, const lt_Arg *size) {
  int64_t shape[LT_MAX_DIMS] = {batch, channels};
  for (int d = 0; d < size->count; d++) shape[2 + d] = size->ints[d];
  lt_spec(c, 0, lt_in(c, 0)->dtype, 2 + size->count, shape);
}

/* Checks what input and weight have in common; `n` is the number of dimensions of the kernel. */
static bool check_operands(const lt_Call *c, int *n) {
  const lt_Tensor *x = lt_in(c, 0), *w = lt_in(c, 1);
  if (!lt_check_ndim(c, 0, 3, 5) || !lt_check_ndim(c, 1, x->ndim, x->ndim) ||
      !lt_check_factors(c, 0, 1) || !check_lists(c, 3, x->ndim - 2))
    return false;
  *n = x->ndim - 2;
  int64_t groups = c->arg[7].i;
  if (w->shape[0] >= groups && w->shape[0] % groups == 0) return true;
  return lt_fail("expected a multiple of groups, %lld, as first size of argument 'weight', got %s",
                 (long long)groups, lt_text(w));
}

/* _convolution (input, weight, bias?, size, stride, padding, dilation, groups) */
bool lt_infer_convolution(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0), *w = lt_in(c, 1);
  int64_t groups = c->arg[7].i;
  int n;
  if (!check_operands(c, &n)) return false;
  if (groups == 1 && x->shape[1] != w->shape[1])
    return lt_fail("expected %lld channels, those of weight, for argument 'input', got shape %s",
                   (long long)w->shape[1], lt_text(x));
  if (x->shape[1] % groups != 0 || x->shape[1] / groups != w->shape[1])
    return lt_fail(
        "expected %lld channels (%lld groups of weight's %lld) for argument 'input', got "
        "shape %s",
        (long long)(groups * w->shape[1]), (long long)groups, (long long)w->shape[1], lt_text(x));
  if (!check_bias(c, w->shape[0])) return false;
  spec(c, x->shape[0], w->shape[0], &c->arg[3]);
  return true;
}

/* _convolution_transpose (input, weight, bias?, size, stride, padding, dilation, groups) */
bool lt_infer_convolution_transpose(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0), *w = lt_in(c, 1);
  int n;
  if (!check_operands(c, &n)) return false;
  if (x->shape[1] != w->shape[0])
    return lt_fail("expected weight's %lld channels for argument 'input', got shape %s",
                   (long long)w->shape[0], lt_text(x));
  int64_t channels = w->shape[1] * c->arg[7].i;
  if (!check_bias(c, channels)) return false;
  spec(c, x->shape[0], channels, &c->arg[3]);
  return true;
}

/* _convolution_weight (grad, input, size, stride, padding, dilation, groups) */
bool lt_infer_convolution_weight(lt_Call *c) {
  const lt_Tensor *dy = lt_in(c, 0), *x = lt_in(c, 1);
  if (!lt_check_ndim(c, 1, 3, 5) || !lt_check_ndim(c, 0, x->ndim, x->ndim) ||
      !lt_check_factors(c, 0, 1) || !check_lists(c, 2, x->ndim - 2))
    return false;
  int64_t groups = c->arg[6].i;
  if (dy->shape[0] != x->shape[0] || dy->shape[1] % groups != 0 || x->shape[1] % groups != 0)
    return lt_fail(
        "expected one batch size and multiples of %lld channels for arguments 'grad' and "
        "'input', got %s and %s",
        (long long)groups, lt_text(dy), lt_text(x));
  spec(c, dy->shape[1], x->shape[1] / groups, &c->arg[2]);
  return true;
}

/* ---- batch norm ------------------------------------------------------------------------------ */

/* Checks that argument i, unless it is nil, has one number for each of the channels, in input's
 * dtype or, where that has 16 bits, float32. */
static bool check_channels(const lt_Call *c, int i, const lt_Tensor *x) {
  const lt_Tensor *t = lt_in(c, i);
  if (!t) return true;
  if (t->ndim != 1 || t->shape[0] != x->shape[1])
    return lt_fail("expected shape {%lld}, one number for each channel, for argument '%s', got %s",
                   (long long)x->shape[1], lt_arg_name(c, i), lt_text(t));
  return t->dtype == lt_dtype_accumulate(x->dtype) || lt_check_same_dtype(c, 0, i);
}

/* _batch_norm (input, weight?, bias?, running_mean?, running_var?, training, eps): result, mean,
 * var. The statistics have the dtype in which sums are accumulated. */
bool lt_infer_batch_norm(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0);
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, 2, LT_MAX_DIMS)) return false;
  for (int i = 1; i < 5; i++)
    if (!check_channels(c, i, x)) return false;
  for (int i = 3; i < 5; i++)
    if (!c->arg[5].b && !lt_in(c, i))
      return lt_fail("expected a tensor for argument '%s' when 'training' is false, got nil",
                     lt_arg_name(c, i));
  lt_Dtype wide = lt_dtype_accumulate(x->dtype);
  lt_spec_like(c, 0, x);
  lt_spec(c, 1, wide, 1, &x->shape[1]);
  lt_spec(c, 2, wide, 1, &x->shape[1]);
  return true;
}

/* _batch_norm_backward (grad, input, weight?, mean, var, training, eps): input, weight,
 * bias */
bool lt_infer_batch_norm_backward(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 1);
  if (!lt_check_float(c, 1) || !lt_check_ndim(c, 1, 2, LT_MAX_DIMS) ||
      !lt_check_same_shape(c, 0, 1))
    return false;
  for (int i = 2; i < 5; i++)
    if (!check_channels(c, i, x)) return false;
  lt_Dtype wide = lt_dtype_accumulate(x->dtype);
  lt_spec_like(c, 0, x);
  lt_spec(c, 1, wide, 1, &x->shape[1]);
  lt_spec(c, 2, wide, 1, &x->shape[1]);
  return true;
}

/* Checks the number of groups, argument i, of the channels of x. */
static bool check_groups(const lt_Call *c, int i, const lt_Tensor *x) {
  int64_t groups = c->arg[i].i;
  if (groups > 0 && x->shape[1] % groups == 0) return true;
  return lt_fail("expected a divisor of the %lld channels for argument '%s', got %lld",
                 (long long)x->shape[1], lt_arg_name(c, i), (long long)groups);
}

/* _group_norm (input, weight?, bias?, groups, eps): result, and the mean and variance of each group
 * of each instance, in the dtype in which sums are accumulated. */
bool lt_infer_group_norm(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0);
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, 2, LT_MAX_DIMS) || !check_groups(c, 3, x))
    return false;
  for (int i = 1; i < 3; i++)
    if (!check_channels(c, i, x)) return false;
  lt_Dtype wide = lt_dtype_accumulate(x->dtype);
  lt_spec_like(c, 0, x);
  for (int i = 1; i < 3; i++) lt_spec(c, i, wide, 2, (int64_t[]){x->shape[0], c->arg[3].i});
  return true;
}

/* _group_norm_backward (grad, input, weight?, mean, var, groups, eps): input, weight, bias */
bool lt_infer_group_norm_backward(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 1);
  if (!lt_check_float(c, 1) || !lt_check_ndim(c, 1, 2, LT_MAX_DIMS) ||
      !lt_check_same_shape(c, 0, 1) || !check_groups(c, 5, x) || !check_channels(c, 2, x))
    return false;
  for (int i = 3; i < 5; i++)
    if (lt_in(c, i)->numel != x->shape[0] * c->arg[5].i)
      return lt_fail("expected %lld numbers for argument '%s', got %s",
                     (long long)(x->shape[0] * c->arg[5].i), lt_arg_name(c, i),
                     lt_text(lt_in(c, i)));
  lt_Dtype wide = lt_dtype_accumulate(x->dtype);
  lt_spec_like(c, 0, x);
  lt_spec(c, 1, wide, 1, &x->shape[1]);
  lt_spec(c, 2, wide, 1, &x->shape[1]);
  return true;
}
