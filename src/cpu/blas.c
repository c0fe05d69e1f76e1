/* blas.c: matrix products, by Lutra's own loops (product.c) where they are for the CPU, else by
 * OpenBLAS. The library is loaded at its first use: programs without it do not pay for it, and its
 * core type can be chosen before it detects the CPU. Older releases mistake AMD's AVX-512 CPUs for
 * CPUs without it, and are then half as fast.
 *
 * Everything here is row-major. Without the library, plain loops in cache-sized blocks compute the
 * same products. */
#define _GNU_SOURCE /* strncasecmp */
#include "blas.h"
#include "cpu.h"
#include "capability.h"
#include "dynamic_library.h"
#include "kernel_support.h"
#include "product.h"
#include "worker.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <strings.h>
#include <sys/mman.h>

#ifndef LT_OPENBLAS_NAMES
#define LT_OPENBLAS_NAMES "libopenblas.so.0", "libopenblas.so"
#endif

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };
typedef void (*SgemmFn)(int, int, int, int, int, int, float, const float *, int, const float *, int,
                        float, float *, int);
typedef void (*DgemmFn)(int, int, int, int, int, int, double, const double *, int, const double *,
                        int, double, double *, int);
typedef void (*SgemvFn)(int, int, int, int, float, const float *, int, const float *, int, float,
                        float *, int);
typedef void (*DgemvFn)(int, int, int, int, double, const double *, int, const double *, int,
                        double, double *, int);

static struct {
  void *handle;
  SgemmFn sgemm; /* NULL: no library */
  DgemmFn dgemm;
  SgemvFn sgemv;
  DgemvFn dgemv;
  void (*set_threads)(int);
  /* NULL: the library does not export it; buffers are then not reserved */
  void *(*buffer_new)(int);
  void (*buffer_free)(void *);
  bool nests;
  int threads;     /* number of threads set in the library */
  int max_threads; /* number of threads it was built for */
  char core[32];   /* its core type */
  char name[256];
} blas;
static atomic_bool loaded; /* the search for the library has finished, with or without success */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- loading --------------------------------------------------------------------------------- */

/* Returns the core type for this CPU; NULL leaves the choice to the library. OPENBLAS_CORETYPE in
 * the environment is ignored: it is often the lowest common type of several machines, which halves
 * the speed. LUTRA_OPENBLAS_CORETYPE overrides the choice; it was checked when the backend was
 * opened. */
static const char *core_type(void) {
  const char *requested = getenv("LUTRA_OPENBLAS_CORETYPE");
  return requested && *requested ? requested : lt_cpu_core_type(lt_cpu_features());
}

/* Loads one library; returns false if it is missing or lacks a function. */
static bool open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  lt_library_find(library, "cblas_sgemm", &blas.sgemm);
  lt_library_find(library, "cblas_dgemm", &blas.dgemm);
  lt_library_find(library, "cblas_sgemv", &blas.sgemv);
  lt_library_find(library, "cblas_dgemv", &blas.dgemv);
  if (!blas.sgemm || !blas.dgemm || !blas.sgemv || !blas.dgemv) {
    memset(&blas, 0, sizeof blas);
    dlclose(library);
    return false;
  }
  blas.handle = library;
  lt_library_find(library, "openblas_set_num_threads", &blas.set_threads);
  lt_library_find(library, "blas_memory_alloc", &blas.buffer_new);
  lt_library_find(library, "blas_memory_free", &blas.buffer_free);
  char *(*config)(void) = NULL, *(*core)(void) = NULL;
  lt_library_find(library, "openblas_get_config", &config);
  lt_library_find(library, "openblas_get_corename", &core);
  if (config && core) {
    const char *text = config();
    blas.nests = strstr(text, "USE_OPENMP") != NULL;
    const char *most = strstr(text, "MAX_THREADS=");
    blas.max_threads = most ? atoi(most + strlen("MAX_THREADS=")) : 128;
    snprintf(blas.core, sizeof blas.core, "%s", core());
    char version[64];
    snprintf(version, sizeof version, "%.*s", (int)strcspn(text + strcspn(text, "0123456789"), " "),
             text + strcspn(text, "0123456789"));
    snprintf(blas.name, sizeof blas.name, "OpenBLAS %s, core type %s, %s threads", version, core(),
             blas.nests ? "OpenMP" : "its own");
  } else {
    snprintf(blas.name, sizeof blas.name, "%s", path);
  }
  return true;
}

/* Each thread of the library holds a buffer, and each call takes one; mapped buffers are reused and
 * never unmapped. When it cannot map one, a release of the library either retries forever or ends
 * the process. So as many buffers as calls can need at once are mapped in advance, after a check
 * that there is room. */
#define BUFFER  ((size_t)128 << 20) /* at least the library's BUFFER_SIZE */
#define LIBRARY ((size_t)64 << 20)  /* at least the size of the library's mappings */

static struct {
  atomic_int mapped;
  atomic_int in_calls; /* threads that are calling the library */
} buffers;

/* Sets an environment variable (NULL: removes it) and returns a copy of its former value, for
 * restore. */
static char *replace(const char *variable, const char *value) {
  const char *before = getenv(variable);
  char *copy = before ? strdup(before) : NULL;
  if (value)
    setenv(variable, value, 1);
  else
    unsetenv(variable);
  return copy;
}

static void restore(const char *variable, char *before) {
  if (before)
    setenv(variable, before, 1);
  else
    unsetenv(variable);
  free(before);
}

/* Loads the first library found. It reads the environment when it is loaded, and starts with one
 * thread, for whose buffer can_map has checked; use_threads adds threads. */
static void open_any(void) {
  static const char *const names[] = {LT_OPENBLAS_NAMES, "libcblas.so.3", "libblas.so.3"};
  char *core_before = replace("OPENBLAS_CORETYPE", core_type());
  char *threads_before = replace("OPENBLAS_NUM_THREADS", "1");
  for (size_t i = 0; i < sizeof names / sizeof *names && !blas.sgemm; i++) open_library(names[i]);
  restore("OPENBLAS_NUM_THREADS", threads_before);
  restore("OPENBLAS_CORETYPE", core_before);
  if (blas.sgemm) atomic_store(&buffers.mapped, blas.threads = 1);
  if (!blas.sgemm)
    snprintf(blas.name, sizeof blas.name, "not found: plain loops, much slower than OpenBLAS");
}

/* ---- the library's memory -------------------------------------------------------------------- */

/* Returns whether n blocks of memory can be mapped. They are mapped one by one, as the library
 * does. */
static bool can_map(int n, size_t size) {
  void **block = malloc((size_t)n * sizeof *block);
  int count = 0;
  for (; block && count < n; count++) {
    block[count] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block[count] == MAP_FAILED) break;
  }
  for (int i = 0; i < count; i++) munmap(block[i], size);
  free(block);
  return block && count == n;
}

static bool fail_no_room(int count) {
  return lt_error_memory("%s: out of memory: cannot reserve %d MiB of address space for OpenBLAS",
                         lt_user_op(), count * (int)(BUFFER >> 20));
}

/* Loads the library, once. Returns false with the error set when there is no memory for it; then
 * the next call tries again. */
static bool load(void) {
  if (atomic_load_explicit(&loaded, memory_order_acquire)) return true;
  pthread_mutex_lock(&lock);
  bool done = atomic_load(&loaded);
  if (!done && (done = can_map(1, LIBRARY + 2 * BUFFER))) {
    open_any();
    atomic_store_explicit(&loaded, true, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return done || fail_no_room(2);
}

/* Ensures that the library has mapped n buffers; returns false when there is no room for them. */
static bool reserve(int n) {
  if (!blas.buffer_new || !blas.buffer_free || n <= atomic_load(&buffers.mapped)) return true;
  pthread_mutex_lock(&lock);
  int before = atomic_load(&buffers.mapped), more = n - before;
  bool ok = more <= 0 || can_map(more, BUFFER);
  if (ok && more > 0) {
    void **block = calloc((size_t)n, sizeof *block);
    int count = 0;
    for (int in_use = blas.threads; block && count + in_use < n; count++)
      block[count] = blas.buffer_new(0);
    for (int i = 0; i < count; i++) blas.buffer_free(block[i]);
    ok = block != NULL;
    free(block);
    if (ok) atomic_store(&buffers.mapped, n);
  }
  pthread_mutex_unlock(&lock);
  return ok;
}

/* Returns whether the library can allocate what threads use to synchronize in one product; a
 * failure there would end the process. The first block is mapped; when it is freed, malloc switches
 * to its heap for blocks of that size, where the library will find the second. */
static bool can_share_work(void) {
  size_t n = (size_t)blas.max_threads;
  bool ok = true;
  for (int i = 0; ok && i < 2; i++) {
    void *volatile memory = malloc(n * n * 128 + 65536);
    ok = memory != NULL;
    free(memory);
  }
  return ok;
}

/* OpenMP's number of threads before a call was limited to one thread; 0: it was not changed. */
static _Thread_local int threads_before;

/* Sets the library's number of threads. It follows OpenMP's, which is set for each thread
 * separately; when memory is short or one thread is asked for, that is 1 until lt_blas_close. */
static void use_threads(int n) {
  if (lt_worker_generator()) return; /* a worker: the setting is the program's */
  int openmp = omp_get_max_threads();
  if (!blas.set_threads || (blas.threads == n && (!blas.nests || openmp == n))) return;
  blas.set_threads(n);
  blas.threads = n;
  if (n == 1 && openmp > 1) threads_before = openmp;
}

#define SMALL 4096 /* up to this many multiplications products always use one thread */

int lt_blas_open(int callers, double work) {
  if (!load()) return 0;
  if (!blas.sgemm) return callers;
  int in_calls = atomic_fetch_add(&buffers.in_calls, callers) + callers, n = blas.threads;
  bool shared = callers == 1 && work > SMALL;
  if (shared) {
    n = lt_threads_start(lt_num_threads());
    if (n > 1 && !(reserve(n + in_calls) && can_share_work())) n = 1;
  }
  if (!reserve(n + in_calls)) {
    atomic_fetch_sub(&buffers.in_calls, callers);
    if (callers > 1) return lt_blas_open(1, work);
    fail_no_room(n + in_calls);
    return 0;
  }
  if (shared) use_threads(n);
  return callers;
}

bool lt_blas_open_alone(void) {
  if (lt_blas_open(1, 0) == 0) return false;
  if (blas.sgemm) use_threads(1);
  return true;
}

void lt_blas_close(int callers) {
  if (blas.sgemm) atomic_fetch_sub(&buffers.in_calls, callers);
  if (threads_before) omp_set_num_threads(threads_before);
  threads_before = 0;
}

/* ---- queries --------------------------------------------------------------------------------- */

const char *lt_cpu_blas_name(void) { return load() ? blas.name : "not loaded: out of memory"; }

void *lt_blas_symbol(const char *name) {
  return load() && blas.handle ? dlsym(blas.handle, name) : NULL;
}

bool lt_blas_nests(void) { return !load() || blas.nests || !blas.sgemm; }

bool lt_cpu_check_blas(void) {
  const char *requested = getenv("LUTRA_OPENBLAS_CORETYPE");
  if (!requested || !*requested || !load() || !blas.core[0]) return true;
  size_t n = strlen(requested),
         m = strlen(blas.core); /* 0.3.21 swaps the names of the two Opterons */
  if (strncasecmp(requested, blas.core, n < m ? n : m) == 0) return true;
  return lt_error_set(
      "LUTRA_OPENBLAS_CORETYPE: cannot use \"%.40s\": %.*s does not support it and uses %s",
      requested, (int)strcspn(blas.name, ","), blas.name, blas.core);
}

/* ---- plain loops ----------------------------------------------------------------------------- */

/* Computes c += alpha * a @ b for rows [first, last) of c, in blocks of b that fit the cache; row
 * by row, so that the inner loop runs over dense memory of b and c when b's columns are dense. */
#define PLAIN(T)                                                                                   \
  static void plain_##T(int64_t first, int64_t last, int64_t n, int64_t k, T alpha, lt_Matrix am,  \
                        lt_Matrix bm, lt_Matrix cm) {                                              \
    const T *a = am.data, *b = bm.data;                                                            \
    T *c = cm.data;                                                                                \
    for (int64_t p0 = 0; p0 < k; p0 += 64) {                                                       \
      int64_t p1 = k < p0 + 64 ? k : p0 + 64;                                                      \
      for (int64_t i = first; i < last; i++) {                                                     \
        T *out = c + i * cm.row;                                                                   \
        for (int64_t p = p0; p < p1; p++) {                                                        \
          const T factor = alpha * a[i * am.row + p * am.column];                                  \
          const T *in = b + p * bm.row;                                                            \
          if (bm.column == 1)                                                                      \
            for (int64_t j = 0; j < n; j++) out[j] += factor * in[j];                              \
          else                                                                                     \
            for (int64_t j = 0; j < n; j++) out[j] += factor * in[j * bm.column];                  \
        }                                                                                          \
      }                                                                                            \
    }                                                                                              \
  }                                                                                                \
  static void scale_##T(int64_t m, int64_t n, T beta, lt_Matrix cm) {                              \
    for (int64_t i = 0; i < m; i++) {                                                              \
      T *out = (T *)cm.data + i * cm.row;                                                          \
      for (int64_t j = 0; j < n; j++) out[j] = beta == 0 ? 0 : beta * out[j];                      \
    }                                                                                              \
  }                                                                                                \
  static void gemm_##T(int64_t m, int64_t n, int64_t k, T alpha, lt_Matrix a, lt_Matrix b, T beta, \
                       lt_Matrix c) {                                                              \
    if (beta != 1) scale_##T(m, n, beta, c);                                                       \
    int team = lt_team(n <= 0 || k <= 0 ? 0 : m * ((n * k) / 8 + 1), m);                           \
    if (team == 1) {                                                                               \
      plain_##T(0, m, n, k, alpha, a, b, c);                                                       \
      return;                                                                                      \
    }                                                                                              \
    _Pragma("omp parallel for num_threads(team) schedule(static)")                                 \
    for (int64_t i = 0; i < team; i++)                                                             \
      plain_##T(m / team * i, i == team - 1 ? m : m / team * (i + 1), n, k, alpha, a, b, c);       \
  }
PLAIN(float)
PLAIN(double)

/* ---- Lutra's own loops ----------------------------------------------------------------------- */

/* Returns whether products are computed by the loops of product.c, which do not need the
 * library. */
static bool own_loops(void) { return lt_product_loops(LT_float32) != NULL; }

int lt_gemm_open(int callers, double work) {
  return own_loops() ? callers : lt_blas_open(callers, work);
}

void lt_gemm_close(int callers) {
  if (!own_loops()) lt_blas_close(callers);
}

bool lt_gemm_nests(void) { return own_loops() || lt_blas_nests(); }

/* ---- calling --------------------------------------------------------------------------------- */

/* Computes the library's leading dimension and transposition for a matrix; returns false if it has
 * neither dense rows nor dense columns, or is too large. The stride along a single element is
 * ignored. */
static bool leading_dimension(lt_Matrix m, int64_t r, int64_t c, int64_t *ld, int *trans) {
  if ((m.column == 1 || c == 1) && (r == 1 || m.row >= c)) {
    *ld = r == 1 || m.row < 1 ? (c > 1 ? c : 1) : m.row;
    *trans = NO_TRANS;
  } else if ((m.row == 1 || r == 1) && (c == 1 || m.column >= r)) {
    *ld = c == 1 || m.column < 1 ? (r > 1 ? r : 1) : m.column;
    *trans = TRANS;
  } else {
    return false;
  }
  return *ld <= INT32_MAX && r <= INT32_MAX && c <= INT32_MAX;
}

bool lt_gemm_takes(lt_Matrix m, int64_t r, int64_t c) {
  int64_t ld;
  int trans;
  return leading_dimension(m, r, c, &ld, &trans);
}

/* Computes y = A x, with A {r, c}: products with one row or column are twice as fast this way. Sets
 * y to zero first: some libraries multiply uninitialized memory by beta. */
static void gemv(lt_Dtype dtype, int64_t r, int64_t c, double alpha, lt_Matrix a, int64_t ld,
                 int trans, const void *x, int64_t x_step, double beta, void *y, int64_t y_step) {
  int rows = (int)(trans == TRANS ? c : r), columns = (int)(trans == TRANS ? r : c);
  if (beta == 0) {
    size_t size = lt_dtype_size(dtype);
    if (y_step == 1) memset(y, 0, (size_t)r * size);
    for (int64_t i = 0; i < r && y_step != 1; i++)
      memset((char *)y + (size_t)(i * y_step) * size, 0, size);
    beta = 1;
  }
  if (dtype == LT_float32)
    blas.sgemv(ROW_MAJOR, trans, rows, columns, (float)alpha, a.data, (int)ld, x, (int)x_step,
               (float)beta, y, (int)y_step);
  else
    blas.dgemv(ROW_MAJOR, trans, rows, columns, alpha, a.data, (int)ld, x, (int)x_step, beta, y,
               (int)y_step);
}

/* Multiplies with the library; returns false if it is missing or does not accept the matrices. */
static bool by_library(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
                       lt_Matrix b, double beta, lt_Matrix c) {
  int64_t lda, ldb, ldc = c.row > n ? c.row : n > 1 ? n : 1;
  int ta, tb;
  if (!blas.sgemm || !leading_dimension(a, m, k, &lda, &ta) ||
      !leading_dimension(b, k, n, &ldb, &tb) || ldc > INT32_MAX)
    return false;
  if (n == 1 && m > 1 && b.row >= 1 && b.row <= INT32_MAX) {
    gemv(dtype, m, k, alpha, a, lda, ta, b.data, k == 1 ? 1 : b.row, beta, c.data, ldc);
  } else if (m == 1 && n > 1 && a.column >= 1 && a.column <= INT32_MAX) {
    gemv(dtype, n, k, alpha, b, ldb, tb == TRANS ? NO_TRANS : TRANS, a.data, k == 1 ? 1 : a.column,
         beta, c.data, 1);
  } else if (dtype == LT_float32) {
    blas.sgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, (float)alpha, a.data, (int)lda, b.data,
               (int)ldb, (float)beta, c.data, (int)ldc);
  } else {
    blas.dgemm(ROW_MAJOR, ta, tb, (int)m, (int)n, (int)k, alpha, a.data, (int)lda, b.data, (int)ldb,
               beta, c.data, (int)ldc);
  }
  return true;
}

static void multiply(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
                     lt_Matrix b, double beta, lt_Matrix c) {
  if (k > 0 && !own_loops() && by_library(dtype, m, n, k, alpha, a, b, beta, c)) return;
  if (dtype == LT_float32)
    gemm_float(m, n, k, (float)alpha, a, b, (float)beta, c);
  else
    gemm_double(m, n, k, alpha, a, b, beta, c);
}

/* ---- large products, in pieces, with a check for Ctrl-C between them ------------------------- */

/* Splitting a product along k costs the library no time: it processes some hundred columns of a at
 * a time anyway. The split determines how sums are rounded, so it depends on sizes only. Rows and
 * columns of c are split where a piece would still take too long, at whole tiles of the library's
 * kernels: no element's bits depend on that. (Measured at 4096 x 4096: 0.98 to 1.03 of the time in
 * one call; square blocks of full depth: 1.07.) */
enum { DEPTH = 768, COLUMNS = 4096, LEAST_ROWS = 512 };
#define LARGE 0x1p31 /* products with more multiplications are split */

/* Returns the size of the pieces of n: nearly equal ones of at most `most`, multiples of 64. */
static int64_t piece_size(int64_t n, int64_t most) {
  int64_t parts = (n + most - 1) / most;
  return ((n + parts - 1) / parts + 63) / 64 * 64;
}

/* Returns the number of rows of a piece: some 20 to 50 ms of work. */
static int64_t rows_at_once(lt_Dtype dtype, int64_t columns, int64_t depth) {
  double work = (blas.sgemm ? 0x1p31 : 0x1p28) * lt_num_threads() / (dtype == LT_float64 ? 2 : 1);
  int64_t rows = (int64_t)(work / (double)(columns * depth));
  return rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

static lt_Matrix part(lt_Dtype dtype, lt_Matrix m, int64_t row, int64_t column) {
  int64_t at = row * m.row + column * m.column;
  return (lt_Matrix){(char *)m.data + at * (int64_t)lt_dtype_size(dtype), m.row, m.column};
}

void lt_gemm(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
             lt_Matrix b, double beta, lt_Matrix c) {
  lt_gemm_add(dtype, m, n, k, alpha, a, b, beta, c, c);
}

/* Copies z to c, which has dense rows. */
static void copy_matrix(lt_Dtype dtype, int64_t m, int64_t n, lt_Matrix z, lt_Matrix c) {
  int64_t size = (int64_t)lt_dtype_size(dtype);
  for (int64_t i = 0; i < m; i++)
    lt_move(part(dtype, c, i, 0).data, size, part(dtype, z, i, 0).data, z.column * size, n,
            (size_t)size);
}

void lt_gemm_add(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
                 lt_Matrix b, double beta, lt_Matrix z, lt_Matrix c) {
  if (m == 0 || n == 0) return;
  if (k > 0 &&
      lt_product(dtype, m, n, k, (lt_Factor){.f = alpha}, a, b, (lt_Factor){.f = beta}, z, c))
    return;
  if (z.data != c.data && beta != 0) copy_matrix(dtype, m, n, z, c);
  if (m < LEAST_ROWS || n < 64 || (double)m * (double)n * (double)k <= LARGE) {
    multiply(dtype, m, n, k, alpha, a, b, beta, c);
    return;
  }
  int64_t depth = piece_size(k, DEPTH), columns = piece_size(n, COLUMNS);
  int64_t rows = piece_size(m, rows_at_once(dtype, columns, depth));
  for (int64_t i = 0; i < m; i += rows)
    for (int64_t j = 0; j < n; j += columns)
      for (int64_t p = 0; p < k && !lt_stopped(); p += depth)
        multiply(dtype, m - i < rows ? m - i : rows, n - j < columns ? n - j : columns,
                 k - p < depth ? k - p : depth, alpha, part(dtype, a, i, p), part(dtype, b, p, j),
                 p ? 1 : beta, part(dtype, c, i, j));
}
