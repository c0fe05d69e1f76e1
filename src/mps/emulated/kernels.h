/* kernels.h: the declarations of kernels, for translate.cpp. */
#ifndef LT_EMULATED_METAL_KERNELS_H
#define LT_EMULATED_METAL_KERNELS_H

#include "metal/record.h"
#include "tokens.h"

namespace emulated {

/* A parameter of a kernel, as it is declared. */
struct KernelParameter {
  std::string name, builtin; /* builtin: "thread_position_in_grid" ..., or "" */
  ParameterKind kind;
  int index;
  bool read_only, optional;
};

/* A kernel or a template of kernels. */
struct KernelInfo {
  std::string name;      /* with its namespaces */
  std::string host_name; /* "": the name */
  bool is_template = false;
  std::string threads;     /* the value of max_total_threads_per_threadgroup, or "" */
  std::string threadgroup; /* the function that returns the bytes it declares, or "" */
  std::vector<KernelParameter> parameters;
};

/* A kernel of the library: one that is no template, or an instance. */
struct Entry {
  std::string host_name, call; /* call: `f` or `f<float>` */
  std::string arguments;       /* the template arguments with their brackets, or "" */
  const KernelInfo *kernel;
};

/* A function constant, or a constant that is computed from others: then its index is -1. */
struct ConstantInfo {
  std::string name, type;
  int index;
};

/* Returns the C++ text that follows the translation: a function for each entry, which calls it for
 * the threads of a block, and the file's record. `builtin`: see translate. */
std::string write_records(const std::vector<Entry> &entries,
                          const std::vector<ConstantInfo> &constants, const char *builtin);

/* An attribute: the words between [[ and ]], such as `buffer(0)`. */
struct Attribute {
  size_t at; /* the token of its name */
  std::string name, argument;
};

/* Appends the attributes in the [[ ]] that begins at token i. Returns the index after it; i where
 * there is none. */
size_t read_attributes(Tokens &tokens, size_t i, std::vector<Attribute> *out);
/* Returns true where [[ begins at token i. */
bool is_attribute(const Tokens &tokens, size_t i);

/* Reads the parameters between the parentheses at `open` and `close`. Reports what a compiler for
 * Metal would. */
std::vector<KernelParameter> read_parameters(Tokens &tokens, size_t open, size_t close);

} // namespace emulated

#endif
