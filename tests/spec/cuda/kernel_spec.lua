-- lt.cuda.kernel: calls of kernels. What they compute is held against ops and sums; what a call
-- refuses, against the kernel's declaration and the device's limits. What is a kernel's source, and
-- how it is compiled: kernel_source_spec.lua.

local devices = require "device_support"
if devices.elsewhere("cuda/kernel", _ENV, {compiles = true, reverse = true}) then return end

local lt = require "lutra"
local program = require "program_support"
local device = "cuda:0"
local fails = devices.fails

local SCALE = [[
__global__ void scale(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}]]

-- Equal as a whole: a tensor and a list.
local function same(list, tensor)
  local got = tensor:cpu():totable()
  assert.equal(#list, #got)
  for i = 1, #list do assert.equal(list[i], got[i], "element " .. i) end
end

describe("a kernel from source", function()
  local scale = lt.cuda.kernel(SCALE, "scale")

  it("computes on tensors and numbers", function()
    local x = lt.arange(1000, {device = device, dtype = "float32"})
    local y = lt.zeros_like(x)
    scale({4, 256}, y, x, 2, 1000)
    assert.is_true(lt.equal(x * 2, y))
  end)

  it("takes complex tensors as their parts", function()
    local twice = lt.cuda.kernel [[
      __global__ void twice(float2 *z, int n) {
        if (threadIdx.x < n) { z[threadIdx.x].x *= 2; z[threadIdx.x].y *= 3; }
      }]]
    local z = lt.complex(lt.ones({3}, {device = device}), 2)
    twice({1, 32}, lt.view_as_real(z), 3)
    assert.is_true(lt.equal(z, lt.full({3}, lt.complex(2, 6), {device = device})))
    fails({"expected a real tensor for argument 'z' (#1, float2 *), got dtype "
      .. "\"complex64\"\nhint: ",
      "lt.view_as_real(x), to a pointer to float or float2"}, twice, {1, 32}, z, 3)
    fails({"expected an integer for argument 'n' (#2, int), got a complex number"}, twice, {1, 32},
      lt.view_as_real(z), lt.complex(1, 2))
  end)

  it("takes grid and block as lists and by name", function()
    local where = lt.cuda.kernel [[
      __global__ void where(int *out) {
        int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
      }]]
    local out = lt.zeros({2 * 3 * 4 * 12}, {device = device, dtype = "int32"})
    where({grid = {2, 3, 4}, block = {3, 2, 2}}, out)
    local want = {}
    for b = 0, 23 do for t = 0, 11 do want[#want + 1] = b * 1000 + t end end
    same(want, out)
  end)

  it("has shared memory, of the block's own size and fixed, and barriers", function()
    local sum = lt.cuda.kernel([[
      extern __shared__ float scratch[];  // extern __shared__ int not_this[];
      __global__ void block_sum(float *out, const float *x, int n) {
        extern __shared__ __align__(16) float part[];
        __shared__ float half_sum[2];
        int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
        part[t] = i < n ? x[i] : 0.0f;
        __syncthreads();
        for (int s = blockDim.x / 2; s > 1; s /= 2) {
          if (t < s) part[t] += part[t + s];
          __syncthreads();
        }
        if (t < 2) half_sum[t] = scratch[t];
        __syncthreads();
        if (t == 0) out[blockIdx.x] = half_sum[0] + half_sum[1];
      }]], "block_sum")
    local x = lt.arange(1000, {device = device, dtype = "float32"})
    local out = lt.zeros{4, device = device}
    sum({4, 256, 4 * 256}, out, x, 1000)
    -- sums of 1 to 256, 257 to 512, 513 to 768, 769 to 1000
    same({257 * 128, (257 + 512) * 128, (513 + 768) * 128, (769 + 1000) * 116}, out)
  end)

  it("may ask for more than 48 KiB of shared memory", function()
    local last = lt.cuda.kernel [[
      __global__ void last(int *out, int n) {
        extern __shared__ int big[];
        big[n - 1] = 7;
        out[0] = big[n - 1];
      }]]
    local out = lt.zeros({1}, {device = device, dtype = "int32"})
    last({1, 1, 64 << 10}, out, 16 << 10)
    same({7}, out)
  end)

  it("has every type of number and of element", function()
    local all = lt.cuda.kernel [[
      #include <cuda_fp16.h>
      #include <cuda_bf16.h>
      __global__ void all(double *out, signed char *a, const unsigned char *b, short *c, int *d,
                          long long *e, const __half *f, const __nv_bfloat16 *g, bool *h, void *any,
                          double x, unsigned char y, unsigned long long z, bool flag, __half k,
                          size_t n) {
        out[0] = a[0] + b[0] + c[0] + d[0] + e[0] + __half2float(f[0]) + __bfloat162float(g[0]) +
                 h[0] + ((const float *)any)[0] + x + y + z + flag + __half2float(k) + n;
      }]]
    local function one(value, dtype) return lt.tensor({value}, {dtype = dtype, device = device}) end
    local out = one(0, "float64")
    all({1, 1}, out, one(1, "int8"), one(2, "uint8"), one(4, "int16"), one(8, "int32"),
      one(16, "int64"), one(32, "float16"), one(64, "bfloat16"), one(true, "bool"),
      one(128, "float32"), 0.25, 255, 1 << 40, true, 0.5, 1024)
    same({1 + 2 + 4 + 8 + 16 + 32 + 64 + 1 + 128 + 0.25 + 255 + (1 << 40) + 1 + 0.5 + 1024}, out)
  end)

  it("sees a tensor's elements by twos, threes and fours", function()
    local vectors = lt.cuda.kernel [[
      #include <cuda_fp16.h>
      __global__ void vectors(float4 *out, const float4 *x, const int2 *pairs, uchar4 *pixel,
                              const double3 *point, const __half2 *h) {
        float4 v = x[1];
        int2 p = pairs[1];
        out[0] = make_float4(v.x + p.x, v.y + p.y, v.z + point[0].z, v.w + __high2float(h[0]));
        out[1] = *reinterpret_cast<const float4 *>(&x[0]);
        uchar4 c = pixel[0];
        pixel[0] = make_uchar4(c.w, c.z, c.y, c.x);
      }]]
    local function tensor(list, dtype) return lt.tensor(list, {dtype = dtype, device = device}) end
    local out = lt.zeros({2, 4}, {device = device})
    local pixel = tensor({1, 2, 3, 4}, "uint8")
    vectors({1, 1}, out, tensor({1, 2, 3, 4, 5, 6, 7, 8}, "float32"),
      tensor({0, 0, 10, 20}, "int32"), pixel, tensor({100, 200, 300}, "float64"),
      tensor({0, 0.5}, "float16"))
    same({15, 26, 307, 8.5, 1, 2, 3, 4}, out:reshape(-1))
    same({4, 3, 2, 1}, pixel)
  end)

  it("calls the functions that CUDA has without a header", function()
    local f = lt.cuda.kernel [[
      __global__ void f(float *y, const float *x) {
        int i = threadIdx.x;
        y[i] = expf(x[i]) + sin(x[i]) + fmaxf(x[i], 0.5f) + min(i, 1) + abs(x[i]) + rsqrtf(4.0f);
        if (isnan(x[i]) || i > 2) atomicAdd(&y[0], 1.0f);
      }]]
    local x = lt.tensor({-1, 0.25, 2}, {device = device})
    local y = lt.zeros_like(x)
    f({1, 3}, y, x)
    local index = lt.tensor({0, 1, 1}, {device = device})
    local want = x:exp() + x:sin() + x:clamp(0.5) + index + x:abs() + 0.5
    assert.is_true(lt.allclose(want, y, 1e-6, 1e-6))
  end)

  it("runs on the stream that is current, in its order", function()
    local x = lt.ones({1 << 16}, {device = device})
    local y = lt.zeros_like(x)
    lt.cuda.synchronize()
    local stream = lt.cuda.Stream()
    lt.cuda.with_stream(stream, function()
      for _ = 1, 20 do
        scale({256, 256}, y, x, 2, 1 << 16)
        scale({256, 256}, x, y, 1, 1 << 16)
      end
    end)
    stream:synchronize()
    assert.equal(2.0 ^ 20, x[1]:item())
    assert.equal(2.0 ^ 20, x[-1]:item())
  end)

  it("keeps the memory that it uses on another stream until it has ended", function()
    local late = lt.cuda.kernel [[
      __global__ void late(float *y, const float *x) {
        long long start = clock64();
        while (clock64() - start < 100000000);
        y[0] = x[0];
      }]]
    local n = 1 << 20
    local x, y = lt.ones({n}, {device = device}), lt.zeros({1}, {device = device})
    lt.cuda.synchronize()
    local stream = lt.cuda.Stream()
    lt.cuda.with_stream(stream, function() late({1, 1}, y, x) end)
    x = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    local others = {}
    for i = 1, 3 do others[i] = lt.full({n}, 7, {device = device}) end
    stream:synchronize()
    assert.equal(1, y:item())
    assert.equal(7, others[3][1]:item())
  end)

  it("runs where its tensors are", function()
    if lt.cuda.device_count() < 2 then return end
    local x = lt.ones({8}, {device = "cuda:1"})
    local y = lt.zeros_like(x)
    scale({1, 8}, y, x, 3, 8)
    assert.equal("cuda:1", y.device)
    assert.equal(24, y:sum():item())
    fails({"scale", "argument 'x' (#2, ", "cuda:0", 'x:to("cuda:1")'}, scale, {1, 8}, y,
      x:to(device), 3, 8)
  end)

  it("is the same object for the same source, and prints as its declaration", function()
    assert.equal(scale, lt.cuda.kernel(SCALE, "scale"))
    assert.equal("cuda kernel scale(float *y, const float *x, float a, int n)", tostring(scale))
  end)
end)

describe("a kernel and the tape:", function()
  local square = lt.cuda.kernel [[
    __global__ void square(float *y, const float *x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) y[i] = x[i] * x[i];
    }]]

  it("it is the body of an autograd.Function", function()
    local Square = lt.autograd.Function:extend "Square"
    function Square.forward(ctx, x)
      local y = lt.empty_like(x)
      square({1, 32}, y, x, x:numel())
      ctx:save_for_backward(x)
      return y
    end
    function Square.backward(ctx, g) return 2 * g * ctx:saved() end
    local x = lt.tensor({1.0, 2, 3}, {device = device, requires_grad = true})
    local y = Square(x)
    same({1, 4, 9}, y:detach())
    y:sum():backward()
    same({2, 4, 6}, x.grad)
  end)

  it("what it writes counts as changed in place", function()
    local x = lt.ones({4}, {device = device, requires_grad = true})
    local saved = lt.ones({4}, {device = device})
    local y = (x * saved):sum()
    square({1, 4}, saved, saved, 4)
    fails("changed", y.backward, y)
  end)

  it("what requires grad is not written behind the tape's back", function()
    local x = lt.ones({4}, {device = device, requires_grad = true})
    fails({"square", "argument 'y' (#1, ", "requires grad", "no_grad"}, square, {1, 4}, x, x, 4)
    lt.no_grad(square, {1, 4}, x, x, 4)
  end)
end)

describe("a call of a kernel refuses", function()
  local scale = lt.cuda.kernel(SCALE, "scale")
  local x = lt.ones({8}, {device = device})
  local y = lt.zeros_like(x)

  it("grids and blocks that the device has not", function()
    local top = lt.cuda.get_device_properties().max_threads_per_block
    fails({"scale", "argument 'grid'", "1 to 2147483647 in x", "got 0"}, scale, {0, 8}, y, x, 1, 8)
    fails({"scale", "argument 'grid'", "1 to 65535 in y", "got 65536"}, scale, {{1, 65536}, 8}, y,
      x, 1, 8)
    fails({"scale", "argument 'grid'", "in x", "got -1"}, scale, {-1, 8}, y, x, 1, 8)
    fails({"scale", "argument 'block'", tostring(top)}, scale, {1, top + 1}, y, x, 1, 8)
    fails({"scale", "argument 'block'", "got 64 x 32 x 1 = 2048", "hint: use more blocks"}, scale,
      {1, {64, 32}}, y, x, 1, 8)
    fails({"scale", "argument 'block'", "in z", "got 0"}, scale, {1, {8, 1, 0}}, y, x, 1, 8)
    fails({"scale", "argument 'shared_bytes'", "1073741824"}, scale, {1, 8, 1 << 30}, y, x, 1, 8)
    fails({"scale", "argument 'shared_bytes'", "-1"}, scale, {1, 8, -1}, y, x, 1, 8)
    fails({"scale", "argument 'grid'", "got 0.03125", "integer", "//"}, scale, {8 / 256, 8}, y, x,
      1, 8)
    fails({"scale", "argument 'grid'", "in x", "got 2147483648"}, scale, {1 << 31, 8}, y, x, 1, 8)
    fails({"scale", "argument 'shared_bytes'", "0.5", "integer"}, scale, {1, 8, 0.5}, y, x, 1, 8)
    fails({"scale", '"shared"', "shared_bytes"}, scale, {1, 8, shared = 64}, y, x, 1, 8)
    fails({"scale", '"4"', "grid, block"}, scale, {1, 8, 0, 0}, y, x, 1, 8)
    fails({"scale", "argument 'grid'", "list of up to 3"}, scale, {{1, 1, 1, 1}, 8}, y, x, 1, 8)
    fails({"scale", "argument 'block', got no value"}, scale, {1}, y, x, 1, 8)
    fails({"scale", "{grid, block}"}, scale, y, x, 1, 8)
    fails({"scale", "{grid, block}"}, scale)
  end)

  it("another number of arguments", function()
    fails({"scale", "expected 4 arguments", "(float *y, const float *x, float a, int n), got 3"},
      scale,
      {1, 8}, y, x, 1)
    fails({"scale", "expected 4 arguments", "got 5"}, scale, {1, 8}, y, x, 1, 8, 9)
  end)

  it("other dtypes, devices and layouts", function()
    fails({"scale", "argument 'x' (#2, ", 'got "float64"', "const float *", 'x:to("float32")'},
      scale,
      {1, 8}, y, x:double(), 1, 8)
    fails({"scale", "argument 'x' (#2, ", 'on "cpu"', 'x:to("cuda:0")'}, scale, {1, 8}, y, x:cpu(),
      1, 8)
    fails({"scale", "argument 'y' (#1, ", 'on "cpu"', "CUDA"}, scale, {1, 8}, y:cpu(), x:cpu(), 1,
      8)
    fails({"scale", 'on "meta"'}, scale, {1, 8}, y:to "meta", x, 1, 8)
    fails({"scale", "argument 'x' (#2, ", "{4, 2}", "contiguous()"}, scale, {1, 8}, y,
      x:reshape(2, 4):t(), 1, 8)
    fails({"scale", "argument 'x' (#2, ", 'tensor of dtype "float32"'}, scale, {1, 8}, y, 3, 1, 8)
  end)

  it("tensors that are no whole vectors, or lie between two", function()
    local f = lt.cuda.kernel "__global__ void f(float4 *y, const float3 *x) { y[0].x = x[0].z; }"
    local four, three = lt.zeros({4}, {device = device}), lt.ones({3}, {device = device})
    fails({"f", "for argument 'y' (#1, ", "got 6", "float4 *", "a multiple of 4"}, f, {1, 1},
      lt.zeros({6}, {device = device}), three)
    fails({"f", "for argument 'x' (#2, ", "got 4", "const float3 *", "a multiple of 3"}, f, {1, 1},
      four, four)
    fails({"f", "expected memory aligned to 16 bytes for argument 'y' (#1, ",
      "got an address 4 bytes past", "float4 *",
      "x:clone()"}, f, {1, 1}, x:narrow(1, 2, 4), three)
    fails({"f", "argument 'y' (#1, ", 'got "float64"', 'x:to("float32")'}, f, {1, 1},
      four:double(), three)
    fails({"f", "argument 'y' (#1, ", "contiguous()"}, f, {1, 1}, x:reshape(4, 2):t(), three)
    f({1, 1}, x:narrow(1, 5, 4), x:narrow(1, 2, 3)) -- three floats are aligned as one is
    assert.equal(1, x[5]:item())
    f({1, 1}, four:clone(), three)
    local empty = lt.cuda.kernel "__global__ void empty(float4 *y) {}"
    empty({1, 1}, lt.zeros({0}, {device = device}))
  end)

  it("numbers that do not fit", function()
    fails({"scale", "argument 'a' (#3, float)", "a number"}, scale, {1, 8}, y, x, "1", 8)
    fails({"scale", "argument 'a' (#3, float)", 'fits "float32"'}, scale, {1, 8}, y, x, 1e300, 8)
    fails({"scale", "argument 'n' (#4, int)", "an integer"}, scale, {1, 8}, y, x, 1, 0.5)
    fails({"scale", "argument 'n' (#4, int)", 'fits "int32"'}, scale, {1, 8}, y, x, 1, 1 << 31)
    fails({"scale", "argument 'n' (#4, int)", "a tensor of shape", "x:item()"}, scale, {1, 8}, y,
      x, 1, x)
    local u = lt.cuda.kernel "__global__ void u(float *y, unsigned n, bool b, char c) { y[0] = n; }"
    fails({"u", "argument 'n' (#2, ", "-1", "0 to 4294967295"}, u, {1, 1}, y, -1, true, 0)
    fails({"u", "argument 'b' (#3, ", "a boolean"}, u, {1, 1}, y, 1, 1, 0)
    fails({"u", "argument 'c' (#4, ", "200", 'fits "int8"'}, u, {1, 1}, y, 1, true, 200)
    u({1, 1}, y, 4294967295.0, true, -128)
    assert.equal(2.0 ^ 32, y[1]:item())
  end)

  it("and the device stays usable", function() assert.equal(8, x:sum():item()) end)
end)

describe("a kernel that fails", function()
  local function run(text)
    local result = devices.script(([[local lt = require "lutra"
      local x = lt.zeros({1}, {device = "cuda"})
      lt.cuda.synchronize()
      lt.cuda.kernel("__global__ void astray(float *x) { %s }")({1, 1}, x)
      print(pcall(lt.cuda.synchronize))
      print(pcall(lt.cuda.synchronize))]]):format(text))
    assert.equal(0, result.status, result.err)
    return result
  end

  it("ends the device, and is named", function()
    local first, again = run "x[1ll << 40] = 1;".out:match "^(.-)\n(.*)$"
    for _, said in ipairs {first, again} do
      program.has(said, "CUDA error 700")
      program.has(said, "the last synchronization caused it: astray")
    end
  end)

  it("says which assertion failed, and where", function()
    local result = run "assert(x[0] > 5);"
    program.has(result.err, "astray.cu:1: ")
    program.has(result.err, "block: [0,0,0], thread: [0,0,0] Assertion `x[0] > 5` failed.")
    program.has(result.out, "CUDA error 710")
  end)
end)

-- Which thread comes first means nothing to them.
if os.getenv "LUTRA_EMULATE_ORDER" == "reverse" then return end

describe("at the prompt", function()
  local SPIN = [[k = lt.cuda.kernel("__global__ void spin(float *x) { volatile int i = 0; ]]
    .. [[while (true) i++; }"); x = lt.zeros{3, device = "cuda"}]]

  local GO = "io.write('g', 'o'); io.flush(); "

  -- Enters the first cell, and then each of `cells`, which say "go" and go on until Ctrl-C, which
  -- must end them and what runs.
  local function stops(first, cells, environment)
    local function cell(i, text)
      return ("expect [%d]> "):format(i), "send " .. text:gsub("\\", "\\\\") .. "\\r"
    end
    local steps = {cell(1, first)}
    for i, text in ipairs(cells) do
      for _, step in ipairs {cell(i + 1, text)} do steps[#steps + 1] = step end
      table.move({"expect go", "pause 0.3", [[send \x03]], "expect interrupted"}, 1, 4, #steps + 1,
        steps)
    end
    for _, step in ipairs {cell(#cells + 2, "x:add_(1); print(x:sum():item() + 39)")} do
      steps[#steps + 1] = step
    end
    table.move({"expect 42.0", [[send \x04]]}, 1, 2, #steps + 1, steps)
    local home = program.folder()
    local folders = "TERM=dumb HOME=%s XDG_STATE_HOME=%s %s"
    local result = program.terminal(steps, folders:format(home, home, environment or ""),
      "--no-init")
    program.remove(home)
    assert.equal(0, result.status, result.out)
  end

  it("Ctrl-C ends an endless kernel, and the device stays usable", function()
    if os.getenv "LUTRA_TEST_GPU" or not program.has_terminal() then return end
    stops(SPIN, {"k({4, 32}, x); k({1, 1}, x); " .. GO .. "lt.cuda.synchronize()",
      "k({1, 1}, x); " .. GO .. "print(x)"})
    stops(SPIN, {GO .. "k({1, 1}, x)"}, "CUDA_LAUNCH_BLOCKING=1")
  end)

  it("Ctrl-C ends a compiler that does not end", function()
    if os.getenv "LUTRA_TEST_GPU" or not program.has_terminal() then return end
    stops("x = lt.zeros{3, device = 'cuda'}", {GO .. "lt.cuda.kernel("
      .. [["template <int N, int M> struct S { enum { v = S<N - 1, M>::v + S<N - 1, M+1>::v }; };]]
      .. [[ template <int M> struct S<0, M> { enum { v = M }; };]]
      .. [[ __global__ void f(int *x) { x[0] = S<800, 0>::v; }")]]})
  end)

  it("the program ends at once though a kernel does not", function()
    local result = devices.script([[local lt = require "lutra"
      local x = lt.zeros{1, device = "cuda"}
      local s = lt.cuda.kernel "__global__ void s(float *) { volatile int i = 0; while (1) i++; }"
      s({1, 1}, x)
      print "end"]], "timeout 20")
    assert.equal(0, result.status, result.err)
    assert.equal("end\n", result.out)
  end)
end)
