/* matrix_errors.h: the errors about matrices that an algorithm cannot decompose, which are the same
 * on every device. Matrices are counted from 0. */
#ifndef LT_MATRIX_ERRORS_H
#define LT_MATRIX_ERRORS_H

#include "kernel.h"

#define LT_SINGULAR_MATRIX  "the matrix%s is singular: element %d of the diagonal of U is 0"
#define LT_SINGULAR_FACTORS "cannot use the factors: " LT_SINGULAR_MATRIX
#define LT_SINGULAR_INVERSE "cannot invert: " LT_SINGULAR_MATRIX
#define LT_SINGULAR_SYSTEM  "cannot solve: " LT_SINGULAR_MATRIX
#define LT_SINGULAR_BLOCKS                                                                         \
  "cannot use the factors: the matrix%s is singular: element %d of the diagonal of D is 0"
#define LT_NOT_DEFINITE                                                                            \
  "cannot factor the matrix%s: it is not positive definite (its leading minor of order %d is not)"

/* Fails with one of the texts above for matrix `at` of a, whose info LAPACK set to `value`. */
bool lt_bad_matrix(const char *text, const lt_Tensor *a, int64_t at, int value);
/* Fails because the iteration for these values of matrix `at` of a did not converge. */
bool lt_bad_convergence(const char *values, const lt_Tensor *a, int64_t at);

#endif
