/* product_bfloat16.c: divides products of matrices of bfloat16 into panels of 32 columns and
 * blocks of rows, which the loops of kernels/product_bfloat16.h compute: by tile registers, else by
 * vectors with dot products of pairs.
 *
 * Invariant: an element is one sum, whose bits do not depend on the number of threads. */
#include "capability.h"
#include "kernel_support.h"
#include "product.h"

#include <stdatomic.h>

enum { EDGE = LT_TILE_EDGE, ROWS = 256 }; /* rows of a piece of work */

typedef struct Pieces {
  lt_BfloatRows *rows;
  lt_Panel panel;
  int64_t m, n;
  lt_Matrix a, b, c;
  const int64_t *step;
  atomic_bool failed;
} Pieces;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns n rounded up to whole tiles, which take as long as their elements. */
static double whole(int64_t n) { return (double)((n + EDGE - 1) / EDGE) * EDGE; }

/* Computes pieces first .. last - 1: those of one panel follow one another, and panels of one
 * product. */
static void run_pieces(Pieces *g, int64_t first, int64_t last) {
  int64_t k = (g->panel.k + EDGE - 1) / EDGE * EDGE, bytes = 2 * k * EDGE, packed = -1;
  int64_t blocks = (g->m + ROWS - 1) / ROWS, panels = (g->n + EDGE - 1) / EDGE;
  char *memory = malloc((size_t)(2 * bytes) + 64);
  if (!memory) {
    atomic_store(&g->failed, true);
    return;
  }
  char *panel = memory + 64 - (uintptr_t)memory % 64, *room = panel + bytes;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t number = t / blocks, i = t % blocks * ROWS, j = number % panels * EDGE;
    int64_t n = least(EDGE, g->n - j), m = least(ROWS, g->m - i), at = number / panels;
    const char *a = (const char *)g->a.data + at * g->step[0] + 2 * i * g->a.row;
    const char *b = (const char *)g->b.data + at * g->step[1] + 2 * j * g->b.column;
    char *c = (char *)g->c.data + at * g->step[2] + 2 * (i * g->c.row + j);
    if (number != packed) lt_bfloat_loops()->pack(g->panel.k, n, b, g->b.row, g->b.column, panel);
    packed = number;
    g->rows(&g->panel, m, n, a, panel, c, room);
  }
  free(memory);
}

/* Returns the loop over rows for this CPU, NULL if it has none. */
static lt_BfloatRows *rows_loop(void) {
  const lt_BfloatLoops *loops = lt_bfloat_loops();
  return lt_cpu_has_tiles() ? loops->by_tiles : lt_cpu_has_pairs() ? loops->by_vectors : NULL;
}

bool lt_product_takes_bfloat16(int64_t m, int64_t n, int64_t k) {
  return m >= 8 && (double)m * (double)n * (double)k >= 0x1p15 && rows_loop();
}

bool lt_product_bfloat16(int64_t m, int64_t n, int64_t k, int64_t count, double alpha, lt_Matrix a,
                         lt_Matrix b, double beta, lt_Matrix c, const int64_t step[3]) {
  double work = (double)count * (double)m * whole(n) * whole(k);
  if (k == 1) a.column = b.row = 1; /* any stride along a single element */
  if (n == 1) b.column = 1;
  Pieces g = {.rows = rows_loop(),
              .panel = {.k = k, .a_row = a.row, .c_row = c.row, .alpha.f = alpha, .beta.f = beta},
              .m = m,
              .n = n,
              .a = a,
              .b = b,
              .c = c,
              .step = step};
  int64_t pieces = count * ((n + EDGE - 1) / EDGE) * ((m + ROWS - 1) / ROWS);
  LT_IN_TEAM(lt_team(work < 1e16 ? (int64_t)(work / 128) : (int64_t)1e14, pieces), pieces,
             run_pieces(&g, first, last));
  return !atomic_load(&g.failed) || lt_fail_memory();
}
