--- The functions of elementwise expressions, one row each: all that is known of them derives from
-- here.
--
--   n        how many arguments it takes
--   symbol   how it is written, with `level`: how strongly it binds (parse.lua); else by its name
--   ops      on tensors (with a number beside them)
--   number   on numbers alone
--   code     as an expression of CUDA C++: $1 $2 $3 are the arguments, $f is "f" in float and
--            nothing in double; and $T the type, in
--   helper   a function that the code calls (may be left out)
--   slope    slope(b, g, v, x, y, z): the gradients of x, y, z where v = f(x, y, z) has the
--            gradient g; nil: none. Written in b's functions (nodes.lua).
--   test     gives true or false

local args = require "lutra.internal.args"
local core = require "lutra.core"

local rows = {}

local function op(name)
  return function(...) return core[name](...) end
end

local function truth(x) return x ~= 0 and x ~= false end

-- A condition as a bool tensor.
local function as_test(c)
  if type(c) == "boolean" then return core.tensor(c) end
  return c.dtype == "bool" and c or core.ne(c, 0)
end

-- Operators, the weakest first --------------------------------------------------------

rows["where"] = {
  n = 3, code = "($1 ? $2 : $3)",
  ops = function(c, x, y)
    if type(c) == "number" then c = c ~= 0 end
    if not (core.is_tensor(c) or core.is_tensor(x) or core.is_tensor(y)) then
      return c and x or y
    end
    return core.where(as_test(c), x, y)
  end,
  number = function(c, x, y)
    if truth(c) then return x end
    return y
  end,
  slope = function(b, g, _, c)
    return nil, b:where(c, g, b:number(0)), b:where(c, b:number(0), g)
  end,
}

local function logical(name, symbol, level, code, number)
  rows[name] = {
    n = 2, symbol = symbol, level = level, test = true, code = code,
    ops = function(x, y)
      if type(x) == "boolean" or type(x) == "number" then x = core.tensor(truth(x)) end
      if type(y) == "boolean" or type(y) == "number" then y = core.tensor(truth(y)) end
      return core["logical_" .. name](x, y)
    end,
    number = number,
    slope = function() end,
  }
end
logical("or", "or", 1, "($1 || $2)", function(x, y) return truth(x) or truth(y) end)
logical("and", "and", 2, "($1 && $2)", function(x, y) return truth(x) and truth(y) end)

local function digit(x)
  if type(x) == "boolean" then return x and 1 or 0 end
  return x
end

local function comparison(name, symbol, c_symbol, number)
  rows[name] = {
    n = 2, symbol = symbol, level = 3, test = true, code = "($1 " .. c_symbol .. " $2)",
    ops = function(x, y) return core[name](digit(x), digit(y)) end,
    number = function(x, y) return number(digit(x), digit(y)) end, slope = function() end,
  }
end
comparison("lt", "<", "<", function(x, y) return x < y end)
comparison("le", "<=", "<=", function(x, y) return x <= y end)
comparison("gt", ">", ">", function(x, y) return x > y end)
comparison("ge", ">=", ">=", function(x, y) return x >= y end)
comparison("eq", "==", "==", function(x, y) return x == y end)
comparison("ne", "~=", "!=", function(x, y) return x ~= y end)

local function operator(name, symbol, level, code, f, slope)
  rows[name] = {n = 2, symbol = symbol, level = level, code = code, ops = f, number = f,
    slope = slope}
end
operator("add", "+", 4, "($1 + $2)", function(x, y) return x + y end,
  function(_, g) return g, g end)
operator("sub", "-", 4, "($1 - $2)", function(x, y) return x - y end,
  function(b, g) return g, b:neg(g) end)
operator("mul", "*", 5, "($1 * $2)", function(x, y) return x * y end,
  function(b, g, _, x, y) return b:mul(g, y), b:mul(g, x) end)
operator("div", "/", 5, "($1 / $2)", function(x, y) return x / y end,
  function(b, g, v, _, y) return b:div(g, y), b:neg(b:mul(g, b:div(v, y))) end)

local function none() end

-- Lua's // and %, which are PyTorch's: the quotient is rounded down, the rest has y's sign.
local function division(name, symbol, number, slope, helper)
  operator(name, symbol, 5, ("lt_%s($1, $2)"):format(name), function(x, y)
    args.check(core.is_tensor(x) or core.is_tensor(y) or y ~= 0 or math.type(y) == "float"
      or math.type(x) == "float", "elementwise: %s %s %s: integers cannot be divided by 0", x,
      symbol, y)
    return number(x, y)
  end, slope)
  rows[name].helper = "static __device__ $T lt_" .. name .. helper
end
division("floor_divide", "//", function(x, y) return x // y end, none, [[($T x, $T y) {
  $T rest = fmod$f(x, y), plain = x / y, quotient = (x - rest) / y;
  if (rest != 0 && (rest < 0) != (y < 0)) quotient -= 1;
  $T down = floor$f(quotient);
  if (quotient - down > ($T)0.5) down += 1;
  return y == 0 ? plain : quotient == 0 ? copysign$f(($T)0, plain) : down;
}]])
division("remainder", "%", function(x, y) return x % y end,
  function(b, g, _, x, y) return g, b:neg(b:mul(g, b:call("floor_divide", x, y))) end,
  [[($T x, $T y) {
  $T rest = fmod$f(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}]])

rows["not"] = {
  n = 1, symbol = "not ", level = 6, test = true, code = "(!$1)",
  ops = op "logical_not", number = function(x) return not truth(x) end, slope = function() end,
}
rows.neg = {
  n = 1, symbol = "-", level = 6, code = "(-$1)", slope = function(b, g) return b:neg(g) end,
  ops = function(x) return -x end, number = function(x) return -x end,
}

-- To the power of 0 the slope is 0, not 0 times infinity or NaN.
local function power_base(b, g, x, y)
  if y.f == "number" then
    if y.value == 0 then return nil end
    return b:mul(g, b:mul(y, b:pow(x, b:number(y.value - 1))))
  end
  local safe = b:where(b:call("eq", y, b:number(0)), b:number(1), x)
  return b:mul(g, b:mul(y, b:pow(safe, b:sub(y, b:number(1)))))
end

local function power_exponent(b, g, v, x, y)
  local zero = b:number(0)
  local not_below = b:call("ge", y, zero)
  if x.f == "number" then
    local slope = b:mul(g, b:mul(v, b:number(math.log(x.value))))
    return x.value == 0 and b:where(not_below, zero, slope) or slope
  end
  local flat = b:call("and", b:call("eq", x, zero), not_below)
  return b:mul(g, b:mul(v, b:call("log", b:where(flat, b:number(1), x))))
end

rows.pow = {
  n = 2, symbol = "^", level = 7, code = "pow$f($1, $2)",
  ops = function(x, y) return x ^ y end, number = function(x, y) return x ^ y end,
  slope = function(b, g, v, x, y)
    return power_base(b, g, x, y), y.f ~= "number" and power_exponent(b, g, v, x, y) or nil
  end,
}

-- Functions of two ------------------------------------------------------------------------

-- Equals share the gradient.
local function extremum(name, op_name, code, number, loses)
  rows[name] = {
    n = 2, code = code, ops = op(op_name), number = number,
    slope = function(b, g, _, x, y)
      local shared = b:where(b:call("eq", x, y), b:mul(b:number(0.5), g), g)
      local zero = b:number(0)
      return b:where(b:call(loses, x, y), zero, shared), b:where(b:call(loses, y, x), zero, shared)
    end,
  }
end
extremum("max", "maximum", "($1 > $2 || $1 != $1 ? $1 : $2)", function(x, y)
  return (x > y or x ~= x) and x or y
end, "lt")
extremum("min", "minimum", "($1 < $2 || $1 != $1 ? $1 : $2)", function(x, y)
  return (x < y or x ~= x) and x or y
end, "gt")

rows.atan2 = {
  n = 2, code = "atan2$f($1, $2)", ops = op "atan2",
  number = function(x, y) return math.atan(x, y) end,
  slope = function(b, g, _, x, y)
    local length = b:add(b:call("square", x), b:call("square", y))
    local origin = b:call("eq", length, b:number(0)) -- the slopes are 0 there
    local slope = b:div(g, b:where(origin, b:number(1), length))
    return b:mul(slope, y), b:neg(b:mul(slope, x))
  end,
}

-- Functions of one --------------------------------------------------------------------------

local function unary(name, code, slope, number)
  rows[name] = {
    n = 1, code = code, ops = op(name), slope = slope,
    number = number and function(x) return number(x) end or function(x)
      return core[name](core.tensor(x, {dtype = "float64"})):item()
    end,
  }
end
unary("exp", "exp$f($1)", function(b, g, v) return b:mul(g, v) end, math.exp)
unary("expm1", "expm1$f($1)", function(b, g, v) return b:mul(g, b:add(v, b:number(1))) end)
unary("exp2", "exp2$f($1)", function(b, g, v)
  return b:mul(g, b:mul(v, b:number(math.log(2))))
end)
unary("log", "log$f($1)", function(b, g, _, x) return b:div(g, x) end, math.log)
unary("log2", "log2$f($1)", function(b, g, _, x)
  return b:div(g, b:mul(x, b:number(math.log(2))))
end)
unary("log10", "log10$f($1)", function(b, g, _, x)
  return b:div(g, b:mul(x, b:number(math.log(10))))
end)
unary("log1p", "log1p$f($1)", function(b, g, _, x) return b:div(g, b:add(x, b:number(1))) end)
unary("sqrt", "sqrt$f($1)", function(b, g, v) return b:div(g, b:mul(b:number(2), v)) end, math.sqrt)
unary("rsqrt", "(1 / sqrt$f($1))", function(b, g, v)
  return b:mul(g, b:mul(b:number(-0.5), b:mul(v, b:mul(v, v))))
end)
unary("sin", "sin$f($1)", function(b, g, _, x) return b:mul(g, b:call("cos", x)) end, math.sin)
unary("cos", "cos$f($1)", function(b, g, _, x) return b:neg(b:mul(g, b:call("sin", x))) end,
  math.cos)
unary("tan", "tan$f($1)", function(b, g, v) return b:mul(g, b:add(b:mul(v, v), b:number(1))) end,
  math.tan)
-- The slope of asin; acos has its negative.
local function arc(b, g, x)
  return b:mul(g, b:call("rsqrt", b:sub(b:number(1), b:call("square", x))))
end
unary("asin", "asin$f($1)", function(b, g, _, x) return arc(b, g, x) end)
unary("acos", "acos$f($1)", function(b, g, _, x) return b:neg(arc(b, g, x)) end)
unary("atan", "atan$f($1)", function(b, g, _, x)
  return b:div(g, b:add(b:mul(x, x), b:number(1)))
end)
unary("sinh", "sinh$f($1)", function(b, g, _, x) return b:mul(g, b:call("cosh", x)) end)
unary("cosh", "cosh$f($1)", function(b, g, _, x) return b:mul(g, b:call("sinh", x)) end)
unary("tanh", "tanh$f($1)", function(b, g, v) return b:mul(g, b:sub(b:number(1), b:mul(v, v))) end)
unary("sigmoid", "(1 / (1 + exp$f(-$1)))", function(b, g, v)
  return b:mul(g, b:mul(v, b:sub(b:number(1), v)))
end)
unary("erf", "erf$f($1)", function(b, g, _, x)
  return b:mul(g, b:mul(b:number(2 / math.sqrt(math.pi)), b:call("exp", b:neg(b:mul(x, x)))))
end)
unary("abs", "fabs$f($1)", function(b, g, _, x) return b:mul(g, b:call("sign", x)) end, math.abs)
unary("relu", "($1 <= 0 ? 0 : $1)", function(b, g, v)
  return b:where(b:call("le", v, b:number(0)), b:number(0), g)
end)
unary("square", "($1 * $1)", function(b, g, _, x) return b:mul(g, b:mul(b:number(2), x)) end,
  function(x) return x * x end)
unary("sign", "(($1 > 0) - ($1 < 0))", none)
unary("floor", "floor$f($1)", none)
unary("trunc", "trunc$f($1)", none)
unary("ceil", "ceil$f($1)", none)
unary("round", "rint$f($1)", none)
unary("isnan", "($1 != $1)", none, function(x) return x ~= x end)
rows.isnan.test = true

return rows
