/* infer_product.c: matrix products. */
#include "infer.h"
#include <math.h>

bool lt_check_factors(const lt_Call *c, int i, int j) {
  if (!lt_check_same_dtype(c, i, j)) return false;
  if (lt_in(c, i)->dtype != LT_bool) return true;
  return lt_fail("cannot multiply matrices of dtype \"bool\"\nhint: x:to(\"float32\")");
}

/* Checks that the last two dimensions of a and b are {n, k} and {k, m}. */
static bool check_inner(const lt_Tensor *a, const lt_Tensor *b) {
  int64_t k = a->shape[a->ndim - 1], k2 = b->shape[b->ndim - 2];
  if (k == k2) return true;
  return lt_fail("cannot multiply %s by %s: the inner sizes %lld and %lld differ", lt_text(a),
                 lt_text(b), (long long)k, (long long)k2);
}

/* mm (self, mat2) */
bool lt_infer_mm(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1);
  if (!lt_check_ndim(c, 0, 2, 2) || !lt_check_ndim(c, 1, 2, 2)) return false;
  if (!check_inner(a, b) || !lt_check_factors(c, 0, 1)) return false;
  lt_spec(c, 0, a->dtype, 2, (int64_t[]){a->shape[0], b->shape[1]});
  return true;
}

/* bmm (self, mat2) */
bool lt_infer_bmm(lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1);
  if (!lt_check_ndim(c, 0, 3, 3) || !lt_check_ndim(c, 1, 3, 3)) return false;
  if (a->shape[0] != b->shape[0])
    return lt_fail("cannot multiply %s by %s: the batch sizes %lld and %lld differ", lt_text(a),
                   lt_text(b), (long long)a->shape[0], (long long)b->shape[0]);
  if (!check_inner(a, b) || !lt_check_factors(c, 0, 1)) return false;
  lt_spec(c, 0, a->dtype, 3, (int64_t[]){a->shape[0], a->shape[1], b->shape[2]});
  return true;
}

/* Checks the argument `i`, the number p of a norm. */
static bool check_p(const lt_Call *c, int i) {
  double p = c->arg[i].f;
  return p == 1 || p == 2 || (p > 0 && isinf(p)) ||
         lt_fail("expected 1, 2 or inf for argument 'p', got %g", p);
}

/* _distances (x1, x2, p) */
bool lt_infer_distances(lt_Call *c) {
  const lt_Tensor *x = lt_in(c, 0), *y = lt_in(c, 1);
  if (!lt_check_float(c, 0) || !lt_check_same_dtype(c, 0, 1)) return false;
  if (!lt_check_ndim(c, 0, 2, LT_MAX_DIMS) || !lt_check_ndim(c, 1, x->ndim, x->ndim)) return false;
  int last = x->ndim - 1;
  if (!lt_shape_equal(last - 1, x->shape, last - 1, y->shape) || x->shape[last] != y->shape[last])
    return lt_fail("expected the same sizes but the one before the last, got %s and %s", lt_text(x),
                   lt_text(y));
  if (!check_p(c, 2)) return false;
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, x->shape, sizeof *shape * (size_t)last);
  shape[last] = y->shape[last - 1];
  lt_spec(c, 0, x->dtype, x->ndim, shape);
  return true;
}

/* Returns the number of pairs among n rows; -1 if it is too large, with an error. */
static int64_t count_pairs(int64_t n) {
  int64_t odd = n % 2 == 0 ? n - 1 : n, half = n / 2;
  if (half == 0 || odd <= INT64_MAX / half) return half * odd;
  lt_fail("cannot pair %lld rows", (long long)n);
  return -1;
}
/* _pdist (self, p) */
bool lt_infer_pdist(lt_Call *c) {
  if (!lt_check_float(c, 0) || !lt_check_ndim(c, 0, 2, 2) || !check_p(c, 1)) return false;
  int64_t pairs = count_pairs(lt_in(c, 0)->shape[0]);
  if (pairs < 0) return false;
  lt_spec(c, 0, lt_in(c, 0)->dtype, 1, &pairs);
  return true;
}
/* _pdist_backward (grad, self, distances) */
bool lt_infer_pdist_backward(lt_Call *c) {
  if (!lt_check_float(c, 1) || !lt_check_ndim(c, 1, 2, 2)) return false;
  int64_t pairs = count_pairs(lt_in(c, 1)->shape[0]);
  for (int i = 0; i < 3 && pairs >= 0; i += 2)
    if (!lt_check_same_dtype(c, i, 1) || !lt_check_shape(c, i, 1, &pairs)) return false;
  lt_spec_like(c, 0, lt_in(c, 1));
  return pairs >= 0;
}

/* addmm (self, mat1, mat2, beta, alpha) */
bool lt_infer_addmm(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *a = lt_in(c, 1), *b = lt_in(c, 2);
  if (!lt_check_ndim(c, 1, 2, 2) || !lt_check_ndim(c, 2, 2, 2)) return false;
  if (!check_inner(a, b) || !lt_check_factors(c, 1, 2) || !lt_check_same_dtype(c, 1, 0))
    return false;
  int64_t shape[2] = {a->shape[0], b->shape[1]};
  if (!lt_check_expands(lt_arg_name(c, 0), self->ndim, self->shape, "the product", 2, shape))
    return false;
  if (!lt_dtype_is_float(a->dtype) && !lt_dtype_is_complex(a->dtype))
    for (int i = 3; i < 5; i++)
      if (c->arg[i].scalar.kind == LT_FLOATING)
        return lt_fail("expected an integer for argument '%s' of tensors of dtype \"%s\", got %s",
                       lt_arg_name(c, i), lt_dtype_name(a->dtype),
                       lt_number_text(c->arg[i].scalar.f));
  lt_spec(c, 0, a->dtype, 2, shape);
  return true;
}
