/* libraries.cpp: libraries of kernels: those that are part of this shared object, and those that
 * the system's C++ compiler makes of the user's source.
 *
 * A source is preprocessed, translated to C++ and compiled in a temporary folder, with the headers
 * of include/, which are embedded here.
 */
#include "library.h"
#include "runtime.h"
#include "translate.h"

#include "emulation/compiler.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct lt_MetalLibrary {
  const emulated::File *file;
  bool is_users;
};

extern "C" bool lt_interrupt_flag; /* of the core: Ctrl-C */

namespace emulated {
namespace {

/* ---- headers --------------------------------------------------------------------------------- */

#ifdef __APPLE__
#define LT_SECTION ".section __TEXT,__const\n"
#define LT_PREFIX  "_"
#else
#define LT_SECTION ".section .rodata\n"
#define LT_PREFIX  ""
#endif
#define EMBED(name, folder, path)                                                                  \
  extern "C" const char lt_metal_text_##name[] __attribute__((visibility("hidden")));              \
  __asm__(LT_SECTION ".globl " LT_PREFIX "lt_metal_text_" #name "\n" LT_PREFIX                     \
                     "lt_metal_text_" #name ":\n"                                                  \
                     ".incbin \"" folder path "\"\n.byte 0\n.text\n");
#define METAL  "src/mps/emulated/include/"
#define SHARED "src/emulation/include/"
#define HEADERS(X)                                                                                 \
  X(threads, SHARED, "emulated/threads.h")                                                         \
  X(calls, SHARED, "emulated/calls.h")                                                             \
  X(half_bits, SHARED, "emulated/half_bits.h")                                                     \
  X(stdlib, METAL, "metal_stdlib")                                                                 \
  X(types, METAL, "metal/types.h")                                                                 \
  X(vectors, METAL, "metal/vectors.h")                                                             \
  X(integers, METAL, "metal/integers.h")                                                           \
  X(maths, METAL, "metal/maths.h")                                                                 \
  X(atomics, METAL, "metal/atomics.h")                                                             \
  X(simd, METAL, "metal/simd.h")                                                                   \
  X(matrices, METAL, "metal/matrices.h")                                                           \
  X(entry, METAL, "metal/entry.h")                                                                 \
  X(record, METAL, "metal/record.h")
HEADERS(EMBED)

const struct {
  const char *path, *text;
} headers[] = {
#define X(name, folder, path) {path, lt_metal_text_##name},
    HEADERS(X)
#undef X
};

/* Headers of Metal, of which the preprocessor sees empty ones: metal_stdlib has everything. */
const char *const METAL_HEADERS[] = {
    "metal_stdlib",    "metal_array",       "metal_atomic",    "metal_common",
    "metal_compute",   "metal_config",      "metal_geometric", "metal_integer",
    "metal_limits",    "metal_math",        "metal_matrix",    "metal_pack",
    "metal_quadgroup", "metal_relational",  "metal_simdgroup", "metal_simdgroup_matrix",
    "metal_types",     "metal_type_traits", "simd/simd.h"};

/* ---- compilation ----------------------------------------------------------------------------- */

/* The temporary folder of a compilation, which is removed with it. */
struct Folder {
  std::string path = make_folder();
  std::vector<std::string> files, folders;
  bool ok = !path.empty();

  std::string file(const std::string &name) {
    files.push_back(path + "/" + name);
    return files.back();
  }
  void write(const std::string &name, const std::string &text) {
    ok = ok && write_file(file(name), text);
  }
  void folder(const std::string &name) {
    folders.push_back(path + "/" + name);
    ok = ok && mkdir(folders.back().c_str(), 0700) == 0;
  }
  ~Folder() {
    for (const std::string &f : files) unlink(f.c_str());
    while (!folders.empty()) {
      rmdir(folders.back().c_str());
      folders.pop_back();
    }
    if (!path.empty()) rmdir(path.c_str());
  }
};

/* A compilation; its messages go to `log`. */
struct Compilation {
  Folder folder;
  std::string log;
  CommandStatus status = CommandStatus::OK;

  void prepare(const std::string &source) {
    for (const char *name : {"emulated", "metal", "empty", "empty/simd"}) folder.folder(name);
    for (const auto &h : headers) folder.write(h.path, h.text);
    for (const char *name : METAL_HEADERS) folder.write(std::string("empty/") + name, "");
    folder.write("source.metal", "#line 1 \"program_source\"\n" + source + "\n");
    if (folder.ok) return;
    status = CommandStatus::FAILED;
    log =
        "error: " +
        (folder.path.empty() ? folder_problem() : "cannot write to the directory " + folder.path) +
        "\n";
  }

  /* Runs the compiler, if the steps before succeeded. */
  void run(const std::vector<std::string> &arguments) {
    if (status != CommandStatus::OK) return;
    std::string path = folder.file("log"), text;
    status = run_compiler(arguments, path);
    read_file(path, &text);
    log += text;
    if (status == CommandStatus::NOT_FOUND) log = std::string(NO_COMPILER) + "\n";
  }

  void preprocess() {
    run({"-E", "-x", "c++", "-undef", "-nostdinc", "-D__METAL_VERSION__=300", "-D__METAL__=1",
         "-fdiagnostics-color=never", "-isystem", folder.path + "/empty", "-o",
         folder.file("flat.metal"), folder.path + "/source.metal"});
  }

  void translate_text() {
    std::string text;
    if (status != CommandStatus::OK || !read_file(folder.path + "/flat.metal", &text)) return;
    Translation t = translate(text, "program_source", nullptr);
    for (const Problem &p : t.problems) log += to_string(p) + "\n";
    if (!t.problems.empty()) status = CommandStatus::FAILED;
    folder.write("kernel.cpp", t.text);
  }

  /* Returns the file of kernels, or NULL with messages in `log`. */
  const File *build() {
    std::string object = folder.file("kernel.so");
    preprocess();
    translate_text();
    run(kernel_arguments(folder.path + "/kernel.cpp", object, folder.path,
                         {"-fsigned-char", "-Werror=vla"}));
    clean_log();
    if (status != CommandStatus::OK) return nullptr;
    std::string missing = undefined_symbol(object);
    if (!missing.empty()) log += "error: " + missing + " is used but not defined\n";
    void *library = missing.empty() ? load_kernels(object) : nullptr;
    return library ? (const File *)dlsym(library, "lt_emulated_file") : nullptr;
  }

  /* Removes the folder's name from the messages, and what clang adds to them: lines of the
   * translation, which begin with a number or with a blank in its place, and a count of errors. */
  void clean_log() {
    std::string prefix = folder.path + "/", clean;
    for (size_t at; (at = log.find(prefix)) != std::string::npos;) log.erase(at, prefix.size());
    for (size_t i = 0, end; i < log.size(); i = end) {
      end = log.find('\n', i);
      end = end == std::string::npos ? log.size() : end + 1;
      size_t text = log.find_first_not_of(" 0123456789", i);
      bool shows = log[i] == ' ' && text < end && log[text] == '|';
      bool counts = end >= 12 && log.compare(end - 12, 12, " generated.\n") == 0;
      if (!shows && !counts) clean.append(log, i, end - i);
    }
    log = clean;
  }
};

bool is_interrupted() { return __atomic_load_n(&lt_interrupt_flag, __ATOMIC_RELAXED); }

/* ---- files ----------------------------------------------------------------------------------- */

File *files;

} // namespace

void register_file(File *file) {
  file->next = files;
  files = file;
}

const Kernel *find_kernel(const lt_MetalLibrary *library, const char *name) {
  for (int i = 0; i < library->file->count; i++)
    if (strcmp(library->file->kernels[i].name, name) == 0) return &library->file->kernels[i];
  return nullptr;
}

bool check_constants(const lt_MetalLibrary *library, int count, lt_MetalError *error) {
  for (int i = 0; i < library->file->constant_count; i++) {
    const FunctionConstant &c = library->file->constants[i];
    std::string type = c.type;
    if (c.index >= count || type == "int" || type == "int32_t" || type == "uint" ||
        type == "uint32_t" || type == "bool")
      continue;
    set_error(error, LT_METAL_REJECTED, "function constant '%s' has the type %s: expected int",
              c.name, c.type);
    return false;
  }
  return true;
}

bool is_user_library(const lt_MetalLibrary *library) { return library->is_users; }

} // namespace emulated

using namespace emulated;

lt_MetalLibrary *lt_metal_library_builtin(lt_MetalDevice *, const char *file,
                                          lt_MetalError *error) {
  if (fails(Fault::LIBRARY, error)) return nullptr;
  for (const File *f = files; f; f = f->next)
    if (strcmp(f->name, file) == 0) return new lt_MetalLibrary{f, false};
  set_error(error, LT_METAL_REJECTED, "there is no file '%s' of kernels", file);
  return nullptr;
}

lt_MetalLibrary *lt_metal_library_new(lt_MetalDevice *, const char *source, char **log,
                                      lt_MetalError *error) {
  *log = nullptr;
  if (fails(Fault::LIBRARY, error)) return nullptr;
  stop_callback = is_interrupted;
  Compilation c;
  c.prepare(source);
  const File *file = c.build();
  if (!c.log.empty()) *log = strdup(c.log.c_str());
  if (file) return new lt_MetalLibrary{file, true};
  if (c.status == CommandStatus::STOPPED)
    set_error(error, LT_METAL_OTHER, "interrupted");
  else
    set_error(error, LT_METAL_REJECTED, "the source has errors");
  return nullptr;
}
