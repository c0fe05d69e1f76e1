/* mpi_library.c: finds MPI's library. It is loaded with global symbols, which the plugins of Open
 * MPI refer to. */
#include "mpi_library.h"
#include "kernel.h"

#include <dlfcn.h>
#include <pthread.h>

static lt_MpiLibrary library;
static bool found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Writes the address of a function or variable; returns false when the library lacks it. */
static bool find(void *handle, const char *name, void *to) {
  void *address = dlsym(handle, name);
  memcpy(to, &address, sizeof address);
  return address != NULL;
}

/* Fills in the constants of Open MPI, whose handles are the addresses of variables. */
static bool read_open_mpi(void *handle) {
  bool ok = true;
#define ROW(name, symbol, value) ok = find(handle, #symbol, &library.name) && ok;
  LT_MPI_HANDLES(ROW)
#undef ROW
  library.in_place = (const void *)(intptr_t)1;
  library.any_source = -1;
  library.source_word = 0;
  return ok;
}

/* Fills in the constants of MPICH. */
static void read_mpich(void) {
#define ROW(name, symbol, value) library.name = (lt_Mpi)(value);
  LT_MPI_HANDLES(ROW)
#undef ROW
  library.in_place = (const void *)(intptr_t)-1;
  library.any_source = -2;
  library.source_word = 2;
}

/* Writes "Open MPI 4.1.4" or "MPICH 4.0.2" from the first line of the version's text. */
static void read_name(bool open_mpi) {
  char text[8192] = "", *number = NULL;
  int length = 0;
  library.Get_library_version(text, &length);
  text[strcspn(text, ",\n")] = 0;
  for (char *p = text; *p && !number; p++)
    if (*p >= '0' && *p <= '9') number = p;
  snprintf(library.name, sizeof library.name, "%s %.40s", open_mpi ? "Open MPI" : "MPICH",
           number ? number : "");
}

static bool read_library(void *handle) {
  bool ok = true;
#define ROW(name, parameters) ok = find(handle, "MPI_" #name, &library.name) && ok;
  LT_MPI_FUNCTIONS(ROW)
#undef ROW
  if (!ok) return false;
  bool open_mpi = dlsym(handle, "ompi_mpi_comm_world") != NULL;
  if (open_mpi && !read_open_mpi(handle)) return false;
  if (!open_mpi) read_mpich();
  read_name(open_mpi);
  return true;
}

static bool try_library(const char *name) {
  void *handle = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
  if (!handle) return false;
  if (read_library(handle)) return true;
  dlclose(handle);
  return false;
}

static void load(void) {
  static const char *const open_mpi[] = {"libmpi.so.40", "libmpi.dylib"};
  static const char *const mpich[] = {"libmpich.so.12", "libmpi.so.12"};
  const char *chosen = getenv("LUTRA_MPI");
  if (chosen && strcmp(chosen, "0") == 0) return;
  if (chosen && *chosen) {
    found = try_library(chosen);
    return;
  }
  bool hydra = getenv("PMI_RANK") && !getenv("OMPI_COMM_WORLD_RANK");
  const char *const *order[] = {hydra ? mpich : open_mpi, hydra ? open_mpi : mpich};
  for (int i = 0; i < 4 && !found; i++) found = try_library(order[i / 2][i % 2]);
}

const lt_MpiLibrary *lt_mpi(void) {
  pthread_once(&once, load);
  return found ? &library : NULL;
}

bool lt_mpi_fail(const char *call, int code) {
  char text[1024] = "";
  int length = 0;
  library.Error_string(code, text, &length);
  lt_error_set("%s: MPI reports: %.400s", call, text);
  return false;
}
