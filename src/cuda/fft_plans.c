/* fft_plans.c: cuFFT, and the cache of its plans: those used last, for each device.
 *
 * Plans hold no work area: each transform allocates its own on its stream, so that a plan can serve
 * several streams. Sizes that cuFFT refuses are cached, too. */
#include "fft.h"
#include "fft_library.h"
#include "libraries.h"

#include <dlfcn.h>
#include <pthread.h>

#define LT_FIELD(name, parameters) int(*name) parameters;
static struct {
  LT_CUFFT_FUNCTIONS(LT_FIELD)
  bool found;
} cufft;
#undef LT_FIELD
static pthread_once_t once = PTHREAD_ONCE_INIT;

enum { CACHED = 64 }; /* plans of a device */

typedef struct Plan {
  lt_CudaFft key;
  int handle;
  bool refused; /* there is no handle */
  size_t work;  /* bytes of its work area */
} Plan;

/* The plans of a device, the one used last first. Their user holds the lock: stream and work area
 * are part of a plan's state. */
static struct {
  pthread_mutex_t lock;
  int count;
  Plan plan[CACHED];
} caches[LT_ACCEL_MAX];

/* ---- loading --------------------------------------------------------------------------------- */

#ifdef LT_CUDA_EMULATED
#include <cufft.h>
#define LT_TAKE(name, parameters) cufft.name = (int(*) parameters)cufft##name;
/* Returns false with the option libraries=off. */
bool lt_emulated_has_cufft(void);
static void find_library(void) {
  LT_CUFFT_FUNCTIONS(LT_TAKE)
  cufft.found = lt_emulated_has_cufft();
}
#undef LT_TAKE
#else
/* ISO C does not allow the cast of a data pointer to a function pointer. */
static bool find(void *library, const char *name, void *field) {
  void *symbol = dlsym(library, name);
  memcpy(field, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Reads the library's functions; false when one is missing. */
static bool load_functions(void *library) {
  bool ok = true;
#define LT_FIND(name, parameters) ok = find(library, "cufft" #name, &cufft.name) && ok;
  LT_CUFFT_FUNCTIONS(LT_FIND)
#undef LT_FIND
  return ok;
}

/* Loads the version that belongs to this build's toolkit, or else any other. */
static void find_library(void) {
  char path[1000];
  cufft.found = lt_cuda_library_open(LT_LIBRARY_CUFFT, CUDART_VERSION / 1000 - 1, load_functions,
                                     path, sizeof path) != NULL;
}
#endif

static void load(void) {
  for (int i = 0; i < LT_ACCEL_MAX; i++) pthread_mutex_init(&caches[i].lock, NULL);
  find_library();
}

bool lt_cuda_fft_available(void) {
  pthread_once(&once, load);
  return cufft.found;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Makes a plan for p->key. Returns cuFFT's status; on failure there is no handle. */
static int make(Plan *p) {
  static const int types[][2] = {[LT_FFT_C2C] = {LT_CUFFT_C2C, LT_CUFFT_Z2Z},
                                 [LT_FFT_R2C] = {LT_CUFFT_R2C, LT_CUFFT_D2Z},
                                 [LT_FFT_C2R] = {LT_CUFFT_C2R, LT_CUFFT_Z2D}};
  lt_CudaFft k = p->key;
  int status = cufft.Create(&p->handle);
  if (status != LT_CUFFT_SUCCESS) return status;
  status = cufft.SetAutoAllocation(p->handle, 0);
  if (status == LT_CUFFT_SUCCESS)
    status =
        cufft.MakePlanMany64(p->handle, (int)k.rank, k.n, k.in, k.stride, k.in_distance, k.out,
                             k.stride, k.out_distance, types[k.kind][k.wide], k.batch, &p->work);
  if (status != LT_CUFFT_SUCCESS) cufft.Destroy(p->handle);
  return status;
}

/* Destroys a plan, which may be in use on the device. */
static bool destroy(const Plan *p) {
  if (p->refused) return true;
  bool ok = lt_cuda_ok(cudaDeviceSynchronize(), "wait for a transform");
  cufft.Destroy(p->handle);
  return ok;
}

/* Makes a plan, after freeing cached memory when the first try fails: cuFFT allocates from the
 * driver. A plan that fails otherwise is refused. Returns false with the error set when the device
 * has failed or its memory is out. */
static bool make_or_refuse(Plan *p) {
  int status = make(p);
  if (status != LT_CUFFT_SUCCESS && lt_cuda_free_cached()) status = make(p);
  p->refused = status != LT_CUFFT_SUCCESS;
  if (!p->refused) return true;
  if (!lt_cuda_ok(cudaGetLastError(), "plan a transform")) return false;
  if (status == LT_CUFFT_ALLOC_FAILED)
    return lt_fail("cannot plan the transform: the memory of device \"%s\" is out",
                   lt_device_name((lt_Device){LT_DEVICE_cuda, (uint8_t)lt_cuda_selected(false)}));
  return true;
}

/* Returns the plan for a transform, which it puts first in the device's cache; NULL with the error
 * set. Its caller holds the lock. */
static Plan *plan_for(int index, const lt_CudaFft *key) {
  Plan *plans = caches[index].plan, found;
  int i = 0, count = caches[index].count;
  while (i < count && memcmp(&plans[i].key, key, sizeof *key) != 0) i++;
  if (i < count) {
    found = plans[i];
  } else {
    memset(&found, 0, sizeof found);
    found.key = *key;
    if (!make_or_refuse(&found)) return NULL;
    if (count == CACHED)
      i = CACHED - 1;
    else
      caches[index].count++;
    if (count == CACHED && !destroy(&plans[i])) {
      caches[index].count--;
      destroy(&found);
      return NULL;
    }
  }
  memmove(&plans[1], &plans[0], sizeof *plans * (size_t)i);
  plans[0] = found;
  return &plans[0];
}

/* ---- running --------------------------------------------------------------------------------- */

/* Queues the transforms of a plan. Returns cuFFT's status. */
static int execute(const Plan *p, cudaStream_t stream, void *work, void *in, void *out,
                   bool inverse) {
  int h = p->handle, direction = inverse ? LT_CUFFT_INVERSE : LT_CUFFT_FORWARD;
  bool wide = p->key.wide;
  int status = cufft.SetStream(h, stream);
  if (status == LT_CUFFT_SUCCESS && work) status = cufft.SetWorkArea(h, work);
  if (status != LT_CUFFT_SUCCESS) return status;
  switch (p->key.kind) {
  case LT_FFT_C2C:
    return (wide ? cufft.ExecZ2Z : cufft.ExecC2C)(h, in, out, direction);
  case LT_FFT_R2C:
    return (wide ? cufft.ExecD2Z : cufft.ExecR2C)(h, in, out);
  default:
    return (wide ? cufft.ExecZ2D : cufft.ExecC2R)(h, in, out);
  }
}

/* Checks a status. A failure is often caused by an error of an earlier kernel, whose message says
 * more. */
static bool check_status(int status) {
  if (status == LT_CUFFT_SUCCESS) return true;
  return lt_cuda_ok(cudaGetLastError(), "run a transform") &&
         lt_fail("cannot run the transform: cuFFT error %d", status);
}

/* Sets *work to memory for the plan's work area, NULL when it needs none. It is allocated while the
 * lock is free, because an allocation may run code of the program. */
static lt_CudaFftOutcome make_work(const lt_Call *c, const lt_CudaFft *fft, lt_Tensor **work) {
  int index = c->device.index;
  pthread_mutex_lock(&caches[index].lock);
  const Plan *p = plan_for(index, fft);
  bool refused = p && p->refused;
  int64_t bytes = p ? (int64_t)p->work : 0;
  pthread_mutex_unlock(&caches[index].lock);
  if (refused) return LT_FFT_REFUSED;
  if (p && bytes) *work = lt_empty(LT_uint8, c->device, 1, &bytes);
  return p && (*work || !bytes) ? LT_FFT_DONE : LT_FFT_FAILED;
}

lt_CudaFftOutcome lt_cuda_fft_run(const lt_Call *c, const lt_CudaFft *fft, void *in, void *out,
                                  bool inverse) {
  lt_Tensor *work = NULL;
  /* The cache may destroy the plan before the last replay. */
  if (!lt_capture_allows(&lt_cuda_backend, c->device.index, "run a Fourier transform", NULL))
    return LT_FFT_FAILED;
  lt_CudaFftOutcome outcome = make_work(c, fft, &work);
  if (outcome != LT_FFT_DONE) return outcome;
  int index = c->device.index;
  cudaStream_t stream = lt_cuda_stream(c);
  pthread_mutex_lock(&caches[index].lock);
  const Plan *p = plan_for(index, fft); /* another thread may have evicted it */
  bool ok =
      p && !p->refused &&
      check_status(execute(p, stream, work ? lt_tensor_data(work) : NULL, in, out, inverse)) &&
      lt_cuda_launch_ok(lt_cuda_note_launch("fft", stream, cudaSuccess));
  if (p && p->refused) outcome = LT_FFT_REFUSED;
  pthread_mutex_unlock(&caches[index].lock);
  lt_release(work);
  return ok ? LT_FFT_DONE : outcome == LT_FFT_REFUSED ? outcome : LT_FFT_FAILED;
}
