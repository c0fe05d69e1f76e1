/* onednn_library.h: the functions of oneDNN that Lutra calls, declared here because the library is
 * found at run time: versions 2 and 3, whose C interfaces differ in how descriptors are made.
 *
 * Objects of the library are pointers. A layout (memory descriptor) is a struct of version 2, which
 * is always passed by address, and an object of version 3. */
#ifndef LT_CPU_ONEDNN_LIBRARY_H
#define LT_CPU_ONEDNN_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LT_ONEDNN_DIMS 12 /* the library's limit of dimensions */
typedef int64_t lt_OnednnDims[LT_ONEDNN_DIMS];

/* Values of the library's enums. */
enum {
  LT_ONEDNN_OK = 0,
  LT_ONEDNN_CPU = 1,
  LT_ONEDNN_STREAM = 1, /* the default flags */
  LT_ONEDNN_BFLOAT16 = 2,
  LT_ONEDNN_FLOAT32 = 3,
  LT_ONEDNN_ANY = 1, /* the layout that the library prefers */
  LT_ONEDNN_FORWARD = 64,
  LT_ONEDNN_DIRECT = 1, /* algorithm */
  LT_ONEDNN_QUERY_SOURCE = 129,
  LT_ONEDNN_QUERY_SOURCE_GRADIENT = 130,
  LT_ONEDNN_QUERY_WEIGHTS = 131,
  LT_ONEDNN_QUERY_WEIGHTS_GRADIENT = 132,
  LT_ONEDNN_QUERY_RESULT = 133,
  LT_ONEDNN_QUERY_RESULT_GRADIENT = 134,
  LT_ONEDNN_SOURCE = 1,
  LT_ONEDNN_RESULT = 17,
  LT_ONEDNN_WEIGHTS = 33,
  LT_ONEDNN_BIAS = 41,
  LT_ONEDNN_SOURCE_GRADIENT = 129,
  LT_ONEDNN_RESULT_GRADIENT = 145,
  LT_ONEDNN_WEIGHTS_GRADIENT = 161
};

typedef struct lt_OnednnArgument {
  int which;
  void *memory;
} lt_OnednnArgument;
typedef struct lt_OnednnVersion {
  int major, minor, patch;
} lt_OnednnVersion;

/* Functions of both versions: name, result, parameters. */
#define LT_ONEDNN_FUNCTIONS(F)                                                                     \
  F(version, const lt_OnednnVersion *, (void))                                                     \
  F(engine_create, int, (void **engine, int kind, size_t index))                                   \
  F(stream_create, int, (void **stream, void *engine, unsigned flags))                             \
  F(stream_destroy, int, (void *stream))                                                           \
  F(memory_create, int, (void **memory, const void *layout, void *engine, void *data))             \
  F(memory_set_data_handle, int, (void *memory, void *data))                                       \
  F(memory_destroy, int, (void *memory))                                                           \
  F(memory_desc_get_size, size_t, (const void *layout))                                            \
  F(memory_desc_equal, int, (const void *a, const void *b))                                        \
  F(primitive_desc_query_md, const void *, (const void *description, int what, int index))         \
  F(primitive_desc_destroy, int, (void *description))                                              \
  F(primitive_create, int, (void **primitive, const void *description))                            \
  F(primitive_execute, int,                                                                        \
    (const void *primitive, void *stream, int count, const lt_OnednnArgument *arguments))          \
  F(primitive_destroy, int, (void *primitive))                                                     \
  F(reorder_primitive_desc_create, int,                                                            \
    (void **description, const void *from, void *from_engine, const void *to, void *to_engine,     \
     const void *attributes))

#define LT_ONEDNN_GEOMETRY                                                                         \
  const int64_t *strides, const int64_t *dilations, const int64_t *before, const int64_t *after

/* Of version 2: an op's descriptor is a struct of the caller's. */
#define LT_ONEDNN_FUNCTIONS_2(F)                                                                   \
  F(memory_desc_init_by_strides, int,                                                              \
    (void *layout, int ndim, const int64_t *dims, int type, const int64_t *strides))               \
  F(memory_desc_init_by_tag, int,                                                                  \
    (void *layout, int ndim, const int64_t *dims, int type, int tag))                              \
  F(dilated_convolution_forward_desc_init, int,                                                    \
    (void *op, int kind, int algorithm, const void *source, const void *weights, const void *bias, \
     const void *result, LT_ONEDNN_GEOMETRY))                                                      \
  F(dilated_convolution_backward_data_desc_init, int,                                              \
    (void *op, int algorithm, const void *source, const void *weights, const void *result,         \
     LT_ONEDNN_GEOMETRY))                                                                          \
  F(dilated_convolution_backward_weights_desc_init, int,                                           \
    (void *op, int algorithm, const void *source, const void *weights, const void *bias,           \
     const void *result, LT_ONEDNN_GEOMETRY))                                                      \
  F(primitive_desc_create, int,                                                                    \
    (void **description, const void *op, const void *attributes, void *engine,                     \
     const void *forward))

/* Of version 3. */
#define LT_ONEDNN_FUNCTIONS_3(F)                                                                   \
  F(memory_desc_create_with_strides, int,                                                          \
    (void **layout, int ndim, const int64_t *dims, int type, const int64_t *strides))              \
  F(memory_desc_create_with_tag, int,                                                              \
    (void **layout, int ndim, const int64_t *dims, int type, int tag))                             \
  F(memory_desc_destroy, int, (void *layout))                                                      \
  F(convolution_forward_primitive_desc_create, int,                                                \
    (void **description, void *engine, int kind, int algorithm, const void *source,                \
     const void *weights, const void *bias, const void *result, LT_ONEDNN_GEOMETRY,                \
     const void *attributes))                                                                      \
  F(convolution_backward_data_primitive_desc_create, int,                                          \
    (void **description, void *engine, int algorithm, const void *source, const void *weights,     \
     const void *result, LT_ONEDNN_GEOMETRY, const void *forward, const void *attributes))         \
  F(convolution_backward_weights_primitive_desc_create, int,                                       \
    (void **description, void *engine, int algorithm, const void *source, const void *weights,     \
     const void *bias, const void *result, LT_ONEDNN_GEOMETRY, const void *forward,                \
     const void *attributes))

#define LT_ONEDNN_FIELD(name, result, parameters) result(*name) parameters;
typedef struct lt_Onednn {
  LT_ONEDNN_FUNCTIONS(LT_ONEDNN_FIELD)
  LT_ONEDNN_FUNCTIONS_2(LT_ONEDNN_FIELD)
  LT_ONEDNN_FUNCTIONS_3(LT_ONEDNN_FIELD)
  int major; /* the version: 2 or 3 */
  void *engine;
  char name[64];
} lt_Onednn;
#undef LT_ONEDNN_FIELD

/* Returns the library, which is loaded at the first call; NULL when it is missing. */
const lt_Onednn *lt_onednn(void);

/* A layout of version 2 or 3. */
typedef struct lt_OnednnLayout {
  void *object; /* of version 3 */
  _Alignas(16) char description[1024];
} lt_OnednnLayout;
/* Makes a layout of a type (LT_ONEDNN_FLOAT32): dense in row-major order or, with `any`, of the
 * library's choice. Returns false on failure. lt_onednn_layout_free frees it. */
bool lt_onednn_layout(lt_OnednnLayout *layout, int type, int ndim, const int64_t *dims, bool any);
void lt_onednn_layout_free(lt_OnednnLayout *layout);
static inline const void *lt_onednn_layout_of(const lt_OnednnLayout *layout) {
  return layout->object ? layout->object : layout->description;
}

#endif
