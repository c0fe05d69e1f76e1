/* solver.h: cuSOLVER, and cuBLAS's functions for triangular systems: loaded when first used, and
 * run over batches of matrices. The rows of linalg*.c use it; where it is not found, they run on
 * the host.
 *
 * Matrices are column-major, as in LAPACK. Where that saves a copy, a row-major matrix is passed as
 * its transpose. Enumerations and statuses are int, handles and numbers of the matrix's dtype void,
 * so that one member serves all four dtypes and no header of the toolkit is needed. */
#ifndef LT_CUDA_SOLVER_H
#define LT_CUDA_SOLVER_H

#include "cuda.h"

/* Values of cuBLAS's and cuSOLVER's enumerations. */
enum { LT_SOLVER_LOWER, LT_SOLVER_UPPER };
enum { LT_SOLVER_LEFT, LT_SOLVER_RIGHT };
enum { LT_SOLVER_PLAIN, LT_SOLVER_TRANSPOSED, LT_SOLVER_ADJOINT };

/* The functions for matrices of one dtype. The first argument is the handle; *_size stores the
 * number of elements of the workspace. `pivots`, `info` and all matrices are on the device. */
typedef struct lt_CudaSolver {
  bool is_complex;
  int (*potrf_size)(void *, int uplo, int n, void *a, int lda, int *lwork);
  int (*potrf)(void *, int uplo, int n, void *a, int lda, void *work, int lwork, int *info);
  int (*potrf_batched)(void *, int uplo, int n, void **a, int lda, int *info, int count);
  int (*getrf_size)(void *, int m, int n, void *a, int lda, int *lwork);
  int (*getrf)(void *, int m, int n, void *a, int lda, void *work, int *pivots, int *info);
  int (*getrs)(void *, int trans, int n, int nrhs, const void *a, int lda, const int *pivots,
               void *b, int ldb, int *info);
  int (*geqrf_size)(void *, int m, int n, void *a, int lda, int *lwork);
  int (*geqrf)(void *, int m, int n, void *a, int lda, void *tau, void *work, int lwork, int *info);
  int (*orgqr_size)(void *, int m, int n, int k, const void *a, int lda, const void *tau,
                    int *lwork);
  int (*orgqr)(void *, int m, int n, int k, void *a, int lda, const void *tau, void *work,
               int lwork, int *info);
  int (*ormqr_size)(void *, int side, int trans, int m, int n, int k, const void *a, int lda,
                    const void *tau, const void *c, int ldc, int *lwork);
  int (*ormqr)(void *, int side, int trans, int m, int n, int k, const void *a, int lda,
               const void *tau, void *c, int ldc, void *work, int lwork, int *info);
  int (*syevd_size)(void *, int vectors, int uplo, int n, const void *a, int lda, const void *w,
                    int *lwork);
  int (*syevd)(void *, int vectors, int uplo, int n, void *a, int lda, void *w, void *work,
               int lwork, int *info);
  int (*gesvd_size)(void *, int m, int n, int *lwork);
  int (*gesvd)(void *, signed char jobu, signed char jobvt, int m, int n, void *a, int lda, void *s,
               void *u, int ldu, void *vt, int ldvt, void *work, int lwork, void *rwork, int *info);
  /* cuBLAS. `alpha` and getrs_batched's `info`, one number, are on the host. */
  int (*trsm)(void *, int side, int uplo, int trans, int unit, int m, int n, const void *alpha,
              const void *a, int lda, void *b, int ldb);
  int (*trsm_batched)(void *, int side, int uplo, int trans, int unit, int m, int n,
                      const void *alpha, void *const *a, int lda, void *const *b, int ldb,
                      int count);
  int (*getrf_batched)(void *, int n, void *const *a, int lda, int *pivots, int *info, int count);
  int (*getrs_batched)(void *, int trans, int n, int nrhs, void *const *a, int lda,
                       const int *pivots, void *const *b, int ldb, int *info, int count);
} lt_CudaSolver;

enum { LT_SOLVER_HELD = 12 };

/* A call over `count` matrices {m, n} of argument 0. */
typedef struct lt_SolverJob {
  lt_Call *c;
  const lt_CudaSolver *f;
  void *solver, *blas; /* the handles, while functions run */
  int m, n, k;         /* k = min(m, n) */
  int64_t count;
  int64_t size; /* of an element in bytes */
  int nrhs;     /* right sides, or columns of another operand */
  int lwork;    /* elements of the workspace */
  void *work;
  int *info;                         /* of each matrix */
  char *a, *b, *s, *u, *v;           /* the first matrix of each operand, by the row */
  int *pivots;                       /* k of each matrix */
  bool flag[3];                      /* boolean arguments, by the row */
  int held;                          /* number of the tensors below */
  lt_Tensor *tensor[LT_SOLVER_HELD]; /* scratch memory, released by lt_solver_close */
} lt_SolverJob;

/* Opens a call. Returns false, without an error, where it must run on the host: without the
 * library, without elements in a tensor, or with sizes that exceed an int, which is an error
 * there. */
bool lt_solver_open(lt_SolverJob *j, lt_Call *c);
/* Releases the call's scratch memory. Returns ok. */
bool lt_solver_close(lt_SolverJob *j, bool ok);
/* Returns scratch memory of that many elements, or NULL with an error. */
void *lt_solver_memory(lt_SolverJob *j, lt_Dtype dtype, int64_t numel);

/* Keeps t, which may be NULL, until the call is closed. Returns its memory. */
void *lt_solver_hold(lt_SolverJob *j, lt_Tensor *t);

/* Calls functions of the library for matrix `at`; returns their status. */
typedef int (*lt_SolverFn)(lt_SolverJob *j, int64_t at);
/* Runs fn for at = 0 .. count - 1 on the call's stream, with the device's handles, which it locks:
 * fn allocates nothing. `name` is the library's function, for messages. */
bool lt_solver_run(lt_SolverJob *j, const char *name, lt_SolverFn fn, int64_t count);
/* Runs fn once, which sets j->lwork, and allocates j->work. */
bool lt_solver_query(lt_SolverJob *j, const char *name, lt_SolverFn fn);
/* Returns true when the matrices are many and small (n rows), so that one launch for all is faster
 * than one for each. */
bool lt_solver_is_batched(const lt_SolverJob *j, int n);
/* Returns the addresses of `count` matrices, `step` elements apart, in device memory. NULL with an
 * error. */
void **lt_solver_addresses(lt_SolverJob *j, void *first, int64_t step);

/* Returns a scratch copy of t whose matrices are column-major, or, with `transposed`, row-major,
 * which is their transpose in column-major order. NULL with an error. */
char *lt_solver_load(lt_SolverJob *j, lt_Tensor *t, bool transposed);
/* Returns such a copy in column-major memory with at least as many columns, of which the others are
 * uninitialized. */
char *lt_solver_load_wide(lt_SolverJob *j, lt_Tensor *t, int64_t columns);
/* Copies column-major matrices with `ld` rows and `columns` columns, of which the top left corners
 * are used, to out. */
bool lt_solver_store(lt_SolverJob *j, const void *from, int64_t ld, int64_t columns,
                     lt_Tensor *out);
/* Sets the elements of a contiguous result outside one triangle to 0. */
bool lt_solver_triangle(const lt_SolverJob *j, lt_Tensor *out, bool upper);
/* Reads the info of all matrices, which blocks the host. Returns false with an error when it cannot
 * be read. *at is the first matrix whose info is not 0, and *value its info; -1 when there is
 * none. */
bool lt_solver_info(lt_SolverJob *j, int64_t *at, int *value);

#endif
