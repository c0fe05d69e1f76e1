/* infer_attention.c: attention and its gradients. */
#include "infer.h"

/* Checks that argument i has the batch dimensions of query, argument `first`; dimension -3, the
 * heads, may be a divisor of query's. */
static bool check_batch(const lt_Call *c, int first, int i) {
  const lt_Tensor *q = lt_in(c, first), *t = lt_in(c, i);
  bool fits = t->ndim == q->ndim;
  for (int d = 0; fits && d < q->ndim - 2; d++) {
    bool heads = d == q->ndim - 3 && t->shape[d] > 0 && q->shape[d] % t->shape[d] == 0;
    fits = q->shape[d] == t->shape[d] || heads;
  }
  return fits || lt_fail("expected the batch dimensions of query, %s, for argument '%s', got %s",
                         lt_text(q), lt_arg_name(c, i), lt_text(t));
}

/* Checks query, key, value and the mask, which are the arguments from `first` on, and computes the
 * shape of the result. */
static bool check_attention(const lt_Call *c, int first, int64_t *shape) {
  const lt_Tensor *q = lt_in(c, first), *k = lt_in(c, first + 1), *v = lt_in(c, first + 2);
  const lt_Tensor *mask = lt_in(c, first + 3);
  for (int i = first; i < first + 3; i++)
    if (!lt_check_ndim(c, i, 2, LT_MAX_DIMS) || !lt_check_float(c, i) ||
        !lt_check_same_dtype(c, first, i) || !check_batch(c, first, i))
      return false;
  int last = q->ndim - 1;
  if (q->shape[last] != k->shape[last] || k->shape[last - 1] != v->shape[last - 1] ||
      (last > 1 && k->shape[last - 2] != v->shape[last - 2]))
    return lt_fail("expected sizes that fit together for query, key and value, got %s, %s and %s",
                   lt_text(q), lt_text(k), lt_text(v));
  memcpy(shape, q->shape, sizeof(int64_t) * (size_t)q->ndim);
  shape[last] = k->shape[last - 1];
  if (mask && mask->dtype != LT_bool && mask->dtype != lt_dtype_accumulate(q->dtype))
    return lt_fail("expected dtype \"bool\" or \"%s\" for argument 'attn_mask', got \"%s\"",
                   lt_dtype_name(lt_dtype_accumulate(q->dtype)), lt_dtype_name(mask->dtype));
  if (mask && !lt_check_expands("attn_mask", mask->ndim, mask->shape, "the scores", q->ndim, shape))
    return false;
  shape[last] = v->shape[last];
  return true;
}

/* _attention (query, key, value, attn_mask?, is_causal, scale): result, logsumexp */
bool lt_infer_attention(lt_Call *c) {
  int64_t shape[LT_MAX_DIMS];
  const lt_Tensor *q = lt_in(c, 0);
  if (!check_attention(c, 0, shape)) return false;
  lt_spec(c, 0, q->dtype, q->ndim, shape);
  lt_spec(c, 1, lt_dtype_accumulate(q->dtype), q->ndim - 1, shape);
  return true;
}

/* _attention_backward (grad, query, key, value, attn_mask?, result, logsumexp, is_causal, scale):
 * the gradients of query, key and value */
bool lt_infer_attention_backward(lt_Call *c) {
  int64_t shape[LT_MAX_DIMS];
  const lt_Tensor *q = lt_in(c, 1);
  if (!check_attention(c, 1, shape) || !lt_check_shape(c, 0, q->ndim, shape) ||
      !lt_check_shape(c, 5, q->ndim, shape) || !lt_check_shape(c, 6, q->ndim - 1, shape) ||
      !lt_check_same_dtype(c, 1, 0) || !lt_check_same_dtype(c, 1, 5) || !lt_check_float(c, 6))
    return false;
  for (int i = 0; i < 3; i++) lt_spec_like(c, i, lt_in(c, 1 + i));
  return true;
}
