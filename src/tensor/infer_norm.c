/* infer_norm.c: layer norm, negative log likelihood and cross entropy. */
#include "infer.h"

/* Checks that a weight or bias, unless it is nil, has the shape of the last `n` dimensions of
 * argument 0 and its dtype. */
static bool check_affine(const lt_Call *c, int i, const lt_Tensor *self, int n) {
  const lt_Tensor *t = lt_in(c, i);
  if (!t) return true;
  const int64_t *tail = self->shape + self->ndim - n;
  if (!lt_shape_equal(t->ndim, t->shape, n, tail))
    return lt_fail("expected shape %s, the normalized dimensions, for argument '%s', got %s",
                   lt_shape_text(n, tail), lt_arg_name(c, i), lt_text(t));
  return lt_check_same_dtype(c, 0, i);
}

/* Checks the number of normalized dimensions. */
static bool check_normalized(const lt_Tensor *self, int64_t n) {
  if (n >= 1 && n <= self->ndim) return true;
  return lt_fail("cannot normalize the last %lld dimensions of %s", (long long)n, lt_text(self));
}

/* Computes the shape of the statistics: normalized dimensions have size 1, so that the statistics
 * broadcast. */
static void statistics_shape(const lt_Tensor *self, int n, int64_t *shape) {
  for (int d = 0; d < self->ndim; d++) shape[d] = d < self->ndim - n ? self->shape[d] : 1;
}

/* _layer_norm (self, normalized, weight?, bias?, eps): result, mean, rstd. The statistics have the
 * dtype in which sums are accumulated. */
bool lt_infer_layer_norm(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!lt_check_float(c, 0) || !check_normalized(self, c->arg[1].i)) return false;
  int n = (int)c->arg[1].i;
  if (!check_affine(c, 2, self, n) || !check_affine(c, 3, self, n)) return false;
  int64_t shape[LT_MAX_DIMS];
  statistics_shape(self, n, shape);
  lt_spec_like(c, 0, self);
  lt_spec(c, 1, lt_dtype_accumulate(self->dtype), self->ndim, shape);
  lt_spec(c, 2, lt_dtype_accumulate(self->dtype), self->ndim, shape);
  return true;
}

/* _layer_norm_backward (grad, self, normalized, mean, rstd, weight?): input, weight, bias */
bool lt_infer_layer_norm_backward(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 1);
  if (!lt_check_float(c, 1) || !lt_check_same_shape(c, 0, 1) ||
      !check_normalized(self, c->arg[2].i))
    return false;
  int n = (int)c->arg[2].i;
  int64_t shape[LT_MAX_DIMS];
  statistics_shape(self, n, shape);
  for (int i = 3; i < 5; i++)
    if (!lt_check_float(c, i) || !lt_check_shape(c, i, self->ndim, shape)) return false;
  if (!check_affine(c, 5, self, n)) return false;
  const int64_t *tail = self->shape + self->ndim - n;
  lt_spec_like(c, 0, self);
  lt_spec(c, 1, self->dtype, n, tail);
  lt_spec(c, 2, self->dtype, n, tail);
  return true;
}

/* Returns the number of rows of self, {N, C} or {N, C, P}. */
static int64_t rows_of(const lt_Tensor *self) {
  return self->shape[0] * (self->ndim == 3 ? self->shape[2] : 1);
}

/* Checks self {N, C}, or {N, C, P}, which only the CPU's kernels take, a target of any shape with
 * an element for each row, and weight {C} or nil, which are the arguments from `first` on. */
static bool check_nll(const lt_Call *c, int first) {
  const lt_Tensor *self = lt_in(c, first), *target = lt_in(c, first + 1),
                  *weight = lt_in(c, first + 2);
  if (!lt_check_float(c, first) || !lt_check_index(c, first + 1) || !lt_check_ndim(c, first, 2, 3))
    return false;
  if (target->numel != rows_of(self))
    return lt_fail("expected shape {%lld} for argument 'target', as self is %s, got %s",
                   (long long)rows_of(self), lt_text(self), lt_text(target));
  if (weight && (weight->ndim != 1 || weight->shape[0] != self->shape[1]))
    return lt_fail("expected shape {%lld} for argument 'weight', one number for each class, got %s",
                   (long long)self->shape[1], lt_text(weight));
  if (weight && !lt_check_same_dtype(c, first, first + 2)) return false;
  return true;
}

/* _nll_loss (self, target, weight?, reduction, ignore_index): loss, total_weight */
bool lt_infer_nll_loss(lt_Call *c) {
  if (!check_nll(c, 0)) return false;
  const lt_Tensor *self = lt_in(c, 0);
  bool each = !strcmp(c->arg[3].string, "none");
  lt_spec(c, 0, self->dtype, each ? 1 : 0, (int64_t[]){rows_of(self)});
  lt_spec(c, 1, self->dtype, 0, NULL);
  return true;
}

/* _cross_entropy (self, target, weight?, reduction, ignore_index): loss, log_sums, total_weight.
 * The latter have the dtype in which sums are accumulated. */
bool lt_infer_cross_entropy(lt_Call *c) {
  if (!check_nll(c, 0)) return false;
  const lt_Tensor *self = lt_in(c, 0);
  lt_Dtype wide = lt_dtype_accumulate(self->dtype);
  lt_spec(c, 0, self->dtype, !strcmp(c->arg[3].string, "none") ? 1 : 0, (int64_t[]){rows_of(self)});
  lt_spec(c, 1, wide, 2, (int64_t[]){2, rows_of(self)});
  lt_spec(c, 2, wide, 0, NULL);
  return true;
}

/* _cross_entropy_backward (grad, self, target, weight?, reduction, ignore_index, log_sums,
 * total_weight) */
bool lt_infer_cross_entropy_backward(lt_Call *c) {
  if (!check_nll(c, 1)) return false;
  bool each = !strcmp(c->arg[4].string, "none");
  const lt_Tensor *self = lt_in(c, 1);
  if (!lt_check_shape(c, 0, each ? 1 : 0, (int64_t[]){rows_of(self)})) return false;
  if (!lt_check_float(c, 6) || !lt_check_shape(c, 6, 2, (int64_t[]){2, rows_of(self)}))
    return false;
  if (!lt_check_shape(c, 7, 0, NULL)) return false;
  lt_spec_like(c, 0, self);
  return true;
}

/* _multi_margin_loss (self, target, weight?, p, margin) */
bool lt_infer_multi_margin_loss(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *weight = lt_in(c, 2);
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, 2, 2)) return false;
  if (!lt_check_index(c, 1) || !lt_check_shape(c, 1, 1, self->shape)) return false;
  if (weight && (!lt_check_shape(c, 2, 1, self->shape + 1) || !lt_check_same_dtype(c, 2, 0)))
    return false;
  lt_spec(c, 0, self->dtype, 1, self->shape);
  return true;
}
/* _multilabel_margin_loss (self, target) */
bool lt_infer_multilabel_margin_loss(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, 2, 2)) return false;
  if (!lt_check_index(c, 1) || !lt_check_shape(c, 1, 2, self->shape)) return false;
  lt_spec(c, 0, self->dtype, 1, self->shape);
  return true;
}

/* Checks the arguments of _ctc_loss from `first` on. */
static bool check_ctc(const lt_Call *c, int first) {
  const lt_Tensor *self = lt_in(c, first), *labels = lt_in(c, first + 1);
  if (!lt_check_float(c, first) || !lt_check_ndim(c, first, 3, 3)) return false;
  for (int i = first + 1; i <= first + 3; i++)
    if (!lt_check_index(c, i)) return false;
  if (!lt_check_ndim(c, first + 1, 2, 2)) return false;
  if (labels->shape[1] > INT32_MAX)
    return lt_fail("expected at most %d labels for argument 'targets', got %lld", INT32_MAX,
                   (long long)labels->shape[1]);
  for (int i = first + 1; i <= first + 3; i++)
    if (!lt_check_shape(c, i, i == first + 1 ? 2 : 1,
                        (int64_t[]){self->shape[1], labels->shape[1]}))
      return false;
  int64_t blank = c->arg[first + 4].i;
  return (blank >= LT_INDEX_BASE && blank < self->shape[2] + LT_INDEX_BASE) ||
         lt_fail("expected a label from 1 to %lld for argument 'blank', got %lld",
                 (long long)self->shape[2], (long long)blank);
}
/* Returns the sizes of alpha. */
static const int64_t *alpha_shape(const lt_Call *c, int first, int64_t *shape) {
  shape[0] = lt_in(c, first)->shape[0];
  shape[1] = lt_in(c, first)->shape[1];
  shape[2] = 2 * lt_in(c, first + 1)->shape[1] + 1;
  return shape;
}

/* _ctc_loss (log_probs, targets, input_lengths, target_lengths, blank): loss, alpha */
bool lt_infer_ctc_loss(lt_Call *c) {
  int64_t shape[3], numel;
  if (!check_ctc(c, 0) || !lt_shape_numel(NULL, 3, alpha_shape(c, 0, shape), &numel)) return false;
  lt_spec(c, 0, lt_in(c, 0)->dtype, 1, &shape[1]);
  lt_spec(c, 1, lt_dtype_accumulate(lt_in(c, 0)->dtype), 3, shape);
  return true;
}
/* _ctc_loss_backward (grad, log_probs, targets, input_lengths, target_lengths, blank,
 * zero_infinity, alpha) */
bool lt_infer_ctc_loss_backward(lt_Call *c) {
  int64_t shape[3];
  if (!check_ctc(c, 1) || !lt_check_shape(c, 0, 1, &lt_in(c, 1)->shape[1])) return false;
  if (!lt_check_float(c, 7) || !lt_check_shape(c, 7, 3, alpha_shape(c, 1, shape))) return false;
  lt_spec_like(c, 0, lt_in(c, 1));
  return true;
}

/* _nll_loss_backward (grad, self, target, weight?, reduction, ignore_index, total_weight) */
bool lt_infer_nll_loss_backward(lt_Call *c) {
  if (!check_nll(c, 1)) return false;
  bool each = !strcmp(c->arg[4].string, "none");
  if (!lt_check_shape(c, 0, each ? 1 : 0, (int64_t[]){rows_of(lt_in(c, 1))})) return false;
  if (!lt_check_shape(c, 6, 0, NULL)) return false;
  lt_spec_like(c, 0, lt_in(c, 1));
  return true;
}
