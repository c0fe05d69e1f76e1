/* onednn_library.c: finds oneDNN and makes its layouts. */
#include "onednn_library.h"
#include "dynamic_library.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static lt_Onednn library;
static bool found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#define FIND(name, result, parameters)                                                             \
  ok = lt_library_find(handle, "dnnl_" #name, &library.name) && ok;

/* Fills in the table from a library; returns false if it is not one that Lutra can call. */
static bool read_library(void *handle) {
  bool ok = true;
  memset(&library, 0, sizeof library);
  LT_ONEDNN_FUNCTIONS(FIND)
  if (!ok) return false;
  const lt_OnednnVersion *v = library.version();
  library.major = v->major;
  if (v->major == 2) {
    LT_ONEDNN_FUNCTIONS_2(FIND)
  } else if (v->major == 3) {
    LT_ONEDNN_FUNCTIONS_3(FIND)
  } else {
    return false;
  }
  snprintf(library.name, sizeof library.name, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
  return ok && library.engine_create(&library.engine, LT_ONEDNN_CPU, 0) == LT_ONEDNN_OK;
}

/* Only on x86-64: elsewhere Debian's library has no fast convolutions. */
static void load(void) {
  static const char *const names[] = {
#ifdef __x86_64__
      "libdnnl.so.3", "libdnnl.so.2",
#endif
      NULL};
  found = lt_library_load("LUTRA_ONEDNN", names, read_library);
}

const lt_Onednn *lt_onednn(void) {
  pthread_once(&once, load);
  return found ? &library : NULL;
}

bool lt_onednn_layout(lt_OnednnLayout *layout, int type, int ndim, const int64_t *dims, bool any) {
  int64_t strides[LT_ONEDNN_DIMS];
  for (int d = ndim - 1; d >= 0; d--) strides[d] = d == ndim - 1 ? 1 : strides[d + 1] * dims[d + 1];
  layout->object = NULL;
  if (library.major == 2) {
    void *to = layout->description;
    return (any ? library.memory_desc_init_by_tag(to, ndim, dims, type, LT_ONEDNN_ANY)
                : library.memory_desc_init_by_strides(to, ndim, dims, type, strides)) ==
           LT_ONEDNN_OK;
  }
  void **to = &layout->object;
  return (any ? library.memory_desc_create_with_tag(to, ndim, dims, type, LT_ONEDNN_ANY)
              : library.memory_desc_create_with_strides(to, ndim, dims, type, strides)) ==
         LT_ONEDNN_OK;
}

void lt_onednn_layout_free(lt_OnednnLayout *layout) {
  if (layout->object) library.memory_desc_destroy(layout->object);
  layout->object = NULL;
}
