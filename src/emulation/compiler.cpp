/* compiler.cpp: see compiler.h. */
#include "compiler.h"

#include "emulated/threads.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

namespace emulation {

std::atomic<bool (*)(void)> stop_callback{nullptr};

const char *const NO_COMPILER =
    "error: no C++ compiler on this machine: emulated devices compile a kernel from source with "
    "c++, g++, clang++ or the one set in CXX";

namespace {

/* Returns the environment with LC_ALL=C, so that messages are in English. */
std::vector<char *> plain_environment() {
  static char language[] = "LC_ALL=C";
  std::vector<char *> list;
  for (char **e = environ; *e; e++)
    if (strncmp(*e, "LC_ALL=", 7) != 0) list.push_back(*e);
  list.push_back(language);
  list.push_back(nullptr);
  return list;
}

/* Waits for a process; returns false, after killing its group, when the program requested a
 * stop. */
bool await(pid_t process, int *status) {
  long pause = 1000000;
  for (;;) {
    pid_t ended = waitpid(process, status, WNOHANG);
    if (ended == process) return true;
    if (ended < 0) {
      *status = -1;
      return true;
    }
    if (stop_requested()) {
      kill(-process, SIGKILL);
      waitpid(process, status, 0);
      return false;
    }
    struct timespec t = {0, pause};
    nanosleep(&t, nullptr);
    if (pause < 10000000) pause += pause / 4;
  }
}

/* Runs a command; its output goes to the file `log`. */
CommandStatus run(const std::vector<std::string> &words, const std::string &log) {
  std::vector<char *> argv;
  for (const std::string &word : words) argv.push_back((char *)word.c_str());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP); /* Ctrl-C in the terminal is not
                                                                 * sent to it */
  posix_spawnattr_setpgroup(&attributes, 0);
  pid_t process;
  int error =
      posix_spawnp(&process, argv[0], &files, &attributes, argv.data(), plain_environment().data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error) return CommandStatus::NOT_FOUND;
  int status = 0;
  if (!await(process, &status)) return CommandStatus::STOPPED;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) return CommandStatus::NOT_FOUND;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CommandStatus::OK : CommandStatus::FAILED;
}

/* Returns the folder for temporary files. */
std::string temporary_folder() {
  const char *folder = getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

} // namespace

std::string make_folder() {
  std::string path = temporary_folder() + "/lutra-XXXXXX";
  return mkdtemp(&path[0]) ? path : "";
}

std::string folder_problem() {
  return "cannot create a directory for temporary files in " + temporary_folder() + " (set TMPDIR)";
}

bool write_file(const std::string &path, const std::string &text) {
  FILE *f = fopen(path.c_str(), "wb");
  if (!f) return false;
  bool ok = fwrite(text.data(), 1, text.size(), f) == text.size();
  return fclose(f) == 0 && ok;
}

bool read_file(const std::string &path, std::string *text) {
  char part[1 << 14];
  size_t n;
  FILE *f = fopen(path.c_str(), "rb");
  if (!f) return false;
  text->clear();
  while ((n = fread(part, 1, sizeof part, f)) > 0) text->append(part, n);
  bool ok = !ferror(f);
  fclose(f);
  return ok;
}

bool stop_requested() {
  auto ask = stop_callback.load();
  return ask && ask();
}

CommandStatus run_compiler(const std::vector<std::string> &arguments, const std::string &log) {
  const char *preferred = getenv("CXX");
  CommandStatus status = CommandStatus::NOT_FOUND;
  for (const char *compiler : {preferred ? preferred : "", "c++", "g++", "clang++"}) {
    if (!*compiler) continue;
    std::vector<std::string> words = {compiler};
    words.insert(words.end(), arguments.begin(), arguments.end());
    status = run(words, log);
    if (status != CommandStatus::NOT_FOUND) break;
  }
  return status;
}

std::vector<std::string> kernel_arguments(const std::string &source, const std::string &object,
                                          const std::string &include,
                                          const std::vector<std::string> &options) {
  std::vector<std::string> words = {
      "-x",
      "c++",
      "-std=c++17",
      "-O2",
      "-fPIC",
      "-shared",
      "-fvisibility=hidden",
      "-ffp-contract=off",
      "-fno-math-errno",
      "-fno-trapping-math",
      "-fstack-clash-protection",
      "-fdiagnostics-color=never",
      "-ftabstop=1", /* columns count characters */
      "-nostdinc",   /* headers that NVRTC would not find are not
                                                     * found */
#ifdef __SANITIZE_ADDRESS__
      "-D__SANITIZE_ADDRESS__=1", /* decides the size of stacks */
#endif
#ifdef __APPLE__
      "-undefined",
      "dynamic_lookup",
#else
      "-nostdlib", /* the program provides the C library; linking without C++'s takes half as
                      * long */
#endif
  };
  words.insert(words.end(), {"-o", object, "-I" + include});
  words.insert(words.end(), options.begin(), options.end());
  words.push_back(source);
#ifndef __APPLE__
  words.push_back("-lgcc");
#endif
  return words;
}

std::string undefined_symbol(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library) {
    dlclose(library);
    return "";
  }
  std::string text = dlerror();
  size_t at = text.rfind(": ");
  std::string symbol = at == std::string::npos ? text : text.substr(at + 2);
  int status = 0;
  char *plain = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (plain) symbol = plain;
  free(plain);
  return symbol;
}

void *load_kernels(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  lt_EmulatedCalls *calls =
      library ? (lt_EmulatedCalls *)dlsym(library, "lt_emulated_calls") : nullptr;
  if (!calls) return nullptr;
  *calls = {lt_emulated_barrier, lt_emulated_warp, lt_emulated_trap, lt_emulated_yield,
            lt_emulated_clock};
  return library;
}

} // namespace emulation
