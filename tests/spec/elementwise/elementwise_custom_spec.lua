-- lt.elementwise: functions from expressions. Each case stands beside the same formula in ops,
-- whose values and gradients in float64 are expected, on every device and by either way.

local devices = require "device_support"
local fused = require "lutra.elementwise.fused"
local lt = require "lutra"
local fails = devices.fails

-- expression, the same in ops, and where the arguments may come from: (-2, 2), or above 0.
local CASES = {
  {"x * x + y", function(x, y) return x * x + y end},
  {"-x ^ 2 + 3 / y", function(x, y) return -(x ^ 2) + 3 / y end},
  {"2 ^ x - x ^ 3", function(x) return 2 ^ x - x ^ 3 end},
  {"x ^ y", function(x, y) return x ^ y end, positive = true},
  {"(x - y) / (x + 4 * y)", function(x, y) return (x - y) / (x + 4 * y) end, positive = true},
  {"exp(x) * log(y) + log1p(y) - expm1(x)", function(x, y)
    return x:exp() * y:log() + y:log1p() - x:expm1()
  end, positive = true},
  {"sin(x) * cos(y) + tan(x / 4) + atan(y)", function(x, y)
    return x:sin() * y:cos() + (x / 4):tan() + y:atan()
  end},
  {"sqrt(x) + rsqrt(y) + log2(x)", function(x, y) return x:sqrt() + y:rsqrt() + x:log2() end,
    positive = true},
  {"tanh(x) * sigmoid(y) + erf(x * y)", function(x, y)
    return x:tanh() * y:sigmoid() + (x * y):erf()
  end},
  {"abs(x) * sign(y) + relu(x - y) + square(x)", function(x, y)
    return x:abs() * y:sign() + (x - y):relu() + x:square()
  end},
  {"max(x, y) * min(x, 0.5)", function(x, y) return lt.maximum(x, y) * lt.minimum(x, 0.5) end},
  {"where(x > y, x * x, exp(y))", function(x, y) return lt.where(x:gt(y), x * x, y:exp()) end},
  {"x >= 0 and y < 1 ? x : 0.1 * y", function(x, y)
    return lt.where(lt.logical_and(x:ge(0), y:lt(1)), x, 0.1 * y)
  end},
  {"x * (y > 0) + (x == x) * y", function(x, y) return x * y:gt(0) + x:eq(x) * y end},
  {"floor(x * 3) + ceil(y) + round(x) + x * pi", function(x, y)
    return (x * 3):floor() + y:ceil() + x:round() + x * math.pi
  end},
  {"0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * x ** 3)))", function(x)
    return 0.5 * x * (1 + (0.7978845608 * (x + 0.044715 * x ^ 3)):tanh())
  end},
}
local TOLERANCE = {float64 = 1e-12, float32 = 2e-5, float16 = 1e-2, bfloat16 = 8e-2}

local function samples(case, shape, dtype, device, seed)
  lt.manual_seed(seed)
  local x = lt.rand(shape, {dtype = "float64"}) * 4 - 2
  if case.positive then x = x:abs() + 0.25 end
  return x:to(dtype):to(device)
end

local function close(want, got, dtype, label)
  local tolerance = TOLERANCE[dtype]
  assert.equal(dtype, got.dtype, label)
  assert.equal(tostring(want.shape), tostring(got.shape), label)
  if not lt.allclose(want, got:cpu():double(), tolerance, tolerance, true) then
    error(("%s: got\n%s\nwanted\n%s"):format(label, got, want), 0)
  end
end

-- The values of f, or of its formula, with the gradients of the first order, and of the second.
local function everything(f, x, y, second_order)
  x, y = x:detach():requires_grad_(), y and y:detach():requires_grad_() or nil
  local inputs = {x, y}
  local value = y and f(x, y) or f(x)
  local weights = (lt.arange(value:numel(), {dtype = "float64"}) / value:numel() + 0.5)
    :reshape(value.shape):to(value.dtype):to(value.device)
  local first = lt.autograd.grad((value * weights):sum(), inputs,
    {create_graph = true, allow_unused = true})
  local list, total = {value:detach()}, nil
  for i = 1, #inputs do
    list[#list + 1] = first[i] and first[i]:detach() or lt.zeros_like(inputs[i])
    if first[i] and first[i].requires_grad then
      local sum = (first[i] * first[i]):sum()
      total = total and total + sum or sum
    end
  end
  local second = total and second_order
    and lt.autograd.grad(total, inputs, {allow_unused = true}) or {}
  for i = 1, second_order and #inputs or 0 do
    list[#list + 1] = second[i] or lt.zeros_like(inputs[i])
  end
  return list
end

local function compare_case(case, device, dtype, shape_x, shape_y, second_order)
  local f = lt.elementwise(case[1])
  local x = samples(case, shape_x, dtype, device, 1)
  local y = #f.names == 2 and samples(case, shape_y, dtype, device, 2)
  local want = everything(case[2], x:cpu():double(), y and y:cpu():double(), second_order)
  local got = everything(f, x, y, second_order)
  for i = 1, #want do close(want[i], got[i], dtype, ("%s, value %d"):format(case[1], i)) end
end

local function compare(...)
  for _, case in ipairs(CASES) do compare_case(case, ...) end
end

-- Every function beside its op, at corners and kinks: values and slopes are those of the ops, whose
-- own are held against PyTorch's (op_values_spec.lua, gradients_spec.lua).
local CORNERS = {0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, 2, -2, 3, math.huge, -math.huge,
  0 / 0, 1e30, -1e30, 1e-30, 100, -100}
local FUNCTIONS = {
  {"x + y", lt.add}, {"x - y", lt.sub}, {"x * y", lt.mul}, {"x / y", lt.div},
  {"x // y", lt.floor_divide}, {"x % y", lt.remainder}, {"x ^ y", lt.pow},
  {"-x", function(x) return -x end}, {"max(x, y)", lt.maximum}, {"min(x, y)", lt.minimum},
  {"atan2(x, y)", lt.atan2}, {"x ^ 2", function(x) return x ^ 2 end},
  {"x ^ 3", function(x) return x ^ 3 end},
  {"x ^ -1", function(x) return x ^ -1 end}, {"x ^ 0", function(x) return x ^ 0 end},
  {"x ^ 0.5", function(x) return x ^ 0.5 end}, {"2 ^ x", function(x) return 2 ^ x end},
  {"0 ^ x", function(x) return 0 ^ x end}, {"x // 2", function(x) return x // 2 end},
  {"7 % x", function(x) return 7 % x end}, {"x == y ? x : 2 * y", function(x, y)
    return lt.where(x:eq(y), x, 2 * y)
  end},
  {"x ~= y and not (x <= y) ? x : 2 * y", function(x, y)
    return lt.where(lt.logical_and(x:ne(y), lt.logical_not(x:le(y))), x, 2 * y)
  end},
  {"x or y ? x : 2 * y", function(x, y) return lt.where(lt.logical_or(x, y), x, 2 * y) end},
  {"isnan(x) ? x : 2 * y", function(x, y) return lt.where(x:isnan(), x, 2 * y) end},
}
for _, name in ipairs {"abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "exp", "exp2",
  "expm1", "floor", "log", "log10", "log1p", "log2", "relu", "round", "rsqrt", "sigmoid", "sign",
  "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc"} do
  FUNCTIONS[#FUNCTIONS + 1] = {name .. "(x)", function(x) return lt[name](x) end}
end

-- All of them in one: the k-th is chosen. Each kernel takes a tenth of a second to compile.
local function all_functions()
  local list = {}
  for i, row in ipairs(FUNCTIONS) do list[i] = ("(k == %d ? g * (%s) : 0)"):format(i, row[1]) end
  return lt.elementwise(table.concat(list, " + "), {"k", "x", "y", "g"})
end

-- All pairs of corners.
local function pairs_of_corners(device, dtype)
  local n = #CORNERS
  local all = lt.tensor(CORNERS, {dtype = dtype, device = device})
  return all:reshape(n, 1):expand(n, n):reshape(-1), all:reshape(1, n):expand(n, n):reshape(-1)
end

-- Close, with infinities, and NaN where the other has NaN; and with the signs of zeros.
local function alike(want, got, label, any_zero)
  got = got:cpu():double()
  local near = lt.isclose(want, got, 2e-6, 0, true)
  if not any_zero then near:logical_and_(lt.isclose(1 / want, 1 / got, 2e-6, 0, true)) end
  if near:all():item() then return end
  local x, y = pairs_of_corners("cpu", "float64")
  local at = near:logical_not():nonzero()[1]:item()
  error(("%s of x = %g, y = %g is %g, expected %g"):format(label, x[at]:item(), y[at]:item(),
    got[at]:item(), want[at]:item()), 0)
end

-- The value of f and its gradients, with 0 for one that is not there.
local function with_slopes(f, x, y)
  x, y = x:detach():requires_grad_(), y:detach():requires_grad_()
  local value = f(x, y)
  local slopes = value.requires_grad
    and lt.autograd.grad(value:sum(), {x, y}, {allow_unused = true}) or {}
  return {value:detach(), slopes[1] or lt.zeros_like(x), slopes[2] or lt.zeros_like(y)}
end

describe("an elementwise function", function()
  it("has the values and gradients of its formula, from ops", function()
    compare("cpu", "float64", {3, 4}, {3, 4}, true)
    compare("cpu", "float64", {3, 1}, {4}, true)
    compare("cpu", "float32", {3, 4}, {4})
  end)

  it("has values and derived slopes as the ops have, at corners and kinks", function()
    local x, y = pairs_of_corners("cpu", "float64")
    for _, row in ipairs(FUNCTIONS) do
      local f = lt.elementwise(row[1], row[1]:find "y" and {"x", "y"} or {"x"})
      local function both(g) return g.names[2] and g(x, y) or g(x) end
      local want = with_slopes(row[2], x, y)
      alike(want[1], both(f), row[1])
      for i, name in ipairs(f.names) do
        local slope = both(f:derivative(name))
        slope = lt.is_tensor(slope) and slope or lt.full_like(x, slope)
        alike(want[i + 1], slope, ("%s by %s"):format(row[1], name))
      end
    end
  end)

  it("takes its arguments in the order of the expression, or as given", function()
    local x, a = lt.tensor{1.0, 2}, 10
    assert.same({"a", "x", "y"}, lt.elementwise("a * x + y").names)
    assert.same({11, 21}, lt.elementwise "a * x + y"(a, x, 1):totable())
    assert.same({11, 21}, lt.elementwise("a * x + y", {"x", "y", "a"})(x, 1, a):totable())
    assert.equal(5.0, lt.elementwise("pi", {"pi"})(5.0))
    assert.equal(math.pi, lt.elementwise "pi"())
  end)

  it("gives a new tensor, never its argument", function()
    local x = lt.tensor{1.0, 2}
    lt.elementwise "x"(x):add_(1)
    lt.elementwise "+(x)"(x):add_(1)
    assert.same({1, 2}, x:totable())
  end)

  it("calculates with numbers alone, too", function()
    assert.equal(13, lt.elementwise "x * x + y"(3, 4))
    assert.equal(1.5, lt.elementwise "x > 1 ? 1.5 : 2"(2))
    assert.equal(1, lt.elementwise "(x > 1) * (x < 3)"(2))
    assert.equal(true, lt.elementwise "x > 1 and not (x > 3)"(2))
    assert.is_true(math.abs(lt.elementwise "tanh(x) + sigmoid(x)"(0) - 0.5) < 1e-15)
    assert.equal(2.5, lt.elementwise "max(x, min(y, 2.5))"(1, 3))
    assert.equal(1, lt.elementwise "(x < y) + (x < y < 1)"(2, 3))
    assert.is_true(lt.elementwise "isnan(max(x, nan)) and isnan(min(nan, x))"(1))
    assert.is_true(lt.elementwise "x < inf and -inf < x and x == 0x10"(16))
    fails({"7 // 0", "integers cannot be divided"}, lt.elementwise "x // y", 7, 0)
    fails({"7 % 0", "integers cannot be divided"}, lt.elementwise "x % y", 7, 0)
  end)

  it("divides integers as Lua does", function()
    local x = lt.arange(-7, 7)
    for _, y in ipairs {-3, -2, 2, 3} do
      local quotient, rest = lt.elementwise "x // y"(x, y), lt.elementwise "x % y"(x, y)
      assert.equal("int64", quotient.dtype)
      for i = 1, 15 do
        assert.equal((i - 8) // y, quotient[i]:item())
        assert.equal((i - 8) % y, rest[i]:item())
      end
    end
  end)

  it("means what it means in Lua", function()
    local random, values = 7, {x = -2.5, y = 1.25}
    local function pick(n)
      random = random * 1103515245 + 12345 & 0x7fffffff
      return (random >> 12) % n + 1
    end
    local symbols = {"+", "-", "*", "/", "//", "%", "^"}
    local function make(depth)
      local kind = pick(depth > 4 and 2 or 6)
      if kind == 1 then return ({"x", "y", "3.0", "0.5"})[pick(4)] end
      if kind == 2 then return ({"x", "2.0", "y", "5.0"})[pick(4)] end
      if kind == 3 then return "-" .. make(depth + 1):gsub("^%-", " -") end
      if kind == 4 then return "(" .. make(depth + 1) .. ")" end
      return make(depth + 1) .. " " .. symbols[pick(#symbols)] .. " "
        .. make(depth + 1):gsub("^%-", " -")
    end
    for _ = 1, 300 do
      local text = make(1)
      local want = load("local x, y = -2.5, 1.25; return " .. text)()
      local f, arguments = lt.elementwise(text), {}
      for i, name in ipairs(f.names) do arguments[i] = values[name] end
      local got = f(table.unpack(arguments))
      assert.is_true(got == want or got ~= got and want ~= want,
        ("%s is %s, in Lua %s"):format(text, got, want))
    end
  end)

  it("binds as Lua does", function()
    local function value(text) return lt.elementwise(text)() end
    assert.equal(-4.0, value "-2 ^ 2" // 1)
    assert.equal(512.0, value "2 ^ 3 ^ 2")
    assert.equal(0.25, value "2 ^ -2")
    assert.equal(-5, value "1 - 2 - 4")
    assert.equal(2.0, value "8 / 2 / 2")
    assert.equal(7, value "1 + 2 * 3")
    assert.equal(true, value "1 + 1 == 2 and 2 < 3 or 1 > 2")
    assert.equal(true, value "!(1 != 1) && (1 ~= 2 || 1 == 2)")
    assert.equal(3, value "1 > 2 ? 1 : 2 > 1 ? 3 : 4")
    assert.equal(0.515, value "5.1e-1 + .5E-2")
    assert.equal(8.0, value "2 ** 3")
  end)

  it("promotes dtypes and broadcasts as ops do", function()
    local i, half = lt.tensor{1, 2, 3}, lt.tensor({0.5, 1, 2}, {dtype = "float16"})
    assert.equal("int64", lt.elementwise "x * 2 + 1"(i).dtype)
    assert.equal("float32", lt.elementwise "x / 2"(i).dtype)
    assert.equal("float16", lt.elementwise "x * y"(i, half).dtype)
    assert.equal("bool", lt.elementwise "x > y"(i, half).dtype)
    assert.equal("{3, 3}", tostring(lt.elementwise "x * y"(i:reshape(3, 1), half).shape))
    assert.equal("{2, 3}", tostring(lt.elementwise "exp(x) + y"(lt.zeros({2, 3}, {device = "meta"}),
      lt.zeros({3}, {device = "meta"})).shape))
  end)

  it("shows its expression, and those of its derivatives", function()
    local f = lt.elementwise "x*x+(y)"
    assert.equal("elementwise(x, y) x * x + y", tostring(f))
    assert.equal("x + x", f:derivative("x").expression)
    assert.equal("1", f:derivative("y").expression)
    assert.equal("where(x > 0, 1, exp(x))",
      lt.elementwise("x > 0 ? x : exp(x)"):derivative("x").expression)
    fails({"derivative", '"z"', "x, y"}, f.derivative, f, "z")
    -- a string that was written reads as the same
    for _, case in ipairs(CASES) do
      local text = lt.elementwise(case[1]).expression
      assert.equal(text, lt.elementwise(text).expression)
    end
    for _, text in ipairs {"a - (b - c)", "a / (b * c)", "(a + b) * c", "(a^b)^c", "-(-a)",
      "(-2)^a", "a < (b < c)", "not (a or b)"} do
      assert.equal(text, lt.elementwise(text).expression)
    end
  end)

  it("does not multiply what was not chosen", function()
    -- the slope of exp(x) is infinite where x was chosen
    local x = lt.tensor({1000.0, -1}, {requires_grad = true})
    local slope = lt.elementwise("x > 0 ? x : exp(x)"):derivative "x"
    local got = slope(x:detach()):totable()
    assert.equal(1, got[1])
    assert.is_true(math.abs(got[2] - math.exp(-1)) < 1e-6)
  end)

  it("refuses what it cannot read, with the place", function()
    for text, expected in pairs {
      ["x +"] = {"operand", "character 4"}, ["x * * y"] = {'"*"', "character 5"},
      ["foo(x)"] = {'"foo"', "sigmoid"}, ["exp(x, y)"] = {"expected 1 argument for exp", "got 2"},
      ["x y"] = {'"y"', "character 3"}, ["(x"] = {'expected ")"'}, ["x $ y"] = {'"$"'},
      [""] = {"operand"}, ["x ? 1"] = {'expected ":"'}, ["\xc3\xbc"] = {"\xc3\xbc"},
      [("("):rep(1000)] = {"200 levels"}, ["x)"] = {'unexpected ")"'}, ["add(x, y)"] = {'"add"'},
      ["sine(x)"] = {'"sine"', 'did you mean "sin"?'}, ["exp + x"] = {'"exp" is a function'},
      ["x > 0 and 1 or 2"] = {"character 7", "where(x > 0, 1, 2)"}, ["not 2 * x"] = {"tests"},
      ["x -- y"] = {"comment", "character 3"}, ["x == true"] = {'expected 1, got "true"'},
      ["x + \xce\xb1"] = {"character 5: unexpected \"\xce\xb1\"\n  x + \xce\xb1\n      ^"},
      ["x +\n  y * * 2"] = {"character 11", "\n    y * * 2\n        ^"},
      ["x \0"] = {'unexpected "\\x00"'},
      [("x + "):rep(30) .. "* y"] = {"\n  ... x + x +", "+ * y\n" .. (" "):rep(74) .. "^"},
      ["1.2.3"] = {"unexpected"}, ["\xff"] = {'"\\xff"'},
    } do
      table.insert(expected, "elementwise: ")
      fails(expected, lt.elementwise, text)
    end
    fails({"elementwise", "expected a string for argument 'expression', got 3", "string"},
      lt.elementwise, 3)
    fails({'"y" is not one of the names'}, lt.elementwise, "x + y", {"x"})
    fails({'uses for argument \'names\', got "z"'}, lt.elementwise, "x + y", {"x", "y", "z"})
    fails({"different names", '"x" twice'}, lt.elementwise, "x + x", {"x", "x"})
    fails({"argument 'names'", "2 x"}, lt.elementwise, "x", {"2 x"})
    local many = {}
    for i = 1, 61 do many[i] = "x" .. i end
    fails({"at most 60 names, got 61", "at most 60"}, lt.elementwise, table.concat(many, " + "))
    many[61] = nil
    local sum = lt.elementwise(table.concat(many, " + "))
    for i = 1, 60 do many[i] = i end
    assert.equal(1830, sum(table.unpack(many)))
    many[60] = lt.tensor(60)
    assert.equal(1830, sum(table.unpack(many)):item())
  end)

  it("refuses other arguments", function()
    local f = lt.elementwise "x * x + y"
    fails({"expected 2 arguments (x, y)", "got 1"}, f, 1)
    fails({"argument 'y'", "the string"}, f, 1, "a")
    fails({"broadcast", "{2}", "{3}"}, f, lt.ones{2}, lt.ones{3})
    fails({"expected a float dtype for argument 'dtype'"}, f.source, f, "int64")
  end)
end)

if devices.elsewhere("elementwise/elementwise_custom", _ENV, {compiles = true, reverse = true}) then
  return
end

local device = "cuda:0"

describe("on a CUDA device an elementwise function", function()
  local function is_fused(t) return tostring(t):find("ElementwiseBackward", 1, true) ~= nil end

  local CASE = {"x * exp(y) + sin(x * y) / (1 + x ^ 2)", function(x, y)
    return x * y:exp() + (x * y):sin() / (1 + x ^ 2)
  end}

  it("is one kernel, with the values and gradients of its formula", function()
    compare_case(CASE, device, "float64", {3, 4}, {3, 4}, true)
    compare_case(CASE, device, "float32", {37}, {37})
    compare_case(CASE, device, "float16", {9}, {9})
    compare_case(CASE, device, "bfloat16", {9}, {9})
    local x = lt.ones({2}, {device = device, requires_grad = true})
    assert.is_true(is_fused(lt.elementwise(CASE[1])(x, x)))
    for _, case in ipairs(CASES) do assert.is_string(lt.elementwise(case[1]):source(), case[1]) end
  end)

  it("names the tensors of its formula that are on different devices", function()
    local f = lt.elementwise "x * x + y"
    local here, there, number = lt.ones(3), lt.ones{3, device = device}, lt.tensor(2.)
    fails({"elementwise: expected tensors on one device, got 'x' on \"cpu\" and 'y' on "
      .. '"cuda:0"\nhint: x:to(y.device)'}, f, here, there)
    fails({"'x' on \"cuda:0\" and 'y' on \"cpu\"\nhint: y:to(x.device)"}, f, there, here)
    assert.equal(device, f(there, number).device)
    assert.equal(device, f(number, there).device)
  end)

  it("has every function's values and slopes, at corners and kinks", function()
    local n, f = #CORNERS * #CORNERS, all_functions()
    local k = lt.arange(#FUNCTIONS, {dtype = "float64", device = device}):reshape(-1, 1)
    local x, y = pairs_of_corners(device, "float64")
    local many = k * lt.ones({1, n}, {dtype = "float64", device = device})
    local ones = lt.ones_like(many)
    local got = with_slopes(function(a, b) return f(many, a, b, ones) end,
      x:expand(#FUNCTIONS, n):clone(), y:expand(#FUNCTIONS, n):clone())
    x, y = pairs_of_corners("cpu", "float64")
    for i, row in ipairs(FUNCTIONS) do
      local want = with_slopes(row[2], x, y)
      for place, what in ipairs {"", " by x", " by y"} do
        alike(want[place], got[place][i], row[1] .. what, "any zero")
      end
    end
  end)

  it("broadcasts, and sums gradients over what was repeated", function()
    compare_case(CASE, device, "float64", {3, 1}, {4})
    compare_case(CASE, device, "float64", {2, 3, 4}, {3, 1})
    compare_case(CASE, device, "float64", {}, {2, 2})
    compare_case(CASE, device, "float64", {1, 1}, {})
    compare_case(CASE, device, "float64", {0, 3}, {3})
  end)

  it("takes any layout", function()
    local f = lt.elementwise "x - 2 * y"
    local base = lt.arange(2 * 3 * 4 * 5, {dtype = "float64", device = device}):reshape(2, 3, 4, 5)
    for _, pair in ipairs {
      {base:transpose(1, 4), base:transpose(1, 4)}, {base[":, 2:3"], base[":, 1:2"]},
      {base["::, ::, 1:4:2"], base[":, :, 2:4:2"]}, {base:transpose(2, 3), base[1]:transpose(1, 2)},
      {base[1][1][1][1], base}, {base:expand(3, 2, 3, 4, 5), base[":, :, 1:1, :"]},
    } do
      local x, y = pair[1], pair[2]
      assert.is_true(lt.equal(x - 2 * y, f(x, y)))
    end
  end)

  it("takes masks and numbers, and gives masks", function()
    local x = lt.randn({50}, {device = device, requires_grad = true})
    local mask = x:detach():gt(0)
    local f = lt.elementwise "where(m, a * x, x / b)"
    local got = f(mask, 2, x, 4)
    assert.is_true(is_fused(got))
    assert.is_true(lt.allclose(lt.where(mask, 2 * x, x / 4), got))
    got:sum():backward()
    assert.is_true(lt.allclose(lt.where(mask, 2.0, lt.tensor(0.25)), x.grad))
    assert.is_true(lt.equal(mask, lt.elementwise "x > a"(x, 0)))
    assert.is_true(lt.equal(mask:logical_not(), lt.elementwise "not m or x < x"(mask, x)))
  end)

  it("leaves to ops what has rules of its own", function()
    local i = lt.arange(4, {device = device})
    local x = lt.tensor({0.5, 1, 2, 4}, {device = device, requires_grad = true})
    local product = lt.elementwise "a * b"
    assert.equal("int64", product(i, i).dtype)
    assert.is_true(lt.equal(i * x, product(i, x)))
    assert.equal("float64", product(x:double(), x).dtype)
    assert.is_true(lt.equal(x * 2, product(x, lt.tensor(2.0)))) -- one value of the CPU's
    assert.is_true(lt.equal(lt.where(x:gt(1), 1, 0), lt.elementwise "where(x > 1, 1, 0)"(x)))
    assert.is_true(lt.equal(x:gt(1) + x:gt(2), lt.elementwise "(x > 1) + (x > 2)"(x)))
    fails({"cpu", "cuda:0"}, product, x, x:detach():cpu())
  end)

  it("is used again for another kind of arguments", function()
    local f = lt.elementwise "x * y"
    local x = lt.tensor({1.0, 2, 3}, {device = device})
    assert.same({2, 4, 6}, f(x, 2):totable())
    assert.same({1, 4, 9}, f(x, x):totable())
    assert.same({3, 6, 9}, f(3, x):totable())
    assert.same({1, 4, 9}, f(x:double(), x:double()):totable())
  end)

  it("trains", function()
    local swish = lt.elementwise "x * sigmoid(b * x)"
    local x = lt.randn({64}, {device = device})
    local b = lt.tensor({3.0}, {device = device, requires_grad = true})
    local want = (x * (1.5 * x):sigmoid())
    local optimizer = lt.optim.Adam({b}, {lr = 0.1})
    for _ = 1, 100 do
      optimizer:zero_grad()
      local loss = ((swish(x, b) - want) ^ 2):sum()
      loss:backward()
      optimizer:step()
    end
    assert.is_true(math.abs(b:item() - 1.5) < 0.05, tostring(b))
  end)

  it("uses ops where no compiler is", function()
    local result = devices.script([[local lt = require "lutra"
      local x = lt.tensor({1.0, 2}, {device = "cuda", requires_grad = true})
      local y = lt.elementwise "x * x + 7 * x"(x)
      y:sum():backward()
      print(y[2]:item(), x.grad[2]:item())]],
      "CXX=/nowhere/c++ PATH=/nowhere XDG_CACHE_HOME=/nowhere")
    assert.equal(0, result.status, result.err)
    assert.equal("18.0\t11.0\n", result.out)
  end)

  it("is made of kernels that NVRTC takes", function()
    local all = all_functions()
    for _, dtype in ipairs {"float32", "float16", "bfloat16", "float64"} do
      local text = {}
      local function add(f, rank)
        text[#text + 1] = "namespace n" .. #text .. " {\n"
          .. fused.source(f, dtype, rank):gsub("#include.-\n", "") .. "}"
      end
      add(lt.elementwise "x > y", 0)
      add(all, 2)
      if dtype ~= "bfloat16" then add(all:derivative "x", 0) end
      local result, why = devices.nvrtc("#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
        .. table.concat(text, "\n") .. "\n__global__ void last() {}\n", "last")
      if not result then return pending(why) end
      assert.equal(0, result.status, result.out .. result.err)
    end
  end)
end)
