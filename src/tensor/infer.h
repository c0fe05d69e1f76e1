/* infer.h: what the files that infer, view and compose share.
 *
 * The functions that ops.def names are declared here from the table itself, so that a
 * definition whose type drifts does not compile. Below them: checks that many ops make in the
 * same words, and the little that composites need to give their results back.
 */
#ifndef LT_INFER_H
#define LT_INFER_H

#include "core.h"
#include "opids.h"

#define LT_KERNEL(name, infer, ...) bool lt_infer_##infer(lt_Call *c);
#define LT_UPDATE(name, infer, ...) bool lt_infer_##infer(lt_Call *c);
#define LT_VIEW(name, ...)          bool lt_view_##name(lt_Call *c);
#define LT_COMPOSITE(name, ...)     bool lt_composite_##name(lt_Call *c);
#include "ops.def"
bool lt_infer_reduce(lt_Call *c);

/* Is the number s exactly `value`? */
static inline bool lt_scalar_is(lt_Scalar s, double value) {
  return lt_scalar_to_double(s) == value && (s.kind != LT_COMPLEX || s.im == 0);
}

/* ---- checks (infer_check.c): false, with the message, when they do not hold ------------------ */

/* Size of dim (0..ndim-1); a 0-d tensor counts as one dimension of size 1. */
static inline int64_t lt_size_at(const lt_Tensor *t, int dim) {
  return t->ndim ? t->shape[dim] : 1;
}
static inline const char *lt_text(const lt_Tensor *t) { return lt_shape_text(t->ndim, t->shape); }
/* The dtype argument i, or `otherwise` when it is nil. */
static inline lt_Dtype lt_dtype_or(const lt_Call *c, int i, lt_Dtype otherwise) {
  return lt_given(c, i) ? c->arg[i].dtype : otherwise;
}

/* Argument i is a tensor of float dtype. */
bool lt_check_float(const lt_Call *c, int i);
/* Argument i is a tensor of complex dtype. */
bool lt_check_complex(const lt_Call *c, int i);
/* Argument i, a number, is real. */
bool lt_check_real_number(const lt_Call *c, int i);
/* Argument i is a tensor of positions: an integer dtype with a sign. */
bool lt_check_index(const lt_Call *c, int i);
/* Argument i is a tensor of dtype bool. */
bool lt_check_mask(const lt_Call *c, int i);
/* Arguments i and j are tensors of one dtype. */
bool lt_check_same_dtype(const lt_Call *c, int i, int j);
/* The same for factors of a product of matrices, which are not bool. */
bool lt_check_factors(const lt_Call *c, int i, int j);
/* Arguments i and j are tensors of one shape. */
bool lt_check_same_shape(const lt_Call *c, int i, int j);
/* Argument i is a tensor of this shape. */
bool lt_check_shape(const lt_Call *c, int i, int ndim, const int64_t *shape);
/* Argument i is a tensor of at least `least` and at most `most` dimensions. */
bool lt_check_ndim(const lt_Call *c, int i, int least, int most);
/* A number of dimensions that a tensor can have. */
bool lt_check_rank(int64_t ndim);
/* A list of sizes as a shape: not too many, none negative, the product within int64. */
bool lt_check_sizes(const lt_Arg *sizes, int *ndim, int64_t *shape);
/* Argument i, a size, is not negative. */
bool lt_check_count(const lt_Call *c, int i);
/* Shape `from` can be broadcast to exactly `to`; `who` names the one that is broadcast. */
bool lt_check_expands(const char *who, int from_ndim, const int64_t *from, const char *to_who,
                      int to_ndim, const int64_t *to);
/* The smallest and largest value of an integer dtype or bool. */
void lt_dtype_range(lt_Dtype d, int64_t *low, int64_t *high);

/* ---- views (view.c) -------------------------------------------------------------------------- */

/* sizes, of which one may be -1, as a shape that holds `numel` elements of something shaped
 * `said`. */
bool lt_view_shape(int64_t numel, const char *said, const lt_Arg *sizes, int *ndim, int64_t *shape);
/* The strides that show t's elements in another shape of the same size, without a copy; false
 * (no message) when its layout does not allow it. */
bool lt_view_strides(const lt_Tensor *t, int ndim, const int64_t *shape, int64_t *strides);

/* ---- composites (composite_results.c) -------------------------------------------------------- */

/* The composite's result: a borrowed tensor, NULL when something failed. */
bool lt_result_set(lt_Call *c, lt_Tensor *t);
bool lt_result_set_two(lt_Call *c, lt_Tensor *a, lt_Tensor *b);
/* A list: room for n tensors, then each of them; `t`, a result of lt_do in the open scope, NULL
 * when it failed. */
bool lt_result_list_open(lt_Call *c, int64_t n);
bool lt_result_list_add(lt_Call *c, lt_Tensor *t);
/* A list of n views that lie one after another in dim, of these sizes, or (NULL) of `each` with
 * a smaller last. */
bool lt_result_set_pieces(lt_Call *c, lt_Tensor *t, int dim, int64_t n, const int64_t *sizes,
                          int64_t each);
bool lt_result_set_flag(lt_Call *c, bool flag);
/* The first `count` results of an op, owned by the open scope. */
bool lt_do_all(lt_OpId op, const lt_Arg *args, int nargs, int count, lt_Tensor **out);

/* `count` positions of dim from `first`, a view. */
static inline lt_Tensor *lt_do_slice(lt_Tensor *t, int dim, int64_t first, int64_t count) {
  return lt_do(_slice, LT_ARG(t), LT_ARG(dim), LT_ARG(first), LT_ARG(count), LT_ARG(1));
}
static inline lt_Tensor *lt_do_view(lt_Tensor *t, int ndim, const int64_t *shape) {
  return lt_do(view, LT_ARG(t), LT_INTS(shape, ndim));
}
static inline lt_Tensor *lt_do_reshape(lt_Tensor *t, int ndim, const int64_t *shape) {
  return lt_do(reshape, LT_ARG(t), LT_INTS(shape, ndim));
}

#endif
