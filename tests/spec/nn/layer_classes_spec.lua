-- Every class of layers and losses against PyTorch: outputs, gradients of inputs and parameters.

local lt = require "lutra"
local support = require "nn_support"
local wide = require "wide_support"

local close = support.close
local golden = support.golden "layer_classes"

-- A layer whose output is result `index` of another one.
local function pick(index, layer)
  function layer:forward(...) return (select(index, getmetatable(self).__state.class.forward(self,
    ...))) end
  return layer
end

local environment = {lt = lt, nn = lt.nn, F = lt.F, dtype = wide.dtype, pick = pick}

-- Returns the layer of a case, with its parameters and buffers.
local function layer_of(case)
  local layer = load("return " .. case.layer, case.layer, "t", environment)():to(wide.dtype)
  local state = {}
  for _, entry in ipairs(case.state) do state[entry[1]] = support.tensor(entry[2]) end
  layer:load_state_dict(state, {base = 0})
  return layer
end

-- Returns the inputs of a case; those with an expected gradient require grad.
local function inputs_of(case)
  local list = {n = #case.inputs}
  for i, x in ipairs(case.inputs) do
    local value = x and support.tensor(x) or nil
    list[i] = value
    if case.grads[i] then value:requires_grad_() end
  end
  return list
end

local function probe(out)
  return lt.arange(0, math.max(out:numel(), 1) - 1, {dtype = wide.dtype}):cos():reshape(out.shape)
end

local function check_gradient(expected, tensor, what)
  if expected then close(expected, tensor.grad, 1e-8, what) end
end

describe("classes of layers against PyTorch " .. golden.version, function()
  for number, case in ipairs(golden) do
    it(("case %d: %s"):format(number, case.layer), function()
      local layer, inputs = layer_of(case), inputs_of(case)
      local out = layer(table.unpack(inputs, 1, inputs.n))
      close(case.out, out, 1e-10, "output")
      if out.requires_grad then out:backward(probe(out)) end
      for i, grad in ipairs(case.grads) do
        check_gradient(grad, inputs[i], "gradient of input " .. i)
      end
      local parameters = {}
      for name, p in pairs(layer:state_dict{keep_vars = true, base = 0}) do
        if lt.is_parameter(p) then parameters[name] = p end
      end
      for _, entry in ipairs(case.parameters) do
        check_gradient(entry[2], parameters[entry[1]], "gradient of " .. entry[1])
        parameters[entry[1]] = nil
      end
      assert.is_nil(next(parameters))
      local buffers = {}
      for name, b in layer:named_buffers() do buffers[name] = b end
      for _, entry in ipairs(case.buffers) do
        close(entry[2], buffers[entry[1]], 1e-10, entry[1])
      end
    end)
  end
end)
