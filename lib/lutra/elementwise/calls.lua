--- The functions that an elementwise expression can call.
--
-- These are the ops with a formula in the op table, and the composite ops of them, except those
-- with an operator: x + y, not add(x, y).

local core = require "lutra.core"
local operators = require "lutra.elementwise.operators"

local calls = {}

local ALIAS, SPELLED = {}, {} -- between the words of expressions and ops
local function alias(word, op) ALIAS[word], SPELLED[op] = op, word end
alias("max", "maximum") -- of two operands: lt.max(x) is a reduction
alias("min", "minimum")

local TENSORS = {Tensor = true, Operand = true}
local NUMBERS = {Scalar = true, float = true, int = true, bool = true}

local known = {}
local formulas -- by op: its formulas, and the rule for its dtype

--- Returns the formulas of an elementwise op, {rule, float, integer}; nil for any other name.
function calls.formulas(op)
  if not formulas then formulas = select(2, core._elementwise_texts()) end
  return formulas[op]
end

-- Returns the least and the largest number of arguments that are tensors or numbers, counted from
-- the front, and the number of leading tensors.
local function count(params)
  local least, most, tensors = 0, 0, 0
  for i, p in ipairs(params) do
    local fits = TENSORS[p.type] or NUMBERS[p.type]
    if fits and most == i - 1 then most = i end
    if TENSORS[p.type] and most == i then tensors = tensors + 1 end
    if not p.optional then least = i end
  end
  return least, most, tensors
end

local function describe(name)
  local op = ALIAS[name] or name
  if name == "where" then return {op = op, least = 3, most = 3} end
  if operators[op] and not operators[op].by_name then
    return nil, ('write it as the operator "%s"'):format(operators[op].symbol:match "%S+")
  end
  local info = core._op(op)
  if not info or not (core[op] or op:find "^_") then return nil end
  local least, most, tensors = count(info.params)
  if info.kind ~= "elementwise" and info.kind ~= "composite" or least > most or tensors == 0 then
    return nil, ('"%s" is not an elementwise op'):format(name)
  end
  local text = calls.formulas(op)
  return {op = op, least = least, most = most, test = text ~= nil and text.rule == "TEST",
    params = info.params}
end

--- Returns {op, least, most, test, params} of a function: its op, how many arguments it takes, and
-- whether it returns a boolean; nil when there is none, and the reason when it is known.
function calls.find(name)
  if not known[name] then known[name] = table.pack(describe(name)) end
  return known[name][1], known[name][2]
end

local params = {}

--- Returns the parameters of an op.
function calls.params(op)
  params[op] = params[op] or core._op(op).params
  return params[op]
end

local linear = {}

--- Returns the number of leading inputs (0, 1 or 2) in which an op is linear, so that 0 there gives
-- 0.
function calls.linear(op)
  if not linear[op] then
    local traits = core._op(op).traits
    linear[op] = traits.bilinear and 2 or traits.linear and 1 or 0
  end
  return linear[op]
end

--- Runs an op on a list of arguments. A number given for a tensor parameter becomes a tensor of the
-- dtype of the other tensors.
function calls.run(op, list)
  local params_of, like = calls.params(op), nil
  for i = 1, #list do
    if core.is_tensor(list[i]) then like = list[i] end
  end
  for i = 1, #list do
    local param = params_of[i]
    if param and param.type == "Tensor" and type(list[i]) == "number" and like then
      local float = like.dtype:find "float" ~= nil
      list[i] = core.tensor(list[i], float and {dtype = like.dtype} or nil)
    end
  end
  return core._ops[op](table.unpack(list))
end

--- Returns the sorted list of names that can be called, for messages.
function calls.names()
  local list = {"where"}
  for word in pairs(ALIAS) do list[#list + 1] = word end
  for word, operator in pairs(operators) do
    if operator.by_name then list[#list + 1] = word end
  end
  calls.formulas "exp"
  for op in pairs(formulas) do
    if core[op] and not operators[op] and not SPELLED[op] and calls.find(op) then
      list[#list + 1] = op
    end
  end
  table.sort(list)
  return list
end

--- Returns the name of an op in expressions.
function calls.spelled(op) return SPELLED[op] or op end

return calls
