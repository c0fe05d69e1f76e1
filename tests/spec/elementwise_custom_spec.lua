-- lt.elementwise: functions from expressions. Each case stands beside the same formula in ops,
-- whose values and gradients in float64 are wanted, on every device and by either way.

local devices = require "device_support"
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

-- The values of f and of its formula, with the gradients of the first and the second order.
local function everything(f, x, y)
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
  local second = total and lt.autograd.grad(total, inputs, {allow_unused = true}) or {}
  for i = 1, #inputs do list[#list + 1] = second[i] or lt.zeros_like(inputs[i]) end
  return list
end

-- `few`: with every fifth case only.
local function compare(device, dtype, shape_x, shape_y, orders, few)
  for number = 1, #CASES, few and 5 or 1 do
    local case = CASES[number]
    local f = lt.elementwise(case[1])
    local x = samples(case, shape_x, dtype, device, number)
    local y = #f.names == 2 and samples(case, shape_y, dtype, device, number + 100)
    local want = everything(case[2], x:cpu():double(), y and y:cpu():double())
    local got = everything(f, x, y)
    for i = 1, math.min(#want, orders) do
      close(want[i], got[i], dtype, ("%s, value %d"):format(case[1], i))
    end
  end
end

describe("an elementwise function", function()
  it("has the values and gradients of its formula, from ops", function()
    compare("cpu", "float64", {3, 4}, {3, 4}, 9)
    compare("cpu", "float64", {3, 1}, {4}, 9)
    compare("cpu", "float32", {3, 4}, {4}, 3)
    compare("cpu", "float16", {5}, {5}, 1)
  end)

  it("takes its arguments in the order of the text, or as it is told", function()
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

  it("shows its text, and those of its derivatives", function()
    local f = lt.elementwise "x*x+(y)"
    assert.equal("elementwise(x, y) x * x + y", tostring(f))
    assert.equal("x + x", f:derivative("x").expression)
    assert.equal("1", f:derivative("y").expression)
    assert.equal("where(x > 0, 1, exp(x))",
      lt.elementwise("x > 0 ? x : exp(x)"):derivative("x").expression)
    fails({"derivative", '"z"', "x, y"}, f.derivative, f, "z")
    -- a text that was written reads as the same
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
    for text, wanted in pairs {
      ["x +"] = {"operand", "character 4"}, ["x * * y"] = {'"*"', "character 5"},
      ["foo(x)"] = {'"foo"', "sigmoid"}, ["exp(x, y)"] = {"exp takes 1", "not 2"},
      ["x y"] = {'"y"', "character 3"}, ["(x"] = {'")" is missing'}, ["x $ y"] = {'"$"'},
      [""] = {"operand"}, ["x ? 1"] = {'":" is missing'}, ["\xc3\xbc"] = {"\xc3\xbc"},
      [("("):rep(1000)] = {"200 levels"}, ["x)"] = {'unexpected ")"'}, ["add(x, y)"] = {'"add"'},
      ["1.2.3"] = {"unexpected"}, ["\xff"] = {"unexpected"}, [("x + "):rep(50)] = {"..."},
    } do
      table.insert(wanted, "elementwise: ")
      fails(wanted, lt.elementwise, text)
    end
    fails({"elementwise", '"expression"', "string"}, lt.elementwise, 3)
    fails({'"y" is none of the names'}, lt.elementwise, "x + y", {"x"})
    fails({'"z" is not in'}, lt.elementwise, "x + y", {"x", "y", "z"})
    fails({'"x" is given twice'}, lt.elementwise, "x + x", {"x", "x"})
    fails({'"names" holds', "2 x"}, lt.elementwise, "x", {"2 x"})
  end)

  it("refuses other arguments", function()
    local f = lt.elementwise "x * x + y"
    fails({"1 argument given", "takes 2: x, y"}, f, 1)
    fails({'argument "y"', "the string"}, f, 1, "a")
    fails({"broadcast", "{2}", "{3}"}, f, lt.ones{2}, lt.ones{3})
    fails({'argument "dtype"'}, f.source, f, "int64")
  end)
end)

if devices.elsewhere("elementwise_custom", _ENV, {reverse = true}) then return end

local device = "cuda:0"

describe("on a CUDA device an elementwise function", function()
  local function is_fused(t) return tostring(t):find("ElementwiseBackward", 1, true) ~= nil end

  it("is one kernel, with the values and gradients of its formula", function()
    compare(device, "float64", {3, 4}, {3, 4}, 9)
    compare(device, "float32", {37}, {37}, 1)
    compare(device, "float16", {9}, {9}, 3, true)
    compare(device, "bfloat16", {9}, {9}, 1, true)
    for _, case in ipairs(CASES) do
      local f = lt.elementwise(case[1])
      local x = samples(case, {5}, "float32", device, 1):requires_grad_()
      assert.is_true(is_fused(#f.names == 2 and f(x, x) or f(x)), case[1])
    end
  end)

  it("broadcasts, and sums gradients over what was repeated", function()
    compare(device, "float64", {3, 1}, {4}, 9, true)
    compare(device, "float64", {2, 3, 4}, {3, 1}, 3, true)
    compare(device, "float64", {}, {2, 2}, 3, true)
    compare(device, "float64", {1, 1}, {}, 3, true)
    compare(device, "float64", {0, 3}, {3}, 3, true)
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

  it("is made of kernels that nvcc takes", function()
    if not os.execute "nvcc --version >/dev/null 2>&1" then
      pending "needs nvcc"
      return
    end
    local program = require "program_support"
    local text = {}
    for i, case in ipairs(CASES) do
      for _, dtype in ipairs {"float32", "float16", "bfloat16", "float64"} do
        text[#text + 1] = (lt.elementwise(case[1]):source(dtype):gsub("void elementwise",
          ("void k%d_%s"):format(i, dtype)))
      end
    end
    local path = program.file(table.concat(text, "\n"), ".cu")
    local result = program.shell(("nvcc -std=c++17 -arch=sm_80 --ptx -o /dev/null %s"):format(path))
    os.remove(path)
    assert.equal(0, result.status, result.err)
  end)
end)
