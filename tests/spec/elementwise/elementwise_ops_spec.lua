-- lt.elementwise beside the ops that its formulas call: every op that it can call, in every dtype,
-- by one pass over memory. The ops' own values are held against PyTorch's (op_values_spec.lua).

local devices = require "device_support"
local calls = require "lutra.elementwise.calls"
local fused = require "lutra.elementwise.fused"
local lt = require "lutra"
local fails = devices.fails

local DTYPES = {"float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8",
  "uint8", "bool"}
-- What a GPU computes with functions of its own is as far off as its own ops may be.
local NEAR = {float64 = 1e-12, float32 = 1e-5, float16 = 2e-3, bfloat16 = 2e-2}
local MANY = 9000 -- elements: enough for one pass on the CPU

-- Numbers of a dtype: whole and broken ones, negative ones, NaN and infinities.
local function values(n, dtype, device, seed)
  lt.manual_seed(seed)
  local x = lt.rand(n, {dtype = "float64"}) * 6 - 3
  x["1:7"] = lt.tensor{0.0, 1.0, -1.0, 2.0, -2.5, 0.5, 3.0}
  if dtype == "bool" then return x:gt(0):to(device) end
  if dtype == "uint8" then x = x:abs() end
  if dtype:find "float" then x["8:10"] = lt.tensor{math.huge, -math.huge, 0 / 0} end
  return x:to(dtype):to(device)
end

-- The same values and the same NaNs; floats nearly.
local function alike(want, got, label)
  assert.equal(want.dtype, got.dtype, label)
  assert.equal(tostring(want.shape), tostring(got.shape), label)
  local near = NEAR[want.dtype]
  want, got = want:detach():cpu(), got:detach():cpu()
  local same = near and lt.allclose(want:double(), got:double(), near, near, true)
    or not near and lt.equal(want, got)
  if not same then
    local bad = near and lt.isclose(want:double(), got:double(), near, near, true):logical_not()
      or want:ne(got)
    local at = bad:reshape(-1):nonzero()[1]:item()
    error(("%s: element %d is %s, by ops %s"):format(label, at, got:reshape(-1)[at]:item(),
      want:reshape(-1)[at]:item()), 0)
  end
end

-- The ops that can be called by a name, with how many tensors and numbers they take.
local function each_op(f)
  for _, op in ipairs(lt.ops()) do
    local found = calls.find(op.name)
    if op.kind == "elementwise" and found then
      local tensors = 0
      for _, p in ipairs(op.params) do
        if p.type == "Tensor" or p.type == "Operand" then tensors = tensors + 1 end
      end
      f(op, tensors)
    end
  end
end

local NAMES = {"x", "y", "z"}

-- The arguments of an op in a formula: x, y, z, then 1, 2... for the numbers that it requires.
local function written(op, count)
  local list = table.move(NAMES, 1, count, 1, {})
  for i = count + 1, calls.find(op.name).least do list[i] = ("%d"):format(i - count) end
  return table.concat(list, ", ")
end

-- x, y, z of a dtype for an op; a bool where it asks for a condition.
local function arguments(op, count, dtype, device)
  local list = {}
  for i = 1, count do
    local name = op.params[i].name
    local condition = name == "mask" or name == "condition"
    list[i] = values(MANY, condition and "bool" or dtype, device, i)
  end
  return list
end

local function run_op(op, list)
  local all = table.move(list, 1, #list, 1, {})
  for i = #list + 1, calls.find(op.name).least do all[i] = i - #list end
  local ok, result = pcall(require("lutra.core")._ops[op.name], table.unpack(all))
  return ok and result or nil
end

-- op(x, y) in a formula that has another step in front, so that it is no single op.
local function compare_op(op, count, dtype, device)
  local list = arguments(op, count, dtype, device)
  local label = ("%s of %s"):format(op.name, dtype)
  local names = written(op, count)
  local f = lt.elementwise(("(k ? %s(%s) : %s(%s))"):format(op.name, names, op.name,
    names:gsub("x", "+x")))
  local k = lt.ones(MANY, {dtype = "bool", device = device})
  local want = run_op(op, list)
  if not want then return 0 end
  local arguments_of = {k, table.unpack(list)}
  alike(want, f(table.unpack(arguments_of)), label)
  return fused.prepare(f, arguments_of) and 1 or 0
end

local function compare_gradients(op, count, device)
  if not op.has_gradient then return end
  local list, inputs = arguments(op, count, "float64", device), {}
  for i, x in ipairs(list) do
    if x.dtype == "float64" then
      list[i] = x:nan_to_num():clamp(-2.5, 2.5):requires_grad_()
      inputs[#inputs + 1] = list[i]
    end
  end
  local names = written(op, count)
  local f = lt.elementwise(("%s(%s) * 2"):format(op.name, names))
  local want = run_op(op, list)
  if not want or not want.requires_grad then return end
  want = want * 2
  local got = f(table.unpack(list))
  local options = {allow_unused = true, retain_graph = true}
  local weights = values(MANY, "float64", device, 7):nan_to_num():clamp(-2, 2)
  for i, x in ipairs(inputs) do
    local label = ("gradient %d of %s"):format(i, op.name)
    local has, from_ops = pcall(lt.autograd.grad, (want * weights):sum(), {x}, options)
    local also, from_pass = pcall(lt.autograd.grad, (got * weights):sum(), {x}, options)
    if not has or not also then -- igamma has none for its first input
      assert.is_false(has or also, label)
      assert.matches("it has no formula", from_ops, 1, true)
      assert.matches("it has no formula", from_pass, 1, true)
    else
      local zeros = lt.zeros_like(x)
      alike(from_ops[1] or zeros, from_pass[1] or zeros, label)
    end
  end
end

local function run_on(device)
  it("has the values of every op, in every dtype", function()
    local count, passes = 0, 0
    each_op(function(op, tensors)
      for _, dtype in ipairs(DTYPES) do
        local fine, message = pcall(compare_op, op, tensors, dtype, device)
        if not fine then error(("%s of %s: %s"):format(op.name, dtype, message), 0) end
        passes = passes + message
      end
      count = count + 1
    end)
    assert.is_true(count >= 60, count)
    assert.is_true(passes >= 350, passes)
  end)

  it("has the gradients of every op", function()
    each_op(function(op, tensors) compare_gradients(op, tensors, device) end)
  end)
end

-- On a device where each kernel is compiled, a part of that.
local function run_some(device)
  local SOME = {floor_divide = true, clamp = true, bitwise_xor = true, nan_to_num = true,
    lerp = true, copysign = true, logical_xor = true, signbit = true, _gelu_erf = true,
    bitwise_left_shift = true, _silu_backward = true, addcmul = true, masked_fill = true}
  it("has the values and gradients of ops", function()
    each_op(function(op, tensors)
      if not SOME[op.name] then return end
      for _, dtype in ipairs {"float32", "bfloat16", "int64", "int8", "bool"} do
        compare_op(op, tensors, dtype, device)
      end
      compare_gradients(op, tensors, device)
    end)
  end)
end

local function in_one_pass(f, ...)
  return assert(fused.prepare(f, {...}), "it is computed by ops")
end

local function describe_mixed(device)
  local function make(n, dtype, seed) return values(n, dtype, device, seed) end

  it("computes integers, which wrap in their own dtype", function()
    local f = lt.elementwise "(x + y) * x - y > 0 ? x * x : x - y"
    for _, dtype in ipairs {"int8", "uint8", "int16", "int32", "int64"} do
      local x = (lt.arange(MANY) * 37):to(dtype):to(device)
      local y = (lt.arange(MANY) * 91 + 5):to(dtype):to(device)
      in_one_pass(f, x, y)
      alike(lt.where(((x + y) * x - y):gt(0), x * x, x - y), f(x, y), dtype)
    end
    local byte = lt.full({MANY}, 200, {dtype = "uint8", device = device})
    assert.equal((200 + 200) % 256 // 2, lt.elementwise "(x + x) // 2"(byte)[1]:item())
  end)

  it("promotes step by step, as ops do", function()
    local f = lt.elementwise "(i + j) * x + i / j > d"
    local i, j = make(MANY, "int16", 1), (make(MANY, "int64", 2)):abs() + 1
    local x, d = make(MANY, "float16", 3), make(MANY, "float64", 4)
    alike(((i + j) * x + i / j):gt(d), f(i, j, x, d), "mixed")
    local g = lt.elementwise "i * a + b"
    for _, numbers in ipairs {{2, 3}, {2.5, 3}, {2, 0.5}, {-1, 1 << 40}} do
      alike(i * numbers[1] + numbers[2], g(i, numbers[1], numbers[2]), "numbers")
    end
  end)

  it("broadcasts, in every layout, down to no element", function()
    local f = lt.elementwise "x * y + x"
    local wide = make(300 * 40, "float32", 5):reshape(300, 40)
    for _, y in ipairs {wide[1], wide[":, 1:1"], wide:t():contiguous():t(), wide:flip{1},
      lt.tensor(2.0, {device = device}), wide[":, 1:40:2"]:repeat_interleave(2, 2)} do
      in_one_pass(f, wide, y)
      alike(wide * y + wide, f(wide, y), tostring(y.shape))
      alike(y * wide + y, f(y, wide), tostring(y.shape))
    end
    local rows = make(3000 * 5, "float32", 6):reshape(3000, 5) -- rows shorter than a block
    alike(rows * rows[1] + rows, f(rows, rows[1]), "short rows")
    alike(rows["::2"] * rows["2::2"] + rows["::2"], f(rows["::2"], rows["2::2"]), "every other row")
    assert.equal("{0, 3}", tostring(f(lt.ones({0, 3}, {device = device}),
      lt.ones({3}, {device = device})).shape))
    assert.equal("{}", tostring(f(lt.tensor(2., {device = device}),
      lt.tensor(3., {device = device})).shape))
    fails({"broadcast"}, f, make(MANY, "float32", 1), make(MANY + 1, "float32", 1))
  end)

  it("has gradients of any order", function()
    local f = lt.elementwise "tanh(x * w) * exp(-x) + w"
    local function formula(x, w) return (x * w):tanh() * (-x):exp() + w end
    local x = lt.rand({100, 100}, {dtype = "float64", device = device}):requires_grad_()
    local w = lt.rand({100}, {dtype = "float64", device = device}):requires_grad_()
    local results = {}
    for k, g in ipairs {f, formula} do
      local first = lt.autograd.grad(g(x, w):square():sum(), {x, w}, {create_graph = true})
      local second = lt.autograd.grad(first[1]:square():sum() + first[2]:sum(), {x, w},
        {create_graph = true})
      results[k] = {first[1], first[2], second[1], second[2],
        table.unpack(lt.autograd.grad(second[1]:sum(), {x, w}))}
    end
    for i, want in ipairs(results[2]) do alike(want, results[1][i], "gradient " .. i) end
  end)

  it("requires a gradient where its value depends on one, as ops do", function()
    local x = make(MANY, "float32", 7):requires_grad_()
    local y = make(MANY, "float32", 8):requires_grad_()
    local test, choice = lt.elementwise "(x > 0) + n", lt.elementwise "where(x > 0, n, 2 * n)"
    for _, f in ipairs {test, choice} do
      in_one_pass(f, x, 1.5)
      assert.falsy(f(x, 1.5).requires_grad)
    end
    local steps = lt.elementwise "ceil(x) * y + floor(x)"
    steps(x, y):sum():backward()
    assert.equal(0, x.grad:count_nonzero():item())
    alike(x:detach():ceil(), y.grad, "gradient beside a gradient of 0")
    y.grad = nil
    local flat = lt.elementwise "ceil(y) * 2 + 1"
    assert.truthy(flat(y).requires_grad)
    flat(y):sum():backward()
    assert.equal(0, y.grad:count_nonzero():item())
    assert.equal(MANY, y.grad:numel())
  end)

  it("names the argument of an op that refuses it", function()
    fails({"bitwise_and", 'expected an integer dtype or "bool", got "float32"'},
      lt.elementwise "bitwise_and(x, 3) + x",
      make(MANY, "float32", 1))
    local divide = lt.elementwise "x // (y - 3) + x"
    fails({"index {3}"}, function(x, y) return divide(x, y):cpu() end, -- a device tells it late
      lt.arange(MANY, {device = device}), lt.arange(MANY, {device = device}))
    fails({"negative power"}, lt.elementwise "x ^ k + x", lt.arange(MANY, {device = device}), -1)
  end)
end

describe("an elementwise function of large tensors", function()
  run_on "cpu"
  describe_mixed "cpu"

  it("gives the same with any number of threads", function()
    local f = lt.elementwise "x * sigmoid(x) + y"
    local x, y = values(200000, "float32", "cpu", 1), values(200000, "float32", "cpu", 2)
    local had = lt.get_num_threads()
    local all = {}
    for _, n in ipairs {1, 2, 3} do
      lt.set_num_threads(n)
      all[#all + 1] = f(x, y):nan_to_num()
    end
    lt.set_num_threads(had)
    assert.is_true(lt.equal(all[1], all[2]) and lt.equal(all[1], all[3]))
  end)

  it("keeps the inputs' order in memory, as the ops do", function()
    local f = lt.elementwise "x * x + y"
    for _, n in ipairs{4, 100} do
      local x, y = lt.randn(n, n), lt.randn(n, n)
      for _, pair in ipairs{{x:t(), y:t()}, {x:t(), y}, {x, y:t()}, {x:t(), y[1]}} do
        local got, want = f(table.unpack(pair)), pair[1] * pair[1] + pair[2]
        assert.same(want:stride(), got:stride())
        alike(want, got, "transposed")
      end
    end
  end)

  it("calls composites of elementwise ops, and no others", function()
    local x = values(MANY, "float32", "cpu", 3)
    local f = lt.elementwise "clamp(x, -1, 1) + leaky_relu(x, 0.2)"
    in_one_pass(f, x)
    alike(x:clamp(-1, 1) + require("lutra.core").leaky_relu(x, 0.2), f(x), "clamp")
    for name, text in pairs {sum = "sum(x) + 1", cumsum = "cumsum(x)", logsumexp = "logsumexp(x)",
      mean = "mean(x)", reshape = "reshape(x)", std = "std(x)", zeros = "zeros(x)",
      dropout = "dropout(x)", norm = "x + norm(x)"} do
      fails({"elementwise: ", name}, lt.elementwise, text)
    end
    fails({"softmax", "is not an elementwise op"}, lt.elementwise, "softmax(x, 1)")
    local recorder = require("lutra.core")._recorder()
    getmetatable(recorder).__gc(recorder)
    recorder:stop()
    fails({"recorder: cannot use it: it was finalized"}, recorder.mark, recorder)
    fails({"recorder: cannot use it: it was finalized"}, recorder.input, recorder, "float32", {1})
    fails({'"add"', 'the operator "+"'}, lt.elementwise, "add(x, y)")
  end)
end)

if devices.elsewhere("elementwise/elementwise_ops", _ENV, {compiles = true}) then return end

describe("on a CUDA device an elementwise function of large tensors", function()
  run_some "cuda:0"
  describe_mixed "cuda:0"
end)
