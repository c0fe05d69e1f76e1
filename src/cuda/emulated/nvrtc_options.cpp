/* nvrtc_options.cpp: NVRTC's options. Options that NVRTC does not have are rejected here, too, so
 * that a kernel that was tested on an emulated device also compiles for a GPU. */
#include "compiler.h"

#include <string.h>

namespace emulated {
namespace {

/* Returns the line that defines a macro given as "N=16" or "N". */
std::string define(const std::string &macro) {
  size_t equals = macro.find('=');
  if (equals == std::string::npos) return "#define " + macro + " 1\n";
  return "#define " + macro.substr(0, equals) + " " + macro.substr(equals + 1) + "\n";
}

/* Options that only affect GPUs or speed; they are ignored. */
const char for_gpus[] =
    " --gpu-architecture -arch --device-debug -G --generate-line-info -lineinfo --dopt -dopt"
    " --ptxas-options -Xptxas --maxrregcount -maxrregcount --ftz -ftz --prec-sqrt -prec-sqrt"
    " --prec-div -prec-div --fmad -fmad --use_fast_math -use_fast_math"
    " --extra-device-vectorization -extra-device-vectorization --disable-warnings -w --restrict"
    " -restrict --device-as-default-execution-space -default-device --device-int128 -device-int128"
    " --relocatable-device-code -rdc --diag-suppress -diag-suppress --split-compile --minimal ";

/* Adds the macros by which a source detects its compiler: __CUDA_ARCH__ is 800 for "sm_80". */
void add_compiler(const char *arch, TranslatedOptions *translated) {
  size_t digits = strcspn(arch, "0123456789");
  translated->macros += define("__CUDACC__") + define("__CUDACC_RTC__") +
                        define("__CUDA_ARCH__=" + std::string(arch + digits) + "0");
}

} // namespace

bool translate_option(const char *option, TranslatedOptions *translated) {
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
    if (k.kind == 'D') translated->macros += define(rest);
    if (k.kind == 'U') translated->macros += "#undef " + rest + "\n";
    if (k.kind == 'I') translated->options.push_back("-I" + rest);
    if (k.kind == 's') translated->options.push_back("-std=" + rest);
    return true;
  }
  std::string name(option, strcspn(option, "="));
  if (name == "--gpu-architecture") add_compiler(option, translated);
  bool word = name.find(' ') == std::string::npos;
  return word && strstr(for_gpus, (" " + name + " ").c_str());
}

} // namespace emulated
