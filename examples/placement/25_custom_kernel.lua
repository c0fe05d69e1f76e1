-- Custom kernels: write your own function that runs on the device.
--
--   lutra [--emulate cuda:2] examples/placement/25_custom_kernel.lua
--
-- An op runs as a kernel: a small function that runs on the device once for each element, in
-- thousands of threads. `y = x * x + 7 * x` is three ops, which read and write all elements three
-- times; this takes longer than the computation. One kernel reads and writes them once. Write it in
-- one line, or in CUDA C++.
--
-- test:

local lt = require "lutra"

local n = 10000
local device = lt.best_device()
local x = lt.linspace(-2, 2, n, {device = device})

-- 1. One line. lt.elementwise creates a function of tensors from an expression, for every device.
-- On a CUDA device it is one kernel.
local f = lt.elementwise "x * x + 7 * x"
print("from an expression: " .. tostring(f))
assert(lt.allclose(f(x), x * x + 7 * x))

-- Its gradient is derived from the expression and is an elementwise function, too.
print("its derivative: " .. f:derivative("x").expression)
local leaf = x:detach():requires_grad_()
f(leaf):sum():backward()
assert(lt.allclose(leaf.grad, 2 * x + 7))

print("\nthe source of its kernel:\n" .. f:source("float32"))

if not lt.cuda.is_available() then
  print "skipped: a kernel in CUDA C++ needs a CUDA device (--emulate cuda:2)"
  print "ok: an expression became a function with a gradient"
  return
end

-- 2. CUDA C++. `__global__` marks a kernel: a function that every thread of a grid runs. A grid
-- consists of blocks, a block of threads; each thread computes its index from its block and thread.
local source = [[
__global__ void square_plus(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * x[i] + a * x[i];
}
__global__ void square_plus_slope(float *dx, const float *dy, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dx[i] = dy[i] * (2 * x[i] + a);
}]]
local square_plus = lt.cuda.kernel(source, "square_plus")
local slope = lt.cuda.kernel(source, "square_plus_slope")
print(square_plus)

-- PyTorch: torch.utils.cpp_extension. A kernel is called with {blocks, threads per block}, then its
-- arguments: a tensor for a pointer, a number for a number. Launch at least n threads; the test i <
-- n ends the others.
local threads = 256
local blocks = (n + threads - 1) // threads
local y = lt.empty_like(x)
square_plus({blocks, threads}, y, x, 7, n)
assert(lt.allclose(y, f(x)))

-- Arguments are checked against the declaration.
local ok, why = pcall(square_plus, {blocks, threads}, y, x:cpu(), 7, n)
print("\na CPU tensor:\n  " .. why)
assert(not ok and why:find('on "cpu"', 1, true))
ok, why = pcall(square_plus, {blocks, 4096}, y, x, 7, n)
print("too many threads:\n  " .. why)
assert(not ok and why:find("block", 1, true))
ok, why = pcall(lt.cuda.kernel, (source:gsub("int i", "int j", 1)), "square_plus")
print("a syntax error:\n  " .. why)
assert(not ok and why:find("line 3", 1, true))

-- 3. A gradient. Autograd does not record a kernel, so define its gradient in an autograd Function.
local SquarePlus = lt.autograd.Function:extend "SquarePlus"

function SquarePlus.forward(ctx, input, a)
  local out = lt.empty_like(input)
  square_plus({blocks, threads}, out, input, a, n)
  ctx:save_for_backward(input)
  ctx.a = a
  return out
end

function SquarePlus.backward(ctx, dy)
  local input = ctx:saved()
  local dx = lt.empty_like(input)
  slope({blocks, threads}, dx, dy:contiguous(), input, ctx.a, n)
  return dx
end

leaf = x:detach():requires_grad_()
local squares = SquarePlus(leaf, 7)
squares:sum():backward()
assert(lt.allclose(squares, f(x)) and lt.allclose(leaf.grad, 2 * x + 7))

-- 4. The threads of a block share a small, fast memory. The third number of the launch is its size
-- in bytes per block.
local block_sum = lt.cuda.kernel [[
  __global__ void block_sum(float *sums, const float *x, int n) {
    extern __shared__ float part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    part[t] = i < n ? x[i] : 0.0f;
    __syncthreads();  // all threads of the block have written
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
      if (t < half) part[t] += part[t + half];
      __syncthreads();
    }
    if (t == 0) sums[blockIdx.x] = part[0];
  }]]
local ones = lt.ones({n}, {device = device})
local sums = lt.empty({blocks}, {device = device})
block_sum({blocks, threads, 4 * threads}, sums, ones, n)
assert(sums:sum():item() == n)
print(("\n%d blocks added up %d ones: %g"):format(blocks, n, sums:sum():item()))

print "ok: a kernel is a function for one element, and a launch says how many there are"
