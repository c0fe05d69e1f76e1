--- Elementwise programs: expressions and their gradients, recorded for one kind of arguments.
--
-- An expression is evaluated once on tensors of the recording device, which have a dtype and no
-- memory. The ops that this calls are the program; the ops that autograd calls there are the
-- program of its gradients. Dtypes, gradients and second derivatives are therefore those of the
-- ops.
--
-- A kind of arguments is a list of {dtype, zero_dim} for tensors and numbers for numbers.

local core = require "lutra.core"
local calls = require "lutra.elementwise.calls"
local evaluate = require "lutra.elementwise.evaluate"
local operators = require "lutra.elementwise.operators"

local program = {}

-- Calls f(recorder) while it records and gradients are enabled; an error in f is passed on.
local function record(f)
  local recorder = core._recorder()
  local was = core.set_grad_enabled(true)
  local result = table.pack(pcall(f, recorder))
  recorder:stop()
  core.set_grad_enabled(was)
  if not result[1] then error(result[2], 0) end
  return table.unpack(result, 2, result.n)
end

-- Returns the arguments for a recording, and the tensors among them. A tensor with dimensions has
-- two elements, so that the record shows which are broadcast.
local function make_inputs(recorder, kinds)
  local values, tensors = {}, {}
  for i, kind in ipairs(kinds) do
    if type(kind) == "table" then
      values[i] = recorder:input(kind.dtype, kind.zero_dim and {} or {2})
      tensors[#tensors + 1] = values[i]
    else
      values[i] = kind
    end
  end
  return values, tensors
end

local function finish(recorder, strict, outputs)
  recorder:stop()
  local made = recorder:program(strict, outputs)
  local description = made:describe()
  description.program = made
  return description
end

--- Returns the program of an expression for arguments of these kinds: the result of
-- _program:describe() with the program itself in the field `program`; nil when the value is a
-- number. Raises the error of an op that does not accept such arguments, and an error for an op
-- that is not elementwise.
function program.of(self, kinds)
  return record(function(recorder)
    local values = make_inputs(recorder, kinds)
    local result = evaluate.run(self, values)
    return core.is_tensor(result) and finish(recorder, recorder:mark(), {result}) or nil
  end)
end

-- Branches that are not selected ----------------------------------------------------------- Where
-- a condition is false, a gradient is 0, and 0 times an infinite slope would be NaN. Therefore
-- where(c, g, 0) * y is computed as where(c, g * y, 0).

local function is_zero(x) return type(x) == "number" and x == 0 end

-- Returns the operands condition, x, y of an op that selects; nil for every other op.
local function choice(op, list)
  local rule = calls.formulas(op).rule
  if rule == "SELECT" then return list[1], list[2], list[3] end
  if rule == "MASK" then return list[2], list[3], list[1] end
end

-- Returns the operands {condition, x, y} of an op that selects between a value and 0, or nil.
local function choice_of(op, list)
  local c, x, y = choice(op, list)
  return (is_zero(x) or is_zero(y)) and {c, x, y} or nil
end

-- Returns a function like calls.run that applies linear ops inside the branches of a selection.
local function choosing_run()
  local choices = {} -- by tensor
  local function run(op, list)
    for k = 1, math.min(calls.linear(op), #list) do
      local made = choices[list[k]]
      if made then
        local branches = {}
        for i = 2, 3 do
          local own = table.move(list, 1, #list, 1, {})
          own[k] = made[i]
          branches[i] = is_zero(made[i]) and 0 or run(op, own)
        end
        op, list = "_where", {made[1], branches[2], branches[3]}
        break
      end
    end
    local result = calls.run(op, list)
    if core.is_tensor(result) then choices[result] = choice_of(op, list) end
    return result
  end
  return run
end

-- Returns the same program with each selection moved behind the linear ops that use its result.
local function choose_last(made, values, g)
  local function again(recorder)
    local tensors = {}
    for _, x in ipairs(values) do
      if core.is_tensor(x) then
        tensors[#tensors + 1] = recorder:input(x.dtype, x.shape)
      end
    end
    tensors[#tensors + 1] = recorder:input(g.dtype, g.shape)
    local outputs = evaluate.replay(made, tensors, choosing_run())
    return finish(recorder, recorder:mark(), outputs)
  end
  return record(again)
end

local function requires_grad(tensor) return tensor and tensor.requires_grad end

-- Removes the gradients that are the number 0 everywhere. Returns the others, their positions, and
-- the positions of those removed.
local function without_zeros(recorder, strict, outputs, positions)
  local kept, at, zeros = {}, {}, {}
  for i, out in ipairs(recorder:program(strict, outputs):describe().outputs) do
    if out.value then
      kept[#kept + 1], at[#at + 1] = outputs[i], positions[i]
    else
      zeros[#zeros + 1] = positions[i]
    end
  end
  return kept, at, zeros
end

--- Returns the program of the gradients of an expression. Its inputs are the tensors among the
-- arguments, and the gradient of the value; its outputs are the gradients of the arguments that
-- are true in `required` and have one, whose positions are in the field `positions`; nil when
-- there are none. Also returns the list of positions whose gradient is 0 everywhere, or nil when
-- the value does not depend on these arguments. `chosen`: branches that are not selected are not
-- multiplied, so that they may be infinite.
function program.gradients(self, kinds, required, chosen)
  return record(function(recorder)
    local values = make_inputs(recorder, kinds)
    local inputs, positions, outputs, found = {}, {}, {}, {}
    for i, x in ipairs(values) do
      if required[i] and core.is_tensor(x) and x.dtype:find "float" then
        inputs[#inputs + 1] = x:requires_grad_()
        positions[#positions + 1] = i
      end
    end
    local result = evaluate.run(self, values)
    local strict = recorder:mark()
    if not requires_grad(result) or #inputs == 0 then return nil end
    local given = recorder:input(result.dtype, result.shape)
    local list = core._grad({result}, inputs, {given}, nil, false, true)
    for i = 1, #inputs do
      if list[i] then
        outputs[#outputs + 1] = list[i]
        found[#found + 1] = positions[i]
      end
    end
    local zeros
    outputs, found, zeros = without_zeros(recorder, strict, outputs, found)
    if #outputs == 0 then return nil, zeros end
    local made = finish(recorder, strict, outputs)
    if chosen then made = choose_last(made, values, given) end
    made.positions = found
    return made, zeros
  end)
end

-- Programs as nodes ------------------------------------------------------------------------

local operator_of = {} -- op -> operator
for word, operator in pairs(operators) do operator_of[operator.op or word] = word end

local function node_of(arena, step, list)
  if not step.op then return list[1] end
  local condition, a, b = choice(step.op, list)
  if condition then return arena:where(condition, a, b) end
  local operator, extra = operator_of[step.op], #calls.params(step.op) - #step
  local make = operator and arena[operator]
  if make then -- for example add, which scales y by a number
    local x, y = list[1], list[2]
    if extra > 0 then y = arena:mul(arena:number(step.a), y) end
    return make(arena, x, y)
  end
  if extra > 0 then list[#list + 1] = arena:number(step.a) end
  if extra > 1 then list[#list + 1] = arena:number(step.b) end
  return arena:call(step.op, table.unpack(list))
end

--- Returns the outputs of a program as nodes, for the nodes `inputs`.
function program.nodes(arena, made, inputs)
  local values = table.move(inputs, 1, #made.inputs, 1, {})
  local function get(x)
    return x.value and values[x.value] or arena:number(x.number)
  end
  for _, step in ipairs(made) do
    local list = {}
    for k = 1, #step do list[k] = get(step[k]) end
    values[#values + 1] = node_of(arena, step, list)
  end
  local out = {}
  for i, x in ipairs(made.outputs) do out[i] = get(x) end
  return out
end

return program
