-- Gradients where a function has no derivative, and where its formula meets 0 / 0, inf - inf or
-- NaN: PyTorch's, case by case.
local lt = require "lutra"
local cases = require "tests.golden.kink_values"

local TOLERANCE = {float64 = 1e-12, float32 = 1e-5}

-- The result of a case, and its inputs x, y, z.
local function evaluate(case, dtype)
  local inputs, env = {}, setmetatable({}, {__index = _G})
  for i, data in ipairs(case.inputs) do
    inputs[i] = lt.tensor(data, {dtype = dtype}):requires_grad_()
    env[("xyz"):sub(i, i)] = inputs[i]
  end
  env.lt = lt
  return assert(load("return " .. case.code, "=" .. case.code, "t", env))(), inputs
end

local function weights_for(result)
  local n = result:numel()
  return lt.arange(n, {dtype = result.dtype}):view(result.shape)
end

local function close(got, expected, dtype)
  if expected ~= expected then return got ~= got end
  if got == expected then return true end
  return math.abs(got - expected) <= TOLERANCE[dtype] * math.max(1, math.abs(expected))
end

local function number_of(x)
  if type(x) == "boolean" then return x and 1 or 0 end
  return x
end

local function assert_numbers(tensor, expected, dtype, what)
  local flat = tensor:contiguous():view(-1)
  assert.are.equal(#expected, flat:numel())
  for k, number in ipairs(expected) do
    local got = number_of(flat[k]:item())
    if not close(got, number_of(number), dtype) then
      error(("%s, element %d: expected %.9g, got %.9g"):format(what, k, number, got), 0)
    end
  end
end

local function assert_gradient(grad, expected, dtype, what)
  if not expected then return assert.is_nil(grad, what) end
  if not grad then error(what .. ": there is no gradient", 0) end
  assert_numbers(grad:detach(), expected, dtype, what)
end

describe("gradients at kinks", function()
  for _, case in ipairs(cases) do
    local first = table.concat(lt.is_tensor(case.inputs[1]) and {} or
      type(case.inputs[1]) == "table" and type(case.inputs[1][1]) == "number" and case.inputs[1]
      or {"matrix"}, " ")
    it(("are %s: %s (%s)"):format(case.different and "expected" or "PyTorch's", case.code, first), function()
      for _, dtype in ipairs{"float64", "float32"} do
        local expected = case[dtype].gradients
        local result, inputs = evaluate(case, dtype)
        if case[dtype].result then
          assert_numbers(result:detach(), case[dtype].result, dtype, dtype .. ", result")
        end
        if expected == "constant" then
          assert.is_false(result.requires_grad)
        else
          assert.is_true(result.requires_grad)
          for _, create_graph in ipairs{false, true} do
            for _, x in ipairs(inputs) do x.grad = nil end
            result:backward{weights_for(result), retain_graph = true, create_graph = create_graph}
            for i, x in ipairs(inputs) do
              assert_gradient(x.grad, expected[i], dtype,
                ("%s, gradient %d%s"):format(dtype, i, create_graph and " on the tape" or ""))
            end
          end
        end
      end
    end)
  end
end)
