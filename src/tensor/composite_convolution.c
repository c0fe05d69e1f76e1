/* composite_convolution.c: PyTorch's convolutions and batch norm by the ops of infer_convolution.c:
 * sizes of results, padding by name, inputs without a batch, complex numbers. */
#include "infer.h"

/* The arguments of a convolution of n dimensions, with lists of n. */
typedef struct Convolution {
  int n;
  lt_Tensor *input, *weight, *bias;
  bool batched;
  int64_t size[3], stride[3], padding[3], dilation[3], groups;
} Convolution;

/* Copies argument i, a list of one or n integers of at least `least`. */
static bool read_list(const lt_Call *c, int i, int n, int64_t least, int64_t *list) {
  const lt_Arg *a = &c->arg[i];
  if (a->count != 1 && a->count != n)
    return lt_fail("expected an integer or %d of them for argument '%s', got %d", n,
                   lt_arg_name(c, i), a->count);
  for (int d = 0; d < n; d++) {
    list[d] = a->ints[a->count == 1 ? 0 : d];
    if (list[d] < least || list[d] > INT32_MAX)
      return lt_fail("expected integers of at least %lld for argument '%s', got %lld",
                     (long long)least, lt_arg_name(c, i), (long long)list[d]);
  }
  return true;
}

/* Checks the dimensions of input (argument 0) and weight (argument 1), and adds a batch of one to
 * an input without a batch. */
static bool read_operands(const lt_Call *c, int n, Convolution *v) {
  const lt_Tensor *x = lt_in(c, 0), *w = lt_in(c, 1);
  v->n = n;
  v->input = lt_in(c, 0);
  v->weight = lt_in(c, 1);
  v->bias = lt_in(c, 2);
  if (!lt_check_ndim(c, 0, n + 1, n + 2) || !lt_check_ndim(c, 1, n + 2, n + 2)) return false;
  for (int d = 0; d < n; d++)
    if (w->shape[2 + d] < 1)
      return lt_fail("expected a kernel without sizes of 0 for argument 'weight', got %s",
                     lt_text(w));
  v->batched = x->ndim == n + 2;
  if (v->batched) return true;
  v->input = lt_do(unsqueeze, LT_ARG(v->input), LT_ARG(0));
  return v->input != NULL;
}

static bool check_groups(const Convolution *v) {
  return v->groups >= 1 || lt_fail("expected an integer of at least 1 for argument 'groups', got "
                                   "%lld",
                                   (long long)v->groups);
}

/* Runs the op on real tensors. */
static lt_Tensor *real_form(const Convolution *v, lt_OpId op, lt_Tensor *input, lt_Tensor *weight,
                            lt_Tensor *bias) {
  int n = v->n;
  lt_Arg args[] = {LT_ARG(input),           LT_ARG(weight),        bias ? LT_ARG(bias) : LT_NIL,
                   LT_INTS(v->size, n),     LT_INTS(v->stride, n), LT_INTS(v->padding, n),
                   LT_INTS(v->dilation, n), lt_arg_int(v->groups)};
  return lt_do_(op, false, args, 8, 0);
}

/* Runs the op on complex tensors with three real convolutions (Gauss): for x = p + iq, w = r + is,
 * a = p r, b = q s and c = (p + q)(r + s), x w = a - b + i(c - a - b). */
static lt_Tensor *complex_form(const Convolution *v, lt_OpId op) {
  lt_Tensor *part[3][3] = {{NULL}}, *operand[3] = {v->input, v->weight, v->bias};
  for (int i = 0; i < 3 && operand[i]; i++) {
    if (operand[i]->dtype != v->input->dtype) /* reports the two dtypes */
      return real_form(v, op, v->input, v->weight, v->bias);
    part[i][0] = lt_do(real, LT_ARG(operand[i]));
    part[i][1] = lt_do(imag, LT_ARG(operand[i]));
    part[i][2] = lt_do(add, LT_ARG(part[i][0]), LT_ARG(part[i][1]));
  }
  lt_Tensor *a = real_form(v, op, part[0][0], part[1][0], part[2][0]);
  lt_Tensor *b = real_form(v, op, part[0][1], part[1][1], NULL);
  lt_Tensor *c = real_form(v, op, part[0][2], part[1][2], part[2][2]);
  lt_Tensor *imag = lt_do(sub, LT_ARG(lt_do(sub, LT_ARG(c), LT_ARG(a))), LT_ARG(b));
  return lt_do(complex, LT_ARG(lt_do(sub, LT_ARG(a), LT_ARG(b))), LT_ARG(imag));
}

/* Runs the op and sets the result. */
static bool run(lt_Call *c, const Convolution *v, lt_OpId op) {
  lt_Tensor *out = lt_dtype_is_complex(v->input->dtype)
                       ? complex_form(v, op)
                       : real_form(v, op, v->input, v->weight, v->bias);
  if (out && !v->batched) out = lt_do(squeeze, LT_ARG(out), LT_ARG(0));
  return lt_result_set(c, out);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* Computes padding and size of the result from argument i: integers, 'valid' or 'same'. With
 * 'same', an odd total has the larger half at the end. */
static bool read_padding(const lt_Call *c, int i, Convolution *v) {
  const lt_Arg *a = &c->arg[i];
  bool named = a->kind == LT_ARG_STRING, same = named && !strcmp(a->string, "same");
  memset(v->padding, 0, sizeof v->padding);
  if (!named && !read_list(c, i, v->n, 0, v->padding)) return false;
  for (int d = 0; d < v->n; d++) {
    int64_t in = v->input->shape[2 + d], kernel = v->weight->shape[2 + d];
    int64_t reach = v->dilation[d] * (kernel - 1), room = in + 2 * v->padding[d] - reach - 1;
    if (same && v->stride[d] != 1)
      return lt_fail("cannot use padding 'same' with a stride of %lld: it is only defined for 1",
                     (long long)v->stride[d]);
    if (same) v->padding[d] = reach / 2;
    if (!same && room < 0)
      return lt_fail(
          "cannot move a kernel of shape %s over input %s: in dimension %d, its reach of "
          "%lld exceeds the padded size %lld",
          lt_shape_text(v->n, v->weight->shape + 2), lt_text(v->input), d + 2 + v->batched,
          (long long)(reach + 1), (long long)(in + 2 * v->padding[d]));
    v->size[d] = same ? in : room / v->stride[d] + 1;
  }
  return true;
}

/* conv1d, conv2d, conv3d (input, weight, bias?, stride, padding, dilation, groups) */
static bool convolve(lt_Call *c, int n) {
  Convolution v = {.groups = c->arg[6].i};
  return read_operands(c, n, &v) && check_groups(&v) && read_list(c, 3, n, 1, v.stride) &&
         read_list(c, 5, n, 1, v.dilation) && read_padding(c, 4, &v) &&
         run(c, &v, LT_OP__convolution);
}

bool lt_composite_conv1d(lt_Call *c) { return convolve(c, 1); }
bool lt_composite_conv2d(lt_Call *c) { return convolve(c, 2); }
bool lt_composite_conv3d(lt_Call *c) { return convolve(c, 3); }

/* Computes the size of the result: the smallest input of a convolution with this output, plus
 * output_padding, argument i. */
static bool read_output_padding(const lt_Call *c, int i, Convolution *v) {
  int64_t more[3];
  if (!read_list(c, i, v->n, 0, more)) return false;
  for (int d = 0; d < v->n; d++) {
    int64_t in = v->input->shape[2 + d], kernel = v->weight->shape[2 + d];
    if (more[d] >= v->stride[d] && more[d] >= v->dilation[d])
      return lt_fail("expected integers less than stride or dilation for argument '%s', got %lld "
                     "with stride %lld and dilation %lld",
                     lt_arg_name(c, i), (long long)more[d], (long long)v->stride[d],
                     (long long)v->dilation[d]);
    v->size[d] =
        (in - 1) * v->stride[d] - 2 * v->padding[d] + v->dilation[d] * (kernel - 1) + 1 + more[d];
    if (v->size[d] < 1)
      return lt_fail("cannot compute a result of size %lld in dimension %d: input %s, weight %s",
                     (long long)v->size[d], d + 2 + v->batched, lt_text(v->input),
                     lt_text(v->weight));
  }
  return true;
}

/* conv_transpose1d, 2d, 3d (input, weight, bias?, stride, padding, output_padding, groups,
 * dilation) */
static bool convolve_transpose(lt_Call *c, int n) {
  Convolution v = {.groups = c->arg[6].i};
  return read_operands(c, n, &v) && check_groups(&v) && read_list(c, 3, n, 1, v.stride) &&
         read_list(c, 4, n, 0, v.padding) && read_list(c, 7, n, 1, v.dilation) &&
         read_output_padding(c, 5, &v) && run(c, &v, LT_OP__convolution_transpose);
}

bool lt_composite_conv_transpose1d(lt_Call *c) { return convolve_transpose(c, 1); }
bool lt_composite_conv_transpose2d(lt_Call *c) { return convolve_transpose(c, 2); }
bool lt_composite_conv_transpose3d(lt_Call *c) { return convolve_transpose(c, 3); }

/* convolution (input, weight, bias?, stride, padding, dilation, transposed, output_padding,
 * groups) */
bool lt_composite_convolution(lt_Call *c) {
  const lt_Tensor *w = lt_in(c, 1);
  if (!lt_check_ndim(c, 1, 3, 5)) return false;
  Convolution v = {.groups = c->arg[8].i};
  int n = w->ndim - 2;
  if (!read_operands(c, n, &v) || !check_groups(&v) || !read_list(c, 3, n, 1, v.stride) ||
      !read_list(c, 5, n, 1, v.dilation))
    return false;
  if (!c->arg[6].b) return read_padding(c, 4, &v) && run(c, &v, LT_OP__convolution);
  return read_list(c, 4, n, 0, v.padding) && read_output_padding(c, 7, &v) &&
         run(c, &v, LT_OP__convolution_transpose);
}

/* ---- batch norm ------------------------------------------------------------------------------ */

/* Updates a running statistic (NULL: none): (1 - momentum) running + momentum value, computed in
 * value's dtype. */
static bool update(lt_Tensor *running, lt_Tensor *value, double momentum) {
  if (!running || !value) return value != NULL;
  lt_Tensor *before = running;
  if (running->dtype != value->dtype)
    before = lt_do(to, LT_ARG(running), LT_NIL, lt_arg_dtype(value->dtype));
  lt_Tensor *kept = lt_do(mul, LT_ARG(before), LT_ARG(1 - momentum));
  lt_Tensor *added = lt_do(mul, LT_ARG(value), LT_ARG(momentum));
  lt_Tensor *after = lt_do(add, LT_ARG(kept), LT_ARG(added));
  return lt_do_in_place(_copy, LT_ARG(running), LT_ARG(after)) != NULL;
}

/* Updates the running statistics from mean and variance of n elements in each channel. Not recorded
 * for gradients. */
static bool update_both(lt_Call *c, lt_Tensor *mean, lt_Tensor *var, int64_t n) {
  bool before = lt_grad_set_enabled(false);
  bool ok = update(lt_in(c, 1), mean, c->arg[6].f);
  if (ok && lt_in(c, 2)) {
    lt_Tensor *unbiased = lt_do(mul, LT_ARG(var), LT_ARG((double)n / (double)(n - 1)));
    ok = update(lt_in(c, 2), unbiased, c->arg[6].f);
  }
  lt_grad_set_enabled(before);
  return ok;
}

/* An input without elements: itself times the first weight plus the first bias, as in PyTorch. */
static bool of_nothing(lt_Call *c) {
  lt_Tensor *x = lt_do(clone, c->arg[0]);
  for (int i = 3; i < 5; i++) {
    if (!lt_in(c, i) || lt_in(c, i)->numel == 0) continue;
    lt_Tensor *first = lt_do(select, c->arg[i], LT_ARG(0), LT_ARG(0));
    x = i == 3 ? lt_do(mul, LT_ARG(x), LT_ARG(first)) : lt_do(add, LT_ARG(x), LT_ARG(first));
  }
  return lt_result_set(c, x);
}

/* batch_norm (input, running_mean?, running_var?, weight?, bias?, training, momentum, eps) */
bool lt_composite_batch_norm(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0);
  bool training = c->arg[5].b;
  if (x->numel == 0) return lt_check_float(c, 0) && of_nothing(c);
  if (!lt_check_ndim(c, 0, 2, LT_MAX_DIMS)) return false;
  int64_t n = x->numel / x->shape[1];
  if (training && n == 1)
    return lt_fail("expected more than one element in each channel for argument 'input' when "
                   "'training' is true, got %s",
                   lt_text(x));
  lt_Tensor *out[3];
  lt_Arg args[] = {c->arg[0], c->arg[3], c->arg[4], c->arg[1], c->arg[2], c->arg[5], c->arg[7]};
  if (!lt_do_all(LT_OP__batch_norm, args, 7, 3, out)) return false;
  if (training && (lt_in(c, 1) || lt_in(c, 2)) && !update_both(c, out[1], out[2], n)) return false;
  return lt_result_set(c, out[0]);
}
