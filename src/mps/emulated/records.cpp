/* records.cpp: the C++ text that follows the translation of a file: functions that call its
 * kernels, and its record (metal/record.h). */
#include "kernels.h"

namespace emulated {
namespace {

std::string argument(const KernelParameter &p, size_t number, const std::string &bytes) {
  std::string type = "<P::at<" + std::to_string(number) + ">>";
  if (p.kind == ParameterKind::BUFFER)
    return "lt_buffer" + type + "::at(b, " + std::to_string(p.index) + ")";
  if (p.kind == ParameterKind::THREADGROUP)
    return "lt_threadgroup" + type + "::at(c, " + bytes + ")";
  return "lt_" + p.builtin + type + "(b, c)";
}

std::string record(const KernelParameter &p) {
  const char *kinds[] = {"BUFFER", "THREADGROUP", "BUILTIN"};
  return "{\"" + p.name + "\", emulated::ParameterKind::" + kinds[(int)p.kind] + ", " +
         std::to_string(p.index) + (p.read_only ? ", true" : ", false") +
         (p.optional ? ", true}, " : ", false}, ");
}

/* Returns the function that runs entry `number`, and its parameters. */
std::string function(const std::vector<Entry> &entries, size_t number) {
  const Entry &e = entries[number];
  std::string n = std::to_string(number), call, parameters;
  std::string bytes =
      e.kernel->threadgroup.empty() ? "0" : e.kernel->threadgroup + e.arguments + "()";
  size_t i = 0;
  for (const KernelParameter &p : e.kernel->parameters) {
    call += (i ? ", " : "") + argument(p, i, bytes);
    parameters += record(p);
    i++;
  }
  return "static_assert(" + bytes + " <= 32768, \"the threadgroup memory of kernel " + e.host_name +
         " is larger than 32768 bytes\");\n" + "static const emulated::Parameter lt_parameters_" +
         n + "[] = {" + parameters + "{}};\nstatic void lt_run_" + n +
         "(const emulated::Bindings *b) {\n  typedef " + "lt_Parameters<decltype(&" + e.call +
         ")> P;\n  (void)b;\n" + "  lt_EmulatedContext *c = lt_emulated_here();\n  do " + e.call +
         "(" + call + ");\n  while (lt_emulated_next(c));\n  (void)sizeof(P);\n}\n";
}

} // namespace

std::string write_records(const std::vector<Entry> &entries,
                          const std::vector<ConstantInfo> &constants, const char *file) {
  /* Metal allows fewer threads for a kernel that needs many registers, unless it declares how many
   * it is launched with; so the library's own kernels declare it where it is more than 256. */
  const std::string default_threads = file ? "256" : "1024";
  std::string text, list, constant_list;
  for (size_t i = 0; i < entries.size(); i++) {
    const Entry &e = entries[i];
    std::string n = std::to_string(i);
    text += function(entries, i);
    list += "  {\"" + e.host_name + "\", lt_parameters_" + n + ", " +
            std::to_string(e.kernel->parameters.size()) + ", " +
            (e.kernel->threads.empty()
                 ? default_threads
                 : e.kernel->threads + (e.kernel->is_template ? e.arguments + "()" : "")) +
            ", " +
            (e.kernel->threadgroup.empty() ? "0" : e.kernel->threadgroup + e.arguments + "()") +
            ", lt_run_" + n + "},\n";
  }
  for (const ConstantInfo &c : constants) {
    constant_list +=
        "  {\"" + c.name + "\", \"" + c.type + "\", " + std::to_string(c.index) + "},\n";
  }
  text += "static const emulated::Kernel lt_kernels[] = {\n" + list + "  {}};\n" +
          "static const emulated::FunctionConstant lt_constants[] = {\n" + constant_list +
          "  {}};\n" + (file ? "static" : "LT_EMULATED_EXPORT emulated::File lt_emulated_file;\n") +
          " emulated::File lt_emulated_file = {\"" + (file ? file : "") + "\", lt_kernels, " +
          std::to_string(entries.size()) + ", lt_constants, " + std::to_string(constants.size()) +
          ", nullptr};\n";
  if (file) text += "static const lt_Register lt_registered(&lt_emulated_file);\n";
  return text;
}

} // namespace emulated
