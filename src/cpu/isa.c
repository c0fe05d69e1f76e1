/* isa.c: which instruction set the vector loops use, decided once by what the CPU has. */
#include "vector.h"

#include <pthread.h>

#define DECLARE(isa)                                                                               \
  extern const lt_Vectors lt_vectors_bool_##isa, lt_vectors_int32_##isa, lt_vectors_int64_##isa,   \
      lt_vectors_float32_##isa, lt_vectors_float64_##isa;                                          \
  static const lt_Isa isa = {#isa,                                                                 \
                             {[LT_bool] = &lt_vectors_bool_##isa,                                  \
                              [LT_int32] = &lt_vectors_int32_##isa,                                \
                              [LT_int64] = &lt_vectors_int64_##isa,                                \
                              [LT_float32] = &lt_vectors_float32_##isa,                            \
                              [LT_float64] = &lt_vectors_float64_##isa}};

DECLARE(base)
#ifdef LT_ISA_AVX2
DECLARE(avx2)
#endif
#ifdef LT_ISA_AVX512
DECLARE(avx512)
#endif

static const lt_Isa *_Atomic chosen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Does the wish (NULL: none) allow this level? Levels are named in rising order. */
static bool allowed(const char *wish, int level) {
  static const char *const names[] = {"base", "avx2", "avx512"};
  if (!wish) return true;
  for (int i = 0; i < 3; i++)
    if (strcmp(wish, names[i]) == 0) return level <= i;
  return true;
}

#ifdef LT_ISA_AVX2
static bool has_avx2(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
#endif
#ifdef LT_ISA_AVX512
static bool has_avx512(void) {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

static void choose(void) {
  const char *wish = getenv("LUTRA_CPU_CAPABILITY");
  const lt_Isa *best = &base;
  (void)wish, (void)allowed;
#ifdef LT_ISA_AVX2
  __builtin_cpu_init();
  if (allowed(wish, 1) && has_avx2()) best = &avx2;
#endif
#ifdef LT_ISA_AVX512
  if (allowed(wish, 2) && has_avx512()) best = &avx512;
#endif
  atomic_store_explicit(&chosen, best, memory_order_release);
}

const lt_Isa *lt_cpu_isa(void) {
  const lt_Isa *isa = atomic_load_explicit(&chosen, memory_order_acquire);
  if (isa) return isa;
  pthread_once(&once, choose);
  return atomic_load_explicit(&chosen, memory_order_acquire);
}
