/* blas.h: products of matrices of floats, by OpenBLAS where it is found, by our own loops where it
 * is not. */
#ifndef LT_CPU_BLAS_H
#define LT_CPU_BLAS_H

#include "kernel.h"

/* A matrix in memory: element (i, j) is data[i * row + j * column]; no stride is negative. */
typedef struct lt_Matrix {
  void *data;
  int64_t row, column;
} lt_Matrix;

/* Prepares for calls of lt_gemm by `callers` threads at once; `work` is the number of
 * multiplications. Returns how many may call, `callers` or 1: each with one thread where that is
 * more than 1, else with all. Returns 0 with an error when memory is out: OpenBLAS would not report
 * it, but end the process. lt_gemm_close ends it, with the number returned. */
int lt_gemm_open(int callers, double work);
void lt_gemm_close(int callers);

/* c = a @ b + beta * c; a {m, k}, b {k, n}, c {m, n} with dense rows. dtype is float32 or float64.
 * With beta 0, c is not read. May be called from inside a parallel region; then it uses one
 * thread. */
void lt_gemm(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
             lt_Matrix b, double beta, lt_Matrix c);
/* Can lt_gemm take this matrix of r x c elements as it is? Otherwise it must be made contiguous. */
bool lt_gemm_takes(lt_Matrix m, int64_t r, int64_t c);
/* May several threads call lt_gemm at once, each on its own, without each starting threads? */
bool lt_gemm_nests(void);

#endif
