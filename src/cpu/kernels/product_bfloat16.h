/* product_bfloat16.h: products of matrices of bfloat16 with panels of 32 columns, by tile registers
 * (tiles.h) or by vectors with dot products of pairs; see lt_BfloatLoops. product.c includes this
 * file. */
#ifndef LT_CPU_PRODUCT_BFLOAT16_H
#define LT_CPU_PRODUCT_BFLOAT16_H

#include "cpu/kernels/half_vectors.h"

/* Copies a panel's pairs of columns with dense rows: pairs are side by side in memory. */
static void pack_dense_columns(int64_t k, int64_t n, const uint16_t *b, int64_t column,
                               uint32_t *to) {
  for (int64_t j = 0; j < n; j++) {
    const uint16_t *from = b + j * column;
    for (int64_t i = 0; i + 1 < k; i += 2) memcpy(to + i / 2 * EDGE + j, from + i, 4);
    if (k % 2) to[k / 2 * EDGE + j] = from[k - 1];
  }
}

/* The same in squares of 8 columns and 16 rows, and what is left one by one. */
static void pack_columns(int64_t k, int64_t n, const uint16_t *b, int64_t column, uint32_t *to) {
  const int64_t rows = k / 16 * 16, columns = n / 8 * 8;
  for (int64_t i = 0; i < rows; i += 16)
    for (int64_t j = 0; j < columns; j += 8)
      lt_transpose_8(b + j * column + i, 2 * column, to + i / 2 * EDGE + j, PANEL_ROW);
  pack_dense_columns(k - rows, columns, b + rows, column, to + rows / 2 * EDGE);
  pack_dense_columns(k, n - columns, b + columns * column, column, to + columns);
}

static void pack_pairs(int64_t k, int64_t n, const void *from, int64_t row, int64_t column,
                       void *panel) {
  const uint16_t *b = from;
  uint32_t *to = panel;
  if (n < EDGE || k % EDGE) memset(to, 0, (size_t)((k + EDGE - 1) / EDGE * EDGE / 2 * PANEL_ROW));
  if (column == 1) {
    for (int64_t i = 0; i < k; i += 2)
      pair_rows(b + i * row, i + 1 < k ? b + (i + 1) * row : NULL, n, to + i / 2 * EDGE);
  } else {
    pack_columns(k, n, b, column, to);
  }
}

/* Stores m x n sums as lt_BfloatLoops says. */
static void store_block(const lt_Panel *p, int64_t m, int64_t n, const float *sum, uint16_t *c) {
  const __m512 alpha = _mm512_set1_ps((float)p->alpha.f), beta = _mm512_set1_ps((float)p->beta.f);
  for (int64_t i = 0; i < m; i++, sum += EDGE, c += p->c_row)
    for (int64_t j = 0; j < n; j += 16) {
      const __mmask16 part = (__mmask16)_bzhi_u32(0xffff, (unsigned)(n - j));
      __m512 v = _mm512_mul_ps(alpha, _mm512_load_ps(sum + j));
      if (p->beta.f != 0) {
        const __m512i old = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(part, c + j));
        v = _mm512_add_ps(v, _mm512_mul_ps(beta, _mm512_castsi512_ps(_mm512_slli_epi32(old, 16))));
      }
      const __m512i rounded = _mm512_srli_epi32(lt_bfloats(v), 16);
      if (n - j >= 16)
        _mm256_storeu_si256((__m256i *)(void *)(c + j), _mm512_cvtepi32_epi16(rounded));
      else
        _mm256_mask_storeu_epi16(c + j, part, _mm512_cvtepi32_epi16(rounded));
    }
}

TILES static void tile_rows(const lt_Panel *p, int64_t m, int64_t n, const void *from,
                            const void *panel, void *to, void *room) {
  const char *a = from;
  float sum[EDGE * EDGE] __attribute__((aligned(64)));
  int64_t steps = (p->k + EDGE - 1) / EDGE;
  size_t bytes = (size_t)(2 * p->k), padded = (size_t)(2 * steps * EDGE);
  open_tiles();
  for (int64_t i = 0; i < m; i += EDGE) {
    int64_t rows = m - i < EDGE ? m - i : EDGE, step = 2 * p->a_row;
    const char *x = a + i * step;
    if (rows < EDGE || p->k % EDGE) { /* whole tiles would exceed a */
      memset(room, 0, EDGE * padded);
      for (int64_t r = 0; r < rows; r++)
        memcpy((char *)room + (size_t)r * padded, x + r * step, bytes);
      x = room;
      step = (int64_t)padded;
    }
    tile_product(steps, x, step, panel, sum, false);
    store_block(p, rows, n, sum, (uint16_t *)to + i * p->c_row);
  }
  _tile_release();
}

/* ---- vectors --------------------------------------------------------------------------------- */

#define PAIRS __attribute__((target("avx512bf16")))
enum {
  DOT_ROWS = 12,    /* of a block, whose sums are in registers */
  SAME_LINES = 4096 /* bytes between rows that share lines of the first cache */
};

/* Adds the products of a pair of each row of a, of which `group` are every third row, and a row of
 * the panel. With `half`, the pairs are single elements. */
PAIRS LT_LANES void add_pairs(const int rows, const int vectors, const bool half,
                              const char *const *group, int64_t step, const char *b,
                              __m512 (*sum)[2]) {
  __m512bh y[2];
  UNROLL for (int j = 0; j < vectors; j++) y[j] = (__m512bh)_mm512_loadu_si512(b + 64 * j);
  UNROLL for (int i = 0; i < rows; i++) {
    int32_t pair = 0;
    memcpy(&pair, group[i / 3] + (i % 3) * step, half ? 2 : 4);
    __m512bh x = (__m512bh)_mm512_set1_epi32(pair);
    UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], x, y[j]);
  }
}

/* Computes `rows` rows and 16 * `vectors` columns of a @ b, of which rows are `step` bytes apart.
 * The counts are constants where it is inlined. */
PAIRS LT_LANES void dot_block(const int rows, const int vectors, int64_t k, const char *a,
                              int64_t step, const char *b, float *to) {
  __m512 sum[DOT_ROWS][2];
  const char *group[(DOT_ROWS + 2) / 3];
  UNROLL for (int i = 0; i < rows; i++) {
    if (i % 3 == 0) group[i / 3] = a + i * step;
    UNROLL for (int j = 0; j < vectors; j++) sum[i][j] = _mm512_setzero_ps();
  }
  for (; k > 1; k -= 2, b += PANEL_ROW) {
    add_pairs(rows, vectors, false, group, step, b, sum);
    UNROLL for (int g = 0; g < (rows + 2) / 3; g++) group[g] += 4;
    KEEP(step, b);
  }
  if (k) add_pairs(rows, vectors, true, group, step, b, sum);
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_store_ps(to + i * EDGE + 16 * j, sum[i][j]);
}

#define BLOCK(r)                                                                                   \
  PAIRS static void dot_block_##r(int64_t n, int64_t k, const char *a, int64_t step,               \
                                  const char *b, float *to) {                                      \
    if (n > 16)                                                                                    \
      dot_block(r, 2, k, a, step, b, to);                                                          \
    else                                                                                           \
      dot_block(r, 1, k, a, step, b, to);                                                          \
  }
BLOCK(1)
BLOCK(2)
BLOCK(3)
BLOCK(4)
BLOCK(5)
BLOCK(6)
BLOCK(7)
BLOCK(8)
BLOCK(9)
BLOCK(10)
BLOCK(11)
BLOCK(12)
#undef BLOCK

/* Divides the rows into blocks of nearly equal heights. */
static void dot_rows(const lt_Panel *p, int64_t m, int64_t n, const void *from, const void *panel,
                     void *to, void *room) {
  typedef void (*Block)(int64_t, int64_t, const char *, int64_t, const char *, float *);
  static const Block blocks[] = {dot_block_1, dot_block_2,  dot_block_3,  dot_block_4,
                                 dot_block_5, dot_block_6,  dot_block_7,  dot_block_8,
                                 dot_block_9, dot_block_10, dot_block_11, dot_block_12};
  float sum[DOT_ROWS * EDGE] __attribute__((aligned(64)));
  int64_t count = (m + DOT_ROWS - 1) / DOT_ROWS, bytes = 2 * p->k;
  bool copies = 2 * p->a_row % SAME_LINES == 0 && p->k > EDGE;
  for (int64_t t = 0; t < count; t++) {
    int64_t first = m * t / count, rows = m * (t + 1) / count - first, step = 2 * p->a_row;
    const char *a = (const char *)from + first * step;
    for (int64_t i = 0; copies && i < rows; i++)
      memcpy((char *)room + i * (bytes + 64), a + i * step, (size_t)bytes);
    blocks[rows - 1](n, p->k, copies ? room : a, copies ? bytes + 64 : step, panel, sum);
    store_block(p, rows, n, sum, (uint16_t *)to + first * p->c_row);
  }
}

#endif
