/* norm.metal: the kernels of layer norm: x^ = (x - mean) rstd, y = x^ weight + bias.
 *
 * The gradients of weight and bias are sums over rows. The rows are divided into pieces by their
 * number and size alone, and a second kernel adds the sums of the pieces in order: the same bits on
 * every run.
 */
#include "rows.metal.h"

#include "norm.h"

#define DTYPE      K0 /* of all tensors except g and those of float32: mean, rstd and part */
#define G_DTYPE    K1
#define HAS_WEIGHT K2
#define HAS_BIAS   K3

kernel void norm_rows(device const char *x [[buffer(0)]], device const char *weight [[buffer(1)]],
                      device const char *bias [[buffer(2)]], device char *y [[buffer(3)]],
                      device float *means [[buffer(4)]], device float *rstds [[buffer(5)]],
                      constant lt_MpsNorm &k [[buffer(6)]], LT_GRID) {
  threadgroup float scratch[LT_SIMD];
  const Place place = LT_PLACE;
  const Team team = LT_TEAM(index, scratch);
  for (int64_t first = first_row(place); first < k.rows; first += row_step(place)) {
    int64_t row = first + row_of_team(place), n = row < k.rows ? k.n : 0, at = row * k.n;
    float sum = 0, squares = 0;
    for (int64_t i = team.member; i < n; i += TEAM) sum += load_float(x, DTYPE, at + i);
    float mean = team_all(sum, 0.0f, Sum(), team) / (float)k.n;
    for (int64_t i = team.member; i < n; i += TEAM) {
      float d = load_float(x, DTYPE, at + i) - mean;
      squares += d * d;
    }
    squares = team_all(squares, 0.0f, Sum(), team);
    float rstd = 1 / precise::sqrt(squares / (float)k.n + k.eps);
    for (int64_t i = team.member; i < n; i += TEAM) {
      float v = (load_float(x, DTYPE, at + i) - mean) * rstd;
      if (HAS_WEIGHT != 0) v *= load_float(weight, DTYPE, i);
      if (HAS_BIAS != 0) v += load_float(bias, DTYPE, i);
      store_float(y, DTYPE, at + i, v);
    }
    if (team.member == 0 && row < k.rows) {
      means[row] = mean;
      rstds[row] = rstd;
    }
  }
}

/* ---- backward: with h = g weight: dx = rstd (h - mean(h) - x^ mean(h x^)) -------------------- */

kernel void
norm_backward_rows(device const char *g [[buffer(0)]], device const char *x [[buffer(1)]],
                   device const char *weight [[buffer(2)]], device const float *means [[buffer(3)]],
                   device const float *rstds [[buffer(4)]], device char *dx [[buffer(5)]],
                   constant lt_MpsNorm &k [[buffer(6)]], LT_GRID) {
  threadgroup float scratch[LT_SIMD];
  const Place place = LT_PLACE;
  const Team team = LT_TEAM(index, scratch);
  for (int64_t first = first_row(place); first < k.rows; first += row_step(place)) {
    int64_t row = first + row_of_team(place), n = row < k.rows ? k.n : 0, at = row * k.n;
    float mean = 0, rstd = 0, sum = 0, product = 0;
    if (row < k.rows) {
      mean = means[row];
      rstd = rstds[row];
    }
    for (int64_t i = team.member; i < n; i += TEAM) {
      float h = load_float(g, G_DTYPE, at + i);
      if (HAS_WEIGHT != 0) h *= load_float(weight, DTYPE, i);
      sum += h;
      product += h * (load_float(x, DTYPE, at + i) - mean);
    }
    float a = team_all(sum, 0.0f, Sum(), team) / (float)k.n;
    float b = team_all(product, 0.0f, Sum(), team) * rstd * rstd / (float)k.n;
    for (int64_t i = team.member; i < n; i += TEAM) {
      float h = load_float(g, G_DTYPE, at + i);
      if (HAS_WEIGHT != 0) h *= load_float(weight, DTYPE, i);
      float v = rstd * (h - a - (load_float(x, DTYPE, at + i) - mean) * b);
      store_float(dx, DTYPE, at + i, v);
    }
  }
}

/* Computes the sums of one piece for weight and bias, one column to a thread. */
kernel void norm_pieces(device const char *g [[buffer(0)]], device const char *x [[buffer(1)]],
                        device const float *means [[buffer(2)]],
                        device const float *rstds [[buffer(3)]], device float *part [[buffer(4)]],
                        constant lt_MpsNorm &k [[buffer(5)]], LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH_ALONE(place, i, k.pieces * k.n) {
    int64_t j, p = divide(i, k.n, &j);
    float dweight = 0, dbias = 0;
    for (int64_t row = k.rows * p / k.pieces; row < k.rows * (p + 1) / k.pieces; row++) {
      float v = load_float(g, G_DTYPE, row * k.n + j);
      dweight += v * ((load_float(x, DTYPE, row * k.n + j) - means[row]) * rstds[row]);
      dbias += v;
    }
    part[2 * p * k.n + j] = dweight;
    part[(2 * p + 1) * k.n + j] = dbias;
  }
}

/* Adds the pieces. */
kernel void norm_join(device const float *part [[buffer(0)]], device char *dweight [[buffer(1)]],
                      device char *dbias [[buffer(2)]], constant lt_MpsNorm &k [[buffer(3)]],
                      LT_GRID) {
  const Place place = LT_PLACE;
  LT_EACH_ALONE(place, j, k.n) {
    float of_weight = 0, of_bias = 0;
    for (int64_t p = 0; p < k.pieces; p++) {
      of_weight += part[2 * p * k.n + j];
      of_bias += part[(2 * p + 1) * k.n + j];
    }
    store_float(dweight, DTYPE, j, of_weight);
    store_float(dbias, DTYPE, j, of_bias);
  }
}
