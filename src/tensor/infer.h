/* infer.h: shared by infer_*.c, view.c and composite_*.c.
 *
 * It declares the functions that ops.def names from the table itself, so a definition of another
 * type does not compile. Then follow the checks that many ops share, so that they report the same
 * message, and the functions with which composites return their results.
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

/* Returns true when the number s is exactly `value`. */
static inline bool lt_scalar_is(lt_Scalar s, double value) {
  return lt_scalar_to_double(s) == value && (s.kind != LT_COMPLEX || s.im == 0);
}

/* Returns the size of dim (0..ndim-1); a 0-d tensor has one dimension of size 1. */
static inline int64_t lt_size_at(const lt_Tensor *t, int dim) {
  return t->ndim ? t->shape[dim] : 1;
}
/* Formats t's shape for a message (lt_shape_text). */
static inline const char *lt_text(const lt_Tensor *t) { return lt_shape_text(t->ndim, t->shape); }
/* Returns the dtype argument i, or `otherwise` when it is nil. */
static inline lt_Dtype lt_dtype_or(const lt_Call *c, int i, lt_Dtype otherwise) {
  return lt_given(c, i) ? c->arg[i].dtype : otherwise;
}

/* ---- elementwise ops and complex arguments (infer_elementwise.c) ----------------------------- */

/* Fills in c->compute and the spec of an elementwise op's result. Fails for dtypes that the rule
 * excludes, shapes that do not broadcast and numbers that the result cannot hold. */
bool lt_infer_elementwise(lt_Call *c);
/* Returns true when the argument is complex: a number, a dtype, or a tensor, which is stored in
 * *found. */
bool lt_arg_is_complex(const lt_Arg *a, const lt_Tensor **found);
/* Returns true when an argument of the call is complex. */
bool lt_has_complex_arg(const lt_Call *c);
/* Fails with the first complex argument; one must be there. Returns false. */
bool lt_refuse_complex(const lt_Call *c);
/* Returns the function that computes the op of complex tensors by other ops, where its kernels
 * accept real tensors only (composite_reduce_complex.c); NULL when there is none. */
lt_KernelFn lt_complex_form(lt_OpId op);

/* ---- checks (infer_check.c) ------------------------------------------------------------------ */

/* Each checks that what its comment states is true, and fails with an error that names the argument
 * when it is not. */

/* Argument i is a tensor of float dtype. */
bool lt_check_float(const lt_Call *c, int i);
/* Argument i is a tensor of complex dtype. */
bool lt_check_complex(const lt_Call *c, int i);
/* Argument i, a number, is real. */
bool lt_check_real_number(const lt_Call *c, int i);
/* Argument i is an index tensor: of a signed integer dtype. */
bool lt_check_index(const lt_Call *c, int i);
/* Argument i is a tensor of dtype bool. */
bool lt_check_mask(const lt_Call *c, int i);
/* Arguments i and j are tensors of one dtype. */
bool lt_check_same_dtype(const lt_Call *c, int i, int j);
/* Arguments i and j can be multiplied as matrices: of one dtype, which is not bool. */
bool lt_check_factors(const lt_Call *c, int i, int j);
/* Arguments i and j are tensors of one shape. */
bool lt_check_same_shape(const lt_Call *c, int i, int j);
/* Argument i is a tensor of this shape. */
bool lt_check_shape(const lt_Call *c, int i, int ndim, const int64_t *shape);
/* Argument i is a tensor of at least `least` and at most `most` dimensions. */
bool lt_check_ndim(const lt_Call *c, int i, int least, int most);
/* ndim is a number of dimensions that a tensor can have. */
bool lt_check_rank(int64_t ndim);
/* A list of sizes is a valid shape: not too many, none negative, the product within int64. Copies
 * it to *ndim and shape. */
bool lt_check_sizes(const lt_Arg *sizes, int *ndim, int64_t *shape);
/* Argument i, a size, is not negative. */
bool lt_check_count(const lt_Call *c, int i);
/* Shape `from` can be broadcast to exactly `to`. `who` and `to_who` name the two in the error. */
bool lt_check_expands(const char *who, int from_ndim, const int64_t *from, const char *to_who,
                      int to_ndim, const int64_t *to);
/* Returns the smallest and largest value of an integer dtype or bool. */
void lt_dtype_range(lt_Dtype d, int64_t *low, int64_t *high);

/* ---- views (view.c) -------------------------------------------------------------------------- */

/* Computes the shape that `sizes`, of which one may be -1, gives for `numel` elements. Fails when
 * it does not hold that many; `from` is the current shape in the error. */
bool lt_view_shape(int64_t numel, int from_ndim, const int64_t *from, const lt_Arg *sizes,
                   int *ndim, int64_t *shape);
/* Computes the strides of a view of t with another shape of the same number of elements. Returns
 * false, without an error, when that needs a copy. */
bool lt_view_strides(const lt_Tensor *t, int ndim, const int64_t *shape, int64_t *strides);

/* ---- composites (composite_results.c) -------------------------------------------------------- */

/* These set the results of a composite. They borrow the tensors, which the open scope or an
 * argument holds; dispatch adds the caller's references. A NULL tensor stands for a call that
 * failed: then they return false and leave its error in the slot. */

/* Sets the one result, or the two results. */
bool lt_result_set(lt_Call *c, lt_Tensor *t);
bool lt_result_set_two(lt_Call *c, lt_Tensor *a, lt_Tensor *b);
/* Makes the result a list of n tensors; then lt_result_list_add appends each of them. */
bool lt_result_list_open(lt_Call *c, int64_t n);
bool lt_result_list_add(lt_Call *c, lt_Tensor *t);
/* Makes the result a list of n views that divide t along dim: of these sizes, or, when sizes is
 * NULL, of size `each`, where the last may be smaller. */
bool lt_result_set_pieces(lt_Call *c, lt_Tensor *t, int dim, int64_t n, const int64_t *sizes,
                          int64_t each);
/* Makes the result a boolean. */
bool lt_result_set_flag(lt_Call *c, bool flag);
/* Runs an op and stores its first `count` results in `out`, owned by the open scope. */
bool lt_do_all(lt_OpId op, const lt_Arg *args, int nargs, int count, lt_Tensor **out);

/* Returns true when nothing but the result of a composite matters: its calls run on the CPU, and
 * neither autograd, autocast, a tracer nor a recorder sees them. Then they may be left out. */
bool lt_is_unobserved(const lt_Call *c);
/* Runs the CPU's kernel of an op with one result into `out`, without a call of the op: only inside
 * of a composite that is unobserved. The arguments are all of the op's, checked and of their
 * parameters' types; `out` is what its infer function would describe. */
bool lt_run_at_once(lt_OpId op, const lt_Arg *args, int nargs, lt_Tensor *out);

/* Returns a view of `count` indices of dim from `first` on (0-based), owned by the open scope. */
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
