/* record.h: what the C++ text of translated kernels (translate.cpp) tells the runtime of the
 * emulated device about them. Read by kernels that are compiled at run time, too, so without any
 * header of the C library. */
#ifndef LT_EMULATED_METAL_RECORD_H
#define LT_EMULATED_METAL_RECORD_H

namespace emulated {

enum class ParameterKind { BUFFER, THREADGROUP, BUILTIN };

/* A parameter of a kernel. */
struct Parameter {
  const char *name;
  ParameterKind kind;
  int index;      /* n of [[buffer(n)]] or [[threadgroup(n)]], else -1 */
  bool read_only; /* `device const T *`, `constant T &`: the kernel does not write to it */
  bool optional;  /* it exists for some values of a function constant only */
};

/* The arguments of a launch. The executor runs threadgroups at the end of a row with a smaller
 * blockDim where the grid is no multiple of the group. The block's memory, `shared` of the context,
 * is Kernel::threadgroup bytes that the kernel declares itself, then [[threadgroup(0)]]. */
struct Bindings {
  void *const *buffers; /* buffers[i]: the address of [[buffer(i)]], or NULL */
  unsigned grid[3];     /* threads of the grid */
  unsigned group[3];    /* threads of a threadgroup that is not at the end of a row */
};

/* A kernel. */
struct Kernel {
  const char *name;
  const Parameter *parameters;
  int count;
  unsigned threads;     /* the most threads of a threadgroup */
  unsigned threadgroup; /* bytes of the threadgroup memory it declares, a multiple of 16 */
  /* Runs the context's thread and all others of the block that have not started. */
  void (*run)(const Bindings *bindings);
};

/* A function constant. Its values are passed as int32_t. */
struct FunctionConstant {
  const char *name, *type; /* "bool", "int", "uint", "float" ... */
  int index;
};

/* The values of the function constants, which `constants` of the running block's record points
 * to. */
struct ConstantValues {
  int count; /* function constants with larger indices are not defined */
  int values[32];
};

/* A translated file. */
struct File {
  const char *name; /* without ".metal"; "" where it was compiled at run time */
  const Kernel *kernels;
  int count;
  const FunctionConstant *constants;
  int constant_count;
  File *next;
};

} // namespace emulated

#endif
