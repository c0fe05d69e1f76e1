/* test_nvrtc.c: what src/cuda/nvrtc.c makes of NVIDIA's real compiler, which needs no GPU:
 * programs, options, headers, names and messages. Skipped where there is no libnvrtc.
 *
 *   test_nvrtc file kernel     compiles that file for the specs: 0, 1 with what the compiler said,
 *                              or 77 where there is none
 */
#define _GNU_SOURCE
#include "check.h"

#include "../../src/cuda/user_kernel.h"
#undef LT_CUDA_EMULATED /* only its header stands in for the toolkit's */

#include <dlfcn.h>
#include <stdlib.h>

/* In the driver's place, of which nothing is called, stands this program. */
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

/* The symbol of the kernel k, or what the compiler said; NULL where no compiler is. malloc'ed. */
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

/* What is compiled gives something with `wanted` in it. */
static void gives(const char *wanted, const char *text, const char *expression,
                  const char *option) {
  char *got = compiled(text, expression, option);
  if (!got) {
    SKIP("no libnvrtc");
    return;
  }
  if (!strstr(got, wanted)) check_report(__FILE__, __LINE__, "no \"%s\" in: %s", wanted, got);
  free(got);
}

#define AS(types) "static_cast<void (*)(" types ")>(&k)"

static void has_the_kernel_of_a_type(void) {
  const char *both = "__global__ void k(float *x) {}\n__global__ void k(const int *x, bool y) {}";
  gives("_Z1kPf", both, AS("float *"), NULL);
  gives("_Z1kPKib", both, AS("const int *, bool"), NULL);
  gives("__nv_name_map", both, AS("double *"), NULL);
  gives("_ZN5space1kEPf", "namespace space { __global__ void k(float *x) {} }",
        "static_cast<void (*)(float *)>(&space::k)", NULL);
  gives("_Z1kP6float4PK4int2",
        "__global__ void k(float4 *y, const int2 *x) { y[0] = make_float4(x[0].y, 1, 2, 3); }",
        AS("float4 *, const int2 *"), NULL);
  gives("k", "extern \"C\" __global__ void k(float *const __restrict__ x, const int n = 3) {}",
        AS("float *, int"), NULL);
}

static void reads_c_headers_and_the_toolkits(void) {
  gives("_Z1kPxhPf",
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
  gives("cannot open source file \"iostream\"", "#include <iostream>\n__global__ void k() {}",
        AS(""), NULL);
}

static void takes_functions_without_a_space(void) {
  gives("_Z1kPf",
        "float twice(float x) { return 2 * x; }\nconst float table[2] = {1, 2};\n"
        "__global__ void k(float *x) { x[0] = twice(table[1]); }",
        AS("float *"), NULL);
}

/* As lib/lutra/internal/kernel.lua reads them. */
static void tells_of_errors(void) {
  gives("k.cu(2): error: identifier \"y\" is undefined\n    x[0] = y;\n           ^",
        "__global__ void k(float *x) {\n  x[0] = y;\n}", AS("float *"), NULL);
  gives("At end of source: error: expected a \"}\"", "__global__ void k(float *x) {\n",
        AS("float *"), NULL);
  gives("k.cu(1): note #3196-D: to match this \"{\"", "__global__ void k(float *x) {\n",
        AS("float *"), NULL);
  gives("unrecognized option --use-fast-math", "__global__ void k() {}", AS(""), "--use-fast-math");
  gives("_Z1kv", "__global__ void k() {}", AS(""), "--use_fast_math");
}

/* For a spec: one file. */
static int compile_file(const char *path, const char *kernel) {
  FILE *file = fopen(path, "rb");
  char *text = calloc(1, 1 << 22);
  if (!file || !text || !lt_cuda_compiler_ready()) return 77;
  size_t size = fread(text, 1, (1 << 22) - 1, file);
  fclose(file);
  char *got = compiled(text, kernel, NULL);
  bool ok = size > 0 && got && strstr(got, kernel) && !strstr(got, "error");
  if (!ok) puts(got ? got : "it says nothing");
  free(got);
  free(text);
  return !ok;
}

int main(int count, char **values) {
  if (count == 3) return compile_file(values[1], values[2]);
  RUN(has_the_kernel_of_a_type);
  RUN(reads_c_headers_and_the_toolkits);
  RUN(takes_functions_without_a_space);
  RUN(tells_of_errors);
  return check_end();
}
