/* blas.c: OpenBLAS, loaded at its first use: programs that multiply no matrices do not pay for it,
 * and its core type can be chosen before it looks at the CPU. Older releases take AMD's AVX-512
 * chips for chips without it, and are then half as fast.
 *
 * Everything here is row-major. Without the library, plain loops in cache-sized blocks give the
 * same results.
 */
#include "blas.h"
#include "cpu.h"
#include "structured.h"

#include <dlfcn.h>
#include <pthread.h>

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
  bool nests;
  int threads; /* that the library was told to use */
  char name[256];
} blas;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- loading --------------------------------------------------------------------------------- */

/* The core type that suits this CPU better than the library's own choice may; NULL: leave it to
 * the library. What the environment says in OPENBLAS_CORETYPE is often a whole machine's lowest
 * common type, and halves the speed: a user who wants another core for Lutra sets
 * LUTRA_OPENBLAS_CORETYPE. */
static const char *core_type(void) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (__builtin_cpu_is("amd") && avx512) return "SKYLAKEX";
#endif
  return NULL;
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
  char *(*config)(void) = NULL, *(*core)(void) = NULL;
  void *symbol = find(library, "openblas_get_config");
  memcpy(&config, &symbol, sizeof symbol);
  symbol = find(library, "openblas_get_corename");
  memcpy(&core, &symbol, sizeof symbol);
  if (config && core) {
    const char *text = config();
    blas.nests = strstr(text, "USE_OPENMP") != NULL;
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

static void load(void) {
  static const char *const names[] = {LT_OPENBLAS_NAMES, "libcblas.so.3", "libblas.so.3"};
  const char *told = getenv("LUTRA_OPENBLAS_CORETYPE"), *inherited = getenv("OPENBLAS_CORETYPE");
  const char *core = told ? told : core_type();
  char *before = core && inherited ? strdup(inherited) : NULL;
  if (core) setenv("OPENBLAS_CORETYPE", core, 1);
  for (size_t i = 0; i < sizeof names / sizeof *names && !blas.sgemm; i++) open_library(names[i]);
  if (core && before)
    setenv("OPENBLAS_CORETYPE", before, 1);
  else if (core)
    unsetenv("OPENBLAS_CORETYPE");
  free(before);
  if (!blas.sgemm)
    snprintf(blas.name, sizeof blas.name, "none found: plain loops, much slower than OpenBLAS");
}

const char *lt_cpu_blas_name(void) {
  pthread_once(&once, load);
  return blas.name;
}

bool lt_gemm_nests(void) {
  pthread_once(&once, load);
  return blas.nests || !blas.sgemm;
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

static void follow_threads(void) {
  int n = lt_num_threads();
  if (!blas.set_threads || blas.threads == n) return;
  blas.threads = n;
  blas.set_threads(n);
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
 * anyway. But that decides how sums are rounded, so it depends on sizes alone. Rows and columns of c
 * are cut where a piece would still take too long, at whole tiles of the library's kernels: no
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
  pthread_once(&once, load);
  if (m == 0 || n == 0) return;
  if (k > 0) follow_threads();
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
