/* check.cpp: see check.h. The checks see tokens, not types, and accept what they cannot decide. */
#include "check.h"
#include "kernels.h"

#include <map>
#include <set>
#include <string.h>

namespace emulated {
namespace {

/* Words that MSL does not have, and why. */
const struct {
  const char *word, *message;
} WORDS[] = {
    {"double", "'double' is not supported in Metal"},
    {"goto", "'goto' is not supported in Metal"},
    {"new", "'new' is not supported in Metal"},
    {"delete", "'delete' is not supported in Metal"},
    {"virtual", "virtual functions are not supported in Metal"},
    {"dynamic_cast", "'dynamic_cast' is not supported in Metal"},
    {"typeid", "'typeid' is not supported in Metal"},
    {"throw", "exceptions are not supported in Metal"},
    {"try", "exceptions are not supported in Metal"},
    {"catch", "exceptions are not supported in Metal"},
    {"thread_local", "'thread_local' is not supported in Metal"},
    {"asm", "'asm' is not supported in Metal"},
    {"__asm__", "'asm' is not supported in Metal"},
    {"wchar_t", "'wchar_t' is not supported in Metal"},
    {"__int128", "'__int128' is not supported in Metal"},
    {"std", "the C++ standard library is not available in Metal"},
    {"atomic_long", "MSL 3.0 has no atomic types of 64 bits"},
    {"atomic_ulong", "MSL 3.0 has no atomic types of 64 bits"},
};

const char *const TYPES[] = {"void",
                             "bool",
                             "char",
                             "short",
                             "int",
                             "long",
                             "unsigned",
                             "signed",
                             "float",
                             "half",
                             "bfloat",
                             "uchar",
                             "ushort",
                             "uint",
                             "ulong",
                             "size_t",
                             "int8_t",
                             "int16_t",
                             "int32_t",
                             "int64_t",
                             "uint8_t",
                             "uint16_t",
                             "uint32_t",
                             "uint64_t",
                             "ptrdiff_t",
                             "auto",
                             "atomic_int",
                             "atomic_uint",
                             "atomic_bool",
                             "atomic_float",
                             "simdgroup_float8x8",
                             "simdgroup_half8x8"};

bool is_space(const Token &t) {
  return t.is("device") || t.is("constant") || t.is("thread") || t.is("threadgroup");
}

class Checker {
public:
  explicit Checker(Tokens &tokens) : t(tokens) {}

  void run() {
    find_types();
    for (size_t i = 0; i < t.size(); i++) {
      check_word(i);
      check_pointer(i);
      check_lambda(i);
    }
    check_scopes();
    check_recursion();
  }

private:
  enum class Scope { NAMESPACE, TYPE, FUNCTION };
  struct Function {
    size_t at;         /* its name */
    size_t begin, end; /* the body */
    std::set<std::string> calls;
  };

  Tokens &t;
  std::set<std::string> types;
  std::map<std::string, std::vector<Function>> functions;

  /* ---- words and types ----------------------------------------------------------------------- */

  void find_types() {
    for (const char *name : TYPES) {
      types.insert(name);
      for (const char *n : {"2", "3", "4"}) types.insert(std::string(name) + n);
    }
    for (size_t i = 0; i < t.size(); i++) {
      bool declares = t[i].is("struct") || t[i].is("class") || t[i].is("union") ||
                      t[i].is("typename") || t[i].is("enum");
      if ((declares || (t[i].is("using") && t[i + 2].is("="))) && t[i + 1].is_word() &&
          !t[i + 2].is("::"))
        types.insert(t[i + 1].text);
      if (!t[i].is("typedef")) continue;
      size_t end = i;
      for (; end < t.size() && !t[end].is(";"); end++)
        if (t[end].is("{") || t[end].is("(")) end = t.close(end);
      if (t[end - 1].is_word()) types.insert(t[end - 1].text);
    }
  }

  void check_word(size_t i) {
    if (t[i].kind == TokenKind::NUMBER) {
      const std::string &s = t[i].text;
      if (s.find("ll") != std::string::npos || s.find("LL") != std::string::npos)
        t.fail(i, "'long long' is not supported in Metal");
    }
    if (!t[i].is_word() || t[i - 1].is(".") || t[i - 1].is("->")) return;
    for (const auto &w : WORDS)
      if (t[i].is(w.word) && !t[i - 1].is("operator") && (!t[i].is("std") || t[i + 1].is("::")) &&
          !(t[i].is("delete") && t[i - 1].is("=")))
        t.fail(i, w.message);
    if (t[i].is("long") && t[i + 1].is("long")) t.fail(i, "'long long' is not supported in Metal");
    if (t[i].text.compare(0, 10, "__builtin_") == 0)
      t.fail(i, "'" + t[i].text + "' is a function of the C++ compiler, not of Metal");
  }

  /* ---- pointers ------------------------------------------------------------------------------ */

  /* Returns true where a type ends at token i. */
  bool ends_type(size_t i) const {
    if (t[i].is("const") || t[i].is("volatile")) return ends_type(i - 1);
    if (t[i].is(">")) {
      size_t open = open_angle(i);
      return open > 0 && open < i && t[open - 1].is_word() && !is_value_template(open - 1);
    }
    if (!t[i].is_word()) return false;
    if (t[i - 1].is("::")) return has_typename(i);
    return types.count(t[i].text) > 0 && !t[i - 1].is(".") && !t[i - 1].is("->");
  }

  /* Returns true for a word before < that may be a function or a variable. */
  bool is_value_template(size_t i) const {
    return !types.count(t[i].text) && !t[i].is("vec") && !t[i].is("array") && !t[i].is("atomic") &&
           !t[i].is("simdgroup_matrix");
  }

  size_t open_angle(size_t i) const {
    for (size_t k = i; k-- > 0 && k + 40 > i;)
      if (t[k].is("<") && t.close(k) == i) return k;
    return i;
  }

  bool has_typename(size_t i) const {
    for (; i > 0 && (t[i].is_word() || t[i].is("::") || t[i].is(">")); i--) {
      if (t[i].is(">")) i = open_angle(i);
      if (t[i].is("typename")) return true;
    }
    return false;
  }

  /* Returns true where the declaration specifiers that end at token i have an address space. */
  bool has_space(size_t i) const {
    for (; i < t.size(); i--) {
      if (t[i].is(">"))
        i = open_angle(i);
      else if (!t[i].is_word() && !t[i].is("::"))
        return false;
      if (is_space(t[i])) return true;
      if (i == 0) return false;
    }
    return false;
  }

  bool is_template_parameter(size_t i) const {
    for (size_t k = i; k-- > 1 && !t[k].is(";") && !t[k].is("{") && !t[k].is("}");)
      if (t[k].is("<") && t[k - 1].is("template")) return t.close(k) > i;
    return false;
  }

  void check_pointer(size_t i) {
    if (!t[i].is("*") && !t[i].is("&") && !t[i].is("&&")) return;
    size_t type = i - 1;
    if (t[type].is("(") && type > 0 && (t[i + 2].is(")") || t[i + 1].is(")"))) type--;
    if (is_space(t[type]) || t[type].is("operator") || !ends_type(type)) return;
    if (type != i - 1 && t[i].is("*") && t[i + 3].is("(")) /* allowed as template arguments */
      return is_template_parameter(i)
                 ? void()
                 : t.fail(i, "pointers to functions are not supported in Metal");
    if (!has_space(type))
      t.fail(i, std::string(t[i].is("*") ? "pointer" : "reference") +
                    " type must have explicit address space qualifier");
    else if (t[i + 1].is("*") || t[i + 1].is("&"))
      t.fail(i + 1, "pointer type must have explicit address space qualifier");
  }

  void check_lambda(size_t i) {
    if (!t[i].is("[") || is_attribute(t, i) || t[i - 1].is("[")) return;
    const Token &before = t[i - 1];
    bool subscript = before.is_word() ? !before.is("return")
                                      : before.is("]") || before.is(")") || before.is(">") ||
                                            before.kind == TokenKind::STRING;
    size_t close = t.close(i);
    if (!subscript && (t[close + 1].is("(") || t[close + 1].is("{")))
      t.fail(i, "lambda expressions are not supported in Metal");
  }

  /* ---- scopes -------------------------------------------------------------------------------- */

  Scope scope_of(Scope outer, size_t begin, size_t end) const {
    if (outer == Scope::FUNCTION) return outer;
    bool is_type = false;
    for (size_t i = begin; i < end; i++) {
      if (t[i].is("<") && t.close(i) < end) i = t.close(i);
      if (t[i].is("namespace") || (t[i].is("extern") && i + 2 == end)) return Scope::NAMESPACE;
      if (t[i].is("(") || t[i].is("=")) return Scope::FUNCTION;
      for (const char *word : {"struct", "class", "union", "enum"}) is_type |= t[i].is(word);
    }
    return is_type ? Scope::TYPE : Scope::FUNCTION;
  }

  void check_scopes() {
    std::vector<Scope> scopes;
    size_t statement = 0;
    for (size_t i = 0; i < t.size(); i++) {
      Scope scope = scopes.empty() ? Scope::NAMESPACE : scopes.back();
      if (t[i].is("(") || t[i].is("[")) {
        i = t.close(i);
      } else if (t[i].is("{")) {
        scopes.push_back(scope_of(scope, statement, i));
        if (scope != Scope::FUNCTION && scopes.back() == Scope::FUNCTION) {
          if (initializes(statement, i)) {
            check_variable(scope, statement, i);
            scopes.pop_back();
            i = t.close(i);
            continue;
          }
          add_function(statement, i);
        }
        statement = i + 1;
      } else if (t[i].is("}")) {
        if (!scopes.empty()) scopes.pop_back();
        statement = i + 1;
      } else if (t[i].is(";")) {
        check_variable(scope, statement, i);
        statement = i + 1;
      } else if (t[i].is(":") && i == statement + 1) {
        statement = i + 1;
      }
    }
  }

  bool initializes(size_t begin, size_t end) const {
    for (size_t i = begin; i < end; i++) {
      if (t[i].is("(")) i = t.close(i);
      if (t[i].is("=") && !t[i - 1].is("operator")) return true;
    }
    return false;
  }

  /* Checks the declaration of a variable between two tokens. */
  void check_variable(Scope scope, size_t begin, size_t end) {
    bool is_static = false, is_constant = false, equals = false;
    size_t words = 0;
    for (const char *word : {"using", "typedef", "struct", "class", "enum", "union", "template",
                             "extern", "namespace", "friend", "static_assert", "return"})
      if (t[begin].is(word)) return;
    for (size_t i = begin; i < end && !equals; i++) {
      if (is_attribute(t, i)) {
        i = t.close(i);
        continue;
      }
      if (t[i].is("(")) return; /* a function, or a call */
      if (t[i].is("<") && t.close(i) < end) i = t.close(i);
      equals = t[i].is("=");
      is_static |= t[i].is("static");
      is_constant |= t[i].is("constant");
      words += t[i].is_word();
    }
    if (words < 2) return;
    if (scope == Scope::FUNCTION && is_static)
      t.fail(begin, "static variables in functions are not supported in Metal");
    if (scope == Scope::NAMESPACE && !is_constant)
      t.fail(begin, "program scope variable must reside in constant address space");
    if (scope == Scope::TYPE && is_static && !is_constant)
      t.fail(begin, "static data member must reside in constant address space");
  }

  /* ---- recursion ----------------------------------------------------------------------------- */

  void add_function(size_t begin, size_t brace) {
    size_t open = begin;
    while (open < brace && !t[open].is("(")) {
      if (is_attribute(t, open))
        open = t.close(open);
      else if (t[open].is("<") && t.close(open) < brace)
        open = t.close(open);
      open++;
    }
    if (open == brace || !t[open - 1].is_word() || t[begin].is("operator")) return;
    Function f = {open - 1, brace, t.close(brace), {}};
    for (size_t i = f.begin; i < f.end; i++)
      if (t[i].is_word() && t[i + 1].is("(") && !t[i - 1].is(".") && !t[i - 1].is("->") &&
          !t[i - 1].is("::"))
        f.calls.insert(t[i].text);
    functions[t[open - 1].text].push_back(f);
  }

  /* A name with several definitions is skipped, because a call may be to another one of them. */
  bool reaches(const std::string &from, const std::string &to, std::set<std::string> *seen) const {
    auto found = functions.find(from);
    if (found == functions.end() || found->second.size() > 1 || !seen->insert(from).second)
      return false;
    for (const std::string &next : found->second[0].calls)
      if (next == to || reaches(next, to, seen)) return true;
    return false;
  }

  void check_recursion() {
    for (const auto &f : functions) {
      std::set<std::string> seen;
      if (f.second.size() == 1 && reaches(f.first, f.first, &seen))
        t.fail(f.second[0].at,
               "recursion is not supported in Metal: '" + f.first + "' calls itself");
    }
  }
};

} // namespace

void check_language(Tokens &tokens) { Checker(tokens).run(); }

} // namespace emulated
