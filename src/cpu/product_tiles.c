/* product_tiles.c: divides a product of matrices of bfloat16 into panels of 32 columns and blocks of
 * rows, which the loops of kernels/product_tiles.h compute by tile registers.
 *
 * Invariant: an element is one sum, whose bits do not depend on the number of threads. */
#include "capability.h"
#include "kernel_support.h"
#include "product.h"

#include <stdatomic.h>

enum { EDGE = 32, ROWS = 256 }; /* rows of a piece of work */

typedef struct Tiles {
  const lt_TileLoops *loops;
  lt_Panel panel;
  int64_t m, n;
  lt_Matrix a, b, c;
  atomic_bool failed;
} Tiles;

static char *at(lt_Matrix x, int64_t row, int64_t column) {
  return (char *)x.data + 2 * (row * x.row + column * x.column);
}

/* Computes pieces first .. last - 1: those of one panel follow one another. */
static void run_pieces(Tiles *g, int64_t first, int64_t last) {
  int64_t k = (g->panel.k + EDGE - 1) / EDGE * EDGE, bytes = 2 * k * EDGE, packed = -1;
  int64_t pieces = (g->m + ROWS - 1) / ROWS;
  char *memory = malloc((size_t)(2 * bytes) + 64);
  if (!memory) {
    atomic_store(&g->failed, true);
    return;
  }
  char *panel = memory + 64 - (uintptr_t)memory % 64, *room = panel + bytes;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t j = t / pieces * EDGE, i = t % pieces * ROWS;
    int64_t n = g->n - j < EDGE ? g->n - j : EDGE, m = g->m - i < ROWS ? g->m - i : ROWS;
    if (j != packed) g->loops->pack(g->panel.k, n, at(g->b, 0, j), g->b.row, g->b.column, panel);
    packed = j;
    g->loops->rows(&g->panel, m, n, at(g->a, i, 0), panel, at(g->c, i, j), room);
  }
  free(memory);
}

bool lt_product_tiles(int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a, lt_Matrix b,
                      double beta, lt_Matrix c, bool *done) {
  const lt_TileLoops *loops = lt_tile_loops();
  double work = (double)m * (double)n * (double)k;
  *done = false;
  if (k == 1) a.column = b.row = 1; /* any stride along a single element */
  if (n == 1) b.column = 1;
  if (!loops || work < 0x1p15 || m < 8 || a.column != 1 || (b.column != 1 && b.row != 1) ||
      !lt_cpu_has_tiles())
    return true;
  Tiles g = {.loops = loops,
             .panel = {.k = k, .a_row = a.row, .c_row = c.row, .alpha = alpha, .beta = beta},
             .m = m,
             .n = n,
             .a = a,
             .b = b,
             .c = c};
  int64_t pieces = (n + EDGE - 1) / EDGE * ((m + ROWS - 1) / ROWS);
  LT_IN_TEAM(lt_team(work < 1e16 ? (int64_t)(work / 128) : (int64_t)1e14, pieces), pieces,
             run_pieces(&g, first, last));
  *done = true;
  return !atomic_load(&g.failed) || lt_fail_memory();
}
