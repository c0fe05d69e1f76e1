/* product.h: matrix products by Lutra's own loops, compiled for each instruction set
 * (src/cpu/kernels/product.c). */
#ifndef LT_CPU_PRODUCT_H
#define LT_CPU_PRODUCT_H

#include "blas.h"

/* A factor of whole matrices: f for floats, i for integers. */
typedef union lt_Factor {
  double f;
  int64_t i;
} lt_Factor;

/* What the tiles of a panel of c have in common. Steps are in elements. */
typedef struct lt_Panel {
  int64_t k;               /* length of the sums */
  int64_t a_row, a_column; /* from one row or column of a to the next */
  int64_t b_row;           /* from one row of b to the next; rows are dense */
  bool b_padded;           /* rows of b may be read up to the end of a vector */
  int64_t x_row;           /* from one row of x to the next; 0: all rows of A have the same x */
  int64_t z_row, z_column;
  int64_t c_row, c_column;
  lt_Factor alpha, beta; /* with beta 0, z is not read */
} lt_Panel;

/* Loops for one dtype. Integers wrap. */
typedef struct lt_ProductLoops {
  int rows, columns; /* of a tile */
  /* Computes m rows and n <= `columns` columns of c = alpha * a @ b + beta * z. z may be c. */
  void (*panel)(const lt_Panel *p, int64_t m, int64_t n, const void *a, const void *b,
                const void *z, void *c);
  /* Copies k rows and n columns of b to panels of `columns` columns, one after the other, with
   * dense rows. The last one is padded with zeros. */
  void (*pack)(int64_t k, int64_t n, const void *b, int64_t row, int64_t column, void *to);
  /* Computes y = alpha * A x + beta * z, with m dense rows of A, and one row of x for all or for
   * each of them; the elements of y are c_row apart, and those of z z_row. */
  void (*dots)(const lt_Panel *p, int64_t m, const void *a, const void *x, const void *z, void *y);
  /* Computes y = alpha * x B + beta * z, with n dense columns of B, of y and of z. */
  void (*sums)(const lt_Panel *p, int64_t n, const void *x, const void *b, const void *z, void *y);
} lt_ProductLoops;

typedef void lt_BfloatRows(const lt_Panel *p, int64_t m, int64_t n, const void *a,
                           const void *panel, void *c, void *room);

/* Loops for bfloat16 by instructions that multiply pairs. */
typedef struct lt_BfloatLoops {
  /* Copies k rows and n <= 32 columns of b, either of them dense, to a panel of pairs: 64 bytes for
   * each row, rounded up to 32 rows. */
  void (*pack)(int64_t k, int64_t n, const void *b, int64_t row, int64_t column, void *panel);
  /* Compute m rows and n <= 32 columns of c = alpha * a @ b + beta * c, with dense rows of a and c,
   * by tile registers or by vectors. `room` is as large as a panel. */
  lt_BfloatRows *by_tiles, *by_vectors;
} lt_BfloatLoops;

/* Returns the loops for bfloat16; they are NULL where the instruction set or the compiler has
 * none. */
const lt_BfloatLoops *lt_bfloat_loops(void);

/* Sets row i of `sum`, i < m, to the products of row i of x and n columns of b: sums of k terms.
 * Rows are dense, and `..._row` elements apart. */
typedef void lt_FewLoop(int64_t m, int64_t n, int64_t k, const float *x, int64_t x_row,
                        const void *b, int64_t b_row, float *sum, int64_t sum_row);

/* Loops for a few rows of float and a matrix b of float16, bfloat16 or float32; NULL where the
 * instruction set has none, or others are faster. */
typedef struct lt_FewLoops {
  lt_FewLoop *dots; /* b has dense columns, b_row apart */
  lt_FewLoop *sums; /* b has dense rows, b_row apart */
} lt_FewLoops;

const lt_FewLoops *lt_few_loops(lt_Dtype dtype);

/* Returns whether a product of float16 or bfloat16 has few rows or columns, and the CPU has these
 * loops. */
bool lt_product_takes_halves(lt_Dtype dtype, int64_t m, int64_t n, int64_t k);
/* Computes c = alpha * x @ b + beta * c for `count` such products, with m <= n, x in dense float
 * matrices, and dense rows or columns of b, on as many threads as the work is worth. `step`: bytes
 * from one b and c to the next. */
void lt_product_halves(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, int64_t count, double alpha,
                       const float *x, lt_Matrix b, double beta, lt_Matrix c,
                       const int64_t step[2]);

/* Returns whether the CPU has instructions for pairs of bfloat16, and the size is for their
 * loops. */
bool lt_product_takes_bfloat16(int64_t m, int64_t n, int64_t k);
/* Computes c = alpha * a @ b + beta * c for `count` such products, with dense rows of a, and dense
 * rows or columns of b, on as many threads as the work is worth. `step`: bytes from one a, b and c
 * to the next. Returns false with the error set when memory is out. */
bool lt_product_bfloat16(int64_t m, int64_t n, int64_t k, int64_t count, double alpha, lt_Matrix a,
                         lt_Matrix b, double beta, lt_Matrix c, const int64_t step[3]);

/* Returns the loops for float32, float64, int32 or int64 on this CPU; NULL where the library is
 * faster. */
const lt_ProductLoops *lt_product_loops(lt_Dtype dtype);

/* Computes c = alpha * a @ b + beta * z as lt_gemm_add does, with k > 0, on as many threads as the
 * work is worth. Returns false, without an error, and changes nothing, when these loops are not for
 * this CPU, the layout or the size, or memory is out. */
bool lt_product(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, lt_Factor alpha, lt_Matrix a,
                lt_Matrix b, lt_Factor beta, lt_Matrix z, lt_Matrix c);

/* Computes c = a @ b for `count` small products on `team` threads, one thread each. `step`: bytes
 * from one a, b and c to the next. Returns false as lt_product, also for factors whose copy has
 * no room on the stack. */
bool lt_product_batch(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, int64_t count, lt_Matrix a,
                      lt_Matrix b, lt_Matrix c, const int64_t step[3], int team);

#endif
