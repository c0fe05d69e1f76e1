/* solver.cpp: the functions of cuSOLVER, and of cuBLAS for factors and triangular systems, that
 * ../solver.c uses, each one operation of the handle's stream, on top of the host's LAPACK, which
 * is loaded when first used. */
#include "cuda_runtime.h"
#include "runtime.h"

#include <dlfcn.h>
#include <functional>
#include <string.h>
#include <string>

#ifndef LT_OPENBLAS_NAMES
#define LT_OPENBLAS_NAMES "libopenblas.so.0", "libopenblas.so"
#endif

using namespace emulated;

namespace {

/* A handle of either library. */
struct Handle {
  cudaStream_t stream;
};

/* Statuses; those of cuBLAS differ. */
enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 3, EXECUTION_FAILED = 6 };

/* ---- the host's LAPACK ----------------------------------------------------------------------- */

void *open_library() {
  for (const char *name : {LT_OPENBLAS_NAMES, "liblapack.so.3"}) {
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library && dlsym(library, "zgesvd_") && dlsym(library, "ztrsm_")) return library;
    if (library) dlclose(library);
  }
  return nullptr;
}

void *library() {
  static void *const loaded = open_library();
  return loaded;
}

constexpr bool is_complex(char letter) { return letter == 'C' || letter == 'Z'; }
constexpr size_t real_size(char letter) { return letter == 'D' || letter == 'Z' ? 8 : 4; }
constexpr size_t size_of(char letter) { return real_size(letter) << (int)is_complex(letter); }

/* Calls a function of LAPACK: "potrf" of the dtype with that letter. */
template <char L, class... A> void lapack(const char *name, A... arguments) {
  std::string symbol = (char)(L - 'A' + 'a') + std::string(name) + "_";
  ((void (*)(A...))dlsym(library(), symbol.c_str()))(arguments...);
}

/* Returns a matrix of `rows` x `columns` elements after `count` others. */
template <char L> void *advance(void *a, int64_t count) {
  return (char *)a + (size_t)count * size_of(L);
}

const char *uplo_of(int uplo) { return uplo ? "U" : "L"; }
const char *trans_of(int trans) { return trans == 0 ? "N" : trans == 1 ? "T" : "C"; }

/* Reads the size of a workspace that LAPACK has stored. */
template <char L> size_t work_size(const void *answer) {
  double wide;
  float single;
  memcpy(&wide, answer, sizeof wide);
  memcpy(&single, answer, sizeof single);
  return (size_t)(real_size(L) == 8 ? wide : single * 1.000001) + 1;
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Memory that an operation accesses. */
struct Range {
  const void *first;
  size_t bytes;
};

struct Task {
  std::vector<Range> ranges;
  std::function<void()> function;
};

bool is_accessible(const Range &r) {
  Device *d = device_of(r.first);
  return r.bytes == 0 || (d && is_live(&d->memory, r.first, r.bytes));
}

/* Runs a task; illegal addresses are an error of the device, as for a kernel. */
void run(void *task) {
  Task &t = *(Task *)task;
  for (const Range &r : t.ranges)
    if (!is_accessible(r)) {
      device(current_device()).sticky = cudaErrorIllegalAddress;
      return;
    }
  std::function<void()>(t.function)(); /* a copy: in a graph it runs several times */
}

int submit(Handle *h, std::vector<Range> ranges, std::function<void()> function) {
  if (!h) return NOT_INITIALIZED;
  if (injected(Fault::BLAS)) return EXECUTION_FAILED;
  cudaError_t status = lt_emulated_enqueue(
      h->stream, run, [](void *task) { delete (Task *)task; },
      new Task{std::move(ranges), std::move(function)});
  return status == cudaSuccess ? SUCCESS : EXECUTION_FAILED;
}

template <char L> Range matrix(const void *a, int ld, int columns) {
  return {a, (size_t)ld * (size_t)columns * size_of(L)};
}
template <char L> Range vector(const void *x, int64_t n) { return {x, (size_t)n * size_of(L)}; }
Range integers(const int *x, int64_t n) { return {x, (size_t)n * sizeof *x}; }
Range pointers(void *const *x, int64_t n) { return {x, (size_t)n * sizeof *x}; }

/* Sizes that are valid for a matrix. */
bool fits(int m, int n, int ld) { return m >= 0 && n >= 0 && ld >= (m > 1 ? m : 1); }

int create(Handle **out) {
  *out = nullptr;
  if (enter() != cudaSuccess) return NOT_INITIALIZED;
  *out = new Handle{nullptr};
  return SUCCESS;
}
int set_stream(Handle *h, cudaStream_t stream) {
  if (!h) return NOT_INITIALIZED;
  h->stream = stream;
  return SUCCESS;
}

/* ---- triangular factors ---------------------------------------------------------------------- */

template <char L> int potrf_size(Handle *, int, int n, void *, int lda, int *lwork) {
  *lwork = n;
  return fits(n, n, lda) ? SUCCESS : INVALID_VALUE;
}
template <char L>
int potrf(Handle *h, int uplo, int n, void *a, int lda, void *work, int lwork, int *info) {
  if (!fits(n, n, lda) || lwork < n) return INVALID_VALUE;
  return submit(h, {matrix<L>(a, lda, n), vector<L>(work, lwork), integers(info, 1)},
                [=] { lapack<L>("potrf", uplo_of(uplo), &n, a, &lda, info, (size_t)1); });
}
template <char L>
int potrf_batched(Handle *h, int uplo, int n, void **a, int lda, int *info, int count) {
  if (!fits(n, n, lda) || count < 0) return INVALID_VALUE;
  return submit(h, {pointers(a, count), integers(info, count)}, [=] {
    for (int i = 0; i < count; i++)
      lapack<L>("potrf", uplo_of(uplo), &n, a[i], &lda, info + i, (size_t)1);
  });
}

template <char L> int getrf_size(Handle *, int m, int n, void *, int lda, int *lwork) {
  *lwork = m > n ? m : n;
  return fits(m, n, lda) ? SUCCESS : INVALID_VALUE;
}
template <char L>
int getrf(Handle *h, int m, int n, void *a, int lda, void *work, int *pivots, int *info) {
  if (!fits(m, n, lda)) return INVALID_VALUE;
  return submit(h,
                {matrix<L>(a, lda, n), vector<L>(work, m > n ? m : n),
                 integers(pivots, m < n ? m : n), integers(info, 1)},
                [=] { lapack<L>("getrf", &m, &n, a, &lda, pivots, info); });
}
template <char L>
int getrf_batched(Handle *h, int n, void *const *a, int lda, int *pivots, int *info, int count) {
  if (!fits(n, n, lda) || count < 0) return INVALID_VALUE;
  return submit(
      h, {pointers(a, count), integers(pivots, (int64_t)n * count), integers(info, count)}, [=] {
        for (int i = 0; i < count; i++)
          lapack<L>("getrf", &n, &n, a[i], &lda, pivots + (int64_t)i * n, info + i);
      });
}

template <char L>
int getrs(Handle *h, int trans, int n, int nrhs, const void *a, int lda, const int *pivots, void *b,
          int ldb, int *info) {
  if (!fits(n, n, lda) || !fits(n, nrhs, ldb)) return INVALID_VALUE;
  return submit(
      h, {matrix<L>(a, lda, n), matrix<L>(b, ldb, nrhs), integers(pivots, n), integers(info, 1)},
      [=] {
        lapack<L>("getrs", trans_of(trans), &n, &nrhs, a, &lda, pivots, b, &ldb, info, (size_t)1);
      });
}
template <char L>
int getrs_batched(Handle *h, int trans, int n, int nrhs, void *const *a, int lda, const int *pivots,
                  void *const *b, int ldb, int *info, int count) {
  *info = 0;
  if (!fits(n, n, lda) || !fits(n, nrhs, ldb) || count < 0) return INVALID_VALUE;
  return submit(h, {pointers(a, count), pointers(b, count), integers(pivots, (int64_t)n * count)},
                [=] {
                  for (int i = 0, status; i < count; i++)
                    lapack<L>("getrs", trans_of(trans), &n, &nrhs, a[i], &lda,
                              pivots + (int64_t)i * n, b[i], &ldb, &status, (size_t)1);
                });
}

/* ---- triangular systems ---------------------------------------------------------------------- */

template <char L>
void solve_triangular(int side, int uplo, int trans, int unit, int m, int n, const void *alpha,
                      const void *a, int lda, void *b, int ldb) {
  lapack<L>("trsm", side ? "R" : "L", uplo_of(uplo), trans_of(trans), unit ? "U" : "N", &m, &n,
            alpha, a, &lda, b, &ldb, (size_t)1, (size_t)1, (size_t)1, (size_t)1);
}

/* A number of any dtype, read when the function is called. */
struct Number {
  char bytes[16];
  Number(const void *from, size_t size) { memcpy(bytes, from, size); }
};

template <char L>
int trsm(Handle *h, int side, int uplo, int trans, int unit, int m, int n, const void *alpha,
         const void *a, int lda, void *b, int ldb) {
  int k = side ? n : m;
  if (!fits(k, k, lda) || !fits(m, n, ldb)) return INVALID_VALUE;
  Number factor(alpha, size_of(L));
  return submit(h, {matrix<L>(a, lda, k), matrix<L>(b, ldb, n)}, [=] {
    solve_triangular<L>(side, uplo, trans, unit, m, n, factor.bytes, a, lda, b, ldb);
  });
}
template <char L>
int trsm_batched(Handle *h, int side, int uplo, int trans, int unit, int m, int n,
                 const void *alpha, void *const *a, int lda, void *const *b, int ldb, int count) {
  int k = side ? n : m;
  if (!fits(k, k, lda) || !fits(m, n, ldb) || count < 0) return INVALID_VALUE;
  Number factor(alpha, size_of(L));
  return submit(h, {pointers(a, count), pointers(b, count)}, [=] {
    for (int i = 0; i < count; i++)
      solve_triangular<L>(side, uplo, trans, unit, m, n, factor.bytes, a[i], lda, b[i], ldb);
  });
}

/* ---- reflections ----------------------------------------------------------------------------- */

template <char L> int geqrf_size(Handle *, int m, int n, void *, int lda, int *lwork) {
  *lwork = (n > 1 ? n : 1) * 32;
  return fits(m, n, lda) ? SUCCESS : INVALID_VALUE;
}
template <char L>
int geqrf(Handle *h, int m, int n, void *a, int lda, void *tau, void *work, int lwork, int *info) {
  if (!fits(m, n, lda) || lwork < n) return INVALID_VALUE;
  return submit(h,
                {matrix<L>(a, lda, n), vector<L>(tau, m < n ? m : n), vector<L>(work, lwork),
                 integers(info, 1)},
                [=] { lapack<L>("geqrf", &m, &n, a, &lda, tau, work, &lwork, info); });
}

template <char L>
int orgqr_size(Handle *, int m, int n, int k, const void *, int lda, const void *, int *lwork) {
  *lwork = (n > 1 ? n : 1) * 32;
  return fits(m, n, lda) && n <= m && k <= n ? SUCCESS : INVALID_VALUE;
}
template <char L>
int orgqr(Handle *h, int m, int n, int k, void *a, int lda, const void *tau, void *work, int lwork,
          int *info) {
  if (!fits(m, n, lda) || n > m || k > n || lwork < n) return INVALID_VALUE;
  return submit(
      h, {matrix<L>(a, lda, n), vector<L>(tau, k), vector<L>(work, lwork), integers(info, 1)}, [=] {
        lapack<L>(is_complex(L) ? "ungqr" : "orgqr", &m, &n, &k, a, &lda, tau, work, &lwork, info);
      });
}

template <char L>
int ormqr_size(Handle *, int side, int, int m, int n, int k, const void *, int lda, const void *,
               const void *, int ldc, int *lwork) {
  *lwork = ((side ? m : n) + 1) * 64 + 65 * 64;
  return fits(side ? n : m, k, lda) && fits(m, n, ldc) ? SUCCESS : INVALID_VALUE;
}
template <char L>
int ormqr(Handle *h, int side, int trans, int m, int n, int k, const void *a, int lda,
          const void *tau, void *c, int ldc, void *work, int lwork, int *info) {
  if (!fits(side ? n : m, k, lda) || !fits(m, n, ldc)) return INVALID_VALUE;
  return submit(h,
                {matrix<L>(a, lda, k), vector<L>(tau, k), matrix<L>(c, ldc, n),
                 vector<L>(work, lwork), integers(info, 1)},
                [=] {
                  lapack<L>(is_complex(L) ? "unmqr" : "ormqr", side ? "R" : "L", trans_of(trans),
                            &m, &n, &k, a, &lda, tau, c, &ldc, work, &lwork, info, (size_t)1,
                            (size_t)1);
                });
}

/* ---- eigenvalues and singular values --------------------------------------------------------- */

template <char L>
int syevd_size(Handle *, int, int, int n, const void *, int lda, const void *, int *lwork) {
  *lwork = n;
  return fits(n, n, lda) ? SUCCESS : INVALID_VALUE;
}

/* Runs LAPACK's function; with lwork -1 only the query. */
template <char L>
void run_syevd(int vectors, int uplo, int n, void *a, int lda, void *w, void *work, int lwork,
               void *rwork, int lrwork, int *iwork, int liwork, int *info) {
  const char *job = vectors ? "V" : "N";
  if (is_complex(L))
    lapack<L>("heevd", job, uplo_of(uplo), &n, a, &lda, w, work, &lwork, rwork, &lrwork, iwork,
              &liwork, info, (size_t)1, (size_t)1);
  else
    lapack<L>("syevd", job, uplo_of(uplo), &n, a, &lda, w, work, &lwork, iwork, &liwork, info,
              (size_t)1, (size_t)1);
}

template <char L>
int syevd(Handle *h, int vectors, int uplo, int n, void *a, int lda, void *w, void *work, int lwork,
          int *info) {
  if (!fits(n, n, lda) || lwork < n) return INVALID_VALUE;
  return submit(
      h,
      {matrix<L>(a, lda, n),
       {w, (size_t)n * real_size(L)},
       vector<L>(work, lwork),
       integers(info, 1)},
      [=] {
        char answer[16] = {0}, real[16] = {0};
        int integer = 1;
        run_syevd<L>(vectors, uplo, n, a, lda, w, answer, -1, real, -1, &integer, -1, info);
        size_t size = work_size<L>(answer), reals = is_complex(L) ? work_size<L>(real) : 1;
        std::vector<char> memory(size * size_of(L)), real_memory(reals * real_size(L));
        std::vector<int> integer_memory((size_t)integer);
        run_syevd<L>(vectors, uplo, n, a, lda, w, memory.data(), (int)size, real_memory.data(),
                     (int)reals, integer_memory.data(), integer, info);
      });
}

/* As the library's, only for matrices with at least as many rows as columns. */
template <char L> int gesvd_size(Handle *, int m, int n, int *lwork) {
  *lwork = n;
  return m >= n && n >= 0 ? SUCCESS : INVALID_VALUE;
}

/* A call of gesvd. */
struct Svd {
  char jobu, jobvt;
  int m, n, lda, ldu, ldvt;
  void *a, *s, *u, *vt;
};

template <char L> void run_svd(const Svd &p, void *work, int lwork, int *info) {
  std::vector<char> reals((size_t)p.n * 5 * real_size(L));
  if (is_complex(L))
    lapack<L>("gesvd", &p.jobu, &p.jobvt, &p.m, &p.n, p.a, &p.lda, p.s, p.u, &p.ldu, p.vt, &p.ldvt,
              work, &lwork, (void *)reals.data(), info, (size_t)1, (size_t)1);
  else
    lapack<L>("gesvd", &p.jobu, &p.jobvt, &p.m, &p.n, p.a, &p.lda, p.s, p.u, &p.ldu, p.vt, &p.ldvt,
              work, &lwork, info, (size_t)1, (size_t)1);
}

template <char L>
int gesvd(Handle *h, signed char jobu, signed char jobvt, int m, int n, void *a, int lda, void *s,
          void *u, int ldu, void *vt, int ldvt, void *work, int lwork, void *, int *info) {
  bool with_u = jobu != 'N', with_v = jobvt != 'N';
  int columns = jobu == 'A' ? m : n;
  if (m < n || !fits(m, n, lda) || lwork < n || (with_u && ldu < m) || (with_v && ldvt < n))
    return INVALID_VALUE;
  std::vector<Range> ranges = {matrix<L>(a, lda, n),
                               {s, (size_t)n * real_size(L)},
                               vector<L>(work, lwork),
                               integers(info, 1)};
  if (with_u) ranges.push_back(matrix<L>(u, ldu, columns));
  if (with_v) ranges.push_back(matrix<L>(vt, ldvt, n));
  Svd p = {(char)jobu, (char)jobvt, m, n, lda, ldu, ldvt, a, s, u, vt};
  return submit(h, std::move(ranges), [=] {
    char answer[16] = {0};
    run_svd<L>(p, answer, -1, info);
    size_t size = work_size<L>(answer);
    std::vector<char> memory(size * size_of(L));
    run_svd<L>(p, memory.data(), (int)size, info);
  });
}

/* ---- names ----------------------------------------------------------------------------------- */

struct Function {
  const char *name;
  void *address;
};

#define LT_FOUR(prefix, real, other, function)                                                     \
  {prefix "S" real, (void *)function<'S'>}, {prefix "D" real, (void *)function<'D'>},              \
      {prefix "C" other, (void *)function<'C'>}, {                                                 \
    prefix "Z" other, (void *)function<'Z'>                                                        \
  }
#define LT_DN(name, function)         LT_FOUR("cusolverDn", name, name, function)
#define LT_DN2(real, other, function) LT_FOUR("cusolverDn", real, other, function)
#define LT_BLAS(name, function)       LT_FOUR("cublas", name, name, function)

const Function functions[] = {
    {"cusolverDnCreate", (void *)create},
    {"cusolverDnSetStream", (void *)set_stream},
    {"cublasCreate_v2", (void *)create},
    {"cublasSetStream_v2", (void *)set_stream},
    LT_DN("potrf_bufferSize", potrf_size),
    LT_DN("potrf", potrf),
    LT_DN("potrfBatched", potrf_batched),
    LT_DN("getrf_bufferSize", getrf_size),
    LT_DN("getrf", getrf),
    LT_DN("getrs", getrs),
    LT_DN("geqrf_bufferSize", geqrf_size),
    LT_DN("geqrf", geqrf),
    LT_DN2("orgqr_bufferSize", "ungqr_bufferSize", orgqr_size),
    LT_DN2("orgqr", "ungqr", orgqr),
    LT_DN2("ormqr_bufferSize", "unmqr_bufferSize", ormqr_size),
    LT_DN2("ormqr", "unmqr", ormqr),
    LT_DN2("syevd_bufferSize", "heevd_bufferSize", syevd_size),
    LT_DN2("syevd", "heevd", syevd),
    LT_DN("gesvd_bufferSize", gesvd_size),
    LT_DN("gesvd", gesvd),
    LT_BLAS("trsm_v2", trsm),
    LT_BLAS("trsmBatched", trsm_batched),
    LT_BLAS("getrfBatched", getrf_batched),
    LT_BLAS("getrsBatched", getrs_batched),
};

} // namespace

/* Returns the function of that name; NULL where there is none, without a LAPACK on the host, or
 * with libraries=off. */
extern "C" void *lt_emulated_solver(const char *name) {
  if (!options().libraries || !library()) return nullptr;
  for (const Function &f : functions)
    if (strcmp(f.name, name) == 0) return f.address;
  return nullptr;
}
