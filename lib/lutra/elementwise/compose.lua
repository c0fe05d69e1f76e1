--- An expression computed by ops, one after the other: on every device, with every dtype, and on
-- the tape.
--
-- Idea: which parts are tensors depends only on which arguments are. So for each such choice the
-- steps are found once: a step is a function, and the places of its operands among the results.

local core = require "lutra.core"
local rows = require "lutra.elementwise.functions"

local compose = {}

-- What a part is: a tensor, a number, or true or false.
local TENSOR, NUMBER, TRUTH = 1, 2, 3

-- A comparison of numbers gives true or false, with which one can calculate as with 1 and 0.
local function as_operand(x, beside_tensor)
  if type(x) ~= "boolean" then return x end
  if beside_tensor then return core.tensor(x) end
  return x and 1 or 0
end

-- The function of a row for operands of these kinds, and the kind of what it gives.
local function choose(row, kinds)
  local any, truth = false, false
  for _, kind in ipairs(kinds) do
    any = any or kind == TENSOR
    truth = truth or kind == TRUTH
  end
  local f = any and row.ops or row.number
  local gives = any and TENSOR or row.test and TRUTH or NUMBER
  if row.n == 3 and not any then
    gives = (kinds[2] == TRUTH or kinds[3] == TRUTH) and TRUTH or NUMBER
  elseif truth and not row.test and row.n < 3 then
    return function(x, y) return f(as_operand(x, any), as_operand(y, any)) end, gives
  end
  return f, gives
end

-- The steps for arguments of which `tensors` (a set of bits by place) are tensors.
local function make_steps(self, tensors)
  local steps, at, kinds, place, last = {}, {}, {}, {}, {}
  for i, name in ipairs(self.names) do place[name] = i end
  for i, node in ipairs(self._order) do
    local step = {place = place[node.name], value = node.value, done = {}}
    at[node] = i
    if node.f == "name" then
      kinds[node] = tensors & (1 << step.place) ~= 0 and TENSOR or NUMBER
    elseif node.f == "number" then
      kinds[node] = NUMBER
    else
      local own = {}
      for k, part in ipairs(node) do own[k], step[k], last[at[part]] = kinds[part], at[part], i end
      step.f, kinds[node] = choose(rows[node.f], own)
    end
    steps[i] = step
  end
  for result, i in pairs(last) do table.insert(steps[i].done, result) end
  return steps
end

local function steps_for(self, values)
  local tensors = 0
  for i = 1, #self.names do
    if core.is_tensor(values[i]) then tensors = tensors | 1 << i end
  end
  local steps = self._steps[tensors]
  if not steps then
    steps = make_steps(self, tensors)
    self._steps[tensors] = steps
  end
  return steps
end

local function result_of(step, results, values)
  if step.f then return step.f(results[step[1]], results[step[2]], results[step[3]]) end
  if step.place then return values[step.place] end
  return step.value
end

--- The value of an expression, `values` being those of its names.
function compose.run(self, values)
  local steps, results = steps_for(self, values), {}
  local count = #steps
  for i = 1, count do
    local step = steps[i]
    results[i] = result_of(step, results, values)
    if step.f then -- the memory of what is needed no more may be used again
      for k = 1, #step.done do results[step.done[k]] = nil end
    end
  end
  local result = results[count]
  return self._root.f == "name" and core.is_tensor(result) and result:clone() or result
end

--- The values of all its nodes, by node.
function compose.trace(self, values)
  local results, by_node = {}, {}
  for i, step in ipairs(steps_for(self, values)) do
    results[i] = result_of(step, results, values)
    by_node[self._order[i]] = results[i]
  end
  return by_node
end

return compose
