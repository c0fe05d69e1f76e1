/* nvrtc_options.cpp: NVRTC's options. What it does not have is refused here, too, so that a kernel
 * that was tried on an emulated device is compiled on a GPU as well.
 */
#include "compiler.h"

#include <string.h>

namespace emulated {
namespace {

/* "N=16" as a line that defines it. */
std::string define(const std::string &macro) {
  size_t equals = macro.find('=');
  if (equals == std::string::npos) return "#define " + macro + " 1\n";
  return "#define " + macro.substr(0, equals) + " " + macro.substr(equals + 1) + "\n";
}

/* Those that are about GPUs, or about speed: nothing here. */
const char for_gpus[] =
    " --gpu-architecture -arch --device-debug -G --generate-line-info -lineinfo --dopt -dopt"
    " --ptxas-options -Xptxas --maxrregcount -maxrregcount --ftz -ftz --prec-sqrt -prec-sqrt"
    " --prec-div -prec-div --fmad -fmad --use_fast_math -use_fast_math"
    " --extra-device-vectorization -extra-device-vectorization --disable-warnings -w --restrict"
    " -restrict --device-as-default-execution-space -default-device --device-int128 -device-int128"
    " --relocatable-device-code -rdc --diag-suppress -diag-suppress --split-compile --minimal ";

/* The macros that tell a source who compiles it: "sm_80" is 800. */
void add_compiler(const char *arch, Meaning *meaning) {
  size_t digits = strcspn(arch, "0123456789");
  meaning->macros += define("__CUDACC__") + define("__CUDACC_RTC__") +
                     define("__CUDA_ARCH__=" + std::string(arch + digits) + "0");
}

} // namespace

bool translate(const char *option, Meaning *meaning) {
  static const struct {
    const char *name;
    char kind;
  } known[] = {{"--define-macro=", 'D'},
               {"-D", 'D'},
               {"--undefine-macro=", 'U'},
               {"-U", 'U'},
               {"--include-path=", 'I'},
               {"-I", 'I'},
               {"--std=", 's'},
               {"-std=", 's'}};
  for (const auto &k : known) {
    if (strncmp(option, k.name, strlen(k.name)) != 0) continue;
    std::string rest = option + strlen(k.name);
    if (k.kind == 'D') meaning->macros += define(rest);
    if (k.kind == 'U') meaning->macros += "#undef " + rest + "\n";
    if (k.kind == 'I') meaning->options.push_back("-I" + rest);
    if (k.kind == 's') meaning->options.push_back("-std=" + rest);
    return true;
  }
  std::string name(option, strcspn(option, "="));
  if (name == "--gpu-architecture") add_compiler(option, meaning);
  bool word = name.find(' ') == std::string::npos;
  return word && strstr(for_gpus, (" " + name + " ").c_str());
}

} // namespace emulated
