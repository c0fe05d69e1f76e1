/* libraries.c: finds NVIDIA's shared libraries; libraries.h has the order of the search. The folder
 * of a Python package is found by its name, site-packages/nvidia/<package>/lib, without running
 * Python. */
#define _GNU_SOURCE
#include "libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LT_CUDA_SYSTEM /* tests replace the root folder */
#define LT_CUDA_SYSTEM ""
#endif

static const struct {
  const char *name, *file;
  int versions[4]; /* major versions, the newest first; 0 ends the list */
  int behind;      /* how much lower they are than the toolkit's */
} libraries[LT_LIBRARIES] = {
    [LT_LIBRARY_CUBLAS] = {"cuBLAS", "libcublas.so", {13, 12, 11}, 0},
    [LT_LIBRARY_CUBLASLT] = {"cuBLASLt", "libcublasLt.so", {13, 12, 11}, 0},
    [LT_LIBRARY_CUSOLVER] = {"cuSOLVER", "libcusolver.so", {12, 11}, 1},
    [LT_LIBRARY_CUFFT] = {"cuFFT", "libcufft.so", {12, 11, 10}, 1},
    [LT_LIBRARY_CUDNN] = {"cuDNN", "libcudnn.so", {9, 8}, 0},
    [LT_LIBRARY_NVRTC] = {"NVRTC", "libnvrtc.so", {13, 12}, 0},
    [LT_LIBRARY_NCCL] = {"NCCL", "libnccl.so", {2}, 0},
};

const char *lt_cuda_library_name(lt_CudaLibrary library) { return libraries[library].name; }

typedef struct Search {
  char file[64]; /* "libcublas.so.13" */
  int toolkit;   /* the major version of its toolkit */
  bool (*accepts)(void *handle);
  void *handle; /* NULL until the library is found */
  char *path;
  size_t size;
  /* where the library's path is written */
} Search;

/* ---- folders --------------------------------------------------------------------------------- */

/* Loads the file. Returns true, with its handle and real path in *s, when it loads and is
 * accepted. */
static bool try_file(Search *s, const char *path) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  struct link_map *map = NULL;
  if (!handle) return false;
  if (s->accepts && !s->accepts(handle)) {
    dlclose(handle);
    return false;
  }
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name && map->l_name[0])
    path = map->l_name;
  snprintf(s->path, s->size, "%s", path);
  s->handle = handle;
  return true;
}

/* Tries the file in every folder that matches the pattern <root><below>. Characters of `root` that
 * are special in a pattern are escaped. */
static bool try_folders(Search *s, const char *root, const char *below) {
  char pattern[4096];
  size_t used = 0;
  glob_t matches;
  if (!root || root[0] != '/') return false;
  for (const char *p = root; *p && used < sizeof pattern - 3; p++) {
    if (strchr("*?[\\", *p)) pattern[used++] = '\\';
    pattern[used++] = *p;
  }
  int n = snprintf(pattern + used, sizeof pattern - used, "%s/%s", below, s->file);
  if (n < 0 || (size_t)n >= sizeof pattern - used || glob(pattern, 0, NULL, &matches) != 0)
    return false;
  for (size_t i = 0; i < matches.gl_pathc && !s->handle; i++) try_file(s, matches.gl_pathv[i]);
  globfree(&matches);
  return s->handle != NULL;
}

static bool try_toolkits(Search *s) {
  char versioned[64];
  snprintf(versioned, sizeof versioned, "/usr/local/cuda-%d*/lib64", s->toolkit);
  return try_folders(s, getenv("CUDA_HOME"), "/lib64") ||
         try_folders(s, getenv("CUDA_PATH"), "/lib64") ||
         try_folders(s, LT_CUDA_SYSTEM "/usr/local/cuda", "/lib64") ||
         try_folders(s, LT_CUDA_SYSTEM "/", versioned + 1) ||
         try_folders(s, LT_CUDA_SYSTEM "/opt/cuda", "/lib64") ||
         try_folders(s, getenv("CONDA_PREFIX"), "/lib");
}

/* Tries the nvidia-* packages below the prefix of a Python interpreter. */
static bool try_prefix(Search *s, const char *prefix) {
  return try_folders(s, prefix, "/lib/python3*/site-packages/nvidia/*/lib") ||
         try_folders(s, prefix, "/lib/python3*/dist-packages/nvidia/*/lib");
}

/* Tries the prefix of `folder`/python3, which is the folder above bin: of the path itself and of
 * the file that it links to. */
static bool try_interpreter(Search *s, const char *folder, size_t length) {
  char path[2048];
  int n = snprintf(path, sizeof path, "%.*s/python3", (int)length, folder);
  if (n < 0 || (size_t)n >= sizeof path || access(path, X_OK) != 0) return false;
  char *target = realpath(path, NULL), *names[] = {path, target};
  for (int i = 0; i < 2 && !s->handle; i++)
    for (int up = 0; up < 2 && names[i]; up++) {
      char *slash = strrchr(names[i], '/');
      if (slash) *slash = 0;
    }
  bool found = try_prefix(s, path) || try_prefix(s, target);
  free(target);
  return found;
}

/* Calls try(s, folder, length) for each folder of a list like PATH, until one call returns true. */
static bool try_list(Search *s, const char *list, bool (*try)(Search *, const char *, size_t)) {
  while (list && *list) {
    size_t length = strcspn(list, ":");
    if (length && try(s, list, length)) return true;
    list += length + (list[length] == ':');
  }
  return false;
}

static bool try_packages(Search *s, const char *folder, size_t length) {
  char path[2048];
  int n = snprintf(path, sizeof path, "%.*s", (int)length, folder);
  return n > 0 && (size_t)n < sizeof path && try_folders(s, path, "/nvidia/*/lib");
}

static bool try_python(Search *s) {
  char user[2048] = "";
  const char *home = getenv("HOME");
  if (home && strlen(home) < sizeof user - 10) snprintf(user, sizeof user, "%s/.local", home);
  return try_prefix(s, getenv("VIRTUAL_ENV")) || try_prefix(s, getenv("CONDA_PREFIX")) ||
         try_list(s, getenv("PYTHONPATH"), try_packages) ||
         try_list(s, getenv("PATH"), try_interpreter) || try_prefix(s, user) ||
         try_prefix(s, LT_CUDA_SYSTEM "/usr/local") || try_prefix(s, LT_CUDA_SYSTEM "/usr") ||
         try_prefix(s, LT_CUDA_SYSTEM "/opt/conda");
}

/* ---- the search ------------------------------------------------------------------------------ */

static bool try_version(Search *s, lt_CudaLibrary library, int version) {
  s->toolkit = version + libraries[library].behind;
  snprintf(s->file, sizeof s->file, "%s.%d", libraries[library].file, version);
  return try_file(s, s->file) || try_toolkits(s) || try_python(s);
}

void *lt_cuda_library_open(lt_CudaLibrary library, int first, bool (*accepts)(void *handle),
                           char *path, size_t size) {
  Search s = {.accepts = accepts, .path = path, .size = size};
  const int *versions = libraries[library].versions;
  for (int i = 0; i < 4 && versions[i]; i++)
    if (versions[i] == first && try_version(&s, library, first)) return s.handle;
  for (int i = 0; i < 4 && versions[i]; i++)
    if (versions[i] != first && try_version(&s, library, versions[i])) return s.handle;
  return NULL;
}

static bool has_headers(const char *folder) {
  char path[2100];
  snprintf(path, sizeof path, "%s/cuda_fp16.h", folder);
  return access(path, R_OK) == 0;
}

void lt_cuda_include_folder(const char *path, char *folder, size_t size) {
  static const char *const beside[] = {"../include", "../../include", "../../cuda_runtime/include"};
  const char *const roots[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"),
                               LT_CUDA_SYSTEM "/usr/local/cuda"};
  const char *slash = strrchr(path, '/');
  for (size_t i = 0; i < 3; i++) {
    snprintf(folder, size, "%s/include", roots[i] ? roots[i] : "");
    if (has_headers(folder)) return;
  }
  for (size_t i = 0; i < 3 && slash; i++) {
    snprintf(folder, size, "%.*s/%s", (int)(slash - path), path, beside[i]);
    if (has_headers(folder)) return;
  }
  folder[0] = 0;
}
