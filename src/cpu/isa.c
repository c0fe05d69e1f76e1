/* isa.c: selects the instruction set of the vector loops, once, from the CPU's features. */
#include "capability.h"
#include "vector.h"

#include <pthread.h>

#define DECLARE(isa)                                                                               \
  extern const lt_Vectors lt_vectors_bool_##isa, lt_vectors_uint8_##isa, lt_vectors_int8_##isa,    \
      lt_vectors_int16_##isa, lt_vectors_float16_##isa, lt_vectors_bfloat16_##isa,                 \
      lt_vectors_int32_##isa, lt_vectors_int64_##isa, lt_vectors_float32_##isa,                    \
      lt_vectors_float64_##isa, lt_vectors_complex64_##isa, lt_vectors_complex128_##isa;           \
  static const lt_Isa isa = {#isa,                                                                 \
                             LT_LEVEL_##isa,                                                       \
                             {[LT_uint8] = &lt_vectors_uint8_##isa,                                \
                              [LT_int8] = &lt_vectors_int8_##isa,                                  \
                              [LT_int16] = &lt_vectors_int16_##isa,                                \
                              [LT_float16] = &lt_vectors_float16_##isa,                            \
                              [LT_bfloat16] = &lt_vectors_bfloat16_##isa,                          \
                              [LT_bool] = &lt_vectors_bool_##isa,                                  \
                              [LT_int32] = &lt_vectors_int32_##isa,                                \
                              [LT_int64] = &lt_vectors_int64_##isa,                                \
                              [LT_float32] = &lt_vectors_float32_##isa,                            \
                              [LT_float64] = &lt_vectors_float64_##isa,                            \
                              [LT_complex64] = &lt_vectors_complex64_##isa,                        \
                              [LT_complex128] = &lt_vectors_complex128_##isa}};

DECLARE(base)
#ifdef LT_ISA_AVX2
DECLARE(avx2)
#endif
#ifdef LT_ISA_AVX512
DECLARE(avx512)
#endif

static const lt_Isa *_Atomic chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Returns whether the requested instruction set (NULL or "": any) includes this level. Levels are
 * in ascending order. */
static bool includes(const char *request, int level) {
  static const char *const names[] = {"base", "avx2", "avx512"};
  if (!request || !*request) return true;
  for (int i = 0; i < 3; i++)
    if (strcmp(request, names[i]) == 0) return level <= i;
  return true;
}

/* Selects the instruction set. The request was checked when the backend was opened: the CPU
 * supports it. */
static void choose(void) {
  const char *request = getenv("LUTRA_CPU_CAPABILITY");
  const lt_Isa *best = &base;
  uint32_t features = lt_cpu_features();
  (void)request, (void)includes, (void)features;
#ifdef LT_ISA_AVX2
  if (includes(request, 1) && !(LT_CPU_LEVEL_AVX2 & ~features)) best = &avx2;
#endif
#ifdef LT_ISA_AVX512
  if (includes(request, 2) && !(LT_CPU_LEVEL_AVX512 & ~features)) best = &avx512;
#endif
  atomic_store_explicit(&chosen, best, memory_order_release);
}

const lt_Isa *lt_cpu_isa(void) {
  const lt_Isa *isa = atomic_load_explicit(&chosen, memory_order_acquire);
  if (isa) return isa;
  pthread_once(&once, choose);
  return atomic_load_explicit(&chosen, memory_order_acquire);
}
