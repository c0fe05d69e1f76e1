/* product.h: matrix products by Lutra's own loops, compiled for each instruction set
 * (src/cpu/kernels/product.c). */
#ifndef LT_CPU_PRODUCT_H
#define LT_CPU_PRODUCT_H

#include "blas.h"

/* What the tiles of a panel of c have in common. Steps are in elements. */
typedef struct lt_Panel {
  int64_t k;               /* length of the sums */
  int64_t a_row, a_column; /* from one row or column of a to the next */
  int64_t b_row;           /* from one row of b to the next; rows are dense */
  int64_t c_row, c_column;
  double alpha, beta; /* with beta 0, c is not read */
} lt_Panel;

/* Loops for float or double. */
typedef struct lt_ProductLoops {
  int rows, columns; /* of a tile */
  /* Computes m rows and n <= `columns` columns of c = alpha * a @ b + beta * c. Rows of b are read
   * up to the end of a vector, of `columns` / 2 elements. */
  void (*panel)(const lt_Panel *p, int64_t m, int64_t n, const void *a, const void *b, void *c);
  /* Copies k rows and n columns of b to panels of `columns` columns, one after the other, with dense
   * rows. The last one is padded with zeros. */
  void (*pack)(int64_t k, int64_t n, const void *b, int64_t row, int64_t column, void *to);
  /* Computes y = alpha * A x + beta * y, with m dense rows of A; the elements of y are c_row
   * apart. */
  void (*dots)(const lt_Panel *p, int64_t m, const void *a, const void *x, void *y);
  /* Computes y = alpha * x B + beta * y, with n dense columns of B. */
  void (*sums)(const lt_Panel *p, int64_t n, const void *x, const void *b, void *y);
} lt_ProductLoops;

/* Returns the loops for float32 or float64 on this CPU; NULL where the library is faster. */
const lt_ProductLoops *lt_product_loops(lt_Dtype dtype);

/* Computes c = alpha * a @ b + beta * c as lt_gemm does, with k > 0, on as many threads as the work
 * is worth. Returns false, without an error, and changes nothing, when these loops are not for this
 * CPU, the layout or the size, or memory is out. */
bool lt_product(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
                lt_Matrix b, double beta, lt_Matrix c);

#endif
