/* compiler.h: runs the system's C++ compiler, for kernels that are compiled at run time, and loads
 * its result. The compiler is $CXX, or c++, g++ or clang++. */
#ifndef LT_EMULATION_COMPILER_H
#define LT_EMULATION_COMPILER_H

#include <atomic>
#include <string>
#include <vector>

namespace emulation {

/* Creates a new folder for temporary files. Returns "" on failure; then folder_problem() says
 * why. */
std::string make_folder();
std::string folder_problem();
/* Write and read a whole file; false on failure. */
bool write_file(const std::string &path, const std::string &text);
bool read_file(const std::string &path, std::string *text);

enum class CommandStatus { OK, FAILED, NOT_FOUND, STOPPED };
/* Runs the compiler with these arguments; its output goes to the file `log`. */
CommandStatus run_compiler(const std::vector<std::string> &arguments, const std::string &log);
/* The error where the status is NOT_FOUND. */
extern const char *const NO_COMPILER;

/* Returns the arguments that compile a source to a shared object of kernels, with the headers in
 * the folder `include` only. */
std::vector<std::string> kernel_arguments(const std::string &source, const std::string &object,
                                          const std::string &include,
                                          const std::vector<std::string> &options);
/* Returns the symbol that a shared object does not define, demangled; "" where it can be loaded. */
std::string undefined_symbol(const std::string &path);
/* Loads a shared object of kernels and sets its functions of the executor (emulated/calls.h). It
 * stays loaded until the program ends, since threads may be running it. Returns NULL on failure. */
void *load_kernels(const std::string &path);

/* Called while the compiler runs: where it returns true, the compiler is killed. NULL: never. */
extern std::atomic<bool (*)(void)> stop_callback;
/* Returns true when the program has requested that a compilation stop (Ctrl-C). */
bool stop_requested();

} // namespace emulation

#endif
