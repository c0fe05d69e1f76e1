/* test_nvrtc.c: src/cuda/nvrtc.c with NVIDIA's real compiler, which needs no GPU: programs,
 * options, headers, names and messages. Skipped where there is no libnvrtc.
 *
 *     test_nvrtc file kernel     compiles that file for the specs: status 0, 1 with the compiler's
 *                                output, or 77 without a compiler
 */
#define _GNU_SOURCE
#include "check.h"

#include "../../src/cuda/user_kernel.h"
#undef LT_CUDA_EMULATED /* only its header replaces the toolkit's */

#include <dlfcn.h>
#include <stdlib.h>

/* This program stands in for the driver's library, none of whose functions is called. */
static void *open_library(const char *name, int flags) {
  return dlopen(strcmp(name, "libcuda.so.1") == 0 ? NULL : name, flags);
}
int cuModuleLoadData(void), cuModuleGetFunction(void), cuFuncSetAttribute(void),
    cuLaunchKernel(void);
int cuModuleLoadData(void) { return 1; }
int cuModuleGetFunction(void) { return 1; }
int cuFuncSetAttribute(void) { return 1; }
int cuLaunchKernel(void) { return 1; }

#define dlopen open_library
#include "../../src/cuda/libraries.c"
#include "../../src/cuda/nvrtc.c"

#include "../../src/cuda/kernel_headers.c"

const lt_CudaFacts *lt_cuda_facts(int index) {
  static const lt_CudaFacts a100 = {.major = 8, .minor = 0};
  (void)index;
  return &a100;
}
cudaError_t cudaFree(void *memory) {
  (void)memory;
  return cudaSuccess;
}
void lt_cuda_image_free(lt_CudaImage *image) {
  free(image->symbol);
  free(image->bytes);
  *image = (lt_CudaImage){NULL, NULL, 0};
}

/* Returns the symbol of the kernel k, or the compiler's output; NULL without a compiler.
 * malloc'ed. */
static char *compiled(const char *text, const char *expression, const char *option) {
  lt_KernelSource source = {text, "k", expression, &option, option ? 1 : 0};
  lt_CudaImage image = {NULL, NULL, 0};
  char *log = NULL;
  if (!lt_cuda_compiler_ready()) return NULL;
  if (!lt_cuda_compile(0, &source, &image, &log)) return log;
  char *symbol = strdup(image.symbol);
  lt_cuda_image_free(&image);
  return symbol;
}

/* Checks that the symbol or the compiler's output contains `piece`. */
static void check_compiled(const char *piece, const char *text, const char *expression,
                           const char *option) {
  char *actual = compiled(text, expression, option);
  if (!actual) {
    SKIP("no libnvrtc");
    return;
  }
  if (!strstr(actual, piece)) check_report(__FILE__, __LINE__, "no \"%s\" in: %s", piece, actual);
  free(actual);
}

#define AS(types) "static_cast<void (*)(" types ")>(&k)"

static void finds_the_kernel_of_a_type(void) {
  const char *both = "__global__ void k(float *x) {}\n__global__ void k(const int *x, bool y) {}";
  check_compiled("_Z1kPf", both, AS("float *"), NULL);
  check_compiled("_Z1kPKib", both, AS("const int *, bool"), NULL);
  check_compiled("__nv_name_map", both, AS("double *"), NULL);
  check_compiled("_ZN5space1kEPf", "namespace space { __global__ void k(float *x) {} }",
                 "static_cast<void (*)(float *)>(&space::k)", NULL);
  check_compiled(
      "_Z1kP6float4PK4int2",
      "__global__ void k(float4 *y, const int2 *x) { y[0] = make_float4(x[0].y, 1, 2, 3); }",
      AS("float4 *, const int2 *"), NULL);
  check_compiled("k",
                 "extern \"C\" __global__ void k(float *const __restrict__ x, const int n = 3) {}",
                 AS("float *, int"), NULL);
}

static void reads_c_headers_and_the_toolkits(void) {
  check_compiled("_Z1kPxhPf",
                 "#include <stdint.h>\n#include <cstdint>\n#include <math.h>\n#include <cmath>\n"
                 "#include <limits.h>\n#include <climits>\n#include <float.h>\n#include <cfloat>\n"
                 "#include <stddef.h>\n#include <cstddef>\n#include <stdio.h>\n#include <cstdio>\n"
                 "#include <assert.h>\n#include <cassert>\n"
                 "__global__ void k(int64_t *x, std::uint8_t y, float *z) {\n"
                 "  assert(x); printf(\"%d\", INT_MAX);\n"
                 "  z[0] = fmaxf(-INFINITY, FLT_MAX) + NAN + M_PI + FLT_EPSILON;\n"
                 "  x[0] = LLONG_MIN + (int64_t)sizeof(uintptr_t) + (int64_t)UINT_MAX;\n"
                 "}",
                 AS("int64_t *, uint8_t, float *"), NULL);
  check_compiled("cannot open source file \"iostream\"",
                 "#include <iostream>\n__global__ void k() {}", AS(""), NULL);
}

static void accepts_functions_without_an_execution_space(void) {
  check_compiled("_Z1kPf",
                 "float twice(float x) { return 2 * x; }\nconst float table[2] = {1, 2};\n"
                 "__global__ void k(float *x) { x[0] = twice(table[1]); }",
                 AS("float *"), NULL);
}

/* Errors have the form that lib/lutra/internal/kernel.lua parses. */
static void reports_errors(void) {
  check_compiled("k.cu(2): error: identifier \"y\" is undefined\n    x[0] = y;\n           ^",
                 "__global__ void k(float *x) {\n  x[0] = y;\n}", AS("float *"), NULL);
  check_compiled("At end of source: error: expected a \"}\"", "__global__ void k(float *x) {\n",
                 AS("float *"), NULL);
  check_compiled("k.cu(1): note #3196-D: to match this \"{\"", "__global__ void k(float *x) {\n",
                 AS("float *"), NULL);
  check_compiled("unrecognized option --use-fast-math", "__global__ void k() {}", AS(""),
                 "--use-fast-math");
  check_compiled("_Z1kv", "__global__ void k() {}", AS(""), "--use_fast_math");
}

/* Compiles one file for a spec. */
static int compile_file(const char *path, const char *kernel) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 22);
  if (!file || !text || !lt_cuda_compiler_ready()) return 77;
  size_t size = fread(text, 1, (1 << 22) - 1, file);
  fclose(file);
  char *actual = compiled(text, kernel, NULL);
  bool ok = size > 0 && actual && strstr(actual, kernel) && !strstr(actual, "error");
  if (!ok) puts(actual ? actual : "it says nothing");
  free(actual);
  free(text);
  return !ok;
}

int main(int count, char **values) {
  if (count == 3) return compile_file(values[1], values[2]);
  RUN(finds_the_kernel_of_a_type);
  RUN(reads_c_headers_and_the_toolkits);
  RUN(accepts_functions_without_an_execution_space);
  RUN(reports_errors);
  return check_end();
}
