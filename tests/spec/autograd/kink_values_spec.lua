-- Gradients where a function has no derivative, and where its formula meets 0 / 0, inf - inf or
-- NaN: PyTorch's, case by case.
local lt = require "lutra"
local cases = require "golden_support".cases "kinks"

local TOLERANCE = {float64 = 1e-12, float32 = 1e-5}

-- The result of a case, and its inputs x, y, z.
local function evaluate(case, dtype)
  local inputs, env = {}, setmetatable({}, {__index = _G})
  for i, data in ipairs(case.inputs) do
    inputs[i] = lt.tensor(data, {dtype = dtype}):requires_grad_()
    env[("xyz"):sub(i, i)] = inputs[i]
  end
  env.lt, env.F = lt, lt.F
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

-- "PyTorch's: x:sign() (0.0 1.0)"
local function title(case)
  local first = case.inputs[1]
  local numbers = type(first) == "table" and type(first[1]) == "number"
  return ("%s: %s (%s)"):format(case.different and "expected" or "PyTorch's", case.code,
    numbers and table.concat(first, " ") or "a matrix or a number")
end

local function check(case, dtype)
  local expected = case[dtype]
  local result, inputs = evaluate(case, dtype)
  if expected.result then
    assert_numbers(result:detach(), expected.result, dtype, dtype .. ", result")
  end
  if expected.gradients == "constant" then return assert.is_false(result.requires_grad) end
  assert.is_true(result.requires_grad)
  for _, create_graph in ipairs{false, true} do
    for _, x in ipairs(inputs) do x.grad = nil end
    result:backward{weights_for(result), retain_graph = true, create_graph = create_graph}
    for i, x in ipairs(inputs) do
      assert_gradient(x.grad, expected.gradients[i], dtype,
        ("%s, gradient %d%s"):format(dtype, i, create_graph and " with create_graph" or ""))
    end
  end
  for _, x in ipairs(inputs) do x.grad = nil end -- it holds a graph that holds x
end

describe("gradients at kinks", function()
  for _, case in ipairs(cases) do
    it("are " .. title(case), function()
      check(case, "float64")
      check(case, "float32")
    end)
  end
end)
