/* symmetric.h: eigenvalues and eigenvectors of symmetric matrices: reduction to tridiagonal form,
 * and divide and conquer for tridiagonal matrices. LAPACK's functions for the same take two to four
 * times as long for matrices of some hundred rows.
 *
 * Matrices are column-major. */
#ifndef LT_CPU_SYMMETRIC_H
#define LT_CPU_SYMMETRIC_H

#include "kernel.h"

enum {
  LT_SYMMETRIC_PADDING = 16, /* elements after a column or vector that loops read and write */
};

/* Loops for float or double. */
typedef struct lt_SymmetricLoops {
  /* Subtracts v w^T + w v^T from the lower triangle of a symmetric matrix a {n, n}, and computes
   * y = a x. Columns and vectors are followed by LT_SYMMETRIC_PADDING zeros, which stay zeros. */
  void (*step)(int64_t n, void *a, int64_t ld, const void *v, const void *w, const void *x,
               void *y);
} lt_SymmetricLoops;

/* Loops over n poles d with weights z^2, for differences (d - origin) - tau, which keep the digits
 * of a small tau. Vectors have LT_SYMMETRIC_PADDING more elements: large numbers after d, zeros
 * after z. */
typedef struct lt_SecularLoops {
  /* Computes the sums of z^2 / difference over the first `split` poles and over the others, then
   * those of its derivative. */
  void (*sums)(const double *d, const double *z, int64_t n, int64_t split, double origin,
               double tau, double out[4]);
  /* Multiplies w[i] by difference[i] / (d[i] - d[j]), and w[j] by difference[j]. */
  void (*multiply)(const double *d, int64_t n, int64_t j, double origin, double tau, double *w);
  /* Computes out = scale z / difference. */
  void (*quotients)(const double *d, const double *z, int64_t n, double origin, double tau,
                    double scale, double *out);
} lt_SecularLoops;

/* Return the loops of this CPU. */
const lt_SymmetricLoops *lt_symmetric_loops(lt_Dtype dtype);
const lt_SecularLoops *lt_secular_loops(void);

/* Returns the elements of scratch memory of lt_symmetric_reduce. */
int64_t lt_symmetric_room(int64_t n);
/* Computes T = Q^T a Q of a symmetric matrix a {n, n}, n >= 1, of which the lower triangle is read:
 * the diagonal d and the n - 1 elements beside it, e. The reflections that Q consists of are left
 * below e in a, with their n - 1 factors tau. Columns are followed by LT_SYMMETRIC_PADDING
 * elements. */
void lt_symmetric_reduce(lt_Dtype dtype, int64_t n, void *a, int64_t ld, void *d, void *e,
                         void *tau, void *room);

/* Returns the bytes of scratch memory of lt_tridiagonal_solve. */
size_t lt_tridiagonal_room(lt_Dtype dtype, int64_t n);
/* Computes the eigenvalues of the tridiagonal matrix d, e, n >= 1, in ascending order, in place of
 * d, and the eigenvectors, columns of q {n, n}, which are in the dtype. Changes e. The largest
 * element's exponent is not near the limits of double. */
void lt_tridiagonal_solve(lt_Dtype dtype, int64_t n, double *d, double *e, void *q, int64_t ld,
                          char *room);

#endif
