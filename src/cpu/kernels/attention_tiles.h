/* attention_tiles.h: attention of bfloat16 by tile registers (tiles.h). attention.c includes this
 * file after the loops of float32, whose panels and steps it shares: only the two products of
 * add_keys differ. */
#ifndef LT_CPU_ATTENTION_TILES_H
#define LT_CPU_ATTENTION_TILES_H

typedef struct TileForward {
  Forward_f32 f;
  char *q, *k, *p;  /* panels of pairs of queries; padded keys; a panel of pairs of probabilities */
  char *v, *values; /* pairs of the rows of value; the transpose of value */
  const char *keys; /* the tile's keys: those of the matrix, or k */
  int64_t key_row;  /* bytes */
} TileForward;

static size_t tiles_layout(const lt_Head *h, void *memory, TileForward *t) {
  size_t at = forward_layout_f32(h, memory, &t->f);
  char *bytes = memory;
#define PLACE(name, n)                                                                             \
  t->name = bytes ? bytes + at : NULL;                                                             \
  at += (size_t)(n);
  PLACE(q, 2 * TILE * h->size)
  PLACE(k, 2 * TILE * h->size)
  PLACE(p, TILE / 2 * PANEL_ROW)
  PLACE(v, 2 * TILE * h->value_size)
  PLACE(values, 2 * TILE * h->value_size)
#undef PLACE
  return at;
}

static size_t tiles_bytes(const lt_Head *h) {
  TileForward t;
  return tiles_layout(h, NULL, &t);
}

/* Transposes pairs: `rows` rows of `columns`, both multiples of 8, to dense rows. */
static void transpose_pairs(int64_t rows, int64_t columns, const char *from, char *to) {
  for (int64_t j = 0; j < columns; j += 8)
    for (int64_t i = 0; i < rows; i += 8)
      lt_transpose_8(from + 4 * (i * columns + j), 4 * columns, to + 4 * (j * rows + i), 4 * rows);
}

/* Returns the address of a row with dense columns. */
static const char *row_of(const lt_HeadMatrix *m, int64_t row) {
  return (const char *)m->data + 2 * row * m->row;
}

/* Copies rows from .. from + n - 1, and zeros in rows up to TILE. */
static void copy_rows(const lt_HeadMatrix *m, int64_t from, int64_t n, int64_t columns, char *to) {
  size_t bytes = (size_t)(2 * columns);
  for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * bytes, row_of(m, from + i), bytes);
  memset(to + (size_t)n * bytes, 0, (size_t)(TILE - n) * bytes);
}

/* Prepares n keys from `key` on. */
static void load_keys(const lt_Head *h, TileForward *t, int64_t key, int64_t n) {
  t->keys = row_of(&h->k, key);
  t->key_row = 2 * h->k.row;
  if (n % EDGE) {
    copy_rows(&h->k, key, n, h->size, t->k);
    t->keys = t->k;
    t->key_row = 2 * h->size;
  }
  for (int64_t i = 0; i < n; i += 2)
    pair_rows(row_of(&h->v, key + i), i + 1 < n ? row_of(&h->v, key + i + 1) : NULL, h->value_size,
              t->v + 2 * i * h->value_size);
  int64_t pairs = (n + 1) / 2;
  memset(t->v + 4 * pairs * h->value_size, 0, (size_t)(4 * (TILE / 2 - pairs) * h->value_size));
  transpose_pairs(TILE / 2, h->value_size, t->v, t->values);
}

/* Rounds n rows of probabilities to pairs, and zeros behind them, up to a multiple of EDGE rows. */
static void pair_probabilities(const float *s, int64_t n, char *to) {
  uint32_t *out = (uint32_t *)(void *)to;
  for (int64_t i = 0; i < ROUND(n, EDGE); i += 2, s += 2 * EDGE, out += EDGE)
    for (int w = 0; w < EDGE; w++) {
      uint32_t a, b;
      float x = i < n ? s[w] : 0, y = i + 1 < n ? s[EDGE + w] : 0;
      memcpy(&a, &x, sizeof a);
      memcpy(&b, &y, sizeof b);
      a += 0x7fff + (a >> 16 & 1);
      b += 0x7fff + (b >> 16 & 1);
      out[w] = a >> 16 | (b & 0xffff0000);
    }
}

/* Adds the loaded keys from `key` on, of which panel p sees n, to its results, as add_keys_f32
 * does. */
static void add_keys_tiles(const lt_Head *h, TileForward *t, int p, int64_t query, int64_t key,
                           int64_t n) {
  Forward_f32 *f = &t->f;
  FV factor[2];
  float *s = f->scores, *out = f->out + p * EDGE * f->value_size;
  const char *q = t->q + p * PANEL_ROW / 2 * h->size;
  for (int64_t r = 0; r < n; r += EDGE)
    tile_product(h->size / EDGE, t->keys + r * t->key_row, t->key_row, q, s + r * EDGE, false);
  for (int64_t i = 0; i < n * EDGE; i++) s[i] *= (float)h->scale;
  mask_scores_f32(h, query, key, n, s, f->mask);
  exponentials_f32(s, n, f->base + p * EDGE, f->sum + p * EDGE, factor);
  pair_probabilities(s, n, t->p);
  for (int64_t i = 0; i < h->value_size * EDGE; i += EDGE) {
    store_f32(out + i, FV_LOAD(out + i) * factor[0]);
    store_f32(out + i + FV_N, FV_LOAD(out + i + FV_N) * factor[1]);
  }
  for (int64_t j = 0; j < h->value_size; j += EDGE)
    tile_product(ROUND(n, EDGE) / EDGE, t->values + j * 2 * TILE, 2 * TILE, t->p, out + j * EDGE,
                 true);
}

TILES static void forward_tiles(const lt_Head *h, int64_t from, int64_t n) {
  TileForward t;
  tiles_layout(h, h->scratch, &t);
  copy_rows(&h->q, from, n, h->size, t.k);
  for (int64_t p = 0; p < TILE / EDGE; p++)
    transpose_pairs(EDGE, h->size / 2, t.k + p * PANEL_ROW / 2 * h->size,
                    t.q + p * PANEL_ROW / 2 * h->size);
  memset(t.f.out, 0, (size_t)(TILE * t.f.value_size) * sizeof(float));
  for (int i = 0; i < TILE; i++) t.f.base[i] = -INFINITY, t.f.sum[i] = 0;
  int64_t keys = h->causal && from + n < h->keys ? from + n : h->keys;
  open_tiles();
  for (int64_t key = 0; key < keys && !lt_stopped(); key += TILE) {
    int64_t m = keys - key < TILE ? keys - key : TILE;
    load_keys(h, &t, key, m);
    for (int p = 0; p * EDGE < n; p++) {
      int64_t query = from + p * EDGE, seen = visible_f32(h, query, key, m);
      if (seen > 0) add_keys_tiles(h, &t, p, query, key, seen);
    }
  }
  _tile_release();
  for (int p = 0; p * EDGE < n; p++)
    store_results_f32(h, &t.f, p, from + p * EDGE, n - p * EDGE < EDGE ? n - p * EDGE : EDGE);
}

#endif
