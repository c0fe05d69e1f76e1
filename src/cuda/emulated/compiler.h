/* compiler.h: the interface between nvrtc.cpp, which compiles, modules.cpp, which loads, and
 * nvrtc_options.cpp. */
#ifndef LT_EMULATED_COMPILER_H
#define LT_EMULATED_COMPILER_H

#include "emulation/compiler.h"

namespace emulated {
using namespace emulation;

/* The header of the code that nvrtcGetCUBIN returns; a shared object follows. `headers` is a hash
 * of the embedded headers and the compiler's options, so that code for another version of the
 * emulation is not loaded. */
struct CodeHeader {
  char magic[8];
  unsigned long long headers, size; /* size: of the shared object */
};
/* Returns the header for this version, with size 0. */
CodeHeader code_header();

/* NVRTC's options, translated for a C++ compiler. */
struct TranslatedOptions {
  std::string macros; /* lines that define and undefine macros; they follow the embedded headers */
  std::vector<std::string> options;
};
/* Translates one option; false where NVRTC does not have it. */
bool translate_option(const char *option, TranslatedOptions *translated);

} // namespace emulated

#endif
