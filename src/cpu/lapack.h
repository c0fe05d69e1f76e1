/* lapack.h: LAPACK, which OpenBLAS contains, and what the kernels of decompositions share: a loop
 * over the matrices of a batch, and copies between tensors and LAPACK's column-major matrices.
 *
 * LAPACK's functions are called with Fortran's conventions: every argument is a pointer, and the
 * length of each string follows the last argument. Arrays and numbers of the matrix's dtype are
 * void here, so that one member serves all four dtypes. Functions whose arguments differ between
 * real and complex matrices have a member for each. */
#ifndef LT_CPU_LAPACK_H
#define LT_CPU_LAPACK_H

#include "blas.h"

/* The functions for matrices of one dtype; members of the other kind (real, complex) are NULL. */
typedef struct lt_Lapack {
  bool is_complex;
  size_t size;      /* of an element */
  size_t real_size; /* of its real part */
  /* BLAS: solves op(a) x = alpha b or x op(a) = alpha b, with a triangular. */
  void (*trsm)(const char *side, const char *uplo, const char *trans, const char *diag,
               const int *m, const int *n, const void *alpha, const void *a, const int *lda,
               void *b, const int *ldb, size_t, size_t, size_t, size_t);
  void (*potrf)(const char *uplo, const int *n, void *a, const int *lda, int *info, size_t);
  void (*getrf)(const int *m, const int *n, void *a, const int *lda, int *pivots, int *info);
  void (*getri)(const int *n, void *a, const int *lda, const int *pivots, void *work,
                const int *lwork, int *info);
  void (*getrs)(const char *trans, const int *n, const int *nrhs, const void *a, const int *lda,
                const int *pivots, void *b, const int *ldb, int *info, size_t);
  void (*geqrf)(const int *m, const int *n, void *a, const int *lda, void *tau, void *work,
                const int *lwork, int *info);
  void (*orgqr)(const int *m, const int *n, const int *k, void *a, const int *lda, const void *tau,
                void *work, const int *lwork, int *info);
  void (*ormqr)(const char *side, const char *trans, const int *m, const int *n, const int *k,
                const void *a, const int *lda, const void *tau, void *c, const int *ldc, void *work,
                const int *lwork, int *info, size_t, size_t);
  /* Symmetric matrices, and hermitian ones (complex only). */
  void (*sytrf)(const char *uplo, const int *n, void *a, const int *lda, int *pivots, void *work,
                const int *lwork, int *info, size_t);
  void (*hetrf)(const char *uplo, const int *n, void *a, const int *lda, int *pivots, void *work,
                const int *lwork, int *info, size_t);
  void (*sytrs)(const char *uplo, const int *n, const int *nrhs, const void *a, const int *lda,
                const int *pivots, void *b, const int *ldb, int *info, size_t);
  void (*hetrs)(const char *uplo, const int *n, const int *nrhs, const void *a, const int *lda,
                const int *pivots, void *b, const int *ldb, int *info, size_t);
  void (*syevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w,
                void *work, const int *lwork, int *iwork, const int *liwork, int *info, size_t,
                size_t);
  void (*sterf)(const int *n, void *d, void *e, int *info); /* of tridiagonal matrices */
  void (*heevd)(const char *jobz, const char *uplo, const int *n, void *a, const int *lda, void *w,
                void *work, const int *lwork, void *rwork, const int *lrwork, int *iwork,
                const int *liwork, int *info, size_t, size_t);
  void (*geev_real)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda,
                    void *wr, void *wi, void *vl, const int *ldvl, void *vr, const int *ldvr,
                    void *work, const int *lwork, int *info, size_t, size_t);
  void (*geev_complex)(const char *jobvl, const char *jobvr, const int *n, void *a, const int *lda,
                       void *w, void *vl, const int *ldvl, void *vr, const int *ldvr, void *work,
                       const int *lwork, void *rwork, int *info, size_t, size_t);
  void (*gesdd_real)(const char *jobz, const int *m, const int *n, void *a, const int *lda, void *s,
                     void *u, const int *ldu, void *vt, const int *ldvt, void *work,
                     const int *lwork, int *iwork, int *info, size_t);
  void (*gesdd_complex)(const char *jobz, const int *m, const int *n, void *a, const int *lda,
                        void *s, void *u, const int *ldu, void *vt, const int *ldvt, void *work,
                        const int *lwork, void *rwork, int *iwork, int *info, size_t);
  void (*gels)(const char *trans, const int *m, const int *n, const int *nrhs, void *a,
               const int *lda, void *b, const int *ldb, void *work, const int *lwork, int *info,
               size_t);
  void (*gelsy_real)(const int *m, const int *n, const int *nrhs, void *a, const int *lda, void *b,
                     const int *ldb, int *jpvt, const void *rcond, int *rank, void *work,
                     const int *lwork, int *info);
  void (*gelsy_complex)(const int *m, const int *n, const int *nrhs, void *a, const int *lda,
                        void *b, const int *ldb, int *jpvt, const void *rcond, int *rank,
                        void *work, const int *lwork, void *rwork, int *info);
  void (*gelss_real)(const int *m, const int *n, const int *nrhs, void *a, const int *lda, void *b,
                     const int *ldb, void *s, const void *rcond, int *rank, void *work,
                     const int *lwork, int *info);
  void (*gelss_complex)(const int *m, const int *n, const int *nrhs, void *a, const int *lda,
                        void *b, const int *ldb, void *s, const void *rcond, int *rank, void *work,
                        const int *lwork, void *rwork, int *info);
  void (*gelsd_real)(const int *m, const int *n, const int *nrhs, void *a, const int *lda, void *b,
                     const int *ldb, void *s, const void *rcond, int *rank, void *work,
                     const int *lwork, int *iwork, int *info);
  void (*gelsd_complex)(const int *m, const int *n, const int *nrhs, void *a, const int *lda,
                        void *b, const int *ldb, void *s, const void *rcond, int *rank, void *work,
                        const int *lwork, void *rwork, int *iwork, int *info);
} lt_Lapack;

/* Returns the functions for float32, float64, complex64 or complex128. Loads the library first.
 * NULL with an error when it has no LAPACK. */
const lt_Lapack *lt_lapack(lt_Dtype dtype);

/* Returns the size of the workspace that a query of LAPACK has stored in `work`: its real part. */
int lt_lapack_work(const lt_Lapack *f, const void *work);

/* ---- batches --------------------------------------------------------------------------------- */

/* Computes matrix `at` of a batch, with `scratch`, uninitialized memory of its own. */
typedef void (*lt_MatrixFn)(void *context, int64_t at, char *scratch);

/* The multiplications up to which LAPACK is faster on one thread than on several: of functions that
 * consist of products of matrices, and of those that multiply by vectors half of their time. */
#define LT_ALONE_MATRICES 2e7
#define LT_ALONE_VECTORS  5e8

/* Runs fn for each of `count` matrices. `work` is the number of multiplications for one of them. Up
 * to `alone` each is computed on one thread, several at once; above, one after the other with all
 * threads in LAPACK. `scratch` is the bytes that fn needs. After an interrupt the others are
 * skipped. Returns false with an error when memory is out. */
bool lt_matrices_run(int64_t count, double work, double alone, size_t scratch, lt_MatrixFn fn,
                     void *context);

/* Does the same for functions that do not call the library. */
bool lt_matrices_each(int64_t count, double work, size_t scratch, lt_MatrixFn fn, void *context);

/* Returns the number of matrices in t, of `dims` last dimensions (2, or 1 for vectors). */
int64_t lt_matrices_count(const lt_Tensor *t, int dims);
/* Returns matrix `at` of t, of any strides. */
lt_Matrix lt_matrix_of(const lt_Tensor *t, int64_t at);
/* Copies matrix `at` of t, of any strides, to column-major memory with leading dimension ld; with
 * `transposed`, its transpose. */
void lt_matrix_get(const lt_Tensor *t, int64_t at, bool transposed, void *to, int64_t ld);
/* Copies column-major memory of r x c elements with leading dimension ld to the top left corner of
 * matrix `at` of t, which is contiguous; with `transposed`, its transpose. */
void lt_matrix_put(lt_Tensor *t, int64_t at, bool transposed, const void *from, int64_t ld,
                   int64_t r, int64_t c);
/* Returns the address of vector `at` (n elements) of a contiguous tensor. */
static inline void *lt_vector_at(const lt_Tensor *t, int64_t at, int64_t n) {
  return (char *)lt_tensor_data(t) + (size_t)(at * n) * lt_dtype_size(t->dtype);
}
/* Returns the address of one element of column-major memory. */
static inline char *lt_matrix_at(const lt_Lapack *f, void *a, int64_t ld, int64_t i, int64_t j) {
  return (char *)a + (size_t)(i + j * ld) * f->size;
}
/* Rounds up to whole cache lines, for parts of scratch memory. */
static inline size_t lt_lines_of(size_t bytes) { return (bytes + 63) / 64 * 64; }
/* Takes `bytes` from the scratch memory at *at. */
static inline void *lt_take(char **at, size_t bytes) {
  char *p = *at;
  *at += lt_lines_of(bytes);
  return p;
}

#endif
