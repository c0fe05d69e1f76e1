--- What the specs of recurrent layers and Transformers share: the waves of
-- tools/golden/recurrent.py, and the comparison of a case's outputs and gradients.

local lt = require "lutra"
local assert = require "luassert"
local support = require "nn_support"
local wide = require "wide_support"

local recurrent = {}

--- Returns a tensor of 0.7 cos(1.3 k + seed), k = 0, 1...
function recurrent.wave(shape, seed)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  local list = {}
  for k = 1, n do list[k] = 0.7 * math.cos(1.3 * (k - 1) + seed) end
  return lt.tensor(list, {dtype = wide.dtype}):reshape(shape)
end

--- Gives every parameter its wave: seeds 1, 2, 3... in their order; converts the module first.
function recurrent.set_parameters(module)
  module:to(wide.dtype)
  local seed = 0
  for p in module:parameters() do
    seed = seed + 1
    p:set_data(recurrent.wave(p.shape, seed))
  end
end

local function weighed(t, seed) return (t * recurrent.wave(t.shape, seed):to(t.device)):sum() end

local function check_gradient(expected, t, what)
  local value = t.grad and weighed(t.grad, 3):item() or 0
  local tolerance = wide.tolerance(1e-10, 2e-4) * math.max(1, math.abs(expected))
  local is_close = math.abs(value - expected) <= tolerance -- false for NaN
  if not is_close then
    error(("%s: %.17g, it should be %.17g"):format(what, value, expected), 2)
  end
end

--- Compares the outputs of a case, and the gradients of the inputs and of the module's parameters.
function recurrent.check(case, module, inputs, outputs)
  assert.equal(#case.outputs, #outputs)
  local loss = 0
  for i, out in ipairs(outputs) do
    support.close(case.outputs[i], out, 1e-12, "output " .. i)
    loss = loss + weighed(out, 9 + i)
  end
  loss:backward()
  assert.equal(#case.inputs, #inputs)
  for i, x in ipairs(inputs) do
    check_gradient(case.inputs[i], x, "gradient of input " .. i)
  end
  local n = 0
  for name, p in module:named_parameters() do
    n = n + 1
    check_gradient(case.parameters[n], p, "gradient of " .. name)
  end
  assert.equal(#case.parameters, n)
end

return recurrent
