/* dynamic_library.c: loads libraries by dlopen and finds their functions by dlsym. */
#include "dynamic_library.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

bool lt_library_load(const char *variable, const char *const *names, bool (*read)(void *library)) {
  const char *use = getenv(variable);
  if (use && strcmp(use, "0") == 0) return false;
  for (; *names; names++) {
    void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (library && read(library)) return true;
  }
  return false;
}

/* ISO C does not convert a pointer to data to one to a function by a cast. */
bool lt_library_find(void *library, const char *name, void *function) {
  void *symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}
