/* composite_recurrent.c: the loops over time of recurrent layers, for lutra.nn.recurrent_sequence.
 * They are called without autograd, as parts of functions with a gradient of their own.
 *
 * A sequence of T times with N rows each is a matrix of T * N rows, those of the first time first.
 * A loop runs over the times, from the last to the first with `reverse`: it multiplies the state by
 * the weight and calls a map (_lstm_step...) on views of one time. */
#include "infer.h"

/* The times of a call. */
typedef struct Times {
  int64_t count, rows; /* T and N */
  bool reverse;
  bool observed; /* views are made by ops */
} Times;

/* Checks that argument i is a matrix of this size. */
static bool check_matrix(const lt_Call *c, int i, int64_t rows, int64_t columns) {
  const lt_Tensor *t = lt_in(c, i);
  if (t->ndim == 2 && t->shape[0] == rows && t->shape[1] == columns) return true;
  return lt_fail("expected shape {%lld, %lld} for argument '%s', got %s", (long long)rows,
                 (long long)columns, lt_arg_name(c, i), lt_text(t));
}

/* Computes the times of a call: argument `state` is {N, H}, argument `weight` {gates * H, H},
 * argument 0 {T * N, gates * H}. Checks that the arguments in `like` (a bit each) have
 * the shape {T * N, H}. */
static bool times_of(const lt_Call *c, int state, int weight, int gates, unsigned like, Times *t) {
  const lt_Tensor *first = lt_in(c, state), *all = lt_in(c, 0);
  if (!lt_check_ndim(c, state, 2, 2) || !lt_check_ndim(c, 0, 2, 2)) return false;
  int64_t rows = first->shape[0], size = first->shape[1];
  *t = (Times){rows ? all->shape[0] / rows : 0, rows, c->arg[weight + 1].b, !lt_is_unobserved(c)};
  if (!check_matrix(c, 0, t->count * rows, gates * size) ||
      !check_matrix(c, weight, gates * size, size))
    return false;
  for (int i = 1; like >> i; i++)
    if (like >> i & 1 && !check_matrix(c, i, t->count * rows, size)) return false;
  return true;
}

/* Returns the time of step k of the loop. */
static int64_t time_of(const Times *t, int64_t k) { return t->reverse ? t->count - 1 - k : k; }

/* Returns the rows of step k. */
static lt_Tensor *at(const Times *t, lt_Tensor *matrix, int64_t k) {
  if (!matrix) return NULL;
  int64_t first = time_of(t, k) * t->rows;
  if (t->observed) return lt_do_slice(matrix, 0, first, t->rows);
  return lt_scope_own(lt_geometry(matrix, first * matrix->strides[0], 2,
                                  (int64_t[]){t->rows, matrix->shape[1]}, matrix->strides));
}

/* Returns the rows of the step before k; `first` for the first step. */
static lt_Tensor *before(const Times *t, lt_Tensor *matrix, lt_Tensor *first, int64_t k) {
  return k ? at(t, matrix, k - 1) : first;
}

/* Returns `count` columns of a matrix, in units of n columns, from `from` on. */
static lt_Tensor *columns(lt_Tensor *matrix, int64_t n, int64_t from, int64_t count) {
  return lt_do_slice(matrix, 1, from * n, count * n);
}

/* Calls a map on one tensor of each list. */
#define MAP(op, ...)                                                                               \
  map(LT_OP_##op, (lt_Tensor *[]){__VA_ARGS__},                                                    \
      (int)(sizeof((lt_Tensor *[]){__VA_ARGS__}) / sizeof(lt_Tensor *)))
static bool map(lt_OpId op, lt_Tensor *const *tensors, int n) {
  lt_Arg args[LT_MAP_TENSORS];
  lt_Results results;
  for (int i = 0; i < n; i++) {
    if (!tensors[i]) return false;
    args[i] = LT_TENSORS(&tensors[i], 1);
  }
  return lt_call(op, false, args, n, &results);
}

/* Returns the transpose of a weight, dense where products with several times pay for the copy:
 * those of few rows are sums along the dense columns of the view. */
static lt_Tensor *transposed(const Times *t, lt_Arg weight) {
  lt_Tensor *view = lt_do(t, weight);
  bool few = t->rows == 1 || (t->rows <= 8 && weight.tensor->shape[1] >= 64);
  return view && t->count > 3 && !few ? lt_do(contiguous, LT_ARG(view)) : view;
}

/* ---- LSTM ------------------------------------------------------------------------------------ */

/* _lstm_run (gates, h, c, h0, c0, weight, reverse) */
bool lt_composite__lstm_run(lt_Call *c) {
  lt_Tensor *gates = lt_in(c, 0), *h = lt_in(c, 1), *cell = lt_in(c, 2);
  Times t;
  if (!times_of(c, 3, 5, 4, 1u << 1 | 1u << 2, &t) ||
      !check_matrix(c, 4, t.rows, lt_in(c, 3)->shape[1]))
    return false;
  lt_Tensor *gate[4], *weight = transposed(&t, c->arg[5]);
  for (int i = 0; i < 4; i++) gate[i] = columns(gates, h->shape[1], i, 1);
  for (int64_t k = 0; k < t.count; k++) {
    size_t mark = lt_scope_open();
    lt_Tensor *past = before(&t, h, lt_in(c, 3), k);
    bool ok =
        lt_do_in_place(addmm, LT_ARG(at(&t, gates, k)), LT_ARG(past), LT_ARG(weight)) &&
        MAP(_lstm_step, at(&t, gate[0], k), at(&t, gate[1], k), at(&t, gate[2], k),
            at(&t, gate[3], k), before(&t, cell, lt_in(c, 4), k), at(&t, cell, k), at(&t, h, k));
    lt_scope_close(mark, NULL);
    if (!ok) return false;
  }
  return lt_result_set(c, gates);
}

/* _lstm_run_backward (gates, c, grad, dc, c0, dh, weight, reverse) */
bool lt_composite__lstm_run_backward(lt_Call *c) {
  lt_Tensor *gates = lt_in(c, 0), *cell = lt_in(c, 1), *grad = lt_in(c, 2), *dc = lt_in(c, 3);
  lt_Tensor *first = lt_in(c, 4), *dh = lt_in(c, 5), *weight = lt_in(c, 6);
  Times t;
  if (!times_of(c, 5, 6, 4, 1u << 1 | 1u << 2, &t) || !check_matrix(c, 3, t.rows, dh->shape[1]) ||
      !check_matrix(c, 4, t.rows, dh->shape[1]))
    return false;
  lt_Tensor *gate[4];
  for (int i = 0; i < 4; i++) gate[i] = columns(gates, dh->shape[1], i, 1);
  for (int64_t k = t.count - 1; k >= 0; k--) {
    size_t mark = lt_scope_open();
    lt_Tensor *sum = lt_do(add, LT_ARG(at(&t, grad, k)), LT_ARG(dh));
    bool ok = MAP(_lstm_step_backward, at(&t, gate[0], k), at(&t, gate[1], k), at(&t, gate[2], k),
                  at(&t, gate[3], k), before(&t, cell, first, k), at(&t, cell, k), sum, dc);
    dh = ok ? lt_do(mm, LT_ARG(at(&t, gates, k)), LT_ARG(weight)) : NULL;
    dh = lt_scope_own(lt_scope_close(mark, dh));
    if (!dh) return false;
  }
  return lt_result_set(c, dh);
}

/* ---- GRU ------------------------------------------------------------------------------------- */

/* _gru_run (x, hidden, h, h0, weight, reverse, bias) */
bool lt_composite__gru_run(lt_Call *c) {
  lt_Tensor *x = lt_in(c, 0), *hidden = lt_in(c, 1), *h = lt_in(c, 2), *bias = lt_in(c, 6);
  Times t;
  if (!times_of(c, 3, 4, 3, 1u << 2, &t) || !check_matrix(c, 1, x->shape[0], x->shape[1]))
    return false;
  int64_t n = h->shape[1];
  lt_Tensor *weight = transposed(&t, c->arg[4]), *gates = columns(x, n, 0, 2),
            *terms = columns(hidden, n, 0, 2), *r = columns(x, n, 0, 1), *z = columns(x, n, 1, 1),
            *value = columns(x, n, 2, 1), *factor = columns(hidden, n, 2, 1);
  for (int64_t k = 0; k < t.count; k++) {
    size_t mark = lt_scope_open();
    lt_Tensor *past = before(&t, h, lt_in(c, 3), k);
    lt_Tensor *product = bias ? lt_do(addmm, LT_ARG(bias), LT_ARG(past), LT_ARG(weight))
                              : lt_do(mm, LT_ARG(past), LT_ARG(weight));
    bool ok = lt_do_in_place(_copy, LT_ARG(at(&t, hidden, k)), LT_ARG(product)) &&
              MAP(_gru_gates, at(&t, gates, k), at(&t, terms, k)) &&
              MAP(_gru_step, at(&t, value, k), at(&t, factor, k), at(&t, r, k), at(&t, z, k), past,
                  at(&t, h, k));
    lt_scope_close(mark, NULL);
    if (!ok) return false;
  }
  return lt_result_set(c, x);
}

/* _gru_run_backward (x, hidden, h, grad, h0, dh, weight, reverse) */
bool lt_composite__gru_run_backward(lt_Call *c) {
  lt_Tensor *x = lt_in(c, 0), *hidden = lt_in(c, 1), *h = lt_in(c, 2), *grad = lt_in(c, 3);
  lt_Tensor *first = lt_in(c, 4), *dh = lt_in(c, 5), *weight = lt_in(c, 6);
  Times t;
  if (!times_of(c, 5, 6, 3, 1u << 2 | 1u << 3, &t) ||
      !check_matrix(c, 1, x->shape[0], x->shape[1]) || !check_matrix(c, 4, t.rows, dh->shape[1]))
    return false;
  int64_t n = h->shape[1];
  lt_Tensor *gates = columns(x, n, 0, 2), *terms = columns(hidden, n, 0, 2),
            *r = columns(x, n, 0, 1), *z = columns(x, n, 1, 1), *value = columns(x, n, 2, 1),
            *factor = columns(hidden, n, 2, 1);
  for (int64_t k = t.count - 1; k >= 0; k--) {
    size_t mark = lt_scope_open();
    lt_Tensor *sum = lt_do(add, LT_ARG(at(&t, grad, k)), LT_ARG(dh)), *now = at(&t, value, k);
    bool ok = MAP(_gru_step_backward, now, at(&t, z, k), before(&t, h, first, k), sum) &&
              MAP(_gru_gate_backward, at(&t, r, k), at(&t, factor, k), now) &&
              lt_do_in_place(_copy, LT_ARG(at(&t, terms, k)), LT_ARG(at(&t, gates, k)));
    dh = ok ? lt_do_in_place(addmm, LT_ARG(sum), LT_ARG(at(&t, hidden, k)), LT_ARG(weight)) : NULL;
    dh = lt_scope_own(lt_scope_close(mark, dh));
    if (!dh) return false;
  }
  return lt_result_set(c, dh);
}
