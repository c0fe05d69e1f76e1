/* translate.cpp: translates MSL to C++ token by token.
 *
 * Address spaces are removed (`constant` becomes const), attributes interpreted and removed, and
 * literals without a suffix become float. Function constants become functions that read the running
 * block's values. A `threadgroup` declaration in a kernel becomes a reference into the block's
 * memory; beside the kernel, a function with the same declarations returns the number of bytes.
 * At the end, each kernel gets a function that calls it for the threads of a block, and a record.
 */
#include "translate.h"
#include "check.h"
#include "kernels.h"

#include <ctype.h>
#include <map>
#include <set>
#include <string.h>

namespace emulated {
namespace {

bool is_address_space(const Token &token) {
  return token.is("device") || token.is("constant") || token.is("thread") ||
         token.is("threadgroup");
}

const char COMPONENTS[] = "xyzw", COLORS[] = "rgba"; /* names of a vector's components */

/* What a brace contains. */
enum class Scope { NAMESPACE, TYPE, FUNCTION, KERNEL };

struct Open {
  Scope scope;
  size_t statement; /* where the statement that has the brace begins */
};

struct Constant : ConstantInfo {
  size_t begin, at, equals, end; /* tokens of the declaration; `at`: the name */
};

class Translator {
public:
  Translator(Tokens &tokens, const char *builtin) : t(tokens), file(builtin) {}
  std::string run() {
    find_constants();
    for (size_t i = 0; i < t.size(); i++) replace_word(i);
    define_constants();
    find_kernels();
    return std::string(file ? "" : "#include \"emulated/calls.h\"\n") +
           "#include <metal_stdlib>\n" + body() + "\n#line 1 \"kernels\"\n" +
           write_records(entries, function_constants(), file);
  }

private:
  Tokens &t;
  const char *file;
  std::map<std::string, Constant> constants;
  std::vector<std::string> constant_order;
  std::set<std::string> declared; /* words that occur other than after . and -> */
  std::map<std::string, KernelInfo> kernels;
  std::vector<Entry> entries;
  std::set<std::string> signatures; /* of the functions so far */
  std::string namespaces;

  /* ---- words --------------------------------------------------------------------------------- */

  bool is_member(size_t i) const { return i > 0 && (t[i - 1].is(".") || t[i - 1].is("->")); }

  /* Empties the tokens from `begin` to `end`, and puts `text` in the place of the first. */
  void replace(size_t begin, size_t end, const std::string &text) {
    for (size_t i = begin; i < end; i++) t[i].out.clear();
    t[begin].out = text;
  }

  /* Returns the translation of the tokens from `begin` to `end`. */
  std::string text_of(size_t begin, size_t end) const {
    std::string text;
    for (size_t i = begin; i < end; i++) {
      if (t[i].space && !text.empty()) text += ' ';
      text += t[i].out;
    }
    return text;
  }

  /* Returns true where the type that `constant` at i belongs to is const without it. */
  bool is_const_already(size_t i) const {
    auto ends = [](const Token &token) {
      return !token.is_word() && !token.is("::") && !token.is(">");
    };
    for (size_t k = i; k-- > 0 && !ends(t[k]);)
      if (t[k].is("const")) return true;
    for (size_t k = i + 1; k < t.size() && (t[k].is("<") || !ends(t[k])); k++) {
      if (t[k].is("<")) k = t.close(k);
      if (t[k].is("const")) return true;
    }
    return false;
  }

  void replace_number(size_t i) {
    std::string &s = t[i].out;
    bool hex = s.size() > 1 && tolower(s[1]) == 'x';
    bool is_float = s.find_first_of(hex ? ".pP" : ".eE") != std::string::npos;
    char last = (char)tolower(s.back());
    if (!hex && last == 'h') {
      s = "half(" + s.substr(0, s.size() - 1) + (is_float ? "f)" : ".0f)");
    } else if (!hex && s.size() > 2 && last == 'f' && tolower(s[s.size() - 2]) == 'b') {
      s = "bfloat(" + s.substr(0, s.size() - 2) + (is_float ? "f)" : ".0f)");
    } else if (is_float && last == 'l') {
      t.fail(i, "'long double' is not supported in Metal");
    } else if (is_float && last != 'f') {
      s += 'f';
    } else if (!is_float && !hex && last == 'f') {
      t.fail(i, "invalid suffix 'f' on integer constant");
    }
  }

  /* A swizzle such as .xyz becomes an index, [lt_swizzle<0, 1, 2>()]. Names that are declared
   * anywhere in the source are left alone. */
  void replace_swizzle(size_t i) {
    const std::string &s = t[i].text;
    if (s.size() > 4 || t[i + 1].is("(") || declared.count(s)) return;
    if (s.size() == 1) {
      if (const char *color = strchr(COLORS, s[0])) t[i].out = COMPONENTS[color - COLORS];
      return;
    }
    for (const char *letters : {COMPONENTS, COLORS}) {
      if (s.find_first_not_of(letters) != std::string::npos) continue;
      std::string numbers;
      for (char c : s)
        numbers += (numbers.empty() ? "" : ", ") + std::to_string(strchr(letters, c) - letters);
      std::string index = "lt_swizzle<" + numbers + ">()";
      bool arrow = t[i - 1].is("->");
      t[i - 1].out = arrow ? "->" : "";
      t[i].out = arrow ? "operator[](" + index + ")" : "[" + index + "]";
    }
  }

  /* Returns true where `next` may follow the address space at token i. */
  bool may_precede(size_t i, const Token &next) const {
    for (const char *text : {"*", "&", "::", "{", ">"})
      if (next.is(text)) return true;
    bool qualifies_member = t[i - 1].is(")") || (t[i - 1].is("const") && t[i - 2].is(")"));
    return next.is_word() || (qualifies_member && (next.is("=") || next.is(":") || next.is(";")));
  }

  void replace_word(size_t i) {
    Token &token = t[i];
    if (token.kind == TokenKind::NUMBER) return replace_number(i);
    if (token.kind == TokenKind::PUNCTUATION && is_attribute(t, i)) {
      std::vector<Attribute> attributes;
      size_t end = read_attributes(t, i, &attributes);
      for (const Attribute &a : attributes) check_attribute(a);
      return replace(i, end, "");
    }
    if (!token.is_word() || token.out.empty()) return; /* empty: part of an attribute */
    if (is_member(i)) return replace_swizzle(i);
    if (is_address_space(token) && !may_precede(i, t[i + 1]))
      t.fail(i, "'" + token.text + "' is a keyword of Metal: it cannot be a name");
    if (token.is("device") || token.is("thread") || token.is("threadgroup"))
      token.out.clear();
    else if (token.is("constant"))
      token.out = is_const_already(i) ? "" : "const";
    else if (token.is("is_function_constant_defined"))
      replace_defined(i);
    else if (constants.count(token.text) && !token.out.empty() && !t[i - 1].is("::"))
      token.out = "lt_constant_" + token.text + "()";
  }

  void replace_defined(size_t i) {
    auto found = constants.find(t[i + 2].text);
    if (t[i + 1].is("(") && t[i + 3].is(")") && found != constants.end() &&
        found->second.index >= 0)
      replace(i, i + 4, "lt_is_defined(" + std::to_string(found->second.index) + ")");
    else
      t.fail(i, "is_function_constant_defined: expected the name of a function constant");
  }

  void check_attribute(const Attribute &a) {
    static const char *const known[] = {"kernel",
                                        "host_name",
                                        "max_total_threads_per_threadgroup",
                                        "function_constant",
                                        "buffer",
                                        "threadgroup",
                                        "maybe_unused",
                                        "fallthrough",
                                        "nodiscard",
                                        "deprecated",
                                        "noreturn",
                                        "gnu::always_inline",
                                        "clang::always_inline",
                                        "gnu::noinline",
                                        "clang::noinline",
                                        "user",
                                        "unroll",
                                        "likely",
                                        "unlikely"};
    for (const char *name : known)
      if (a.name == name) return;
    /* Those of a kernel's parameters are checked by read_parameters. */
    static const char *const parts[] = {
        "_in_grid",  "_in_threadgroup",  "_in_simdgroup",  "_in_quadgroup",
        "_per_grid", "_per_threadgroup", "_per_simdgroup", "thread_execution_width"};
    for (const char *part : parts)
      if (a.name.find(part) != std::string::npos) return;
    t.fail(a.at, "unknown attribute '" + a.name + "'");
  }

  /* ---- function constants -------------------------------------------------------------------- */

  /* Finds the function constants and the constants that are computed from them. Both become
   * functions. */
  void find_constants() {
    for (size_t i = 0; i < t.size(); i++)
      if (t[i].is_word() && !is_member(i)) declared.insert(t[i].text);
    int depth = 0;
    for (size_t i = 0; i < t.size(); i++) {
      if (t[i].is("(") || t[i].is("[")) i = t.close(i);
      if (t[i].is("{")) depth++;
      if (t[i].is("}")) depth--;
      if (!t[i].is("constant")) continue;
      size_t end = i;
      for (; end < t.size() && !t[end].is(";") && !t[end].is("{") && !t[end].is(")"); end++)
        if (t[end].is("[") || t[end].is("(")) end = t.close(end);
      if (t[end].is(";")) read_constant(i, end);
    }
  }

  /* Reads the declaration `constant T name [[function_constant(n)]]` or `constant T name = value`
   * between two tokens, if it is one. */
  void read_constant(size_t begin, size_t end) {
    size_t name = begin, equals = end;
    std::vector<Attribute> attributes;
    for (size_t i = begin; i < end; i++) {
      if (is_attribute(t, i)) {
        i = read_attributes(t, i, &attributes) - 1;
      } else if (t[i].is("=")) {
        equals = i;
        break;
      } else if (t[i].is("*") || t[i].is("[") || t[i].is("&")) {
        return;
      } else if (t[i].is_word()) {
        name = i;
      }
    }
    Constant c = {{t[name].text, text_of(begin + 1, name), -1}, begin, name, equals, end};
    for (const Attribute &a : attributes)
      if (a.name == "function_constant") c.index = atoi(a.argument.c_str());
    if (c.index < 0) {
      bool computed = false;
      for (size_t i = equals; i < end; i++)
        computed |= t[i].is_word() && !is_member(i) && constants.count(t[i].text);
      if (!computed) return;
    }
    constants[c.name] = c;
    if (c.index >= 0) constant_order.push_back(c.name);
  }

  void define_constants() {
    for (const auto &entry : constants) {
      const Constant &c = entry.second;
      std::string head = "LT_EMULATED " + c.type + " lt_constant_" + c.name + "() { return ";
      if (c.index >= 0) {
        replace(c.begin, c.end + 1,
                head + "lt_constant<" + c.type + ">(" + std::to_string(c.index) + "); }");
      } else {
        replace(c.begin, c.equals + 1, head + "(" + c.type + ")(");
        t[c.end].out = "); }";
      }
    }
  }

  /* ---- overloads for address spaces ---------------------------------------------------------- */

  /* Functions that differ only in address spaces are the same in C++: removes all but the first.
   * The declaration is between two tokens, the second of which is its brace or semicolon. */
  void remove_overload(size_t begin, size_t end, size_t owner) {
    size_t open = begin, last = t[end].is("{") ? t.close(end) : end;
    while (open < end && !t[open].is("(")) {
      if (is_attribute(t, open)) open = t.close(open);
      if (t[open].is("=")) return;
      open++;
    }
    if (open == end) return;
    if (t[open - 1].is("operator")) open = t.close(open) + 1; /* operator() */
    std::string signature = namespaces + std::to_string(owner);
    size_t close = t.close(open);
    for (size_t i = begin; i <= close + 1 && i < end; i++)
      if (!t[i].out.empty() && (i <= close || t[i].is("const"))) signature += ' ' + t[i].out;
    if (!t[end].is("{") && !t[end - 1].is("default")) return;
    if (signatures.insert(signature).second) return;
    replace(begin, last + 1, "");
  }

  /* ---- kernels ------------------------------------------------------------------------------- */

  /* Finds the kernels, by following the braces. */
  void find_kernels() {
    std::vector<Open> open;
    size_t statement = 0;
    for (size_t i = 0; i < t.size(); i++) {
      Scope scope = open.empty() ? Scope::NAMESPACE : open.back().scope;
      if (t[i].is("(") || t[i].is("[")) {
        i = t.close(i);
      } else if (t[i].is("{")) {
        open.push_back({scope_of(scope, statement, i), statement});
        if (open.back().scope == Scope::FUNCTION && scope != Scope::FUNCTION &&
            scope != Scope::KERNEL)
          remove_overload(statement, i, owner_of(open));
        if (open.back().scope == Scope::NAMESPACE && t[i - 1].is_word() &&
            !t[i - 1].is("namespace"))
          namespaces += t[i - 1].text + "::";
        statement = i + 1;
      } else if (t[i].is("}")) {
        if (open.empty()) return t.fail(i, "extraneous closing brace ('}')");
        if (open.back().scope == Scope::NAMESPACE) pop_namespace(open.back().statement);
        open.pop_back();
        statement = i + 1;
      } else if (t[i].is(";")) {
        if (scope == Scope::NAMESPACE && kernel_word(statement, i) < i) instance(statement, i);
        if (scope == Scope::TYPE) remove_overload(statement, i, owner_of(open));
        statement = i + 1;
      } else if (t[i].is(":") && i == statement + 1) {
        statement = i + 1; /* public: */
      }
    }
    if (!open.empty()) t.fail(t.size(), "expected '}'");
  }

  /* Returns a number for the type whose members are declared, 0 in a namespace. */
  static size_t owner_of(const std::vector<Open> &open) {
    for (size_t k = open.size(); k-- > 0;)
      if (open[k].scope == Scope::TYPE) return open[k].statement + 1;
    return 0;
  }

  void pop_namespace(size_t statement) {
    if (!t[statement].is("namespace") || t[statement + 1].is("{")) return;
    namespaces.erase(namespaces.size() - t[statement + 1].text.size() - 2);
  }

  /* Returns the index of `kernel` or [[kernel]] in a statement; `end` where there is none. */
  size_t kernel_word(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; i++) {
      if (t[i].is("kernel") && !is_member(i)) return i;
      if (is_attribute(t, i))
        for (size_t close = t.close(i); i < close; i++)
          if (t[i].is("kernel")) return i;
      if (t[i].is("(") || t[i].is("[")) i = t.close(i);
      if (t[i].is("<") && t.close(i) < end) i = t.close(i);
    }
    return end;
  }

  Scope scope_of(Scope outer, size_t begin, size_t end) {
    if (outer == Scope::FUNCTION || outer == Scope::KERNEL) return Scope::FUNCTION;
    if (outer == Scope::NAMESPACE && kernel_word(begin, end) < end) {
      define_kernel(begin, end);
      return Scope::KERNEL;
    }
    bool is_type = false;
    for (size_t i = begin; i < end; i++) {
      if (t[i].is("<") && t.close(i) < end) i = t.close(i);
      if (t[i].is("namespace") || (t[i].is("extern") && i + 2 == end)) return Scope::NAMESPACE;
      if (t[i].is("(") || t[i].is("=")) return Scope::FUNCTION;
      for (const char *word : {"struct", "class", "union", "enum"})
        if (t[i].is(word)) is_type = true;
    }
    return is_type ? Scope::TYPE : Scope::FUNCTION;
  }

  /* The parts of a kernel's declaration. */
  struct Head {
    size_t name, name_end, open; /* the tokens of the name; the parenthesis, or the end */
    std::vector<Attribute> attributes;
  };

  Head read_head(size_t begin, size_t end) {
    Head h = {begin, begin, end, {}};
    bool is_void = false;
    size_t i = begin;
    if (t[i].is("template")) i = t[i + 1].is("<") ? t.close(i + 1) + 1 : i + 1;
    for (; i < end; i++) {
      if (is_attribute(t, i)) {
        i = read_attributes(t, i, &h.attributes) - 1;
      } else if (t[i].is("decltype")) {
        is_void = true;
        i = t.close(i + 1);
      } else if (t[i].is("(")) {
        h.open = i;
        break;
      } else if (t[i].is("<")) {
        i = t.close(i);
        h.name_end = i + 1;
      } else if (t[i].is("void")) {
        is_void = true;
      } else if (t[i].is_word() && !t[i].is("kernel") && !t[i].is("static") && !t[i].is("inline")) {
        if (!t[i - 1].is("::")) h.name = i;
        h.name_end = i + 1;
      }
    }
    bool is_instance = t[begin].is("template") && !t[begin + 1].is("<"); /* its type is checked */
    if (!is_void && !is_instance) t.fail(h.name, "kernel must have void return type");
    return h;
  }

  static std::string argument_of(const Head &h, const char *name) {
    for (const Attribute &a : h.attributes)
      if (a.name == name) return a.argument;
    return "";
  }

  static std::string unquoted(const std::string &s) {
    return s.size() >= 2 && s[0] == '"' ? s.substr(1, s.size() - 2) : s;
  }

  /* Reads the kernel whose statement begins at `begin` and whose body at `brace`. */
  void define_kernel(size_t begin, size_t brace) {
    Head h = read_head(begin, brace);
    KernelInfo k;
    std::string name = t[h.name].text;
    size_t close = t.close(h.open);
    k.name = namespaces + name;
    k.is_template = t[begin].is("template");
    k.host_name = unquoted(argument_of(h, "host_name"));
    k.threads = argument_of(h, "max_total_threads_per_threadgroup");
    k.parameters = read_parameters(t, h.open, close);
    make_static(begin, h.name);
    std::string head = k.is_template ? text_of(begin, t.close(begin + 1) + 1) : "";
    if (replace_threadgroup(brace, head, name))
      k.threadgroup = namespaces + "lt_threadgroup_" + name;
    if (k.is_template && !k.threads.empty()) { /* may depend on the template's parameters */
      t[t.close(brace)].out += " " + head + " constexpr unsigned lt_threads_" + name +
                               "() { return " + k.threads + "; }";
      k.threads = namespaces + "lt_threads_" + name;
    }
    if (kernels.count(k.name)) t.fail(h.name, "redefinition of '" + name + "'");
    KernelInfo &kept = kernels[k.name] = k;
    if (!k.is_template)
      entries.push_back({k.host_name.empty() ? name : k.host_name, k.name, "", &kept});
  }

  /* `kernel` becomes static. */
  void make_static(size_t begin, size_t name) {
    bool has_static = false;
    size_t place = name;
    for (size_t i = begin; i < name; i++) {
      if (t[i].is("kernel")) t[i].out.clear();
      if (t[i].is("static")) has_static = true;
      if (t[i].is("void")) place = i;
    }
    if (!has_static) t[place].out = "static " + t[place].out;
  }

  /* An explicit instantiation, or the declaration of a kernel without its body. The former becomes
   * a pointer, so that the C++ compiler checks its parameters. */
  void instance(size_t begin, size_t end) {
    Head h = read_head(begin, end);
    if (!t[begin].is("template") || t[begin + 1].is("<")) return make_static(begin, h.name);
    size_t word_end = h.name;
    while (word_end < h.name_end && !t[word_end].is("<")) word_end++;
    std::string name = text_of(h.name, word_end), arguments = text_of(word_end, h.name_end);
    auto found = kernels.find(namespaces + name);
    if (found == kernels.end() || !found->second.is_template)
      return t.fail(h.name, "explicit instantiation of '" + name +
                                "' does not refer to a kernel template that is defined before");
    if (arguments.empty()) return t.fail(h.name, "expected template arguments");
    std::string host_name = unquoted(argument_of(h, "host_name"));
    Entry e = {host_name.empty() ? name + arguments : host_name, namespaces + name + arguments,
               arguments, &found->second};
    std::string pointer = "[[maybe_unused]] static auto *const lt_instance_";
    if (h.open < end) pointer = "[[maybe_unused]] static void (*const lt_instance_";
    replace(begin, h.open, pointer + std::to_string(entries.size()) + (h.open < end ? ")" : ""));
    t[end].out = " = &" + name + arguments + ";";
    entries.push_back(e);
  }

  /* ---- threadgroup memory -------------------------------------------------------------------- */

  /* Replaces the declarations of threadgroup memory in the body of a kernel. Returns true where
   * there are any; then a function is added after the body. */
  bool replace_threadgroup(size_t brace, const std::string &head, const std::string &name) {
    size_t close = t.close(brace), statement = brace + 1, last = brace;
    std::string before, kept;
    std::set<std::string> words; /* in the declarations */
    std::vector<std::pair<size_t, size_t>> statements;
    for (size_t i = brace + 1; i < close; i++) {
      if (t[i].is("(") || t[i].is("[") || t[i].is("{")) {
        bool block = t[i].is("{") && !t[i - 1].is("=");
        if (block) replace_nested(i, t.close(i));
        i = t.close(i);
        if (block) statement = i + 1;
      } else if (t[i].is(";")) {
        statements.push_back({statement, i});
        statement = i + 1;
      }
    }
    for (auto &s : statements)
      if (is_threadgroup_variable(s.first, s.second)) {
        last = s.second;
        for (size_t i = s.first; i < s.second; i++) words.insert(t[i].text);
      }
    if (last == brace) return false;
    for (auto &s : statements) {
      if (s.first > last) break;
      if (is_threadgroup_variable(s.first, s.second))
        kept += replace_variables(s.first, s.second, &before);
      else if (is_constant(s.first, s.second, words))
        kept += text_of(s.first, s.second + 1) + " ";
    }
    t[close].out += " " + head + " constexpr unsigned lt_threadgroup_" + name + "() { " + kept +
                    "return " + before + "; }";
    return true;
  }

  /* Variables in inner blocks become thread_local ones, because a block of threads stays on one
   * thread of the system. The library's own kernels have none: their size would not be known. */
  void replace_nested(size_t open, size_t close) {
    for (size_t i = open + 1; i < close; i++) {
      bool begins = t[i - 1].is("{") || t[i - 1].is(";") || t[i - 1].is("}");
      size_t end = i;
      while (end < close && !t[end].is(";")) end++;
      if (!begins || !is_threadgroup_variable(i, end)) continue;
      if (file) t.fail(i, "threadgroup variables are declared in the outermost block of a kernel");
      t[i].out = "thread_local " + t[i].out;
    }
  }

  /* Returns true where a statement declares variables in threadgroup memory, rather than pointers
   * to it. */
  bool is_threadgroup_variable(size_t begin, size_t end) const {
    if (!t[begin].is("threadgroup") &&
        !(t[begin + 1].is("threadgroup") && (t[begin].is("static") || t[begin].is("const"))))
      return false;
    for (size_t i = begin; i < end; i++) {
      if (t[i].is("<") && t.close(i) < end) i = t.close(i);
      if (t[i].is("*") || t[i].is("&") || t[i].is("(")) return false;
      if (t[i].is("[") || t[i].is("=")) return true;
    }
    return true;
  }

  /* Returns true where a statement declares a type or a constant which the sizes of threadgroup
   * arrays may depend on. */
  bool is_constant(size_t begin, size_t end, const std::set<std::string> &words) const {
    for (const char *word : {"constexpr", "using", "typedef", "enum", "struct"})
      if (t[begin].is(word) || t[begin + 1].is(word)) return true;
    if (!t[begin].is("const")) return false;
    for (size_t i = begin; i < end; i++)
      if (t[i].is("=")) return words.count(t[i - 1].text) > 0;
    return false;
  }

  /* Replaces `threadgroup T a[n], b;`. *before is an expression for the end of the memory that is
   * used so far. Returns the part of the translation that computes it. */
  std::string replace_variables(size_t begin, size_t end, std::string *before) {
    std::string type, sizes, references;
    size_t name = begin, i = begin;
    for (; i < end && !t[i].is("[") && !t[i].is(",") && !t[i].is("="); i++) {
      if (t[i].is("<"))
        i = t.close(i);
      else if (t[i].is_word())
        name = i;
    }
    type = text_of(begin, name);
    for (i = name; i < end;) {
      std::string dims, word = t[i].text;
      size_t from = ++i;
      while (t[i].is("[")) i = t.close(i) + 1;
      dims = text_of(from, i);
      if (t[i].is("="))
        return t.fail(i, "variables in the threadgroup address space cannot have an initializer"),
               "";
      if (!t[i].is(",") && i < end) return t.fail(i, "expected ';' after declaration"), "";
      sizes += "typedef " + type + " lt_type_" + word + dims + "; enum : unsigned { lt_at_" + word +
               " = " + (before->empty() ? "0" : *before) + ", lt_end_" + word +
               " = lt_after(lt_at_" + word + ", sizeof(lt_type_" + word + ")) }; ";
      references += "lt_type_" + word + " &" + word + " = *(lt_type_" + word +
                    " *)lt_threadgroup_memory(lt_at_" + word + "); ";
      *before = "(unsigned)lt_end_" + word;
      if (i < end) i++;
    }
    replace(begin, end + 1, sizes + references);
    return sizes;
  }

  std::vector<ConstantInfo> function_constants() const {
    std::vector<ConstantInfo> list;
    for (const std::string &name : constant_order) list.push_back(constants.at(name));
    return list;
  }

  /* ---- output -------------------------------------------------------------------------------- */

  /* Tokens keep their lines, and their columns where the ones before did not become longer. */
  std::string body() const {
    std::string text;
    int at_file = -1, line = 0;
    size_t start = 0; /* of the line in `text` */
    bool space = false;
    for (size_t i = 0; i < t.size(); i++) {
      const Token &token = t[i];
      space |= token.space;
      if (token.out.empty()) continue;
      if (token.file != at_file || token.line < line || token.line > line + 8) {
        text +=
            "\n#line " + std::to_string(token.line) + " \"" + t.files[(size_t)token.file] + "\"\n";
        at_file = token.file;
        line = token.line;
        start = text.size();
      }
      for (; line < token.line; line++) {
        text += '\n';
        start = text.size();
      }
      const size_t column = text.size() - start + 1, wanted = (size_t)token.column;
      if (space) text.append(column < wanted && wanted < 200 ? wanted - column : 1, ' ');
      text += token.out;
      space = false;
    }
    return text;
  }
};

} // namespace

Translation translate(const std::string &text, const std::string &name, const char *builtin) {
  Tokens tokens = tokenize(text, name);
  Translation result;
  if (tokens.problems.empty()) check_language(tokens);
  if (tokens.problems.empty()) result.text = Translator(tokens, builtin).run();
  result.problems = tokens.problems;
  return result;
}

} // namespace emulated
