/* test_cuda_libraries.c: the search for NVIDIA's libraries of src/cuda/libraries.c. The files that
 * it finds here are copies of a plugin of the tests; the loader's path and the system's folders are
 * empty. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void *open_library(const char *name, int flags) {
  return name[0] == '/' ? dlopen(name, flags) : NULL;
}
#define LT_CUDA_SYSTEM "/nonexistent"
#define dlopen         open_library
#include "../../src/cuda/libraries.c"

static char plugin[1000], root[1000];

static const char *const variables[] = {"CUDA_HOME",    "CUDA_PATH",  "VIRTUAL_ENV",
                                        "CONDA_PREFIX", "PYTHONPATH", "HOME"};

/* Creates an empty folder, and an environment that has no other. */
static void begin(void) {
  snprintf(root, sizeof root, "/tmp/lutra [libraries] XXXXXX");
  if (!mkdtemp(root)) abort();
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
  setenv("PATH", "/nonexistent", 1);
}

static void end(void) {
  char command[1100];
  setenv("PATH", "/usr/bin:/bin", 1);
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  if (system(command) != 0) check_report(__FILE__, __LINE__, "cannot remove %s", root);
}

/* Returns the path <root>/<name>, valid until the end of the test. */
static const char *at(const char *name) {
  static char texts[8][2000];
  static int next;
  char *text = texts[next++ % 8];
  snprintf(text, sizeof *texts, "%s/%s", root, name);
  return text;
}

/* Creates <root>/<name> and its folders: a library, or, with `text`, a file with this content. */
static const char *make(const char *name, const char *text) {
  char path[2000];
  snprintf(path, sizeof path, "%s", at(name));
  for (char *p = path + strlen(root) + 1; *p; p++)
    if (*p == '/') {
      *p = 0;
      mkdir(path, 0700);
      *p = '/';
    }
  FILE *from = text ? NULL : fopen(plugin, "rb"), *to = fopen(path, "wb");
  if (!to || (!text && !from)) abort();
  for (int c; from && (c = getc(from)) != EOF;) putc(c, to);
  if (text) fputs(text, to);
  if (from) fclose(from);
  fclose(to);
  chmod(path, 0700);
  return at(name);
}

static void finds(const char *expected, lt_CudaLibrary library, int first) {
  char path[1000] = "nothing";
  void *handle = lt_cuda_library_open(library, first, NULL, path, sizeof path);
  CHECK_STR(path, expected);
  if (handle) dlclose(handle);
}

static void finds_nothing_without_libraries(void) {
  begin();
  for (int i = 0; i < LT_LIBRARIES; i++) finds("nothing", (lt_CudaLibrary)i, 0);
  end();
}

static void finds_libraries_of_the_toolkit(void) {
  begin();
  setenv("CUDA_HOME", at("toolkit"), 1);
  setenv("CUDA_PATH", at("other"), 1);
  const char *other = make("other/lib64/libcublas.so.13", NULL);
  finds(other, LT_LIBRARY_CUBLAS, 0);
  finds(make("toolkit/lib64/libcublas.so.13", NULL), LT_LIBRARY_CUBLAS, 0);
  finds("nothing", LT_LIBRARY_CUBLASLT, 0);
  end();
}

static void finds_libraries_in_python_packages(void) {
  static const struct {
    const char *variable, *value, *file;
    lt_CudaLibrary sought;
  } cases[] = {
      {"VIRTUAL_ENV", "venv", "venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
       LT_LIBRARY_NVRTC},
      {"CONDA_PREFIX", "conda", "conda/lib/python3.9/site-packages/nvidia/cudnn/lib/libcudnn.so.9",
       LT_LIBRARY_CUDNN},
      {"VIRTUAL_ENV", "py", "py/lib/python3.12/site-packages/nvidia/cusolver/lib/libcusolver.so.11",
       LT_LIBRARY_CUSOLVER},
      {"CONDA_PREFIX", "conda", "conda/lib/libcublasLt.so.12", LT_LIBRARY_CUBLASLT},
      {"PYTHONPATH", "packages", "packages/nvidia/cublas/lib/libcublas.so.12", LT_LIBRARY_CUBLAS},
      {"CONDA_PREFIX", "conda", "conda/lib/libcufft.so.11", LT_LIBRARY_CUFFT},
      {"HOME", "home", "home/.local/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
       LT_LIBRARY_NCCL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    begin();
    const char *file = make(cases[i].file, NULL);
    finds("nothing", cases[i].sought, 0);
    setenv(cases[i].variable, at(cases[i].value), 1);
    finds(file, cases[i].sought, 0);
    end();
  }
}

static void finds_libraries_of_the_python_in_path(void) {
  begin();
  make("python/bin/python3.12", "#!/bin/sh\n");
  mkdir(at("bin"), 0700);
  if (symlink(at("python/bin/python3.12"), at("bin/python3")) != 0) abort();
  const char *file =
      make("python/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.13", NULL);
  char path[3000];
  snprintf(path, sizeof path, "/nonexistent:%s:/", at("bin"));
  setenv("PATH", path, 1);
  finds(file, LT_LIBRARY_CUBLAS, 0);
  /* The python3 of a virtual environment is a link to the one that created it. The environment's
   * own packages come first. */
  finds(make("lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.13", NULL),
        LT_LIBRARY_CUBLAS, 0);
  end();
}

static void prefers_a_version_then_the_newest(void) {
  begin();
  setenv("CUDA_HOME", at("old"), 1);
  setenv("VIRTUAL_ENV", at("venv"), 1);
  const char *old = make("old/lib64/libcublas.so.12", NULL);
  const char *new = make("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublas.so.13", NULL);
  finds(new, LT_LIBRARY_CUBLAS, 0);
  finds(new, LT_LIBRARY_CUBLAS, 13);
  finds(old, LT_LIBRARY_CUBLAS, 12);
  finds(new, LT_LIBRARY_CUBLAS, 99);
  end();
}

static bool refuses(void *handle) {
  (void)handle;
  return false;
}

static void skips_files_that_are_not_the_library(void) {
  begin();
  char path[1000] = "nothing";
  setenv("CUDA_HOME", at("broken"), 1);
  setenv("CUDA_PATH", at("good"), 1);
  make("broken/lib64/libcublas.so.13", "this is no library\n");
  finds("nothing", LT_LIBRARY_CUBLAS, 0);
  finds(make("good/lib64/libcublas.so.13", NULL), LT_LIBRARY_CUBLAS, 0);
  CHECK(!lt_cuda_library_open(LT_LIBRARY_CUBLAS, 0, refuses, path, sizeof path));
  CHECK_STR(path, "nothing");
  end();
}

static void finds_the_headers(void) {
  char folder[1000];
  begin();
  lt_cuda_include_folder(at("cu13/lib/libnvrtc.so.13"), folder, sizeof folder);
  CHECK_STR(folder, "");
  make("nvidia/cuda_runtime/include/cuda_fp16.h", "");
  make("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "");
  lt_cuda_include_folder(at("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), folder, sizeof folder);
  CHECK(has_headers(folder) && strstr(folder, "/cuda_runtime/include"));
  make("toolkit/include/cuda_fp16.h", "");
  setenv("CUDA_PATH", at("toolkit"), 1);
  lt_cuda_include_folder(at("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"), folder, sizeof folder);
  CHECK_STR(folder, at("toolkit/include"));
  end();
}

int main(int count, char **values) {
  char *program = realpath(values[0], NULL), *slash = program ? strrchr(program, '/') : NULL;
  (void)count;
  if (!slash) abort();
  snprintf(plugin, sizeof plugin, "%.*s/plugin_box.so", (int)(slash - program), program);
  free(program);
  RUN(finds_nothing_without_libraries);
  RUN(finds_libraries_of_the_toolkit);
  RUN(finds_libraries_in_python_packages);
  RUN(finds_libraries_of_the_python_in_path);
  RUN(prefers_a_version_then_the_newest);
  RUN(skips_files_that_are_not_the_library);
  RUN(finds_the_headers);
  return check_end();
}
