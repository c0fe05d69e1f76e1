/* capability.c: detects features of the CPU, and checks environment variables against them. */
#define _GNU_SOURCE /* strcasecmp, syscall */
#include "capability.h"
#include "kernel.h"

#include <pthread.h>
#include <strings.h>
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

uint32_t lt_cpu_features(void) {
  uint32_t found = 0;
#if defined(__x86_64__) && defined(__GNUC__)
  unsigned a, b, c, d;
  __builtin_cpu_init();
#define ROW(id, name)                                                                              \
  if (__builtin_cpu_supports(name)) found |= LT_CPU_##id;
  LT_CPU_COMPILER_FEATURES(ROW)
#undef ROW
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) && d >> 31) found |= LT_CPU_amd_3dnow;
  if ((found & LT_CPU_avx512f) && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 23 & 1))
    found |= LT_CPU_avx512fp16;
#endif
  return found;
}

static bool has_tiles, has_pairs;

/* Asks the CPU, then, for tile registers, Linux, which allocates their memory for each thread that
 * uses them and gives it to processes that asked. */
static void find_products(void) {
  has_pairs = lt_cpu_features() & LT_CPU_avx512bf16;
#if defined(__x86_64__) && defined(__GNUC__) && defined(__linux__)
  enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
  has_tiles = (d >> 22 & 1) && (d >> 24 & 1) && syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
#endif
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

bool lt_cpu_has_tiles(void) {
  pthread_once(&once, find_products);
  return has_tiles;
}

bool lt_cpu_has_pairs(void) {
  pthread_once(&once, find_products);
  return has_pairs;
}

/* Returns false with an error that lists the features in `needed` missing from `features`, if
 * any. */
static bool check_features(const char *variable, const char *value, uint32_t needed,
                           uint32_t features) {
  static const char *const names[] = {
#define ROW(id, name) [LT_CPU_NUMBER_##id] = name,
      LT_CPU_FEATURES(ROW)
#undef ROW
  };
  char missing[200] = "";
  size_t used = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (needed & ~features & (1u << i))
      used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%s", used ? ", " : "",
                               names[i]);
  return !used ||
         lt_error_set("%s: cannot use \"%s\": this CPU lacks %s", variable, value, missing);
}

static bool is_set(const char *value) { return value && *value; }

bool lt_cpu_check_capability(const char *value, uint32_t features) {
  static const struct {
    const char *name;
    uint32_t needs;
  } levels[] = {
      {"base", 0},
#ifdef LT_ISA_AVX2
      {"avx2", LT_CPU_LEVEL_AVX2},
#endif
#ifdef LT_ISA_AVX512
      {"avx512", LT_CPU_LEVEL_AVX512},
#endif
  };
  char known[64] = "";
  for (size_t i = 0; is_set(value) && i < sizeof levels / sizeof *levels; i++) {
    if (strcmp(value, levels[i].name) == 0)
      return check_features("LUTRA_CPU_CAPABILITY", value, levels[i].needs, features);
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s\"%s\"", i ? ", " : "", levels[i].name);
  }
  return !is_set(value) ||
         lt_error_set("LUTRA_CPU_CAPABILITY: expected one of %s, got \"%.40s\"", known, value);
}

/* Features that the kernels of some core types require. Those of the Opterons use 3DNow!, those of
 * the Bulldozer family FMA4, which other CPUs never had. */
enum {
  BULLDOZER = LT_CPU_avx | LT_CPU_fma4,
  PILEDRIVER = BULLDOZER | LT_CPU_fma,
  HASWELL = LT_CPU_avx | LT_CPU_fma | LT_CPU_avx2,
  SKYLAKEX = HASWELL | LT_CPU_LEVEL_AVX512,
  COOPERLAKE = SKYLAKEX | LT_CPU_avx512vnni | LT_CPU_avx512bf16,
};

/* The core types of OpenBLAS for x86-64 (its driver/others/dynamic.c). */
bool lt_cpu_check_core_type(const char *value, uint32_t features) {
#if defined(__x86_64__)
  static const struct {
    const char *name;
    uint32_t needs;
  } cores[] = {
      {"Prescott", LT_CPU_sse3},
      {"Core2", LT_CPU_ssse3},
      {"Atom", LT_CPU_ssse3},
      {"Nano", LT_CPU_ssse3},
      {"Bobcat", LT_CPU_ssse3},
      {"Penryn", LT_CPU_sse4_1},
      {"Dunnington", LT_CPU_sse4_1},
      {"Nehalem", LT_CPU_sse4_2},
      {"Opteron", LT_CPU_amd_3dnow},
      {"Opteron_SSE3", LT_CPU_amd_3dnow | LT_CPU_sse3},
      {"Barcelona", LT_CPU_sse3},
      {"Sandybridge", LT_CPU_avx},
      {"Bulldozer", BULLDOZER},
      {"Piledriver", PILEDRIVER},
      {"Steamroller", PILEDRIVER},
      {"Excavator", PILEDRIVER},
      {"Haswell", HASWELL},
      {"Zen", HASWELL},
      {"SkylakeX", SKYLAKEX},
      {"Cooperlake", COOPERLAKE},
      {"SapphireRapids", COOPERLAKE | LT_CPU_avx512fp16},
  };
  char known[300] = "";
  for (size_t i = 0; is_set(value) && i < sizeof cores / sizeof *cores; i++) {
    if (strcasecmp(value, cores[i].name) == 0)
      return check_features("LUTRA_OPENBLAS_CORETYPE", value, cores[i].needs, features);
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", cores[i].name);
  }
  return !is_set(value) ||
         lt_error_set("LUTRA_OPENBLAS_CORETYPE: expected one of %s, got \"%.40s\"", known, value);
#else
  (void)value, (void)features;
  return true;
#endif
}

const char *lt_cpu_core_type(uint32_t features) {
#if defined(__x86_64__)
  if (!(SKYLAKEX & ~features)) return "SkylakeX";
  if (!(HASWELL & ~features)) return "Haswell";
#else
  (void)features;
#endif
  return NULL;
}
