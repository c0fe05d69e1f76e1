/* kernels.cpp: the parameters of kernels and their attributes. */
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

namespace emulated {
namespace {

/* What a built-in parameter is. */
enum class Shape { POSITION, NUMBER };

struct Builtin {
  const char *name;
  Shape shape;
} const BUILTINS[] = {
    {"thread_position_in_grid", Shape::POSITION},
    {"thread_position_in_threadgroup", Shape::POSITION},
    {"threadgroup_position_in_grid", Shape::POSITION},
    {"threads_per_grid", Shape::POSITION},
    {"threads_per_threadgroup", Shape::POSITION},
    {"threadgroups_per_grid", Shape::POSITION},
    {"dispatch_threads_per_threadgroup", Shape::POSITION},
    {"thread_index_in_threadgroup", Shape::NUMBER},
    {"thread_index_in_simdgroup", Shape::NUMBER},
    {"thread_index_in_quadgroup", Shape::NUMBER},
    {"simdgroup_index_in_threadgroup", Shape::NUMBER},
    {"simdgroups_per_threadgroup", Shape::NUMBER},
    {"quadgroup_index_in_threadgroup", Shape::NUMBER},
    {"quadgroups_per_threadgroup", Shape::NUMBER},
    {"threads_per_simdgroup", Shape::NUMBER},
    {"thread_execution_width", Shape::NUMBER},
};

const Builtin *find_builtin(const std::string &name) {
  for (const Builtin &b : BUILTINS)
    if (name == b.name) return &b;
  return nullptr;
}

/* A parameter between tokens `begin` and `end`, and what its declaration consists of. */
struct Declaration {
  size_t begin, end, name_at;
  bool has_device = false, has_constant = false, has_threadgroup = false, has_const = false;
  bool is_pointer = false;
  std::string type; /* the first word of the type */
  std::vector<Attribute> attributes;
};

/* Returns the index of the comma after i that ends a parameter, or `end`. */
size_t parameter_end(const Tokens &t, size_t i, size_t end) {
  for (; i < end; i++) {
    if (t[i].is("(") || t[i].is("[") || t[i].is("{")) i = t.close(i);
    if (t[i].is("<") && t.close(i) < end) i = t.close(i);
    if (t[i].is(",")) return i;
  }
  return end;
}

Declaration read_declaration(Tokens &t, size_t begin, size_t end) {
  Declaration d;
  d.begin = d.name_at = begin;
  d.end = end;
  for (size_t i = begin; i < end; i++) {
    if (is_attribute(t, i)) {
      i = read_attributes(t, i, &d.attributes) - 1;
      continue;
    }
    if (t[i].is("[")) i = t.close(i);
    if (t[i].is("<") && t.close(i) < end) i = t.close(i);
    if (t[i].is("*") || t[i].is("&")) d.is_pointer = true;
    if (!t[i].is_word()) continue;
    if (t[i].is("device"))
      d.has_device = true;
    else if (t[i].is("constant"))
      d.has_constant = true;
    else if (t[i].is("threadgroup"))
      d.has_threadgroup = true;
    else if (t[i].is("const") && !d.is_pointer)
      d.has_const = true;
    else if (d.type.empty() && !t[i].is("const") && !t[i].is("volatile"))
      d.type = t[i].text;
    else if (!t[i].is("const"))
      d.name_at = i;
  }
  return d;
}

/* Returns the number of components of a type that a built-in parameter may have; 0 for others. */
int components(const std::string &type) {
  static const char *const types[] = {"uint", "ushort", "uint2", "ushort2", "uint3", "ushort3"};
  for (int i = 0; i < 6; i++)
    if (type == types[i]) return i / 2 + 1;
  return type == "uint32_t" || type == "uint16_t" || type == "unsigned" ? 1 : 0;
}

void check_builtin(Tokens &t, const Declaration &d, const Attribute &a, const Builtin &b) {
  int n = components(d.type);
  if (d.is_pointer || n == 0 || (b.shape == Shape::NUMBER && n != 1))
    t.fail(d.begin, "invalid type '" + d.type + (d.is_pointer ? " *" : "") +
                        "' of a parameter with attribute '" + a.name + "': expected " +
                        (b.shape == Shape::NUMBER ? "'uint' or 'ushort'"
                                                  : "'uint', 'ushort' or a vector of them with 2 "
                                                    "or 3 components"));
}

void check_argument(Tokens &t, const Declaration &d, const Attribute &a) {
  char *end;
  long n = strtol(a.argument.c_str(), &end, 0);
  if (a.argument.empty() || *end) {
    t.fail(a.at, "'" + a.name + "' attribute requires an integer constant");
  } else if (a.name == "buffer") {
    if (n < 0 || n > 30)
      t.fail(a.at, "'buffer' attribute parameter is out of bounds: must be between 0 and 30");
    if (!d.is_pointer || !(d.has_device || d.has_constant))
      t.fail(d.begin, "parameter '" + t[d.name_at].text +
                          "' with attribute 'buffer' must be a pointer or a reference in the "
                          "'device' or 'constant' address space");
  } else {
    if (n != 0) t.fail(a.at, "emulated devices have 'threadgroup(0)' only");
    if (!d.is_pointer || !d.has_threadgroup)
      t.fail(d.begin, "parameter '" + t[d.name_at].text +
                          "' with attribute 'threadgroup' must be a pointer in the 'threadgroup' "
                          "address space");
  }
}

/* Interprets the attributes of a parameter. Its index is -1 where it has none. */
KernelParameter interpret(Tokens &t, const Declaration &d) {
  KernelParameter p;
  p.name = t[d.name_at].text;
  p.kind = d.has_threadgroup ? ParameterKind::THREADGROUP : ParameterKind::BUFFER;
  p.index = -1;
  p.read_only = d.has_constant || d.has_const;
  p.optional = false;
  for (const Attribute &a : d.attributes) {
    const Builtin *b = find_builtin(a.name);
    if (b) {
      check_builtin(t, d, a, *b);
      p.builtin = a.name;
      p.kind = ParameterKind::BUILTIN;
    } else if (a.name == "buffer" || a.name == "threadgroup") {
      check_argument(t, d, a);
      p.kind = a.name == "buffer" ? ParameterKind::BUFFER : ParameterKind::THREADGROUP;
      p.index = atoi(a.argument.c_str());
    } else if (a.name == "function_constant") {
      p.optional = true;
    } else if (a.name != "maybe_unused" && a.name != "user") {
      t.fail(a.at, "unknown attribute '" + a.name + "'");
    }
  }
  if (p.kind != ParameterKind::BUILTIN && !d.is_pointer && p.index < 0)
    t.fail(d.begin, "invalid type '" + d.type + "' for parameter '" + p.name +
                        "' of a kernel: expected a pointer or a reference with an address space, "
                        "or an attribute");
  else if (p.kind == ParameterKind::BUFFER && !d.has_device && !d.has_constant && p.index < 0)
    t.fail(d.begin, "pointer type must have explicit address space qualifier");
  return p;
}

/* Gives indices to buffers without the attribute, as Metal does: in order, those that are free. */
void assign_indices(Tokens &t, size_t at, std::vector<KernelParameter> *list) {
  bool used[31] = {}, used_threadgroup = false;
  for (const KernelParameter &p : *list) {
    if (p.kind == ParameterKind::BUFFER && p.index >= 0 && p.index < 31) {
      if (used[p.index] && !p.optional)
        t.fail(at, "'buffer' attribute index " + std::to_string(p.index) + " of parameter '" +
                       p.name + "' is already used");
      used[p.index] = true;
    } else if (p.kind == ParameterKind::THREADGROUP) {
      if (used_threadgroup)
        t.fail(at, "'threadgroup' attribute index 0 of parameter '" + p.name + "' is already used");
      used_threadgroup = true;
    }
  }
  int next = 0;
  for (KernelParameter &p : *list) {
    if (p.index >= 0 || p.kind == ParameterKind::BUILTIN) continue;
    if (p.kind == ParameterKind::THREADGROUP) {
      p.index = 0;
      continue;
    }
    while (next < 31 && used[next]) next++;
    if (next == 31) t.fail(at, "a kernel has at most 31 buffers");
    p.index = next < 31 ? next++ : 0;
  }
}

} // namespace

bool is_attribute(const Tokens &t, size_t i) {
  return t[i].is("[") && t[i + 1].is("[") && t[t.close(i) - 1].is("]");
}

size_t read_attributes(Tokens &t, size_t i, std::vector<Attribute> *out) {
  if (!is_attribute(t, i)) return i;
  size_t end = t.close(i) - 1;
  for (size_t k = i + 2; k < end; k++) {
    if (t[k].is(",")) continue;
    Attribute a = {k, t[k].text, ""};
    while (t[k + 1].is("::")) {
      a.name += "::" + t[k + 2].text;
      k += 2;
    }
    if (t[k + 1].is("(")) {
      size_t close = t.close(k + 1);
      for (size_t m = k + 2; m < close; m++) a.argument += t[m].text;
      k = close;
    }
    out->push_back(a);
  }
  return end + 2;
}

std::vector<KernelParameter> read_parameters(Tokens &t, size_t open, size_t close) {
  std::vector<KernelParameter> list;
  int first = 0; /* the components of the first position */
  if (t[open + 1].is("void") && open + 2 == close) return list;
  for (size_t i = open + 1; i < close;) {
    size_t end = parameter_end(t, i, close);
    Declaration d = read_declaration(t, i, end);
    KernelParameter p = interpret(t, d);
    const Builtin *b = find_builtin(p.builtin);
    if (b && b->shape == Shape::POSITION) {
      int n = components(d.type);
      if (first && n && n != first)
        t.fail(i, "expecting input declarations with either all scalar types or all vector types "
                  "with the same number of elements");
      if (!first) first = n;
    }
    list.push_back(p);
    i = end + 1;
  }
  assign_indices(t, open, &list);
  return list;
}

} // namespace emulated
