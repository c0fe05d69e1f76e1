/* product_halves.h: sums of products of a few rows of float and a matrix of float16 or bfloat16,
 * which is read once and converted in registers; see lt_HalfLoops. product.c includes this file
 * where the instruction set converts float16.
 *
 * Each sum is added up in the same order whatever is computed beside it. */
#ifndef LT_CPU_PRODUCT_HALVES_H
#define LT_CPU_PRODUCT_HALVES_H

/* Rows of floats at once, and vectors or rows of halves beside several of them: the sums are in
 * registers. */
#define LT_HALF_ROWS 4
#if defined __AVX512F__
#define LT_HALF_SIDE 4
LT_LANES FV half_load(const bool brain, const uint16_t *x) {
  __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)x);
  if (brain) return (FV)_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16);
  return (FV)_mm512_cvtph_ps(v);
}
#else
#define LT_HALF_SIDE 2
LT_LANES FV half_load(const bool brain, const uint16_t *x) {
  __m128i v = _mm_loadu_si128((const __m128i *)(const void *)x);
  if (brain) return (FV)_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16);
  return (FV)_mm256_cvtph_ps(v);
}
#endif

/* Loads the first n elements, 0 < n < FV_N, then zeros. */
LT_LANES FV half_part(const bool brain, const uint16_t *x, int64_t n) {
  uint16_t room[FV_N] = {0};
  memcpy(room, x, (size_t)n * sizeof *x);
  return half_load(brain, room);
}

/* Computes the dot products of m rows of x and `rows` rows of b. These counts and `brain` are
 * constants where it is inlined. */
LT_LANES void half_dot_block(const bool brain, const int m, const int rows, int64_t k,
                             const float *x, int64_t x_row, const uint16_t *b, int64_t b_row,
                             float *sum, int64_t sum_row) {
  FV s[LT_HALF_ROWS][8];
  int64_t p = 0;
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < rows; j++) s[i][j] = (FV){0};
#define STEP(load_x, load_b)                                                                       \
  {                                                                                                \
    FV y[8];                                                                                       \
    UNROLL for (int j = 0; j < rows; j++) y[j] = load_b;                                           \
    UNROLL for (int i = 0; i < m; i++) {                                                           \
      FV f = load_x;                                                                               \
      UNROLL for (int j = 0; j < rows; j++) FV_ADD(s[i][j], f, y[j]);                              \
    }                                                                                              \
  }
  for (; p + FV_N <= k; p += FV_N)
    STEP(FV_LOAD(x + i * x_row + p), half_load(brain, b + j * b_row + p))
  if (p < k) STEP(FV_PART(x + i * x_row + p, k - p), half_part(brain, b + j * b_row + p, k - p))
#undef STEP
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < rows; j++) sum[i * sum_row + j] =
      total_f32(s[i][j]);
}

/* Computes `vectors` vectors, or with `part` the first n < FV_N elements, of m sums of rows of b,
 * times the elements of a row of x. */
LT_LANES void half_sum_block(const bool brain, const int m, const int vectors, const bool part,
                             int64_t n, int64_t k, const float *x, int64_t x_row, const uint16_t *b,
                             int64_t b_row, float *sum, int64_t sum_row) {
  FV s[LT_HALF_ROWS][8];
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < vectors; j++) s[i][j] = (FV){0};
  for (int64_t p = 0; p < k; p++, b += b_row) {
    FV y[8];
    UNROLL for (int j = 0; j < vectors; j++) y[j] =
        part ? half_part(brain, b, n) : half_load(brain, b + j * FV_N);
    UNROLL for (int i = 0; i < m; i++) {
      FV f = x[i * x_row + p] - (FV){0};
      UNROLL for (int j = 0; j < vectors; j++) FV_ADD(s[i][j], f, y[j]);
    }
  }
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < vectors; j++)
      memcpy(sum + i * sum_row + j * FV_N, &s[i][j], part ? (size_t)n * 4 : sizeof(FV));
}

/* Computes the sums of m rows of x, at most LT_HALF_ROWS and a constant. */
LT_LANES void half_dot_rows(const bool brain, const int m, int64_t n, int64_t k, const float *x,
                            int64_t x_row, const uint16_t *b, int64_t b_row, float *sum,
                            int64_t sum_row) {
  enum { LONE = 8 };
  const int side = m == 1 ? LONE : LT_HALF_SIDE;
  int64_t j = 0;
  for (; j + side <= n; j += side)
    half_dot_block(brain, m, side, k, x, x_row, b + j * b_row, b_row, sum + j, sum_row);
  for (; j < n; j++)
    half_dot_block(brain, m, 1, k, x, x_row, b + j * b_row, b_row, sum + j, sum_row);
}

LT_LANES void half_sum_rows(const bool brain, const int m, int64_t n, int64_t k, const float *x,
                            int64_t x_row, const uint16_t *b, int64_t b_row, float *sum,
                            int64_t sum_row) {
  enum { LONE = 8 };
  const int side = m == 1 ? LONE : LT_HALF_SIDE;
  int64_t j = 0;
  for (; j + side * FV_N <= n; j += side * FV_N)
    half_sum_block(brain, m, side, false, 0, k, x, x_row, b + j, b_row, sum + j, sum_row);
  for (; j + FV_N <= n; j += FV_N)
    half_sum_block(brain, m, 1, false, 0, k, x, x_row, b + j, b_row, sum + j, sum_row);
  if (j < n) half_sum_block(brain, m, 1, true, n - j, k, x, x_row, b + j, b_row, sum + j, sum_row);
}

/* The functions of lt_HalfLoops. */
#define HALF_LOOP(name, rows, brain)                                                               \
  static void name(int64_t m, int64_t n, int64_t k, const float *x, int64_t x_row, const void *b,  \
                   int64_t b_row, float *sum, int64_t sum_row) {                                   \
    for (; m >= 4; m -= 4, x += 4 * x_row, sum += 4 * sum_row)                                     \
      rows(brain, 4, n, k, x, x_row, b, b_row, sum, sum_row);                                      \
    if (m == 3) rows(brain, 3, n, k, x, x_row, b, b_row, sum, sum_row);                            \
    if (m == 2) rows(brain, 2, n, k, x, x_row, b, b_row, sum, sum_row);                            \
    if (m == 1) rows(brain, 1, n, k, x, x_row, b, b_row, sum, sum_row);                            \
  }
HALF_LOOP(dots_f16, half_dot_rows, false)
HALF_LOOP(sums_f16, half_sum_rows, false)
HALF_LOOP(dots_bf16, half_dot_rows, true)
HALF_LOOP(sums_bf16, half_sum_rows, true)
#undef HALF_LOOP

#endif
