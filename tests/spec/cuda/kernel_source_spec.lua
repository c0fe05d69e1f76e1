-- lt.cuda.kernel: a kernel's source. How its declaration is read, what it may include, how it is
-- compiled and kept, and what is said where that fails. NVIDIA's own compiler is asked the same in
-- tests/c/test_nvrtc.c.

local devices = require "device_support"
if devices.elsewhere("cuda/kernel_source", _ENV, {compiles = true}) then return end

local lt = require "lutra"
local program = require "program_support"
local explain = require "lutra.internal.kernel.explain"
local parameters = require "lutra.internal.kernel.parameters"
local device = "cuda:0"
local fails = devices.fails

describe("the declaration of a kernel is read", function()
  local function read(list)
    local found = {}
    local kernel = parameters.kernels("__global__ void f(" .. list .. ") { }")[1]
    for i, p in ipairs(parameters.read(kernel)) do
      found[i] = ("%s:%s%s%s%s"):format(p.name, p.element, p.lanes > 1 and p.lanes or "",
        p.pointer and "*" or "", p.written and "!" or "")
    end
    return table.concat(found, " ")
  end

  it("with every way to write a type", function()
    assert.equal("", read "")
    assert.equal("", read "void")
    assert.equal("x:float32*!", read "float *x")
    assert.equal("x:float32*", read "const float *x")
    assert.equal("x:float32*", read "float const* __restrict__ x")
    assert.equal("x:float32*!", read "float *const x")
    assert.equal("x:float32*!", read "float x[]")
    assert.equal("argument 1:float32*! argument 2:int32", read "float *, int")
    assert.equal("n:uint32 m:uint32 k:int64 l:uint64",
      read "unsigned n, unsigned int m, long long k, unsigned long long int l")
    assert.equal("c:int8 d:uint8 e:int16 s:uint64",
      read "char c, unsigned char d, short int e, size_t s")
    assert.equal("b:bool p:any*!", read "bool b,\n  void *p /* , int no */")
    assert.equal("v:float32*! n:int32 i:int64",
      read "volatile float *v, int n = f(1, 2), \\\n std::int64_t i")
  end)

  it("with CUDA's vector types behind pointers", function()
    assert.equal("x:float324*! y:int322* z:uint84*! h:float162* b:bfloat162*!", read
      "float4 *x, const int2 *__restrict__ y, uchar4 z[], const half2 *h, __nv_bfloat162 *b")
    assert.equal("argument 1:float643*! c:int82*! l:int644* o:float32*!",
      read "double3 *, char2 *c, const longlong4 *l, float1 *o")
  end)

  it("past comments, strings and attributes", function()
    local found = parameters.kernels([[
      // __global__ void a(int *x) {}
      /* __global__ void b(int *x) {} */
      const char *text = "__global__ void c(int *x) {}";
      extern "C" __global__ void __launch_bounds__(256, 2) d(int *x) { char q = '"'; }
      template <class T> __global__ void e(T *x) {}
      static __global__ __attribute__((used)) void f(int *x);
      static __global__ void f(int *x) {}]])
    local names = {}
    for i, k in ipairs(found) do names[i] = k.name .. (k.template and "<>" or "") end
    assert.equal("d e<> f", table.concat(names, " "))
  end)
end)

-- Real texts of the compilers, so that each format is read on every machine.
describe("what a compiler says is explained", function()
  local source = "a\n  b = c;\nd"
  local function said(log) return explain(log, {source = source, name = "k", parameters = {}}) end

  it("by NVRTC", function()
    assert.equal('  line 2: identifier "c" is undefined\n    b = c;\n        ^', said(
      'k.cu(2): error: identifier "c" is undefined\n    b = c;\n        ^\n\n'
      .. '1 error detected in the compilation of "k.cu".\n'))
    program.has(said(
      'k.cu(1): catastrophic error: cannot open source file "x.h"\n  #include <x.h>\n'),
      '  line 1: cannot open source file "x.h"\n    a\n')
    assert.equal('  at the end: expected a "}"\n  line 1: to match this "{"\n    a\n    ^', said(
      'At end of source: error: expected a "}"\nk.cu(1): note #3196-D: to match this "{"\n'
      .. "  a\n  ^\n\n"))
    program.has(said('__nv_name_map(2): error: invalid type conversion\n'
      .. '  #pragma nv_mangled_name static_cast<void (*)()>(&k)\n'), 'no kernel "void k()"')
  end)

  it("by g++ and clang++", function()
    assert.equal("  line 2: 'c' was not declared in this scope\n    b = c;\n        ^", said(
      "k.cu: In function 'void f()':\nk.cu:2:7: error: 'c' was not declared in this scope\n"))
    program.has(said "k.cu:1:10: fatal error: 'x.h' file not found\n1 error generated.\n",
      "  line 1: 'x.h' file not found\n    a\n     ^\n")
    assert.equal("  line 3: 'e' was not declared in this scope\n    d", said(
      "k.cu:3: error: 'e' was not declared in this scope\n"))
  end)

  it("shows three errors at most, and unknown messages unchanged", function()
    local log = ("k.cu:3:1: error: no\n"):rep(5)
    assert.equal(("  line 3: no\n    d\n    ^\n"):rep(3) .. "  and 2 more", said(log))
    assert.equal("  ld: no space left", said "ld: no space left\n")
  end)

  it("with advice on what is of other places than a kernel", function()
    local function advice(words, text, log)
      program.has(explain(log, {source = text, name = "k", parameters = {}}), words)
    end
    advice("not the C++ standard library", "a", "k.cu:1:10: fatal error: iostream: No such file\n")
    advice("CUDA_HOME", "a", 'k.cu(1): catastrophic error: cannot open source file "vector"\n')
    advice("use __syncthreads() for block.sync()", "a",
      "k.cu:1:10: error: cooperative_groups.h: No such file\n")
    advice("write (T *)x", "a", "k.cu:1:5: error: no 'sum(const lt_EmulatedShared<float>&)'\n")
    advice("no tensor cores", "a", "k.cu:1:10: error: mma.h: No such file\n")
    advice("no textures", "a", "k.cu:1:5: error: 'tex2D' was not declared in this scope\n")
    advice("GPU instructions", "a", "k.cu: Assembler messages:\nk.cu:1: Error: no such\n")
    advice("k({grid, block}, arguments...)", "f<<<1, 2>>>(x);", "k.cu:1:5: error: expected\n")
  end)

  it("with a part of a line that is long", function()
    local line = ("x + "):rep(100) .. "y"
    local text = explain("k.cu:1:401: error: no y\n", {source = line, name = "k", parameters = {}})
    local shown, caret = text:match "\n    (%.%.%.[x +]*y)\n( *)^$"
    assert.equal(#caret - 3, #shown)
  end)
end)

describe("a source", function()
  local function value(kernel, ...)
    local out = lt.zeros({1}, {dtype = "int32", device = device})
    kernel({1, 1}, out, ...)
    return out:item()
  end

  it("may have a kernel of any name, one of several, and in a namespace", function()
    local names = {"values", "T", "launch"} -- as the emulation may call things of its own
    local source = {"#include <cuda_runtime.h>"}
    for i, name in ipairs(names) do
      source[i + 1] = ("__global__ void %s(int *x) { x[0] = %d; }"):format(name, i)
    end
    source = table.concat(source, "\n") .. "\nnamespace space { __global__ void in(int *x); }\n"
      .. "__global__ void space::in(int *x) { x[0] = 8; }"
    for i, name in ipairs(names) do assert.equal(i, value(lt.cuda.kernel(source, name)), name) end
    assert.equal(8, value(lt.cuda.kernel(source, "space::in")))
  end)

  it("finds C's headers as NVRTC is given them, and no others", function()
    assert.equal(6, value(lt.cuda.kernel [[
      #include <stdint.h>
      #include <cstdint>
      #include <math.h>
      #include <cfloat>
      #include <limits.h>
      #include <stdio.h>
      #include <cassert>
      static int64_t two(std::int64_t x) { return x + (FLT_MAX < INFINITY) + (INT_MAX > 0); }
      __global__ void f(int32_t *x, uint8_t y = 3) { x[0] = two(y) + (NAN != NAN); }]], 3))
    assert.equal(7, value(lt.cuda.kernel [[
      #include <cuda.h>
      #include <cuda_runtime_api.h>
      #include <device_launch_parameters.h>
      #include <math_constants.h>
      #include <cstdlib>
      #include <cmath>
      #include <string.h>
      __global__ void g(int *x) {
        float list[2] = {CUDART_PI_F, 4};
        memcpy(&list[0], &list[1], sizeof(float));
        x[0] = std::sqrt(list[0]) + std::pow(std::abs(-5.0), 1) * (list[1] < CUDART_INF_F);
      }]]))
    fails({"line 1", "iostream", "C++ standard library"}, lt.cuda.kernel,
      "#include <iostream>\n__global__ void f() {}")
    fails({"line 1", "__half"}, lt.cuda.kernel, "__global__ void f(__half *x) {}")
  end)

  it("gets the compiler's options, and only those that NVRTC has", function()
    local source = "__global__ void n(int *out) { out[0] = N; }"
    assert.equal(16, value(lt.cuda.kernel(source, "n", {"-DN=16", "--use_fast_math"})))
    assert.equal(17, value(lt.cuda.kernel(source, "n", {"--define-macro=N=17"})))
    assert.equal(18, value(lt.cuda.kernel(source, "n", "-DN=18")))
    fails({"cuda.kernel", "'options[1]'", "-DN=16"}, lt.cuda.kernel, source, "n", {"N"})
    fails({"cannot compile n", "unrecognized option --use-fast-math"}, lt.cuda.kernel, source,
      "n", {"-DN=1", "--use-fast-math"})
  end)

  it("is refused where it does not compile, with the place", function()
    local message = fails({"cuda.kernel: cannot compile f\n", "line 3", "nothing",
      "\n    if (x) x[0] = nothing;\n                  ^"}, lt.cuda.kernel,
      "__global__ void f(float *x) {\n\tint i = 3;\n\tif (x) x[0] = nothing;\n}")
    assert.is_falsy(message:find("/tmp", 1, true))
    local gpu = os.getenv "LUTRA_TEST_GPU" -- NVRTC finds the same in other words
    fails({"cannot compile", gpu and "line 3" or "line 2: expected ';'"}, lt.cuda.kernel,
      "__global__ void f(float *x) {\n  x[0] = 1\n}")
    fails({"at the end: expected", "line 1: to match this"}, lt.cuda.kernel,
      "__global__ void f(float *x) {\n  x[0] = 1;\n")
    fails({"cannot compile", gpu and "_Z1gPf" or "g(float*) is used but not defined"},
      lt.cuda.kernel,
      "__device__ void g(float *x);\n__global__ void f(float *x) { g(x); }")
  end)

  it("is refused where there is no kernel of that name, or more than one", function()
    local two = "__global__ void scale(int *x) {}\n__global__ void shift(int *x) {}"
    fails({"cuda.kernel", '"scael"', 'did you mean "scale"?'}, lt.cuda.kernel, two, "scael")
    fails({"cuda.kernel", '"other"', "expected one of scale, shift"}, lt.cuda.kernel, two, "other")
    fails({"cuda.kernel", "expected one of scale, shift for argument 'name', got nil"},
      lt.cuda.kernel, two)
    for _, text in ipairs {"", "// __global__ void f() {}\nvoid g() {}"} do
      fails({"cuda.kernel", "expected a kernel in argument 'source', got none", "__global__"},
        lt.cuda.kernel, text)
    end
    fails({"cuda.kernel", "line 2", "as many ) as ("}, lt.cuda.kernel,
      "\n__global__ void f(int *x {}")
    fails({"cuda.kernel", "expected a string for argument 'source', got 3"}, lt.cuda.kernel, 3)
    fails({"cuda.kernel", "without NUL bytes for the source, got one at byte 25"}, lt.cuda.kernel,
      "__global__ void f() { } \0 x")
    fails({"cuda.kernel", "without NUL bytes for option 1"}, lt.cuda.kernel, two, "scale",
      {"-DN=1\0"})
  end)

  it("is refused where the parameters cannot be checked", function()
    local template = "template <class T>\n__global__ void f(T *x) {}"
    fails({"cuda.kernel", "cannot launch the template f", "float in place",
      'extern "C" __global__'},
      lt.cuda.kernel, template)
    fails({"cuda.kernel", "cannot launch the template f"}, lt.cuda.kernel, template, "f<float>")
    for _, list in ipairs {"float2 x", "float **x", "const float &x", "S s", "void x", "T *x"} do
      fails({"cuda.kernel", list, "cannot check the parameter", "fields of a struct one by one"},
        lt.cuda.kernel,
        ("__global__ void f(%s) {}"):format(list))
    end
  end)

  it("is refused where the compiler sees other parameters than are read", function()
    local words = {'no kernel "void f(int *x)"', "#if", "namespace"}
    fails(words, lt.cuda.kernel, "#if 0\n__global__ void f(int *x) {}\n#else\n"
      .. "__global__ void f(int *x, int n) {}\n#endif", "f")
    fails(words, lt.cuda.kernel, "namespace a { __global__ void f(int *x) {} }")
  end)
end)

describe("compiled code is kept", function()
  -- Prints what a kernel computes; in `folder` caches are looked for.
  local script = [[
    local out = lt.zeros({1}, {device = "cuda"})
    lt.cuda.kernel("__global__ void seven(float *x) { x[0] = 7; }")({1, 1}, out)
    print(out:item())]]

  local function run(folder, more)
    return devices.script('local lt = require "lutra"\n' .. script,
      ("XDG_CACHE_HOME=%s %s"):format(program.quote(folder), more or ""))
  end
  local function files(folder)
    local list = {}
    folder = folder .. "/lutra/kernels"
    for name in io.popen("ls " .. program.quote(folder) .. " 2>/dev/null"):lines() do
      list[#list + 1] = folder .. "/" .. name
    end
    return list
  end

  it("in a file, from which it comes the next time", function()
    local folder = program.folder()
    assert.equal("7.0\n", run(folder).out)
    assert.equal(1, #files(folder))
    -- without a compiler, only what is in the file can be run
    local without = "CXX=/nowhere/c++ PATH=/nowhere"
    assert.equal("7.0\n", run(folder, without).out)
    program.remove(folder)
    if os.getenv "LUTRA_TEST_GPU" then return end -- NVRTC is found without PATH
    local result = run(folder, without)
    assert.equal(1, result.status)
    assert.is_truthy(result.err:find("C++ compiler", 1, true), result.err)
  end)

  it("and compiled again where the file is damaged", function()
    local folder = program.folder()
    run(folder)
    local path = files(folder)[1]
    local file = assert(io.open(path, "rb"))
    local whole = file:read "a"
    file:close()
    local middle = #whole // 2
    for _, bad in ipairs {
      "", "nonsense", whole:sub(1, middle), whole .. "x",
      whole:sub(1, middle) .. string.char(whole:byte(middle + 1) ~ 1) .. whole:sub(middle + 2),
    } do
      file = assert(io.open(path, "wb"))
      file:write(bad)
      file:close()
      assert.equal("7.0\n", run(folder).out)
    end
    assert.equal(1, #files(folder))
    program.remove(folder)
  end)

  it("until there are more than a thousand: then the oldest go, and nothing else", function()
    local folder = program.folder()
    local function shell(text)
      local result = program.shell(("cd %s/lutra/kernels && %s"):format(folder, text))
      assert.equal(0, result.status, result.err)
    end
    os.execute(("mkdir -p %s/lutra/kernels"):format(folder))
    shell "seq -f '%032.0f.bin' 1200 | xargs touch -d 2001-01-01"
    shell(("touch -d 2000-01-01 mine.bin && touch %032d.bin"):format(1))
    assert.equal("7.0\n", run(folder).out)
    assert.equal(751, #files(folder))
    shell(("test -e mine.bin -a -e %032d.bin"):format(1))
    assert.equal("7.0\n", run(folder, "CXX=/nowhere/c++ PATH=/nowhere").out)
    program.remove(folder)
  end)

  it("or not, where no file can be written", function()
    assert.equal("7.0\n", run "/dev/null".out)
    assert.equal("7.0\n", run "relative".out)
  end)
end)
