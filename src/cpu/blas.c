/* blas.c: OpenBLAS, loaded at its first use: programs that multiply no matrices do not pay for it,
 * and its core type can be chosen before it looks at the CPU. Older releases take AMD's AVX-512
 * chips for chips without it, and are then half as fast.
 *
 * Everything here is row-major. Without the library, plain loops in cache-sized blocks give the
 * same results.
 */
#define _GNU_SOURCE /* strncasecmp */
#include "blas.h"
#include "cpu.h"
#include "capability.h"
#include "kernel_support.h"

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
  SgemmFn sgemm; /* NULL: no library */
  DgemmFn dgemm;
  SgemvFn sgemv;
  DgemvFn dgemv;
  void (*set_threads)(int);
  void *(*buffer_new)(int); /* NULL: the library does not say; buffers are then not reserved */
  void (*buffer_free)(void *);
  bool nests;
  int threads;     /* that the library was told to use */
  int max_threads; /* that it was built for */
  char core[32];   /* its core type */
  char name[256];
} blas;
static atomic_bool loaded; /* or looked for in vain */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- loading --------------------------------------------------------------------------------- */

/* The core type for this CPU; NULL: leave it to the library. What the environment says in
 * OPENBLAS_CORETYPE is not used: it is often the lowest common type of several machines, which
 * halves the speed. A user who wants another core for Lutra sets LUTRA_OPENBLAS_CORETYPE, which was
 * checked when the backend was opened. */
static const char *core_type(void) {
  const char *told = getenv("LUTRA_OPENBLAS_CORETYPE");
  return told && *told ? told : lt_cpu_core_type(lt_cpu_features());
}

static void *find(void *library, const char *name) { return dlsym(library, name); }
/* ISO C does not turn a pointer to data into one to a function by a cast. */
#define FIND(field, name)                                                                          \
  do {                                                                                             \
    void *symbol = find(library, name);                                                            \
    memcpy(&blas.field, &symbol, sizeof symbol);                                                   \
  } while (0)

static bool open_library(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
  FIND(sgemm, "cblas_sgemm");
  FIND(dgemm, "cblas_dgemm");
  FIND(sgemv, "cblas_sgemv");
  FIND(dgemv, "cblas_dgemv");
  if (!blas.sgemm || !blas.dgemm || !blas.sgemv || !blas.dgemv) {
    memset(&blas, 0, sizeof blas);
    dlclose(library);
    return false;
  }
  FIND(set_threads, "openblas_set_num_threads");
  FIND(buffer_new, "blas_memory_alloc");
  FIND(buffer_free, "blas_memory_free");
  char *(*config)(void) = NULL, *(*core)(void) = NULL;
  void *symbol = find(library, "openblas_get_config");
  memcpy(&config, &symbol, sizeof symbol);
  symbol = find(library, "openblas_get_corename");
  memcpy(&core, &symbol, sizeof symbol);
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

/* Every thread of the library keeps a buffer, and every call takes one; a buffer that was mapped is
 * used again, and never unmapped. A release either tries for ever to map one, or ends the process.
 * So as many as calls can need at once are mapped before, where it was seen that there is room. */
#define BUFFER  ((size_t)128 << 20) /* its BUFFER_SIZE, or more */
#define LIBRARY ((size_t)64 << 20)  /* what the library's file takes, or more */

static struct {
  atomic_int mapped;
  atomic_int in_calls; /* of the threads that call the library now */
} buffers;

/* Sets a variable while the library is loaded (NULL: removes it). Returns what it was before, for
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

/* The library reads the environment when it is loaded. It starts with one thread, whose buffer
 * can_map was asked about; use_threads gives it more. */
static void open_any(void) {
  static const char *const names[] = {LT_OPENBLAS_NAMES, "libcblas.so.3", "libblas.so.3"};
  char *core_before = replace("OPENBLAS_CORETYPE", core_type());
  char *threads_before = replace("OPENBLAS_NUM_THREADS", "1");
  for (size_t i = 0; i < sizeof names / sizeof *names && !blas.sgemm; i++) open_library(names[i]);
  restore("OPENBLAS_NUM_THREADS", threads_before);
  restore("OPENBLAS_CORETYPE", core_before);
  if (blas.sgemm) atomic_store(&buffers.mapped, blas.threads = 1);
  if (!blas.sgemm)
    snprintf(blas.name, sizeof blas.name, "none found: plain loops, much slower than OpenBLAS");
}

/* ---- the library's memory -------------------------------------------------------------------- */

/* Is there room for n blocks of memory? They are mapped one by one, as the library does. */
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

static bool no_room(int count) {
  return lt_error_memory("%s: out of memory: cannot reserve %d MiB of address space for OpenBLAS",
                         lt_user_op(), count * (int)(BUFFER >> 20));
}

/* Loads the library, once. False where its memory cannot be had; then the next call tries again. */
static bool load(void) {
  if (atomic_load_explicit(&loaded, memory_order_acquire)) return true;
  pthread_mutex_lock(&lock);
  bool done = atomic_load(&loaded);
  if (!done && (done = can_map(1, LIBRARY + 2 * BUFFER))) {
    open_any();
    atomic_store_explicit(&loaded, true, memory_order_release);
  }
  pthread_mutex_unlock(&lock);
  return done || no_room(2);
}

/* Has the library mapped n buffers? Maps those that are missing. */
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

/* What a product on several threads allocates for their messages to each other: a failure would end
 * the process. The first block is mapped; when it is freed, malloc decides to take the next of that
 * size from its heap, where the library will find the second. */
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

/* OpenMP's number of threads before a product that had to do with one; 0: it is as it was. */
static _Thread_local int narrowed;

/* Tells the library to use n threads. It follows OpenMP's number, which is each thread's own; where
 * memory is short, it is 1 until lt_gemm_close. */
static void use_threads(int n) {
  int openmp = omp_get_max_threads();
  if (!blas.set_threads || (blas.threads == n && (!blas.nests || openmp == n))) return;
  blas.set_threads(n);
  blas.threads = n;
  if (n == 1 && openmp > 1) narrowed = openmp;
}

#define SMALL 4096 /* multiplications, up to which the library uses one thread for certain */

int lt_gemm_open(int callers, double work) {
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
    if (callers > 1) return lt_gemm_open(1, work);
    no_room(n + in_calls);
    return 0;
  }
  if (shared) use_threads(n);
  return callers;
}

void lt_gemm_close(int callers) {
  if (blas.sgemm) atomic_fetch_sub(&buffers.in_calls, callers);
  if (narrowed) omp_set_num_threads(narrowed);
  narrowed = 0;
}

/* ---- what others ask ------------------------------------------------------------------------- */

const char *lt_cpu_blas_name(void) { return load() ? blas.name : "not loaded: out of memory"; }

bool lt_gemm_nests(void) { return !load() || blas.nests || !blas.sgemm; }

bool lt_cpu_check_blas(void) {
  const char *told = getenv("LUTRA_OPENBLAS_CORETYPE");
  if (!told || !*told || !load() || !blas.core[0]) return true;
  size_t n = strlen(told),
         m = strlen(blas.core); /* 0.3.21 calls each Opteron by the other's name */
  if (strncasecmp(told, blas.core, n < m ? n : m) == 0) return true;
  return lt_error_set("LUTRA_OPENBLAS_CORETYPE: cannot use \"%.40s\": %.*s does not have it, and "
                      "uses %s",
                      told, (int)strcspn(blas.name, ","), blas.name, blas.core);
}

/* ---- plain loops ----------------------------------------------------------------------------- */

/* c += alpha * a @ b for rows [first, last) of c, in blocks of b that stay in the cache; row by
 * row, so that the inner loop runs over dense memory of b and c when b's columns are dense. */
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

/* ---- calling --------------------------------------------------------------------------------- */

/* The library's leading dimension and whether it shall transpose. A stride along a single element
 * means nothing. */
static bool lead(lt_Matrix m, int64_t r, int64_t c, int64_t *ld, int *trans) {
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
  return lead(m, r, c, &ld, &trans);
}

/* y = A x, with A {r, c}: products with one row or column are twice as fast this way. Zero first:
 * some libraries multiply what they find by beta. */
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

static bool by_library(lt_Dtype dtype, int64_t m, int64_t n, int64_t k, double alpha, lt_Matrix a,
                       lt_Matrix b, double beta, lt_Matrix c) {
  int64_t lda, ldb, ldc = c.row > n ? c.row : n > 1 ? n : 1;
  int ta, tb;
  if (!blas.sgemm || !lead(a, m, k, &lda, &ta) || !lead(b, k, n, &ldb, &tb) || ldc > INT32_MAX)
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
  if (k > 0 && by_library(dtype, m, n, k, alpha, a, b, beta, c)) return;
  if (dtype == LT_float32)
    gemm_float(m, n, k, (float)alpha, a, b, (float)beta, c);
  else
    gemm_double(m, n, k, alpha, a, b, beta, c);
}

/* ---- large products, in pieces between which Ctrl-C is heard --------------------------------- */

/* Cut along k, a product costs the library no more: it works on some hundred columns of a at a time
 * anyway. But that decides how sums are rounded, so it depends on sizes alone. Rows and columns of
 * c are cut where a piece would still take too long, at whole tiles of the library's kernels: no
 * element's bits depend on that. (Measured at 4096 x 4096: 0.98 to 1.03 of the time in one call;
 * squares of full depth, 1.07.) */
enum { DEPTH = 768, COLUMNS = 4096, LEAST_ROWS = 512 };
#define LARGE 0x1p31 /* multiplications, from which on products are cut */

static int64_t cut(int64_t n, int64_t most) {
  int64_t parts = (n + most - 1) / most;
  return ((n + parts - 1) / parts + 63) / 64 * 64;
}

/* Rows of a piece: some 20 to 50 ms of work. */
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
  if (m == 0 || n == 0) return;
  if (m < LEAST_ROWS || n < 64 || (double)m * (double)n * (double)k <= LARGE) {
    multiply(dtype, m, n, k, alpha, a, b, beta, c);
    return;
  }
  int64_t depth = cut(k, DEPTH), columns = cut(n, COLUMNS);
  int64_t rows = cut(m, rows_at_once(dtype, columns, depth));
  for (int64_t i = 0; i < m; i += rows)
    for (int64_t j = 0; j < n; j += columns)
      for (int64_t p = 0; p < k && !lt_stopped(); p += depth)
        multiply(dtype, m - i < rows ? m - i : rows, n - j < columns ? n - j : columns,
                 k - p < depth ? k - p : depth, alpha, part(dtype, a, i, p), part(dtype, b, p, j),
                 p ? 1 : beta, part(dtype, c, i, j));
}
