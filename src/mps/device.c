/* device.c: the backend of Apple's GPUs: whether there is one, its properties and table of
 * functions. */
#include "queue.h"

#include <pthread.h>

/* ---- kernels --------------------------------------------------------------------------------- */

#define LT_KERNEL_NAME(op)      lt_mps_##op
#define LT_KERNEL_LINK          __attribute__((weak))
#define LT_KERNEL_OF_REDUCTIONS lt_mps_reduce
#include "kernel_table.def"

/* ---- the device ------------------------------------------------------------------------------ */

/* An Apple machine has one GPU. */
static struct {
  lt_MetalDevice *device;
  lt_MetalFacts facts;
  char why[300];
} found;
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

static void find(void) {
  lt_MetalError error = {LT_METAL_OTHER, ""};
  found.device = lt_metal_device(0, &error);
  if (found.device)
    lt_metal_facts(found.device, &found.facts);
  else
    snprintf(found.why, sizeof found.why, "%.290s", error.text);
}

int lt_mps_count(char *why, size_t why_size) {
  pthread_once(&found_once, find);
  if (!found.device) snprintf(why, why_size, "%s", found.why);
  return found.device != NULL;
}

lt_MetalDevice *lt_mps_device(int index) {
  (void)index;
  return found.device;
}

const lt_MetalFacts *lt_mps_facts(int index) {
  (void)index;
  return &found.facts;
}

/* The kernels need SIMD groups of 32 threads. metal.m refuses what else is not supported. */
bool lt_mps_initialize(int index) {
  const lt_MetalFacts *f = lt_mps_facts(index);
  return f->simd_width == 32 ||
         lt_fail("cannot use \"mps\", %.100s: expected SIMD groups of 32 threads, got %u", f->name,
                 f->simd_width);
}

/* lt_Backend's `properties`. The total memory is what the device can use without swapping, which is
 * the limit of its tensors. */
static bool properties(int index, lt_DeviceProperties *out) {
  lt_MetalFacts now;
  if (!lt_accel_ready(&lt_mps_backend, index) || !lt_mps_check_lost(index)) return false;
  lt_metal_facts(lt_mps_device(index), &now);
  uint64_t left = now.allocated < now.recommended ? now.recommended - now.allocated : 0;
  *out = (lt_DeviceProperties){.total_memory = (int64_t)now.recommended,
                               .free_memory = (int64_t)left,
                               .multiprocessors = now.cores,
                               .shared_memory_per_block = now.threadgroup,
                               .shared_memory_per_block_optin = now.threadgroup,
                               .max_threads_per_block = (int)now.threads,
                               .warp_size = (int)now.simd_width,
                               .emulated = now.emulated};
  snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, now.name);
  return true;
}

/* lt_Backend's `fact`. Strings live as long as the program. */
static const char *fact(int index, const char *what) {
  static char isa[16];
  pthread_once(&found_once, find);
  const lt_MetalFacts *f = lt_mps_facts(index);
  if (!found.device) return NULL;
  if (strcmp(what, "isa") == 0) {
    snprintf(isa, sizeof isa, "apple%d", f->family);
    return isa;
  }
  if (strcmp(what, "unified") == 0) return f->unified ? "yes" : "no";
  return NULL;
}

/* ---- options --------------------------------------------------------------------------------- */

atomic_bool lt_mps_options[LT_MPS_OPTIONS];

/* lt_Backend's `option`. */
static int option(const char *name, int value) {
  static const char *const names[LT_MPS_OPTIONS] = {[LT_MPS_OPTION_MATMUL] = "matmul.prefer_apple"};
  for (int i = 0; i < LT_MPS_OPTIONS; i++) {
    if (strcmp(names[i], name) != 0) continue;
    return value < 0 ? atomic_load(&lt_mps_options[i])
                     : atomic_exchange(&lt_mps_options[i], value != 0);
  }
  return -1;
}

/* ---- synchronization, which also raises the faults of kernels -------------------------------- */

static bool (*base_device_synchronize)(const lt_Backend *self, int index);
static bool (*base_stream_synchronize)(lt_Stream *stream);

static bool synchronize(const lt_Backend *self, int index) {
  return base_device_synchronize(self, index) && lt_mps_fault_check(index);
}

static bool stream_synchronize(lt_Stream *stream) {
  return base_stream_synchronize(stream) && lt_mps_fault_check(stream->index);
}

/* ---- table of functions ---------------------------------------------------------------------- */

lt_Backend lt_mps_backend = {
    .abi = LT_BACKEND_ABI,
    .name = "mps",
    .numbered = false,
    .host_memory = false,
    .asynchronous = true,
    .has_data = true,
    .without_dtypes = 1u << LT_float64 | 1u << LT_complex128,
    .properties = properties,
    .fact = fact,
    .option = option,
    .mark = lt_metal_signpost,
    .memory.copy = lt_mps_copy,
    .memory.fill_zero = lt_mps_fill_zero,
    .kernels.user_create = lt_mps_kernel_new,
    .kernels.user_launch = lt_mps_kernel_launch,
    .kernels.user_limits = lt_mps_kernel_limits,
    .kernels.user_stop = lt_mps_kernel_stop,
    .kernels.elementwise = lt_mps_elementwise,
    .kernels.elementwise_supported = lt_mps_elementwise_supported,
    .kernels.check_divisor = lt_mps_check_divisor,
    .kernels.table = kernels,
};

const lt_Backend *lt_backend(void);
const lt_Backend *lt_backend(void) {
  if (!lt_accel_attach(&lt_mps_backend, &lt_mps_driver)) return NULL;
  base_device_synchronize = lt_mps_backend.streams.device_synchronize;
  base_stream_synchronize = lt_mps_backend.streams.synchronize;
  lt_mps_backend.streams.device_synchronize = synchronize;
  lt_mps_backend.streams.synchronize = stream_synchronize;
  return &lt_mps_backend;
}

__attribute__((destructor)) static void end(void) {
  if (!lt_mps_backend.own) return;
  lt_mps_queues_stop();
  lt_mps_pipelines_keep();
  lt_accel_shutdown(&lt_mps_backend);
}
