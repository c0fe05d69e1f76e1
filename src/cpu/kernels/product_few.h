/* product_few.h: sums of products of a few rows of float and a matrix of float16, bfloat16 or
 * float, which is read once and converted in registers; see lt_FewLoops. product.c includes this
 * file where the instruction set converts float16.
 *
 * Each sum is added up in the same order whatever is computed beside it. */
#ifndef LT_CPU_PRODUCT_FEW_H
#define LT_CPU_PRODUCT_FEW_H

/* Rows of floats at once. LT_FEW_SIDE: vectors or rows of the matrix at once beside several rows.
 * The sums are in registers. */
#define LT_FEW_ROWS 4

/* The dtypes of the matrix. */
typedef enum Element { FLOAT16, BFLOAT16, FLOAT32 } Element;
#define SIZE_OF(kind) ((kind) == FLOAT32 ? 4 : 2)

#if defined __AVX512F__
#define LT_FEW_SIDE 4
LT_LANES float few_total(FV v) { return _mm512_reduce_add_ps((__m512)v); }
#else
#define LT_FEW_SIDE 2
LT_LANES float few_total(FV v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128((__m256)v), _mm256_extractf128_ps((__m256)v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
#endif

LT_LANES FV few_load(const Element kind, const char *x) {
  const void *from = x;
  return kind == FLOAT32    ? FV_LOAD(from)
         : kind == BFLOAT16 ? FV_OF_BFLOAT16(from)
                            : FV_OF_HALF(from);
}

/* Loads the first n elements, 0 < n < FV_N, then zeros. */
LT_LANES FV few_part(const Element kind, const char *x, int64_t n) {
  char room[4 * FV_N] = {0};
  memcpy(room, x, (size_t)(n * SIZE_OF(kind)));
  return few_load(kind, room);
}

/* Computes the dot products of m rows of x and `rows` rows of b. These counts and `kind` are
 * constants where it is inlined. */
LT_LANES void few_dot_block(const Element kind, const int m, const int rows, int64_t k,
                            const float *x, int64_t x_row, const char *b, int64_t b_row, float *sum,
                            int64_t sum_row) {
  FV s[LT_FEW_ROWS][8];
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
    STEP(FV_LOAD(x + i * x_row + p), few_load(kind, b + (j * b_row + p) * SIZE_OF(kind)))
  if (p < k)
    STEP(FV_PART(x + i * x_row + p, k - p),
         few_part(kind, b + (j * b_row + p) * SIZE_OF(kind), k - p))
#undef STEP
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < rows; j++) sum[i * sum_row + j] =
      few_total(s[i][j]);
}

/* Computes `vectors` vectors, or with `part` the first n < FV_N elements, of m sums of rows of b,
 * times the elements of a row of x. */
LT_LANES void few_sum_block(const Element kind, const int m, const int vectors, const bool part,
                            int64_t n, int64_t k, const float *x, int64_t x_row, const char *b,
                            int64_t b_row, float *sum, int64_t sum_row) {
  FV s[LT_FEW_ROWS][8];
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < vectors; j++) s[i][j] = (FV){0};
  for (int64_t p = 0; p < k; p++, b += b_row * SIZE_OF(kind)) {
    FV y[8];
    UNROLL for (int j = 0; j < vectors; j++) y[j] =
        part ? few_part(kind, b, n) : few_load(kind, b + j * FV_N * SIZE_OF(kind));
    UNROLL for (int i = 0; i < m; i++) {
      FV f = x[i * x_row + p] - (FV){0};
      UNROLL for (int j = 0; j < vectors; j++) FV_ADD(s[i][j], f, y[j]);
    }
  }
  UNROLL for (int i = 0; i < m; i++) UNROLL for (int j = 0; j < vectors; j++)
      memcpy(sum + i * sum_row + j * FV_N, &s[i][j], part ? (size_t)n * 4 : sizeof(FV));
}

/* Computes the sums of m rows of x, at most LT_FEW_ROWS and a constant. */
LT_LANES void few_dot_rows(const Element kind, const int m, int64_t n, int64_t k, const float *x,
                           int64_t x_row, const char *b, int64_t b_row, float *sum,
                           int64_t sum_row) {
  enum { LONE = 8 };
  const int side = m == 1 ? LONE : LT_FEW_SIDE;
  int64_t j = 0;
  for (; j + side <= n; j += side)
    few_dot_block(kind, m, side, k, x, x_row, b + j * b_row * SIZE_OF(kind), b_row, sum + j,
                  sum_row);
  for (; j < n; j++)
    few_dot_block(kind, m, 1, k, x, x_row, b + j * b_row * SIZE_OF(kind), b_row, sum + j, sum_row);
}

LT_LANES void few_sum_rows(const Element kind, const int m, int64_t n, int64_t k, const float *x,
                           int64_t x_row, const char *b, int64_t b_row, float *sum,
                           int64_t sum_row) {
  enum { LONE = 8 };
  const int side = m == 1 ? LONE : LT_FEW_SIDE;
  int64_t j = 0;
  for (; j + side * FV_N <= n; j += side * FV_N)
    few_sum_block(kind, m, side, false, 0, k, x, x_row, b + j * SIZE_OF(kind), b_row, sum + j,
                  sum_row);
  for (; j + FV_N <= n; j += FV_N)
    few_sum_block(kind, m, 1, false, 0, k, x, x_row, b + j * SIZE_OF(kind), b_row, sum + j,
                  sum_row);
  if (j < n)
    few_sum_block(kind, m, 1, true, n - j, k, x, x_row, b + j * SIZE_OF(kind), b_row, sum + j,
                  sum_row);
}

/* The functions of lt_FewLoops. */
#define FEW_LOOP(name, rows, kind)                                                                 \
  static void name(int64_t m, int64_t n, int64_t k, const float *x, int64_t x_row, const void *b,  \
                   int64_t b_row, float *sum, int64_t sum_row) {                                   \
    for (; m >= 4; m -= 4, x += 4 * x_row, sum += 4 * sum_row)                                     \
      rows(kind, 4, n, k, x, x_row, b, b_row, sum, sum_row);                                       \
    if (m == 3) rows(kind, 3, n, k, x, x_row, b, b_row, sum, sum_row);                             \
    if (m == 2) rows(kind, 2, n, k, x, x_row, b, b_row, sum, sum_row);                             \
    if (m == 1) rows(kind, 1, n, k, x, x_row, b, b_row, sum, sum_row);                             \
  }
FEW_LOOP(few_dots_f16, few_dot_rows, FLOAT16)
FEW_LOOP(few_sums_f16, few_sum_rows, FLOAT16)
FEW_LOOP(few_dots_bf16, few_dot_rows, BFLOAT16)
FEW_LOOP(few_sums_bf16, few_sum_rows, BFLOAT16)
FEW_LOOP(few_dots_f32, few_dot_rows, FLOAT32)
#undef FEW_LOOP

#endif
