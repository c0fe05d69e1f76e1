/* test_reduce.c: reductions against slow references that read one element at a time, over dtypes,
 * layouts and dims; and special cases: nothing to reduce, NaN, infinities, overflow, long sums. */
#include "tensors.h"
#include "cpu/rows.h"

/* Copies the elements of self that are reduced to element `at` of the result, in order; returns
 * their number. `mask`: the reduced dims. */
static int64_t gathered(const lt_Tensor *self, unsigned mask, int64_t at, double *into) {
  int64_t position[LT_MAX_DIMS] = {0}, n = 0;
  for (int d = self->ndim - 1; d >= 0; d--)
    if (!(mask >> d & 1)) {
      position[d] = at % self->shape[d];
      at /= self->shape[d];
    }
  for (int64_t i = 0; i < self->numel; i++) {
    int64_t rest = i;
    bool mine = true;
    for (int d = self->ndim - 1; d >= 0; d--) {
      if (!(mask >> d & 1) && rest % self->shape[d] != position[d]) mine = false;
      rest /= self->shape[d];
    }
    if (mine) into[n++] = number(self, i);
  }
  return n;
}

static double reference(lt_OpId op, const double *x, int64_t n, double p) {
  double a = 0, mean = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < n; i++) mean += x[i] / (double)n;
  switch (op) {
  case LT_OP_sum:
    for (int64_t i = 0; i < n; i++) a += x[i];
    return a;
  case LT_OP_mean:
    return mean;
  case LT_OP_prod:
    a = 1;
    for (int64_t i = 0; i < n; i++) a *= x[i];
    return a;
  case LT_OP_amax:
  case LT_OP_argmax:
    for (int64_t i = 1; i < n; i++)
      if (x[i] > x[at]) at = i;
    return op == LT_OP_amax ? x[at] : (double)at + 1;
  case LT_OP_amin:
  case LT_OP_argmin:
    for (int64_t i = 1; i < n; i++)
      if (x[i] < x[at]) at = i;
    return op == LT_OP_amin ? x[at] : (double)at + 1;
  case LT_OP_all:
    for (int64_t i = 0; i < n; i++) at += x[i] != 0;
    return at == n;
  case LT_OP_any:
    for (int64_t i = 0; i < n; i++) at += x[i] != 0;
    return at > 0;
  case LT_OP_count_nonzero:
    for (int64_t i = 0; i < n; i++) at += x[i] != 0;
    return (double)at;
  case LT_OP__var:
    for (int64_t i = 0; i < n; i++) a += (x[i] - mean) * (x[i] - mean);
    return a / ((double)n - 1);
  case LT_OP_logsumexp:
    for (int64_t i = 0; i < n; i++) a += exp(x[i]);
    return log(a);
  case LT_OP__norm:
    for (int64_t i = 0; i < n; i++) {
      if (p == 0)
        a += x[i] != 0;
      else if (p == INFINITY)
        a = fmax(a, fabs(x[i]));
      else if (p == -INFINITY)
        a = i == 0 ? fabs(x[i]) : fmin(a, fabs(x[i]));
      else
        a += pow(fabs(x[i]), p);
    }
    return p == 0 || isinf(p) ? a : pow(a, 1 / p);
  default:
    return NAN;
  }
}

/* Compares one reduction in one layout over the dims of mask with the reference. */
static void compare(lt_OpId op, lt_Tensor *x, unsigned mask, double p) {
  int64_t dims[LT_MAX_DIMS];
  int n = 0;
  for (int d = 0; d < x->ndim; d++)
    if (mask >> d & 1) dims[n++] = d;
  lt_Arg args[4] = {LT_ARG(x),
                    op == LT_OP_argmax || op == LT_OP_argmin ? LT_ARG(dims[0]) : LT_INTS(dims, n)};
  int nargs = 2;
  if (op == LT_OP__norm) {
    args[2] = LT_ARG((bool)false);
    args[3] = LT_ARG(p);
    nargs = 4;
  }
  lt_Tensor *y[LT_MAX_OUT];
  if (!run_op(__FILE__, __LINE__, op, false, args, nargs, y)) return;
  double *elements = malloc((size_t)x->numel * sizeof *elements);
  int64_t size = 1;
  for (int d = 0; d < x->ndim; d++)
    if (!(mask >> d & 1)) size *= x->shape[d];
  CHECK_INT(y[0]->numel, size);
  for (int64_t i = 0; i < size && i < y[0]->numel; i++) {
    int64_t count = gathered(x, mask, i, elements);
    double expected = reference(op, elements, count, p), actual = number(y[0], i);
    double tolerance = tolerance_of(y[0]->dtype) * fmax(1, fabs(expected));
    if (op == LT_OP_prod && !lt_dtype_is_float(x->dtype) && fabs(expected) > 1e15) continue;
    if (!check_close(actual, expected, tolerance))
      check_report(__FILE__, __LINE__,
                   "%s of %s %s over mask %u: element %lld is %.17g, expected %.17g",
                   lt_ops[op].name, lt_dtype_name(x->dtype), lt_shape_text(x->ndim, x->shape), mask,
                   (long long)i, actual, expected);
  }
  free(elements);
}

static const struct Case {
  int ndim;
  int64_t shape[4];
} cases[] = {{1, {1}},      {1, {37}},      {2, {5, 7}},     {2, {70, 3}},
             {2, {3, 130}}, {3, {4, 1, 6}}, {3, {2, 40, 5}}, {4, {3, 2, 4, 5}},
             {2, {300, 2}}, {2, {2, 300}},  {1, {5001}}};

static void each_case(lt_OpId op, lt_Dtype dtype, double p) {
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    lt_Tensor *x = noise(dtype, cases[k].ndim, cases[k].shape, (unsigned)k + 1);
    for (int layout = 0; layout < 3; layout++) {
      lt_Tensor *t = laid_out(x, layout);
      for (unsigned mask = 1; mask < 1u << t->ndim; mask++) {
        if ((op == LT_OP_argmax || op == LT_OP_argmin) && (mask & (mask - 1))) continue;
        if (op == LT_OP__var && t->numel == 1) continue;
        compare(op, t, mask, p);
      }
    }
  }
}

static void every(lt_OpId op) {
  for (lt_Dtype d = LT_bool; d <= LT_float64; d = (lt_Dtype)(d + 1)) {
    bool floats_only = op == LT_OP_mean || op == LT_OP__var || op == LT_OP__norm;
    if ((floats_only && !lt_dtype_is_float(d)) || !has_dtype(d)) continue;
    each_case(op, d, 2);
  }
}

/* Returns a view of random numbers, with these sizes and strides, of memory that ends with it, so
 * that a sanitizer reports what is read beyond. */
static lt_Tensor *laid_out_at_the_end(lt_Dtype d, int ndim, const int64_t *shape,
                                      const int64_t *strides, unsigned seed) {
  int64_t size = 1;
  for (int i = 0; i < ndim; i++) size += (shape[i] - 1) * strides[i];
  return lt_scope_own(lt_geometry(noise(d, SHAPE(size), seed), 0, ndim, shape, strides));
}

/* Dims of stride 0, which are reduced without a copy. */
static void reductions_of_expanded_tensors(void) {
  static const lt_OpId ops[] = {LT_OP_sum,  LT_OP_mean,  LT_OP_prod,
                                LT_OP_amax, LT_OP__norm, LT_OP_all};
  static const int64_t layouts[][2][4] = {{{3, 2, 5, 70}, {0, 350, 70, 1}},
                                          {{2, 5, 3, 80}, {80, 0, 160, 1}},
                                          {{70, 3, 4, 2}, {1, 0, 70, 0}},
                                          {{3, 100, 2, 2}, {0, 1, 0, 0}},
                                          {{2, 9, 2, 70}, {0, 140, 0, 2}}};
  for (lt_Dtype d = LT_bool; d <= LT_float64; d = (lt_Dtype)(d + 1))
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
      if (!has_dtype(d)) continue;
      lt_Tensor *t = laid_out_at_the_end(d, 4, layouts[k][0], layouts[k][1], (unsigned)k);
      for (unsigned mask = 1; mask < 16; mask++)
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
          if (lt_dtype_is_float(d) || (ops[i] != LT_OP_mean && ops[i] != LT_OP__norm))
            compare(ops[i], t, mask, 2);
    }
}

/* Tensors with holes between their elements, whose dims are reduced without a copy: rows of
 * elements that are 2 or 3 apart, short rows of wider ones, blocks of columns of wider rows, also
 * with other dims between, and rows of both lengths that may be joined across dims. */
static void reductions_of_strided_tensors(void) {
  static const lt_OpId ops[] = {LT_OP_sum, LT_OP_mean, LT_OP_prod, LT_OP_amax, LT_OP__norm};
  static const int64_t layouts[][2][3] = {
      {{3, 5, 40}, {400, 80, 2}},    {{3, 5, 40}, {601, 120, 3}}, {{1, 30, 70}, {1, 75, 1}},
      {{1, 8, 130}, {1, 131, 1}},    {{2, 9, 40}, {640, 71, 1}},  {{3, 50, 3}, {500, 10, 1}},
      {{35, 4, 33}, {1, 4000, 100}}, {{40, 33, 2}, {160, 2, 68}}, {{2, 3, 70}, {1, 0, 2}},
      {{1, 9, 40}, {1, 80, 2}},      {{1, 3, 300}, {1, 700, 2}},  {{2, 70, 5}, {800, 11, 1}},
      {{2, 40, 20}, {900, 22, 1}},   {{9, 4, 30}, {250, 61, 2}},  {{3, 20, 4}, {100, 4, 1}},
      {{9, 3, 4}, {400, 100, 1}},    {{5, 7, 17}, {17, 90, 1}}};
  for (lt_Dtype d = LT_bool; d <= LT_float64; d = (lt_Dtype)(d + 1))
    for (size_t k = 0; k < sizeof layouts / sizeof *layouts; k++) {
      if (!has_dtype(d)) continue;
      lt_Tensor *t = laid_out_at_the_end(d, 3, layouts[k][0], layouts[k][1], (unsigned)k);
      for (unsigned mask = 1; mask < 8; mask++) {
        int64_t results = 1;
        for (int i = 0; i < 3; i++) results *= mask >> i & 1 ? 1 : t->shape[i];
        if (results * t->numel > 160000) continue; /* the reference is slow */
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
          if (lt_dtype_is_float(d) || (ops[i] != LT_OP_mean && ops[i] != LT_OP__norm))
            compare(ops[i], t, mask, 2);
      }
    }
}

/* Long rows of elements that are `step` apart, and tall columns, are reduced in pieces: each
 * element is the number of its place modulo 8. */
static void long_strided_sums(void) {
  static const lt_Dtype dtypes[] = {LT_float32, LT_bfloat16, LT_float16,
                                    LT_int16,   LT_int64,    LT_uint8};
  const int64_t n = 240000, width = 100, rows = n / (width + 5);
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    lt_Tensor *x = lt_scope_own(lt_empty(LT_int64, lt_cpu(), SHAPE(n))), *y[LT_MAX_OUT];
    int64_t *v = x ? lt_tensor_data(x) : NULL;
    REQUIRE(v);
    for (int64_t k = 0; k < n; k++) v[k] = k % 8;
    x = lt_scope_own(lt_as_contiguous(x, dtypes[i]));
    for (int64_t step = 1; step <= 7; step++) {
      int64_t count = n / 8 * 8 / step, expected = 0;
      for (int64_t k = 0; k < count; k++) expected += k * step % 8;
      lt_Tensor *t = lt_scope_own(lt_geometry(x, 0, 1, &count, &step));
      REQUIRE(RUN_OP(y, sum, false, LT_ARG(t), LT_NIL, LT_NIL,
                     lt_arg_dtype(lt_dtype_is_float(dtypes[i]) ? LT_float32 : LT_int64)));
      CHECK_INT((int64_t)number(y[0], 0), expected);
    }
    lt_Tensor *t =
        lt_scope_own(lt_geometry(x, 0, 2, (int64_t[]){rows, width}, (int64_t[]){width + 5, 1}));
    REQUIRE(RUN_OP(y, sum, false, LT_ARG(t), L(0), LT_NIL,
                   lt_arg_dtype(lt_dtype_is_float(dtypes[i]) ? LT_float32 : LT_int64)));
    for (int64_t j = 0; j < width; j++) {
      int64_t expected = 0;
      for (int64_t r = 0; r < rows; r++) expected += (r * (width + 5) + j) % 8;
      CHECK_INT((int64_t)number(y[0], j), expected);
    }
  }
}

static void sums(void) { every(LT_OP_sum); }
static void means(void) { every(LT_OP_mean); }
static void products(void) { every(LT_OP_prod); }
static void largest(void) { every(LT_OP_amax); }
static void smallest(void) { every(LT_OP_amin); }
static void all_true(void) { every(LT_OP_all); }
static void any_true(void) { every(LT_OP_any); }
static void counts(void) { every(LT_OP_count_nonzero); }
static void indices_of_largest(void) { every(LT_OP_argmax); }
static void indices_of_smallest(void) { every(LT_OP_argmin); }
static void log_sums(void) { every(LT_OP_logsumexp); }

/* The variance of one element is NaN, in the reference, too. */
static void variances(void) { every(LT_OP__var); }

static void norms(void) {
  static const double orders[] = {0, 1, 2, 3, 0.5, INFINITY, -INFINITY, -1};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
    each_case(LT_OP__norm, LT_float32, orders[i]);
    each_case(LT_OP__norm, widest_float(), orders[i]);
  }
}

/* The squares of these numbers fit in no float32. */
static void norms_of_extreme_numbers(void) {
  static const double scales[] = {1e30, 1e-30};
  for (int i = 0; i < 2; i++) {
    double s = scales[i];
    lt_Tensor *x = from_list(LT_float32, (double[]){3 * s, -4 * s}, SHAPE(2)), *y[LT_MAX_OUT];
    static const struct {
      double order, expected;
    } norms_[] = {{2, 5}, {1, 7}, {3, 4.497941445275415}, {-1, 12.0 / 7}, {INFINITY, 4}};
    for (size_t k = 0; k < sizeof norms_ / sizeof *norms_; k++) {
      REQUIRE(RUN_OP(y, _norm, false, LT_ARG(x), L(0), LT_ARG((bool)false),
                     LT_ARG((double)norms_[k].order)));
      CHECK_NEAR(number(y[0], 0) / s, norms_[k].expected, 1e-6);
    }
  }
}

static void max_returns_values_and_indices(void) {
  lt_Tensor *x = from_list(LT_int16, (double[]){3, 9, 9, 4, -1, 4}, SHAPE(2, 3)), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, _max, false, LT_ARG(x), LT_ARG(1)));
  CHECK_TENSOR(y[0], 0, L(2), 9, 4);
  CHECK_TENSOR(y[1], 0, L(2), 2, 1); /* the first of equal elements, from 1 */
  CHECK_INT(y[0]->dtype, LT_int16);
  REQUIRE(RUN_OP(y, _min, false, LT_ARG(x), LT_ARG(0), LT_ARG((bool)true)));
  CHECK_TENSOR(y[0], 0, L(1, 3), 3, -1, 4);
  CHECK_TENSOR(y[1], 0, L(1, 3), 1, 2, 2);
}

static void argmax_of_all_counts_in_row_major_order(void) {
  lt_Tensor *x = from_list(LT_float32, (double[]){3, 2, 9, 4, 8, 4}, SHAPE(2, 3)), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, argmax, false, LT_ARG(laid_out(x, 1))));
  CHECK_TENSOR(y[0], 0, LT_INTS(NULL, 0), 3);
}

/* NaN at every position, in rows long enough for vectors. */
static void nan_is_the_largest(void) {
  for (int n = 1; n < 70; n += 3)
    for (int at = 0; at < n; at += 2)
      for (int d = LT_float32; d <= (int)widest_float(); d++) {
        double values[70];
        lt_Tensor *y[LT_MAX_OUT];
        for (int i = 0; i < n; i++) values[i] = i % 7;
        values[at] = NAN;
        if (at + 1 < n) values[n - 1] = NAN;
        lt_Tensor *x = from_list((lt_Dtype)d, values, SHAPE(n));
        if (!RUN_OP(y, amax, false, LT_ARG(x))) return;
        CHECK(isnan(number(y[0], 0)));
        if (!RUN_OP(y, amin, false, LT_ARG(x))) return;
        CHECK(isnan(number(y[0], 0)));
        if (!RUN_OP(y, argmax, false, LT_ARG(x))) return;
        CHECK_INT(number(y[0], 0), at + 1);
        if (!RUN_OP(y, _min, false, LT_ARG(x), LT_ARG(0))) return;
        CHECK(isnan(number(y[0], 0)));
        CHECK_INT(number(y[1], 0), at + 1);
      }
  lt_Tensor *x = from_list(LT_float32, (double[]){1, NAN, 3, NAN, 5, 6}, SHAPE(3, 2)),
            *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, _max, false, LT_ARG(x), LT_ARG(0)));
  CHECK_TENSOR(y[0], 0, L(2), 5, NAN);
  CHECK_TENSOR(y[1], 0, L(2), 3, 1);
}

/* Returns the index, from 1, of the first NaN of n numbers `stride` apart, else of the first of the
 * largest. */
static int64_t first_largest(const double *x, int64_t n, int64_t stride) {
  int64_t at = 0;
  for (int64_t i = n - 1; i >= 0; i--)
    if (x[i * stride] >= x[at * stride]) at = i;
  for (int64_t i = n - 1; i >= 0; i--)
    if (isnan(x[i * stride])) at = i;
  return at + 1;
}

/* The first of many equal elements, and of several NaN, in lines {outer, n, inner}: short rows, and
 * few columns. */
static void largest_of_equal_elements_is_the_first(void) {
  static const int64_t shapes[][3] = {{3, 100, 3}, {1, 700, 10},  {2, 41, 31},  {5, 8, 2},
                                      {131, 3, 1}, {131, 15, 1},  {70, 63, 1},  {70, 64, 1},
                                      {67, 7, 1},  {1, 2000, 33}, {1, 300, 130}};
  for (int d = next_dtype(LT_uint8); d <= LT_float64; d = next_dtype(d + 1))
    for (size_t s = 0; s < 2 * sizeof shapes / sizeof *shapes; s++) {
      const int64_t *shape = shapes[s / 2], n = shape[1], inner = shape[2],
                    count = shape[0] * n * inner;
      double *x = malloc((size_t)count * sizeof *x);
      lt_Tensor *y[LT_MAX_OUT];
      for (int64_t i = 0; i < count; i++) {
        uint64_t bits = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u >> 40;
        x[i] = (double)(bits % 3);
        if (s % 2 && lt_dtype_is_float((lt_Dtype)d) && bits / 3 % 29 == 0) x[i] = NAN;
      }
      lt_Tensor *t = from_list((lt_Dtype)d, x, 3, shape);
      if (!RUN_OP(y, _max, false, LT_ARG(t), LT_ARG(1))) return;
      for (int64_t i = 0; i < count / n; i++) {
        const double *line = x + i / inner * n * inner + i % inner;
        int64_t at = first_largest(line, n, inner);
        double largest = line[(at - 1) * inner];
        CHECK_INT(number(y[1], i), at);
        CHECK_NEAR(number(y[0], i), largest, 0);
      }
      if (!RUN_OP(y, amax, false, LT_ARG(t), LT_ARG(1))) return;
      for (int64_t i = 0; i < count / n; i++) {
        const double *line = x + i / inner * n * inner + i % inner;
        CHECK_NEAR(number(y[0], i), line[(first_largest(line, n, inner) - 1) * inner], 0);
      }
      free(x);
    }
}

/* Short rows are folded side by side; the bits are those of each row alone. */
static void short_rows_do_not_depend_on_others(void) {
  if (test_device().type != LT_DEVICE_cpu) return; /* other devices have loops of their own */
  static const lt_OpId ops[] = {LT_OP_sum, LT_OP_prod, LT_OP_amax, LT_OP__norm};
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (int64_t n = 1; n < 18; n++)
      for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        lt_Tensor *x = noise((lt_Dtype)d, SHAPE(150, n), (unsigned)n), *all[LT_MAX_OUT];
        if (!run_op(__FILE__, __LINE__, ops[k], false, (lt_Arg[]){LT_ARG(x), LT_ARG(1)}, 2, all))
          return;
        for (int64_t r = 0; r < 150; r += 7) {
          lt_Tensor *row = lt_scope_own(
                        lt_geometry(x, r * n, 2, (int64_t[]){1, n}, (int64_t[]){n, 1})),
                    *one[LT_MAX_OUT];
          if (!run_op(__FILE__, __LINE__, ops[k], false, (lt_Arg[]){LT_ARG(row), LT_ARG(1)}, 2,
                      one))
            return;
          CHECK(number(one[0], 0) == number(all[0], r));
        }
      }
}

static void nothing_to_reduce(void) {
  lt_Tensor *x = noise(LT_float32, SHAPE(2, 0), 1), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, sum, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), 0, 0);
  REQUIRE(RUN_OP(y, prod, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), 1, 1);
  REQUIRE(RUN_OP(y, mean, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), NAN, NAN);
  REQUIRE(RUN_OP(y, _var, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), NAN, NAN);
  REQUIRE(RUN_OP(y, all, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), 1, 1);
  REQUIRE(RUN_OP(y, any, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), 0, 0);
  REQUIRE(RUN_OP(y, logsumexp, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), -INFINITY, -INFINITY);
  REQUIRE(RUN_OP(y, _norm, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 0, L(2), 0, 0);
  REQUIRE(RUN_OP(y, sum, false, LT_ARG(x), L(0)));
  CHECK_INT(y[0]->numel, 0);
  CHECK_FAILS("its size is 0", amax, false, LT_ARG(x), L(1));
}

static void sums_take_a_dtype(void) {
  lt_Tensor *x = V(uint8, 200, 100), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, sum, false, LT_ARG(x)));
  CHECK_INT(y[0]->dtype, LT_int64);
  CHECK_TENSOR(y[0], 0, LT_INTS(NULL, 0), 300);
  REQUIRE(
      RUN_OP(y, sum, false, LT_ARG(x), LT_NIL, LT_ARG((bool)false), lt_arg_dtype(widest_float())));
  CHECK_INT(y[0]->dtype, widest_float());
  REQUIRE(RUN_OP(y, sum, false, LT_ARG(x), LT_NIL, LT_ARG((bool)true), D(uint8)));
  CHECK_TENSOR(y[0], 0, L(1), 44); /* wraps */
  REQUIRE(RUN_OP(y, mean, false, LT_ARG(x), LT_NIL, LT_ARG((bool)false), D(float32)));
  CHECK_TENSOR(y[0], 0, LT_INTS(NULL, 0), 150);
  lt_Tensor *low = V(int64, 4611686018427387904.0, 4611686018427387904.0);
  REQUIRE(RUN_OP(y, sum, false, LT_ARG(low)));
  CHECK(element(y[0], 0).i == INT64_MIN);
}

/* The mean of halves is finite where their sum is not, and the norm where the squares are not. */
static void sums_of_halves_do_not_overflow(void) {
  lt_Tensor *y[LT_MAX_OUT], *x = lt_scope_own(lt_empty(LT_float16, lt_cpu(), SHAPE(1000)));
  for (int i = 0; i < 1000; i++)
    lt_scalar_store(lt_scalar_float(60000), LT_float16, (char *)lt_tensor_data(x) + 2 * i);
  REQUIRE(RUN_OP(y, mean, false, LT_ARG(x)));
  CHECK_TENSOR(y[0], 32, LT_INTS(NULL, 0), 60000);
  REQUIRE(RUN_OP(y, sum, false, LT_ARG(x)));
  CHECK(isinf(number(y[0], 0)));
  lt_Tensor *big = V(float32, 3e30, 4e30);
  REQUIRE(RUN_OP(y, _norm, false, LT_ARG(big)));
  CHECK_TENSOR(y[0], 1e24, LT_INTS(NULL, 0), 5e30);
}

/* 2^24 + 5 ones and a tenth: a sequential sum in float32 would stop at 2^24. */
static void long_sums_are_accurate(void) {
  int64_t n = (1 << 24) + 5;
  lt_Tensor *y[LT_MAX_OUT], *x = lt_scope_own(lt_empty(LT_float32, lt_cpu(), 1, &n));
  float *v = lt_tensor_data(x);
  for (int64_t i = 0; i < n; i++) v[i] = 1;
  REQUIRE(RUN_OP(y, sum, false, LT_ARG(x)));
  CHECK_TENSOR(y[0], 2, LT_INTS(NULL, 0), (double)n);
  for (int64_t i = 0; i < n; i++) v[i] = 0.1f;
  REQUIRE(RUN_OP(y, mean, false, LT_ARG(x)));
  CHECK_TENSOR(y[0], 3e-8, LT_INTS(NULL, 0), (double)0.1f);
  /* columns as well */
  int64_t shape[2] = {n / 3, 3}, strides[2] = {3, 1};
  lt_Tensor *m = lt_scope_own(lt_tensor_on(x->storage, LT_float32, 0, 2, shape, strides));
  REQUIRE(RUN_OP(y, mean, false, LT_ARG(m), L(0)));
  CHECK_TENSOR(y[0], 3e-8, L(3), (double)0.1f, (double)0.1f, (double)0.1f);
  for (int64_t i = 0; i < n; i++) v[i] = i % 2 ? 10000 : 10001;
  REQUIRE(RUN_OP(y, _var, false, LT_ARG(x), LT_NIL, LT_ARG((bool)false), LT_ARG(0.0)));
  CHECK_TENSOR(y[0], 1e-7, LT_INTS(NULL, 0), 0.25);
}

static void sums_do_not_depend_on_threads(void) {
  int was = lt_num_threads();
  lt_Tensor *y[LT_MAX_OUT], *one[LT_MAX_OUT];
  lt_Tensor *of[] = {noise(LT_float32, SHAPE(300, 701), 5), noise(LT_bfloat16, SHAPE(400, 300), 6),
                     noise(LT_float16, SHAPE(400, 300), 7)};
  for (int k = 0; k < 9; k++) {
    lt_Tensor *x = of[k / 3];
    lt_Arg dims = k % 3 == 0 ? LT_NIL : L(k % 3 - 1);
    lt_set_num_threads(1);
    REQUIRE(RUN_OP(one, sum, false, LT_ARG(x), dims, LT_ARG((bool)false), D(float32)));
    lt_set_num_threads(3);
    REQUIRE(RUN_OP(y, sum, false, LT_ARG(x), dims, LT_ARG((bool)false), D(float32)));
    CHECK(memcmp(lt_tensor_data(y[0]), lt_tensor_data(one[0]), (size_t)y[0]->numel * 4) == 0);
  }
  lt_set_num_threads(was);
}

/* On the CPU, rows of a view have the bits of the same rows in dense memory; these and columns do
 * not depend on the number of threads. */
static void sums_of_views_do_not_depend_on_threads(void) {
  static const lt_Dtype dtypes[] = {LT_float32, LT_bfloat16, LT_float16, LT_int16, LT_uint8};
  int was = lt_num_threads();
  lt_Tensor *y[LT_MAX_OUT], *one[LT_MAX_OUT], *dense[LT_MAX_OUT];
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
    for (int64_t n = 1; n < 700; n = n < 20 ? n + 1 : n * 2 + 1) {
      const int64_t shape[] = {7, 1 + 12000 / n, n},
                    strides[] = {(n + 3) * (1 + 13000 / n), n + 3, 1};
      lt_Tensor *x = laid_out_at_the_end(dtypes[i], 3, shape, strides, (unsigned)n);
      lt_Arg dtype = lt_arg_dtype(lt_dtype_is_float(dtypes[i]) ? LT_float32 : LT_int64);
      lt_Tensor *copy = lt_scope_own(lt_as_contiguous(x, dtypes[i]));
      for (int64_t dim = 0; dim < 3; dim++) {
        lt_set_num_threads(1);
        REQUIRE(RUN_OP(one, sum, false, LT_ARG(x), L(dim), LT_ARG((bool)false), dtype));
        lt_set_num_threads(3);
        REQUIRE(RUN_OP(y, sum, false, LT_ARG(x), L(dim), LT_ARG((bool)false), dtype));
        size_t bytes = (size_t)y[0]->numel * lt_dtype_size(y[0]->dtype);
        CHECK(memcmp(lt_tensor_data(y[0]), lt_tensor_data(one[0]), bytes) == 0);
        if (dim < 2 || test_device().type != LT_DEVICE_cpu) continue;
        REQUIRE(RUN_OP(dense, sum, false, LT_ARG(copy), L(dim), LT_ARG((bool)false), dtype));
        CHECK(memcmp(lt_tensor_data(y[0]), lt_tensor_data(dense[0]), bytes) == 0);
      }
    }
  lt_set_num_threads(was);
}

/* Elements of 16-bit floats and small integers are converted in parts. */
static void small_dtypes_are_reduced_in_parts(void) {
  static const int64_t shapes[][3] = {{1, 1, 9000}, {1, 9000, 1}, {3, 4097, 1}, {2, 700, 37},
                                      {2, 3, 600},  {1, 90, 515}, {5, 2049, 1}, {1, 40, 4099}};
  static const lt_Dtype dtypes[] = {LT_float16, LT_bfloat16, LT_int8, LT_uint8, LT_int16, LT_int32};
  static const lt_OpId ops[] = {LT_OP_sum, LT_OP_amax, LT_OP_amin, LT_OP_mean};
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++)
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes && has_dtype(dtypes[k]); s++)
      for (int op = 0; op < (k < 2 ? 4 : 3); op++) {
        lt_Dtype d = dtypes[k], wide = k < 2 ? LT_float32 : LT_int64;
        lt_Tensor *x = noise(d, 3, shapes[s], 7), *y[LT_MAX_OUT], *z[LT_MAX_OUT],
                  *same = lt_scope_own(lt_as_contiguous(x, wide));
        if (!run_op(__FILE__, __LINE__, ops[op], false, (lt_Arg[]){LT_ARG(x), LT_ARG(1)}, 2, y))
          return;
        if (!run_op(__FILE__, __LINE__, ops[op], false, (lt_Arg[]){LT_ARG(same), LT_ARG(1)}, 2, z))
          return;
        for (int64_t i = 0; i < z[0]->numel; i++)
          CHECK_NEAR(number(y[0], i), number(z[0], i),
                     tolerance_of(d) * fmax(1, fabs(number(z[0], i))));
        lt_Arg all = LT_ARG(x);
        if (op || !run_op(__FILE__, __LINE__, ops[op], false, &all, 1, y)) continue;
        double sum = 0, size = 0;
        for (int64_t i = 0; i < x->numel; i++) {
          sum += number(x, i);
          size += fabs(number(x, i));
        }
        CHECK_NEAR(number(y[0], 0), sum,
                   tolerance_of(d) * fmax(1, fabs(sum)) + 1e-6 * size * (k < 2));
      }
}

/* The loops over vectors look for NaN once for many elements. */
static void extremes_find_nan_anywhere(void) {
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (int64_t n = 1; n < 400; n = n < 140 ? n + 1 : n + 37)
      for (int64_t at = -1; at < n; at += n < 70 ? 1 : 13) {
        lt_Tensor *x = noise((lt_Dtype)d, SHAPE(n), (unsigned)n), *y[LT_MAX_OUT];
        double largest = -INFINITY, smallest = INFINITY;
        if (at >= 0)
          lt_scalar_store(lt_scalar_float(NAN), x->dtype,
                          (char *)lt_tensor_data(x) + (size_t)at * lt_dtype_size(x->dtype));
        for (int64_t i = 0; i < n; i++) {
          largest = fmax(largest, number(x, i));
          smallest = fmin(smallest, number(x, i));
        }
        if (!RUN_OP(y, amax, false, LT_ARG(x))) return;
        CHECK(at < 0 ? number(y[0], 0) == largest : isnan(number(y[0], 0)));
        if (!RUN_OP(y, amin, false, LT_ARG(x))) return;
        CHECK(at < 0 ? number(y[0], 0) == smallest : isnan(number(y[0], 0)));
        if (!RUN_OP(y, _norm, false, LT_ARG(x), LT_NIL, LT_ARG(false), LT_ARG((double)INFINITY)))
          return;
        CHECK(at < 0 ? number(y[0], 0) == fmax(largest, -smallest) : isnan(number(y[0], 0)));
      }
}

/* The tables of the lowest and the best instruction set give the same bits. */
extern const lt_Fold *const lt_folds_base[LT_STATE_COUNT];
static void sums_do_not_depend_on_instructions(void) {
  lt_Tensor *x = noise(LT_float32, SHAPE(40, 517), 3), *wide = noise(LT_float64, SHAPE(40, 517), 3);
  for (int state = 0; state < LT_STATE_I64 * LT_REDUCTION_COUNT; state++) {
    int id = state % LT_REDUCTION_COUNT;
    const lt_Fold *base = &lt_folds_base[state / LT_REDUCTION_COUNT][id];
    if (!base->elements.rows) continue;
    const lt_Fold *best = lt_fold((lt_ReductionId)id, base->from, false);
    const void *from = lt_tensor_data(best->from == LT_float32 ? x : wide);
    double a[LT_FOLD_WIDTH] = {0}, b[LT_FOLD_WIDTH] = {0};
    for (int64_t n = 1; n < 40 * 517; n = n * 2 + 1) {
      best->elements.rows(from, 1, n, n, a);
      base->elements.rows(from, 1, n, n, b);
      CHECK(memcmp(a, b, 8) == 0);
    }
    for (int64_t width = 1; width <= LT_FOLD_WIDTH; width = width * 3 + 1) {
      best->elements.columns(from, 40, 517, width, a);
      base->elements.columns(from, 40, 517, width, b);
      CHECK(memcmp(a, b, sizeof a) == 0);
      best->elements.columns(from, 40 * 517 / width, width, width, a);
      base->elements.columns(from, 40 * 517 / width, width, width, b);
      CHECK(memcmp(a, b, sizeof a) == 0);
    }
  }
}

/* Rows and columns of halves are reduced to the same bits as the same numbers in float32. */
static void halves_are_reduced_as_float32(void) {
  const int64_t most = 9000;
  for (int half = 0; half < 2; half++) {
    lt_Tensor *x = noise(half ? LT_float16 : LT_bfloat16, SHAPE(3 * most), 3),
              *same = lt_scope_own(lt_as_contiguous(x, LT_float32));
    for (int id = 0; id < LT_REDUCTION_COUNT; id++) {
      const lt_Fold *f = lt_fold((lt_ReductionId)id, LT_float32, false);
      const lt_FoldLoops *loops = half ? &f->half : &f->bfloat16;
      if (!loops->rows) continue;
      float a[LT_FOLD_WIDTH] = {0}, b[LT_FOLD_WIDTH] = {0};
      for (int64_t n = 1; n <= most; n = n < 140 ? n + 1 : n * 2 + 1) {
        loops->rows(lt_tensor_data(x), 3, n, n, a);
        f->elements.rows(lt_tensor_data(same), 3, n, n, b);
        CHECK(memcmp(a, b, sizeof a) == 0);
      }
      for (int64_t width = 1; width <= LT_FOLD_WIDTH; width += width < 70 ? 1 : 221)
        for (int64_t n = 1; n <= 50; n += n < 20 ? 1 : 15)
          for (int64_t stride = width; stride <= width + 3; stride += 3) {
            loops->columns(lt_tensor_data(x), n, stride, width, a);
            f->elements.columns(lt_tensor_data(same), n, stride, width, b);
            CHECK(memcmp(a, b, sizeof a) == 0);
          }
    }
  }
}

static void logsumexp_of_infinities(void) {
  lt_Tensor *x = from_list(
      LT_float32, (double[]){-INFINITY, -INFINITY, INFINITY, 1, NAN, 1, 1000, 1000}, SHAPE(4, 2));
  lt_Tensor *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, logsumexp, false, LT_ARG(x), L(1)));
  CHECK_TENSOR(y[0], 1e-4, L(4), -INFINITY, INFINITY, NAN, 1000.6931471805599);
  /* as columns, each of them ten times */
  static const double pairs[4][2] = {{-INFINITY, -INFINITY}, {INFINITY, 1}, {1, NAN}, {1000, 1000}};
  static const double expected[] = {-INFINITY, INFINITY, NAN, 1000.6931471805599};
  double columns[80];
  for (int k = 0; k < 80; k++) columns[k] = pairs[k % 4][k / 40];
  for (int d = LT_float32; d <= (int)widest_float(); d++) {
    REQUIRE(
        RUN_OP(y, logsumexp, false, LT_ARG(from_list((lt_Dtype)d, columns, SHAPE(2, 40))), L(0)));
    for (int k = 0; k < 40; k++) CHECK_NEAR(number(y[0], k), expected[k % 4], 1e-4);
  }
}

/* The pieces of a long row have different means. */
static void variance_of_long_rows_joins_pieces(void) {
  lt_Tensor *y[LT_MAX_OUT], *x = lt_scope_own(lt_empty(LT_float32, lt_cpu(), SHAPE(50000)));
  float *v = x ? lt_tensor_data(x) : NULL;
  REQUIRE(v);
  for (int i = 0; i < 50000; i++) v[i] = i < 25000 ? 1 : 3;
  REQUIRE(RUN_OP(y, _var, false, LT_ARG(x), LT_NIL, LT_ARG((bool)false), LT_ARG(0.0)));
  CHECK_TENSOR(y[0], 1e-6, LT_INTS(NULL, 0), 1);
}

static void variance_takes_a_correction(void) {
  lt_Dtype dtype = widest_float();
  lt_Tensor *x = from_list(dtype, (double[]){1, 2, 3, 4}, SHAPE(4)),
            *one = from_list(dtype, (double[]){7}, SHAPE(1)), *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, _var, false, LT_ARG(x), LT_NIL, LT_ARG((bool)false), LT_ARG(0.0)));
  CHECK_TENSOR(y[0], 1e-15, LT_INTS(NULL, 0), 1.25);
  REQUIRE(RUN_OP(y, _var, false, LT_ARG(one)));
  CHECK(isnan(number(y[0], 0)));
}

static void interruption_stops_with_an_error(void) {
  if (test_device().type != LT_DEVICE_cpu) return; /* a running kernel is not stopped */
  lt_Tensor *x = noise(LT_float32, SHAPE(50, 50), 3);
  atomic_store(&lt_interrupt_flag, true);
  CHECK_FAILS("interrupted", sum, false, LT_ARG(x));
  CHECK_FAILS("interrupted", sort, false, LT_ARG(x));
  atomic_store(&lt_interrupt_flag, false);
  lt_Tensor *y[LT_MAX_OUT];
  CHECK(RUN_OP(y, sum, false, LT_ARG(x)));
}

int main(void) {
  RUN_SCOPED(sums);
  RUN_SCOPED(reductions_of_expanded_tensors);
  RUN_SCOPED(reductions_of_strided_tensors);
  RUN_SCOPED(long_strided_sums);
  RUN_SCOPED(means);
  RUN_SCOPED(products);
  RUN_SCOPED(largest);
  RUN_SCOPED(smallest);
  RUN_SCOPED(all_true);
  RUN_SCOPED(any_true);
  RUN_SCOPED(counts);
  RUN_SCOPED(indices_of_largest);
  RUN_SCOPED(indices_of_smallest);
  RUN_SCOPED(log_sums);
  RUN_SCOPED(variances);
  RUN_SCOPED(norms);
  RUN_SCOPED(norms_of_extreme_numbers);
  RUN_SCOPED(max_returns_values_and_indices);
  RUN_SCOPED(argmax_of_all_counts_in_row_major_order);
  RUN_SCOPED(nan_is_the_largest);
  RUN_SCOPED(largest_of_equal_elements_is_the_first);
  RUN_SCOPED(short_rows_do_not_depend_on_others);
  RUN_SCOPED(nothing_to_reduce);
  RUN_SCOPED(sums_take_a_dtype);
  RUN_SCOPED(sums_of_halves_do_not_overflow);
  RUN_SCOPED(long_sums_are_accurate);
  RUN_SCOPED(small_dtypes_are_reduced_in_parts);
  RUN_SCOPED(extremes_find_nan_anywhere);
  RUN_SCOPED(sums_do_not_depend_on_threads);
  RUN_SCOPED(sums_of_views_do_not_depend_on_threads);
  RUN_SCOPED(sums_do_not_depend_on_instructions);
  RUN_SCOPED(halves_are_reduced_as_float32);
  RUN_SCOPED(logsumexp_of_infinities);
  RUN_SCOPED(variance_of_long_rows_joins_pieces);
  RUN_SCOPED(variance_takes_a_correction);
  RUN_SCOPED(interruption_stops_with_an_error);
  return check_end();
}
