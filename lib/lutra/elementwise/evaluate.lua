--- Evaluation of an expression by a sequence of ops: for every device and dtype, and recorded by
-- autograd.
--
-- On tensors of the recording device this produces the program that one pass computes
-- (program.lua).

local core = require "lutra.core"
local calls = require "lutra.elementwise.calls"
local operators = require "lutra.elementwise.operators"

local evaluate = {}

-- Ops on numbers alone are computed in float64 or int64.
local FLOATS = {FLOAT = true, FLOATING = true}
local function of_numbers(op, list)
  local text, float = calls.formulas(op), false
  for i = 1, #list do float = float or math.type(list[i]) == "float" end
  float = float or not text or FLOATS[text.rule]
  for i = 1, #list do
    local x = list[i]
    if type(x) == "boolean" then x = x and 1 or 0 end
    list[i] = core.tensor(x, {dtype = float and "float64" or "int64"})
  end
  -- arguments for number parameters are passed as numbers
  local info = calls.find(op)
  for i, p in ipairs(info and info.params or {}) do
    if list[i] and p.type ~= "Tensor" and p.type ~= "Operand" then list[i] = list[i]:item() end
  end
  return core._ops[op](table.unpack(list)):item()
end

-- Returns a condition as a bool tensor.
local function as_test(c)
  if type(c) == "boolean" then return core.tensor(c) end
  return c.dtype == "bool" and c or core.ne(c, 0)
end

local function choose(c, x, y)
  if type(c) == "number" then c = c ~= 0 end
  if type(c) == "boolean" and not (core.is_tensor(x) or core.is_tensor(y)) then
    if c then return x end
    return y
  end
  return core.where(as_test(c), x, y)
end

local function any_tensor(list)
  for i = 1, #list do
    if core.is_tensor(list[i]) then return true end
  end
  return false
end

-- Calls the op `f` with a list of tensors, numbers and booleans.
local function call(f, list)
  if f == "where" then return choose(list[1], list[2], list[3]) end
  local operator = operators[f]
  if not any_tensor(list) then
    if operator then return operator.number(list[1], list[2]) end
    return of_numbers(f, list)
  end
  for i = 1, #list do
    if type(list[i]) == "boolean" then list[i] = core.tensor(list[i]) end
  end
  if operator and operator.tensor then return operator.tensor(list[1], list[2]) end
  return calls.run(f, list)
end

-- Returns the function for a node whose operands are tensors, and numbers beside them; nil when
-- the operands must be checked first.
local function quick_of(node)
  local operator = operators[node.f]
  if operator then return operator.tensor or core._ops[node.f] end
  return #node == 1 and core._ops[node.f] or nil
end

-- Returns the steps of an expression: {f, value, position, quick, operands..., done}. `done` lists
-- the results that no later step uses, so that their memory can be reused.
local function make_steps(self)
  local steps, at, position, last = {}, {}, {}, {}
  for i, name in ipairs(self.names) do position[name] = i end
  for i, node in ipairs(self._order) do
    at[node] = i
    local step = {f = node.f, value = node.value, position = position[node.name], done = {}}
    step.quick = quick_of(node)
    for k, part in ipairs(node) do
      step[k] = at[part]
      last[at[part]] = i
    end
    steps[i] = step
  end
  for result, i in pairs(last) do table.insert(steps[i].done, result) end
  return steps
end

--- Returns the value of an expression for a list of arguments.
function evaluate.run(self, values)
  self._steps = self._steps or make_steps(self)
  local results = {}
  for i, step in ipairs(self._steps) do
    if step.position then
      results[i] = values[step.position]
    elseif step.f == "number" then
      results[i] = step.value
    else
      local x, y = results[step[1]], results[step[2]]
      local kind, other = type(x), type(y)
      if step.quick and kind ~= "boolean" and other ~= "boolean"
        and (kind == "userdata" or other == "userdata") then
        if step[2] then results[i] = step.quick(x, y) else results[i] = step.quick(x) end
      else
        local list = {}
        for k = 1, #step do list[k] = results[step[k]] end
        results[i] = call(step.f, list)
      end
      for k = 1, #step.done do results[step.done[k]] = nil end
    end
  end
  local result = results[#self._steps]
  return self._root.f == "name" and core.is_tensor(result) and result:clone() or result
end

--- Computes the outputs of a program (program.lua) from its inputs by run(op, list), by default
-- calls.run.
function evaluate.replay(program, inputs, run)
  run = run or calls.run
  local values = table.move(inputs, 1, #program.inputs, 1, {})
  local function get(x)
    if x.value then return values[x.value] end
    return x.number
  end
  for _, step in ipairs(program) do
    local list = {}
    for k = 1, #step do list[k] = get(step[k]) end
    if step.op then
      local extra = #calls.params(step.op) - #step
      if extra > 0 then list[#step + 1] = step.a end
      if extra > 1 then list[#step + 2] = step.b end
      values[#values + 1] = run(step.op, list)
    else
      values[#values + 1] = list[1]:to(step.result)
    end
  end
  local out = {}
  for i, x in ipairs(program.outputs) do out[i] = get(x) end
  return out
end

return evaluate
