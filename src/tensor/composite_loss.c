/* composite_loss.c: losses, layer norm and activations. */
#include "infer.h"

/* Reduces the loss of each element by `reduction`: "mean", "sum" or "none". */
static lt_Tensor *reduced(lt_Tensor *loss, const char *reduction) {
  if (!strcmp(reduction, "none")) return loss;
  if (!strcmp(reduction, "sum")) return lt_do(sum, LT_ARG(loss));
  return lt_do(mean, LT_ARG(loss));
}

/* Translates `size_average` and `reduce`, PyTorch's deprecated parameters, to the argument
 * `reduction` if one of them is given. Returns the reduction. */
static const char *resolve_reduction(lt_Call *c, int size_average, int reduce, int reduction) {
  const lt_Arg *average = &c->arg[size_average], *any = &c->arg[reduce];
  if (average->kind == LT_ARG_BOOL || any->kind == LT_ARG_BOOL) {
    bool averages = average->kind != LT_ARG_BOOL || average->b;
    bool reduces = any->kind != LT_ARG_BOOL || any->b;
    c->arg[reduction] = lt_arg_string(!reduces ? "none" : averages ? "mean" : "sum");
  }
  return c->arg[reduction].string;
}

/* Returns true when a tensor argument is given in float32. */
static bool is_float32(const lt_Call *c, int i) {
  return lt_given(c, i) && c->arg[i].tensor->dtype == LT_float32;
}

/* layer_norm of self in float16 or bfloat16 with parameters in float32, as under autocast: computed
 * in float32, the result has self's dtype. */
static bool mixed_layer_norm(lt_Call *c, int n) {
  const lt_Tensor *self = lt_in(c, 0);
  lt_Arg device = lt_arg_device(lt_tensor_device(self)), wide = lt_arg_dtype(LT_float32);
  lt_Tensor *in[3] = {NULL};
  for (int i = 0; i < 3; i++) {
    int arg = i ? i + 1 : 0;
    if (!lt_given(c, arg)) continue;
    in[i] = lt_do(_to_copy, c->arg[arg], device, wide, LT_ARG((bool)false));
    if (!in[i]) return false;
  }
  lt_Tensor *y = lt_do(_layer_norm, LT_ARG(in[0]), LT_ARG(n), in[1] ? LT_ARG(in[1]) : LT_NIL,
                       in[2] ? LT_ARG(in[2]) : LT_NIL, c->arg[4]);
  return lt_result_set(
      c, lt_do(_to_copy, LT_ARG(y), device, lt_arg_dtype(self->dtype), LT_ARG((bool)false)));
}

/* layer_norm (self, normalized_shape, weight?, bias?, eps) */
bool lt_composite_layer_norm(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  int n = c->arg[1].count, lead = self->ndim - n;
  if (n == 0)
    return lt_fail("expected the sizes of the last dimensions of self for argument "
                   "'normalized_shape', got none");
  if (lead < 0 || !lt_shape_equal(n, c->arg[1].ints, n, self->shape + lead))
    return lt_fail(
        "expected last dimensions %s (normalized_shape) for argument 'self', got shape %s",
        lt_shape_text(n < LT_MAX_DIMS ? n : LT_MAX_DIMS, c->arg[1].ints), lt_text(self));
  bool half = self->dtype == LT_float16 || self->dtype == LT_bfloat16;
  if (half && (is_float32(c, 2) || is_float32(c, 3))) return mixed_layer_norm(c, n);
  return lt_result_set(c,
                       lt_do(_layer_norm, c->arg[0], LT_ARG(n), c->arg[2], c->arg[3], c->arg[4]));
}

/* gelu (self, approximate) */
bool lt_composite_gelu(lt_Call *c) {
  if (!strcmp(c->arg[1].string, "tanh")) return lt_result_set(c, lt_do(_gelu_tanh, c->arg[0]));
  return lt_result_set(c, lt_do(_gelu_erf, c->arg[0]));
}

/* glu (self, dim) */
bool lt_composite_glu(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  if (self->ndim == 0)
    return lt_fail("expected a tensor with dimensions for argument 'self', got shape {}");
  int dim = lt_dim(c->arg[1].i, self->ndim);
  if (dim < 0) return false;
  int64_t half = self->shape[dim] / 2;
  if (self->shape[dim] % 2)
    return lt_fail("expected an even size of dim %lld for argument 'self', got %lld",
                   lt_dim_shown(c->arg[1].i), (long long)self->shape[dim]);
  lt_Tensor *x = lt_do_slice(self, dim, 0, half), *gate = lt_do_slice(self, dim, half, half);
  return lt_result_set(c, lt_do(_glu, LT_ARG(x), LT_ARG(gate)));
}

/* prelu (input, weight): the weight is broadcast along dimension 1. */
bool lt_composite_prelu(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0);
  lt_Tensor *weight = lt_in(c, 1);
  int64_t channels = x->ndim > 1 ? x->shape[1] : 1, shape[LT_MAX_DIMS];
  if (weight->numel != 1 && x->ndim == 0)
    return lt_fail(
        "expected one element for argument 'weight', as input has the shape {}, got %lld",
        (long long)weight->numel);
  if (weight->numel != 1 && weight->numel != channels)
    return lt_fail("expected one weight or %lld weights, one for each index of dim 2, for argument "
                   "'weight', got shape %s",
                   (long long)channels, lt_text(weight));
  if (weight->ndim > 1)
    return lt_fail("expected at most one dimension for argument 'weight', got shape %s",
                   lt_text(weight));
  if (!lt_check_same_dtype(c, 0, 1)) return false;
  if (x->ndim != weight->ndim) {
    for (int d = 0; d < x->ndim; d++) shape[d] = d == 1 ? weight->numel : 1;
    weight = lt_do_view(weight, x->ndim, shape);
  }
  return lt_result_set(c, lt_do(_prelu, c->arg[0], LT_ARG(weight)));
}

/* ---- classes --------------------------------------------------------------------------------- */

/* A loss over classes in the form of its kernel: scores {rows, classes}, or {N, classes, P} of
 * N * P rows. */
typedef struct Rows {
  lt_Tensor *scores;
  lt_Tensor *target; /* in the caller's shape, which errors name */
  int64_t classes;
} Rows;

/* Returns the dimension of the classes: the only one of {C}, otherwise the second. */
static int class_dim(const lt_Tensor *self) { return self->ndim == 1 ? 0 : 1; }

/* Computes the shape without the dimension of classes, which is the shape of the target and of the
 * unreduced loss. */
static int places(const lt_Tensor *self, int64_t *shape) {
  int ndim = 0;
  for (int d = 0; d < self->ndim; d++)
    if (d != class_dim(self)) shape[ndim++] = self->shape[d];
  return ndim;
}

/* Moves the dimension of classes to the end. */
static lt_Tensor *classes_last(lt_Tensor *self) {
  if (self->ndim <= 2) return self;
  int64_t order[LT_MAX_DIMS] = {0};
  for (int d = 1; d < self->ndim; d++) order[d] = d + 1 < self->ndim ? d + 1 : 1;
  return lt_do(permute, LT_ARG(self), LT_INTS(order, self->ndim));
}

/* Reshapes {C}, {N, C} or {N, C, ...} to {rows, classes}. */
static lt_Tensor *rows_of(lt_Tensor *self) {
  int64_t shape[LT_MAX_DIMS], rows;
  if (self->ndim == 2) return self;
  if (!lt_shape_numel(NULL, places(self, shape), shape, &rows)) return NULL;
  return lt_do_reshape(classes_last(self), 2, (int64_t[]){rows, self->shape[class_dim(self)]});
}

/* Checks that self has classes and that the target has the shape of the rest. */
static bool check_classes(const lt_Tensor *self, const lt_Tensor *target) {
  int64_t shape[LT_MAX_DIMS];
  if (self->ndim == 0)
    return lt_fail("expected shape {C}, {N, C} or {N, C, ...} for argument 'self', got {}");
  int ndim = places(self, shape);
  if (lt_shape_equal(ndim, shape, target->ndim, target->shape)) return true;
  return lt_fail("expected shape %s for argument 'target', a class for each row of self %s, got %s",
                 lt_shape_text(ndim, shape), lt_text(self), lt_text(target));
}

/* Returns whether the kernels of this device take dense scores {N, C, ...} as {N, C, P}, without a
 * copy that moves the classes to the end. */
static bool keeps_planes(const lt_Call *c, const lt_Tensor *self) {
  return c->device.type == lt_cpu().type && self->ndim > 2 && self->numel > 0 &&
         lt_tensor_is_contiguous(self);
}

/* Reshapes the scores; with `planes` to {N, C, P}. */
static Rows as_rows(lt_Tensor *self, lt_Tensor *target, bool planes) {
  Rows r = {NULL, target, self->shape[class_dim(self)]};
  if (planes)
    r.scores =
        lt_do_view(self, 3, (int64_t[]){self->shape[0], r.classes, target->numel / self->shape[0]});
  else
    r.scores = rows_of(self);
  return r;
}

/* Reshapes a loss with one element per row to the shape of the target. */
static lt_Tensor *by_place(lt_Tensor *loss, const lt_Tensor *self) {
  int64_t shape[LT_MAX_DIMS];
  int ndim = places(self, shape);
  return !loss || loss->ndim == 0 || self->ndim == 2 ? loss : lt_do_view(loss, ndim, shape);
}

/* nll_loss (self, target, weight?, size_average?, ignore_index, reduce?, reduction) */
bool lt_composite_nll_loss(lt_Call *c) {
  lt_Tensor *self = lt_in(c, 0);
  if (!lt_check_index(c, 1) || !check_classes(self, lt_in(c, 1))) return false;
  resolve_reduction(c, 3, 5, 6);
  Rows r = as_rows(self, lt_in(c, 1), keeps_planes(c, self));
  lt_Tensor *loss =
      lt_do(_nll_loss, LT_ARG(r.scores), LT_ARG(r.target), c->arg[2], c->arg[6], c->arg[4]);
  /* {C} gives one number, whatever the reduction */
  return lt_result_set(c, by_place(loss, self));
}

/* Computes the part of label smoothing in the loss: each class of a row has a small target
 * probability (Szegedy et al. 2016). */
static lt_Tensor *smooth_rows(const lt_Call *c, Rows r, lt_Tensor *logp, lt_Tensor *total) {
  lt_Tensor *weighted = lt_in(c, 2) ? lt_do(mul, LT_ARG(logp), c->arg[2]) : logp;
  lt_Tensor *each = lt_do(neg, LT_ARG(lt_do(sum, LT_ARG(weighted), LT_ARG(-1))));
  lt_Tensor *target = lt_do_reshape(r.target, 1, &r.target->numel);
  each = lt_do(masked_fill, LT_ARG(each), LT_ARG(lt_do(eq, LT_ARG(target), c->arg[4])), LT_ARG(0));
  if (!strcmp(c->arg[6].string, "none")) return each;
  each = lt_do(sum, LT_ARG(each));
  return !strcmp(c->arg[6].string, "sum") ? each : lt_do(_true_divide, LT_ARG(each), LT_ARG(total));
}

/* Computes cross_entropy of rows by its kernel. NULL with the error set. */
static lt_Tensor *fused_cross_entropy(const lt_Call *c, Rows r) {
  lt_Tensor *loss[3];
  bool ok = lt_do_all(LT_OP__cross_entropy,
                      LT_ARGS_(LT_ARG(r.scores), LT_ARG(r.target), c->arg[2], c->arg[6], c->arg[4]),
                      3, loss);
  return ok ? loss[0] : NULL;
}

/* cross_entropy for a target of class labels. */
static bool cross_entropy_of_classes(lt_Call *c, double smoothing) {
  lt_Tensor *self = lt_in(c, 0), *loss[2];
  if (!lt_check_index(c, 1) || !check_classes(self, lt_in(c, 1))) return false;
  Rows r = as_rows(self, lt_in(c, 1), smoothing == 0 && keeps_planes(c, self));
  if (smoothing == 0 && lt_op_supported(LT_OP__cross_entropy, c->device.type, self->dtype))
    return lt_result_set(c, by_place(fused_cross_entropy(c, r), self));
  lt_Tensor *logp = lt_do(log_softmax, LT_ARG(r.scores), LT_ARG(1));
  if (!lt_do_all(LT_OP__nll_loss,
                 LT_ARGS_(LT_ARG(logp), LT_ARG(r.target), c->arg[2], c->arg[6], c->arg[4]), 2,
                 loss))
    return false;
  if (smoothing > 0) {
    lt_Tensor *smooth = smooth_rows(c, r, logp, loss[1]);
    lt_Tensor *sharp = lt_do(mul, LT_ARG(loss[0]), LT_ARG(1 - smoothing));
    loss[0] = lt_do(add, LT_ARG(sharp), LT_ARG(smooth), LT_ARG(smoothing / (double)r.classes));
  }
  return lt_result_set(c, by_place(loss[0], self));
}

/* cross_entropy for a target of probabilities. */
static bool cross_entropy_of_probabilities(lt_Call *c, double smoothing) {
  lt_Tensor *self = lt_in(c, 0), *target = lt_in(c, 1);
  const char *reduction = c->arg[6].string;
  if (!lt_shape_equal(self->ndim, self->shape, target->ndim, target->shape))
    return lt_fail("expected self's shape %s for argument 'target' of a float dtype "
                   "(probabilities), got %s\nhint: target:to(\"int64\") if it holds classes",
                   lt_text(self), lt_text(target));
  if (self->ndim == 0)
    return lt_fail("expected shape {C}, {N, C} or {N, C, ...} for argument 'self', got {}");
  if (c->arg[4].i >= 0)
    return lt_fail("expected no ignore_index with a target of probabilities, got %lld",
                   (long long)c->arg[4].i);
  int64_t classes = self->shape[class_dim(self)];
  lt_Tensor *logp = lt_do(log_softmax, LT_ARG(rows_of(self)), LT_ARG(1));
  lt_Tensor *probabilities = rows_of(target);
  if (smoothing > 0) {
    probabilities = lt_do(mul, LT_ARG(probabilities), LT_ARG(1 - smoothing));
    probabilities = lt_do(add, LT_ARG(probabilities), LT_ARG(smoothing / (double)classes));
  }
  lt_Tensor *product = lt_do(mul, LT_ARG(logp), LT_ARG(probabilities));
  if (lt_in(c, 2)) product = lt_do(mul, LT_ARG(product), c->arg[2]);
  lt_Tensor *each = lt_do(neg, LT_ARG(lt_do(sum, LT_ARG(product), LT_ARG(-1))));
  return lt_result_set(c, by_place(reduced(each, reduction), self));
}

/* cross_entropy (self, target, weight?, size_average?, ignore_index, reduce?, reduction,
 * label_smoothing) */
bool lt_composite_cross_entropy(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *target = lt_in(c, 1), *weight = lt_in(c, 2);
  double smoothing = c->arg[7].f;
  resolve_reduction(c, 3, 5, 6);
  if (!lt_check_float(c, 0)) return false;
  if (!(smoothing >= 0 && smoothing <= 1))
    return lt_fail("expected a number from 0 to 1 for argument 'label_smoothing', got %s",
                   lt_number_text(smoothing));
  if (weight && self->ndim &&
      (weight->ndim != 1 || weight->shape[0] != self->shape[class_dim(self)]))
    return lt_fail("expected shape {%lld} for argument 'weight', one number for each class, got %s",
                   (long long)self->shape[class_dim(self)], lt_text(weight));
  return lt_dtype_is_float(target->dtype) ? cross_entropy_of_probabilities(c, smoothing)
                                          : cross_entropy_of_classes(c, smoothing);
}

/* ---- distances ------------------------------------------------------------------------------- */

/* Reduces the losses of elements (self, target, size_average?, reduce?, reduction, weight?); their
 * weighted mean is divided by the sum of the weights. */
static bool reduce_weighted(lt_Call *c, lt_Tensor *each) {
  const char *reduction = resolve_reduction(c, 2, 3, 4);
  const lt_Tensor *self = lt_in(c, 0), *weight = lt_in(c, 5);
  if (!weight) return lt_result_set(c, reduced(each, reduction));
  if (!lt_shape_equal(self->ndim, self->shape, weight->ndim, weight->shape))
    return lt_fail("expected shape %s, self's, for argument 'weight', got %s", lt_text(self),
                   lt_text(weight));
  each = lt_do(mul, LT_ARG(each), c->arg[5]);
  if (strcmp(reduction, "mean")) return lt_result_set(c, reduced(each, reduction));
  lt_Tensor *total = lt_do(sum, c->arg[5]);
  return lt_result_set(c, lt_do(_true_divide, LT_ARG(lt_do(sum, LT_ARG(each))), LT_ARG(total)));
}

/* Returns whether both arguments are real floats, of which one op computes the loss of elements. */
static bool has_floats(const lt_Call *c) {
  return lt_dtype_category(lt_in(c, 0)->dtype) == LT_FLOATING &&
         lt_dtype_category(lt_in(c, 1)->dtype) == LT_FLOATING;
}

bool lt_composite_mse_loss(lt_Call *c) {
  if (has_floats(c)) return reduce_weighted(c, lt_do(_squared_error, c->arg[0], c->arg[1]));
  return reduce_weighted(c, lt_do(square, LT_ARG(lt_do(sub, c->arg[0], c->arg[1]))));
}

bool lt_composite_l1_loss(lt_Call *c) {
  if (has_floats(c)) return reduce_weighted(c, lt_do(_absolute_difference, c->arg[0], c->arg[1]));
  return reduce_weighted(c, lt_do(abs, LT_ARG(lt_do(sub, c->arg[0], c->arg[1]))));
}

/* (1 - t) x - (1 + (pos_weight - 1) t) log s(x): the definition, with log s(-x) replaced by log
 * s(x) - x, which does not overflow. */
bool lt_composite_binary_cross_entropy_with_logits(lt_Call *c) {
  lt_Arg self = c->arg[0], target = c->arg[1];
  if (!lt_check_same_shape(c, 0, 1)) return false;
  lt_Tensor *log_sigmoid = lt_do(logsigmoid, self);
  if (lt_in(c, 6)) {
    lt_Tensor *extra = lt_do(mul, LT_ARG(lt_do(sub, c->arg[6], LT_ARG(1))), target);
    log_sigmoid = lt_do(mul, LT_ARG(log_sigmoid), LT_ARG(lt_do(add, LT_ARG(extra), LT_ARG(1))));
  }
  lt_Tensor *loss = lt_do(sub, LT_ARG(lt_do(mul, LT_ARG(lt_do(sub, LT_ARG(1), target)), self)),
                          LT_ARG(log_sigmoid));
  if (lt_in(c, 2)) loss = lt_do(mul, LT_ARG(loss), c->arg[2]);
  return lt_result_set(c, reduced(loss, resolve_reduction(c, 3, 4, 5)));
}

/* Returns t log t, 0 where t is 0, with a gradient of 0 there. */
static lt_Tensor *negative_entropy(const lt_Call *c) {
  lt_Tensor *t = lt_in(c, 1);
  bool recorded = !lt_thread()->grad_off && lt_tensor_requires_grad(t);
  if (!recorded && lt_dtype_is_float(t->dtype) && c->device.type == LT_DEVICE_cpu)
    return lt_do(xlogy, LT_ARG(t), LT_ARG(t));
  lt_Tensor *zero = lt_do(eq, LT_ARG(t), LT_ARG(0));
  return lt_do(mul, LT_ARG(t),
               LT_ARG(lt_do(log, LT_ARG(lt_do(masked_fill, LT_ARG(t), LT_ARG(zero), LT_ARG(1))))));
}

/* kl_div (input, target, size_average?, reduce?, reduction, log_target) */
bool lt_composite_kl_div(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0);
  lt_Tensor *loss;
  if (c->arg[5].b)
    loss = lt_do(mul, LT_ARG(lt_do(exp, c->arg[1])), LT_ARG(lt_do(sub, c->arg[1], c->arg[0])));
  else
    loss = lt_do(sub, LT_ARG(negative_entropy(c)), LT_ARG(lt_do(mul, c->arg[0], c->arg[1])));
  const char *reduction = resolve_reduction(c, 2, 3, 4);
  if (strcmp(reduction, "batchmean")) return lt_result_set(c, reduced(loss, reduction));
  loss = lt_do(sum, LT_ARG(loss));
  if (x->ndim > 0) loss = lt_do(_true_divide, LT_ARG(loss), LT_ARG(x->shape[0]));
  return lt_result_set(c, loss);
}
