/* kernel.c: kernels that users write. They are compiled once, cached in files, and checked against
 * the device's limits at each launch.
 *
 * A kernel and its code are never freed: a kernel may still be running when the last reference to
 * it is released. So a caller that creates many keeps them by source, as
 * lib/lutra/internal/kernel.lua does.
 */
#define _GNU_SOURCE
#include "user_kernel.h"

struct lt_UserKernel {
  int index;
  char *name;
  void *function;
  int64_t shared; /* dynamic shared memory that the driver has been asked to allow */
  lt_UserKernel *next;
};
static lt_UserKernel *_Atomic all; /* keeps them reachable, so that leak checkers report nothing */

void lt_cuda_image_free(lt_CudaImage *image) {
  free(image->symbol);
  free(image->bytes);
  *image = (lt_CudaImage){NULL, NULL, 0};
}

/* ---- compiling ------------------------------------------------------------------------------- */

/* Returns everything that the compiled code depends on, as the key of the cache: *size bytes,
 * malloc'ed; NULL when out of memory. */
static char *make_key(int index, const lt_KernelSource *s, size_t *size) {
  const lt_CudaFacts *facts = lt_cuda_facts(index);
  char *key = NULL;
  FILE *f = open_memstream(&key, size);
  if (!f) return NULL;
  fprintf(f, LT_VERSION " %s %d sm_%d%d\n%s\n",
#ifdef LT_CUDA_EMULATED
          "emulated",
#else
          "nvrtc",
#endif
          lt_cuda_compiler_version(), facts->major, facts->minor, s->expression);
  for (int i = 0; i < LT_CUDA_HEADERS; i++) fputs(lt_cuda_header_texts[i], f);
  for (int i = 0; i < s->option_count; i++) fprintf(f, "%s\n", s->options[i]);
  fprintf(f, "\n%s", s->text);
  return fclose(f) == 0 ? key : NULL;
}

/* Loads the code; when the device is out of memory, frees cached memory and tries once more. */
static cudaError_t load(const lt_CudaImage *image, void **function) {
  cudaError_t status = lt_cuda_load(image, function);
  if (status == cudaErrorMemoryAllocation && lt_cuda_free_cached())
    status = lt_cuda_load(image, function);
  return status;
}

/* Returns a new kernel; NULL with a message when out of memory. */
static lt_UserKernel *make(int index, const char *name, void *function) {
  lt_UserKernel *k = malloc(sizeof *k);
  char *copy = strdup(name);
  if (!k || !copy) {
    free(k);
    free(copy);
    return lt_error_memory("out of memory");
  }
  *k = (lt_UserKernel){index, copy, function, 0, atomic_load(&all)};
  while (!atomic_compare_exchange_weak(&all, &k->next, k)) continue;
  return k;
}

lt_UserKernel *lt_cuda_kernel_new(int index, const lt_KernelSource *source, char **log) {
  *log = NULL;
  if (!lt_cuda_compiler_ready() || !lt_accel_ready(&lt_cuda_backend, index) ||
      !lt_cuda_select(index))
    return NULL;
  size_t key_size = 0;
  void *function = NULL;
  lt_CudaImage image = {NULL, NULL, 0};
  char *key = make_key(index, source, &key_size);
  bool found = key && lt_cuda_cache_find(key, key_size, &image);
  bool loaded = found && load(&image, &function) == cudaSuccess;
  if (!loaded) { /* not in the cache, or the cached code does not load */
    if (found) cudaGetLastError();
    lt_cuda_image_free(&image);
    if (lt_cuda_compile(index, source, &image, log)) {
      if (key) lt_cuda_cache_keep(key, key_size, &image);
      loaded = lt_cuda_ok(load(&image, &function), "load a kernel");
    }
  }
  lt_cuda_image_free(&image);
  free(key);
  return loaded ? make(index, source->name, function) : NULL;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* The device's limits for launches, by axis; read at the first launch. */
typedef struct Limits {
  int grid[3], block[3], threads, shared;
} Limits;

/* Returns the limits of a device; NULL when they cannot be read. */
static const Limits *limits_of(int index) {
  static Limits known[LT_ACCEL_MAX];
  Limits *l = &known[index];
  if (l->threads) return l;
  bool ok = true;
#define ASK(what, attribute)                                                                       \
  (ok = ok && lt_cuda_ok(cudaDeviceGetAttribute(&(what), attribute, index), "read its limits"))
  for (int i = 0; i < 3; i++) {
    ASK(l->grid[i], (enum cudaDeviceAttr)(cudaDevAttrMaxGridDimX + i));
    ASK(l->block[i], (enum cudaDeviceAttr)(cudaDevAttrMaxBlockDimX + i));
  }
  ASK(l->shared, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  ASK(l->threads, cudaDevAttrMaxThreadsPerBlock);
#undef ASK
  return ok ? l : NULL;
}

/* Checks the sizes of a grid or block; `what` names the argument. */
static bool check_axes(const char *what, const int64_t size[3], const int limit[3]) {
  for (int i = 0; i < 3; i++)
    if (size[i] < 1 || size[i] > limit[i])
      return lt_fail("expected 1 to %d in %c for argument '%s', got %lld", limit[i], "xyz"[i], what,
                     (long long)size[i]);
  return true;
}

/* Checks a launch against the limits of the device. */
static bool check(const lt_UserKernel *k, const lt_KernelLaunch *l) {
  const Limits *limits = limits_of(k->index);
  if (!limits || !check_axes("grid", l->grid, limits->grid) ||
      !check_axes("block", l->block, limits->block))
    return false;
  int64_t threads = l->block[0] * l->block[1] * l->block[2];
  if (threads > limits->threads)
    return lt_fail("expected at most %d threads in a block for argument 'block', got %lld x %lld x "
                   "%lld = %lld\nhint: use more blocks",
                   limits->threads, (long long)l->block[0], (long long)l->block[1],
                   (long long)l->block[2], (long long)threads);
  if (l->shared < 0 || l->shared > limits->shared)
    return lt_fail("expected 0 to %d for argument 'shared_bytes', got %lld", limits->shared,
                   (long long)l->shared);
  return true;
}

/* Shared memory above the default limit of 48 KiB must be requested from the driver before a
 * launch. */
static bool launch_kernel(lt_UserKernel *k, const lt_KernelLaunch *launch, lt_Stream *stream) {
  if (!lt_cuda_select(k->index) || !lt_cuda_fault_check(k->index) || !check(k, launch))
    return false;
  enum { DEFAULT_LIMIT = 48 << 10 };
  if (launch->shared > DEFAULT_LIMIT && launch->shared > k->shared) {
    if (!lt_cuda_ok(lt_cuda_allow_shared(k->function, (size_t)launch->shared),
                    "reserve shared memory"))
      return false;
    k->shared = launch->shared;
  }
  cudaStream_t native = (cudaStream_t)lt_accel_native(stream);
  cudaError_t status = lt_cuda_launch_function(k->function, launch, native);
  if (status == cudaErrorMemoryAllocation && lt_cuda_free_cached())
    status = lt_cuda_launch_function(k->function, launch, native);
  bool waits = lt_cuda_is_blocking() && !lt_capture_of(&lt_cuda_backend, k->index);
  if (status == cudaSuccess && waits && !lt_wait_stream(stream)) return false;
  return lt_cuda_launch_ok(lt_cuda_note_launch(k->name, native, status));
}

/* Error messages, now and later, show the kernel's name where they show an op's. */
bool lt_cuda_kernel_launch(lt_UserKernel *k, const lt_KernelLaunch *launch, lt_Stream *stream) {
  lt_UserOp now = lt_user_op_set((lt_UserOp){k->name, false});
  bool ok = launch_kernel(k, launch, stream);
  lt_user_op_set(now);
  return ok;
}

void lt_cuda_kernel_stop(int index) { lt_cuda_stop_functions(index); }
