-- lt.elementwise on tensors of several dtypes: of what dtype its kernels compute, beside the ops.

local devices = require "device_support"
if devices.elsewhere("elementwise/elementwise_dtypes", _ENV, {compiles = true}) then return end

local fused = require "lutra.elementwise.fused"
local lt = require "lutra"
local device = "cuda:0"

describe("an elementwise function of mixed dtypes", function()
  local DTYPES = {"float32", "float64", "float16", "bfloat16", "bool", "int8", "uint8", "int16",
    "int32", "int64"}

  -- f and its formula for each pair of dtypes, with dimensions and without.
  local function each_pair(text, formula, check)
    local f = lt.elementwise(text)
    for _, a in ipairs(DTYPES) do
      for _, b in ipairs(DTYPES) do
        for k = 0, 3 do
          local x = lt.ones(k & 1 == 0 and {2} or {}, {device = device, dtype = a})
          local y = lt.ones(k & 2 == 0 and {2} or {}, {device = device, dtype = b})
          check(fused.prepare(f, {x, y}), formula(x, y), ("%s: %s, %s"):format(text, x, y))
        end
      end
    end
  end

  it("gives the dtype that ops give, of every pair", function()
    local kernel = require "lutra.internal.kernel"
    local internal, count = kernel.internal, 0
    kernel.internal = function() return true end -- nothing is compiled
    local ok, message = pcall(function()
      for text, formula in pairs {
        ["x * y + x"] = function(x, y) return x * y + x end,
        ["x > y"] = function(x, y) return x:gt(y) end,
        ["where(x > 0.5, x, 2 * y)"] = function(x, y) return lt.where(x:gt(0.5), x, 2 * y) end,
        ["max(x, 3) / y"] = function(x, y) return lt.maximum(x, 3) / y end,
      } do
        each_pair(text, formula, function(job, want, label)
          if job then assert.equal(want.dtype, job.plan.out.dtype, label) end
          count = count + (job and 1 or 0)
        end)
      end
    end)
    kernel.internal = internal
    if not ok then error(message, 0) end
    assert.is_true(count > 600, count) -- of 1600; 400 of the others have no floats
  end)

  it("is one kernel with the values and gradients of ops", function()
    local function tensor(x, dtype) return lt.tensor(x, {dtype = dtype, device = device}) end
    local x = tensor({0.1, -2.7, 3e38, 1.5}, "float32"):requires_grad_()
    local f = lt.elementwise "x * y + where(x > y, y - x, x)"
    for _, y in ipairs {
      tensor({16777217, -3, 2, 0}, "int64"), tensor({255, 1, 0, 3}, "uint8"),
      tensor({0.1, 65504, -0.5, 6e-8}, "float16"), tensor({0.1, 1e300, -1e-300, 3}, "float64"),
      tensor(0.1, "float64"), tensor(7, "int32"),
    } do
      local inputs = {x, y.dtype:find "^f" and y:requires_grad_() or nil}
      local got, want = f(x, y), x * y + lt.where(x:gt(y), y - x, x)
      assert.is_true(tostring(got):find("ElementwiseBackward", 1, true) ~= nil, y.dtype)
      assert.equal(want.dtype, got.dtype)
      local tolerance = os.getenv "LUTRA_TEST_GPU" and 1e-6 or 0 -- a GPU adds products unrounded
      assert.is_true(lt.allclose(want, got, tolerance, 0, true), y.dtype)
      local slopes = lt.autograd.grad(got:sum(), inputs)
      for i, slope in ipairs(lt.autograd.grad(want:sum(), inputs)) do
        assert.equal(inputs[i].dtype, slopes[i].dtype)
        assert.is_true(lt.allclose(slope, slopes[i], 1e-3, 1e-6, true), y.dtype)
      end
    end
  end)
end)
