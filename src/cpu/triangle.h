/* triangle.h: LU and Cholesky factorizations and triangular systems of float32 and float64
 * matrices, in place and by rows, with Lutra's own products. LAPACK's functions for the same take
 * up to three times as long for matrices of some hundred rows.
 *
 * Matrices are lt_Matrix of dense rows; `factor` of lt_triangle_solve has any strides. */
#ifndef LT_CPU_TRIANGLE_H
#define LT_CPU_TRIANGLE_H

#include "blas.h"

enum {
  LT_LU_COLUMNS = 16,       /* most columns of lt_TriangleLoops' `lu` */
  LT_CHOLESKY_ORDER = 32,   /* largest order of its `cholesky` */
  LT_SOLVE_ORDER = 64,      /* the order up to which `solve` is faster than products */
  LT_TRIANGLE_PADDING = 32, /* elements after the end of a column that `lu` may change */
};

/* Loops for float or double. */
typedef struct lt_TriangleLoops {
  /* Factors n <= LT_LU_COLUMNS columns of m elements, `step` elements apart, each followed by
   * LT_TRIANGLE_PADDING elements that it may change. Writes min(m, n) pivots, from 1 on. Returns
   * the first one, from 1 on, that is 0, else 0. */
  int (*lu)(int64_t m, int n, void *a, int64_t step, int32_t *pivots);
  /* Computes the upper factor of n <= LT_CHOLESKY_ORDER rows in the upper triangle. Returns the
   * order, from 1 on, of the first minor that is not positive, else 0. */
  int (*cholesky)(int n, void *a, int64_t row);
  /* Solves l x = b for a lower triangle of r rows and n columns of b. Strides may be negative. */
  void (*solve)(int64_t r, int64_t n, const void *l, int64_t l_row, int64_t l_column, bool unit,
                void *b, int64_t b_row);
} lt_TriangleLoops;

/* Returns the loops for a dtype on this CPU; NULL where there are none. */
const lt_TriangleLoops *lt_triangle_loops(lt_Dtype dtype);

/* Returns the bytes of scratch memory of lt_triangle_lu. */
size_t lt_triangle_room(lt_Dtype dtype, int64_t m);
/* Factors a {m, n} as P^T L U, with LAPACK's pivots and info. */
int lt_triangle_lu(lt_Dtype dtype, int64_t m, int64_t n, lt_Matrix a, int32_t *pivots, void *room);
/* Exchanges rows of b {.., n} as the k pivots of a factorization tell, or back. */
void lt_triangle_exchange(lt_Dtype dtype, int64_t k, const int32_t *pivots, bool back, int64_t n,
                          lt_Matrix b);
/* Computes the upper factor of U^T U = a in the upper triangle of a {n, n}, which alone is read.
 * Returns LAPACK's info. The lower triangle is undefined then. */
int lt_triangle_cholesky(lt_Dtype dtype, int64_t n, lt_Matrix a);
/* Solves factor @ x = b for a triangle of r rows, and b {r, n}. */
void lt_triangle_solve(lt_Dtype dtype, int64_t r, int64_t n, lt_Matrix factor, bool upper,
                       bool unit, lt_Matrix b);
/* Computes the inverse of a lower triangle of r rows with ones on its diagonal. */
void lt_triangle_invert(lt_Dtype dtype, int64_t r, lt_Matrix l, lt_Matrix inverse);

#endif
