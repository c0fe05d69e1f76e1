/* test_rows.c: softmax, layer norm, nll loss, cross entropy and a step of Adam against their
 * formulas in double, over dtypes, layouts and lengths that do and do not fill vectors. */
#include "maths_float32.h"
#include "tensors.h"

#include <stdlib.h>

/* Returns the allowed difference from the formula: inputs are rounded already, results once
 * more. */
static double allowed_error(lt_Dtype d, double scale) { return tolerance_of(d) * fmax(1, scale); }

static void check_softmax(lt_Tensor *x, int dim, bool log_, lt_Tensor *y) {
  int64_t n = x->shape[dim], inner = 1;
  for (int d = dim + 1; d < x->ndim; d++) inner *= x->shape[d];
  for (int64_t o = 0; o < x->numel / n; o++) {
    double largest = -INFINITY, sum = 0;
    int64_t base = o / inner * n * inner + o % inner;
    for (int64_t i = 0; i < n; i++) largest = fmax(largest, number(x, base + i * inner));
    for (int64_t i = 0; i < n; i++) sum += exp(number(x, base + i * inner) - largest);
    for (int64_t i = 0; i < n; i++) {
      double v = number(x, base + i * inner) - largest,
             expected = log_ ? v - log(sum) : exp(v) / sum;
      CHECK_NEAR(number(y, base + i * inner), expected, allowed_error(x->dtype, fabs(expected)));
    }
  }
}

static void softmax_sums_to_one(void) {
  static const int64_t shapes[][3] = {{3, 4, 5},   {2, 1, 17},  {2, 33, 130},
                                      {1, 300, 2}, {4, 2, 1},   {40, 5, 10},
                                      {1, 3, 256}, {1, 3, 257}, {1, 2, 1041}};
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int dim = 0; dim < 3; dim++)
        for (int log_ = 0; log_ < 2; log_++) {
          lt_Tensor *x = laid_out(noise((lt_Dtype)d, 3, shapes[s], (unsigned)s + 1),
                                  (int)(s + (size_t)dim) % 3),
                    *y[LT_MAX_OUT];
          if (!run_op(__FILE__, __LINE__, log_ ? LT_OP_log_softmax : LT_OP_softmax, false,
                      (lt_Arg[]){LT_ARG(x), LT_ARG(dim)}, 2, y))
            return;
          CHECK_INT(y[0]->dtype, d);
          check_softmax(x, dim, log_, y[0]);
        }
}

/* The exponential of numbers that are not above 0 is that of all numbers. */
static void exponentials_below_are_the_same(void) {
  for (uint32_t bits = 0x80000000u; bits < 0xff800001u; bits += bits < 0x90000000u ? 65537 : 997) {
    float x = lt_float(bits);
    CHECK_INT(lt_bits(lt_exp_belowf(x)), lt_bits(lt_expf(x, false)));
  }
  CHECK_NEAR(lt_exp_belowf(-INFINITY), 0, 0);
  CHECK_NEAR(lt_exp_belowf(0), 1, 0);
  CHECK(isnan(lt_exp_belowf(NAN)));
}

static void softmax_of_extremes(void) {
  lt_Tensor *x = from_list(
      LT_float32, (double[]){1000, 1001, -INFINITY, 0, -INFINITY, -INFINITY, INFINITY, 1, NAN, 1},
      SHAPE(5, 2));
  lt_Tensor *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, softmax, false, LT_ARG(x), LT_ARG(1)));
  CHECK_TENSOR(y[0], 1e-6, L(5, 2), 0.2689414213699951, 0.7310585786300049, 0, 1, NAN, NAN, NAN,
               NAN, NAN, NAN);
  REQUIRE(RUN_OP(y, log_softmax, false, LT_ARG(x), LT_ARG(1)));
  CHECK_TENSOR(y[0], 1e-4, L(5, 2), -1.3132616875182228, -0.3132616875182228, -INFINITY, 0, NAN,
               NAN, NAN, NAN, NAN, NAN);
  lt_Tensor *t = V(int64, 1, 2);
  REQUIRE(RUN_OP(y, softmax, false, LT_ARG(t), LT_ARG(0), lt_arg_dtype(widest_float())));
  CHECK_TENSOR(y[0], has_dtype(LT_float64) ? 1e-15 : 1e-7, L(2), 0.2689414213699951,
               0.7310585786300049);
  lt_Tensor *none = noise(LT_float32, SHAPE(2, 0), 1);
  REQUIRE(RUN_OP(y, softmax, false, LT_ARG(none), LT_ARG(1)));
  CHECK_INT(y[0]->numel, 0);
}

/* Compares with the formula that uses the Jacobian: dx_i = sum_j g_j dy_j/dx_i. */
static void softmax_gradients(void) {
  for (int d = next_dtype(LT_float32); d <= LT_float64; d = next_dtype(d + 1))
    for (int dim = 0; dim < 2; dim++)
      for (int log_ = 0; log_ < 2; log_++)
        for (int layout = 0; layout < 3; layout++) {
          int64_t n = 37, other = 5, shape[2] = {dim ? other : n, dim ? n : other};
          lt_Tensor *x = noise((lt_Dtype)d, 2, shape, 1),
                    *g = laid_out(noise((lt_Dtype)d, 2, shape, 2), layout);
          lt_Tensor *y[LT_MAX_OUT], *s[LT_MAX_OUT], *dx[LT_MAX_OUT];
          lt_OpId op = log_ ? LT_OP_log_softmax : LT_OP_softmax;
          lt_OpId back = log_ ? LT_OP__log_softmax_backward : LT_OP__softmax_backward;
          if (!run_op(__FILE__, __LINE__, op, false, (lt_Arg[]){LT_ARG(x), LT_ARG(dim)}, 2, y))
            return;
          if (!RUN_OP(s, softmax, false, LT_ARG(x), LT_ARG(dim))) return;
          if (!run_op(__FILE__, __LINE__, back, false,
                      (lt_Arg[]){LT_ARG(g), LT_ARG(laid_out(y[0], 2 - layout)), LT_ARG(dim)}, 3,
                      dx))
            return;
          for (int64_t o = 0; o < other; o++)
            for (int64_t i = 0; i < n; i++) {
              double expected = 0;
              int64_t at = dim ? o * n + i : i * other + o;
              for (int64_t j = 0; j < n; j++) {
                int64_t b = dim ? o * n + j : j * other + o;
                double si = number(s[0], at), sj = number(s[0], b);
                expected += number(g, b) * (log_ ? (i == j) - si : sj * ((i == j) - si));
              }
              CHECK_NEAR(number(dx[0], at), expected, 20 * tolerance_of((lt_Dtype)d));
            }
        }
}

/* ---- layer norm ------------------------------------------------------------------------------ */

static void layer_norm_and_its_gradients(void) {
  static const int64_t lengths[] = {1, 7, 64, 130};
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (size_t s = 0; s < 4; s++)
      for (int affine = 0; affine < 4; affine++) {
        int64_t n = lengths[s], rows = 40;
        double eps = 1e-5, tolerance = 40 * tolerance_of((lt_Dtype)d);
        lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(rows / 2, 2, n), 1), (int)s % 3),
                  *y[LT_MAX_OUT], *dx[LT_MAX_OUT];
        lt_Tensor *w = affine & 1 ? noise((lt_Dtype)d, SHAPE(n), 2) : NULL,
                  *b = affine & 2 ? noise((lt_Dtype)d, SHAPE(n), 3) : NULL;
        lt_Tensor *g = laid_out(noise((lt_Dtype)d, SHAPE(rows / 2, 2, n), 4), affine % 3);
        lt_Arg wa = w ? LT_ARG(w) : LT_NIL, ba = b ? LT_ARG(b) : LT_NIL;
        if (!RUN_OP(y, _layer_norm, false, LT_ARG(x), LT_ARG(1), wa, ba, LT_ARG(eps))) return;
        if (!RUN_OP(dx, _layer_norm_backward, false, LT_ARG(g), LT_ARG(x), LT_ARG(1), LT_ARG(y[1]),
                    LT_ARG(y[2]), wa))
          return;
        double dw[130] = {0}, db[130] = {0};
        for (int64_t r = 0; r < rows; r++) {
          double mean = 0, var = 0, h = 0, hx = 0;
          for (int64_t i = 0; i < n; i++) mean += number(x, r * n + i) / (double)n;
          for (int64_t i = 0; i < n; i++) var += pow(number(x, r * n + i) - mean, 2) / (double)n;
          double rstd = 1 / sqrt(var + eps);
          CHECK_NEAR(number(y[1], r), mean, tolerance);
          CHECK_NEAR(number(y[2], r), rstd, tolerance * rstd);
          for (int64_t i = 0; i < n; i++) {
            double hat = (number(x, r * n + i) - mean) * rstd, wi = w ? number(w, i) : 1,
                   gi = number(g, r * n + i);
            CHECK_NEAR(number(y[0], r * n + i), hat * wi + (b ? number(b, i) : 0), tolerance);
            h += gi * wi / (double)n;
            hx += gi * wi * hat / (double)n;
            dw[i] += gi * hat;
            db[i] += gi;
          }
          for (int64_t i = 0; i < n; i++) {
            double hat = (number(x, r * n + i) - mean) * rstd, wi = w ? number(w, i) : 1;
            double expected = rstd * (number(g, r * n + i) * wi - h - hat * hx);
            CHECK_NEAR(number(dx[0], r * n + i), expected, tolerance * fmax(1, rstd));
          }
        }
        for (int64_t i = 0; i < n; i++) {
          CHECK_NEAR(number(dx[1], i), dw[i], tolerance * 4);
          CHECK_NEAR(number(dx[2], i), db[i], tolerance * 4);
        }
      }
}

static void layer_norm_of_large_means_is_accurate(void) {
  lt_Tensor *x = noise(LT_float32, SHAPE(1, 256), 1), *y[LT_MAX_OUT];
  double mean = 0, var = 0;
  for (int i = 0; i < 256; i++) ((float *)lt_tensor_data(x))[i] += 1000;
  for (int i = 0; i < 256; i++) mean += number(x, i) / 256;
  for (int i = 0; i < 256; i++) var += pow(number(x, i) - mean, 2) / 256;
  REQUIRE(RUN_OP(y, _layer_norm, false, LT_ARG(x), LT_ARG(1), LT_NIL, LT_NIL, LT_ARG(0.0)));
  for (int i = 0; i < 256; i++)
    CHECK_NEAR(number(y[0], i), (number(x, i) - mean) / sqrt(var), 4e-4);
}

/* Ops that are split over rows give the same bits for any number of threads. */
static void threads_make_no_difference(void) {
  int was = lt_num_threads();
  lt_Tensor *x = noise(LT_float32, SHAPE(700, 333), 1), *g = noise(LT_float32, SHAPE(700, 333), 2);
  lt_Tensor *one[3][LT_MAX_OUT], *many[3][LT_MAX_OUT];
  for (int pass = 0; pass < 2; pass++) {
    lt_Tensor *(*y)[LT_MAX_OUT] = pass ? many : one;
    lt_set_num_threads(pass ? 3 : 1);
    REQUIRE(RUN_OP(y[0], _layer_norm, false, LT_ARG(x), LT_ARG(1), LT_NIL, LT_NIL, LT_ARG(1e-5)));
    REQUIRE(RUN_OP(y[1], _layer_norm_backward, false, LT_ARG(g), LT_ARG(x), LT_ARG(1),
                   LT_ARG(y[0][1]), LT_ARG(y[0][2])));
    REQUIRE(RUN_OP(y[2], softmax, false, LT_ARG(x), LT_ARG(1)));
  }
  lt_set_num_threads(was);
  for (int k = 0; k < 3; k++)
    CHECK(memcmp(lt_tensor_data(one[k][0]), lt_tensor_data(many[k][0]), 700 * 333 * 4) == 0);
  CHECK(memcmp(lt_tensor_data(one[1][1]), lt_tensor_data(many[1][1]), 333 * 4) == 0);
  CHECK(memcmp(lt_tensor_data(one[1][2]), lt_tensor_data(many[1][2]), 333 * 4) == 0);
}

/* ---- nll loss -------------------------------------------------------------------------------- */

static void nll_loss_by_class(void) {
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (int weighted = 0; weighted < 2; weighted++)
      for (int way = 0; way < 3; way++) {
        static const char *const ways[] = {"mean", "sum", "none"};
        int64_t n = 9, classes = 4, ignore = weighted ? 3 : -100;
        lt_Tensor *x = laid_out(noise((lt_Dtype)d, SHAPE(n, classes), 1), way),
                  *target = random_indices(classes, SHAPE(n), 2);
        lt_Tensor *w = V(float32, 0.5, 2, 7, 0.25), *y[LT_MAX_OUT], *dx[LT_MAX_OUT];
        w = lt_scope_own(lt_as_contiguous(w, (lt_Dtype)d));
        lt_Arg wa = weighted ? LT_ARG(w) : LT_NIL;
        if (!RUN_OP(y, _nll_loss, false, LT_ARG(x), LT_ARG(target), wa, S(ways[way]),
                    LT_ARG(ignore)))
          return;
        double sum = 0, total = 0, each[9];
        for (int i = 0; i < n; i++) {
          int64_t t = (int64_t)number(target, i);
          double wt = t == ignore ? 0 : weighted ? number(w, t - 1) : 1;
          each[i] = -wt * number(x, i * classes + t - 1);
          sum += each[i];
          total += wt;
        }
        CHECK_NEAR(number(y[1], 0), total, allowed_error((lt_Dtype)d, total));
        for (int i = 0; way == 2 && i < n; i++)
          CHECK_NEAR(number(y[0], i), each[i], allowed_error((lt_Dtype)d, 2));
        if (way < 2)
          CHECK_NEAR(number(y[0], 0), way ? sum : sum / total, allowed_error((lt_Dtype)d, 4));
        lt_Tensor *g = way == 2 ? noise((lt_Dtype)d, SHAPE(n), 5) : noise((lt_Dtype)d, 0, NULL, 5);
        if (!RUN_OP(dx, _nll_loss_backward, false, LT_ARG(g), LT_ARG(x), LT_ARG(target), wa,
                    S(ways[way]), LT_ARG(ignore), LT_ARG(y[1])))
          return;
        for (int i = 0; i < n; i++)
          for (int k = 0; k < classes; k++) {
            bool hit = number(target, i) == k + 1 && k + 1 != ignore;
            double wt = weighted ? number(w, k) : 1,
                   gi = number(g, way == 2 ? i : 0) / (way == 0 ? total : 1);
            CHECK_NEAR(number(dx[0], i * classes + k), hit ? -gi * wt : 0,
                       allowed_error((lt_Dtype)d, 4));
          }
      }
  lt_Tensor *x = noise(LT_float32, SHAPE(2, 3), 1), *y[LT_MAX_OUT];
  CHECK_FAILS("expected a class from 1 to 3 for argument 'target', got 0 at index {2}", _nll_loss,
              false, LT_ARG(x), LT_ARG(V(int64, 1, 0)), LT_NIL, S("mean"), LT_ARG(-100));
  CHECK_CONTAINS(lt_error(), "\nhint: classes count from 1");
  CHECK_FAILS("for argument 'target', got 4 at index {1}", _nll_loss, false, LT_ARG(x),
              LT_ARG(V(int64, 4, 1)), LT_NIL, S("mean"), LT_ARG(-100));
  REQUIRE(
      RUN_OP(y, _nll_loss, false, LT_ARG(x), LT_ARG(V(int64, 0, 0)), LT_NIL, S("mean"), LT_ARG(0)));
  CHECK(isnan(number(y[0], 0))); /* all are ignored: 0 / 0 */
}

/* ---- cross entropy --------------------------------------------------------------------------- */

/* The loss of row i of x and, in p, the softmax of the row, by their formulas. */
static double entropy_of_row(lt_Tensor *x, int64_t i, int64_t classes, int64_t target, double *p) {
  double largest = -INFINITY, sum = 0;
  for (int64_t k = 0; k < classes; k++) largest = fmax(largest, number(x, i * classes + k));
  for (int64_t k = 0; k < classes; k++) {
    p[k] = exp(number(x, i * classes + k) - largest);
    sum += p[k];
  }
  for (int64_t k = 0; k < classes; k++) p[k] /= sum;
  return largest + log(sum) - number(x, i * classes + target - 1);
}

/* Compares loss and gradient of n rows with the formulas. */
static void check_cross_entropy(lt_Dtype d, int64_t n, int64_t classes, int way, bool weighted) {
  static const char *const ways[] = {"mean", "sum", "none"};
  int64_t ignore = weighted ? 1 : -100;
  lt_Tensor *x = laid_out(noise(d, SHAPE(n, classes), 1), way), *y[LT_MAX_OUT], *dx[LT_MAX_OUT],
            *target = random_indices(classes, SHAPE(n), 2), *w = noise(d, SHAPE(classes), 3);
  lt_Arg wa = weighted ? LT_ARG(w) : LT_NIL;
  lt_Tensor *g = way == 2 ? noise(d, SHAPE(n), 5) : noise(d, 0, NULL, 5);
  if (!RUN_OP(y, _cross_entropy, false, LT_ARG(x), LT_ARG(target), wa, S(ways[way]),
              LT_ARG(ignore)))
    return;
  if (!RUN_OP(dx, _cross_entropy_backward, false, LT_ARG(g), LT_ARG(x), LT_ARG(target), wa,
              S(ways[way]), LT_ARG(ignore), LT_ARG(y[1]), LT_ARG(y[2])))
    return;
  double *p = calloc((size_t)classes, sizeof *p), sum = 0, total = 0, size = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t t = (int64_t)number(target, i);
    total += t == ignore ? 0 : weighted ? number(w, t - 1) : 1;
  }
  CHECK_NEAR(number(y[2], 0), total, allowed_error(d, 4));
  for (int64_t i = 0; i < n; i++) {
    int64_t t = (int64_t)number(target, i);
    double wt = t == ignore ? 0
                : weighted  ? number(w, t - 1)
                            : 1,
           loss = wt * entropy_of_row(x, i, classes, t, p);
    sum += loss;
    size += fabs(loss);
    if (way == 2) CHECK_NEAR(number(y[0], i), loss, allowed_error(d, 8));
    double gi = t == ignore ? 0 : wt * number(g, way == 2 ? i : 0) / (way == 0 ? total : 1);
    for (int64_t k = 0; k < classes; k++)
      CHECK_NEAR(number(dx[0], i * classes + k), gi * (p[k] - (k + 1 == t)),
                 4 * allowed_error(d, fabs(gi)));
  }
  double scale = way ? 1 : 1 / fabs(total);
  if (way < 2) CHECK_NEAR(number(y[0], 0), way ? sum : sum / total, allowed_error(d, size * scale));
  free(p);
}

static void cross_entropy_and_its_gradient(void) {
  static const int64_t shapes[][2] = {{1, 1},   {9, 2},    {64, 10},  {33, 15},
                                      {5, 16},  {7, 65},   {5, 256},  {5, 257},
                                      {3, 513}, {2, 1024}, {2, 1041}, {300, 100}};
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int way = 0; way < 3; way++)
        for (int weighted = 0; weighted < 2; weighted++)
          check_cross_entropy((lt_Dtype)d, shapes[s][0], shapes[s][1], way, weighted);
  lt_Tensor *x = from_list(LT_float32, (double[]){1000, -1000, INFINITY, 0, NAN, 0}, SHAPE(3, 2)),
            *y[LT_MAX_OUT];
  REQUIRE(RUN_OP(y, _cross_entropy, false, LT_ARG(x), LT_ARG(V(int64, 2, 1, 2)), LT_NIL, S("none"),
                 LT_ARG(-100)));
  CHECK_TENSOR(y[0], 0, L(3), 2000, NAN, NAN);
  CHECK_FAILS("for argument 'target', got 3 at index {1}", _cross_entropy, false, LT_ARG(x),
              LT_ARG(V(int64, 3, 1, 1)), LT_NIL, S("mean"), LT_ARG(-100));
  REQUIRE(RUN_OP(y, _cross_entropy, false, LT_ARG(noise(LT_float32, SHAPE(0, 3), 1)),
                 LT_ARG(noise(LT_int64, SHAPE(0), 1)), LT_NIL, S("mean"), LT_ARG(-100)));
  CHECK(isnan(number(y[0], 0)));
}

/* ---- a step of Adam -------------------------------------------------------------------------- */

static void adam_steps_by_the_formula(void) {
  for (int d = next_dtype(LT_float16); d <= LT_float64; d = next_dtype(d + 1))
    for (int way = 0; way < 8; way++) {
      bool decoupled = way & 1, maximize = way & 2, odd = way & 4;
      int64_t n = 53;
      double lr = 0.01, b1 = 0.9, b2 = 0.99, eps = 1e-3, decay = 0.1, p[53], m[53], v[53];
      lt_Tensor *x = noise((lt_Dtype)d, SHAPE(n), 1), *g = noise((lt_Dtype)d, SHAPE(n), 2),
                *y[LT_MAX_OUT];
      lt_Tensor *ma = noise((lt_Dtype)d, SHAPE(n), 3), *va = noise((lt_Dtype)d, SHAPE(n), 4);
      if (!RUN_OP(y, abs, true, LT_ARG(va))) return;
      if (odd) x = laid_out(x, 2), g = laid_out(g, 2), ma = laid_out(ma, 2), va = laid_out(va, 2);
      for (int i = 0; i < n; i++) p[i] = number(x, i), m[i] = number(ma, i), v[i] = number(va, i);
      for (int t = 3; t < 5; t++) {
        if (!RUN_OP(y, _adam_step, false, TL(x), TL(g), TL(ma), TL(va), LT_ARG((double)t),
                    LT_ARG(lr), LT_ARG(b1), LT_ARG(b2), LT_ARG(eps), LT_ARG(decay),
                    LT_ARG(decoupled), LT_ARG(maximize)))
          return;
        for (int i = 0; i < n; i++) {
          double gi = maximize ? -number(g, i) : number(g, i);
          if (decoupled)
            p[i] -= lr * decay * p[i];
          else
            gi += decay * p[i];
          m[i] = b1 * m[i] + (1 - b1) * gi;
          v[i] = b2 * v[i] + (1 - b2) * gi * gi;
          p[i] -= lr * (m[i] / (1 - pow(b1, t))) / (sqrt(v[i] / (1 - pow(b2, t))) + eps);
        }
      }
      for (int i = 0; i < n; i++) {
        CHECK_NEAR(number(x, i), p[i], 4 * tolerance_of((lt_Dtype)d));
        CHECK_NEAR(number(ma, i), m[i], 2 * tolerance_of((lt_Dtype)d));
        CHECK_NEAR(number(va, i), v[i], 2 * tolerance_of((lt_Dtype)d));
      }
    }
}

int main(void) {
  RUN_SCOPED(softmax_sums_to_one);
  RUN_SCOPED(exponentials_below_are_the_same);
  RUN_SCOPED(softmax_of_extremes);
  RUN_SCOPED(softmax_gradients);
  RUN_SCOPED(layer_norm_and_its_gradients);
  RUN_SCOPED(layer_norm_of_large_means_is_accurate);
  RUN_SCOPED(threads_make_no_difference);
  RUN_SCOPED(nll_loss_by_class);
  if (lt_op_supported(LT_OP__cross_entropy, test_device().type, LT_float32))
    RUN_SCOPED(cross_entropy_and_its_gradient);
  RUN_SCOPED(adam_steps_by_the_formula);
  return check_end();
}
