/* test_cuda_architectures.c: which GPUs the code of a build runs on, by the rules of NVIDIA's
 * documentation on binary and PTX compatibility. */
#include "check.h"

#include "../../src/cuda/architectures.c"

static void code_runs_on_later_minor_versions(void) {
  CHECK_INT(lt_cuda_code_for("80 90", 80), LT_CODE_NATIVE);
  CHECK_INT(lt_cuda_code_for("80 90", 86), LT_CODE_NATIVE);
  CHECK_INT(lt_cuda_code_for("80 90", 89), LT_CODE_NATIVE);
  CHECK_INT(lt_cuda_code_for("86", 80), LT_CODE_NONE);
  CHECK_INT(lt_cuda_code_for("80 90", 75), LT_CODE_NONE);
  CHECK_INT(lt_cuda_code_for("120", 121), LT_CODE_NATIVE);
}

static void ptx_of_the_last_runs_on_all_later_ones(void) {
  CHECK_INT(lt_cuda_code_for("80 90", 100), LT_CODE_PTX);
  CHECK_INT(lt_cuda_code_for("80 90", 120), LT_CODE_PTX);
  CHECK_INT(lt_cuda_code_for("90 80", 89), LT_CODE_NATIVE);
  CHECK_INT(lt_cuda_code_for("70", 75), LT_CODE_NATIVE);
  CHECK_INT(lt_cuda_code_for("70", 90), LT_CODE_PTX);
}

static void suffixes_restrict_the_architectures(void) {
  CHECK_INT(lt_cuda_code_for("90a", 90), LT_CODE_NATIVE);
  CHECK_INT(lt_cuda_code_for("90a", 100), LT_CODE_NONE);
  CHECK_INT(lt_cuda_code_for("100f", 103), LT_CODE_NATIVE);
  CHECK_INT(lt_cuda_code_for("100a", 103), LT_CODE_NONE);
  CHECK_INT(lt_cuda_code_for("100f", 120), LT_CODE_NONE);
  CHECK_INT(lt_cuda_code_for("80 90a", 89), LT_CODE_NATIVE);
}

static void the_code_of_a_build_is_described(void) {
  char text[100];
  lt_cuda_describe_code("80 90", text, sizeof text);
  CHECK_STR(text, "sm_80, sm_90, PTX of compute_90");
  lt_cuda_describe_code("90a", text, sizeof text);
  CHECK_STR(text, "sm_90a, PTX of compute_90a");
  lt_cuda_describe_code("", text, sizeof text);
  CHECK_STR(text, "");
}

int main(void) {
  RUN(code_runs_on_later_minor_versions);
  RUN(ptx_of_the_last_runs_on_all_later_ones);
  RUN(suffixes_restrict_the_architectures);
  RUN(the_code_of_a_build_is_described);
  return check_end();
}
