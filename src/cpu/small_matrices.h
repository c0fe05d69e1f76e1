/* small_matrices.h: loops over batches of small matrices of float32 and float64, a block of
 * matrices at once: one in each lane of the vectors.
 *
 * A block is LT_BLOCK_BYTES / size matrices. Its element e (i n + j) of matrix `lane` is at
 * [e * matrices + lane]. Each lane is computed by itself: a matrix has the same result in every
 * lane and beside all others. Pivots and info are integers of the size of an element, in lanes. */
#ifndef LT_CPU_SMALL_MATRICES_H
#define LT_CPU_SMALL_MATRICES_H

#include "kernel.h"

enum {
  LT_BLOCK_BYTES = 64, /* bytes of an element of each matrix */
  LT_SMALL_ORDER = 8,  /* most rows of a small matrix */
  LT_SMALL_SIDES = 8,  /* most right sides */
};

/* The determinants of the matrices of a block. */
typedef struct lt_BlockProduct {
  double det[LT_BLOCK_BYTES / sizeof(float)];
  double least[LT_BLOCK_BYTES / sizeof(float)], most[LT_BLOCK_BYTES / sizeof(float)];
} lt_BlockProduct;

/* Loops for float or double. They compute the first `used` matrices, and some others. */
typedef struct lt_SmallLoops {
  /* Factors as P^T L U, in place. Writes n pivots, from 1 on, and the first pivot, from 1 on, that
   * is 0, else 0. */
  void (*lu)(int n, int used, void *a, void *pivots, void *info);
  /* Computes the determinants from the factors, and the smallest and the largest size of an element
   * of the diagonal. */
  void (*product)(int n, const void *lu, const void *pivots, lt_BlockProduct *to);
  /* Computes the lower factor of L L^T = a, from the lower triangle of a, and sets the others to 0.
   * Writes the order, from 1 on, of the first minor that is not positive, else 0. */
  void (*cholesky)(int n, int used, void *a, void *info);
  /* Computes the inverses of P^T L U in x; of matrices whose info is not 0, the factors. */
  void (*invert)(int n, int used, const void *lu, const void *pivots, const void *info, void *x);
  /* Solves P^T L U x = b for n x r right sides b, in place. */
  void (*solve)(int n, int r, int used, const void *lu, const void *pivots, void *b);
  /* Computes the m x n products c = a @ b, sums of k terms. */
  void (*multiply)(int m, int n, int k, int used, const void *a, const void *b, void *c);
} lt_SmallLoops;

/* Returns the loops for a dtype on this CPU; NULL where there are none. */
const lt_SmallLoops *lt_small_loops(lt_Dtype dtype);

/* Copies `used` matrices of t, of any strides, from matrix `first` on, to a block, transposed or
 * not; the others are 0. */
void lt_block_get(const lt_Tensor *t, int64_t first, int used, bool transposed, void *block);
/* Copies them back to t, which is contiguous. */
void lt_block_put(lt_Tensor *t, int64_t first, int used, bool transposed, const void *block);
/* Copies n integers of `used` matrices of a block, from matrix `first` of it on. Elements have
 * `size` bytes. */
void lt_block_integers(size_t size, int n, int first, int used, const void *block, int32_t *to);

#endif
