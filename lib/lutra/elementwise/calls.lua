--- What an elementwise expression can call: rows of the op table, by name.
--
-- Every op that has a formula of its own in the table, and every function that is composed of such
-- ops, but those that have an operator: x + y, not add(x, y).

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
local texts -- by op: its formulas, and the rule for its dtype

--- The formulas of an elementwise op: {rule, float, integer}; nil of every other name.
function calls.texts(op)
  if not texts then texts = select(2, core._elementwise_texts()) end
  return texts[op]
end

-- How many arguments may be given: those at the front that are tensors or numbers.
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
  local text = calls.texts(op)
  return {op = op, least = least, most = most, test = text ~= nil and text.rule == "TEST",
    params = info.params}
end

--- {op, least, most, test}: the op of that name, how many arguments it takes, and whether it gives
-- true or false; nil when it cannot be called, and why, where that is known.
function calls.find(name)
  if not known[name] then known[name] = table.pack(describe(name)) end
  return known[name][1], known[name][2]
end

local params = {}

--- The parameters of an op.
function calls.params(op)
  params[op] = params[op] or core._op(op).params
  return params[op]
end

local linear = {}

--- In how many of its first inputs an op is linear, so that a 0 there gives 0: 0, 1 or 2.
function calls.linear(op)
  if not linear[op] then
    local traits = core._op(op).traits
    linear[op] = traits.bilinear and 2 or traits.linear and 1 or 0
  end
  return linear[op]
end

--- The function of an op. A number in the place of a tensor becomes one beside the other tensors.
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

--- The names that can be called, for messages.
function calls.names()
  local list = {"where"}
  for word in pairs(ALIAS) do list[#list + 1] = word end
  for word, operator in pairs(operators) do
    if operator.by_name then list[#list + 1] = word end
  end
  calls.texts "exp"
  for op in pairs(texts) do
    if core[op] and not operators[op] and not SPELLED[op] and calls.find(op) then
      list[#list + 1] = op
    end
  end
  table.sort(list)
  return list
end

--- An op as it is written in an expression.
function calls.spelled(op) return SPELLED[op] or op end

return calls
