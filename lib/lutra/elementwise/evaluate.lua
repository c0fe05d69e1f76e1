--- An expression's value, by ops, one after the other: on every device, with every dtype, and on
-- the tape. Of tensors of the recording device it is a record, from which one pass over memory is
-- made (program.lua).

local core = require "lutra.core"
local calls = require "lutra.elementwise.calls"
local operators = require "lutra.elementwise.operators"

local evaluate = {}

-- Ops on numbers alone are computed in the widest types.
local FLOATS = {FLOAT = true, FLOATING = true}
local function of_numbers(op, list)
  local text, float = calls.texts(op), false
  for i = 1, #list do float = float or math.type(list[i]) == "float" end
  float = float or not text or FLOATS[text.rule]
  for i = 1, #list do
    local x = list[i]
    if type(x) == "boolean" then x = x and 1 or 0 end
    list[i] = core.tensor(x, {dtype = float and "float64" or "int64"})
  end
  -- an argument that is a number, not an operand, stays a number
  local info = calls.find(op)
  for i, p in ipairs(info and info.params or {}) do
    if list[i] and p.type ~= "Tensor" and p.type ~= "Operand" then list[i] = list[i]:item() end
  end
  return core._ops[op](table.unpack(list)):item()
end

-- A condition as a bool tensor.
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

-- The op `f` of these operands: tensors, numbers, true and false.
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

-- The function for the usual operands, tensors and numbers beside them; nil where the operands
-- have to be checked first.
local function quick_of(node)
  local operator = operators[node.f]
  if operator then return operator.tensor or core._ops[node.f] end
  return #node == 1 and core._ops[node.f] or nil
end

-- Steps, once for each expression: {f, value, place, operands..., done}: `done` are results that no
-- later step needs.
local function make_steps(self)
  local steps, at, place, last = {}, {}, {}, {}
  for i, name in ipairs(self.names) do place[name] = i end
  for i, node in ipairs(self._order) do
    at[node] = i
    local step = {f = node.f, value = node.value, place = place[node.name], done = {}}
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

--- The value of an expression, `values` being those of its names.
function evaluate.run(self, values)
  self._steps = self._steps or make_steps(self)
  local results = {}
  for i, step in ipairs(self._steps) do
    if step.place then
      results[i] = values[step.place]
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
      for k = 1, #step.done do results[step.done[k]] = nil end -- its memory may be used again
    end
  end
  local result = results[#self._steps]
  return self._root.f == "name" and core.is_tensor(result) and result:clone() or result
end

--- The outputs of a program (program.lua) by ops, from its inputs; run(op, list) runs an op.
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
