/* lapack.c: finds LAPACK's functions in the library that blas.c loads, and runs them over batches.
 *
 * Invariant: LAPACK is called only between lt_blas_open and lt_blas_close, because OpenBLAS ends
 * the process when it cannot allocate memory. */
#include "lapack.h"
#include "cpu.h"
#include "kernel_support.h"
#include "moves.h"

#include <pthread.h>

/* A member, and its names for float32, float64, complex64 and complex128; NULL where there is
 * none. */
typedef struct Name {
  size_t member;
  const char *name[4];
} Name;

#define AT(member) offsetof(lt_Lapack, member)
static const Name names[] = {
    {AT(trsm), {"strsm_", "dtrsm_", "ctrsm_", "ztrsm_"}},
    {AT(potrf), {"spotrf_", "dpotrf_", "cpotrf_", "zpotrf_"}},
    {AT(getrf), {"sgetrf_", "dgetrf_", "cgetrf_", "zgetrf_"}},
    {AT(getri), {"sgetri_", "dgetri_", "cgetri_", "zgetri_"}},
    {AT(getrs), {"sgetrs_", "dgetrs_", "cgetrs_", "zgetrs_"}},
    {AT(geqrf), {"sgeqrf_", "dgeqrf_", "cgeqrf_", "zgeqrf_"}},
    {AT(orgqr), {"sorgqr_", "dorgqr_", "cungqr_", "zungqr_"}},
    {AT(ormqr), {"sormqr_", "dormqr_", "cunmqr_", "zunmqr_"}},
    {AT(sytrf), {"ssytrf_", "dsytrf_", "csytrf_", "zsytrf_"}},
    {AT(hetrf), {NULL, NULL, "chetrf_", "zhetrf_"}},
    {AT(sytrs), {"ssytrs_", "dsytrs_", "csytrs_", "zsytrs_"}},
    {AT(hetrs), {NULL, NULL, "chetrs_", "zhetrs_"}},
    {AT(syevd), {"ssyevd_", "dsyevd_", NULL, NULL}},
    {AT(sterf), {"ssterf_", "dsterf_", NULL, NULL}},
    {AT(heevd), {NULL, NULL, "cheevd_", "zheevd_"}},
    {AT(geev_real), {"sgeev_", "dgeev_", NULL, NULL}},
    {AT(geev_complex), {NULL, NULL, "cgeev_", "zgeev_"}},
    {AT(gesdd_real), {"sgesdd_", "dgesdd_", NULL, NULL}},
    {AT(gesdd_complex), {NULL, NULL, "cgesdd_", "zgesdd_"}},
    {AT(gels), {"sgels_", "dgels_", "cgels_", "zgels_"}},
    {AT(gelsy_real), {"sgelsy_", "dgelsy_", NULL, NULL}},
    {AT(gelsy_complex), {NULL, NULL, "cgelsy_", "zgelsy_"}},
    {AT(gelss_real), {"sgelss_", "dgelss_", NULL, NULL}},
    {AT(gelss_complex), {NULL, NULL, "cgelss_", "zgelss_"}},
    {AT(gelsd_real), {"sgelsd_", "dgelsd_", NULL, NULL}},
    {AT(gelsd_complex), {NULL, NULL, "cgelsd_", "zgelsd_"}},
};

static lt_Lapack tables[4];
static const char *missing; /* the name of a function that the library lacks */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void find_all(void) {
  static const lt_Dtype dtypes[] = {LT_float32, LT_float64, LT_complex64, LT_complex128};
  for (int d = 0; d < 4; d++) {
    tables[d].is_complex = d >= 2;
    tables[d].size = lt_dtype_size(dtypes[d]);
    tables[d].real_size = d % 2 ? sizeof(double) : sizeof(float);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
      if (!names[i].name[d]) continue;
      void *symbol = lt_blas_symbol(names[i].name[d]);
      if (!symbol && !missing) missing = names[i].name[d];
      memcpy((char *)&tables[d] + names[i].member, &symbol, sizeof symbol);
    }
  }
}

const lt_Lapack *lt_lapack(lt_Dtype dtype) {
  if (!lt_blas_open(1, 0)) return NULL; /* loads the library, or reports that there is no memory */
  lt_blas_close(1);
  pthread_once(&once, find_all);
  if (missing) {
    lt_fail("cannot run: the library for matrix products has no LAPACK function %s\nhint: install "
            "OpenBLAS (Debian: libopenblas0-openmp)",
            missing);
    return NULL;
  }
  return &tables[(dtype == LT_float64 || dtype == LT_complex128) + 2 * lt_dtype_is_complex(dtype)];
}

int lt_lapack_work(const lt_Lapack *f, const void *work) {
  float single;
  double number;
  memcpy(&single, work, sizeof single);
  memcpy(&number, work, f->real_size == sizeof number ? sizeof number : sizeof single);
  if (f->real_size == sizeof single) number = (double)single * (1 + 1e-6); /* it was rounded */
  return number < 1 ? 1 : number > INT32_MAX ? INT32_MAX : (int)number + 1;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* Returns the number of threads that share a batch of matrices, each of them on one thread. The
 * smallest matrices take about 60 ns. */
static int batch_team(int64_t count, double work) {
  int threads = lt_num_threads();
  if (count < 2) return 1;
  if (count < threads) threads = (int)count;
  double grains = (work + 500) * (double)count / LT_GRAIN;
  int team = grains < threads ? (int)grains > 1 ? (int)grains : 1 : threads;
  return lt_threads_start(team);
}

typedef struct Batch {
  size_t scratch;
  lt_MatrixFn fn;
  void *context;
  atomic_bool no_memory;
} Batch;

/* Runs matrices first .. last - 1 on this thread. */
static void run_some(Batch *b, int64_t first, int64_t last) {
  char *memory = lt_cpu_scratch(b->scratch + 64);
  if (!memory) atomic_store(&b->no_memory, true);
  for (int64_t i = first; memory && i < last && !lt_stopped(); i++) b->fn(b->context, i, memory);
  if (memory) lt_cpu_free(NULL, 0, memory, b->scratch + 64, NULL);
}

bool lt_matrices_each(int64_t count, double work, size_t scratch, lt_MatrixFn fn, void *context) {
  Batch b = {.scratch = scratch, .fn = fn, .context = context};
  LT_IN_TEAM(batch_team(count, work), count, run_some(&b, first, last));
  return !b.no_memory || lt_fail_memory();
}

bool lt_matrices_run(int64_t count, double work, double alone, size_t scratch, lt_MatrixFn fn,
                     void *context) {
  if (count == 0) return true;
  Batch b = {.scratch = scratch, .fn = fn, .context = context};
  int team = work <= alone && lt_blas_nests() ? batch_team(count, work) : 1;
  if (team == 1 && work <= alone)
    team = lt_blas_open_alone();
  else
    team = lt_blas_open(team, work);
  if (team == 0) return false;
  LT_IN_TEAM(team, count, run_some(&b, first, last));
  lt_blas_close(team);
  return !b.no_memory || lt_fail_memory();
}

int64_t lt_matrices_count(const lt_Tensor *t, int dims) {
  int64_t n = 1;
  for (int d = 0; d < t->ndim - dims; d++) n *= t->shape[d];
  return n;
}

/* Returns the address of the first element of matrix `at`. */
static char *first_of(const lt_Tensor *t, int64_t at) {
  int64_t offset = 0;
  for (int d = t->ndim - 3; d >= 0; d--) {
    offset += at % t->shape[d] * t->strides[d];
    at /= t->shape[d];
  }
  return (char *)lt_tensor_data(t) + offset * (int64_t)lt_dtype_size(t->dtype);
}

lt_Matrix lt_matrix_of(const lt_Tensor *t, int64_t at) {
  return (lt_Matrix){first_of(t, at), t->strides[t->ndim - 2], t->strides[t->ndim - 1]};
}

/* Copies r x c elements; strides in elements. */
static void copy_matrix(size_t size, int64_t r, int64_t c, const char *from, int64_t from_row,
                        int64_t from_column, char *to, int64_t to_row, int64_t to_column) {
  enum { BLOCK = 32 };
  const lt_Mover *mover = lt_mover((int64_t)size);
  int64_t s = (int64_t)size;
  if (r == 0 || c == 0) return;
  if ((from_row == 1 && to_row == 1) || (from_column == 1 && to_column == 1)) {
    bool rows = from_column == 1 && to_column == 1;
    int64_t count = rows ? r : c, from_step = rows ? from_row : from_column;
    int64_t to_step = rows ? to_row : to_column;
    for (int64_t i = 0; i < count; i++)
      memcpy(to + i * to_step * s, from + i * from_step * s, (size_t)((rows ? c : r) * s));
    return;
  }
  if (from_row == 1 && to_column == 1) {
    mover->tile(r, c, to, to_row * s, from, from_column * s);
    return;
  }
  if (from_column == 1 && to_row == 1) {
    mover->tile(c, r, to, to_column * s, from, from_row * s);
    return;
  }
  for (int64_t i0 = 0; i0 < r; i0 += BLOCK) /* one may be read or written across its memory */
    for (int64_t j = 0; j < c; j++) {
      int64_t n = r - i0 < BLOCK ? r - i0 : BLOCK;
      mover->move(n, to + (i0 * to_row + j * to_column) * s, to_row * s,
                  from + (i0 * from_row + j * from_column) * s, from_row * s);
    }
}

void lt_matrix_get(const lt_Tensor *t, int64_t at, bool transposed, void *to, int64_t ld) {
  int d = t->ndim;
  copy_matrix(lt_dtype_size(t->dtype), t->shape[d - 2], t->shape[d - 1], first_of(t, at),
              t->strides[d - 2], t->strides[d - 1], to, transposed ? ld : 1, transposed ? 1 : ld);
}

void lt_matrix_put(lt_Tensor *t, int64_t at, bool transposed, const void *from, int64_t ld,
                   int64_t r, int64_t c) {
  int64_t row = transposed ? 1 : t->shape[t->ndim - 1],
          column = transposed ? t->shape[t->ndim - 1] : 1;
  copy_matrix(lt_dtype_size(t->dtype), r, c, from, 1, ld, first_of(t, at), row, column);
}
