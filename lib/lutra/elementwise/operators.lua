--- The operators of elementwise expressions, by the name of their op.
--
--   symbol, level, n   symbol, precedence (parse.lua), number of operands
--   number             function of numbers with Lua's semantics; true and false count as 1 and 0,
--                      except in logical operators
--   tensor             function of tensors and numbers; nil: the op of the operator's name
--   test               true when the result is a boolean
--   op                 the op that computes it, when that has another name
--   by_name            true when it can also be called by its name

local args = require "lutra.internal.args"

local operators = {}

local function truth(x) return x ~= 0 and x ~= false end

local function digit(x)
  if type(x) == "boolean" then return x and 1 or 0 end
  return x
end

local function logical(op, symbol, level, n, number)
  operators[op] = {symbol = symbol, level = level, n = n, test = true,
    number = function(x, y) return number(truth(x), truth(y)) end}
end
logical("logical_or", "or", 1, 2, function(x, y) return x or y end)
logical("logical_and", "and", 2, 2, function(x, y) return x and y end)
logical("logical_not", "not ", 6, 1, function(x) return not x end)

local function comparison(op, symbol, number)
  operators[op] = {symbol = symbol, level = 3, n = 2, test = true,
    number = function(x, y) return number(digit(x), digit(y)) end}
end
comparison("lt", "<", function(x, y) return x < y end)
comparison("le", "<=", function(x, y) return x <= y end)
comparison("gt", ">", function(x, y) return x > y end)
comparison("ge", ">=", function(x, y) return x >= y end)
comparison("eq", "==", function(x, y) return x == y end)
comparison("ne", "~=", function(x, y) return x ~= y end)

-- `f` applies Lua's operator, which tensors overload.
local function arithmetic(op, symbol, level, n, f)
  operators[op] = {symbol = symbol, level = level, n = n, tensor = f,
    number = function(x, y) return f(digit(x), digit(y)) end}
end
arithmetic("add", "+", 4, 2, function(x, y) return x + y end)
arithmetic("sub", "-", 4, 2, function(x, y) return x - y end)
arithmetic("mul", "*", 5, 2, function(x, y) return x * y end)
arithmetic("div", "/", 5, 2, function(x, y) return x / y end)
operators.div.op = "_true_divide"
arithmetic("neg", "-", 6, 1, function(x) return -x end)
arithmetic("pow", "^", 7, 2, function(x, y) return x ^ y end)
operators.pow.by_name = true

local function division(op, symbol, f)
  arithmetic(op, symbol, 5, 2, f)
  operators[op].number = function(x, y)
    x, y = digit(x), digit(y)
    args.check(y ~= 0 or math.type(y) == "float" or math.type(x) == "float",
      "elementwise: cannot compute %s %s %s: integers cannot be divided by 0", x, symbol, y)
    return f(x, y)
  end
end
division("floor_divide", "//", function(x, y) return x // y end)
division("remainder", "%", function(x, y) return x % y end)

return operators
