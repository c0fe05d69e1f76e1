/* test_autograd.c: automatic differentiation. Expected values are derived in comments, or are
 * PyTorch 1.13's where a comment says so. Every test runs in a scope of its own and must leave no
 * memory of tensors behind. */
#include "opids.h"
#include "autograd/autograd.h"
#include "check.h"

#include "core.h"

/* ---- helpers --------------------------------------------------------------------------------- */

#define OWN(t) lt_scope_own(t)
#define YES    lt_arg_bool(true)
#define NO     lt_arg_bool(false)

/* Returns a float64 tensor with these values, which belongs to the scope. */
static lt_Tensor *values(int ndim, const int64_t *shape, const double *v) {
  lt_Tensor *t = lt_empty(LT_float64, lt_cpu(), ndim, shape);
  if (t && t->numel) memcpy(lt_tensor_data(t), v, sizeof *v * (size_t)t->numel);
  return OWN(t);
}
#define VECTOR(...)                                                                                \
  values(1, (const int64_t[]){(int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))},        \
         (const double[]){__VA_ARGS__})
#define MATRIX(rows, columns, ...)                                                                 \
  values(2, (const int64_t[]){rows, columns}, (const double[]){__VA_ARGS__})

static lt_Tensor *leaf(lt_Tensor *t) {
  CHECK(lt_tensor_set_requires_grad(t, true));
  return t;
}

/* Returns a leaf times 1, which is not a leaf. */
static lt_Tensor *inner(lt_Tensor *t) { return lt_do(mul, LT_ARG(t), LT_ARG(1.0)); }

static bool backward(lt_Tensor *t) { return lt_backward(1, &t, NULL, false, false, 0, NULL); }
static bool backward_sum(lt_Tensor *t) { return backward(lt_do(sum, LT_ARG(t))); }
static bool backward_retain(lt_Tensor *t) { return lt_backward(1, &t, NULL, true, false, 0, NULL); }

/* Returns d y / d x, which belongs to the scope. */
static lt_Tensor *slope(lt_Tensor *y, lt_Tensor *x, bool create_graph) {
  lt_Tensor *out = NULL;
  bool ok = lt_grad(1, &y, NULL, create_graph, create_graph, false, 1, &x, &out);
  return ok ? OWN(out) : NULL;
}

static double at(lt_Tensor *t, int64_t i) {
  double v = NAN;
  lt_Tensor *c = t ? lt_as_contiguous(t, LT_float64) : NULL;
  if (c && i < c->numel) v = ((double *)lt_tensor_data(c))[i];
  lt_release(c);
  return v;
}

#define CHECK_VALUES(t, ...)                                                                       \
  do {                                                                                             \
    lt_Tensor *t_ = (t);                                                                           \
    const double want_list[] = {__VA_ARGS__};                                                      \
    CHECK(t_ != NULL);                                                                             \
    for (size_t i_ = 0; t_ && i_ < sizeof want_list / sizeof *want_list; i_++)                     \
      CHECK_NEAR(at(t_, (int64_t)i_), want_list[i_], 1e-12);                                       \
    if (t_) CHECK_INT(t_->numel, (int64_t)(sizeof want_list / sizeof *want_list));                 \
  } while (0)

#define CHECK_GRAD(x, ...) CHECK_VALUES(lt_tensor_grad(x), __VA_ARGS__)
#define CHECK_FAILS(call, text)                                                                    \
  do {                                                                                             \
    CHECK(!(call));                                                                                \
    CHECK_CONTAINS(lt_error(), text);                                                              \
  } while (0)

/* ---- values ---------------------------------------------------------------------------------- */

static void chain_of_products(void) {
  /* d sum(x^2 y) = 2 x y, x^2 */
  lt_Tensor *x = leaf(VECTOR(1, 2, 3)), *y = leaf(VECTOR(4, 5, 6));
  CHECK(backward_sum(lt_do(mul, LT_ARG(lt_do(mul, LT_ARG(x), LT_ARG(x))), LT_ARG(y))));
  CHECK_GRAD(x, 8, 20, 36);
  CHECK_GRAD(y, 1, 4, 9);
}

static void broadcasting_is_summed(void) {
  lt_Tensor *m = leaf(MATRIX(2, 3, 1, 2, 3, 4, 5, 6)), *row = leaf(VECTOR(1, 10, 100));
  lt_Tensor *column = leaf(MATRIX(2, 1, 2, 3));
  CHECK(backward_sum(lt_do(mul, LT_ARG(lt_do(mul, LT_ARG(m), LT_ARG(row))), LT_ARG(column))));
  CHECK_GRAD(m, 2, 20, 200, 3, 30, 300);
  CHECK_GRAD(row, 1 * 2 + 4 * 3, 2 * 2 + 5 * 3, 3 * 2 + 6 * 3);
  CHECK_GRAD(column, 321, 654);
  CHECK_INT(lt_tensor_grad(row)->ndim, 1);
  CHECK_INT(lt_tensor_grad(column)->ndim, 2);
}

static void gradients_have_the_dtypes_of_inputs(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2));
  lt_Tensor *h = OWN(lt_empty(LT_float32, lt_cpu(), 1, (int64_t[]){2}));
  CHECK(lt_do_in_place(fill, LT_ARG(h), LT_ARG(3.0)) != NULL);
  leaf(h);
  CHECK(backward_sum(lt_do(mul, LT_ARG(x), LT_ARG(h))));
  CHECK_INT(lt_tensor_grad(x)->dtype, LT_float64);
  CHECK_INT(lt_tensor_grad(h)->dtype, LT_float32);
  CHECK_GRAD(x, 3, 3);
  CHECK_GRAD(h, 1, 2);
}

static void grads_accumulate(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2));
  CHECK(backward_sum(lt_do(mul, LT_ARG(x), LT_ARG(2.0))));
  CHECK(backward_sum(lt_do(mul, LT_ARG(x), LT_ARG(3.0))));
  CHECK_GRAD(x, 5, 5);
  CHECK(lt_tensor_set_grad(x, NULL));
  CHECK(lt_tensor_grad(x) == NULL);
}

/* The gradient passed in belongs to the user: a grad must not share its memory. */
static void passed_gradient_is_copied(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *g = VECTOR(5, 7);
  CHECK(lt_backward(1, &x, &g, false, false, 0, NULL));
  CHECK_GRAD(x, 5, 7);
  CHECK(lt_tensor_grad(x)->storage != g->storage);
}

static void grad_is_contiguous(void) {
  lt_Tensor *w = leaf(MATRIX(2, 3, 1, 2, 3, 4, 5, 6)), *x = MATRIX(1, 3, 1, 10, 100);
  CHECK(backward_sum(
      lt_do(mm, LT_ARG(x), LT_ARG(lt_do(transpose, LT_ARG(w), LT_ARG(0), LT_ARG(1))))));
  CHECK_GRAD(w, 1, 10, 100, 1, 10, 100);
  CHECK(lt_tensor_is_contiguous(lt_tensor_grad(w)));
}

static void used_twice_and_through_two_paths(void) {
  /* y = x^2; z = y + y x  =>  2 x + 3 x^2 */
  lt_Tensor *x = leaf(VECTOR(2, 3)), *y = lt_do(square, LT_ARG(x));
  CHECK(backward_sum(lt_do(add, LT_ARG(y), LT_ARG(lt_do(mul, LT_ARG(y), LT_ARG(x))))));
  CHECK_GRAD(x, 16, 33);
}

static void gradients_of_given_inputs_only(void) {
  lt_Tensor *x = leaf(VECTOR(2)), *w = leaf(VECTOR(5)), *y = lt_do(mul, LT_ARG(x), LT_ARG(w));
  lt_Tensor *z = lt_do(square, LT_ARG(y)), *out[2];
  CHECK(lt_backward(1, &z, NULL, true, false, 1, &w)); /* 2 y x = 40 */
  CHECK(lt_tensor_grad(x) == NULL);
  CHECK_GRAD(w, 40);
  lt_Tensor *inputs[] = {y, x};
  CHECK(lt_grad(1, &z, NULL, false, false, false, 2, inputs, out));
  CHECK_VALUES(OWN(out[0]), 20);  /* 2 y */
  CHECK_VALUES(OWN(out[1]), 100); /* 2 y w */
  CHECK(lt_tensor_grad(x) == NULL);
}

static void unused_inputs(void) {
  lt_Tensor *x = leaf(VECTOR(2)), *w = leaf(VECTOR(5)), *out[2];
  lt_Tensor *y = lt_do(square, LT_ARG(x)), *inputs[] = {x, w};
  CHECK_FAILS(lt_grad(1, &y, NULL, true, false, false, 2, inputs, out),
              "grad: expected input 2 to be used");
  CHECK(out[0] == NULL && out[1] == NULL);
  CHECK(lt_grad(1, &y, NULL, true, false, true, 2, inputs, out));
  CHECK_VALUES(OWN(out[0]), 4);
  CHECK(out[1] == NULL);
}

static void several_roots(void) {
  lt_Tensor *x = leaf(VECTOR(3)), *y = lt_do(square, LT_ARG(x)),
            *z = lt_do(mul, LT_ARG(y), LT_ARG(x));
  lt_Tensor *g = VECTOR(10), *roots[] = {y, z}, *grads[] = {g, NULL};
  CHECK(lt_backward(2, roots, grads, false, false, 0, NULL)); /* 10 * 2 x + 3 x^2 = 60 + 27 */
  CHECK_GRAD(x, 87);
}

static void gradients_of_gradients(void) {
  /* x^3: 3 x^2, 6 x, 6 */
  lt_Tensor *x = leaf(VECTOR(2)), *y = lt_do(pow, LT_ARG(x), LT_ARG(3.0));
  lt_Tensor *first = slope(y, x, true), *second = slope(first, x, true),
            *third = slope(second, x, false);
  CHECK_VALUES(first, 12);
  CHECK_VALUES(second, 12);
  CHECK_VALUES(third, 6);
  /* through a saved result: tanh'' = -2 t (1 - t^2) */
  double t = tanh(0.5);
  lt_Tensor *u = leaf(VECTOR(0.5));
  CHECK_VALUES(slope(slope(lt_do(tanh, LT_ARG(u)), u, true), u, false), -2 * t * (1 - t * t));
}

static void create_graph_into_grad(void) {
  lt_Tensor *x = leaf(VECTOR(3)), *y = lt_do(pow, LT_ARG(x), LT_ARG(3.0));
  CHECK(lt_backward(1, &y, NULL, true, true, 0, NULL));
  lt_Tensor *g = OWN(lt_retain(lt_tensor_grad(x)));
  CHECK_VALUES(g, 27);
  CHECK(g->requires_grad);
  CHECK(lt_tensor_set_grad(x, NULL));
  CHECK(backward(g));
  CHECK_GRAD(x, 18);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void results_require_grad_by_their_inputs(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *c = VECTOR(3, 4);
  lt_Tensor *y = lt_do(mul, LT_ARG(x), LT_ARG(c)),
            *whole = OWN(lt_empty(LT_int64, lt_cpu(), 1, (int64_t[]){2}));
  CHECK(y->requires_grad && !lt_tensor_is_leaf(y));
  CHECK_STR(lt_tensor_grad_fn_name(y), "MulBackward");
  CHECK_STR(lt_tensor_grad_fn_name(lt_do(_true_divide, LT_ARG(x), LT_ARG(c))),
            "TrueDivideBackward");
  CHECK(lt_tensor_grad_fn_name(x) == NULL);
  CHECK(!lt_do(mul, LT_ARG(c), LT_ARG(c))->requires_grad);
  CHECK(!lt_do(gt, LT_ARG(x), LT_ARG(0.0))->requires_grad);
  CHECK(!lt_do(detach, LT_ARG(y))->requires_grad);
  CHECK(lt_do(floor, LT_ARG(x))->requires_grad);
  CHECK(lt_grad_set_enabled(false));
  CHECK(!lt_do(mul, LT_ARG(x), LT_ARG(c))->requires_grad);
  CHECK(!lt_grad_set_enabled(true));
  CHECK_FAILS(lt_tensor_set_requires_grad(whole, true),
              "expected a tensor of a float dtype for argument 'self', got \"int64\"");
  CHECK_FAILS(lt_tensor_set_requires_grad(y, false),
              "cannot turn requires_grad off: the tensor is not a leaf");
  CHECK(lt_tensor_set_requires_grad(y, true));
}

static void invalid_calls_of_backward(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *c = VECTOR(1, 2), *y = lt_do(mul, LT_ARG(x), LT_ARG(c)),
            *g = VECTOR(1, 2, 3);
  CHECK_FAILS(backward(c), "backward: expected the tensor to require grad");
  CHECK_FAILS(backward(y), "backward: expected a gradient for the tensor of shape {2}, got none: "
                           "it is optional only for one element");
  CHECK_FAILS(lt_backward(1, &y, &g, false, false, 0, NULL),
              "backward: expected a gradient of shape {2} for the tensor, got {3}");
  CHECK_FAILS(lt_backward(1, &y, &c, false, false, 0, &x),
              "backward: expected at least one tensor for argument 'inputs', got an empty list");
  CHECK_FAILS(lt_backward(1, &y, &c, false, false, 1, &c),
              "backward: expected input 1 to require grad");
  CHECK(lt_tensor_grad(x) == NULL);
}

static void backward_twice(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *y = lt_do(sum, LT_ARG(lt_do(mul, LT_ARG(x), LT_ARG(x))));
  CHECK(backward_retain(y));
  CHECK(backward(y));
  CHECK_FAILS(backward(y), "backward: cannot go through the graph a second time: an earlier "
                           "backward freed it (at mul)\nhint: loss:backward{retain_graph = true}");
  CHECK_GRAD(x, 4, 8);
}

/* Nodes without saved tensors can be used twice, as in PyTorch. */
static void shared_nodes_without_saved_tensors(void) {
  lt_Tensor *x = leaf(VECTOR(1)), *h = lt_do(add, LT_ARG(x), LT_ARG(1.0));
  CHECK(backward(lt_do(mul, LT_ARG(h), LT_ARG(2.0))));
  CHECK(backward(lt_do(mul, LT_ARG(h), LT_ARG(3.0))));
  CHECK_GRAD(x, 5);
}

static void failure_changes_no_grad(void) {
  /* The latest part (w's) succeeds, then x's fails: its saved value was changed. */
  lt_Tensor *x = leaf(VECTOR(1)), *w = leaf(VECTOR(2)), *a = lt_do(mul, LT_ARG(x), LT_ARG(1.0));
  lt_Tensor *b = lt_do(square, LT_ARG(a));
  lt_Tensor *y = lt_do(add, LT_ARG(b), LT_ARG(lt_do(mul, LT_ARG(w), LT_ARG(3.0))));
  CHECK(lt_do_in_place(add, LT_ARG(a), LT_ARG(1.0)) != NULL);
  CHECK_FAILS(
      backward(y),
      "which square saved for backward, was changed in place by add_ (version 1, expected 0)");
  CHECK(lt_tensor_grad(w) == NULL);
  CHECK(lt_tensor_grad(x) == NULL);
}

static void leaf_in_place(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2));
  CHECK_FAILS(lt_do_in_place(add, LT_ARG(x), LT_ARG(1.0)),
              "add_: cannot change a leaf that requires grad in place");
  lt_Tensor *first = lt_do(select, LT_ARG(x), LT_ARG(0), LT_ARG(0));
  CHECK_FAILS(lt_do_in_place(fill, LT_ARG(first), LT_ARG(1.0)),
              "fill_: cannot change self in place: it is a view of a leaf that requires grad");
  CHECK_VALUES(x, 1, 2);
  lt_grad_set_enabled(false);
  CHECK(lt_do_in_place(add, LT_ARG(x), LT_ARG(1.0)) != NULL);
  lt_grad_set_enabled(true);
  CHECK_VALUES(x, 2, 3);
  CHECK(lt_tensor_is_leaf(x));
}

/* The graph holds no reference to itself: a tensor changed in place by a result of its own is freed
 * without backward. */
static void no_cycles(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *y = inner(x);
  CHECK(lt_do_in_place(add, LT_ARG(y), LT_ARG(lt_do(sin, LT_ARG(y)))) == y);
  CHECK(lt_do_in_place(mul, LT_ARG(y), LT_ARG(lt_do(exp, LT_ARG(y)))) == y);
  lt_Tensor *row = lt_do(_slice, LT_ARG(y), LT_ARG(0), LT_ARG(0), LT_ARG(1), LT_ARG(1));
  CHECK(lt_do_in_place(mul, LT_ARG(row), LT_ARG(lt_do(cos, LT_ARG(y)))) ==
        NULL); /* {1} does not hold {2} */
  CHECK(lt_do_in_place(mul, LT_ARG(row), LT_ARG(lt_do(cos, LT_ARG(row)))) == row);
  CHECK(lt_do_in_place(tanh, LT_ARG(y)) == y);
}

static void inference_mode(void) {
  lt_inference_set_enabled(true);
  lt_Tensor *i = VECTOR(1, 2);
  lt_inference_set_enabled(false);
  lt_Tensor *x = leaf(VECTOR(3, 4));
  CHECK(i->inference);
  CHECK_FAILS(lt_do_in_place(add, LT_ARG(i), LT_ARG(1.0)), "created in inference mode");
  CHECK_FAILS(lt_do(mul, LT_ARG(x), LT_ARG(i)),
              "cannot save a tensor that was created in inference mode for backward");
  CHECK(lt_do(add, LT_ARG(x), LT_ARG(i)) != NULL);
}

/* ---- in place -------------------------------------------------------------------------------- */

static void in_place_on_the_tape(void) {
  /* y = x 1; y *= w; y += y0: sum = x w + ... */
  lt_Tensor *x = leaf(VECTOR(1, 2)), *w = leaf(VECTOR(5, 6)), *y = inner(x);
  CHECK(lt_do_in_place(mul, LT_ARG(y), LT_ARG(w)) == y);
  CHECK(lt_do_in_place(exp, LT_ARG(y)) == y); /* saves its result */
  CHECK_INT(lt_tensor_version(y), 2);
  CHECK(backward_sum(y));
  CHECK_GRAD(x, 5 * exp(5), 6 * exp(12));
  CHECK_GRAD(w, 1 * exp(5), 2 * exp(12));
}

static void in_place_by_itself(void) {
  lt_Tensor *x = leaf(VECTOR(3)), *y = inner(x);
  CHECK(lt_do_in_place(mul, LT_ARG(y), LT_ARG(y)) == y); /* x^2 */
  CHECK_VALUES(y, 9);
  CHECK(backward(y));
  CHECK_GRAD(x, 6);
}

static void overwriting_removes_history(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *y = inner(x);
  CHECK(lt_do_in_place(fill, LT_ARG(y), LT_ARG(7.0)) == y);
  CHECK(backward_sum(lt_do(mul, LT_ARG(y), LT_ARG(3.0))));
  CHECK(lt_tensor_grad(x) == NULL || at(lt_tensor_grad(x), 0) == 0);
  lt_Tensor *c = VECTOR(0, 0), *w = leaf(VECTOR(4, 5));
  CHECK(lt_do_in_place(_copy, LT_ARG(c), LT_ARG(w)) == c); /* a constant becomes a result */
  CHECK(c->requires_grad && !lt_tensor_is_leaf(c));
  CHECK(backward_sum(lt_do(square, LT_ARG(c))));
  CHECK_GRAD(w, 8, 10);
}

static void writing_into_a_view(void) {
  /* y = 2 x; y[1] *= w (w = 10); sum(y^2): dx = 2 y dy/dx = {8 x1, 8 x2 100, 8 x3} = {8, 1600,
   * 24}, dw = 2 y2 (2 x2) */
  lt_Tensor *x = leaf(VECTOR(1, 2, 3)), *w = leaf(VECTOR(10)),
            *y = lt_do(mul, LT_ARG(x), LT_ARG(2.0));
  lt_Tensor *part = lt_do(_slice, LT_ARG(y), LT_ARG(0), LT_ARG(1), LT_ARG(1), LT_ARG(1));
  CHECK(lt_do_in_place(mul, LT_ARG(part), LT_ARG(w)) == part);
  CHECK_VALUES(y, 2, 40, 6);
  CHECK_STR(lt_tensor_grad_fn_name(y), "CopySlicesBackward");
  CHECK_STR(lt_tensor_grad_fn_name(part), "AsStridedBackward");
  CHECK(backward_sum(lt_do(square, LT_ARG(y))));
  CHECK_GRAD(x, 8, 1600, 24);
  CHECK_GRAD(w, 320);
}

static void views_see_changes_of_their_base(void) {
  /* v = y[2..3] made first, then y *= 3 in place: v's gradient goes through the new y. d
   * sum(v^2)/dx = 2 (6 x) 6 */
  lt_Tensor *x = leaf(VECTOR(1, 2, 3)), *y = lt_do(mul, LT_ARG(x), LT_ARG(2.0));
  lt_Tensor *v = lt_do(_slice, LT_ARG(y), LT_ARG(0), LT_ARG(1), LT_ARG(2), LT_ARG(1));
  CHECK(lt_do_in_place(mul, LT_ARG(y), LT_ARG(3.0)) == y);
  CHECK(backward_sum(lt_do(square, LT_ARG(v))));
  CHECK_GRAD(x, 0, 144, 216);
}

static void filling_a_constant_row_by_row(void) {
  /* out = zeros{2, 2}; out[1] = a; out[2] = a b: requires grad from then on */
  lt_Tensor *a = leaf(VECTOR(1, 2)), *b = leaf(VECTOR(3, 4)), *out = MATRIX(2, 2, 0, 0, 0, 0);
  lt_Tensor *second =
      lt_do(select, LT_ARG(out), LT_ARG(0), LT_ARG(1)); /* made before anything requires grad */
  CHECK(lt_do_in_place(_copy, LT_ARG(lt_do(select, LT_ARG(out), LT_ARG(0), LT_ARG(0))),
                       LT_ARG(a)) != NULL);
  CHECK(out->requires_grad);
  CHECK(lt_tensor_requires_grad(second));
  CHECK(lt_do_in_place(_copy, LT_ARG(second), LT_ARG(lt_do(mul, LT_ARG(a), LT_ARG(b)))) != NULL);
  CHECK(backward_sum(lt_do(mul, LT_ARG(out), LT_ARG(MATRIX(2, 2, 1, 10, 100, 1000)))));
  CHECK_GRAD(a, 1 + 300, 10 + 4000);
  CHECK_GRAD(b, 100, 2000);
}

static void view_of_a_view_transposed(void) {
  /* y = 1 x; y^T[1][2..] += w: changes column 1 of y below its first row. */
  lt_Tensor *x = leaf(MATRIX(3, 2, 1, 2, 3, 4, 5, 6)), *w = leaf(VECTOR(10, 20)), *y = inner(x);
  lt_Tensor *t = lt_do(transpose, LT_ARG(y), LT_ARG(0), LT_ARG(1));
  lt_Tensor *part = lt_do(_slice, LT_ARG(lt_do(select, LT_ARG(t), LT_ARG(0), LT_ARG(0))), LT_ARG(0),
                          LT_ARG(1), LT_ARG(2), LT_ARG(1));
  CHECK(lt_do_in_place(mul, LT_ARG(part), LT_ARG(w)) == part);
  CHECK_VALUES(y, 1, 2, 30, 4, 100, 6);
  CHECK_VALUES(t, 1, 30, 100, 2, 4, 6);
  CHECK(backward_sum(lt_do(square, LT_ARG(t)))); /* 2 y dy/dx */
  CHECK_GRAD(x, 2, 4, 600, 8, 4000, 12);
  CHECK_GRAD(w, 2 * 30 * 3, 2 * 100 * 5);
}

static void twice_through_slices(void) {
  /* y = x 1; y[1] = x1^3: d2/dx1^2 sum(y) = 6 x1 */
  lt_Tensor *x = leaf(VECTOR(2, 5)), *y = inner(x);
  lt_Tensor *first = lt_do(select, LT_ARG(y), LT_ARG(0), LT_ARG(0));
  CHECK(lt_do_in_place(pow, LT_ARG(first), LT_ARG(3.0)) == first);
  lt_Tensor *dx = slope(lt_do(sum, LT_ARG(y)), x, true);
  CHECK_VALUES(dx, 12, 1);
  CHECK_VALUES(slope(lt_do(sum, LT_ARG(dx)), x, false), 12, 0);
}

static void view_made_under_no_grad(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *w = leaf(VECTOR(3)), *y = inner(x);
  lt_grad_set_enabled(false);
  lt_Tensor *v = lt_do(select, LT_ARG(y), LT_ARG(0), LT_ARG(0));
  lt_grad_set_enabled(true);
  lt_Tensor *factor = lt_do(view, LT_ARG(w), LT_INTS(NULL, 0));
  CHECK(!v->requires_grad);
  CHECK_FAILS(lt_do_in_place(mul, LT_ARG(v), LT_ARG(factor)),
              "mul_: cannot change self in place: it is a view that was created under no_grad");
}

static void detached_shares_versions(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *y = inner(x), *z = lt_do(square, LT_ARG(y)),
            *d = lt_do(detach, LT_ARG(y));
  CHECK(lt_do_in_place(fill, LT_ARG(d), LT_ARG(0.0)) == d);
  CHECK(lt_tensor_is_leaf(d) && !d->requires_grad);
  CHECK_FAILS(backward_sum(z), "the argument self of square, of shape {2}, which square saved for "
                               "backward, was changed in place");
}

static void changed_result_is_refused(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *y = lt_do(exp, LT_ARG(x));
  CHECK(lt_do_in_place(add, LT_ARG(y), LT_ARG(1.0)) == y);
  CHECK_FAILS(
      backward_sum(y),
      "the result of exp, of shape {2}, which exp saved for backward, was changed in place");
}

/* A saved value stays valid, whatever happens to the tensor that it was saved from. */
static void freed_tensors(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *c = VECTOR(3, 4), *y = lt_do(mul, LT_ARG(x), LT_ARG(c)),
            *z = lt_do(square, LT_ARG(y));
  CHECK(lt_tensor_free(c));
  CHECK(lt_tensor_free(y));
  CHECK(backward_sum(z));
  CHECK_GRAD(x, 2 * 3 * 3, 2 * 8 * 4);
}

/* ---- hooks, retain_grad ---------------------------------------------------------------------- */

typedef struct Seen {
  int calls, forgotten;
  double first;
  double factor; /* 0: leave the gradient unchanged */
  bool fail;
} Seen;

static bool see(void *context, lt_Tensor *grad, lt_Tensor **replacement) {
  Seen *s = context;
  s->calls++;
  s->first = at(grad, 0);
  if (s->fail) {
    lt_error_set("the hook's own error");
    return false;
  }
  if (s->factor != 0)
    *replacement = lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(grad), LT_ARG(s->factor)}, 2);
  return true;
}

static void forget(void *context) { ((Seen *)context)->forgotten++; }

static void hooks_see_and_replace(void) {
  static Seen on_leaf, on_inner = {.factor = 10},
                       second; /* they outlive this function: hooks are freed later */
  lt_Tensor *x = leaf(VECTOR(1, 2)), *y = lt_do(mul, LT_ARG(x), LT_ARG(3.0));
  int id = lt_tensor_add_hook(x, see, &on_leaf, forget);
  CHECK(id > 0);
  CHECK(lt_tensor_add_hook(y, see, &on_inner, forget) > 0);
  CHECK(lt_tensor_add_hook(y, see, &second, forget) > 0);
  CHECK(backward_sum(y));
  CHECK_NEAR(on_inner.first, 1, 0);
  CHECK_NEAR(second.first, 10, 0); /* in order: each gets the result of the previous one */
  CHECK_NEAR(on_leaf.first, 30, 0);
  CHECK_GRAD(x, 30, 30);
  CHECK(lt_tensor_remove_hook(x, id));
  CHECK_INT(on_leaf.forgotten, 1);
  CHECK_FAILS(lt_tensor_remove_hook(x, id), "expected the number of a hook of this tensor");
  CHECK(backward_sum(lt_do(mul, LT_ARG(x), LT_ARG(1.0))));
  CHECK_INT(on_leaf.calls, 1);
  CHECK_FAILS(lt_tensor_add_hook(VECTOR(1), see, &second, forget),
              "expected a tensor that requires grad");
}

/* A hook of an inner tensor runs after the tensor was freed, and is freed with its node. */
static void hooks_outlive_their_tensor(void) {
  static Seen s;
  lt_Tensor *x = leaf(VECTOR(1, 2));
  size_t mark = lt_scope_open();
  lt_Tensor *y = lt_do(mul, LT_ARG(x), LT_ARG(3.0));
  CHECK(lt_tensor_add_hook(y, see, &s, forget) > 0);
  lt_Tensor *z = lt_scope_close(mark, lt_do(sum, LT_ARG(y)));
  CHECK(backward(z));
  CHECK_INT(s.calls, 1);
  CHECK_INT(s.forgotten, 0);
  lt_release(z);
  CHECK_INT(s.forgotten, 1);
}

static void failing_hook(void) {
  static Seen s = {.fail = true};
  lt_Tensor *x = leaf(VECTOR(1)), *w = leaf(VECTOR(2));
  lt_tensor_add_hook(x, see, &s, NULL);
  CHECK_FAILS(backward(lt_do(mul, LT_ARG(x), LT_ARG(w))), "the hook's own error");
  CHECK(lt_tensor_grad(x) == NULL);
  CHECK(lt_tensor_grad(w) == NULL);
}

static bool run_backward_inside(void *context, lt_Tensor *grad, lt_Tensor **replacement) {
  lt_Tensor *w = context;
  (void)grad;
  (void)replacement;
  size_t mark = lt_scope_open();
  lt_grad_set_enabled(true);
  bool ok = backward(lt_do(square, LT_ARG(w)));
  lt_grad_set_enabled(false);
  lt_scope_close(mark, NULL);
  return ok;
}

static void backward_inside_a_hook(void) {
  lt_Tensor *x = leaf(VECTOR(1)), *w = leaf(VECTOR(4)), *y = inner(x);
  lt_tensor_add_hook(y, run_backward_inside, w, NULL);
  CHECK(backward(lt_do(mul, LT_ARG(y), LT_ARG(7.0))));
  CHECK_GRAD(x, 7);
  CHECK_GRAD(w, 8);
}

static void retained_grads(void) {
  lt_Tensor *x = leaf(VECTOR(1, 2)), *y = lt_do(mul, LT_ARG(x), LT_ARG(3.0));
  CHECK(lt_tensor_retain_grad(y));
  CHECK(backward_sum(lt_do(square, LT_ARG(y))));
  CHECK_GRAD(y, 6, 12);
  CHECK_GRAD(x, 18, 36);
  /* it stays with the tensor when that is changed in place */
  lt_Tensor *z = inner(x);
  CHECK(lt_tensor_retain_grad(z));
  CHECK(lt_do_in_place(mul, LT_ARG(z), LT_ARG(5.0)) == z);
  CHECK(backward_sum(lt_do(mul, LT_ARG(z), LT_ARG(2.0))));
  CHECK_GRAD(z, 2, 2);
}

/* ---- custom functions ------------------------------------------------------------------------ */

typedef struct Twice { /* y = 2 x + 0 w, and a second output */
  int calls, forgotten, released, wrong;
  bool second_came;
  bool fail;
  lt_Tensor *saved;
} Twice;

static bool twice_backward(void *context, int noutputs, lt_Tensor *const *grads, int ninputs,
                           lt_Tensor **in) {
  Twice *t = context;
  t->calls++;
  t->second_came = grads[1] != NULL;
  if (noutputs != 2 || ninputs != 2 || in[0] || in[1]) t->wrong++;
  if (t->fail) {
    lt_error_set("no gradient today");
    return false;
  }
  in[0] = grads[0] ? lt_op1(LT_OP_mul, (lt_Arg[]){LT_ARG(grads[0]), LT_ARG(2.0)}, 2) : NULL;
  return true;
}
static void twice_forget(void *context) { ((Twice *)context)->forgotten++; }
static void twice_release(void *context) { ((Twice *)context)->released++; }

static void custom_functions(void) {
  static Twice t;
  const lt_CustomFunction f = {"Twice", twice_backward, twice_forget, twice_release, &t};
  lt_Tensor *x = leaf(VECTOR(1, 2)), *w = leaf(VECTOR(1, 2)), *inputs[] = {x, w};
  size_t mark = lt_scope_open();
  lt_grad_set_enabled(false);
  lt_Tensor *outputs[] = {lt_retain(lt_do(mul, LT_ARG(x), LT_ARG(2.0))),
                          lt_retain(x)}; /* the second is an input itself */
  lt_grad_set_enabled(true);
  CHECK(lt_autograd_custom(&f, 2, inputs, 2, outputs));
  CHECK(outputs[1] != x);
  OWN(outputs[0]);
  OWN(outputs[1]);
  CHECK_STR(lt_tensor_grad_fn_name(outputs[0]), "TwiceBackward");
  CHECK(backward_sum(lt_do(square, LT_ARG(outputs[0]))));
  CHECK_GRAD(x, 8, 16); /* 2 (2 x) 2 */
  CHECK(lt_tensor_grad(w) == NULL);
  CHECK_INT(t.calls, 1);
  CHECK_INT(t.wrong, 0);
  CHECK(!t.second_came);
  CHECK_INT(t.released, 1);
  CHECK_FAILS(backward_sum(outputs[0]), "an earlier backward freed it (at Twice)");
  CHECK_INT(t.forgotten, 0);
  lt_scope_close(mark, NULL);
  CHECK_INT(t.forgotten, 1);
}

static void custom_failures(void) {
  static Twice t = {.fail = true};
  const lt_CustomFunction f = {"Twice", twice_backward, twice_forget, NULL, &t};
  lt_Tensor *c = VECTOR(1), *d = VECTOR(2), *inputs[] = {c, NULL},
            *outputs[] = {VECTOR(1), VECTOR(1)};
  CHECK(lt_autograd_custom(&f, 2, inputs, 2, outputs)); /* nothing requires grad: freed at once */
  CHECK_INT(t.forgotten, 1);
  CHECK(!outputs[0]->requires_grad);
  inputs[0] = leaf(d);
  CHECK(lt_autograd_custom(&f, 2, inputs, 2, outputs));
  CHECK_FAILS(backward(outputs[0]), "no gradient today");
  CHECK(lt_tensor_grad(d) == NULL);
}

static void custom_undone(void) {
  static Twice t;
  const lt_CustomFunction f = {"Twice", twice_backward, twice_forget, NULL, &t};
  lt_Tensor *x = leaf(VECTOR(1)), *inputs[] = {x, NULL}, *outputs[] = {VECTOR(1), VECTOR(1)};
  CHECK(lt_autograd_custom(&f, 2, inputs, 2, outputs));
  lt_autograd_custom_undo(&f, 2, outputs); /* another context */
  CHECK(outputs[0]->requires_grad && !lt_tensor_is_leaf(outputs[1]));
  lt_autograd_custom_undo(&t, 2, outputs);
  CHECK_INT(t.forgotten, 1);
  for (int i = 0; i < 2; i++) CHECK(!outputs[i]->requires_grad && lt_tensor_is_leaf(outputs[i]));
}

/* ---- size ------------------------------------------------------------------------------------ */

static void a_million_additions(void) {
  lt_Tensor *x = leaf(VECTOR(1)), *y = lt_retain(x);
  for (int i = 0; y && i < 1000000; i++) {
    lt_Tensor *next = lt_op1(LT_OP_add, (lt_Arg[]){LT_ARG(y), LT_ARG(1.0)}, 2);
    lt_release(y);
    y = next;
  }
  REQUIRE(y != NULL);
  CHECK(backward(y));
  CHECK_GRAD(x, 1);
  lt_release(y); /* frees the whole chain */
}

/* ---- the gradients in the rows of ops.def ---------------------------------------------------- */

#define X            LT_KEEP_ARG(0)
#define Y            LT_KEEP_ARG(1)
#define Z            LT_KEEP_ARG(2)
#define RESULT       LT_KEEP_RESULT(0)
#define VALUES(a, i) (lt_gradients[LT_OP_##a].keep_for[i] & ~LT_KEEP_GIVES)

static void every_row_has_a_gradient(void) {
  for (int op = 0; op < LT_OP_COUNT; op++)
    if ((lt_gradients[op].function == NULL) != (lt_ops[op].kind == LT_KIND_COMPOSITE))
      check_report(__FILE__, __LINE__, "%s: a gradient is expected of each op but composites",
                   lt_ops[op].name);
}

/* Rows save the values that their formulas use, and no others. */
static void rows_save_what_their_formulas_use(void) {
  CHECK_INT(VALUES(neg, 0), 0);
  CHECK_INT(VALUES(log2, 0), X);
  CHECK_INT(VALUES(exp2, 0), RESULT);
  CHECK_INT(VALUES(softplus, 0), X);
  CHECK_INT(VALUES(add, 1), 0);
  CHECK_INT(VALUES(mul, 0), Y);
  CHECK_INT(VALUES(mul, 1), X);
  CHECK_INT(VALUES(_true_divide, 0), Y);
  CHECK_INT(VALUES(_true_divide, 1), X | Y);
  CHECK_INT(VALUES(hypot, 0), X | RESULT);
  CHECK_INT(VALUES(_where, 2), X);
  CHECK_INT(VALUES(addcdiv, 0), 0);
  CHECK_INT(VALUES(addcdiv, 2), Y | Z);
  CHECK_INT(VALUES(softmax, 0), RESULT);
}

/* Every argument and result of the largest signature has its own bit. */
static void saved_values_have_distinct_bits(void) {
  lt_Keep seen = LT_KEEP_GIVES;
  for (int i = 0; i < LT_MAX_ARGS + LT_MAX_OUT; i++) {
    lt_Keep bit = i < LT_MAX_ARGS ? LT_KEEP_ARG(i) : LT_KEEP_RESULT(i - LT_MAX_ARGS);
    CHECK(bit != 0 && (seen & bit) == 0);
    seen |= bit;
  }
}

static bool holds_values(const lt_Signature *g, int i) {
  lt_ParamType type = i < g->count ? g->param[i].type : LT_PARAM_BOOL;
  return type == LT_PARAM_TENSOR || type == LT_PARAM_TENSORS || type == LT_PARAM_OPERAND ||
         type == LT_PARAM_INDEX;
}

/* Gradients and saved values refer to arguments and results that the op has. */
static void rows_fit_their_signatures(void) {
  for (int op = 0; op < LT_OP_COUNT; op++) {
    const lt_GradientRow *row = &lt_gradients[op];
    const lt_Signature *g = lt_op_signature((lt_OpId)op);
    lt_Keep kept = row->keep;
    bool fits = row->kind == LT_ROW_GRADIENT || row->kind == LT_ROW_FIRST || !kept;
    for (int i = 0; i < LT_MAX_ARGS; i++) {
      kept |= row->keep_for[i] & ~LT_KEEP_GIVES;
      fits = fits && (!row->keep_for[i] || holds_values(g, i));
    }
    for (int i = 0; i < LT_MAX_ARGS; i++)
      fits = fits && (!(kept & LT_KEEP_ARG(i)) || holds_values(g, i));
    fits = fits && kept < LT_KEEP_RESULT(g->results);
    if (!fits)
      check_report(__FILE__, __LINE__, "%s: its gradient names a value that it does not have",
                   lt_ops[op].name);
  }
}

/* Runs a test in a scope, and checks that it leaves no memory behind. */
#define RUN_CLEAN(test)                                                                            \
  do {                                                                                             \
    running = test;                                                                                \
    check_run(#test, run_clean);                                                                   \
  } while (0)
static void (*running)(void);
static void run_clean(void) {
  int64_t before = lt_memory_live();
  size_t mark = lt_scope_open();
  running();
  lt_scope_close(mark, NULL);
  CHECK_INT(lt_memory_live(), before);
  CHECK(lt_grad_enabled());
}

int main(void) {
  RUN_CLEAN(chain_of_products);
  RUN_CLEAN(broadcasting_is_summed);
  RUN_CLEAN(gradients_have_the_dtypes_of_inputs);
  RUN_CLEAN(grads_accumulate);
  RUN_CLEAN(passed_gradient_is_copied);
  RUN_CLEAN(grad_is_contiguous);
  RUN_CLEAN(used_twice_and_through_two_paths);
  RUN_CLEAN(gradients_of_given_inputs_only);
  RUN_CLEAN(unused_inputs);
  RUN_CLEAN(several_roots);
  RUN_CLEAN(gradients_of_gradients);
  RUN_CLEAN(create_graph_into_grad);
  RUN_CLEAN(results_require_grad_by_their_inputs);
  RUN_CLEAN(invalid_calls_of_backward);
  RUN_CLEAN(backward_twice);
  RUN_CLEAN(shared_nodes_without_saved_tensors);
  RUN_CLEAN(failure_changes_no_grad);
  RUN_CLEAN(leaf_in_place);
  RUN_CLEAN(no_cycles);
  RUN_CLEAN(inference_mode);
  RUN_CLEAN(in_place_on_the_tape);
  RUN_CLEAN(in_place_by_itself);
  RUN_CLEAN(overwriting_removes_history);
  RUN_CLEAN(writing_into_a_view);
  RUN_CLEAN(views_see_changes_of_their_base);
  RUN_CLEAN(filling_a_constant_row_by_row);
  RUN_CLEAN(view_of_a_view_transposed);
  RUN_CLEAN(twice_through_slices);
  RUN_CLEAN(view_made_under_no_grad);
  RUN_CLEAN(detached_shares_versions);
  RUN_CLEAN(changed_result_is_refused);
  RUN_CLEAN(freed_tensors);
  RUN_CLEAN(hooks_see_and_replace);
  RUN_CLEAN(hooks_outlive_their_tensor);
  RUN_CLEAN(failing_hook);
  RUN_CLEAN(backward_inside_a_hook);
  RUN_CLEAN(retained_grads);
  RUN_CLEAN(custom_functions);
  RUN_CLEAN(custom_failures);
  RUN_CLEAN(custom_undone);
  RUN_CLEAN(a_million_additions);
  RUN_CLEAN(every_row_has_a_gradient);
  RUN_CLEAN(rows_save_what_their_formulas_use);
  RUN_CLEAN(saved_values_have_distinct_bits);
  RUN_CLEAN(rows_fit_their_signatures);
  return check_end();
}
