/* compiler.h: the interface between nvrtc.cpp, which compiles, modules.cpp, which loads, and
 * nvrtc_options.cpp. */
#ifndef LT_EMULATED_COMPILER_H
#define LT_EMULATED_COMPILER_H

#include <string>
#include <vector>

namespace emulated {

/* The header of the code that nvrtcGetCUBIN returns; a shared object follows. `headers` is a hash
 * of the embedded headers and the compiler's options, so that code for another version of the
 * emulation is not loaded. */
struct CodeHeader {
  char magic[8];
  unsigned long long headers, size; /* size: of the shared object */
};
/* Returns the header for this version, with size 0. */
CodeHeader code_header();

/* Creates a new folder for temporary files. Returns "" on failure. */
std::string make_folder();
/* Write and read a whole file; false on failure. */
bool write_file(const std::string &path, const std::string &text);
bool read_file(const std::string &path, std::string *text);

/* NVRTC's options, translated for a C++ compiler. */
struct TranslatedOptions {
  std::string macros; /* lines that define and undefine macros; they follow the embedded headers */
  std::vector<std::string> options;
};
/* Translates one option; false where NVRTC does not have it. */
bool translate_option(const char *option, TranslatedOptions *translated);

/* Returns true when the program has requested that a compilation stop (Ctrl-C). */
bool stop_requested();

} // namespace emulated

#endif
