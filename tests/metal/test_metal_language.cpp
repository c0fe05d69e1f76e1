/* test_metal_language.cpp: what the compiler of the emulated Metal refuses and accepts, and where
 * it says the errors are. */
#include "metal_support.h"

#include "mps/emulated/library.h"
#include "mps/emulated/translate.h"

#include <string>

using namespace emulated;

/* Returns the problems that the translator finds in a source, one a line. */
static std::string problems(const std::string &source) {
  std::string all;
  for (const Problem &p : translate(source, "k", nullptr).problems) all += to_string(p) + "\n";
  return all;
}

/* Returns the compiler's messages about a source; "" where it is accepted. */
static std::string compile(const std::string &source) {
  lt_MetalError error = {};
  char *log = nullptr;
  lt_MetalLibrary *made = lt_metal_library_new(device(), source.c_str(), &log, &error);
  std::string said = log ? log : made ? "" : error.text;
  CHECK(made ? error.status == LT_METAL_OK : error.status == LT_METAL_REJECTED);
  free(log);
  return said;
}

struct Case {
  const char *source, *expected; /* expected: a part of the message; NULL: accepted */
};

static void check_all(const Case *cases, size_t count, std::string (*ask)(const std::string &)) {
  for (size_t i = 0; i < count; i++) {
    std::string said = ask(cases[i].source);
    bool ok = cases[i].expected ? said.find(cases[i].expected) != std::string::npos : said.empty();
    if (!ok)
      check_report(__FILE__, __LINE__, "%s\n  expected: %s\n  actual: %s", cases[i].source,
                   cases[i].expected ? cases[i].expected : "no message", said.c_str());
  }
}
#define CHECK_ALL(cases, ask) check_all(cases, sizeof cases / sizeof *cases, ask)

/* ---- the language ---------------------------------------------------------------------------- */

#define BODY(text) "kernel void k(device float *x [[buffer(0)]]) { " text " }"

static void words_and_types() {
  const Case cases[] = {
      {BODY("double d = 1;"), "k:1:48: error: 'double' is not supported"},
      {BODY("float d = 1.0; half h = 1.5h; x[0] = 2e3;"), nullptr},
      {BODY("long double d = 1;"), "'double' is not supported"},
      {BODY("x[0] = 1.0l;"), "'long double' is not supported"},
      {BODY("long long n = 1;"), "'long long' is not supported"},
      {BODY("long n = 1LL;"), "'long long' is not supported"},
      {BODY("long n = 1L; ulong m = 1ul;"), nullptr},
      {BODY("goto end; end: x[0] = 1;"), "'goto' is not supported"},
      {BODY("for (int i = 0; i < 3; i++) { if (i == 1) continue; break; }"), nullptr},
      {BODY("thread int *p = new int;"), "'new' is not supported"},
      {BODY("delete x;"), "'delete' is not supported"},
      {"struct S { S(thread const S &) thread = delete; int a; };", nullptr},
      {BODY("throw 1;"), "exceptions are not supported"},
      {BODY("try { x[0] = 1; } catch (...) {}"), "exceptions are not supported"},
      {BODY("dynamic_cast<int>(1);"), "'dynamic_cast' is not supported"},
      {"struct S { virtual void f(); };", "virtual functions are not supported"},
      {"struct S { int a; int twice() const { return 2 * a; } };", nullptr},
      {BODY("x[0] = std::min(1, 2);"), "standard library is not available"},
      {BODY("x[0] = __builtin_expf(1.0f);"), "a function of the C++ compiler"},
      {BODY("device atomic_ulong *p = 0;"), "no atomic types of 64 bits"},
      {"kernel void k(device float *x [[buffer(0)]], uint thread [[thread_position_in_grid]]) {}",
       "'thread' is a keyword of Metal"},
      {BODY("asm(\"nop\");"), "'asm' is not supported"},
  };
  CHECK_ALL(cases, problems);
}

static void address_spaces() {
  const Case cases[] = {
      {BODY("float *p = x;"), "k:1:54: error: pointer type must have explicit address space"},
      {BODY("device float *p = x; device const float *q = p;"), nullptr},
      {BODY("float v = x[0]; float w = v * v, *u;"), nullptr},
      {BODY("x[0] = *(float *)x;"), "pointer type must have explicit address space"},
      {BODY("x[0] = *(device float *)x;"), nullptr},
      {"static void f(float &v) { v = 1; }", "reference type must have explicit address space"},
      {"static void f(thread float &v) { v = 1; }", nullptr},
      {"template <typename T> static T f(T *v) { return v[0]; }", "pointer type must have"},
      {"template <typename T> static T f(device T *v, T w) { return v[0] * w; }", nullptr},
      {"static void f(device float **p) {}", "pointer type must have explicit address space"},
      {"static void f(device float *thread *p) {}", nullptr},
      {"static void f(int (&a)[4]) {}", "reference type must have explicit address space"},
      {"static void f(thread int (&a)[4]) {}", nullptr},
      {"struct S { float *p; };", "pointer type must have explicit address space"},
      {"struct S { device float *p; };", nullptr},
      {"int g = 1;", "program scope variable must reside in constant address space"},
      {"static constexpr int G = 1;", "program scope variable must reside in constant address"},
      {"constant int g = 1; constant float t[2] = {1, 2}; struct S { int a; }; S f(int n);",
       nullptr},
      {"struct S { static constexpr int N = 1; };", "static data member must reside in constant"},
      {"struct S { static constexpr constant int N = 1; };", nullptr},
      {BODY("static int n = 0; x[0] = n++;"), "static variables in functions are not supported"},
      {BODY("const int n = 0; x[0] = n;"), nullptr},
  };
  CHECK_ALL(cases, problems);
}

static void functions() {
  const Case cases[] = {
      {"static int f(int n) { return n ? f(n - 1) : 0; }",
       "recursion is not supported in Metal: 'f'"},
      {"static int g(int n);\nstatic int f(int n) { return g(n); }\n"
       "static int g(int n) { return f(n); }",
       "recursion is not supported"},
      {"static int f(int n) { return n; }\nstatic int f(uint n) { return f((int)n); }\n"
       "static int g(int n) { return f(n) + f(n); }",
       nullptr},
      {"template <int (*g)(int)> static int f() { return g(1); }", nullptr},
      {"static int f(int (*g)(int)) { return g(1); }", "pointers to functions are not supported"},
      {"template <typename F> static int f(F g) { return g(1); }", nullptr},
      {BODY("auto f = [](int a) { return a; };"), "lambda expressions are not supported"},
      {BODY("auto f = [&] { return 1; };"), "lambda expressions are not supported"},
      {BODY("int a[2] = {1, 2}; x[0] = (a)[1] + (a[0]);"), nullptr},
  };
  CHECK_ALL(cases, problems);
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define KERNEL(parameters) "kernel void k(" parameters ") {}"

static void parameters() {
  const Case cases[] = {
      {KERNEL("device float *x [[buffer(0)]], constant int &n [[buffer(1)]], threadgroup int *s "
              "[[threadgroup(0)]], uint3 g [[threadgroup_position_in_grid]], ushort l "
              "[[thread_index_in_simdgroup]]"),
       nullptr},
      {KERNEL("device float *x, constant int &n, uint i [[thread_position_in_grid]]"), nullptr},
      {KERNEL("device float *x [[buffer(0)]], device float *y [[buffer(0)]]"),
       "attribute index 0 of parameter 'y' is already used"},
      {KERNEL("device float *x [[buffer(31)]]"), "must be between 0 and 30"},
      {KERNEL("device float *x [[buffer]]"), "requires an integer constant"},
      {KERNEL("float *x [[buffer(0)]]"), "pointer type must have explicit address space"},
      {KERNEL("float x [[buffer(0)]]"), "must be a pointer or a reference"},
      {KERNEL("int n"), "invalid type 'int' for parameter 'n'"},
      {KERNEL("threadgroup int *s [[threadgroup(1)]]"), "'threadgroup(0)' only"},
      {KERNEL("device int *s [[threadgroup(0)]]"), "in the 'threadgroup' address space"},
      {KERNEL("int i [[thread_position_in_grid]]"), "invalid type 'int' of a parameter"},
      {KERNEL("uint2 i [[thread_index_in_simdgroup]]"), "expected 'uint' or 'ushort'"},
      {KERNEL("uint2 i [[thread_position_in_grid]], uint n [[threads_per_grid]]"),
       "either all scalar types or all vector types with the same number of elements"},
      {KERNEL("uint2 i [[thread_position_in_grid]], uint2 n [[threads_per_grid]]"), nullptr},
      {KERNEL("uint i [[thread_position_in_gird]]"), "unknown attribute 'thread_position_in_gird'"},
      {"kernel int k(device int *x) { return 1; }", "kernel must have void return type"},
      {"[[max_total_threads_per_threadgroup(64)]] kernel void k(device int *x) {}", nullptr},
      {"template <typename T> kernel void k(device T *x) {}\n"
       "template [[host_name(\"k_float\")]] kernel void k<float>(device float *x);",
       nullptr},
      {"template [[host_name(\"k\")]] kernel void f<float>(device float *x);",
       "does not refer to a kernel template"},
      {"kernel void k(device int *x) {}\nkernel void k(device int *x) {}", "redefinition of 'k'"},
      {BODY("threadgroup float s[4] = {};"), "cannot have an initializer"},
      {BODY("{ threadgroup float s[4]; s[0] = 1; }"), nullptr},
      {BODY("threadgroup float s[4], t[2][2]; threadgroup float *p = s;"), nullptr},
      {"constant int n [[function_constant(0)]];\n"
       "constant bool has = is_function_constant_defined(n);",
       nullptr},
      {BODY("bool b = is_function_constant_defined(c);"), "the name of a function constant"},
      {BODY(""), nullptr},
      {"kernel void k(device int *x) {", "expected '}'"},
      {"kernel void k(device int *x) {}}", "extraneous closing brace"},
  };
  CHECK_ALL(cases, problems);
}

/* ---- errors of the C++ compiler -------------------------------------------------------------- */

static void messages_of_the_compiler() {
  const Case cases[] = {
      {"#include <metal_stdlib>\n#define TWO 2\nusing namespace metal;\n\n/* a\n comment */\n"
       "kernel void k(device float *x) {\n  x[0] = y;\n}\n",
       "program_source:8:10: error: "},
      {"#include <metal_stdlib>\nkernel void k(device float *x) {\n  x[0] = expm1(1.0f);\n}\n",
       "program_source:3:"},
      {"#include <nothing>\n", "program_source:1:"},
      {"#error a reason\n", "a reason"},
      {"#include <metal_stdlib>\nusing namespace metal;\nkernel void k(constant int &n, device int "
       "*x) {\n  int a[n];\n  x[0] = a[0];\n}\n",
       "program_source:4:"},
      {"using namespace metal;\nkernel void k(device float *x) {\n  x[0] = max(x[0], 0);\n}\n",
       "deleted function"},
      {"using namespace metal;\nkernel void k(device long *x) {\n  x[0] = simd_sum(x[0]);\n}\n",
       "take numbers of 8, 16 or 32 bits"},
      {"kernel void k(constant float &x) {\n  x = 1;\n}\n", "program_source:2:"},
      {"kernel void k(device const float *x) {\n  x[0] = 1;\n}\n", "program_source:2:"},
      {"kernel void k(device float *x) {\n  threadgroup float s[8193];\n  s[0] = x[0];\n}\n",
       "the threadgroup memory of kernel k is larger than 32768 bytes"},
      {"kernel void k(device float *x) {\n  threadgroup float s[8192];\n  s[0] = x[0];\n}\n",
       nullptr},
      {"#pragma unroll\nkernel void k(device float *x) { x[0] = __METAL_VERSION__ + M_PI_F; }\n",
       nullptr},
  };
  CHECK_ALL(cases, compile);
}

int main(void) {
  setenv("LUTRA_EMULATE", "mps", 1);
  RUN(words_and_types);
  RUN(address_spaces);
  RUN(functions);
  RUN(parameters);
  RUN(messages_of_the_compiler);
  return check_end();
}
