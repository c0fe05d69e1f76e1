/* device.c: the backend of NVIDIA's GPUs: their number, properties and table of functions. Only
 * lt_cuda_initialize, on the first use of a device, creates a context. */
#include "architectures.h"
#include "blas.h"
#include "communication.h"
#include "cuda.h"
#include "libraries.h"

#include <dlfcn.h>
#include <pthread.h>

/* ---- kernels --------------------------------------------------------------------------------- */

#define LT_KERNEL_NAME(op)      lt_cuda_##op
#define LT_KERNEL_LINK          __attribute__((weak))
#define LT_KERNEL_OF_REDUCTIONS lt_cuda_reduce
#include "kernel_table.def"

/* ---- number of devices ----------------------------------------------------------------------- */

static struct {
  int count;
  char why[300];
} found;
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

/* Returns "13.0" for 13000. */
static const char *version_text(int version, char text[16]) {
  snprintf(text, 16, "%d.%d", version / 1000, version % 1000 / 10);
  return text;
}

/* Writes to found.why why no GPU can be used. */
static void explain_none(cudaError_t status) {
  int driver = 0, runtime = 0;
  char installed[16], required[16];
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  if (cudaDriverGetVersion(&driver) != cudaSuccess) driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) runtime = CUDART_VERSION;
  cudaGetLastError();
  if (driver == 0)
    snprintf(found.why, sizeof found.why, "no NVIDIA driver found");
  else if (status == cudaErrorInsufficientDriver)
    snprintf(found.why, sizeof found.why,
             "the NVIDIA driver is too old: it supports CUDA %s, this Lutra was built with CUDA "
             "%s. Update the driver",
             version_text(driver, installed), version_text(runtime, required));
  else if ((status == cudaErrorNoDevice || status == cudaSuccess) && visible)
    snprintf(found.why, sizeof found.why,
             "CUDA_VISIBLE_DEVICES=\"%.60s\" in the environment hides every GPU", visible);
  else if (status == cudaErrorNoDevice || status == cudaSuccess)
    snprintf(found.why, sizeof found.why, "the NVIDIA driver finds no GPU");
  else
    snprintf(found.why, sizeof found.why, "the NVIDIA driver failed to start: CUDA error %d, %s",
             (int)status, cudaGetErrorString(status));
}

static void find(void) {
  cudaError_t status = cudaGetDeviceCount(&found.count);
  if (status != cudaSuccess) found.count = 0;
  if (found.count == 0) explain_none(status);
  if (found.count > LT_ACCEL_MAX) found.count = LT_ACCEL_MAX;
}

int lt_cuda_count(char *why, size_t why_size) {
  pthread_once(&found_once, find);
  if (found.count == 0) snprintf(why, why_size, "%s", found.why);
  return found.count;
}

/* ---- properties ------------------------------------------------------------------------------ */

static lt_CudaFacts facts[LT_ACCEL_MAX];
static char isa[LT_ACCEL_MAX][16];

const lt_CudaFacts *lt_cuda_facts(int index) { return &facts[index]; }

/* Reads the hardware's properties without creating a context. */
static bool query_properties(int index, struct cudaDeviceProp *p) {
  return lt_cuda_ok(cudaGetDeviceProperties(p, index), "read its properties");
}

/* Returns true when this build has code for the GPU; otherwise fails with a hint how to build
 * it. */
static bool has_code(int index, const struct cudaDeviceProp *p) {
  int sm = 10 * p->major + p->minor;
  const char *archs = lt_cuda_archs();
  char text[300];
  if (!*archs || lt_cuda_code_for(archs, sm) != LT_CODE_NONE) return true;
  lt_cuda_describe_code(archs, text, sizeof text);
  return lt_fail(
      "cannot use \"%s\", %.100s (sm_%d): this build has code for %s\nhint: make CUDA_ARCHS=%d",
      lt_device_name((lt_Device){LT_DEVICE_cuda, (uint8_t)index}), p->name, sm, text, sm);
}

/* The device that was selected before stays selected: a device may be initialized in the middle of
 * another one's work. */
bool lt_cuda_initialize(int index) {
  struct cudaDeviceProp p;
  int before = lt_cuda_selected(false);
  bool ok = query_properties(index, &p) && has_code(index, &p) && lt_cuda_select(index) &&
            lt_cuda_ok(cudaFree(NULL), "starting");
  if (before >= 0 && before != index && !lt_cuda_is_lost(before)) lt_cuda_select(before);
  if (!ok) return false;
  facts[index] = (lt_CudaFacts){.multiprocessors = p.multiProcessorCount,
                                .major = p.major,
                                .minor = p.minor,
                                .max_threads_per_multiprocessor = p.maxThreadsPerMultiProcessor,
                                .shared_per_block = p.sharedMemPerBlock,
                                .shared_per_block_optin = p.sharedMemPerBlockOptin,
                                .l2 = (size_t)p.l2CacheSize};
  return true;
}

/* lt_Backend's `properties`. Creates the device's context, which the free memory requires. */
static bool properties(int index, lt_DeviceProperties *out) {
  struct cudaDeviceProp p;
  size_t left = 0, total = 0;
  if (!lt_accel_ready(&lt_cuda_backend, index) || !lt_cuda_select(index) ||
      !query_properties(index, &p) || !lt_cuda_ok(cudaMemGetInfo(&left, &total), "read its memory"))
    return false;
  *out = (lt_DeviceProperties){.total_memory = (int64_t)p.totalGlobalMem,
                               .free_memory = (int64_t)left,
                               .multiprocessors = p.multiProcessorCount,
                               .major = p.major,
                               .minor = p.minor,
                               .shared_memory_per_block = (int64_t)p.sharedMemPerBlock,
                               .shared_memory_per_block_optin = (int64_t)p.sharedMemPerBlockOptin,
                               .l2_cache = p.l2CacheSize,
                               .max_threads_per_block = p.maxThreadsPerBlock,
                               .max_threads_per_multiprocessor = p.maxThreadsPerMultiProcessor,
                               .warp_size = p.warpSize,
                               .emulated = strncmp(p.name, "Emulated", 8) == 0};
  snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, p.name);
  return true;
}

#ifndef LT_CUDA_EMULATED
static char library_text[LT_LIBRARIES * 1100];

/* Searches for every library and closes it again: only its path is needed. */
static void find_libraries(void) {
  size_t used = 0;
  for (int i = 0; i < LT_LIBRARIES; i++) {
    char path[1000] = "";
    int toolkit = CUDART_VERSION / 1000;
    bool blas = i == LT_LIBRARY_CUBLAS || i == LT_LIBRARY_CUBLASLT;
    bool behind = i == LT_LIBRARY_CUFFT || i == LT_LIBRARY_CUSOLVER;
    int first = blas ? toolkit : behind ? toolkit - 1 : 0;
    void *library = lt_cuda_library_open((lt_CudaLibrary)i, first, NULL, path, sizeof path);
    if (library) dlclose(library);
    used += (size_t)snprintf(library_text + used, sizeof library_text - used, "%s\t%s\n",
                             lt_cuda_library_name((lt_CudaLibrary)i), path);
  }
}
#endif

/* Returns a line `name <tab> path` for each optional library, with an empty path where it is not
 * found. The libraries are searched for once. */
static const char *libraries(void) {
#ifdef LT_CUDA_EMULATED
  return NULL;
#else
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_libraries);
  return library_text;
#endif
}

/* Returns which code of this build runs on the device: "native", "PTX" or "none"; NULL when
 * unknown. */
static const char *code_of(int index) {
  static const char *const names[] = {"none", "PTX", "native"};
  struct cudaDeviceProp p;
  if (!*lt_cuda_archs() || !query_properties(index, &p)) return NULL;
  return names[lt_cuda_code_for(lt_cuda_archs(), 10 * p.major + p.minor)];
}

/* lt_Backend's `fact`. Returns NULL for a fact that is unknown. Strings live as long as the
 * program. */
static const char *fact(int index, const char *what) {
  static char driver[16], runtime[16], archs[300];
  int version = 0;
  if (strcmp(what, "libraries") == 0) return libraries();
  if (strcmp(what, "code") == 0) return code_of(index);
  if (strcmp(what, "archs") == 0) {
    lt_cuda_describe_code(lt_cuda_archs(), archs, sizeof archs);
    return archs[0] ? archs : NULL;
  }
  if (strcmp(what, "blas") == 0) return lt_cuda_blas_name();
  if (strcmp(what, "isa") == 0) {
    struct cudaDeviceProp p;
    if (!isa[index][0] && query_properties(index, &p))
      snprintf(isa[index], sizeof *isa, "sm_%d", 10 * p.major + p.minor);
    return isa[index][0] ? isa[index] : NULL;
  }
  if (strcmp(what, "driver") == 0)
    return cudaDriverGetVersion(&version) == cudaSuccess ? version_text(version, driver) : NULL;
  if (strcmp(what, "runtime") == 0)
    return cudaRuntimeGetVersion(&version) == cudaSuccess ? version_text(version, runtime) : NULL;
  return NULL;
}

static bool can_access_peer(const lt_Backend *self, int index, int peer) {
  int can = 0;
  (void)self;
  cudaError_t status = index == peer ? cudaSuccess : cudaDeviceCanAccessPeer(&can, index, peer);
  if (status != cudaSuccess) cudaGetLastError();
  return status == cudaSuccess && can;
}

/* ---- synchronization, which also raises the faults of kernels and of other ranks ------------- */

static bool (*base_device_synchronize)(const lt_Backend *self, int index);
static bool (*base_stream_synchronize)(lt_Stream *stream);

static bool synchronize(const lt_Backend *self, int index) {
  return base_device_synchronize(self, index) && lt_cuda_fault_check(index) &&
         lt_cuda_communication_check(index);
}

static bool stream_synchronize(lt_Stream *stream) {
  return base_stream_synchronize(stream) && lt_cuda_fault_check(stream->index) &&
         lt_cuda_communication_check(stream->index);
}

/* ---- table of functions ---------------------------------------------------------------------- */

lt_Backend lt_cuda_backend = {
    .abi = LT_BACKEND_ABI,
    .name = "cuda",
    .numbered = true,
    .host_memory = false,
    .asynchronous = true,
    .has_data = true,
    .properties = properties,
    .fact = fact,
    .option = lt_cuda_blas_option,
    .memory.can_access_peer = can_access_peer,
    .memory.copy = lt_cuda_copy,
    .memory.fill_zero = lt_cuda_fill_zero,
    .kernels.user_create = lt_cuda_kernel_new,
    .kernels.user_launch = lt_cuda_kernel_launch,
    .kernels.user_stop = lt_cuda_kernel_stop,
    .kernels.elementwise = lt_cuda_elementwise,
    .kernels.check_divisor = lt_cuda_check_divisor,
    .kernels.table = kernels,
};

const lt_Backend *lt_backend(void);
const lt_Backend *lt_backend(void) {
  if (!lt_accel_attach(&lt_cuda_backend, &lt_cuda_driver)) return NULL;
  base_device_synchronize = lt_cuda_backend.streams.device_synchronize;
  base_stream_synchronize = lt_cuda_backend.streams.synchronize;
  lt_cuda_backend.streams.device_synchronize = synchronize;
  lt_cuda_backend.streams.synchronize = stream_synchronize;
  lt_cuda_backend.communication = lt_cuda_communication;
  return &lt_cuda_backend;
}

__attribute__((destructor)) static void end(void) {
  if (lt_cuda_backend.own) lt_accel_shutdown(&lt_cuda_backend);
}
