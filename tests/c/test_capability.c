/* test_capability.c: the effect of environment variables on the choice of CPU features, computed
 * for other CPUs than this one. */
#include "cpu/capability.h"
#include "check.h"

#include "lutra.h"

#include <stdlib.h>

enum {
  SSE = LT_CPU_sse3 | LT_CPU_ssse3 | LT_CPU_sse4_1 | LT_CPU_sse4_2,
  IVY_BRIDGE = SSE | LT_CPU_avx,
  FX_8350 = IVY_BRIDGE | LT_CPU_fma4 | LT_CPU_fma | LT_CPU_bmi, /* Piledriver */
  ZEN_2 = IVY_BRIDGE | LT_CPU_fma | LT_CPU_avx2 | LT_CPU_bmi | LT_CPU_bmi2,
  SKYLAKE = ZEN_2 | LT_CPU_avx512f | LT_CPU_avx512cd | LT_CPU_avx512bw | LT_CPU_avx512dq |
            LT_CPU_avx512vl,
  ZEN_4 = SKYLAKE | LT_CPU_avx512vnni | LT_CPU_avx512bf16,
  SAPPHIRE_RAPIDS = ZEN_4 | LT_CPU_avx512fp16,
  KNIGHTS_LANDING = ZEN_2 | LT_CPU_avx512f | LT_CPU_avx512cd,
};

static void capabilities(void) {
  CHECK(lt_cpu_check_capability(NULL, 0));
  CHECK(lt_cpu_check_capability("", 0));
  CHECK(lt_cpu_check_capability("base", 0));
  CHECK(!lt_cpu_check_capability("sse", SKYLAKE));
  CHECK_CONTAINS(lt_error(), "LUTRA_CPU_CAPABILITY: expected one of \"base\"");
  CHECK_CONTAINS(lt_error(), ", got \"sse\"");
  CHECK(!lt_cpu_check_capability("AVX2", SKYLAKE));
#ifdef LT_ISA_AVX2
  CHECK(lt_cpu_check_capability("avx2", ZEN_2));
  CHECK(!lt_cpu_check_capability("avx2", IVY_BRIDGE));
  CHECK_STR(lt_error(), "LUTRA_CPU_CAPABILITY: cannot use \"avx2\": this CPU lacks fma, avx2, bmi, "
                        "bmi2");
#endif
#ifdef LT_ISA_AVX512
  CHECK(lt_cpu_check_capability("avx512", SKYLAKE));
  CHECK(!lt_cpu_check_capability("avx512", KNIGHTS_LANDING));
  CHECK_STR(lt_error(), "LUTRA_CPU_CAPABILITY: cannot use \"avx512\": this CPU lacks avx512bw, "
                        "avx512dq, avx512vl");
#endif
}

#if defined(__x86_64__)
static void supported_core_types(void) {
  CHECK(lt_cpu_check_core_type(NULL, 0));
  CHECK(lt_cpu_check_core_type("", 0));
  CHECK(lt_cpu_check_core_type("Prescott", SSE));
  CHECK(lt_cpu_check_core_type("NEHALEM", SSE));
  CHECK(lt_cpu_check_core_type("sandybridge", IVY_BRIDGE));
  CHECK(lt_cpu_check_core_type("BULLDOZER", FX_8350));
  CHECK(lt_cpu_check_core_type("EXCAVATOR", FX_8350));
  CHECK(lt_cpu_check_core_type("haswell", ZEN_2));
  CHECK(lt_cpu_check_core_type("Zen", ZEN_2));
  CHECK(lt_cpu_check_core_type("SKYLAKEX", SKYLAKE));
  CHECK(lt_cpu_check_core_type("COOPERLAKE", ZEN_4));
  CHECK(lt_cpu_check_core_type("SAPPHIRERAPIDS", SAPPHIRE_RAPIDS));
}

static void unsupported_core_types(void) {
  CHECK(!lt_cpu_check_core_type("HASWELL", SSE));
  CHECK_STR(lt_error(),
            "LUTRA_OPENBLAS_CORETYPE: cannot use \"HASWELL\": this CPU lacks avx, fma, avx2");
  CHECK(!lt_cpu_check_core_type("zen", IVY_BRIDGE));
  CHECK_CONTAINS(lt_error(), "cannot use \"zen\": this CPU lacks fma, avx2");
  CHECK(!lt_cpu_check_core_type("SKYLAKEX", ZEN_2));
  CHECK_CONTAINS(lt_error(), "this CPU lacks avx512f, avx512cd, avx512bw, avx512dq, avx512vl");
  CHECK(!lt_cpu_check_core_type("SKYLAKEX", KNIGHTS_LANDING));
  CHECK(!lt_cpu_check_core_type("COOPERLAKE", SKYLAKE));
  CHECK_CONTAINS(lt_error(), "this CPU lacks avx512vnni, avx512bf16");
  CHECK(!lt_cpu_check_core_type("SAPPHIRERAPIDS", SKYLAKE));
  CHECK_CONTAINS(lt_error(), "this CPU lacks avx512vnni, avx512bf16, avx512fp16");
  CHECK(!lt_cpu_check_core_type("SAPPHIRERAPIDS", ZEN_4));
  CHECK_CONTAINS(lt_error(), "this CPU lacks avx512fp16");
  /* instructions that only some of AMD's CPUs had */
  CHECK(!lt_cpu_check_core_type("BULLDOZER", SAPPHIRE_RAPIDS));
  CHECK_CONTAINS(lt_error(), "this CPU lacks fma4");
  CHECK(!lt_cpu_check_core_type("OPTERON", SAPPHIRE_RAPIDS));
  CHECK_CONTAINS(lt_error(), "this CPU lacks 3dnow");
  CHECK(!lt_cpu_check_core_type("PRESCOTT", 0));
}

static void unknown_core_types(void) {
  static const char *const values[] = {"SKYLAKE", "ZEN2",     "avx2",    " ZEN",  "ZEN ",
                                       "auto",    "CORTEXA7", "Unknown", "Katmai"};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
    CHECK(!lt_cpu_check_core_type(values[i], SAPPHIRE_RAPIDS));
    CHECK_CONTAINS(lt_error(), "LUTRA_OPENBLAS_CORETYPE: expected one of Prescott, Core2, ");
    CHECK_CONTAINS(lt_error(), ", SkylakeX, Cooperlake, SapphireRapids, got \"");
    CHECK_CONTAINS(lt_error(), values[i]);
  }
}

/* Chosen by features alone: a CPU whose model OpenBLAS does not know gets fast kernels, too. */
static void the_default_core_type(void) {
  CHECK_STR(lt_cpu_core_type(SAPPHIRE_RAPIDS), "SkylakeX");
  CHECK_STR(lt_cpu_core_type(ZEN_4), "SkylakeX");
  CHECK_STR(lt_cpu_core_type(SKYLAKE), "SkylakeX");
  CHECK_STR(lt_cpu_core_type(ZEN_2), "Haswell");
  CHECK_STR(lt_cpu_core_type(KNIGHTS_LANDING), "Haswell");
  CHECK(!lt_cpu_core_type(IVY_BRIDGE));
  CHECK(!lt_cpu_core_type(SSE));
  const char *here = lt_cpu_core_type(lt_cpu_features());
  CHECK(!here || lt_cpu_check_core_type(here, lt_cpu_features()));
}
#endif

static void this_cpu(void) {
  uint32_t here = lt_cpu_features();
  if (here & LT_CPU_avx2) CHECK(here & LT_CPU_avx);
  if (here & LT_CPU_avx512bw) CHECK(here & LT_CPU_avx512f);
#if defined(__AVX2__)
  CHECK(here & LT_CPU_avx2);
#endif
}

int main(void) {
  RUN(capabilities);
#if defined(__x86_64__)
  RUN(supported_core_types);
  RUN(unsupported_core_types);
  RUN(unknown_core_types);
  RUN(the_default_core_type);
#endif
  RUN(this_cpu);
  return check_end();
}
