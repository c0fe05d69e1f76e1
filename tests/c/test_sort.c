/* test_sort.c: sort and topk against ranks counted the slow way, over dtypes, layouts and dims;
 * equal elements, NaN, zeros of both signs, short and long lines. */
#include "tensors.h"

/* Returns true when a is before b; NaN is the largest. */
static bool less(double a, double b) { return (isnan(b) && !isnan(a)) || a < b; }

static void check_sorted(lt_Tensor *x, int dim, bool descending, int64_t k, lt_Tensor *values,
                         lt_Tensor *at) {
  int64_t n = x->shape[dim], inner = 1;
  for (int d = dim + 1; d < x->ndim; d++) inner *= x->shape[d];
  for (int64_t o = 0; o < x->numel / n; o++)
    for (int64_t i = 0; i < k; i++) {
      int64_t base = o / inner * n * inner + o % inner,
              out = o / inner * k * inner + o % inner + i * inner;
      double v = number(values, out);
      int64_t p = (int64_t)number(at, out);
      CHECK(p >= 1 && p <= n);
      CHECK(check_close(v, number(x, base + (p - 1) * inner), 0));
      /* the slow way: the number of elements before p, equal ones by index */
      int64_t rank = 0;
      for (int64_t j = 0; j < n; j++) {
        double w = number(x, base + j * inner);
        bool before = descending ? less(v, w) : less(w, v);
        bool equal = !less(v, w) && !less(w, v);
        rank += before || (equal && j < p - 1);
      }
      CHECK_INT(rank, i);
    }
}

static void sort_orders_stably(void) {
  static const int64_t sizes[] = {1, 2, 7, 48, 49, 300};
  for (int d = LT_bool; d <= (int)widest_float(); d++)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      for (int descending = 0; descending < 2; descending++)
        for (int dim = 0; dim < 2; dim++) {
          int64_t shape[2] = {dim ? 2 : sizes[s], dim ? sizes[s] : 2};
          lt_Tensor *x = laid_out(noise((lt_Dtype)d, 2, shape, (unsigned)s + 3), (int)s % 3),
                    *y[LT_MAX_OUT];
          if (!RUN_OP(y, sort, false, LT_ARG(x), LT_ARG(dim), LT_ARG((bool)(descending != 0))))
            return;
          CHECK_INT(y[0]->dtype, d);
          check_sorted(x, dim, descending, shape[dim], y[0], y[1]);
        }
}

/* Lines that are sorted side by side, with many equal elements, NaN and zeros of both signs. */
static void sort_of_many_short_lines(void) {
  static const int64_t sizes[] = {1, 2, 3, 7, 16, 31, 64, 100, 128, 129};
  static const double some[] = {NAN, -0.0, 0.0, 1, -INFINITY, -3};
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (size_t s = 0; s < 4 * sizeof sizes / sizeof *sizes; s++) {
      int64_t n = sizes[s / 4], shape[] = {s % 2 ? 71 : 7, n, s % 2 ? 1 : 10},
              count = shape[0] * n * shape[2];
      bool descending = s & 2;
      double *x = malloc((size_t)count * sizeof *x);
      for (int64_t i = 0; i < count; i++)
        x[i] = some[((uint64_t)(i + 1) * 0x9e3779b97f4a7c15u >> 40) % 6];
      lt_Tensor *t = from_list((lt_Dtype)d, x, 3, shape), *y[LT_MAX_OUT];
      free(x);
      if (!RUN_OP(y, sort, false, LT_ARG(t), LT_ARG(1), LT_ARG(descending))) return;
      check_sorted(t, 1, descending, n, y[0], y[1]);
      if (!RUN_OP(y, topk, false, LT_ARG(t), LT_ARG((n + 1) / 2), LT_ARG(1), LT_ARG(descending)))
        return;
      check_sorted(t, 1, descending, (n + 1) / 2, y[0], y[1]);
    }
}

/* Checks the order of a vector by its neighbours: if indices increase where values are equal, no
 * index occurs twice. */
static void check_sorted_vector(lt_Tensor *x, bool descending, lt_Tensor *const *y) {
  for (int64_t i = 0; i < x->numel; i++) {
    double v = number(y[0], i);
    int64_t at = (int64_t)number(y[1], i);
    bool ok = at >= 1 && at <= x->numel && check_close(v, number(x, at - 1), 0);
    if (ok && i > 0) {
      double w = number(y[0], i - 1);
      bool after = descending ? less(v, w) : less(w, v),
           before = descending ? less(w, v) : less(v, w);
      ok = after || (!before && number(y[1], i - 1) < number(y[1], i));
    }
    if (ok) continue;
    check_report(__FILE__, __LINE__, "%s: wrong at %lld", lt_dtype_name(x->dtype), (long long)i);
    return;
  }
}

/* Lines that several threads sort together: floats with NaN and zeros of both signs; integers of a
 * small range, of all 64 bits, and all the same. */
static void sort_of_long_lines(void) {
  enum { N = 20011 };
  int threads = lt_num_threads();
  for (int d = LT_bool; d <= (int)widest_float(); d++)
    for (int kind = 0; kind < 3; kind++) {
      if (kind && d != LT_int64 && d != LT_int32) continue;
      lt_Tensor *x = noise((lt_Dtype)d, SHAPE(N), 5), *y[LT_MAX_OUT];
      if (!x) return;
      size_t size = lt_dtype_size((lt_Dtype)d);
      for (int64_t j = 0; j < N; j++) {
        char *at = (char *)lt_tensor_data(x) + (size_t)j * size;
        int64_t whole = kind == 2 ? -7 : (int64_t)((uint64_t)j * 0x9e3779b97f4a7c15U);
        if (kind)
          lt_scalar_store(lt_scalar_int(d == LT_int32 ? (int32_t)whole : whole), (lt_Dtype)d, at);
        if (lt_dtype_is_float((lt_Dtype)d) && j % 5 == 0)
          lt_scalar_store(lt_scalar_float(j % 3 ? NAN : j % 2 ? -0.0 : 0.0), (lt_Dtype)d, at);
      }
      for (int n = 1; n <= 3; n++)
        for (int descending = 0; descending < 2; descending++) {
          lt_set_num_threads(n);
          if (RUN_OP(y, sort, false, LT_ARG(x), LT_ARG(0), LT_ARG((bool)(descending != 0))))
            check_sorted_vector(x, descending, y);
        }
    }
  lt_set_num_threads(threads);
}

static void sort_orders_nan_zeros_and_infinities(void) {
  for (int d = LT_float16; d <= (int)widest_float(); d++) {
    lt_Tensor *y[LT_MAX_OUT];
    lt_Tensor *x = from_list((lt_Dtype)d,
                             (double[]){0.0, NAN, -INFINITY, -0.0, INFINITY, -1, NAN, 1}, SHAPE(8));
    REQUIRE(RUN_OP(y, sort, false, LT_ARG(x)));
    CHECK_TENSOR(y[0], 0, L(8), -INFINITY, -1, 0, 0, 1, INFINITY, NAN, NAN);
    CHECK_TENSOR(y[1], 0, L(8), 3, 6, 1, 4, 8, 5, 2, 7);
    CHECK(!signbit(number(y[0], 2)) && signbit(number(y[0], 3)));
    REQUIRE(RUN_OP(y, sort, false, LT_ARG(x), LT_ARG(0), LT_ARG((bool)true)));
    CHECK_TENSOR(y[1], 0, L(8), 2, 7, 5, 8, 1, 4, 6, 3);
  }
  lt_Tensor *y[LT_MAX_OUT], *x = lt_scope_own(lt_empty(LT_int64, lt_cpu(), SHAPE(3)));
  memcpy(lt_tensor_data(x), (int64_t[]){INT64_MAX, INT64_MIN, -1}, 24);
  REQUIRE(RUN_OP(y, sort, false, LT_ARG(x)));
  CHECK_TENSOR(y[1], 0, L(3), 2, 3, 1);
}

static void topk_returns_the_first_of_the_order(void) {
  static const int64_t ks[] = {0, 1, 3, 40, 100};
  for (size_t i = 0; i < sizeof ks / sizeof *ks; i++)
    for (int largest_ = 0; largest_ < 2; largest_++)
      for (int d = LT_int8; d <= (int)widest_float(); d += 2) {
        lt_Tensor *x = noise((lt_Dtype)d, SHAPE(3, 100), 8), *y[LT_MAX_OUT];
        if (!RUN_OP(y, topk, false, LT_ARG(x), LT_ARG(ks[i]), LT_ARG(1),
                    LT_ARG((bool)(largest_ != 0))))
          return;
        CHECK_INT(y[0]->shape[1], ks[i]);
        check_sorted(x, 1, largest_, ks[i], y[0], y[1]);
      }
  lt_Tensor *z = noise(LT_float32, LT_NIL.count, NULL, 1), *y[LT_MAX_OUT];
  for (int k = 0; k < 2; k++) { /* a 0-d tensor has one element, whatever k is */
    REQUIRE(RUN_OP(y, topk, false, LT_ARG(z), LT_ARG(k)));
    CHECK_NEAR(number(y[0], 0), number(z, 0), 0);
    CHECK_INT(number(y[1], 0), 1);
  }
  REQUIRE(RUN_OP(y, sort, false, LT_ARG(z)));
  CHECK_INT(number(y[1], 0), 1);
  CHECK_INT(y[1]->ndim, 0);
}

/* Ties, NaN and zeros of both signs in lines that are long enough for limits by lanes. */
static void topk_of_long_lines(void) {
  static const int64_t sizes[] = {255, 256, 257, 700}, ks[] = {1, 2, 5, 31, 32, 33, 64, 87};
  for (int d = LT_int8; d <= (int)widest_float(); d++)
    for (int s = 0; s < 4; s++)
      for (int i = 0; i < 8; i++) {
        int dim = i % 2;
        bool largest_ = (i + s) % 3 != 0;
        int64_t k = ks[i] <= sizes[s] ? ks[i] : sizes[s];
        int64_t shape[2] = {dim ? 3 : sizes[s], dim ? sizes[s] : 3};
        lt_Tensor *x = noise((lt_Dtype)d, 2, shape, (unsigned)(s + i)), *y[LT_MAX_OUT];
        size_t size = lt_dtype_size((lt_Dtype)d);
        for (int64_t j = 0; lt_dtype_is_float((lt_Dtype)d) && j < x->numel; j += i + 2)
          lt_scalar_store(lt_scalar_float(j % 3   ? NAN
                                          : j % 2 ? -0.0
                                                  : 0.0),
                          (lt_Dtype)d, (char *)lt_tensor_data(x) + (size_t)j * size);
        if (!RUN_OP(y, topk, false, LT_ARG(x), LT_ARG(k), LT_ARG(dim), LT_ARG(largest_))) return;
        check_sorted(x, dim, largest_, k, y[0], y[1]);
      }
  int threads = lt_num_threads();
  for (int n = 1; n <= 3; n += 2) {
    lt_set_num_threads(n);
    lt_Tensor *x = noise(LT_float32, SHAPE(301, 260), 4), *y[LT_MAX_OUT];
    if (!RUN_OP(y, topk, false, LT_ARG(x), LT_ARG(5), LT_ARG(1))) return;
    check_sorted(x, 1, true, 5, y[0], y[1]);
    if (!RUN_OP(y, sort, false, LT_ARG(x), LT_ARG(1))) return;
    check_sorted(x, 1, false, 260, y[0], y[1]);
  }
  lt_set_num_threads(threads);
}

/* The elements of an expanded dim are one element. */
static void sort_of_expanded_dims(void) {
  lt_Tensor *x = noise(LT_float32, SHAPE(1, 5), 1), *y[LT_MAX_OUT];
  for (int dim = 0; dim < 2; dim++) {
    lt_Tensor *wide = lt_scope_own(
        lt_geometry(x, 0, 2, (int64_t[]){dim ? 5 : 70, dim ? 70 : 5}, (int64_t[]){dim, !dim}));
    if (!RUN_OP(y, sort, false, LT_ARG(wide), LT_ARG(dim), LT_ARG(true))) return;
    check_sorted(wide, dim, true, 70, y[0], y[1]);
    if (!RUN_OP(y, sort, false, LT_ARG(wide), LT_ARG(!dim))) return;
    check_sorted(wide, !dim, false, 5, y[0], y[1]);
    if (!RUN_OP(y, topk, false, LT_ARG(wide), LT_ARG(3), LT_ARG(dim))) return;
    check_sorted(wide, dim, true, 3, y[0], y[1]);
  }
}

/* Lines in order, in which many elements are among the first so far. */
static void topk_of_ordered_lines(void) {
  enum { N = 5000, K = 40 };
  for (int d = LT_int16; d <= (int)widest_float(); d++)
    for (int kind = 0; kind < 6; kind++) {
      lt_Tensor *x = noise((lt_Dtype)d, SHAPE(N), 1), *y[LT_MAX_OUT];
      for (int64_t j = 0; x && j < N; j++)
        lt_scalar_store(lt_scalar_int(kind < 2   ? j
                                      : kind < 4 ? N - j
                                                 : j / 1500),
                        (lt_Dtype)d,
                        (char *)lt_tensor_data(x) + (size_t)j * lt_dtype_size((lt_Dtype)d));
      if (!RUN_OP(y, topk, false, LT_ARG(x), LT_ARG(K), LT_ARG(0), LT_ARG((bool)(kind % 2))))
        return;
      check_sorted(x, 0, kind % 2, K, y[0], y[1]);
    }
}

/* Keys of 64 bits that differ in the lowest, the highest, or all of their digits. */
static void sort_of_long_lines_of_doubles(void) {
  enum { N = 20011 };
  if (!has_dtype(LT_float64)) return;
  for (int kind = 0; kind < 4; kind++)
    for (int descending = 0; descending < 2; descending++) {
      lt_Tensor *x = noise(LT_float64, SHAPE(N), 5), *y[LT_MAX_OUT];
      double *at = x ? lt_tensor_data(x) : NULL;
      for (int64_t j = 0; at && j < N; j++) {
        uint64_t bits = (uint64_t)j * 0x9e3779b97f4a7c15U;
        at[j] = kind == 0   ? (double)(bits >> 50) - 9000
                : kind == 1 ? 1 + (double)(bits >> 57) * 0x1p-52
                : kind == 2 ? ldexp(bits & 1 ? -1 : 1, (int)(bits >> 55) - 256)
                            : at[j];
      }
      if (RUN_OP(y, sort, false, LT_ARG(x), LT_ARG(0), LT_ARG((bool)(descending != 0))))
        check_sorted_vector(x, descending, y);
    }
}

int main(void) {
  RUN_SCOPED(sort_orders_stably);
  RUN_SCOPED(sort_of_many_short_lines);
  RUN_SCOPED(sort_of_long_lines);
  RUN_SCOPED(sort_orders_nan_zeros_and_infinities);
  RUN_SCOPED(topk_returns_the_first_of_the_order);
  RUN_SCOPED(topk_of_long_lines);
  RUN_SCOPED(topk_of_ordered_lines);
  RUN_SCOPED(sort_of_expanded_dims);
  RUN_SCOPED(sort_of_long_lines_of_doubles);
  return check_end();
}
