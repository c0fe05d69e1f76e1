/* compiler.h: what nvrtc.cpp, which compiles, modules.cpp, which loads, and nvrtc_options.cpp
 * share. */
#ifndef LT_EMULATED_COMPILER_H
#define LT_EMULATED_COMPILER_H

#include <string>
#include <vector>

namespace emulated {

/* What the code that nvrtcGetCUBIN gives begins with; a shared object follows. `headers` changes
 * with the headers: code that was made for another executor is not loaded. */
struct Mark {
  char magic[8];
  unsigned long long headers, size; /* size: of the shared object */
};
Mark mark();

/* A new folder for temporary files; "" when there is none to be had. */
std::string make_folder();
bool write_file(const std::string &path, const std::string &text);
bool read_file(const std::string &path, std::string *text);

/* What options of NVRTC mean to a C++ compiler. */
struct Meaning {
  std::string macros; /* lines that define and undefine them: they come after our headers */
  std::vector<std::string> options;
};
/* Adds one option; false where NVRTC has none of that name. */
bool translate(const char *option, Meaning *meaning);

/* The program's way to say that it does not want to wait any longer. */
bool wants_stop();

} // namespace emulated

#endif
