/* product_tiles.h: products of matrices of bfloat16 by tile registers (tiles.h), in blocks of 32
 * rows and columns; see lt_TileLoops. product.c includes this file. */
#ifndef LT_CPU_PRODUCT_TILES_H
#define LT_CPU_PRODUCT_TILES_H

/* Copies a panel's pairs of columns with dense rows: pairs are side by side in memory. */
static void pack_dense_columns(int64_t k, int64_t n, const uint16_t *b, int64_t column,
                               uint32_t *to) {
  for (int64_t j = 0; j < n; j++) {
    const uint16_t *from = b + j * column;
    for (int64_t i = 0; i + 1 < k; i += 2) memcpy(to + i / 2 * EDGE + j, from + i, 4);
    if (k % 2) to[k / 2 * EDGE + j] = from[k - 1];
  }
}

/* The same in squares; n is EDGE, and k a multiple of 16. */
static void pack_squares(int64_t k, const uint16_t *b, int64_t column, uint32_t *to) {
  for (int64_t i = 0; i < k; i += 16)
    for (int64_t j = 0; j < EDGE; j += 8)
      lt_transpose_8(b + j * column + i, 2 * column, to + i / 2 * EDGE + j, PANEL_ROW);
}

static void tile_pack(int64_t k, int64_t n, const void *from, int64_t row, int64_t column,
                      void *panel) {
  const uint16_t *b = from;
  uint32_t *to = panel;
  if (n < EDGE || k % EDGE) memset(to, 0, (size_t)((k + EDGE - 1) / EDGE * EDGE / 2 * PANEL_ROW));
  if (column == 1) {
    for (int64_t i = 0; i < k; i += 2)
      pair_rows(b + i * row, i + 1 < k ? b + (i + 1) * row : NULL, n, to + i / 2 * EDGE);
  } else if (n == EDGE && k % 16 == 0) {
    pack_squares(k, b, column, to);
  } else {
    pack_dense_columns(k, n, b, column, to);
  }
}

/* Stores m x n sums as lt_TileLoops says. */
static void store_block(const lt_Panel *p, int64_t m, int64_t n, const float *sum, uint16_t *c) {
  float alpha = (float)p->alpha, beta = (float)p->beta;
  for (int64_t i = 0; i < m; i++, sum += EDGE, c += p->c_row)
    for (int64_t j = 0; j < n; j++) {
      lt_bfloat16 old = {c[j]};
      float v = alpha * sum[j];
      if (beta != 0) v += beta * lt_bfloat16_to_float(old);
      c[j] = lt_bfloat16_from_float(v).bits;
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

#endif
