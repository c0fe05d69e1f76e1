/* capability.h: features of the CPU, and checks of the environment variables that select code for a
 * CPU.
 *
 * The checks are functions of a set of features, so that tests can check other CPUs. */
#ifndef LT_CPU_CAPABILITY_H
#define LT_CPU_CAPABILITY_H

#include <stdbool.h>
#include <stdint.h>

/* ROW(identifier, name). The names are those of GCC; the compiler cannot test for the two of
 * LT_CPU_RAW_FEATURES. */
#define LT_CPU_RAW_FEATURES(ROW)                                                                   \
  ROW(amd_3dnow, "3dnow")                                                                          \
  ROW(avx512fp16, "avx512fp16")
#define LT_CPU_COMPILER_FEATURES(ROW)                                                              \
  ROW(sse3, "sse3")                                                                                \
  ROW(ssse3, "ssse3")                                                                              \
  ROW(sse4_1, "sse4.1")                                                                            \
  ROW(sse4_2, "sse4.2")                                                                            \
  ROW(avx, "avx")                                                                                  \
  ROW(fma4, "fma4")                                                                                \
  ROW(fma, "fma")                                                                                  \
  ROW(avx2, "avx2")                                                                                \
  ROW(bmi, "bmi")                                                                                  \
  ROW(bmi2, "bmi2")                                                                                \
  ROW(avx512f, "avx512f")                                                                          \
  ROW(avx512cd, "avx512cd")                                                                        \
  ROW(avx512bw, "avx512bw")                                                                        \
  ROW(avx512dq, "avx512dq")                                                                        \
  ROW(avx512vl, "avx512vl")                                                                        \
  ROW(avx512vnni, "avx512vnni")                                                                    \
  ROW(avx512bf16, "avx512bf16")
#define LT_CPU_FEATURES(ROW) LT_CPU_COMPILER_FEATURES(ROW) LT_CPU_RAW_FEATURES(ROW)

enum {
#define LT_CPU_ROW(id, name) LT_CPU_NUMBER_##id,
  LT_CPU_FEATURES(LT_CPU_ROW)
#undef LT_CPU_ROW
};

/* Bits of a set of features. */
enum {
#define LT_CPU_ROW(id, name) LT_CPU_##id = 1 << LT_CPU_NUMBER_##id,
  LT_CPU_FEATURES(LT_CPU_ROW)
#undef LT_CPU_ROW
};

/* Features that the vector loops of src/cpu/kernels are compiled for. */
enum {
  LT_CPU_LEVEL_AVX2 = LT_CPU_avx2 | LT_CPU_fma | LT_CPU_bmi | LT_CPU_bmi2,
  LT_CPU_LEVEL_AVX512 =
      LT_CPU_avx512f | LT_CPU_avx512cd | LT_CPU_avx512bw | LT_CPU_avx512dq | LT_CPU_avx512vl,
};

/* Returns the features of this CPU that the operating system supports; 0 on other architectures
 * than x86-64. */
uint32_t lt_cpu_features(void);

/* Returns whether the CPU has tile registers for bfloat16, and the operating system lets this
 * process use them. */
bool lt_cpu_has_tiles(void);
/* Returns whether the CPU has the dot products of pairs of bfloat16 in vectors. */
bool lt_cpu_has_pairs(void);
enum { LT_TILE_EDGE = 32 }; /* rows and columns of the blocks that kernels/tiles.h multiplies */

/* Check the value of LUTRA_CPU_CAPABILITY and of LUTRA_OPENBLAS_CORETYPE for a CPU with these
 * features. NULL and "" are valid: they leave the choice to Lutra. Return false with an error that
 * names the variable and the values that it takes or the features that the CPU lacks. Whether the
 * installed OpenBLAS has a core type is checked when it is loaded. */
bool lt_cpu_check_capability(const char *value, uint32_t features);
bool lt_cpu_check_core_type(const char *value, uint32_t features);

/* Returns the OpenBLAS core type whose kernels use the features of this CPU; NULL leaves the choice
 * to OpenBLAS. A release of OpenBLAS that does not know a newer CPU would choose kernels for SSE or
 * AVX2. */
const char *lt_cpu_core_type(uint32_t features);

#endif
