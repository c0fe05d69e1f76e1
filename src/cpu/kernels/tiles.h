/* tiles.h: products of bfloat16 by the CPU's tile registers (AMX), which multiply 16 x 32 elements
 * by 32 x 16 at once. LT_HAS_TILES is defined where the compiler knows them.
 *
 * The second factor is a panel of pairs: row i has elements 2 i and 2 i + 1 of each of 32 columns,
 * side by side. */
#ifndef LT_CPU_TILES_H
#define LT_CPU_TILES_H

#include "cpu/capability.h"
#include "cpu/kernels/shuffle.h"

#if defined __AVX512F__ && (defined __clang__ || __GNUC__ >= 11)
#define LT_HAS_TILES
#define TILES __attribute__((target("amx-tile,amx-bf16")))

enum { EDGE = LT_TILE_EDGE, PANEL_ROW = 4 * EDGE }; /* bytes of a panel's row */

/* Sets c, or with `add` adds to it, the product of 32 rows of a, `step` bytes apart, of 32 `count`
 * elements, and a panel of pairs. c has dense rows of 32 floats. */
TILES static inline void tile_product(int64_t count, const char *a, int64_t step, const char *b,
                                      float *c, bool add) {
  if (add) {
    _tile_loadd(0, c, PANEL_ROW);
    _tile_loadd(1, c + 16, PANEL_ROW);
    _tile_loadd(2, c + 16 * EDGE, PANEL_ROW);
    _tile_loadd(3, c + 16 * EDGE + 16, PANEL_ROW);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t i = 0; i < count; i++, a += 64, b += 16 * PANEL_ROW) {
    _tile_loadd(4, a, step);
    _tile_loadd(5, a + 16 * step, step);
    _tile_loadd(6, b, PANEL_ROW);
    _tile_loadd(7, b + 64, PANEL_ROW);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, PANEL_ROW);
  _tile_stored(1, c + 16, PANEL_ROW);
  _tile_stored(2, c + 16 * EDGE, PANEL_ROW);
  _tile_stored(3, c + 16 * EDGE + 16, PANEL_ROW);
}

/* Sets all tile registers to 16 rows of 64 bytes. */
TILES static inline void open_tiles(void) {
  struct {
    uint8_t palette, start, unused[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } config = {.palette = 1};
  for (int i = 0; i < 8; i++) config.bytes[i] = 64, config.rows[i] = 16;
  _tile_loadconfig(&config);
}

/* Writes the pairs of two rows of n elements; `second` may be NULL: zeros. */
static inline void pair_rows(const void *first, const void *second, int64_t n, void *to) {
  const uint16_t *a = first, *b = second;
  uint32_t *out = to;
  for (int64_t i = 0; b && i < n; i++) out[i] = a[i] | (uint32_t)b[i] << 16;
  for (int64_t i = 0; !b && i < n; i++) out[i] = a[i];
}

#endif
#endif
