/* test_scan.c: cumulative sums, products and maxima against slow references, over dtypes, layouts,
 * dims and numbers of rows; long rows, and sums of infinities. */
#include "tensors.h"

#include <float.h>

static void scans_run_along_any_dim(void) {
  for (int d = LT_bool; d <= (int)widest_float(); d++)
    for (int dim = 0; dim < 3; dim++)
      for (int layout = 0; layout < 3; layout++)
        for (int product = 0; product < 2; product++) {
          lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(3, 4, 70), 9), layout), *y[LT_MAX_OUT];
          if (!run_op(__FILE__, __LINE__, product ? LT_OP_cumprod : LT_OP_cumsum, false,
                      (lt_Arg[]){LT_ARG(x), LT_ARG(dim)}, 2, y))
            return;
          CHECK_INT(y[0]->dtype, lt_dtype_is_float(x->dtype) ? x->dtype : LT_int64);
          int64_t inner = dim == 2 ? 1 : dim == 1 ? 70 : 280, n = x->shape[dim];
          for (int64_t o = 0; o < x->numel / n; o++) {
            double a = product ? 1 : 0;
            uint64_t whole = (uint64_t)a;
            for (int64_t i = 0; i < n; i++) {
              int64_t at = o / inner * n * inner + i * inner + o % inner;
              if (product)
                a *= number(x, at), whole *= (uint64_t)(int64_t)number(x, at);
              else
                a += number(x, at), whole += (uint64_t)(int64_t)number(x, at);
              if (lt_dtype_is_float(x->dtype))
                CHECK_NEAR(number(y[0], at), a, tolerance_of(x->dtype) * fmax(1, fabs(a)));
              else
                CHECK(element(y[0], at).i == (int64_t)whole);
            }
          }
        }
}

/* Rows are processed four at a time, elements of each four at a time. */
static void scans_of_any_number_of_rows(void) {
  for (int d = next_dtype(LT_bfloat16); d <= LT_float64; d = next_dtype(d + 1))
    for (int64_t rows = 1; rows <= 9; rows++)
      for (int64_t n = 1; n <= 70; n += n < 10 ? 1 : 30) {
        lt_Tensor *x = noise((lt_Dtype)d, SHAPE(rows, n), 3), *y[LT_MAX_OUT], *z[LT_MAX_OUT];
        if (!RUN_OP(y, cumsum, false, LT_ARG(x), LT_ARG(1))) return;
        if (!RUN_OP(z, cumprod, false, LT_ARG(x), LT_ARG(1))) return;
        for (int64_t r = 0; r < rows; r++) {
          double sum = 0, product = 1;
          for (int64_t i = 0; i < n; i++) {
            sum += number(x, r * n + i);
            product *= number(x, r * n + i);
            CHECK_NEAR(number(y[0], r * n + i), sum,
                       tolerance_of((lt_Dtype)d) * fmax(1, fabs(sum)));
            CHECK_NEAR(number(z[0], r * n + i), product, tolerance_of((lt_Dtype)d));
          }
        }
      }
}

/* Devices divide long rows into pieces. */
static void long_scans_join_pieces(void) {
  enum { N = 30011 };
  lt_Tensor *whole = lt_scope_own(lt_empty(LT_int64, lt_cpu(), SHAPE(2, N))),
            *part = lt_scope_own(lt_empty(LT_float32, lt_cpu(), SHAPE(2, N))), *y[LT_MAX_OUT];
  int64_t *v = whole ? lt_tensor_data(whole) : NULL;
  float *f = part ? lt_tensor_data(part) : NULL;
  REQUIRE(v && f);
  for (int64_t i = 0; i < 2 * N; i++) v[i] = i * 7919 % N, f[i] = (float)(i % 8) / 8;
  REQUIRE(RUN_OP(y, cumsum, false, LT_ARG(whole), LT_ARG(1)));
  const int64_t *sums_ = lt_tensor_data(y[0]);
  for (int64_t i = 0, sum = 0; i < 2 * N; i++) {
    sum = i % N ? sum + v[i] : v[i];
    if (sums_[i] != sum) {
      CHECK_INT(sums_[i], sum);
      break;
    }
  }
  REQUIRE(RUN_OP(y, cumsum, false, LT_ARG(part), LT_ARG(1))); /* exact in float32 */
  CHECK_NEAR(number(y[0], N - 1), (N - 3) * 0.4375 + 0.375, 0);
  REQUIRE(RUN_OP(y, cummax, false, LT_ARG(whole), LT_ARG(1)));
  const int64_t *values = lt_tensor_data(y[0]), *indices = lt_tensor_data(y[1]);
  for (int64_t i = 0, best = 0; i < 2 * N; i++) {
    if (i % N == 0 || v[i] >= v[best]) best = i;
    if (values[i] != v[best] || indices[i] != best % N + 1) {
      CHECK_INT(values[i], v[best]);
      CHECK_INT(indices[i], best % N + 1);
      break;
    }
  }
}

/* Not finite sums of pieces: each result is that of the additions one after another. In place, too,
 * and on any number of threads. */
static void long_sums_of_infinities(void) {
  enum { N = 20000 };
  int threads = lt_num_threads();
  for (int n = 1; n <= 3; n++)
    for (int d = next_dtype(LT_float32); d <= LT_float64; d = next_dtype(d + 1))
      for (int kind = 0; kind < 3; kind++) {
        lt_Tensor *x = noise((lt_Dtype)d, SHAPE(N), 3), *y[LT_MAX_OUT];
        double largest = d == LT_float32 ? FLT_MAX : DBL_MAX, *sums = malloc(N * sizeof *sums);
        if (!x || !sums) {
          free(sums);
          return;
        }
        for (int64_t i = 0; kind && i < N; i++) {
          double v = kind == 1   ? (i == 5000    ? INFINITY
                                    : i == 15000 ? -INFINITY
                                                 : 1)
                     : i % 1024  ? 0
                     : i == 0    ? -largest
                     : i <= 2048 ? largest
                                 : 0;
          lt_scalar_store(lt_scalar_float(v), (lt_Dtype)d,
                          (char *)lt_tensor_data(x) + (size_t)i * lt_dtype_size((lt_Dtype)d));
        }
        double sum = 0;
        for (int64_t i = 0; i < N; i++) sums[i] = sum += number(x, i);
        lt_set_num_threads(n);
        for (int in_place = 0; in_place < 2; in_place++) {
          if (!RUN_OP(y, cumsum, in_place != 0, LT_ARG(x), LT_ARG(0))) break;
          for (int64_t i = 0; i < N; i++) {
            double v = number(y[0], i), tolerance = 1e-6 * fmax(1, fabs(sums[i]));
            bool same =
                isfinite(sums[i]) ? fabs(v - sums[i]) <= tolerance : check_close(v, sums[i], 0);
            if (same) continue;
            CHECK_NEAR(v, sums[i], tolerance);
            break;
          }
        }
        free(sums);
      }
  lt_set_num_threads(threads);
}

int main(void) {
  RUN_SCOPED(scans_run_along_any_dim);
  RUN_SCOPED(scans_of_any_number_of_rows);
  RUN_SCOPED(long_scans_join_pieces);
  RUN_SCOPED(long_sums_of_infinities);
  return check_end();
}
