/* nvrtc.cpp: NVRTC's functions, implemented by the system's C++ compiler.
 *
 * A program's source is compiled with source.h before it and, after it, one function for each
 * kernel that was requested by name, which creates a launch of the kernel: so the compiler
 * determines the types of the parameters. The result is a shared object, which modules.cpp loads.
 * The headers it needs are embedded in this library, and written to a temporary folder for the
 * compilation.
 */
#include "compiler.h"
#include "dynamic_shared.h"

#include "emulated/nvrtc.h"

/* The embedded headers are included so that this file is compiled again when one of them changes.
 * Those for kernels only are empty here. */
#define LT_EMULATED_SOURCE_H
#define LT_EMULATED_KERNEL_FUNCTIONS_H
#include "emulated/kernel_functions.h"
#include "emulated/source.h"

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "emulated/launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace emulated {
namespace {

enum { SUCCESS = 0, INVALID_INPUT = 3, INVALID_OPTION = 5, COMPILATION = 6, NO_NAME = 9 };

/* ---- headers --------------------------------------------------------------------------------- */

#ifdef __APPLE__
#define LT_SECTION ".section __TEXT,__const\n"
#define LT_PREFIX  "_"
#else
#define LT_SECTION ".section .rodata\n"
#define LT_PREFIX  ""
#endif
#define CUDA_HEADERS   "src/cuda/emulated/include/"
#define SHARED_HEADERS "src/emulation/include/"
#define EMBED(name, folder, path)                                                                  \
  extern "C" const char lt_text_##name[] __attribute__((visibility("hidden")));                    \
  __asm__(LT_SECTION ".globl " LT_PREFIX "lt_text_" #name "\n" LT_PREFIX "lt_text_" #name ":\n"    \
                     ".incbin \"" folder path "\"\n.byte 0\n.text\n");
#define HEADERS(X)                                                                                 \
  X(threads, SHARED_HEADERS, "emulated/threads.h")                                                 \
  X(calls, SHARED_HEADERS, "emulated/calls.h")                                                     \
  X(half_bits, SHARED_HEADERS, "emulated/half_bits.h")                                             \
  X(device, CUDA_HEADERS, "emulated/device.h")                                                     \
  X(arithmetic, CUDA_HEADERS, "emulated/arithmetic.h")                                             \
  X(atomics, CUDA_HEADERS, "emulated/atomics.h")                                                   \
  X(half, CUDA_HEADERS, "emulated/half.h")                                                         \
  X(functions, CUDA_HEADERS, "emulated/kernel_functions.h")                                        \
  X(launch, CUDA_HEADERS, "emulated/launch.h")                                                     \
  X(source, CUDA_HEADERS, "emulated/source.h")                                                     \
  X(fp16, CUDA_HEADERS, "cuda_fp16.h")                                                             \
  X(bf16, CUDA_HEADERS, "cuda_bf16.h")
HEADERS(EMBED)

const struct {
  const char *path, *text;
} headers[] = {
#define X(name, folder, path) {path, lt_text_##name},
    HEADERS(X)
#undef X
    /* NVRTC has these headers built in, too. */
    {"cuda.h", ""},
    {"cuda_runtime.h", ""},
    {"cuda_runtime_api.h", ""},
    {"device_launch_parameters.h", ""},
    {"vector_functions.h", ""},
    {"vector_types.h", ""},
    {"math_constants.h", "#define CUDART_INF_F __int_as_float(0x7f800000)\n"
                         "#define CUDART_NAN_F __int_as_float(0x7fffffff)\n"
                         "#define CUDART_PI_F 3.141592654f\n"
                         "#define CUDART_INF __longlong_as_double(0x7ff0000000000000ll)\n"
                         "#define CUDART_NAN __longlong_as_double(0xfff8000000000000ull)\n"
                         "#define CUDART_PI 3.1415926535897931e+0\n"},
};

/* ---- programs -------------------------------------------------------------------------------- */

struct Program {
  std::string text, name, log, code;
  std::vector<std::string> expressions, symbols;
  std::vector<std::string> header_names, header_texts;
};

/* Returns the source that is compiled. Lines keep their numbers. */
std::string full_source(const Program &p, const std::string &macros) {
  std::string all = "#include \"emulated/source.h\"\n" + macros + "#line 1 \"" + p.name + "\"\n" +
                    replace_dynamic_shared(p.text) + "\n#line 1 \"launch\"\n";
  for (size_t i = 0; i < p.expressions.size(); i++)
    all += "LT_EMULATED_EXPORT lt_EmulatedLaunch *" + p.symbols[i] +
           "(void **lt_values) { return lt_emulated_make(" + p.expressions[i] + ", lt_values); }\n";
  return all;
}

void remove_folder(const Program &p, const std::string &folder) {
  for (const auto &h : headers) unlink((folder + "/" + h.path).c_str());
  for (const std::string &name : p.header_names) unlink((folder + "/" + name).c_str());
  for (const char *name : {"/kernel.cu", "/kernel.so", "/log"}) unlink((folder + name).c_str());
  rmdir((folder + "/emulated").c_str());
  rmdir(folder.c_str());
}

/* Writes the source and all headers to the folder. */
bool write_all(const Program &p, const std::string &macros, const std::string &folder) {
  bool ok = mkdir((folder + "/emulated").c_str(), 0700) == 0;
  for (const auto &h : headers) ok = ok && write_file(folder + "/" + h.path, h.text);
  for (size_t i = 0; i < p.header_names.size(); i++)
    ok = ok && write_file(folder + "/" + p.header_names[i], p.header_texts[i]);
  return ok && write_file(folder + "/kernel.cu", full_source(p, macros));
}

/* Compiles a program in a temporary folder. Returns a status of NVRTC, and sets the program's log
 * and code. */
int compile_in(Program *p, const std::string &folder, const TranslatedOptions &translated) {
  if (!write_all(*p, translated.macros, folder)) {
    p->log = "error: cannot write to the directory " + folder;
    return COMPILATION;
  }
  CommandStatus status = run_compiler(
      kernel_arguments(folder + "/kernel.cu", folder + "/kernel.so", folder, translated.options),
      folder + "/log");
  read_file(folder + "/log", &p->log);
  if (status == CommandStatus::NOT_FOUND) p->log = NO_COMPILER;
  std::string code;
  if (status != CommandStatus::OK || !read_file(folder + "/kernel.so", &code)) return COMPILATION;
  std::string missing = undefined_symbol(folder + "/kernel.so");
  if (!missing.empty()) {
    p->log = "error: " + missing + " is used but not defined";
    return COMPILATION;
  }
  CodeHeader m = code_header();
  m.size = code.size();
  p->code.assign((const char *)&m, sizeof m).append(code);
  return SUCCESS;
}

} // namespace

CodeHeader code_header() {
  unsigned long long h = 0xcbf29ce484222325ull;
  auto add = [&h](const char *text) {
    for (const char *c = text; *c; c++) h = (h ^ (unsigned char)*c) * 0x100000001b3ull;
  };
  for (const auto &header : headers) add(header.text);
  for (const std::string &word : kernel_arguments("", "", "", {})) add(word.c_str());
  return {{'l', 't', 'k', 'e', 'r', 'n', 'e', 'l'}, h, 0};
}

/* ---- NVRTC's functions ----------------------------------------------------------------------- */

static int version(int *major, int *minor) {
  *major = 13;
  *minor = 0;
  return SUCCESS;
}

static int create(void **out, const char *text, const char *name, int count,
                  const char *const *header_texts, const char *const *header_names) {
  if (!out || !text) return INVALID_INPUT;
  Program *p = new Program();
  p->text = text;
  p->name = name && *name ? name : "default_program";
  p->header_names.assign(header_names, header_names + count);
  p->header_texts.assign(header_texts, header_texts + count);
  *out = p;
  return SUCCESS;
}

static int destroy(void **program) {
  delete (Program *)*program;
  *program = nullptr;
  return SUCCESS;
}

static int add_name(void *program, const char *expression) {
  Program *p = (Program *)program;
  p->expressions.push_back(expression);
  p->symbols.push_back("lt_kernel_" + std::to_string(p->symbols.size()));
  return SUCCESS;
}

static int compile_program(void *program, int count, const char *const *given) {
  Program *p = (Program *)program;
  TranslatedOptions translated;
  translated.options.push_back("-w");
  for (int i = 0; i < count; i++)
    if (!translate_option(given[i], &translated)) {
      p->log = "nvrtc: error: unrecognized option " + std::string(given[i]) + " found";
      return INVALID_OPTION;
    }
  std::string folder = make_folder();
  if (folder.empty()) {
    p->log = "error: " + folder_problem();
    return COMPILATION;
  }
  int status = compile_in(p, folder, translated);
  remove_folder(*p, folder);
  return status;
}

static int lowered_name(void *program, const char *expression, const char **name) {
  Program *p = (Program *)program;
  for (size_t i = 0; i < p->expressions.size(); i++)
    if (p->expressions[i] == expression) {
      *name = p->symbols[i].c_str();
      return SUCCESS;
    }
  return NO_NAME;
}

static int log_size(void *program, size_t *size) {
  *size = ((Program *)program)->log.size() + 1;
  return SUCCESS;
}

static int get_log(void *program, char *log) {
  strcpy(log, ((Program *)program)->log.c_str());
  return SUCCESS;
}

static int code_size(void *program, size_t *size) {
  *size = ((Program *)program)->code.size();
  return SUCCESS;
}

static int get_code(void *program, char *code) {
  const std::string &made = ((Program *)program)->code;
  memcpy(code, made.data(), made.size());
  return SUCCESS;
}

/* No architectures are listed: an emulated device runs code for any. */
static int arch_count(int *count) {
  *count = 0;
  return SUCCESS;
}
static int archs(int *) { return SUCCESS; }

void *find_module_function(const char *name); /* modules.cpp */

} // namespace emulated

using namespace emulated;

extern "C" void lt_emulated_set_stop_callback(bool (*stopped)(void)) { stop_callback = stopped; }

extern "C" void *lt_emulated_symbol(const char *name) {
  static const struct {
    const char *name;
    void *function;
  } functions[] = {{"nvrtcVersion", (void *)version},
                   {"nvrtcCreateProgram", (void *)create},
                   {"nvrtcDestroyProgram", (void *)destroy},
                   {"nvrtcAddNameExpression", (void *)add_name},
                   {"nvrtcCompileProgram", (void *)compile_program},
                   {"nvrtcGetLoweredName", (void *)lowered_name},
                   {"nvrtcGetProgramLogSize", (void *)log_size},
                   {"nvrtcGetProgramLog", (void *)get_log},
                   {"nvrtcGetCUBINSize", (void *)code_size},
                   {"nvrtcGetCUBIN", (void *)get_code},
                   {"nvrtcGetPTXSize", (void *)code_size},
                   {"nvrtcGetPTX", (void *)get_code},
                   {"nvrtcGetNumSupportedArchs", (void *)arch_count},
                   {"nvrtcGetSupportedArchs", (void *)archs}};
  for (const auto &f : functions)
    if (strcmp(f.name, name) == 0) return f.function;
  return find_module_function(name);
}
