/* distance_body.h: the loops of distance.h for one float type. distance.c defines T, its suffix F,
 * the vectors V with V_N elements, V_LOAD, V_ALL, their magnitude V_ABS, V_MOST, the larger of two
 * magnitudes or NaN, and ROOT. Each result is summed in one order, so every instruction set gives
 * the same bits. */
#define FN(name) LT_PASTE(name, F)
#define COLUMNS  (LT_DISTANCE_BYTES / (int64_t)sizeof(T))
#define VECTORS  (LT_DISTANCE_BYTES / LT_VECTOR_SIZE)

#define SUM(a, e)     ((a) + V_ABS(e))
#define SQUARES(a, e) ((a) + (e) * (e))
#define LARGEST(a, e) V_MOST(a, V_ABS(e))

/* LOOP(name, step, join): `step` joins an accumulator and a difference, `join` two accumulators. */
#define LOOP(name, step, join)                                                                     \
  LT_LANES void FN(name##_of)(int rows, const T *x, int64_t x_row, const T *y, T *out,             \
                              int64_t out_row, int64_t depth, int64_t width, bool first) {         \
    V sum[ROWS][VECTORS] = {{{0}}};                                                                \
    for (int64_t k = 0; k < depth; k++, y += COLUMNS) UNROLL for (int r = 0; r < rows; r++) {      \
        V e = V_ALL(x[r * x_row + k]);                                                             \
        UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] =                                       \
            step(sum[r][v], e - V_LOAD(y + v * V_N));                                              \
      }                                                                                            \
    for (int r = 0; r < rows; r++, out += out_row) {                                               \
      T old[COLUMNS] = {0};                                                                        \
      if (!first) memcpy(old, out, (size_t)width * sizeof *out);                                   \
      UNROLL for (int v = 0; v < VECTORS; v++) {                                                   \
        V all = join(V_LOAD(old + v * V_N), sum[r][v]);                                            \
        memcpy(old + v * V_N, &all, sizeof all);                                                   \
      }                                                                                            \
      memcpy(out, old, (size_t)width * sizeof *out);                                               \
    }                                                                                              \
  }                                                                                                \
  static void FN(name)(const void *x, int64_t x_row, const void *y, void *out, int64_t out_row,    \
                       int64_t rows, int64_t depth, int64_t width, bool first) {                   \
    const T *from = x;                                                                             \
    T *to = out;                                                                                   \
    int64_t i = 0;                                                                                 \
    for (; i + ROWS <= rows; i += ROWS) FN(name##_of)                                              \
    (ROWS, from + i * x_row, x_row, y, to + i * out_row, out_row, depth, width, first);            \
    for (; i < rows; i++) FN(name##_of)                                                            \
    (1, from + i * x_row, x_row, y, to + i * out_row, out_row, depth, width, first);               \
  }

#define PLUS(a, b) ((a) + (b))
LOOP(sum, SUM, PLUS)
LOOP(squares, SQUARES, PLUS)
LOOP(largest, LARGEST, V_MOST)

static void FN(roots)(void *out, int64_t out_row, int64_t rows, int64_t width) {
  for (T *to = out; rows > 0; rows--, to += out_row)
#pragma omp simd
    for (int64_t j = 0; j < width; j++) to[j] = ROOT(to[j]);
}

/* Adds the differences of row i and all rows, times their weights, to `width` <= COLUMNS elements
 * of a row of zeros. */
static inline __attribute__((always_inline)) void FN(pull_columns)(const T *x, int64_t i, int64_t n,
                                                                   int64_t d, const T *weight,
                                                                   int64_t width, T *restrict dx) {
  T own[COLUMNS], sum[COLUMNS];
  for (int64_t k = 0; k < width; k++) own[k] = x[i * d + k];
  for (int64_t k = 0; k < width; k++) sum[k] = 0;
  for (int64_t j = 0; j < n; j++)
#pragma omp simd
    for (int64_t k = 0; k < width; k++) sum[k] += weight[j] * (own[k] - x[j * d + k]);
  for (int64_t k = 0; k < width; k++) dx[i * d + k] = sum[k];
}
static void FN(pull)(const void *rows, const void *gradient, const void *distance, void *result,
                     int64_t n, int64_t d, int64_t from, int64_t to, void *scratch) {
  const T *x = rows, *g = gradient, *length = distance;
  T *dx = result, *weight = scratch;
  for (int64_t i = from; i < to && !lt_stopped(); i++) {
    for (int64_t j = 0; j < n; j++) {
      int64_t pair = j < i ? lt_pair_at(n, j, i) : lt_pair_at(n, i, j);
      weight[j] = j == i || length[pair] == 0 ? 0 : g[pair] / length[pair];
    }
    int64_t k = 0;
    for (; k + COLUMNS <= d; k += COLUMNS)
      FN(pull_columns)(x + k, i, n, d, weight, COLUMNS, dx + k);
    if (k < d) FN(pull_columns)(x + k, i, n, d, weight, d - k, dx + k);
  }
}

#undef FN
#undef COLUMNS
#undef VECTORS
#undef SUM
#undef SQUARES
#undef LARGEST
#undef LOOP
#undef PLUS
