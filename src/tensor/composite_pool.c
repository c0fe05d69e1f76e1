/* composite_pool.c: PyTorch's pools of one to three dims by the ops of infer_windows.c: lists of
 * one number for all dims, default strides, the number of windows. */
#include "infer.h"

/* The windows of a pool of the last n dims of argument 0, and how many fit into each dim. */
typedef struct Pool {
  int n;
  int64_t size[3], kernel[3], stride[3], padding[3], dilation[3];
} Pool;

/* Checks that argument 0 is {C, sizes} or {N, C, sizes} with n sizes, of which no dim but N, or the
 * only one before the sizes, is empty. */
static bool check_input(const lt_Call *c, int n) {
  const lt_Tensor *x = lt_in(c, 0);
  if (x->ndim != n + 1 && x->ndim != n + 2)
    return lt_fail("expected %d or %d dimensions for argument '%s', got shape %s", n + 1, n + 2,
                   lt_arg_name(c, 0), lt_text(x));
  for (int d = 1; d < x->ndim; d++)
    if (x->shape[d] == 0)
      return lt_fail("expected no empty dimension but the batch for argument '%s', got shape %s",
                     lt_arg_name(c, 0), lt_text(x));
  return true;
}

/* Copies argument i, a list of one or n integers of at least `least`; those of `otherwise` when it
 * is not given, or empty. */
static bool read_list(const lt_Call *c, int i, int n, int64_t least, const int64_t *otherwise,
                      int64_t *list) {
  const lt_Arg *a = &c->arg[i];
  int count = lt_given(c, i) ? a->count : 0;
  bool none = count == 0 && otherwise;
  if (!none && count != 1 && count != n)
    return lt_fail(n == 1 ? "expected %d number for argument '%s', got %d numbers"
                          : "expected 1 or %d numbers for argument '%s', got %d numbers",
                   n, lt_arg_name(c, i), count);
  for (int d = 0; d < n; d++) {
    list[d] = none ? otherwise[d] : a->ints[count == 1 ? 0 : d];
    if (list[d] < least)
      return lt_fail("expected numbers of at least %lld for argument '%s', got %lld",
                     (long long)least, lt_arg_name(c, i), (long long)list[d]);
    if (list[d] > INT32_MAX) /* products of two do not overflow */
      return lt_fail("expected numbers up to 2147483647 for argument '%s', got %lld",
                     lt_arg_name(c, i), (long long)list[d]);
  }
  return true;
}

/* Returns the number of windows in a dim, of which there may be none. */
static int64_t count_windows(const Pool *p, int d, int64_t size, bool ceil) {
  int64_t room = size + 2 * p->padding[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
  if (room < 0 && !(ceil && room + p->stride[d] > 0)) return 0;
  int64_t count = (ceil ? room + p->stride[d] - 1 : room) / p->stride[d] + 1;
  /* the last window begins inside of the input or its left padding */
  return ceil && (count - 1) * p->stride[d] >= size + p->padding[d] ? count - 1 : count;
}

/* Reads the lists kernel_size, stride? and padding, arguments 1 to 3, and dilation in argument
 * `dilation`; 0 stands for lists that the op does not have. Computes p->size. */
static bool read_windows(const lt_Call *c, int n, int kernel, int padding, int dilation, bool ceil,
                         Pool *p) {
  static const int64_t zeros[3] = {0}, ones[3] = {1, 1, 1};
  const lt_Tensor *x = lt_in(c, 0);
  p->n = n;
  memcpy(p->padding, zeros, sizeof zeros);
  memcpy(p->dilation, ones, sizeof ones);
  if (!check_input(c, n)) return false;
  if (c->arg[kernel].count == 0)
    return lt_fail("expected a size for argument '%s', got an empty list", lt_arg_name(c, kernel));
  if (!read_list(c, kernel, n, 1, NULL, p->kernel) ||
      !read_list(c, kernel + 1, n, 1, p->kernel, p->stride) ||
      (padding && !read_list(c, padding, n, 0, zeros, p->padding)) ||
      (dilation && !read_list(c, dilation, n, 1, ones, p->dilation)))
    return false;
  for (int d = 0; d < n; d++) {
    int64_t size = x->shape[x->ndim - n + d];
    int64_t reach = (p->kernel[d] - 1) * p->dilation[d] + 1;
    if (p->padding[d] > reach / 2)
      return lt_fail("expected at most half of the kernel's size for argument '%s', got %lld for a "
                     "kernel of size %lld",
                     lt_arg_name(c, padding), (long long)p->padding[d], (long long)reach);
    p->size[d] = count_windows(p, d, size, ceil);
    if (p->size[d] < 1)
      return lt_fail("cannot place a window of size %lld: dim %d of the input has %lld elements, "
                     "%lld with padding",
                     (long long)reach, x->ndim - n + d + 1, (long long)size,
                     (long long)(size + 2 * p->padding[d]));
  }
  return true;
}

static bool check_real(const lt_Call *c) {
  lt_Dtype dtype = lt_in(c, 0)->dtype;
  if (dtype != LT_bool && !lt_dtype_is_complex(dtype)) return true;
  return lt_fail("expected a real dtype other than bool for argument '%s', got %s",
                 lt_arg_name(c, 0), lt_dtype_name(dtype));
}

/* ---- maxima ---------------------------------------------------------------------------------- */

/* (input, kernel_size, stride?, padding, dilation, ceil_mode, return_indices); `both`: with
 * indices, whatever the last argument is */
static bool max_pool(lt_Call *c, int n, bool both) {
  Pool p;
  lt_Tensor *out[2];
  lt_Tensor *x = lt_in(c, 0);
  both = both || c->arg[6].b;
  if (!check_real(c) || !read_windows(c, n, 1, 3, 4, c->arg[5].b, &p)) return false;
  lt_Arg args[] = {LT_ARG(x),
                   LT_INTS(p.size, n),
                   LT_INTS(p.kernel, n),
                   LT_INTS(p.stride, n),
                   LT_INTS(p.padding, n),
                   LT_INTS(p.dilation, n)};
  if (!both && (lt_thread()->grad_off || !lt_tensor_requires_grad(x)))
    return lt_result_set(c, lt_do_(LT_OP__max_values, false, args, 6, 0));
  if (!both) return lt_result_set(c, lt_do_(LT_OP__max_pool, false, args, 6, 0));
  return lt_do_all(LT_OP__max_pool, args, 6, 2, out) && lt_result_set_two(c, out[0], out[1]);
}
bool lt_composite_max_pool1d(lt_Call *c) { return max_pool(c, 1, false); }
bool lt_composite_max_pool2d(lt_Call *c) { return max_pool(c, 2, false); }
bool lt_composite_max_pool3d(lt_Call *c) { return max_pool(c, 3, false); }
bool lt_composite_max_pool1d_with_indices(lt_Call *c) { return max_pool(c, 1, true); }
bool lt_composite_max_pool2d_with_indices(lt_Call *c) { return max_pool(c, 2, true); }
bool lt_composite_max_pool3d_with_indices(lt_Call *c) { return max_pool(c, 3, true); }

/* ---- averages and norms ---------------------------------------------------------------------- */

/* Returns the averages of windows, or their sums divided by `divisor` unless it is 0. */
static lt_Tensor *average(lt_Tensor *x, const Pool *p, bool count_padding, int64_t divisor) {
  return lt_do(_avg_pool, LT_ARG(x), LT_INTS(p->size, p->n), LT_INTS(p->kernel, p->n),
               LT_INTS(p->stride, p->n), LT_INTS(p->padding, p->n), LT_ARG(count_padding),
               LT_ARG(divisor));
}

/* Computes the averages of windows that are all of the input in the last n dims. */
static bool mean_of_all(lt_Call *c, int n) {
  static const int64_t last[3] = {-1, -2, -3};
  return lt_result_set(c, lt_do(mean, c->arg[0], LT_INTS(last, n), LT_ARG((bool)true)));
}

/* Returns whether there is one window, which is all of a float input. */
static bool is_whole(const lt_Tensor *x, const Pool *p) {
  bool whole = lt_dtype_is_float(x->dtype);
  for (int d = 0; d < p->n; d++)
    whole = whole && p->size[d] == 1 && p->padding[d] == 0 &&
            p->kernel[d] == x->shape[x->ndim - p->n + d];
  return whole;
}

/* (input, kernel_size, stride?, padding, ceil_mode, count_include_pad, divisor_override?), without
 * the last argument for n = 1 */
static bool avg_pool(lt_Call *c, int n) {
  Pool p;
  int64_t divisor = n > 1 && lt_given(c, 6) ? c->arg[6].i : 0;
  if (!check_real(c)) return false;
  if (n > 1 && lt_given(c, 6) && divisor == 0)
    return lt_fail("expected a number other than 0 for argument '%s', got 0", lt_arg_name(c, 6));
  if (!read_windows(c, n, 1, 3, 0, c->arg[4].b, &p)) return false;
  if (divisor == 0 && is_whole(lt_in(c, 0), &p)) return mean_of_all(c, n);
  return lt_result_set(c, average(lt_in(c, 0), &p, c->arg[5].b, divisor));
}
bool lt_composite_avg_pool1d(lt_Call *c) { return avg_pool(c, 1); }
bool lt_composite_avg_pool2d(lt_Call *c) { return avg_pool(c, 2); }
bool lt_composite_avg_pool3d(lt_Call *c) { return avg_pool(c, 3); }

/* Returns sums of powers, so that the gradient of a norm is 0, not NaN, where a sum is 0. */
static lt_Tensor *positive(lt_Tensor *sum) {
  if (lt_thread()->grad_off || !sum || !lt_tensor_requires_grad(sum)) return sum;
  lt_Tensor *size = lt_do(relu, LT_ARG(lt_do(abs, LT_ARG(sum))));
  return lt_do(mul, LT_ARG(lt_do(sign, LT_ARG(sum))), LT_ARG(size));
}

/* (input, norm_type, kernel_size, stride?, ceil_mode): the sums of x^p to the power 1 / p. A window
 * that ceil_mode places across the border counts as if it were full. */
static bool lp_pool(lt_Call *c, int n) {
  Pool p;
  double power = c->arg[1].f;
  bool ceil = c->arg[4].b;
  if (!lt_check_float(c, 0) || !read_windows(c, n, 2, 0, 0, ceil, &p)) return false;
  lt_Tensor *sum = average(lt_do(pow, c->arg[0], LT_ARG(power)), &p, true, ceil ? 0 : (int64_t)1);
  if (ceil) {
    int64_t all = 1;
    for (int d = 0; d < n; d++) all *= p.kernel[d];
    sum = lt_do(mul, LT_ARG(sum), LT_ARG(all));
  }
  return lt_result_set(c, lt_do(pow, LT_ARG(positive(sum)), LT_ARG(1 / power)));
}
bool lt_composite_lp_pool1d(lt_Call *c) { return lp_pool(c, 1); }
bool lt_composite_lp_pool2d(lt_Call *c) { return lp_pool(c, 2); }
bool lt_composite_lp_pool3d(lt_Call *c) { return lp_pool(c, 3); }

/* ---- adaptive pools -------------------------------------------------------------------------- */

/* Reads output_size, argument 1: one size for all n dims, or a list. A dim keeps its size where the
 * list has LT_GAP, or ends before it. */
static bool read_sizes(const lt_Call *c, int n, Pool *p) {
  const lt_Tensor *x = lt_in(c, 0);
  const lt_Arg *a = &c->arg[1];
  *p = (Pool){.n = n, .stride = {1, 1, 1}, .dilation = {1, 1, 1}};
  if (!lt_check_float(c, 0) || !check_input(c, n)) return false;
  bool list = a->kind == LT_ARG_INTS;
  if (list && a->count > n)
    return lt_fail("expected an integer or a list of %d for argument '%s', got %d numbers", n,
                   lt_arg_name(c, 1), a->count);
  for (int d = 0; d < n; d++) {
    int64_t size = !list ? a->i : d < a->count ? a->ints[d] : LT_GAP;
    if (size < 0 && size != LT_GAP)
      return lt_fail("expected sizes from 0 on for argument '%s', got %lld", lt_arg_name(c, 1),
                     (long long)size);
    p->size[d] = size == LT_GAP ? x->shape[x->ndim - n + d] : size;
  }
  return true;
}

/* (input, output_size, return_indices); `both`: with indices, whatever the last argument is */
static bool adaptive_max_pool(lt_Call *c, int n, bool both) {
  Pool p;
  lt_Tensor *out[2];
  if (!read_sizes(c, n, &p)) return false;
  lt_Arg args[] = {c->arg[0],
                   LT_INTS(p.size, n),
                   LT_INTS(p.kernel, n),
                   LT_INTS(p.stride, n),
                   LT_INTS(p.padding, n),
                   LT_INTS(p.dilation, n)};
  if (!both && !c->arg[2].b) return lt_result_set(c, lt_do_(LT_OP__max_pool, false, args, 6, 0));
  return lt_do_all(LT_OP__max_pool, args, 6, 2, out) && lt_result_set_two(c, out[0], out[1]);
}
bool lt_composite_adaptive_max_pool1d(lt_Call *c) { return adaptive_max_pool(c, 1, false); }
bool lt_composite_adaptive_max_pool2d(lt_Call *c) { return adaptive_max_pool(c, 2, false); }
bool lt_composite_adaptive_max_pool3d(lt_Call *c) { return adaptive_max_pool(c, 3, false); }
bool lt_composite_adaptive_max_pool1d_with_indices(lt_Call *c) {
  return adaptive_max_pool(c, 1, true);
}
bool lt_composite_adaptive_max_pool2d_with_indices(lt_Call *c) {
  return adaptive_max_pool(c, 2, true);
}
bool lt_composite_adaptive_max_pool3d_with_indices(lt_Call *c) {
  return adaptive_max_pool(c, 3, true);
}

/* (input, output_size): windows of equal sizes are those of a usual pool, and one window is a
 * mean. */
static bool adaptive_avg_pool(lt_Call *c, int n) {
  Pool p;
  if (!read_sizes(c, n, &p)) return false;
  const lt_Tensor *x = lt_in(c, 0);
  bool whole = true, equal = true;
  for (int d = 0; d < n; d++) {
    int64_t size = x->shape[x->ndim - n + d];
    whole = whole && p.size[d] == 1;
    equal = equal && p.size[d] > 0 && size > 0 && size % p.size[d] == 0;
  }
  if (whole) return mean_of_all(c, n);
  for (int d = 0; d < n && equal; d++)
    p.kernel[d] = p.stride[d] = x->shape[x->ndim - n + d] / p.size[d];
  return lt_result_set(c, average(lt_in(c, 0), &p, false, 0));
}
bool lt_composite_adaptive_avg_pool1d(lt_Call *c) { return adaptive_avg_pool(c, 1); }
bool lt_composite_adaptive_avg_pool2d(lt_Call *c) { return adaptive_avg_pool(c, 2); }
bool lt_composite_adaptive_avg_pool3d(lt_Call *c) { return adaptive_avg_pool(c, 3); }
