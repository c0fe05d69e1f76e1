/* rows_body.h: the loops of rows.h for one float type. rows.c defines T, its suffix F, M(f), the
 * vectors V with V_N elements, V_LOAD, V_ALL and V_PEAK, the lanes LANES, LANES_N, LOAD,
 * LANES_ALL and LANES_JOIN (lanes.h), and includes this file.
 *
 * Loops that call a math function run over whole groups of GROUP elements, the last one padded, so
 * that every element is computed by the same vector variant at any index. */
#define FN(name)     LT_PASTE(name, F)
#define STATIC(name) static LT_FLAT name
#define LT_FLAT      __attribute__((unused))

/* ---- sums over a row ------------------------------------------------------------------------- */

#define PLUS(x, y) ((x) + (y))

/* Sums an expression over i: XV is the expression for a vector at i, X1 for one element. */
#define SUM_ROW(result, n, XV, X1)                                                                 \
  do {                                                                                             \
    LANES s0 = LANES_ALL(0), s1 = s0, s2 = s0, s3 = s0;                                            \
    int64_t i = 0;                                                                                 \
    T rest = 0, all_;                                                                              \
    for (; i + 4 * LANES_N <= n; i += 4 * LANES_N) {                                               \
      EACH_PART(ADD_PART, s0, XV, i)                                                               \
      EACH_PART(ADD_PART, s1, XV, i + LANES_N)                                                     \
      EACH_PART(ADD_PART, s2, XV, i + 2 * LANES_N)                                                 \
      EACH_PART(ADD_PART, s3, XV, i + 3 * LANES_N)                                                 \
    }                                                                                              \
    for (; i + LANES_N <= n; i += LANES_N) {                                                       \
      EACH_PART(ADD_PART, s0, XV, i)                                                               \
    }                                                                                              \
    for (; i < n; i++) rest += X1(i);                                                              \
    LT_JOIN_FOUR(all_, PLUS)                                                                       \
    result = all_ + rest;                                                                          \
  } while (0)
#define ADD_PART(k, s, XV, i) s.part[k] += XV((i) + (k)*V_N);

STATIC(T) FN(sum)(const T *x, int64_t n) {
  T s;
#define XV(i) V_LOAD(x + (i))
#define X1(i) x[i]
  SUM_ROW(s, n, XV, X1);
#undef XV
#undef X1
  return s;
}

STATIC(T) FN(dot)(const T *x, const T *y, int64_t n) {
  T s;
#define XV(i) (V_LOAD(x + (i)) * V_LOAD(y + (i)))
#define X1(i) (x[i] * y[i])
  SUM_ROW(s, n, XV, X1);
#undef XV
#undef X1
  return s;
}

STATIC(T) FN(squares)(const T *x, T mean, int64_t n) {
  T s;
  V m = V_ALL(mean);
#define XV(i) ((V_LOAD(x + (i)) - m) * (V_LOAD(x + (i)) - m))
#define X1(i) ((x[i] - mean) * (x[i] - mean))
  SUM_ROW(s, n, XV, X1);
#undef XV
#undef X1
  return s;
}

/* ---- exponentials ---------------------------------------------------------------------------- */

/* Returns the largest of x[0..n), n >= 1, which may be any of them if one is NaN. */
STATIC(T) FN(peak)(const T *x, int64_t n) {
  T a = x[0];
  int64_t i = 0;
  if (n >= LANES_N) LT_FOLD_LANES(a, i, x, n, LOAD(x), LOAD, V_PEAK)
  for (; i < n; i++) a = x[i] > a ? x[i] : a;
  return a;
}

/* Compute x[i] = e^x[i] in place for whole groups of i < n, x[i] <= 0 or NaN and any x[i]: by
 * vectors only. The compiler would unroll a loop over the rest of a row, and call for some elements
 * the scalar function, whose last bits can differ. */
STATIC(__attribute__((noinline)) void) FN(exps_of_groups)(T *x, int64_t n) {
  int64_t whole = n / GROUP * GROUP;
#pragma omp simd
  for (int64_t i = 0; i < whole; i++) x[i] = M(exp_below)(x[i]);
}
STATIC(__attribute__((noinline)) void) FN(any_exps_of_groups)(T *x, int64_t n) {
  int64_t whole = n / GROUP * GROUP;
#pragma omp simd
  for (int64_t i = 0; i < whole; i++) x[i] = M(exp)(x[i]);
}

/* Computes y[i] = e^(x[i] - m), x[i] <= m or NaN, for i < n; x and y may be the same. */
STATIC(void) FN(exps)(const T *x, T m, T *y, int64_t n) {
  int64_t whole = n / GROUP * GROUP;
#pragma omp simd
  for (int64_t i = 0; i < whole; i++) y[i] = M(exp_below)(x[i] - m);
  if (whole == n) return;
  T last[GROUP] = {0};
  for (int64_t i = whole; i < n; i++) last[i - whole] = x[i] - m;
  FN(exps_of_groups)(last, a_group());
  for (int64_t i = whole; i < n; i++) y[i] = last[i - whole];
}

/* Computes y[i] = e^(x[i] - m[i]) likewise, with a number for each element. */
STATIC(void) FN(exps_each)(const T *x, const T *m, T *y, int64_t n) {
  int64_t whole = n / GROUP * GROUP;
#pragma omp simd
  for (int64_t i = 0; i < whole; i++) y[i] = M(exp_below)(x[i] - m[i]);
  if (whole == n) return;
  T last[GROUP] = {0};
  for (int64_t i = whole; i < n; i++) last[i - whole] = x[i] - m[i];
  FN(exps_of_groups)(last, a_group());
  for (int64_t i = whole; i < n; i++) y[i] = last[i - whole];
}

/* Returns the sum of e^(x - m). */
STATIC(T) FN(sum_exps)(const T *x, T m, int64_t n) {
  T part[TERMS], s = 0;
  for (int64_t i = 0; i < n && !lt_stopped_at(i); i += TERMS) {
    int64_t w = n - i < TERMS ? n - i : TERMS;
    FN(exps)(x + i, m, part, w);
    s += FN(sum)(part, w);
  }
  return s;
}

/* Replaces x[i] by its logarithm for i < n; x has room for whole groups, which are set to 1. */
STATIC(void) FN(logs)(T *x, int64_t n) {
  int64_t whole = (n + GROUP - 1) / GROUP * GROUP;
  for (int64_t i = n; i < whole; i++) x[i] = 1;
#pragma omp simd
  for (int64_t i = 0; i < whole; i++) x[i] = M(log)(x[i]);
}

STATIC(void) FN(scale)(T *y, T factor, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] *= factor;
}

/* Computes peak[r], the largest element of row r, and log_sum[r] = log(sum(e^(x - peak[r]))) of
 * rows of n <= FEW elements, rows n <= SOME; log_sum has room for whole groups. Exponentials are
 * computed for all rows together, which fills vectors. If y, sets y = x - peak[r]. */
STATIC(void) FN(log_sums_of_few)(const T *x, int64_t rows, int64_t n, T *y, T *peak, T *log_sum) {
  T e[SOME];
  T *less = y ? y : e;
  for (int64_t r = 0; r < rows; r++) {
    T m = peak[r] = FN(peak)(x + r * n, n);
    for (int64_t j = r * n; j < (r + 1) * n; j++) less[j] = x[j] - m;
  }
  FN(exps)(less, 0, e, rows * n);
  for (int64_t r = 0; r < rows; r++) log_sum[r] = FN(sum)(e + r * n, n);
  FN(logs)(log_sum, rows);
}

/* Returns the number of rows of n elements that are processed together. */
STATIC(int64_t) FN(rows_together)(int64_t n) { return n > FEW ? 1 : SOME / n; }

static void FN(log_sums)(const T *x, int64_t rows, int64_t n, T *peak, T *log_sum) {
  T logs[SOME];
  for (int64_t r = 0, m; r < rows; r += m) {
    m = rows - r < FN(rows_together)(n) ? rows - r : FN(rows_together)(n);
    if (n <= FEW) {
      FN(log_sums_of_few)(x + r * n, m, n, NULL, peak + r, logs);
    } else {
      peak[r] = FN(peak)(x + r * n, n);
      logs[0] = FN(sum_exps)(x + r * n, peak[r], n);
      FN(logs)(logs, 1);
    }
    memcpy(log_sum + r, logs, (size_t)m * sizeof *logs);
  }
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* Processes rows of n <= FEW elements, rows n <= SOME. */
STATIC(void) FN(softmax_of_few)(const T *x, T *y, int64_t rows, int64_t n) {
  T e[SOME];
  for (int64_t r = 0; r < rows; r++) {
    T m = FN(peak)(x + r * n, n);
    for (int64_t j = r * n; j < (r + 1) * n; j++) y[j] = x[j] - m;
  }
  FN(exps)(y, 0, e, rows * n);
  for (int64_t r = 0; r < rows; r++) {
    T scale = 1 / FN(sum)(e + r * n, n);
    for (int64_t j = r * n; j < (r + 1) * n; j++) y[j] = e[j] * scale;
  }
}

STATIC(void) FN(softmax_of_row)(const T *x, T *y, int64_t n) {
  T m = FN(peak)(x, n);
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i; i = end)
    FN(exps)(x + i, m, y + i, end - i);
  if (lt_stopped()) return;
  T scale = 1 / FN(sum)(y, n);
  for (int64_t i = 0, end; (end = lt_next_chunk(i, n)) > i; i = end)
    FN(scale)(y + i, scale, end - i);
}

STATIC(void) FN(log_softmax_of_few)(const T *x, T *y, int64_t rows, int64_t n) {
  T peak[SOME], log_sum[SOME];
  FN(log_sums_of_few)(x, rows, n, y, peak, log_sum);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = r * n; j < (r + 1) * n; j++) y[j] -= log_sum[r];
}

STATIC(void) FN(log_softmax_of_row)(const T *x, T *y, int64_t n) {
  T m, log_sum;
  FN(log_sums)(x, 1, n, &m, &log_sum);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) - log_sum;
}

static void FN(softmax)(const T *x, T *y, int64_t rows, int64_t n, bool log) {
  for (int64_t r = 0, m; r < rows; r += m, x += m * n, y += m * n) {
    m = rows - r < FN(rows_together)(n) ? rows - r : FN(rows_together)(n);
    if (n > FEW)
      (log ? FN(log_softmax_of_row) : FN(softmax_of_row))(x, y, n);
    else
      (log ? FN(log_softmax_of_few) : FN(softmax_of_few))(x, y, m, n);
  }
}

STATIC(void) FN(softmax_backward_of_row)(const T *g, const T *y, T *dx, int64_t n) {
  T s = FN(dot)(g, y, n);
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = y[i] * (g[i] - s);
}

/* Computes e[i] = e^x[i] for i < n, any x. */
STATIC(void) FN(exps_of_all)(const T *x, T *e, int64_t n) {
  int64_t whole = n / GROUP * GROUP;
#pragma omp simd
  for (int64_t i = 0; i < whole; i++) e[i] = M(exp)(x[i]);
  if (whole == n) return;
  T last[GROUP] = {0};
  for (int64_t i = whole; i < n; i++) last[i - whole] = x[i];
  FN(any_exps_of_groups)(last, a_group());
  for (int64_t i = whole; i < n; i++) e[i] = last[i - whole];
}

/* Processes rows of n elements, a part of a row at a time if n > SOME. */
STATIC(void) FN(log_softmax_backward)(const T *g, const T *y, T *dx, int64_t rows, int64_t n) {
  T e[SOME];
  int64_t together = n > SOME ? 1 : SOME / n;
  for (int64_t r = 0, m; r < rows; r += m, g += m * n, y += m * n, dx += m * n) {
    m = rows - r < together ? rows - r : together;
    if (m > 1 || n <= SOME) FN(exps_of_all)(y, e, m * n);
    for (int64_t k = 0; k < m; k++) {
      const T *gk = g + k * n;
      T s = FN(sum)(gk, n), *to = dx + k * n;
      if (n <= SOME) {
        for (int64_t j = 0; j < n; j++) to[j] = gk[j] - e[k * n + j] * s;
        continue;
      }
      for (int64_t i = 0; i < n; i += SOME) {
        int64_t w = n - i < SOME ? n - i : SOME;
        FN(exps_of_all)(y + i, e, w);
        for (int64_t j = 0; j < w; j++) to[i + j] = gk[i + j] - e[j] * s;
      }
    }
  }
}

static void FN(softmax_backward)(const T *g, const T *y, T *dx, int64_t rows, int64_t n, bool log) {
  if (log) {
    FN(log_softmax_backward)(g, y, dx, rows, n);
    return;
  }
  for (int64_t r = 0; r < rows; r++)
    FN(softmax_backward_of_row)(g + r * n, y + r * n, dx + r * n, n);
}

/* ---- cross entropy: the gradient of log_sum + peak - x[target] ------------------------------- */

static void FN(cross_entropy_backward)(const T *x, const T *peak, const T *log_sum, const T *scale,
                                       int64_t rows, int64_t n, T *dx) {
  int64_t together = n > SOME ? 1 : SOME / n;
  for (int64_t r = 0, m; r < rows; r += m, x += m * n, dx += m * n) {
    m = rows - r < together ? rows - r : together;
    for (int64_t i = 0; i < m * n; i += SOME) { /* one part unless n > SOME */
      int64_t w = m * n - i < SOME ? m * n - i : SOME;
      for (int64_t k = 0; k < m; k++)
        for (int64_t j = i + k * n, end = m > 1 ? j + n : i + w; j < end; j++)
          dx[j] = (x[j] - peak[r + k]) - log_sum[r + k];
      FN(exps)(dx + i, 0, dx + i, w);
      for (int64_t k = 0; k < m; k++) FN(scale)(dx + i + k * n, scale[r + k], m > 1 ? n : w);
    }
  }
}

/* ---- softmax along columns ------------------------------------------------------------------- */

/* Computes the largest element of each column, as `peak` does. */
STATIC(void) FN(peaks)(const T *x, int64_t n, int64_t stride, int64_t width, T *m) {
  for (int64_t j = 0; j < width; j++) m[j] = x[j];
  for (int64_t i = 1; i < n; i++) {
    const T *r = x + i * stride;
    for (int64_t j = 0; j < width; j++) m[j] = r[j] > m[j] ? r[j] : m[j];
  }
}

static void FN(log_sums_columns)(const T *x, int64_t n, int64_t stride, int64_t width, T *peak,
                                 T *log_sum) {
  T m[LT_FOLD_WIDTH], s[LT_FOLD_WIDTH] = {0}, e[LT_FOLD_WIDTH];
  FN(peaks)(x, n, stride, width, m);
  for (int64_t i = 0; i < n; i++) {
    FN(exps_each)(x + i * stride, m, e, width);
    for (int64_t j = 0; j < width; j++) s[j] += e[j];
  }
  FN(logs)(s, width);
  memcpy(peak, m, (size_t)width * sizeof *peak);
  memcpy(log_sum, s, (size_t)width * sizeof *log_sum);
}

static void FN(cross_entropy_backward_columns)(const T *x, const T *peak, const T *log_sum,
                                               const T *scale, int64_t n, int64_t stride,
                                               int64_t width, T *dx) {
  T less[LT_FOLD_WIDTH];
  for (int64_t i = 0; i < n; i++, x += stride, dx += stride) {
    for (int64_t j = 0; j < width; j++) less[j] = x[j] - peak[j];
    FN(exps_each)(less, log_sum, less, width);
    for (int64_t j = 0; j < width; j++) dx[j] = less[j] * scale[j];
  }
}

static void FN(softmax_columns)(const T *x, T *y, int64_t n, int64_t stride, int64_t width,
                                bool log) {
  T m[LT_FOLD_WIDTH], s[LT_FOLD_WIDTH], e[LT_FOLD_WIDTH];
  FN(peaks)(x, n, stride, width, m);
  for (int64_t j = 0; j < width; j++) s[j] = 0;
  for (int64_t i = 0; i < n; i++) {
    T *to = log ? e : y + i * stride;
    FN(exps_each)(x + i * stride, m, to, width);
    for (int64_t j = 0; j < width; j++) s[j] += to[j];
  }
  if (log)
    FN(logs)(s, width);
  else
    for (int64_t j = 0; j < width; j++) s[j] = 1 / s[j];
  for (int64_t i = 0; i < n; i++) {
    const T *from = x + i * stride;
    T *to = y + i * stride;
    if (log)
      for (int64_t j = 0; j < width; j++) to[j] = (from[j] - m[j]) - s[j];
    else
      for (int64_t j = 0; j < width; j++) to[j] *= s[j];
  }
}

static void FN(softmax_backward_columns)(const T *g, const T *y, T *dx, int64_t n, int64_t stride,
                                         int64_t width, bool log) {
  T s[LT_FOLD_WIDTH] = {0}, e[LT_FOLD_WIDTH];
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < width; j++)
      s[j] += log ? g[i * stride + j] : g[i * stride + j] * y[i * stride + j];
  for (int64_t i = 0; i < n; i++) {
    const T *gi = g + i * stride, *yi = y + i * stride;
    T *to = dx + i * stride;
    if (log) {
      FN(exps_of_all)(yi, e, width);
      for (int64_t j = 0; j < width; j++) to[j] = gi[j] - e[j] * s[j];
    } else {
      for (int64_t j = 0; j < width; j++) to[j] = yi[j] * (gi[j] - s[j]);
    }
  }
}

/* ---- layer norm: x^ = (x - mean) rstd, y = x^ w + b ------------------------------------------ */

static void FN(layer_norm)(const T *x, const T *w, const T *b, T eps, int64_t n, T *y, T *mean,
                           T *rstd) {
  T m = FN(sum)(x, n) / (T)n, r = 1 / M(sqrt)(FN(squares)(x, m, n) / (T)n + eps);
  *mean = m;
  *rstd = r;
  if (w && b) {
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r * w[i] + b[i];
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r;
  if (w)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] *= w[i];
  if (b)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) y[i] += b[i];
}

/* With h = g w: dx = rstd (h - mean(h) - x^ mean(h x^)), dw += g x^, db += g. */
static void FN(layer_norm_backward)(const T *g, const T *x, const T *w, T mean, T rstd, int64_t n,
                                    T *dx, T *dw, T *db) {
  if (dx) {
    T h, hx;
    V m = V_ALL(mean);
    if (w) {
      h = FN(dot)(g, w, n);
#define XV(i) (V_LOAD(g + (i)) * V_LOAD(w + (i)) * (V_LOAD(x + (i)) - m))
#define X1(i) (g[i] * w[i] * (x[i] - mean))
      SUM_ROW(hx, n, XV, X1);
#undef XV
#undef X1
    } else {
      h = FN(sum)(g, n);
#define XV(i) (V_LOAD(g + (i)) * (V_LOAD(x + (i)) - m))
#define X1(i) (g[i] * (x[i] - mean))
      SUM_ROW(hx, n, XV, X1);
#undef XV
#undef X1
    }
    T a = h / (T)n, b = hx * rstd * rstd / (T)n;
    if (w) {
#pragma omp simd
      for (int64_t i = 0; i < n; i++) dx[i] = rstd * (g[i] * w[i] - a - (x[i] - mean) * b);
    } else {
#pragma omp simd
      for (int64_t i = 0; i < n; i++) dx[i] = rstd * (g[i] - a - (x[i] - mean) * b);
    }
  }
  if (dw)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) dw[i] += g[i] * ((x[i] - mean) * rstd);
  if (db)
#pragma omp simd
    for (int64_t i = 0; i < n; i++) db[i] += g[i];
}

/* ---- batch norm and convolution -------------------------------------------------------------- */

static void FN(moments)(const T *x, int64_t n, T *mean, T *squares) {
  *mean = FN(sum)(x, n) / (T)n;
  *squares = FN(squares)(x, *mean, n);
}

static void FN(norm_sums)(const T *g, const T *x, T mean, int64_t n, T *sum, T *product) {
  V m = V_ALL(mean);
  *sum = FN(sum)(g, n);
#define XV(i) (V_LOAD(g + (i)) * (V_LOAD(x + (i)) - m))
#define X1(i) (g[i] * (x[i] - mean))
  SUM_ROW(*product, n, XV, X1);
#undef XV
#undef X1
}

static void FN(affine)(const T *x, T mean, T a, T b, int64_t n, T *y) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = a * (x[i] - mean) + b;
}

static void FN(affine_columns)(const T *x, const T *mean, const T *a, const T *b, int64_t n,
                               int64_t stride, int64_t width, T *y) {
  for (int64_t i = 0; i < n; i++, x += stride, y += stride)
#pragma omp simd
    for (int64_t j = 0; j < width; j++) y[j] = a[j] * (x[j] - mean[j]) + b[j];
}

static void FN(norm_gradient)(const T *g, const T *x, T mean, T a, T b, T c, int64_t n, T *dx) {
#pragma omp simd
  for (int64_t i = 0; i < n; i++) dx[i] = a * g[i] + (b * (x[i] - mean) + c);
}

static void FN(weighted)(const T *const *row, const T *weight, int64_t count, T bias, int64_t n,
                         T *y) {
  int64_t j = 0;
  for (; j + 2 * V_N <= n; j += 2 * V_N) {
    V s0 = V_ALL(bias), s1 = s0;
    for (int64_t t = 0; t < count; t++) {
      V w = V_ALL(weight[t]);
      s0 += w * V_LOAD(row[t] + j);
      s1 += w * V_LOAD(row[t] + j + V_N);
    }
    memcpy(y + j, &s0, sizeof s0);
    memcpy(y + j + V_N, &s1, sizeof s1);
  }
  for (; j + V_N <= n; j += V_N) {
    V s = V_ALL(bias);
    for (int64_t t = 0; t < count; t++) s += V_ALL(weight[t]) * V_LOAD(row[t] + j);
    memcpy(y + j, &s, sizeof s);
  }
  for (; j < n; j++) {
    T s = bias;
    for (int64_t t = 0; t < count; t++) s += weight[t] * row[t][j];
    y[j] = s;
  }
}

#undef SUM_ROW
#undef ADD_PART
#undef PLUS
#undef FN
#undef STATIC
#undef LT_FLAT
