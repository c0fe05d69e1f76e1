-- Emulated devices of two vendors in one program: each has its own handlers of signals, which pass
-- on the faults of the other's kernels, whichever was loaded first.

local devices = require "device_support"
local options = {emulate = {"cuda:2,mps"}, compiles = true}
if devices.elsewhere("mps/both_emulations", _ENV, options) then return end

local KERNELS = [====[
local lt = require "lutra"
local function load(device) return lt.zeros({4}, {device = device, dtype = "int32"}) end
local x, y
if FIRST == "mps" then y = load "mps" end
x = load "cuda:1"
if FIRST ~= "mps" then y = load "mps" end

local kernel = lt.cuda.kernel(("__global__ void bad(int *p) { %s }"):format(CUDA), "bad")
local shader = lt.mps.compile_shader(([==[
#include <metal_stdlib>
using namespace metal;
kernel void bad(device atomic_int *p [[buffer(0)]]) { %s }]==]):format(METAL))
local function on_cuda()
  print(select(2, pcall(function()
    kernel({1, 1}, x)
    lt.cuda.synchronize(1)
  end)))
end
local function on_mps()
  print(select(2, pcall(function()
    shader.bad(y)
    lt.mps.synchronize()
  end)))
end
for _, f in ipairs(ORDER == "mps" and {on_mps, on_cuda} or {on_cuda, on_mps}) do f() end
print(lt.ones(3):sum():item())
]====]

-- Runs a kernel on both devices; returns what the program prints.
local function run(loaded, order, cuda, metal, environment)
  local text = ("local CUDA, METAL, ORDER, FIRST = %q, %q, %q, %q\n"):format(cuda, metal, order,
    loaded) .. KERNELS
  local result = devices.script(text, environment)
  assert.equal(0, result.status, result.out .. result.err)
  return result.out
end

local function has(text, piece)
  assert.is_truthy(text:find(piece, 1, true), ("%q is not in:\n%s"):format(piece, text))
end

describe("two emulations in one program", function()
  for _, loaded in ipairs {"cuda", "mps"} do
    for _, order in ipairs {"cuda", "mps"} do
      it(("keep faults apart: %s loaded first, %s fails first"):format(loaded, order), function()
        local out = run(loaded, order, "p[1LL << 33] = 1;",
          "atomic_store_explicit(p + (1L << 33), 1, memory_order_relaxed);")
        has(out, 'cannot use "cuda:1" anymore')
        has(out, "CUDA error 700")
        has(out, 'cannot use "mps" anymore')
        has(out, "page fault in kernel 'bad'")
        has(out, "\n3.0\n")
      end)
    end

    it(("stop endless kernels: %s loaded first"):format(loaded), function()
      local out = run(loaded, "mps", "while (*(volatile int *)p == 0) ;",
        "while (atomic_load_explicit(p, memory_order_relaxed) == 0) ;", "LUTRA_EMULATE_TIMEOUT=0.3")
      has(out, "CUDA error 702")
      has(out, "timeout in kernel 'bad'")
      has(out, "\n3.0\n")
    end)
  end
end)
