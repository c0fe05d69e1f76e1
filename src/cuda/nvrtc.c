/* nvrtc.c: NVRTC, NVIDIA's run-time compiler, and the driver's functions that load and launch its
 * code.
 *
 * Lutra is linked with neither: a program that compiles no kernel does not need a compiler on its
 * machine. Both libraries are loaded when the first kernel is compiled. The emulated runtime
 * defines functions of the same names, so that this file works with both. Handles are void * and
 * statuses int, as the libraries define them.
 */
#define _GNU_SOURCE
#include "user_kernel.h"

#include <pthread.h>

#ifdef LT_CUDA_EMULATED
#include <emulated/nvrtc.h>
#else
#include "libraries.h"

#include <dlfcn.h>
#endif

/* ---- loading the libraries ------------------------------------------------------------------- */

#define COMPILER(X)                                                                                \
  X(nvrtcVersion, (int *major, int *minor))                                                        \
  X(nvrtcCreateProgram, (void **program, const char *text, const char *name, int headers,          \
                         const char *const *header_texts, const char *const *header_names))        \
  X(nvrtcDestroyProgram, (void **program))                                                         \
  X(nvrtcAddNameExpression, (void *program, const char *expression))                               \
  X(nvrtcCompileProgram, (void *program, int count, const char *const *options))                   \
  X(nvrtcGetLoweredName, (void *program, const char *expression, const char **name))               \
  X(nvrtcGetProgramLogSize, (void *program, size_t *size))                                         \
  X(nvrtcGetProgramLog, (void *program, char *log))                                                \
  X(nvrtcGetCUBINSize, (void *program, size_t *size))                                              \
  X(nvrtcGetCUBIN, (void *program, char *code))                                                    \
  X(nvrtcGetPTXSize, (void *program, size_t *size))                                                \
  X(nvrtcGetPTX, (void *program, char *code))                                                      \
  X(nvrtcGetNumSupportedArchs, (int *count))                                                       \
  X(nvrtcGetSupportedArchs, (int *archs))
#define DRIVER(X)                                                                                  \
  X(cuModuleLoadData, (void **module, const void *code))                                           \
  X(cuModuleGetFunction, (void **function, void *module, const char *name))                        \
  X(cuFuncSetAttribute, (void *function, int attribute, int value))                                \
  X(cuLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,            \
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,        \
                     void *stream, void **arguments, void **extra))

static struct {
#define X(name, parameters) int(*name) parameters;
  COMPILER(X)
  DRIVER(X)
#undef X
  void (*stop)(int index); /* emulated devices only; else NULL */
} f;
static char why[600]; /* why there is no compiler; "" where there is one */
/* major * 100 + minor of the compiler; 0 if there is none */
static int version;
#ifndef LT_CUDA_EMULATED
static char headers[1000]; /* the folder of the toolkit's headers; "" where it is not found */
#endif

/* Stores an address in a function pointer of any type. Returns false for NULL. */
static bool set_function(void *function, void *address) {
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

#ifdef LT_CUDA_EMULATED

static bool stopped(void) { return lt_stopped(); }

/* Loads the compiler and the driver's functions; sets `why` on failure. */
static void find(void) {
  bool ok = true;
#define X(name, parameters) ok = set_function(&f.name, lt_emulated_symbol(#name)) && ok;
  COMPILER(X)
  DRIVER(X)
#undef X
  ok = set_function(&f.stop, lt_emulated_symbol("lt_emulated_stop")) && ok;
  if (!ok)
    snprintf(why, sizeof why,
             "the kernel compiler of emulated devices is not available in this build");
  lt_emulated_set_stop_callback(stopped);
}

#else

static void find(void) {
  char path[1000];
  void *compiler = lt_cuda_library_open(LT_LIBRARY_NVRTC, 0, NULL, path, sizeof path);
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const char *missing = NULL;
  if (!compiler) {
    snprintf(why, sizeof why,
             "NVIDIA's kernel compiler (libnvrtc.so.13 or .12, part of the CUDA toolkit) was not "
             "found on this machine\nhint: pip install nvidia-cuda-nvrtc, or set CUDA_HOME to the "
             "folder of the "
             "toolkit or LD_LIBRARY_PATH to that of the library");
    return;
  }
  lt_cuda_include_folder(path, headers, sizeof headers);
  if (!driver) {
    snprintf(why, sizeof why, "NVIDIA's driver (libcuda.so.1) was not found on this machine");
    return;
  }
#define X(name, parameters)                                                                        \
  if (!set_function(&f.name, dlsym(compiler, #name))) missing = #name;
  COMPILER(X)
#undef X
#define X(name, parameters)                                                                        \
  if (!set_function(&f.name, dlsym(driver, #name))) missing = #name;
  DRIVER(X)
#undef X
  if (missing)
    snprintf(why, sizeof why, "libnvrtc or libcuda is too old: it lacks the function %s", missing);
}

#endif

static void find_once(void) {
  int major = 0, minor = 0;
  find();
  if (!why[0] && f.nvrtcVersion(&major, &minor) == 0) version = major * 100 + minor;
}

bool lt_cuda_compiler_ready(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_once);
  return !why[0] || lt_error_set("%s", why);
}

int lt_cuda_compiler_version(void) { return version; }

/* ---- compiling ------------------------------------------------------------------------------- */

/* Writes the compiler's option for the device's architecture. Returns true for machine code.
 * Returns false where the compiler does not know the architecture: then the option asks for PTX of
 * the newest one that it knows, which the driver compiles. */
static bool choose_arch(int index, char *option, size_t size) {
  const lt_CudaFacts *facts = lt_cuda_facts(index);
  int required = facts->major * 10 + facts->minor, best = 0, count = 0, archs[64];
  if (f.nvrtcGetNumSupportedArchs(&count) == 0 && count <= 64 &&
      f.nvrtcGetSupportedArchs(archs) == 0)
    for (int i = 0; i < count; i++)
      if (archs[i] <= required && archs[i] > best) best = archs[i];
  bool exact = best == required || best == 0;
  snprintf(option, size, "--gpu-architecture=%s_%d", exact ? "sm" : "compute",
           best ? best : required);
  return exact;
}

/* Writes the option for the toolkit's headers (cuda_fp16.h), which NVRTC does not find itself.
 * `folder` is "" or a folder below: since CUDA 13 the C++ headers for devices are in /cccl. */
static const char *include_option(const char *folder, char *option, size_t size) {
#ifdef LT_CUDA_EMULATED
  (void)folder;
  snprintf(option, size, "--std=c++17");
#else
  snprintf(option, size, "--include-path=%s%s", headers[0] ? headers : "/usr/local/cuda/include",
           folder);
#endif
  return option;
}

/* Returns the compiler's output, malloc'ed, or NULL. */
static char *read_log(void *program) {
  size_t size = 0;
  if (f.nvrtcGetProgramLogSize(program, &size) != 0) return NULL;
  char *log = calloc(size + 1, 1);
  if (log && f.nvrtcGetProgramLog(program, log) != 0) log[0] = 0;
  return log;
}

/* Reads machine code (`exact`) or PTX and the kernel's symbol into *out; false with a message. */
static bool read_code(void *program, bool exact, const char *expression, lt_CudaImage *out) {
  const char *symbol = NULL;
  size_t size = 0;
  int status = exact ? f.nvrtcGetCUBINSize(program, &size) : f.nvrtcGetPTXSize(program, &size);
  char *code = status == 0 ? malloc(size ? size : 1) : NULL;
  if (!code) return lt_error_set("the compiler returned no code (NVRTC error %d)", status);
  status = exact ? f.nvrtcGetCUBIN(program, code) : f.nvrtcGetPTX(program, code);
  if (status == 0) status = f.nvrtcGetLoweredName(program, expression, &symbol);
  *out = (lt_CudaImage){status == 0 ? strdup(symbol) : NULL, code, size};
  if (out->symbol) return true;
  lt_cuda_image_free(out);
  return lt_error_set("the compiler returned no code (NVRTC error %d)", status);
}

bool lt_cuda_compile(int index, const lt_KernelSource *source, lt_CudaImage *out, char **log) {
  char arch[64], include[1024], own_include[1024], file[128];
  bool exact = choose_arch(index, arch, sizeof arch);
  enum { OWN = 4 };
  int count = source->option_count + OWN;
  const char **options = malloc((size_t)count * sizeof *options);
  void *program = NULL;
  if (!options) return lt_error_memory("out of memory");
  options[0] = arch;
  options[1] = include_option("", include, sizeof include);
  options[2] = include_option("/cccl", own_include, sizeof own_include);
  options[3] = "--device-as-default-execution-space"; /* functions without __device__ are device
                                                       * functions */
  for (int i = OWN; i < count; i++) options[i] = source->options[i - OWN];
  snprintf(file, sizeof file, "%.100s.cu", source->name);
  int status = f.nvrtcCreateProgram(&program, source->text, file, LT_CUDA_HEADERS,
                                    lt_cuda_header_texts, lt_cuda_header_names);
  if (status == 0) status = f.nvrtcAddNameExpression(program, source->expression);
  if (status == 0) status = f.nvrtcCompileProgram(program, count, options);
  free(options);
  bool ok = status == 0 && read_code(program, exact, source->expression, out);
  if (status != 0) {
    if (program) *log = read_log(program);
    if (lt_check_interrupt()) lt_error_set("the source does not compile (NVRTC error %d)", status);
  }
  if (program) f.nvrtcDestroyProgram(&program);
  return ok;
}

/* ---- running --------------------------------------------------------------------------------- */

/* The driver's statuses have the same numbers as the runtime's. */
cudaError_t lt_cuda_load(const lt_CudaImage *image, void **function) {
  void *module = NULL;
  cudaFree(NULL); /* makes the selected device's context current for the driver's functions */
  int status = f.cuModuleLoadData(&module, image->bytes);
  return (cudaError_t)(status ? status : f.cuModuleGetFunction(function, module, image->symbol));
}

cudaError_t lt_cuda_allow_shared(void *function, size_t bytes) {
  enum { MAX_DYNAMIC_SHARED = 8 };
  return (cudaError_t)f.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, (int)bytes);
}

cudaError_t lt_cuda_launch_function(void *function, const lt_KernelLaunch *l, cudaStream_t stream) {
  return (cudaError_t)f.cuLaunchKernel(function, (unsigned)l->grid[0], (unsigned)l->grid[1],
                                       (unsigned)l->grid[2], (unsigned)l->block[0],
                                       (unsigned)l->block[1], (unsigned)l->block[2],
                                       (unsigned)l->shared, stream, l->arguments, NULL);
}

void lt_cuda_stop_functions(int index) {
  if (f.stop) f.stop(index);
}
