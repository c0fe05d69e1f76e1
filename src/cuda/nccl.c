/* nccl.c: loads NCCL, or, in the build for emulated devices, takes the functions of the emulated
 * one. */
#include "nccl_library.h"
#include "cuda.h"
#include "libraries.h"

#include <dlfcn.h>
#include <pthread.h>

static lt_Nccl nccl;
static const char *missing; /* why it cannot be used; NULL: it can */
static pthread_once_t once = PTHREAD_ONCE_INIT;

#ifdef LT_CUDA_EMULATED
#include <nccl.h>
#define LT_TAKE(name, parameters) nccl.name = (int(*) parameters)(void (*)(void))nccl##name;
/* Returns false with the option libraries=off. */
bool lt_emulated_has_nccl(void);

static void find_library(void) {
  LT_NCCL_FUNCTIONS(LT_TAKE)
  nccl.GetErrorString = (const char *(*)(int))ncclGetErrorString;
  nccl.GetLastError = (const char *(*)(void *))ncclGetLastError;
  if (!lt_emulated_has_nccl())
    missing = "NCCL, which CUDA devices communicate by, was not found\nhint: remove libraries=off "
              "from --emulate";
}
#undef LT_TAKE
#else
/* ISO C does not allow the cast of a data pointer to a function pointer. */
static bool find(void *library, const char *name, void *field) {
  void *symbol = dlsym(library, name);
  memcpy(field, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Reads the library's functions; false when one is missing. */
static bool load_functions(void *library) {
  bool ok = find(library, "ncclGetErrorString", &nccl.GetErrorString);
#define LT_FIND(name, parameters) ok = find(library, "nccl" #name, &nccl.name) && ok;
  LT_NCCL_FUNCTIONS(LT_FIND)
#undef LT_FIND
  find(library, "ncclGetLastError", &nccl.GetLastError);
  return ok;
}

static void find_library(void) {
  char path[1000];
  if (!lt_cuda_library_open(LT_LIBRARY_NCCL, 0, load_functions, path, sizeof path))
    missing =
        "NCCL (libnccl.so.2), which CUDA devices communicate by, was not found on this "
        "machine\nhint: install NVIDIA's package libnccl2, or pip install nvidia-nccl-cu12 (for "
        "CUDA 13 nvidia-nccl-cu13), or set LD_LIBRARY_PATH to the folder of the library";
}
#endif

static void load(void) {
  int version = 0;
  find_library();
  if (missing) return;
  if (nccl.GetVersion(&version) != LT_NCCL_SUCCESS) version = 0;
  int unit = version < 10000 ? 1000 : 10000; /* 2708, since 2.9 20901 */
  snprintf(nccl.name, sizeof nccl.name, "NCCL %d.%d.%d%s", version / unit, version % unit / 100,
           version % 100,
#ifdef LT_CUDA_EMULATED
           " (emulated)"
#else
           ""
#endif
  );
}

const lt_Nccl *lt_cuda_nccl(char *why, size_t size) {
  pthread_once(&once, load);
  if (missing) snprintf(why, size, "%s", missing);
  return missing ? NULL : &nccl;
}
