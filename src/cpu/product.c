/* product.c: divides a matrix product into the panels that the loops of kernels/product.c compute.
 *
 * Each thread computes a block of c. Columns of b are read in place where they are dense and their
 * rows near to one another, else copied to dense panels, once; a is read in place unless its rows
 * or columns are far apart.
 *
 * Invariant: a sum is divided by its length alone, so every element has the same bits for any
 * number of threads. */
#include "product.h"
#include "cpu.h"
#include "kernel_support.h"
#include "moves.h"

#include <omp.h>

enum {
  DEPTH = 2048,     /* most bytes of a row of a that are multiplied at once */
  APART = 2112,     /* bytes between copied rows of a, so that they use all lines of a cache */
  TILES = 20,       /* most tiles of rows of a at once: they fit the second cache */
  SQUARE = 32,      /* rows and columns of a that are transposed at once */
  MANY = 512,       /* columns of c from which dense rows of a are copied */
  WIDTH = 1024,     /* most columns of b that are copied at once */
  FEW = 16,         /* most rows of a product that is computed as dot products */
  FEW_SHORT = 8,    /* the same for sums of less than LONG terms */
  LONG = 512,       /* terms of a long sum */
  FEW_COLUMNS = 64, /* columns of a piece of such a product */
  SHORT = 64,       /* least terms of its sums */
  PART = 16384,     /* terms of a piece of a long sum that threads share */
  HUGE_PAGE = 2 << 20,
  SMALL_ROOM = 16384, /* bytes of copied columns of b in a batch of small products */
  FAR = 2048 /* bytes between rows of b from which they are copied: they share lines of a cache */
};

typedef struct Product {
  const lt_ProductLoops *loops;
  lt_Dtype dtype;
  int64_t size; /* of an element, in bytes */
  int64_t m, n, k;
  int64_t depth, height; /* most terms of a sum, and most rows of a, at once */
  lt_Factor alpha, beta;
  lt_Matrix a, b, z, c;
  bool copy_a, copy_b;
  int64_t packed; /* columns of b for which there is scratch memory */
  char *room;     /* scratch memory, `each` bytes for a thread */
  int64_t each, total;
  int across, down; /* blocks of c along n and along m */
  int64_t step[3];  /* of a batch: bytes from one a, b and c to the next */
} Product;

static char *at(const Product *g, lt_Matrix x, int64_t row, int64_t column) {
  return (char *)x.data + (row * x.row + column * x.column) * g->size;
}

static bool of_integers(const Product *g) { return !lt_dtype_is_float(g->dtype); }

/* Returns the factor n of the product's dtype. */
static lt_Factor factor(const Product *g, int n) {
  return of_integers(g) ? (lt_Factor){.i = n} : (lt_Factor){.f = n};
}

static bool is_zero(const Product *g, lt_Factor x) { return of_integers(g) ? x.i == 0 : x.f == 0; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Returns n rounded up to a multiple of `step`. */
static int64_t rounded(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* Copies m rows of a from row i on, and k columns from column p on, to dense rows that are APART
 * bytes apart. */
static void copy_a(const Product *g, int64_t i, int64_t m, int64_t p, int64_t k, char *to) {
  int64_t size = g->size, step = APART;
  for (int64_t r = 0; r < m && g->a.column == 1; r++)
    memcpy(to + r * step, at(g, g->a, i + r, p), (size_t)(k * size));
  for (int64_t r = 0; r < m && g->a.column != 1; r += SQUARE)
    for (int64_t q = 0; q < k; q += SQUARE)
      lt_mover(size)->tile(least(SQUARE, m - r), least(SQUARE, k - q), to + r * step + q * size,
                           step, at(g, g->a, i + r, p + q), g->a.column * size);
}

/* Computes the panels of m rows from row i on, and of the columns j .. last - 1, with k terms of
 * the sums from p on. `packed` holds the copied panels. */
static void run_panels(const Product *g, int64_t i, int64_t m, int64_t j, int64_t last, int64_t p,
                       int64_t k, const char *packed, char *rows) {
  int64_t columns = g->loops->columns;
  lt_Matrix z = p ? g->c : g->z;
  lt_Panel panel = {.k = k,
                    .a_row = g->a.row,
                    .a_column = g->a.column,
                    .b_row = g->copy_b ? columns : g->b.row,
                    .b_padded = g->copy_b,
                    .z_row = z.row,
                    .z_column = z.column,
                    .c_row = g->c.row,
                    .c_column = g->c.column,
                    .alpha = g->alpha,
                    .beta = p ? factor(g, 1) : g->beta};
  const char *a = at(g, g->a, i, p);
  if (g->copy_a) {
    copy_a(g, i, m, p, k, rows);
    a = rows;
    panel.a_row = APART / g->size;
    panel.a_column = 1;
  }
  for (; j < last && !lt_stopped(); j += columns) {
    int64_t n = least(columns, last - j);
    g->loops->panel(&panel, m, n, a, g->copy_b ? packed : at(g, g->b, p, j), at(g, z, i, j),
                    at(g, g->c, i, j));
    packed += columns * k * g->size;
  }
}

/* Computes rows i .. i_last - 1 and columns j .. j_last - 1 of c. */
static void run_block(const Product *g, int64_t i, int64_t i_last, int64_t j, int64_t j_last,
                      char *room) {
  char *rows = room + rounded(g->packed * g->depth * g->size, 64);
  for (; j < j_last; j += WIDTH)
    for (int64_t p = 0; p < g->k; p += g->depth) {
      int64_t k = least(g->depth, g->k - p), end = least(j + WIDTH, j_last);
      if (g->copy_b) g->loops->pack(k, end - j, at(g, g->b, p, j), g->b.row, g->b.column, room);
      int64_t blocks = (i_last - i + g->height - 1) / g->height, r = i;
      for (int64_t t = 1; t <= blocks && !lt_stopped(); t++) {
        int64_t next = i + (i_last - i) * t / blocks;
        run_panels(g, r, next - r, j, end, p, k, room, rows);
        r = next;
      }
    }
}

/* Computes block number `t` of across * down. */
static void run_part(const Product *g, int64_t t) {
  int64_t x = t % g->across, y = t / g->across, unit = g->loops->columns / 2,
          units = (g->n + unit - 1) / unit;
  int64_t first = units * x / g->across * unit,
          last = least(units * (x + 1) / g->across * unit, g->n);
  if (first < last)
    run_block(g, g->m * y / g->down, g->m * (y + 1) / g->down, first, last, g->room + t * g->each);
}

/* Divides c among the threads, so that the largest block takes the least time to copy and
 * compute. */
static void divide(Product *g, int team) {
  double best = 0, row = g->copy_a && g->a.column != 1 ? 32 : 8; /* the time of a row of a */
  int64_t unit = g->loops->columns / 2;
  for (int across = 1; across <= team; across++) {
    if (team % across) continue;
    int down = team / across;
    int64_t m = (g->m + down - 1) / down, units = (g->n + unit - 1) / unit;
    int64_t n = (units + across - 1) / across * unit;
    double cost = (double)m * (double)n + row * (double)m + 16 * (double)n;
    if (best > 0 && cost >= best) continue;
    best = cost;
    g->across = across;
    g->down = down;
  }
}

static void transpose(Product *g) {
  lt_Matrix a = g->a, b = g->b;
  g->a = (lt_Matrix){b.data, b.column, b.row};
  g->b = (lt_Matrix){a.data, a.column, a.row};
  g->z = (lt_Matrix){g->z.data, g->z.column, g->z.row};
  g->c = (lt_Matrix){g->c.data, g->c.column, g->c.row};
  int64_t m = g->m;
  g->m = g->n;
  g->n = m;
  int64_t step = g->step[0];
  g->step[0] = g->step[1];
  g->step[1] = step;
}

/* Makes b the factor with dense columns, or the smaller one. */
static void turn(Product *g) {
  if (g->b.column != 1 && g->n != 1 && (g->a.row == 1 || g->m < g->n)) transpose(g);
}

/* Returns what the rows or columns of a product with one column b have in common. */
static lt_Panel panel_of(const Product *g) {
  return (lt_Panel){.k = g->k,
                    .a_row = g->a.row,
                    .b_row = g->a.column,
                    .z_row = g->z.row,
                    .c_row = g->c.row,
                    .alpha = g->alpha,
                    .beta = g->beta};
}

/* Products of a matrix and a vector. */
typedef struct Line {
  const Product *g;
  lt_Panel panel;
  const void *x;
  bool dots;
  char *parts; /* the sums of pieces of long rows or columns */
} Line;

static void run_line(const Line *l, int64_t first, int64_t last) {
  const Product *g = l->g;
  for (int64_t i = first, end; i < last && !lt_stopped(); i = end) {
    end = least(i + 4096, last);
    if (l->dots)
      g->loops->dots(&l->panel, end - i, at(g, g->a, i, 0), l->x, at(g, g->z, i, 0),
                     at(g, g->c, i, 0));
    else
      g->loops->sums(&l->panel, end - i, l->x, at(g, g->a, i, 0), at(g, g->z, i, 0),
                     at(g, g->c, i, 0));
  }
}

/* Computes pieces first <= t < last of the products of all rows or columns, each a sum of its
 * own. */
static void run_parts(const Line *l, int64_t first, int64_t last) {
  const Product *g = l->g;
  lt_Panel part = l->panel;
  part.alpha.f = 1;
  part.beta.f = 0;
  part.z_row = 0;
  part.c_row = 1;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    part.k = least(PART, g->k - t * PART);
    char *sums = l->parts + t * g->m * g->size;
    const char *a = at(g, g->a, 0, t * PART), *x = (const char *)l->x + t * PART * g->size;
    if (l->dots)
      g->loops->dots(&part, g->m, a, x, sums, sums);
    else
      g->loops->sums(&part, g->m, x, a, sums, sums);
  }
}

/* Adds the pieces of row i, one after the other. */
static double add_parts(const Line *l, int64_t i, int64_t count) {
  const Product *g = l->g;
  double sum = 0;
  for (int64_t t = 0; t < count; t++) {
    const void *part = l->parts + (t * g->m + i) * g->size;
    sum += g->size == sizeof(float) ? (double)*(const float *)part : *(const double *)part;
  }
  return sum;
}

/* Computes the products of few rows, or few columns, and a long column in pieces, which threads
 * share. */
static bool run_long_sums(Line *l) {
  const Product *g = l->g;
  int64_t count = (g->k + PART - 1) / PART;
  l->parts = calloc((size_t)(count * g->m), (size_t)g->size);
  if (!l->parts) return false;
  LT_IN_TEAM(lt_team(g->m * g->k, omp_in_parallel() ? 1 : count), count, run_parts(l, first, last));
  for (int64_t i = 0; i < g->m; i++) {
    double v = g->alpha.f * add_parts(l, i, count);
    const void *z = at(g, g->z, i, 0);
    void *c = at(g, g->c, i, 0);
    if (g->size == sizeof(float))
      *(float *)c = (float)(g->beta.f == 0 ? v : v + g->beta.f * (double)*(const float *)z);
    else
      *(double *)c = g->beta.f == 0 ? v : v + g->beta.f * *(const double *)z;
  }
  free(l->parts);
  return true;
}

/* Computes c = alpha * a @ b + beta * c for one column b and dense rows or columns of a. */
static bool run_column(Product *g) {
  if (g->k == 1 && g->a.row != 1) g->a.column = 1; /* any stride along a single element */
  bool dots = g->a.column == 1;
  if (!dots && (g->a.row != 1 || g->c.row != 1 || (!is_zero(g, g->beta) && g->z.row != 1)))
    return false;
  Line l = {g, panel_of(g), g->b.data, dots, NULL};
  char *x = NULL;
  bool ok = true;
  if (g->b.row != 1 && g->k > 1) {
    x = malloc((size_t)(g->k * g->size));
    if (!x) return false;
    lt_move(x, g->size, g->b.data, g->b.row * g->size, g->k, (size_t)g->size);
    l.x = x;
  }
  int64_t unit = dots ? 4 : 64, units = (g->m + unit - 1) / unit;
  if (units == 1 && g->k >= 2 * PART && !of_integers(g))
    ok = run_long_sums(&l);
  else
    LT_IN_TEAM(lt_team(g->m * g->k, omp_in_parallel() ? 1 : units), units,
               run_line(&l, first * unit, least(last * unit, g->m)));
  free(x);
  return ok;
}

/* Products of few dense rows of a and dense columns of b. */
typedef struct Few {
  const Product *g;
  lt_FewLoop *dots;
} Few;

static void run_few_pieces(const Few *f, int64_t first, int64_t last) {
  const Product *g = f->g;
  const float alpha = (float)g->alpha.f, beta = (float)g->beta.f;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    float sum[FEW * FEW_COLUMNS];
    int64_t j = t * FEW_COLUMNS, n = least(FEW_COLUMNS, g->n - j);
    f->dots(g->m, n, g->k, g->a.data, g->a.row, at(g, g->b, 0, j), g->b.column, sum, FEW_COLUMNS);
    for (int64_t i = 0; i < g->m; i++)
      for (int64_t q = 0; q < n; q++) {
        float v = alpha * sum[i * FEW_COLUMNS + q];
        if (beta != 0) v += beta * *(const float *)(const void *)at(g, g->z, i, j + q);
        *(float *)(void *)at(g, g->c, i, j + q) = v;
      }
  }
}

/* Computes c as dot products where a has few rows or b few columns; returns false where that is not
 * faster. */
static bool run_few(Product *g) {
  lt_FewLoop *dots = lt_few_loops(LT_float32)->dots;
  if (!dots || g->dtype != LT_float32 || g->a.column != 1 || g->b.row != 1 ||
      least(g->m, g->n) > (g->k < LONG ? FEW_SHORT : FEW) || g->k < SHORT)
    return false;
  if (g->n < g->m) transpose(g);
  Few f = {g, dots};
  int64_t pieces = (g->n + FEW_COLUMNS - 1) / FEW_COLUMNS, work = g->m * g->n * g->k / 2;
  LT_IN_TEAM(lt_team(work, omp_in_parallel() ? 1 : pieces), pieces,
             run_few_pieces(&f, first, last));
  return true;
}

/* Allocates the scratch memory of `team` threads, which close_room frees. Large memory is aligned
 * to huge pages: without them, products of large matrices take 4 % longer. */
static bool open_room(Product *g, int team) {
  g->packed = g->copy_b ? least(rounded(g->n, g->loops->columns), WIDTH) : 0;
  g->each = rounded(g->packed * g->depth * g->size, 64) + (g->copy_a ? g->height * APART : 0);
  g->total = team * g->each;
  if (g->total > HUGE_PAGE / 4) g->total = rounded(g->total, HUGE_PAGE);
  g->room = g->total ? lt_cpu_scratch((size_t)g->total) : NULL;
  return g->total == 0 || g->room;
}

/* Frees the scratch memory. */
static void close_room(Product *g) {
  if (g->total) lt_cpu_free(NULL, 0, g->room, (size_t)g->total, NULL);
}

/* Chooses what is copied; returns false for an `a` without dense rows or columns. */
static bool prepare(Product *g) {
  turn(g);
  if (g->k == 1) g->a.column = 1; /* any stride along a single element */
  if (g->a.column != 1 && g->a.row != 1) return false;
  int64_t bytes = g->a.column == 1 ? DEPTH : DEPTH / 2; /* fewer where rows are transposed */
  int64_t most = bytes / g->size, parts = (g->k + most - 1) / most;
  g->depth = (g->k + parts - 1) / parts;
  g->height = TILES * g->loops->rows;
  g->copy_b = (g->b.column != 1 && g->n > 1) || (g->b.row * g->size >= FAR && g->m >= 64);
  if (g->a.column == 1)
    g->copy_a = g->n >= MANY && g->a.row * g->size >= 2 * FAR;
  else
    g->copy_a = g->n >= 64 && g->a.column * g->size >= FAR / 2;
  return true;
}

static void run_batch(const Product *g, int64_t first, int64_t last) {
  _Alignas(64) char room[SMALL_ROOM];
  for (; first < last && !lt_stopped(); first++) {
    Product one = *g;
    one.a.data = (char *)g->a.data + first * g->step[0];
    one.b.data = (char *)g->b.data + first * g->step[1];
    one.z.data = one.c.data = (char *)g->c.data + first * g->step[2];
    run_block(&one, 0, one.m, 0, one.n, room);
  }
}

/* Computes products of a row and a column each: the dot products of two matrices' rows. */
static void run_pairs(const Product *g, int64_t first, int64_t last) {
  lt_Panel panel = panel_of(g);
  panel.a_row = g->step[0] / g->size;
  panel.x_row = g->step[1] / g->size;
  panel.z_row = panel.c_row = g->step[2] / g->size;
  for (int64_t t = first, end; t < last && !lt_stopped(); t = end) {
    end = least(t + 4096, last);
    char *c = (char *)g->c.data + t * g->step[2];
    g->loops->dots(&panel, end - t, (const char *)g->a.data + t * g->step[0],
                   (const char *)g->b.data + t * g->step[1], c, c);
  }
}

/* Computes products of matrices and columns. */
static void run_columns(const Product *g, bool dots, int64_t first, int64_t last) {
  if (dots && g->m == 1) {
    run_pairs(g, first, last);
    return;
  }
  const lt_Panel panel = panel_of(g);
  for (int64_t t = first; t < last; t++) {
    if (t % 4096 == 0 && lt_stopped()) return;
    const char *a = (const char *)g->a.data + t * g->step[0];
    const char *x = (const char *)g->b.data + t * g->step[1];
    char *c = (char *)g->c.data + t * g->step[2];
    if (dots)
      g->loops->dots(&panel, g->m, a, x, c, c);
    else
      g->loops->sums(&panel, g->m, x, a, c, c);
  }
}

/* Computes a batch of products with one row or column; returns false where that is not possible
 * without copies, or where a single product is divided among threads. */
static bool run_batch_of_columns(Product *g, int64_t count, int team) {
  if (g->n != 1) transpose(g);
  const bool dots = g->a.column == 1;
  if (g->k >= 2 * PART || (g->b.row != 1 && g->k > 1) ||
      (!dots && (g->a.row != 1 || g->c.row != 1)))
    return false;
  LT_IN_TEAM(team, count, run_columns(g, dots, first, last));
  return true;
}

bool lt_product_batch(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, int64_t count, lt_Matrix a,
                      lt_Matrix b, lt_Matrix c, const int64_t step[3], int team) {
  Product g = {.loops = lt_product_loops(dtype),
               .dtype = dtype,
               .size = (int64_t)lt_dtype_size(dtype),
               .m = m,
               .n = n,
               .k = k,
               .a = a,
               .b = b,
               .z = c,
               .c = c,
               .step = {step[0], step[1], step[2]}};
  if (!g.loops) return false;
  g.alpha = factor(&g, 1);
  if (m == 1 || n == 1) return run_batch_of_columns(&g, count, team);
  if (!prepare(&g) || g.copy_a) return false;
  if (g.copy_b && rounded(g.n, g.loops->columns) * g.depth * g.size > SMALL_ROOM) return false;
  LT_IN_TEAM(team, count, run_batch(&g, first, last));
  return true;
}

bool lt_product(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, lt_Factor alpha, lt_Matrix a,
                lt_Matrix b, lt_Factor beta, lt_Matrix z, lt_Matrix c) {
  Product g = {.loops = lt_product_loops(dtype),
               .dtype = dtype,
               .size = (int64_t)lt_dtype_size(dtype),
               .m = m,
               .n = n,
               .k = k,
               .alpha = alpha,
               .beta = beta,
               .a = a,
               .b = b,
               .z = z,
               .c = c,
               .across = 1,
               .down = 1};
  if (!g.loops) return false;
  if (n == 1) return run_column(&g);
  if (m == 1) {
    transpose(&g);
    return run_column(&g);
  }
  if (run_few(&g)) return true;
  if (!prepare(&g)) return false;
  double work = (double)m * (double)n * (double)k / 8;
  int64_t pieces = omp_in_parallel() ? 1 : LT_MAX_THREADS;
  divide(&g, lt_team(work < 1e15 ? (int64_t)work : (int64_t)1e15, pieces));
  int team = g.across * g.down;
  if (!open_room(&g, team)) return false;
  LT_IN_TEAM(team, team, for (int64_t t = first; t < last; t++) run_part(&g, t));
  close_room(&g);
  return true;
}
