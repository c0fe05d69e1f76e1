/* blas.h: products of float matrices, by Lutra's own loops for the CPU's instruction set, else by
 * OpenBLAS or, without the library, by plain loops. Calls of LAPACK's functions.
 *
 * Usage: lt_gemm_open, then any number of lt_gemm, then lt_gemm_close. */
#ifndef LT_CPU_BLAS_H
#define LT_CPU_BLAS_H

#include "kernel.h"

/* A matrix in memory: element (i, j) is data[i * row + j * column]; strides are in elements and not
 * negative. */
typedef struct lt_Matrix {
  void *data;
  int64_t row, column;
} lt_Matrix;

/* Prepares calls of lt_gemm by `callers` threads at once; `work` is the number of multiplications.
 * Returns how many threads may call, `callers` or 1: several callers run on one thread each, a
 * single one on all threads. Returns 0 with an error when memory is out, which OpenBLAS would not
 * report but end the process. lt_gemm_close ends it, with the number returned. */
int lt_gemm_open(int callers, double work);
void lt_gemm_close(int callers);

/* Computes c = alpha * a @ b + beta * c; a {m, k}, b {k, n}, c {m, n} with dense rows. dtype is
 * float32 or float64. With beta 0, c is not read. Inside a parallel region it uses one thread. An
 * interrupt leaves c incomplete. */
void lt_gemm(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
             lt_Matrix b, double beta, lt_Matrix c);
/* Computes c = alpha * a @ b + beta * z. z {m, n} is c, or shares no memory with it; its strides
 * may be 0. */
void lt_gemm_add(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
                 lt_Matrix b, double beta, lt_Matrix z, lt_Matrix c);
/* Returns whether lt_gemm accepts this r x c matrix as it is; otherwise make it contiguous
 * first. */
bool lt_gemm_takes(lt_Matrix m, int64_t r, int64_t c);
/* Returns a symbol of the library (which is loaded first), such as "dgesdd_"; NULL when it has none
 * of this name or there is no library. */
void *lt_blas_symbol(const char *name);
/* Returns whether several threads may call lt_gemm at once without each of them starting
 * threads. */
bool lt_gemm_nests(void);
/* Do the same for functions of the library. */
int lt_blas_open(int callers, double work);
/* Prepares calls by one caller that run on one thread; false with an error when memory is out.
 * Functions of LAPACK divide even products of 4 x 4 otherwise. lt_blas_close(1) ends it. */
bool lt_blas_open_alone(void);
void lt_blas_close(int callers);
bool lt_blas_nests(void);

#endif
