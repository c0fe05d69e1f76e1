/* composite_product.c: matrix products.
 *
 * All products are computed by mm, addmm or bmm on views of the arguments. A batch of matrices
 * times one matrix becomes one matrix product; batches on both sides are expanded without copies,
 * and multiplied by bmm. */
#include "infer.h"

/* Describes a vector as a matrix of one row or of one column in `room`, which owns nothing. */
static lt_Tensor *as_matrix(const lt_Tensor *t, bool column, lt_Tensor *room) {
  atomic_init(&room->refs, 1);
  room->dtype = t->dtype;
  room->ndim = 2;
  room->requires_grad = room->hooked = false;
  room->inference = t->inference;
  room->freed = LT_LIVE;
  room->storage = t->storage;
  room->offset = t->offset;
  room->numel = t->numel;
  room->meta = NULL;
  room->shape[!column] = t->shape[0];
  room->strides[!column] = t->strides[0];
  room->shape[column] = room->strides[column] = 1;
  return room;
}

/* Computes a @ b, with ndim dims: a product of two vectors (0), or of a matrix and a vector. */
static bool product_with_vector(lt_Call *c, lt_Tensor *a, lt_Tensor *b, int ndim) {
  if (!lt_is_unobserved(c) || lt_dtype_is_complex(a->dtype)) {
    lt_Tensor *row = ndim ? a : lt_do(unsqueeze, LT_ARG(a), LT_ARG(0)),
              *column = lt_do(unsqueeze, LT_ARG(b), LT_ARG(1));
    return lt_result_set(c, lt_do_view(lt_do(mm, LT_ARG(row), LT_ARG(column)), ndim, a->shape));
  }
  lt_Tensor room[2], *row = ndim ? a : as_matrix(a, false, &room[0]),
                     *column = as_matrix(b, true, &room[1]);
  lt_Tensor *out = lt_scope_own(lt_empty(a->dtype, lt_cpu(), 2, (int64_t[]){row->shape[0], 1}));
  if (!out || !lt_run_at_once(LT_OP_mm, (lt_Arg[]){LT_ARG(row), LT_ARG(column)}, 2, out))
    return false;
  out->ndim = ndim; /* {n, 1} becomes {n} or {} */
  return lt_result_set(c, out);
}

/* dot (self, other). Complex vectors are multiplied and added up: a product of matrices would copy
 * their parts first, which takes longer. */
bool lt_composite_dot(lt_Call *c) {
  if (!lt_check_ndim(c, 0, 1, 1) || !lt_check_ndim(c, 1, 1, 1)) return false;
  if (!lt_check_same_shape(c, 0, 1) || !lt_check_factors(c, 0, 1)) return false;
  if (lt_dtype_is_complex(lt_in(c, 0)->dtype))
    return lt_result_set(c, lt_do(sum, LT_ARG(lt_do(mul, c->arg[0], c->arg[1]))));
  return product_with_vector(c, lt_in(c, 0), lt_in(c, 1), 0);
}

/* mv (self, vec) */
bool lt_composite_mv(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0), *vec = lt_in(c, 1);
  if (!lt_check_ndim(c, 0, 2, 2) || !lt_check_ndim(c, 1, 1, 1)) return false;
  if (self->shape[1] != vec->shape[0])
    return lt_fail("cannot multiply %s by %s: the inner sizes %lld and %lld differ", lt_text(self),
                   lt_text(vec), (long long)self->shape[1], (long long)vec->shape[0]);
  return lt_check_factors(c, 0, 1) && product_with_vector(c, lt_in(c, 0), lt_in(c, 1), 1);
}

/* outer (self, vec2) */
bool lt_composite_outer(lt_Call *c) {
  if (!lt_check_ndim(c, 0, 1, 1) || !lt_check_ndim(c, 1, 1, 1)) return false;
  return lt_result_set(c, lt_do(mul, LT_ARG(lt_do(unsqueeze, c->arg[0], LT_ARG(1))), c->arg[1]));
}

/* Returns beta * self. If beta is 0, returns zeros with gradient 0, even if self contains NaN. */
static lt_Tensor *scaled(lt_Arg self, lt_Scalar beta) {
  if (lt_scalar_is(beta, 1)) return self.tensor;
  if (!lt_scalar_is(beta, 0)) return lt_do(mul, self, LT_ARG(beta));
  lt_Tensor *all = lt_do(ones_like, self, lt_arg_dtype(LT_bool));
  return lt_do(masked_fill, self, LT_ARG(all), LT_ARG(0));
}

/* baddbmm (self, batch1, batch2, beta, alpha): if beta is 0, self is ignored, even if it contains
 * NaN. */
bool lt_composite_baddbmm(lt_Call *c) {
  const lt_Tensor *self = lt_in(c, 0);
  if (!lt_check_ndim(c, 1, 3, 3) || !lt_check_ndim(c, 2, 3, 3) || !lt_check_factors(c, 1, 2) ||
      !lt_check_same_dtype(c, 1, 0))
    return false;
  lt_Tensor *product = lt_do(bmm, c->arg[1], c->arg[2]);
  if (!product) return false;
  if (!lt_check_expands("self", self->ndim, self->shape, "the product", 3, product->shape))
    return false;
  lt_Arg number[] = {c->arg[3], c->arg[4]}; /* beta, alpha; integers drop fractions */
  for (int i = 0; i < 2 && !lt_dtype_is_complex(product->dtype); i++) {
    if (!lt_check_real_number(c, 3 + i)) return false;
    if (!lt_dtype_is_float(product->dtype))
      number[i].scalar = lt_scalar_int(lt_scalar_to_int(number[i].scalar));
  }
  if (c->in_place && !lt_shape_equal(self->ndim, self->shape, 3, product->shape))
    return lt_fail("cannot store the result in self: the result has the shape %s, self has %s",
                   lt_text(product), lt_text(self));
  lt_Tensor *rest = scaled(c->arg[0], number[0].scalar);
  lt_Tensor *sum = lt_do(add, LT_ARG(rest), LT_ARG(product), number[1]);
  return lt_result_set(c, c->in_place ? lt_do_in_place(_copy, c->arg[0], LT_ARG(sum)) : sum);
}

/* ---- matmul ---------------------------------------------------------------------------------- */

/* Checks that the sizes of a and b allow a product. */
static bool check_matmul(const lt_Tensor *a, const lt_Tensor *b) {
  if (a->ndim == 0 || b->ndim == 0)
    return lt_fail("cannot multiply %s by %s: both need at least one dimension\nhint: a:mul(b)",
                   lt_text(a), lt_text(b));
  int64_t k = a->shape[a->ndim - 1], k2 = b->shape[b->ndim > 1 ? b->ndim - 2 : 0];
  if (k != k2)
    return lt_fail("cannot multiply %s by %s: the inner sizes %lld and %lld differ", lt_text(a),
                   lt_text(b), (long long)k, (long long)k2);
  return true;
}

/* Multiplies {..., n, k} by {k, m} as one matrix product: the batch dimensions become rows. */
static lt_Tensor *fold(lt_Tensor *a, lt_Tensor *b) {
  int64_t shape[LT_MAX_DIMS], rows, k = a->shape[a->ndim - 1];
  if (!lt_shape_numel(NULL, a->ndim - 1, a->shape, &rows)) return NULL;
  memcpy(shape, a->shape, sizeof shape);
  shape[a->ndim - 1] = b->shape[1];
  lt_Tensor *product = lt_do(mm, LT_ARG(lt_do_reshape(a, 2, (int64_t[]){rows, k})), LT_ARG(b));
  return lt_do_view(product, a->ndim, shape);
}

/* Expands t to these batch sizes, as a batch of `count` matrices. */
static lt_Tensor *as_batch(lt_Tensor *t, int batch_ndim, const int64_t *batch, int64_t count) {
  int64_t shape[LT_MAX_DIMS + 2];
  if (batch_ndim) memcpy(shape, batch, sizeof(int64_t) * (size_t)batch_ndim);
  const int64_t *matrix = t->shape + t->ndim - 2;
  shape[batch_ndim] = matrix[0];
  shape[batch_ndim + 1] = matrix[1];
  int ndim = batch_ndim + 2;
  if (!lt_shape_equal(ndim, shape, t->ndim, t->shape))
    t = lt_do(expand, LT_ARG(t), LT_INTS(shape, ndim));
  return ndim == 3 ? t : lt_do_reshape(t, 3, (int64_t[]){count, matrix[0], matrix[1]});
}

/* Multiplies two batches of matrices, which are broadcast. */
static lt_Tensor *batched(lt_Tensor *a, lt_Tensor *b) {
  int ndim = a->ndim - 2;
  int64_t shape[LT_MAX_DIMS], count = 1;
  memcpy(shape, a->shape, sizeof(int64_t) * (size_t)a->ndim);
  if (!lt_shape_broadcast(&ndim, shape, b->ndim - 2, b->shape))
    return lt_fail(
               "cannot multiply %s by %s: the batch sizes %s and %s cannot be broadcast together",
               lt_text(a), lt_text(b), lt_shape_text(a->ndim - 2, a->shape),
               lt_shape_text(b->ndim - 2, b->shape)),
           NULL;
  if (!lt_shape_numel(NULL, ndim, shape, &count)) return NULL;
  lt_Tensor *product =
      lt_do(bmm, LT_ARG(as_batch(a, ndim, shape, count)), LT_ARG(as_batch(b, ndim, shape, count)));
  shape[ndim] = a->shape[a->ndim - 2];
  shape[ndim + 1] = b->shape[b->ndim - 1];
  return ndim == 1 ? product : lt_do_view(product, ndim + 2, shape);
}

/* Multiplies two tensors of at least two dimensions. */
static lt_Tensor *multiply(lt_Tensor *a, lt_Tensor *b) {
  if (a->ndim == 2 && b->ndim == 2) return lt_do(mm, LT_ARG(a), LT_ARG(b));
  return b->ndim == 2 ? fold(a, b) : batched(a, b);
}

/* matmul (self, other): a vector is treated as a matrix of one row (left) or one column (right),
 * and that dimension is removed from the result. */
bool lt_composite_matmul(lt_Call *c) {
  lt_Tensor *a = lt_in(c, 0), *b = lt_in(c, 1);
  if (!check_matmul(a, b) || !lt_check_factors(c, 0, 1)) return false;
  bool row = a->ndim == 1, column = b->ndim == 1;
  if (row) a = lt_do(unsqueeze, LT_ARG(a), LT_ARG(0));
  if (column) b = lt_do(unsqueeze, LT_ARG(b), LT_ARG(1));
  if (!a || !b) return false;
  lt_Tensor *product = multiply(a, b);
  if (column) product = lt_do(squeeze, LT_ARG(product), LT_ARG(-1));
  if (row) product = lt_do(squeeze, LT_ARG(product), LT_ARG(column ? -1 : -2));
  return lt_result_set(c, product);
}

/* ---- layers ---------------------------------------------------------------------------------- */

/* Checks the sizes of input, weight and bias. */
static bool check_linear(const lt_Call *c) {
  const lt_Tensor *input = lt_in(c, 0), *weight = lt_in(c, 1), *bias = lt_in(c, 2);
  if (!lt_check_ndim(c, 0, 1, LT_MAX_DIMS) || !lt_check_ndim(c, 1, 2, 2)) return false;
  int64_t in = input->shape[input->ndim - 1];
  if (in != weight->shape[1])
    return lt_fail("expected %lld features for argument 'input' (weight is %s), got %lld: %s",
                   (long long)weight->shape[1], lt_text(weight), (long long)in, lt_text(input));
  if (bias && (bias->ndim > 1 || (bias->ndim == 1 && bias->shape[0] != weight->shape[0])))
    return lt_fail(
        "expected shape {%lld} for argument 'bias', one number for each row of weight %s, got %s",
        (long long)weight->shape[0], lt_text(weight), lt_text(bias));
  return lt_check_same_dtype(c, 0, 1) && (!bias || lt_check_same_dtype(c, 0, 2));
}

/* linear with a weight {in}: one output without a dimension, and a bias {}. */
static bool linear_of_vector(lt_Call *c) {
  const lt_Tensor *bias = lt_in(c, 2);
  if (bias && bias->ndim > 0)
    return lt_fail("expected shape {} for argument 'bias' with a weight of one dimension, got %s",
                   lt_text(bias));
  lt_Tensor *out = lt_do(matmul, c->arg[0], c->arg[1]);
  return lt_result_set(c, bias ? lt_do(add, LT_ARG(out), c->arg[2]) : out);
}

/* linear (input, weight, bias?) */
bool lt_composite_linear(lt_Call *c) {
  lt_Tensor *input = lt_in(c, 0), *weight = lt_in(c, 1);
  if (weight->ndim == 1) return linear_of_vector(c);
  if (!check_linear(c)) return false;
  int64_t shape[LT_MAX_DIMS], in = weight->shape[1], rows;
  int last = input->ndim - 1;
  if (!lt_shape_numel(NULL, last, input->shape, &rows)) return false;
  memcpy(shape, input->shape, sizeof shape);
  shape[last] = weight->shape[0];
  lt_Tensor *flat = last == 1 ? input : lt_do_reshape(input, 2, (int64_t[]){rows, in});
  lt_Tensor *turned = lt_do(transpose, LT_ARG(weight), LT_ARG(0), LT_ARG(1));
  lt_Tensor *out = lt_given(c, 2) ? lt_do(addmm, c->arg[2], LT_ARG(flat), LT_ARG(turned))
                                  : lt_do(mm, LT_ARG(flat), LT_ARG(turned));
  return lt_result_set(c, last == 1 ? out : lt_do_view(out, last + 1, shape));
}
