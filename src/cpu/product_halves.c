/* product_halves.c: products of float16 or bfloat16 with few rows or columns, as of a linear layer
 * and some tokens. They take as long as reading the large factor, which is neither copied nor
 * converted in memory.
 *
 * Invariant: an element is one sum, whose bits do not depend on the number of threads. */
#include "capability.h"
#include "half.h"
#include "kernel_support.h"
#include "product.h"

enum {
  FEW = 16,      /* most rows of the small factor */
  FEW_PAIRS = 7, /* the same where products of pairs are faster for more */
  PIECE = 128    /* columns of a piece of work */
};

typedef struct Halves {
  lt_FewLoop *loop;
  lt_Dtype dtype;
  int64_t m, n, k; /* m: of the small factor */
  int64_t step;    /* from a row of the large factor to the next, in elements */
  int64_t column;  /* from a column of it to the next */
  double alpha, beta;
  const float *x; /* the small factor, converted */
  const char *b;
  lt_Matrix c;
  int64_t b_step, c_step; /* bytes from one matrix of a batch to the next */
} Halves;

static float load(lt_Dtype dtype, const uint16_t *x) {
  return dtype == LT_bfloat16 ? lt_bfloat16_to_float((lt_bfloat16){*x})
                              : lt_half_to_float((lt_half){*x});
}

/* Stores m x n sums, in rows of PIECE. */
static void store(const Halves *h, int64_t n, const float *sum, uint16_t *c) {
  const float alpha = (float)h->alpha, beta = (float)h->beta;
  for (int64_t i = 0; i < h->m; i++, sum += PIECE, c += h->c.row)
    for (int64_t j = 0; j < n; j++) {
      uint16_t *to = c + j * h->c.column;
      float v = alpha * sum[j];
      if (beta != 0) v += beta * load(h->dtype, to);
      *to = h->dtype == LT_bfloat16 ? lt_bfloat16_from_float(v).bits : lt_half_from_float(v).bits;
    }
}

static void run_pieces(const Halves *h, int64_t first, int64_t last) {
  float sum[FEW * PIECE];
  int64_t pieces = (h->n + PIECE - 1) / PIECE;
  for (int64_t t = first; t < last && !lt_stopped(); t++) {
    int64_t at = t / pieces, j = t % pieces * PIECE, n = h->n - j < PIECE ? h->n - j : PIECE;
    h->loop(h->m, n, h->k, h->x + at * h->m * h->k, h->k, h->b + at * h->b_step + 2 * j * h->column,
            h->step, sum, PIECE);
    store(h, n, sum, (uint16_t *)((char *)h->c.data + at * h->c_step) + j * h->c.column);
  }
}

bool lt_product_takes_halves(lt_Dtype dtype, int64_t m, int64_t n, int64_t k) {
  bool pairs =
      dtype == LT_bfloat16 && lt_bfloat_loops()->pack && (lt_cpu_has_tiles() || lt_cpu_has_pairs());
  int64_t few = pairs ? FEW_PAIRS : FEW;
  return (m <= few || n <= few) && k > 0 && lt_few_loops(dtype)->dots;
}

void lt_product_halves(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, int64_t count, double alpha,
                       const float *x, lt_Matrix b, double beta, lt_Matrix c,
                       const int64_t step[2]) {
  const lt_FewLoops *loops = lt_few_loops(dtype);
  if (n == 1 && b.row != 1) b.column = 1; /* any stride along a single element */
  if (k == 1 && b.column != 1) b.row = 1;
  bool dots = b.row == 1;
  Halves h = {.loop = dots ? loops->dots : loops->sums,
              .dtype = dtype,
              .m = m,
              .n = n,
              .k = k,
              .step = dots ? b.column : b.row,
              .column = b.column,
              .alpha = alpha,
              .beta = beta,
              .x = x,
              .b = b.data,
              .c = c,
              .b_step = step[0],
              .c_step = step[1]};
  double work = (double)count * (double)m * (double)n * (double)k;
  int64_t pieces = count * ((n + PIECE - 1) / PIECE);
  LT_IN_TEAM(lt_team(work < 1e16 ? (int64_t)work : (int64_t)1e16, pieces), pieces,
             run_pieces(&h, first, last));
}
