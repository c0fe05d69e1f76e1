-- Ops with the trait HOST on a device without a kernel for them: they run on the CPU without
-- permission or warning, and traces count their copies.
local devices = require "device_support"
if devices.elsewhere("placement/host_ops", _ENV, {emulate = {"cuda:2", "mps"}}) then return end

local assert = require "luassert"
local lt = require "lutra"
local device = devices.device()

local function matrix() return lt.tensor({{4.0, 1}, {1, 3}}, {device = device}) end

local function copies(trace)
  local count = 0
  for _, e in ipairs(trace.events) do count = count + (e.kind == "copy" and 1 or 0) end
  return count
end

describe("ops of the host", function()
  it("give results on the device of their input, with gradients", function()
    local x = matrix():requires_grad_()
    local l, v = lt.linalg.eigh(x)
    assert.equal(device, l.device)
    assert.equal(device, v.device)
    l:sum():backward() -- the trace of x
    assert.equal(device, x.grad.device)
    assert.is_true(lt.allclose(x.grad:to "cpu", lt.eye(2), {atol = 1e-5}))
  end)

  it("need no permission, unlike a fallback", function()
    assert.is_false(lt.get_fallback())
    assert.has_no_error(function() lt.linalg.svdvals(matrix()) end)
  end)

  it("make copies that traces count: each input to the CPU, each result back", function()
    local x = matrix()
    assert.equal(3, copies(lt.placement.trace(lt.linalg.eig, x)))
    assert.equal(4, copies(lt.placement.trace(lt.linalg.ldl_factor_ex, x)))
  end)

  it("report errors of the computation", function()
    assert.error_matches(function() lt.inverse(lt.zeros(2, 2, {device = device})) end,
      "cannot invert: the matrix is singular")
  end)
end)
