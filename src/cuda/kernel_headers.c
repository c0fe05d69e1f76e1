/* kernel_headers.c: the C headers that kernels from source may include. NVRTC reads no headers of
 * the machine and declares the math functions itself; what is missing are the types and constants
 * below. Emulated devices have the same headers and no others, so that a source works on both. */
#include "user_kernel.h"

#define INTEGERS(X)                                                                                \
  X(int8_t, signed char)                                                                           \
  X(uint8_t, unsigned char)                                                                        \
  X(int16_t, short)                                                                                \
  X(uint16_t, unsigned short)                                                                      \
  X(int32_t, int)                                                                                  \
  X(uint32_t, unsigned)                                                                            \
  X(int64_t, long long)                                                                            \
  X(uint64_t, unsigned long long)                                                                  \
  X(intptr_t, long long)                                                                           \
  X(uintptr_t, unsigned long long)
#define DEFINE(name, type) "typedef " #type " " #name ";\n"
#define USING(name)        "using ::" #name ";\n"
#define IN_STD(name, type) USING(name)

#define ONCE "#pragma once\n"
static const char integers[] = ONCE INTEGERS(DEFINE);
static const char integers_in_std[] =
    ONCE "#include <stdint.h>\nnamespace std {\n" INTEGERS(IN_STD) "}\n";
static const char limits[] = ONCE "#define INT_MAX 2147483647\n"
                                  "#define INT_MIN (-INT_MAX - 1)\n"
                                  "#define UINT_MAX 4294967295u\n"
                                  "#define LLONG_MAX 9223372036854775807ll\n"
                                  "#define LLONG_MIN (-LLONG_MAX - 1)\n"
                                  "#define ULLONG_MAX 18446744073709551615ull\n";
static const char floats[] = ONCE "#define FLT_MAX 3.402823466e+38f\n"
                                  "#define FLT_MIN 1.175494351e-38f\n"
                                  "#define FLT_EPSILON 1.192092896e-07f\n"
                                  "#define DBL_MAX 1.7976931348623157e+308\n"
                                  "#define DBL_MIN 2.2250738585072014e-308\n"
                                  "#define DBL_EPSILON 2.2204460492503131e-16\n";
#define MATHS(X)                                                                                   \
  X(abs)                                                                                           \
  X(acos)                                                                                          \
  X(asin)                                                                                          \
  X(atan)                                                                                          \
  X(atan2)                                                                                         \
  X(cbrt)                                                                                          \
  X(ceil)                                                                                          \
  X(cos)                                                                                           \
  X(cosh)                                                                                          \
  X(erf)                                                                                           \
  X(exp)                                                                                           \
  X(exp2)                                                                                          \
  X(expm1)                                                                                         \
  X(fabs)                                                                                          \
  X(floor)                                                                                         \
  X(fma)                                                                                           \
  X(fmax)                                                                                          \
  X(fmin)                                                                                          \
  X(fmod)                                                                                          \
  X(hypot)                                                                                         \
  X(isfinite)                                                                                      \
  X(isinf)                                                                                         \
  X(isnan)                                                                                         \
  X(log)                                                                                           \
  X(log10)                                                                                         \
  X(log1p)                                                                                         \
  X(log2)                                                                                          \
  X(pow)                                                                                           \
  X(rint)                                                                                          \
  X(round)                                                                                         \
  X(sin)                                                                                           \
  X(sinh)                                                                                          \
  X(sqrt)                                                                                          \
  X(tan)                                                                                           \
  X(tanh)                                                                                          \
  X(trunc)
static const char maths[] = ONCE "#define INFINITY __int_as_float(0x7f800000)\n"
                                 "#define NAN __int_as_float(0x7fffffff)\n"
                                 "#define M_PI 3.14159265358979323846\n"
                                 "#define M_E 2.71828182845904523536\n";
static const char maths_in_std[] = ONCE "#include <math.h>\nnamespace std {\n" MATHS(USING) "}\n";

#define HEADERS(X)                                                                                 \
  X("stdint.h", integers)                                                                          \
  X("cstdint", integers_in_std)                                                                    \
  X("limits.h", limits)                                                                            \
  X("climits", limits)                                                                             \
  X("float.h", floats)                                                                             \
  X("cfloat", floats)                                                                              \
  X("math.h", maths)                                                                               \
  X("cmath", maths_in_std)                                                                         \
  X("stddef.h", ONCE)                                                                              \
  X("cstddef", ONCE)                                                                               \
  X("stdio.h", ONCE)                                                                               \
  X("cstdio", ONCE)                                                                                \
  X("stdlib.h", ONCE)                                                                              \
  X("cstdlib", ONCE)                                                                               \
  X("string.h", ONCE)                                                                              \
  X("cstring", ONCE)                                                                               \
  X("assert.h", ONCE)                                                                              \
  X("cassert", ONCE)
#define ONE(name, text) +1
_Static_assert(HEADERS(ONE) == LT_CUDA_HEADERS, "as many as user_kernel.h says");
#define NAME(name, text) name,
#define TEXT(name, text) text,
const char *const lt_cuda_header_names[LT_CUDA_HEADERS] = {HEADERS(NAME)};
const char *const lt_cuda_header_texts[LT_CUDA_HEADERS] = {HEADERS(TEXT)};
