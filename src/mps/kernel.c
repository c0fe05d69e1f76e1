/* kernel.c: kernels that users write in the Metal Shading Language, compiled at run time.
 *
 * A source is compiled once, and each of its kernels once. They are never freed: a kernel may still
 * be running when the last reference to it is released.
 */
#define _GNU_SOURCE
#include "queue.h"

#include <pthread.h>

typedef struct Source {
  struct Source *next;
  int index;
  char *text;
  lt_MetalLibrary *library;
} Source;

struct lt_UserKernel {
  lt_UserKernel *next;
  const Source *source;
  char *name;
  lt_MetalPipeline *native;
};

static Source *sources;
static lt_UserKernel *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of both lists, and while compiling */

/* ---- compiling ------------------------------------------------------------------------------- */

/* Returns the compiled source. Warnings of the compiler are ignored. Requires the lock. */
static Source *source_of(int index, const char *text, char **log) {
  Source *s = sources;
  while (s && (s->index != index || strcmp(s->text, text) != 0)) s = s->next;
  if (s) return s;
  lt_MetalError error;
  char *warnings = NULL;
  s = malloc(sizeof *s);
  char *copy = strdup(text);
  if (!s || !copy) {
    free(s);
    free(copy);
    return lt_error_memory("out of memory");
  }
  lt_MetalLibrary *library = lt_metal_library_new(lt_mps_device(index), text, &warnings, &error);
  if (!library) {
    free(s);
    free(copy);
    *log = warnings;
    lt_mps_fail(index, &error, "compile the source");
    return NULL;
  }
  free(warnings);
  *s = (Source){sources, index, copy, library};
  return sources = s;
}

/* Returns a kernel of the source. Requires the lock. */
static lt_UserKernel *kernel_of(const Source *source, const char *name) {
  lt_UserKernel *k = all;
  while (k && (k->source != source || strcmp(k->name, name) != 0)) k = k->next;
  if (k) return k;
  lt_MetalError error;
  k = malloc(sizeof *k);
  char *copy = strdup(name);
  if (!k || !copy) {
    free(k);
    free(copy);
    return lt_error_memory("out of memory");
  }
  lt_MetalPipeline *native = lt_metal_pipeline_new(source->library, name, NULL, 0, NULL, &error);
  if (!native) {
    free(k);
    free(copy);
    char doing[128];
    snprintf(doing, sizeof doing, "compile kernel %.100s", name);
    lt_mps_fail(source->index, &error, doing);
    return NULL;
  }
  *k = (lt_UserKernel){all, source, copy, native};
  return all = k;
}

lt_UserKernel *lt_mps_kernel_new(int index, const lt_KernelSource *source, char **log) {
  *log = NULL;
  if (!lt_accel_ready(&lt_mps_backend, index) || !lt_mps_check_lost(index)) return NULL;
  pthread_mutex_lock(&lock);
  const Source *s = source_of(index, source->text, log);
  lt_UserKernel *k = s ? kernel_of(s, source->name) : NULL;
  pthread_mutex_unlock(&lock);
  return k;
}

bool lt_mps_kernel_limits(const lt_UserKernel *k, lt_KernelLimits *out) {
  *out = (lt_KernelLimits){.threads = (int)k->native->threads,
                           .simd_width = (int)k->native->simd_width,
                           .shared = k->native->threadgroup};
  return true;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* Chooses the threadgroup of a grid that counts threads: a SIMD group wide, or as wide as the grid
 * is; as many threads as the kernel can run, at most 256. */
static void choose_block(const lt_UserKernel *k, const int64_t grid[3], int64_t block[3]) {
  int64_t most = k->native->threads < 256 ? k->native->threads : 256;
  bool flat = grid[1] == 1 && grid[2] == 1;
  block[0] = flat ? most : (int64_t)k->native->simd_width;
  if (block[0] > grid[0]) block[0] = grid[0];
  block[1] = most / block[0] < grid[1] ? most / block[0] : grid[1];
  block[2] = 1;
}

/* Fills in the sizes of the dispatch, which must be within the limits. */
static bool fill_sizes(const lt_UserKernel *k, const lt_KernelLaunch *l, lt_MetalDispatch *d) {
  int64_t block[3] = {l->block[0], l->block[1], l->block[2]}, threads = 1;
  for (int i = 0; i < 3; i++)
    if (l->grid[i] < 1 || l->grid[i] > UINT32_MAX)
      return lt_fail("expected 1 to %u in %c for argument '%s', got %lld", UINT32_MAX, "xyz"[i],
                     l -> by_threads ? "threads" : "grid", (long long)l->grid[i]);
  if (l->by_threads && block[0] == 0) choose_block(k, l->grid, block);
  for (int i = 0; i < 3; i++) {
    if (block[i] < 1 || block[i] > k->native->threads)
      return lt_fail("expected 1 to %u in %c for argument 'group_size', got %lld",
                     k->native->threads, "xyz"[i], (long long)block[i]);
    threads *= block[i];
    if (!l->by_threads && l->grid[i] > UINT32_MAX / block[i])
      return lt_fail("expected at most %u threads in %c, got %lld x %lld", UINT32_MAX, "xyz"[i],
                     (long long)l -> grid[i], (long long)block[i]);
    d->grid[i] = (uint32_t)(l->by_threads ? l->grid[i] : l->grid[i] * block[i]);
    d->group[i] = (uint32_t)block[i];
  }
  if (threads > k->native->threads)
    return lt_fail("expected at most %u threads in a threadgroup for argument 'group_size', got "
                   "%lld x %lld x %lld = %lld",
                   k->native->threads, (long long)block[0], (long long)block[1],
                   (long long)block[2], (long long)threads);
  int64_t most = (int64_t)lt_mps_facts(k->source->index)->threadgroup - k->native->threadgroup;
  if (l->shared < 0 || l->shared > most)
    return lt_fail("expected 0 to %lld bytes of threadgroup memory, got %lld", (long long)most,
                   (long long)l->shared);
  d->threadgroup = (uint32_t)((l->shared + 15) / 16 * 16);
  return true;
}

/* Fills in the arguments. */
static bool fill_arguments(const lt_KernelLaunch *l, lt_MetalArgument *out) {
  if (l->count > LT_METAL_ARGUMENTS)
    return lt_fail("expected at most %d arguments, got %d", LT_METAL_ARGUMENTS, l->count);
  for (int i = 0; i < l->count; i++) {
    out[i] = (lt_MetalArgument){.buffer = NULL};
    if (l->sizes[i]) {
      out[i].bytes = l->arguments[i];
      out[i].size = l->sizes[i];
      continue;
    }
    const void *memory = *(void *const *)l->arguments[i];
    if (!memory) continue;
    out[i].buffer = lt_mps_find_buffer((uint64_t)(uintptr_t)memory, 0, &out[i].offset);
    if (!out[i].buffer) return lt_fail("argument %d is not in memory of the device", i + 1);
    if (out[i].offset == out[i].buffer->size) out[i].buffer = NULL;
  }
  return true;
}

static bool launch_kernel(lt_UserKernel *k, const lt_KernelLaunch *l, lt_Stream *stream) {
  int index = k->source->index;
  lt_MetalArgument arguments[LT_METAL_ARGUMENTS];
  lt_MetalDispatch d = {.pipeline = k->native, .arguments = arguments, .count = l->count};
  lt_DriverStatus status;
  lt_MpsQueue *q = lt_mps_queue_of(index, lt_accel_native(stream));
  if (!q || !lt_mps_check_lost(index) || !lt_mps_fault_check(index) || !fill_sizes(k, l, &d) ||
      !fill_arguments(l, arguments))
    return false;
  lt_MetalCommands *open = lt_mps_queue_enter(q, k->name, &status);
  if (!open && status == LT_DRIVER_NO_MEMORY) lt_fail_memory();
  if (!open) return false;
  lt_metal_dispatch(open, &d);
  lt_mps_queue_leave(q, (size_t)d.grid[0] * d.grid[1] * d.grid[2] * 8);
  return !lt_mps_is_blocking() || (lt_wait_stream(stream) && lt_mps_queue_synchronize(q));
}

/* Error messages, now and later, show the kernel's name where they show an op's. */
bool lt_mps_kernel_launch(lt_UserKernel *k, const lt_KernelLaunch *launch, lt_Stream *stream) {
  lt_UserOp now = lt_user_op_set((lt_UserOp){k->name, false});
  bool ok = launch_kernel(k, launch, stream);
  lt_user_op_set(now);
  return ok;
}

void lt_mps_kernel_stop(int index) { lt_metal_stop(lt_mps_device(index)); }
