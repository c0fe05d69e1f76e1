-- Checks the kernels of src/mps as Metal's compiler would, as far as that is possible without it:
-- clang, which that compiler is made of, compiles each of them with address spaces and the
-- declarations in tests/metal/clang_stdlib.h. So a pointer that is converted to another address
-- space is an error, and so is a function that Metal does not have.
--
--     lua5.4 tests/msl.lua [build]
--
-- The rules that need no types are checked by the build (src/mps/emulated/check.cpp).

local build = arg[1] or "build"
local passed, failed, skipped = 0, 0, 0

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "a"
  file:close()
  return text
end

local function output(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read "a"
  return text, pipe:close()
end

-- Returns the newest clang, or nil.
local function find_clang()
  for _, name in ipairs {"clang++-19", "clang++-18", "clang++-17", "clang++-16", "clang++"} do
    if select(2, output("command -v " .. name)) then return name end
  end
end

local VECTORS = {}
for name in ("bool char uchar short ushort int uint long ulong half float"):gmatch "%a+" do
  for n = 2, 4 do VECTORS[name .. n] = true end
end

-- Returns a kernel's text as clang accepts it: variables in threadgroup memory are static, and
-- vectors are made by a function. Constructors for threadgroup memory are left out.
local function for_clang(text)
  text = text:gsub("[%w_]+%s*%(%)%s*threadgroup%s*=%s*default%s*;", "")
  text = text:gsub("([;{}]%s*)(threadgroup%s+[%w_:<>, ]-[%w_]+%s*[%[;,][^*&();]*)",
    "%1static %2")
  return (text:gsub("([%w_]+)(%s*%()", function(word, open)
    if VECTORS[word] then return "lt_make<" .. word .. ">" .. open end
  end))
end

-- Returns the structs of a source that have constructors but none for threadgroup memory.
local function structs_without_constructor(text)
  local found = {}
  for name, body in text:gmatch "struct%s+([%w_]+)[^;{(]*(%b{})" do
    local constructs = "[^%w_~:]" .. name .. "%s*%("
    local in_threadgroup = name .. "%s*%(%)%s*threadgroup%s*=%s*default%s*;"
    if body:find(constructs) and not body:find(in_threadgroup) then found[name] = true end
  end
  return found
end

-- Metal's compiler copies structs between address spaces; clang does not.
local function is_copy(block)
  return block:find("implicit copy", 1, true)
    and (block:find("no viable overloaded '='.*address space")
      or block:find("cannot bind reference in address space", 1, true))
end

-- Returns the name of a struct that clang cannot create in another address space, or nil.
local function struct_in_place(block)
  if not block:find("cannot be used to construct an object in address space", 1, true) then
    return nil
  end
  local name = block:match "initialization of '[^']*' %(aka '(.-)'%)"
    or block:match "initialization of '(.-)'"
  return name and name:gsub("__attribute__%b()", ""):gsub("threadgroup", ""):match "[%w_]+"
end

-- Returns the errors in clang's output that Metal's compiler would report, too.
local function errors_of(said, text)
  local without, errors, block = structs_without_constructor(text), {}, nil
  local function finish()
    local name = block and struct_in_place(block)
    if name and without[name] then
      errors[#errors + 1] = block:match "^[^\n]*"
        .. ("\n  expected '%s() threadgroup = default;' beside the other constructors"):format(name)
    elseif block and not name and not is_copy(block) then
      errors[#errors + 1] = block
    end
    block = nil
  end
  for line in said:gmatch "[^\n]+" do
    if line:find(": error: ", 1, true) or line:find(": fatal error: ", 1, true) then
      finish()
      block = line
    elseif block and line:find(": note: ", 1, true) then
      block = block .. "\n" .. line
    end
  end
  finish()
  return table.concat(errors, "\n")
end

-- Returns clang's messages about a source; "" where there are none.
local function messages(clang, text, name)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write('#include "tests/metal/clang_stdlib.h"\n#line 1 "', name, '"\n', for_clang(text), "\n")
  file:close()
  local said = output(clang .. " -x c++ -std=c++14 -fsyntax-only -nostdinc -w -ferror-limit=0"
    .. " -fno-caret-diagnostics -I. " .. path)
  os.remove(path)
  return errors_of(said, text)
end

-- ---- the checks themselves --------------------------------------------------------------------

local HEAD = "using namespace metal;\nstruct Pair { float a; int b; };\n"
  .. "static inline float first(device const float *x) { return x[0]; }\n"
local REFUSED = {
  {"a threadgroup pointer is passed as a device pointer", "device float *x",
    "threadgroup float s[4]; x[0] = first(s);", "no matching function"},
  {"a pointer without an address space points to device memory", "device float *x",
    "float *p = x; p[0] = 1;", "cannot initialize"},
  {"constant memory is taken for device memory", "constant Pair &p, device float *x",
    "device const Pair *q = &p; x[0] = q->a;", "cannot initialize"},
  {"a function of C's library", "device float *x", "x[0] = expm1(x[0]);", "undeclared"},
  {"a shuffle of 64 bits", "device long *x", "x[0] = simd_shuffle(x[0], (ushort)1);", "ambiguous"},
  {"a maximum of different types", "device float *x", "x[0] = max(x[0], 0);", "ambiguous"},
  {"an atomic operation on plain memory", "device uint *x",
    "atomic_fetch_add_explicit(x, 1u, memory_order_relaxed);", "no matching function"},
  {"a struct with constructors in threadgroup memory", "device float *x",
    "struct Made { float a; Made() thread {} }; threadgroup Made s[4]; x[0] = s[0].a;",
    "threadgroup = default"},
}
local ACCEPTED = {
  {"device memory", "device float *x", "x[0] = first(x);"},
  {"structs are copied between address spaces", "device Pair *x, constant Pair &p",
    "threadgroup Pair s[4]; s[1] = p; Pair q = x[0]; x[1] = s[1]; x[2] = q;"},
  {"vectors", "device float4 *x", "float4 v = float4(1, 2, 3, 4); x[0] = v * x[1].x;"},
  {"atomics", "device atomic_uint *x",
    "threadgroup atomic_uint n; atomic_fetch_add_explicit(&n, 1u, memory_order_relaxed);"
    .. " atomic_fetch_min_explicit(x, 1u, memory_order_relaxed);"},
  {"matrices", "device float *x",
    "threadgroup float s[64]; simdgroup_matrix<float, 8, 8> a = "
    .. "make_filled_simdgroup_matrix<float, 8, 8>(1.0f); simdgroup_load(a, x, 8); "
    .. "simdgroup_multiply_accumulate(a, a, a, a); simdgroup_store(a, s, 8);"},
}

local function report(what, ok, detail)
  if ok then
    passed = passed + 1
  else
    failed = failed + 1
    print(("FAILED %s\n%s"):format(what, detail))
  end
end

local clang = find_clang()
local try = "echo '_Float16 x;' | %s -x c++ -fsyntax-only -"
if clang and not output(try:format(clang)):find "error" then
  for _, case in ipairs(REFUSED) do
    local text = HEAD .. ("kernel void k(%s) {\n%s }"):format(case[2], case[3])
    local said = messages(clang, text, "k")
    report("refuses: " .. case[1], said:find(case[4], 1, true), said)
  end
  for _, case in ipairs(ACCEPTED) do
    local text = HEAD .. ("kernel void k(%s) {\n%s }"):format(case[2], case[3])
    local said = messages(clang, text, "k")
    report("accepts: " .. case[1], said == "", said)
  end
  local files = output("ls " .. build .. "/obj/mps/*.metal")
  for path in files:gmatch "[^\n]+%.metal" do
    local said = messages(clang, (read(path):gsub("#include <metal_stdlib>", "")), path)
    report(path, said == "", said)
  end
else
  skipped = skipped + 1
  print "skipped the address spaces of kernels: there is no clang of version 15 or newer"
end
print(("%d passed, %d failed, %d skipped"):format(passed, failed, skipped))
os.exit(failed == 0)
