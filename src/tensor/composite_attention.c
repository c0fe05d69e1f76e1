/* composite_attention.c: scaled dot-product attention (Vaswani et al. 2017).
 *
 * The CPU has kernels that need no matrix of all scores (_attention). This file calls them where
 * they apply, and computes attention by matrix products and softmax elsewhere. The recording device
 * records _attention, because other devices run it by its composite form. */
#include "composite_attention.h"
#include "infer.h"
#include "recorder.h"

#include <math.h>

/* Sets the scores of masked keys to -inf. */
static lt_Tensor *mask_scores(lt_Tensor *scores, lt_Tensor *hidden) {
  return lt_do(masked_fill, LT_ARG(scores), LT_ARG(hidden), LT_ARG(-(double)INFINITY));
}

/* Masks the scores. A query whose keys are all masked has the result 0 and gradients 0. The softmax
 * of a row of -inf would be NaN, and no later op can remove NaN from a gradient; so the scores of
 * such a row are made finite here, and its result is set to 0 at the end. `blocked` is true for
 * these rows. They are found in the mask, which is often smaller than the scores. */
static lt_Tensor *apply_bool_mask(lt_Tensor *scores, lt_Arg mask, lt_Tensor **blocked) {
  lt_Tensor *visible = lt_do(any, mask, LT_ARG((int64_t)-1), LT_ARG((bool)true));
  if (!scores || !visible) return NULL;
  lt_Tensor *hidden = lt_do(zeros, LT_INTS(visible->shape, visible->ndim),
                            lt_arg_dtype(scores->dtype), LT_ARG(lt_tensor_device(scores)));
  hidden = lt_do(masked_fill, LT_ARG(hidden), LT_ARG(visible), LT_ARG(-(double)INFINITY));
  *blocked = lt_do(logical_not, LT_ARG(visible));
  return lt_do(_where, mask, LT_ARG(scores), LT_ARG(hidden));
}

/* Adds a float mask to the scores, and handles rows of -inf as apply_bool_mask does. */
static lt_Tensor *apply_float_mask(lt_Tensor *scores, lt_Arg mask, lt_Tensor **blocked) {
  lt_Tensor *largest =
      lt_do(amax, LT_ARG(lt_do(detach, mask)), LT_ARG((int64_t)-1), LT_ARG((bool)true));
  *blocked = lt_do(eq, LT_ARG(largest), LT_ARG(-(double)INFINITY));
  return lt_do(add, LT_ARG(scores),
               LT_ARG(lt_do(masked_fill, mask, LT_ARG(*blocked), LT_ARG(0.0))));
}

/* Masks the keys after each query (is_causal). */
static lt_Tensor *apply_causal_mask(lt_Tensor *scores) {
  if (!scores) return NULL;
  const int64_t *shape = scores->shape + scores->ndim - 2;
  lt_Tensor *all =
      lt_do(ones, LT_INTS(shape, 2), lt_arg_dtype(LT_bool), LT_ARG(lt_tensor_device(scores)));
  return mask_scores(scores, lt_do(triu, LT_ARG(all), LT_ARG(1)));
}

/* Returns a tensor of a half dtype in float32, in which attention is computed: scores in a half
 * dtype would lose most of their digits. */
static lt_Tensor *widened(lt_Tensor *t) {
  if (!t || lt_dtype_size(t->dtype) > 2) return t;
  return lt_do(to, LT_ARG(t), LT_NIL, lt_arg_dtype(LT_float32));
}

/* Repeats the heads of key or value, dimension -3, to the number of query's heads
 * (grouped-query attention, Ainslie et al. 2023). */
static lt_Tensor *repeat_heads(const lt_Tensor *query, lt_Tensor *t) {
  int heads = t->ndim - 3;
  int64_t shape[LT_MAX_DIMS];
  if (heads < 0 || t->shape[heads] == query->shape[query->ndim - 3]) return t;
  int64_t times = query->shape[query->ndim - 3] / t->shape[heads];
  memcpy(shape, t->shape, sizeof shape);
  lt_Tensor *each = lt_do(unsqueeze, LT_ARG(t), LT_ARG(-3));
  for (int d = t->ndim; d > heads + 1; d--) shape[d] = shape[d - 1];
  shape[heads + 1] = times;
  each = lt_do(expand, LT_ARG(each), LT_INTS(shape, t->ndim + 1));
  memcpy(shape, t->shape, sizeof shape);
  shape[heads] *= times;
  return lt_do_reshape(each, t->ndim, shape);
}

/* Sums the heads that repeat_heads made of each head of `of`. */
static lt_Tensor *sum_heads(lt_Tensor *t, const lt_Tensor *of) {
  int heads = of->ndim - 3;
  int64_t shape[LT_MAX_DIMS + 1];
  if (!t || heads < 0 || t->shape[heads] == of->shape[heads]) return t;
  memcpy(shape, of->shape, sizeof(int64_t) * (size_t)(heads + 1));
  shape[heads + 1] = t->shape[heads] / of->shape[heads];
  memcpy(shape + heads + 2, of->shape + heads + 1, 2 * sizeof(int64_t));
  return lt_do(sum, LT_ARG(lt_do_reshape(t, t->ndim + 1, shape)), LT_ARG((int64_t)-3),
               LT_ARG((bool)false));
}

/* Returns softmax(scale query key^T), masked. `blocked` is true for queries whose keys are all
 * masked, NULL where there is no mask; `scores` may be NULL. Key has query's heads. The query is
 * scaled, because it has fewer elements than the scores. */
static lt_Tensor *weights_of(const lt_Attention *a, lt_Tensor *query, lt_Tensor *key,
                             lt_Tensor **blocked, lt_Tensor **scores) {
  const lt_Tensor *mask = a->mask.kind == LT_ARG_TENSOR ? a->mask.tensor : NULL;
  lt_Tensor *turned = lt_do(transpose, LT_ARG(key), LT_ARG(-2), LT_ARG(-1));
  lt_Tensor *s = lt_do(matmul, LT_ARG(lt_do(mul, LT_ARG(query), LT_ARG(a->scale))), LT_ARG(turned));
  if (a->is_causal) s = apply_causal_mask(s);
  *blocked = NULL;
  if (mask && mask->dtype == LT_bool) s = apply_bool_mask(s, a->mask, blocked);
  if (mask && mask->dtype != LT_bool) s = apply_float_mask(s, a->mask, blocked);
  if (scores) *scores = s;
  return lt_do(softmax, LT_ARG(s), LT_ARG(-1));
}

/* Sets the rows of queries whose keys are all masked. */
static lt_Tensor *fill_blocked(lt_Tensor *t, lt_Tensor *blocked, double value) {
  return blocked ? lt_do(masked_fill, LT_ARG(t), LT_ARG(blocked), LT_ARG(value)) : t;
}

/* Returns t in another dtype. */
static lt_Tensor *converted(lt_Tensor *t, lt_Dtype dtype) {
  return !t || t->dtype == dtype ? t : lt_do(to, LT_ARG(t), LT_NIL, lt_arg_dtype(dtype));
}

bool lt_attention_gradients(const lt_Attention *a, lt_Tensor *grad, lt_Tensor *out[3]) {
  lt_Tensor *query = widened(a->query), *key = widened(a->key), *value = widened(a->value);
  lt_Tensor *blocked = NULL;
  grad = widened(grad);
  if (!query || !key || !value || !grad) return false;
  key = repeat_heads(query, key), value = repeat_heads(query, value);
  lt_Tensor *p = weights_of(a, query, key, &blocked, NULL);
  p = fill_blocked(p, blocked, 0);
  lt_Tensor *dp =
      lt_do(matmul, LT_ARG(grad), LT_ARG(lt_do(transpose, LT_ARG(value), LT_ARG(-2), LT_ARG(-1))));
  lt_Tensor *ds = lt_do(_softmax_backward, LT_ARG(dp), LT_ARG(p), LT_ARG((int64_t)-1));
  ds = lt_do(mul, LT_ARG(ds), LT_ARG(a->scale));
  lt_Tensor *pt = lt_do(transpose, LT_ARG(p), LT_ARG(-2), LT_ARG(-1));
  lt_Tensor *dst = lt_do(transpose, LT_ARG(ds), LT_ARG(-2), LT_ARG(-1));
  out[0] = lt_do(matmul, LT_ARG(ds), LT_ARG(key));
  out[1] = sum_heads(lt_do(matmul, LT_ARG(dst), LT_ARG(query)), a->key);
  out[2] = sum_heads(lt_do(matmul, LT_ARG(pt), LT_ARG(grad)), a->value);
  return out[0] && out[1] && out[2];
}

/* ---- composite forms of the kernels ---------------------------------------------------------- */

/* Returns the arguments of _attention that begin at argument i, besides is_causal and scale. */
static lt_Attention arguments(const lt_Call *c, int i, bool is_causal, double scale) {
  return (lt_Attention){lt_in(c, i),   lt_in(c, i + 1), lt_in(c, i + 2),
                        c->arg[i + 3], is_causal,       scale};
}

/* _attention (query, key, value, attn_mask?, is_causal, scale): result, logsumexp */
bool lt_form__attention(lt_Call *c) {
  if (!c->info->infer(c)) return false;
  lt_Attention a = arguments(c, 0, c->arg[4].b, c->arg[5].f);
  lt_Tensor *query = widened(a.query), *key = widened(a.key), *value = widened(a.value);
  lt_Tensor *blocked = NULL, *scores = NULL;
  if (!query || !key || !value) return false;
  lt_Tensor *weights = weights_of(&a, query, repeat_heads(query, key), &blocked, &scores);
  lt_Tensor *out = lt_do(matmul, LT_ARG(weights), LT_ARG(repeat_heads(query, value)));
  out = converted(fill_blocked(out, blocked, 0), a.query->dtype);
  lt_Tensor *lse = lt_do(logsumexp, LT_ARG(scores), LT_ARG((int64_t)-1), LT_ARG((bool)true));
  lse = fill_blocked(lse, blocked, -(double)INFINITY);
  return lt_result_set_two(c, out, lt_do(squeeze, LT_ARG(lse), LT_ARG(-1)));
}

/* _attention_backward (grad, query, key, value, attn_mask?, result, logsumexp, is_causal, scale) */
bool lt_form__attention_backward(lt_Call *c) {
  if (!c->info->infer(c)) return false;
  lt_Attention a = arguments(c, 1, c->arg[7].b, c->arg[8].f);
  if (!lt_attention_gradients(&a, lt_in(c, 0), c->out)) return false;
  for (int i = 0; i < 3; i++) c->out[i] = converted(c->out[i], a.query->dtype);
  c->nout = 3;
  return c->out[0] && c->out[1] && c->out[2];
}

/* ---- scaled_dot_product_attention ------------------------------------------------------------ */

/* Checks the shapes of query, key and value, and that one mask at most is given. */
static bool check_attention(const lt_Call *c) {
  const lt_Tensor *q = lt_in(c, 0), *k = lt_in(c, 1), *v = lt_in(c, 2);
  for (int i = 0; i < 3; i++)
    if (!lt_check_ndim(c, i, 2, LT_MAX_DIMS) || !lt_check_float(c, i) ||
        !lt_check_same_dtype(c, 0, i))
      return false;
  if (q->shape[q->ndim - 1] != k->shape[k->ndim - 1])
    return lt_fail("expected the same last size for query and key, got %s and %s", lt_text(q),
                   lt_text(k));
  if (k->shape[k->ndim - 2] != v->shape[v->ndim - 2])
    return lt_fail("expected the same second-to-last size for key and value, got %s and %s",
                   lt_text(k), lt_text(v));
  if (lt_in(c, 3) && c->arg[5].b) return lt_fail("expected attn_mask or is_causal, got both");
  return true;
}

/* Checks enable_gqa: query has a multiple of the heads of key and value. */
static bool check_heads(const lt_Call *c) {
  const lt_Tensor *q = lt_in(c, 0);
  for (int i = 0; i < 3; i++)
    if (!lt_check_ndim(c, i, 3, LT_MAX_DIMS - 1)) return false;
  for (int i = 1; i < 3; i++) {
    int64_t heads = lt_in(c, i)->shape[lt_in(c, i)->ndim - 3], all = q->shape[q->ndim - 3];
    if (heads <= 0 || all % heads)
      return lt_fail("expected a divisor of query's %lld heads for the heads of %s (dimension -3), "
                     "got %lld",
                     (long long)all, lt_arg_name(c, i), (long long)heads);
  }
  return true;
}

/* Returns true where the call runs by _attention. */
static bool fits_kernel(const lt_Call *c, int batch, const int64_t *shape) {
  lt_Tensor *mask = lt_in(c, 3);
  const lt_Tensor *q = lt_in(c, 0), *k = lt_in(c, 1);
  lt_Device shown = lt_shown_device(q);
  bool device = shown.type == LT_DEVICE_cpu || lt_device_equal(shown, lt_recording());
  if (!device || c->arg[4].f > 0) return false;
  if (!mask) return true;
  if (mask->dtype != LT_bool && mask->dtype != q->dtype &&
      mask->dtype != lt_dtype_accumulate(q->dtype))
    return false;
  if (lt_grad_enabled() && lt_tensor_requires_grad(mask)) return false;
  int64_t scores[LT_MAX_DIMS], broadcast[LT_MAX_DIMS];
  int ndim = batch + 2;
  memcpy(scores, shape, sizeof(int64_t) * (size_t)batch);
  scores[batch] = q->shape[q->ndim - 2], scores[batch + 1] = k->shape[k->ndim - 2];
  memcpy(broadcast, scores, sizeof(int64_t) * (size_t)ndim);
  return lt_shape_broadcast(&ndim, broadcast, mask->ndim, mask->shape) &&
         lt_shape_equal(ndim, broadcast, batch + 2, scores);
}

/* Computes the common batch dims of query, key and value; those of heads that are repeated are
 * query's. Returns false where there are none. */
static bool common_batch(const lt_Call *c, bool gqa, int *batch, int64_t *shape) {
  const lt_Tensor *q = lt_in(c, 0);
  *batch = q->ndim - 2;
  memcpy(shape, q->shape, sizeof(int64_t) * (size_t)q->ndim);
  for (int i = 1; i < 3; i++) {
    const lt_Tensor *t = lt_in(c, i);
    int64_t own[LT_MAX_DIMS];
    memcpy(own, t->shape, sizeof(int64_t) * (size_t)t->ndim);
    if (gqa && t->shape[t->ndim - 3] != lt_in(c, 1)->shape[lt_in(c, 1)->ndim - 3]) return false;
    if (gqa) own[t->ndim - 3] = q->shape[q->ndim - 3];
    if (!lt_shape_broadcast(batch, shape, t->ndim - 2, own)) return false;
  }
  return true;
}

/* Returns t with these batch dims. With gqa the heads stay. */
static lt_Tensor *with_batch(lt_Tensor *t, bool gqa, int batch, const int64_t *shape) {
  int64_t full[LT_MAX_DIMS];
  memcpy(full, shape, sizeof(int64_t) * (size_t)batch);
  if (gqa) full[batch - 1] = t->shape[t->ndim - 3];
  memcpy(full + batch, t->shape + t->ndim - 2, 2 * sizeof(int64_t));
  if (lt_shape_equal(batch + 2, full, t->ndim, t->shape)) return t;
  return lt_do(expand, LT_ARG(t), LT_INTS(full, batch + 2));
}

/* Runs a call by _attention. */
static bool by_kernel(lt_Call *c, double scale, int batch, const int64_t *shape) {
  bool gqa = c->arg[7].b;
  const lt_Tensor *mask = lt_in(c, 3);
  lt_Dtype dtype = lt_in(c, 0)->dtype;
  lt_Arg m = c->arg[3];
  if (mask && mask->dtype != LT_bool)
    m = LT_ARG(converted(lt_in(c, 3), lt_dtype_accumulate(dtype)));
  return lt_result_set(c, lt_do(_attention, LT_ARG(with_batch(lt_in(c, 0), false, batch, shape)),
                                LT_ARG(with_batch(lt_in(c, 1), gqa, batch, shape)),
                                LT_ARG(with_batch(lt_in(c, 2), gqa, batch, shape)), m, c->arg[5],
                                LT_ARG(scale)));
}

/* Runs a call by matrix products. */
static bool by_products(lt_Call *c, double scale) {
  const lt_Tensor *q = lt_in(c, 0);
  lt_Attention a = arguments(c, 0, c->arg[5].b, scale);
  lt_Tensor *query = widened(a.query), *key = widened(a.key), *value = widened(a.value);
  lt_Tensor *blocked = NULL;
  if (!query || !key || !value) return false;
  if (c->arg[7].b) key = repeat_heads(q, key), value = repeat_heads(q, value);
  lt_Tensor *weights = weights_of(&a, query, key, &blocked, NULL);
  if (c->arg[4].f > 0) weights = lt_do(dropout, LT_ARG(weights), c->arg[4]);
  lt_Tensor *out = fill_blocked(lt_do(matmul, LT_ARG(weights), LT_ARG(value)), blocked, 0);
  return lt_result_set(c, converted(out, q->dtype));
}

/* scaled_dot_product_attention (query, key, value, attn_mask?, dropout_p, is_causal, scale?,
 * enable_gqa): a bool mask is true for keys that take part, a float mask is added to the scores. */
bool lt_composite_scaled_dot_product_attention(lt_Call *c) {
  const lt_Tensor *q = lt_in(c, 0);
  if (!check_attention(c) || (c->arg[7].b && !check_heads(c))) return false;
  double scale = lt_given(c, 6) ? c->arg[6].f : 1 / sqrt((double)q->shape[q->ndim - 1]);
  int batch;
  int64_t shape[LT_MAX_DIMS];
  if (common_batch(c, c->arg[7].b, &batch, shape) && fits_kernel(c, batch, shape))
    return by_kernel(c, scale, batch, shape);
  return by_products(c, scale);
}
