/* solver.c: finds the functions of cuSOLVER, and of the cuBLAS that it depends on, and runs them
 * over batches of matrices. */
#include "solver.h"
#include "libraries.h"
#include "linalg.h"
#include "rearrange.h"

#include <dlfcn.h>
#include <pthread.h>

/* ---- loading --------------------------------------------------------------------------------- */

/* A member, and its names for float32, float64, complex64 and complex128, after their prefix. */
typedef struct Name {
  size_t member;
  bool blas;
  const char *name[4];
} Name;

#define AT(member)   offsetof(lt_CudaSolver, member), false
#define BLAS(member) offsetof(lt_CudaSolver, member), true
#define SAME(rest)                                                                                 \
  { "S" rest, "D" rest, "C" rest, "Z" rest }
#define EACH(real, other)                                                                          \
  { "S" real, "D" real, "C" other, "Z" other }
static const Name names[] = {
    {AT(potrf_size), SAME("potrf_bufferSize")},
    {AT(potrf), SAME("potrf")},
    {AT(potrf_batched), SAME("potrfBatched")},
    {AT(getrf_size), SAME("getrf_bufferSize")},
    {AT(getrf), SAME("getrf")},
    {AT(getrs), SAME("getrs")},
    {AT(geqrf_size), SAME("geqrf_bufferSize")},
    {AT(geqrf), SAME("geqrf")},
    {AT(orgqr_size), EACH("orgqr_bufferSize", "ungqr_bufferSize")},
    {AT(orgqr), EACH("orgqr", "ungqr")},
    {AT(ormqr_size), EACH("ormqr_bufferSize", "unmqr_bufferSize")},
    {AT(ormqr), EACH("ormqr", "unmqr")},
    {AT(syevd_size), EACH("syevd_bufferSize", "heevd_bufferSize")},
    {AT(syevd), EACH("syevd", "heevd")},
    {AT(gesvd_size), SAME("gesvd_bufferSize")},
    {AT(gesvd), SAME("gesvd")},
    {BLAS(trsm), SAME("trsm_v2")},
    {BLAS(trsm_batched), SAME("trsmBatched")},
    {BLAS(getrf_batched), SAME("getrfBatched")},
    {BLAS(getrs_batched), SAME("getrsBatched")},
};

static struct {
  int (*create)(void **), (*set_stream)(void *, cudaStream_t);
  int (*blas_create)(void **), (*blas_set_stream)(void *, cudaStream_t);
  lt_CudaSolver functions[4];
  bool found;
} library;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef LT_CUDA_EMULATED
/* Returns a function of the emulated libraries (emulated/solver.cpp), or NULL. */
void *lt_emulated_solver(const char *name);
static void *find(void *handle, const char *name) {
  (void)handle;
  return lt_emulated_solver(name);
}
#else
/* The search includes the libraries that cuSOLVER depends on: cuBLAS. */
static void *find(void *handle, const char *name) { return dlsym(handle, name); }
#endif

/* ISO C does not allow the cast of a data pointer to a function pointer. */
static bool find_into(void *handle, const char *name, void *function) {
  void *symbol = find(handle, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Reads all functions. Returns false when one is missing. */
static bool load_functions(void *handle) {
  bool ok = find_into(handle, "cusolverDnCreate", &library.create) &&
            find_into(handle, "cusolverDnSetStream", &library.set_stream) &&
            find_into(handle, "cublasCreate_v2", &library.blas_create) &&
            find_into(handle, "cublasSetStream_v2", &library.blas_set_stream);
  for (int d = 0; d < 4; d++) {
    library.functions[d].is_complex = d >= 2;
    for (size_t i = 0; ok && i < sizeof names / sizeof *names; i++) {
      char name[64];
      snprintf(name, sizeof name, "%s%s", names[i].blas ? "cublas" : "cusolverDn",
               names[i].name[d]);
      ok = find_into(handle, name, (char *)&library.functions[d] + names[i].member);
    }
  }
  return ok;
}

/* The handles of a device. Their user holds the lock, since the stream is part of their state. */
typedef struct Handles {
  pthread_mutex_t lock;
  void *solver, *blas; /* NULL until first used */
} Handles;
static Handles handles[LT_ACCEL_MAX];

static void load(void) {
  for (int i = 0; i < LT_ACCEL_MAX; i++) pthread_mutex_init(&handles[i].lock, NULL);
#ifdef LT_CUDA_EMULATED
  /* The CPU backend goes first, since it chooses the host's library (blas.c). */
  const lt_Backend *cpu = lt_device_backend(LT_DEVICE_cpu);
  if (cpu) cpu->fact(0, "blas");
  library.found = load_functions(NULL);
#else
  char path[1000];
  int toolkit = CUDART_VERSION / 1000; /* cuSOLVER's versions are one behind */
  library.found = lt_cuda_library_open(LT_LIBRARY_CUSOLVER, toolkit > 12 ? toolkit - 1 : 11,
                                       load_functions, path, sizeof path) != NULL;
#endif
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Returns true when a tensor of the call has no elements. */
static bool has_empty(const lt_Call *c) {
  for (int i = 0; i < c->nargs; i++)
    if (lt_in(c, i) && lt_in(c, i)->numel == 0) return true;
  return c->out[0]->numel == 0 && c->nout == 1;
}

bool lt_solver_open(lt_SolverJob *j, lt_Call *c) {
  const lt_Tensor *a = lt_in(c, 0);
  lt_Dtype d = a->dtype;
  pthread_once(&once, load);
  if (!library.found || has_empty(c)) return false;
  for (int i = 0; i < c->nargs; i++)
    for (int k = 0; lt_in(c, i) && k < 2 && k < lt_in(c, i)->ndim; k++)
      if (lt_in(c, i)->shape[lt_in(c, i)->ndim - 1 - k] > INT32_MAX) return false;
  *j = (lt_SolverJob){.c = c, .size = (int64_t)lt_dtype_size(d)};
  j->f = &library.functions[(d == LT_float64 || d == LT_complex128) + 2 * lt_dtype_is_complex(d)];
  j->m = (int)a->shape[a->ndim - 2];
  j->n = (int)a->shape[a->ndim - 1];
  j->k = j->m < j->n ? j->m : j->n;
  j->count = a->numel / ((int64_t)j->m * j->n);
  return true;
}

bool lt_solver_close(lt_SolverJob *j, bool ok) {
  for (int i = 0; i < j->held; i++) lt_release(j->tensor[i]);
  return ok;
}

void *lt_solver_hold(lt_SolverJob *j, lt_Tensor *t) {
  if (!t) return NULL;
  j->tensor[j->held++] = t;
  return lt_tensor_data(t);
}

void *lt_solver_memory(lt_SolverJob *j, lt_Dtype dtype, int64_t numel) {
  int64_t n = numel > 0 ? numel : 1;
  return lt_solver_hold(j, lt_empty(dtype, j->c->device, 1, &n));
}

/* Checks a status. A failure is often caused by an error of an earlier kernel, whose message says
 * more. */
static bool check_status(int status, const char *name) {
  if (status == 0) return true;
  if (!lt_cuda_ok(cudaGetLastError(), "decompose matrices")) return false;
  return lt_fail("cannot decompose the matrices: %s of cuSOLVER or cuBLAS failed with status %d",
                 name, status);
}

/* Creates handles where needed. */
static int create(Handles *h) {
  int status = h->solver ? 0 : library.create(&h->solver);
  if (status) h->solver = NULL;
  if (!status && !h->blas && (status = library.blas_create(&h->blas)) != 0) h->blas = NULL;
  return status;
}

/* Creates the handles and sets their stream. The libraries allocate from the driver, so cached
 * memory is freed when that fails. */
static bool prepare(Handles *h, cudaStream_t stream) {
  int status = create(h);
  if (status && lt_cuda_free_cached()) status = create(h);
  if (!status) status = library.set_stream(h->solver, stream);
  if (!status) status = library.blas_set_stream(h->blas, stream);
  return check_status(status, "create");
}

bool lt_solver_run(lt_SolverJob *j, const char *name, lt_SolverFn fn, int64_t count) {
  Handles *h = &handles[j->c->device.index];
  cudaStream_t stream = lt_cuda_stream(j->c);
  if (!lt_capture_allows(&lt_cuda_backend, j->c->device.index, "decompose or solve matrices", NULL))
    return false;
  pthread_mutex_lock(&h->lock);
  bool ok = prepare(h, stream);
  j->solver = h->solver;
  j->blas = h->blas;
  for (int64_t i = 0; ok && i < count && !lt_stopped(); i++) ok = check_status(fn(j, i), name);
  ok = ok && lt_check_interrupt() &&
       lt_cuda_launch_ok(lt_cuda_note_launch(name, stream, cudaSuccess));
  pthread_mutex_unlock(&h->lock);
  return ok;
}

bool lt_solver_query(lt_SolverJob *j, const char *name, lt_SolverFn fn) {
  lt_Dtype dtype = lt_in(j->c, 0)->dtype;
  return lt_solver_run(j, name, fn, 1) && (j->work = lt_solver_memory(j, dtype, j->lwork));
}

/* ---- batches --------------------------------------------------------------------------------- */

bool lt_solver_is_batched(const lt_SolverJob *j, int n) {
  return j->count > 1 && j->count <= INT32_MAX && n <= 128;
}

void **lt_solver_addresses(lt_SolverJob *j, void *first, int64_t step) {
  void **to = lt_solver_memory(j, LT_int64, j->count);
  bool ok = to && lt_cuda_launch_ok(lt_cuda_launch_addresses(to, first, step * j->size, j->count,
                                                             lt_cuda_stream(j->c)));
  return ok ? to : NULL;
}

/* Exchanges the last two dimensions of a geometry. */
static void exchange_last(int ndim, int64_t *values) {
  int64_t last = values[ndim - 1];
  values[ndim - 1] = values[ndim - 2];
  values[ndim - 2] = last;
}

/* Copies t to the first rows of scratch matrices {rows, t's columns}. */
static char *copy_rows(lt_SolverJob *j, lt_Tensor *t, int64_t rows) {
  int64_t shape[LT_MAX_DIMS];
  memcpy(shape, t->shape, sizeof shape);
  shape[t->ndim - 2] = rows;
  lt_Tensor *whole = lt_empty(t->dtype, j->c->device, t->ndim, shape);
  char *data = lt_solver_hold(j, whole);
  lt_Tensor *to = whole ? lt_geometry(whole, 0, t->ndim, t->shape, whole->strides) : NULL;
  bool ok = to && lt_copy_into(to, t, false);
  lt_release(to);
  return ok ? data : NULL;
}

char *lt_solver_load(lt_SolverJob *j, lt_Tensor *t, bool transposed) {
  return transposed ? copy_rows(j, t, t->shape[t->ndim - 2])
                    : lt_solver_load_wide(j, t, t->shape[t->ndim - 1]);
}

char *lt_solver_load_wide(lt_SolverJob *j, lt_Tensor *t, int64_t columns) {
  int64_t shape[LT_MAX_DIMS], strides[LT_MAX_DIMS];
  memcpy(shape, t->shape, sizeof shape);
  memcpy(strides, t->strides, sizeof strides);
  exchange_last(t->ndim, shape);
  exchange_last(t->ndim, strides);
  lt_Tensor *from = lt_geometry(t, 0, t->ndim, shape, strides);
  char *data = from ? copy_rows(j, from, columns) : NULL;
  lt_release(from);
  return data;
}

bool lt_solver_store(lt_SolverJob *j, const void *from, int64_t ld, int64_t columns,
                     lt_Tensor *out) {
  int64_t strides[LT_MAX_DIMS], step = ld * columns;
  lt_Tensor *scratch = NULL;
  for (int i = 0; i < j->held; i++)
    if (lt_tensor_data(j->tensor[i]) == from) scratch = j->tensor[i];
  if (!scratch) return lt_fail("cannot store the matrices: their memory is unknown");
  int d = out->ndim - 1;
  strides[d--] = ld;
  strides[d--] = 1;
  for (; d >= 0; d--) {
    strides[d] = step;
    step *= out->shape[d];
  }
  lt_Tensor *view = lt_geometry(scratch, 0, out->ndim, out->shape, strides);
  bool ok = view && lt_copy_into(out, view, false);
  lt_release(view);
  return ok;
}

bool lt_solver_triangle(const lt_SolverJob *j, lt_Tensor *out, bool upper) {
  lt_CudaTriangle t = {.to = lt_tensor_data(out),
                       .from = lt_tensor_data(out),
                       .size = (int)j->size,
                       .upper = upper,
                       .numel = out->numel,
                       .rows = out->shape[out->ndim - 2],
                       .columns = out->shape[out->ndim - 1]};
  return lt_cuda_launch_ok(lt_cuda_launch_triangle(&t, lt_cuda_stream(j->c)));
}

bool lt_solver_info(lt_SolverJob *j, int64_t *at, int *value) {
  int64_t found, *memory = lt_solver_memory(j, LT_int64, 1);
  *at = -1;
  if (!memory ||
      !lt_cuda_launch_ok(
          lt_cuda_launch_first_info(j->info, j->count, memory, lt_cuda_stream(j->c))) ||
      !lt_fetch_count(j->c, &found, memory))
    return false;
  if (found == -1) return true;
  *at = found >> 32;
  *value = (int)(uint32_t)found;
  return true;
}
