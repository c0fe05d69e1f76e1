/* device.c: the CPU backend: the simplest device, whose calls are complete when they return. */
#include "cpu.h"
#include "capability.h"
#include "fftw.h"
#include "moves.h"
#include "mpi.h"
#include "onednn.h"
#include "vector.h"

#include <unistd.h>

/* ---- kernels --------------------------------------------------------------------------------- */

/* The CPU implements every kernel: other devices fall back to these. */
#define LT_KERNEL_NAME(op) lt_cpu_##op
#define LT_KERNEL_LINK
#define LT_KERNEL_OF_REDUCTIONS lt_cpu_reduce
#include "kernel_table.def"

/* ---- copies ---------------------------------------------------------------------------------- */

#define STEP ((size_t)16 << 20) /* bytes between two checks for an interrupt */

/* Copies nbytes, in steps between which an interrupt stops it; then the target is incomplete and
 * the result false. Source and target of a small copy may overlap. */
static bool cpu_copy(lt_Device to, void *target, lt_Device from, const void *source, size_t nbytes,
                     lt_Stream *stream, bool non_blocking) {
  (void)to, (void)from, (void)stream, (void)non_blocking;
  if (nbytes <= STEP) {
    memmove(target, source, nbytes);
    return true;
  }
  for (size_t i = 0; i < nbytes && !lt_stopped(); i += STEP)
    lt_copy_bytes((char *)target + i, (const char *)source + i,
                  nbytes - i < STEP ? nbytes - i : STEP);
  return lt_check_interrupt();
}

static bool cpu_fill_zero(int index, void *memory, size_t nbytes, lt_Stream *stream) {
  (void)index, (void)stream;
  for (size_t i = 0; i < nbytes && !lt_stopped(); i += STEP)
    memset((char *)memory + i, 0, nbytes - i < STEP ? nbytes - i : STEP);
  return lt_check_interrupt();
}

/* ---- the machine ----------------------------------------------------------------------------- */

static int cpu_count(char *why, size_t why_size) {
  (void)why, (void)why_size;
  return 1;
}

/* Writes the CPU's model name from /proc/cpuinfo, "CPU" without one. */
static void model_name(char *name, size_t size) {
  snprintf(name, size, "CPU");
  FILE *f = fopen("/proc/cpuinfo", "r");
  if (!f) return;
  char line[256];
  while (fgets(line, sizeof line, f)) {
    if (strncmp(line, "model name", 10) != 0 || !strchr(line, ':')) continue;
    char *text = strchr(line, ':') + 1;
    text += strspn(text, " ");
    text[strcspn(text, "\n")] = 0;
    snprintf(name, size, "%.*s", (int)size - 1, text);
    break;
  }
  fclose(f);
}

static bool cpu_properties(int index, lt_DeviceProperties *out) {
  (void)index;
  *out = (lt_DeviceProperties){.multiprocessors = (int)sysconf(_SC_NPROCESSORS_ONLN)};
  model_name(out->name, sizeof out->name);
  out->total_memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  out->free_memory = (int64_t)lt_cpu_memory_available();
  return true;
}

static const char *cpu_fact(int index, const char *what) {
  (void)index;
  if (strcmp(what, "isa") == 0) return lt_cpu_isa()->name;
  if (strcmp(what, "onednn") == 0) return lt_cpu_onednn_name();
  if (strcmp(what, "fftw") == 0) return lt_fftw_name();
  return strcmp(what, "blas") == 0 ? lt_cpu_blas_name() : NULL;
}

static int cpu_option(const char *name, int value) {
  return strcmp(name, "onednn.enabled") == 0 ? lt_cpu_onednn_enabled(value) : -1;
}

/* Checks environment variables that select code for the CPU, before any of that code runs. */
static bool check_environment(void) {
  uint32_t features = lt_cpu_features();
  return lt_cpu_check_capability(getenv("LUTRA_CPU_CAPABILITY"), features) &&
         lt_cpu_check_core_type(getenv("LUTRA_OPENBLAS_CORETYPE"), features) && lt_cpu_check_blas();
}

/* Returns the CPU backend; NULL with the error set if the environment selects code that the CPU
 * cannot run. */
const lt_Backend *lt_backend_cpu(void) {
  static const lt_Backend backend = {
      .abi = LT_BACKEND_ABI,
      .name = "cpu",
      .numbered = false,
      .host_memory = true,
      .asynchronous = false,
      .has_data = true,
      .count = cpu_count,
      .properties = cpu_properties,
      .fact = cpu_fact,
      .option = cpu_option,
      .memory.alloc = lt_cpu_alloc,
      .memory.free = lt_cpu_free,
      .memory.copy = cpu_copy,
      .memory.fill_zero = cpu_fill_zero,
      .memory.is_zero = lt_cpu_memory_is_zero,
      .memory.release = lt_cpu_memory_release,
      .memory.info = lt_cpu_memory_info,
      .memory.stats = lt_cpu_memory_stats,
      .memory.reset_peak = lt_cpu_memory_reset_peak,
      .kernels.elementwise = lt_cpu_elementwise,
      .kernels.program = lt_cpu_program,
      .kernels.check_divisor = lt_cpu_check_divisor,
      .kernels.table = kernels,
      .communication.find_library = lt_cpu_communication_find_library,
      .communication.job = lt_cpu_communication_job,
      .communication.finalize = lt_cpu_communication_finalize,
      .communication.is_started = lt_cpu_communication_is_started,
      .communication.create = lt_cpu_communicator_create,
      .communication.destroy = lt_cpu_communicator_destroy,
      .communication.submit = lt_cpu_communication_submit,
      .communication.is_done = lt_cpu_work_is_done,
      .communication.wait = lt_cpu_work_wait,
      .communication.release = lt_cpu_work_release,
  };
  if (!check_environment()) return NULL;
  return &backend;
}
