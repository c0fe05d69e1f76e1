-- lt.mps.compile_shader: libraries of kernels from source, and what a call refuses.

local devices = require "device_support"
if devices.elsewhere("mps/shader", _ENV, {emulate = {"mps"}, reverse = true}) then return end

local lt = require "lutra"
local metal = require "lutra.internal.kernel.metal"

local fails = devices.fails
local HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"

local function compile(source) return lt.mps.compile_shader(HEAD .. source) end

local function filled(dtype, ...)
  return lt.tensor({...}, {device = "mps", dtype = dtype})
end

describe("a library", function()
  local lib = compile [==[
    kernel void scale(device float *y, device const float *x, constant float &a,
                      uint i [[thread_position_in_grid]]) {
      y[i] = a * x[i];
    }
    kernel void grid(device int *y, uint2 at [[thread_position_in_grid]],
                     uint2 n [[threads_per_grid]], uint2 group [[threadgroup_position_in_grid]]) {
      y[at.y * n.x + at.x] = group.y * 100 + group.x;
    }]==]

  it("has the kernels of its source", function()
    local names = {}
    for name in pairs(lib) do names[#names + 1] = name end
    assert.same({"grid", "scale"}, names)
    assert.equal("ShaderLibrary(grid, scale)", tostring(lib))
    assert.equal("mps kernel scale(device float *y, device const float *x, constant float &a)",
      tostring(lib.scale))
    assert.is_true(lib.scale == lib.scale)
    fails({'mps.compile_shader: expected one of grid, scale, got "scal"',
      'did you mean "scale"?'}, function() return lib.scal end)
    fails("cannot set", function() lib.other = 1 end)
  end)

  it("computes with a thread for each element of the first tensor", function()
    local x = lt.arange(1000, {device = "mps", dtype = "float32"})
    local y = lt.zeros_like(x)
    lib.scale(y, x, 2.5)
    assert.is_true(lt.equal((x * 2.5):cpu(), y:cpu()))
    lib.scale(y, x, 3)
    assert.is_true(lt.equal((x * 3):cpu(), y:cpu()))
    lib.scale(lt.zeros(0, {device = "mps"}), x, 3) -- nothing to do
  end)

  it("takes sizes", function()
    local y = lt.full({1000}, -1.0, {device = "mps"})
    lib.scale(y, y, 2, {threads = 10})
    assert.same({10 * -2 - 990}, {y:cpu():sum():item()})
    local m = lt.zeros{4, 6, device = "mps", dtype = "int32"}
    lib.grid(m, {threads = {6, 4}, group_size = {4, 2}})
    assert.same({{0, 0, 0, 0, 1, 1}, {0, 0, 0, 0, 1, 1}, {100, 100, 100, 100, 101, 101},
      {100, 100, 100, 100, 101, 101}}, m:totable())
    lib.grid(m, {threads = {6, 4}, group_size = 1})
    assert.same({300, 301, 302, 303, 304, 305}, m[4]:totable())
  end)

  it("says what the device allows", function()
    assert.equal(32, lib.scale.thread_execution_width)
    assert.is_true(lib.scale.max_threads_per_threadgroup >= 32)
    assert.equal(0, lib.scale.static_thread_group_memory_length)
    local y, most = lt.zeros(2, {device = "mps"}), lib.scale.max_threads_per_threadgroup
    fails({"scale: expected ", "for argument 'group_size', got " .. 2 * most}, lib.scale, y, y, 1,
      {group_size = 2 * most})
    fails("for argument 'threads', got -1", lib.scale, y, y, 1, {threads = -1})
  end)

  it("refuses arguments that do not fit the declaration", function()
    local x = lt.ones(6, {device = "mps"})
    local y = lt.zeros(6, {device = "mps"})
    fails("scale: expected 3 arguments (device float *y, device const float *x, constant float "
      .. "&a), got 2", lib.scale, y, x)
    fails({"scale: expected a tensor on \"mps\" for argument 'x' (#2, device const float *), got "
      .. 'one on "cpu"', 'hint: x:to("mps")'}, lib.scale, y, x:cpu(), 1)
    fails({"expected dtype \"float32\" for argument 'x' (#2, device const float *), got \"int64\"",
      'hint: x:to("float32")'}, lib.scale, y, x:long(), 1)
    fails("expected a contiguous tensor for argument 'x'", lib.scale, y,
      lt.ones(3, 2, {device = "mps"}):t(), 1)
    fails("expected a number for argument 'a' (#3, constant float &)", lib.scale, y, x, {1})
    fails("expected a number for argument 'a'", lib.scale, y, x, "1")
    fails('expected threads, group_size and threadgroup_bytes in the last argument, got "grid"',
      lib.scale, y, x, 1, {grid = 5})
    fails("it requires grad", lib.scale, lt.ones(6, {device = "mps", requires_grad = true}), x, 1)
    fails("there is no tensor whose elements could be counted", compile([==[
      kernel void none(constant int &n, uint i [[thread_position_in_grid]]) {}]==]).none, 1)
    assert.is_true(y:eq(0):all():item())
  end)
end)

describe("the arguments of a kernel", function()
  it("are numbers of every type", function()
    for _, row in ipairs {{"char", "int8", -128}, {"uchar", "uint8", 255}, {"short", "int16", -9},
      {"int", "int32", -2147483648}, {"long", "int64", math.mininteger}, {"float", "float32", 0.5},
      {"half", "float16", 0.25}, {"int16_t", "int16", 77}, {"bool", "bool", true}} do
      local type, dtype, value = table.unpack(row)
      local lib = compile(([==[
        kernel void set(device %s *y, constant %s &v, uint i [[thread_position_in_grid]]) {
          y[i] = v;
        }]==]):format(type, type))
      local y = lt.zeros{2, device = "mps", dtype = dtype}
      lib.set(y, value)
      assert.same({value, value}, y:totable(), type)
    end
  end)

  it("are checked for the range of their type", function()
    local lib = compile [==[
      kernel void set(device uint *y, constant ushort &a, constant char &b,
                      uint i [[thread_position_in_grid]]) { y[i] = a + b; }]==]
    local y = lt.zeros{1, device = "mps", dtype = "int32"}
    lib.set(y, 65535, -1)
    assert.equal(65534, y[1]:item())
    fails("expected an integer from 0 to 65535 for argument 'a' (#2, constant ushort &), got 65536",
      lib.set, y, 65536, 0)
    fails("for argument 'b'", lib.set, y, 0, 128)
    fails("expected an integer from 0 to 65535 for argument 'a'", lib.set, y, 1.5, 0)
  end)

  it("are lists for vectors and arrays, and strings for structs", function()
    local lib = compile [==[
      struct Args { int n; float f; };
      kernel void blend(device float *y, constant int3 &v, constant float *t, constant Args &args,
                        uint i [[thread_position_in_grid]]) {
        y[i] = (int)i < args.n ? v.x * 100 + v.y * 10 + v.z + t[i] : args.f;
      }]==]
    local y = filled("float32", 0, 0, 0)
    lib.blend(y, {1, 2, 3}, {0.5, 0.25}, string.pack("<i4f", 2, -7))
    assert.same({123.5, 123.25, -7}, y:totable())
    lib.blend(y, {1, 2, 3}, filled("float32", 4, 5), string.pack("<i4f", 2, -7))
    assert.same({127, 128, -7}, y:totable())
    fails("expected a list of 3 numbers for argument 'v' (#2, constant int3 &)", lib.blend, y,
      {1, 2}, {1}, "12345678")
    fails("expected a string with its bytes for argument 'args'", lib.blend, y, {1, 2, 3}, {1}, {1})
    fails("expected 1 to 4096 bytes for argument 't'", lib.blend, y, {1, 2, 3}, {}, "12345678")
  end)

  it("follow the numbers of the buffers", function()
    local lib = compile [==[
      kernel void sub(device const float *b [[buffer(2)]], device float *out [[buffer(0)]],
                      uint i [[thread_position_in_grid]], device const float *a [[buffer(1)]]) {
        out[i] = a[i] - b[i];
      }]==]
    local out = filled("float32", 0, 0)
    lib.sub(out, filled("float32", 5, 7), filled("float32", 1, 2))
    assert.same({4, 5}, out:totable())
    fails({'cannot check the parameter "[[buffer(3)]]" of gap', "hint: "}, compile, [==[
      kernel void gap(device float *x [[buffer(3)]]) {}]==])
    fails('cannot check the parameter "texture2d<float> t [[texture(0)]]" of tex', compile,
      "kernel void tex(texture2d<float> t [[texture(0)]]) {}")
  end)

  it("may begin in the middle of memory", function()
    local lib = compile [==[
      kernel void twice(device float *y, uint i [[thread_position_in_grid]]) { y[i] *= 2; }]==]
    local x = filled("float32", 1, 2, 3, 4)
    lib.twice(x[{{2, 3}}])
    assert.same({1, 4, 6, 4}, x:totable())
  end)

  it("include threadgroup memory", function()
    local lib = compile [==[
      kernel void reverse(device int *y, threadgroup int *s [[threadgroup(0)]],
                          uint lane [[thread_index_in_threadgroup]],
                          uint n [[threads_per_threadgroup]], uint at [[thread_position_in_grid]]) {
        s[lane] = y[at];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[at] = s[n - 1 - lane];
      }]==]
    local y = filled("int32", 1, 2, 3, 4, 5, 6)
    lib.reverse(y, {group_size = 3, threadgroup_bytes = 16})
    assert.same({3, 2, 1, 6, 5, 4}, y:totable())
    fails("threadgroup memory", lib.reverse, y, {threadgroup_bytes = 1 << 20})
  end)

  it("need no declaration that can be read", function()
    local lib = compile [==[
      #define ADD(name, T) \
        kernel void name(device T *x, constant T &v, uint i [[thread_position_in_grid]]) { \
          x[i] += v; \
        }
      ADD(add_float, float)
      ADD(add_int, int)
      ADD(add_long, long)]==]
    local x, n, l = filled("float32", 1, 2), filled("int32", 1, 2), filled("int64", 1, 2)
    lib.add_float(x, 0.5)
    lib.add_int(n, 3, {arg_casts = {[2] = "int32"}})
    lib.add_int(n, 3, {arg_casts = "int32"})
    lib.add_long(l, 1 << 40)
    assert.same({{1.5, 2.5}, {7, 8}, {(1 << 40) + 1, (1 << 40) + 2}}, {x:totable(), n:totable(),
      l:totable()})
    assert.equal("mps kernel add_int(...)", tostring(lib.add_int))
    fails("the library has no kernel 'add_half'", function() lib.add_half(x, 1) end)
    fails("expected a type such as \"int32\" for argument 'arg_casts[2]'", lib.add_int, n, 1,
      {arg_casts = {[2] = "int"}})
  end)

  it("are counted as changed", function()
    local lib = compile [==[
      kernel void twice(device float *y, device const float *x,
                        uint i [[thread_position_in_grid]]) { y[i] = 2 * x[i]; }]==]
    local w = lt.ones(3, {device = "mps", requires_grad = true})
    local x, y = lt.ones(3, {device = "mps"}), lt.zeros(3, {device = "mps"})
    local z = w * x
    lib.twice(x, x)
    fails("was changed in place", function() z:backward(lt.ones(3, {device = "mps"})) end)
    local p = w * y
    lib.twice(x, y) -- y is only read
    p:backward(lt.ones(3, {device = "mps"}))
  end)
end)

describe("a source", function()
  it("is shown where the compiler finds errors", function()
    fails({"mps.compile_shader: cannot compile the source\n  line 4: ", "y[i] = missing * 2;",
      "line 5: "}, compile, [==[
kernel void bad(device float *y, uint i [[thread_position_in_grid]]) {
  y[i] = missing * 2;
  float z = ;
}]==])
    fails("expected a kernel in argument 'source', got none\nhint: kernel void name(",
      lt.mps.compile_shader, "int x;")
    fails("expected text without NUL bytes for argument 'source', got one at byte 3",
      lt.mps.compile_shader, "//\0")
    fails("mps.compile_shader: expected a string for argument 'source'", lt.mps.compile_shader, 5)
  end)

  it("is read for its kernels", function()
    local function names(source)
      local list = {}
      for i, kernel in ipairs(metal.kernels(source)) do list[i] = kernel.name end
      return table.concat(list, " ")
    end
    assert.equal("a b c d_half", names [==[
      // kernel void no(device float *x) {}
      #define K(name) \
        kernel void name(device float *x) {}
      kernel void a(device float *x) {}
      [[kernel]] void b(device float *x) {}
      [[max_total_threads_per_threadgroup(256)]]
      kernel void c(device float *x) {}
      template <typename T> kernel void d(device T *x) {}
      template [[host_name("d_half")]] kernel void d<half>(device half *x);]==])
  end)

  it("can be interrupted while it runs", function()
    local result = devices.script(([[
      local lt = require "lutra"
      local lib = lt.mps.compile_shader %q
      local y = lt.zeros{4, device = "mps", dtype = "int32"}
      local stat <close> = assert(io.open "/proc/self/stat")
      os.execute(("(sleep 0.2; kill -INT %%s) &"):format(stat:read "n"))
      lib.forever(y)
      print(select(2, pcall(y.cpu, y)):match "interrupted")
      print(lt.ones{3, device = "mps"}:sum():item())]]):format(HEAD .. [==[
        kernel void forever(device int *y, uint i [[thread_position_in_grid]]) {
          while (((volatile device int *)y)[0] == 0) {}
          y[i] = 2;
        }]==]))
    assert.same({"interrupted\n3.0\n", 0}, {result.out, result.status}, result.err)
  end)

  it("is traced as an op", function()
    local lib = compile [==[
      kernel void touch(device float *y, uint i [[thread_position_in_grid]]) { y[i] += 1; }]==]
    local y = lt.zeros(3, {device = "mps"})
    local trace = lt.placement.trace(lib.touch, y)
    local found
    for _, e in ipairs(trace.events) do found = found or e.op == "touch" and e.to == "mps" end
    assert.is_true(found)
  end)
end)
