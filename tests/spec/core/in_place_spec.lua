-- Methods that change a tensor in place and have no other form. Values of PyTorch 2.15.0.
local lt = require "lutra"

local function raises(message, f, ...)
  local ok, text = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(message, text, 1, true)
end

describe("functions in place of F", function()
  for name, arguments in pairs {relu_ = {}, leaky_relu_ = {0.3}, elu_ = {0.5}, selu_ = {},
    celu_ = {2}, hardtanh_ = {-0.5, 1.5}, threshold_ = {0.5, 9}, rrelu_ = {0.1, 0.3}} do
    it(name, function()
      local x = lt.tensor{-2, 0.25, 3}
      local expected = lt.F[name:sub(1, -2)](x, table.unpack(arguments))
      assert.equal(x, lt.F[name](x, table.unpack(arguments)))
      assert.same(expected:totable(), x:totable())
      assert.has_error(function() lt.F[name](3) end)
      assert.has_error(function() lt.F[name](lt.ones(2, {requires_grad = true})) end)
    end)
  end
end)

describe("fill_diagonal_", function()
  it("fills the elements with equal indices", function()
    local x = lt.zeros(2, 3)
    assert.equal(x, x:fill_diagonal_(5))
    assert.same({{5, 0, 0}, {0, 5, 0}}, x:totable())
    assert.same({{{3, 0}, {0, 0}}, {{0, 0}, {0, 3}}}, lt.zeros(2, 2, 2):fill_diagonal_(3):totable())
    assert.same({{0, 1}, {0, 0}, {1, 0}}, lt.tensor{{1, 0, 1}, {1, 0, 0}}:t()
      :fill_diagonal_(0):totable())
    assert.same({}, lt.zeros(0, 3):fill_diagonal_(1):totable())
  end)

  it("wraps tall matrices", function()
    assert.same({{1, 0}, {0, 1}, {0, 0}, {1, 0}, {0, 1}, {0, 0}, {1, 0}},
      lt.zeros(7, 2):fill_diagonal_(1, true):totable())
    assert.same({{1, 0, 0}, {0, 1, 0}}, lt.zeros(2, 3):fill_diagonal_(1, {wrap = true}):totable())
  end)

  it("has no gradient at the diagonal", function()
    local x = lt.ones{2, 2, requires_grad = true}
    x:mul(3):fill_diagonal_(0):sum():backward()
    assert.same({{0, 3}, {3, 0}}, x.grad:totable())
  end)

  it("refuses other shapes", function()
    raises("fill_diagonal_: expected at least 2 dimensions for argument 'self', got shape {2}",
      function() lt.zeros(2):fill_diagonal_(1) end)
    raises("fill_diagonal_: expected dimensions of equal size for argument 'self', got shape "
      .. "{2, 3, 2}", function() lt.zeros(2, 3, 2):fill_diagonal_(1) end)
  end)
end)

describe("apply_ and map_", function()
  it("call a function for each element", function()
    assert.same({1, 2, 3}, lt.tensor{1., 4., 9.}:apply_(math.sqrt):totable())
    assert.same({{10, 30}, {20, 40}},
      lt.tensor{{1, 2}, {3, 4}}:t():apply_(function(v) return v * 10 end):totable())
    assert.same({{3, 5}, {4, 2}},
      lt.tensor{{1., 5.}, {4., 0.}}:map_(lt.tensor{3., 2.}, math.max):totable())
    assert.same({true, false}, lt.tensor{1, 0}:bool():apply_(function(v) return v end):totable())
    assert.same({}, lt.zeros(0):apply_(math.sqrt):totable())
  end)

  it("refuse other arguments and leave self unchanged", function()
    local x = lt.tensor{1., 2.}
    raises("apply_: expected a function for argument 'fn', got 3", function() x:apply_(3) end)
    raises("apply_: expected a function that returns numbers for argument 'fn', got one that "
      .. 'returned the string "a"', function() x:apply_(function() return "a" end) end)
    raises("map_: expected a tensor that can be broadcast to shape {2} for argument 'other', got "
      .. "shape {3}", function() x:map_(lt.zeros(3), math.max) end)
    raises('apply_: expected a tensor on "cpu"', function()
      lt.zeros{2, device = "meta"}:apply_(math.sqrt)
    end)
    assert.same({1, 2}, x:totable())
  end)
end)

describe("a call in place on dense tensors", function()
  it("reads overlapping memory before it is written", function()
    local x = lt.arange(8):float()
    x["2:8"]:add_(x["1:7"])
    assert.same({1, 3, 5, 7, 9, 11, 13, 15}, x:totable())
    assert.same({2, 6, 10, 14, 18, 22, 26, 30}, x:add_(x):totable())
    assert.same({4, 12, 20, 28, 36, 44, 52, 60}, x:add_(x, {alpha = 1.}):totable())
  end)

  it("is noticed by the gradients of what it has written", function()
    for name, write in pairs {fill_ = function(x) x:fill_(2) end, zero_ = lt.zeros(1).zero_,
      mul_ = function(x) x:mul_(3) end, add_ = function(x) x:add_(lt.ones(3)) end} do
      local x, w = lt.ones(3), lt.ones(3, {requires_grad = true})
      local y = (w * x):sum()
      write(x)
      raises(name:sub(1, 4), function() y:backward() end)
    end
  end)

  it("refuses leaves that require grad, and numbers that its dtype cannot hold", function()
    local w = lt.ones(3, {requires_grad = true})
    raises("cannot change a leaf that requires grad", w.fill_, w, 1)
    raises("cannot change a leaf that requires grad", w.zero_, w)
    raises("expected a real number", lt.ones(3).fill_, lt.ones(3), lt.complex(1, 1))
    raises("self is \"int64\"", lt.tensor{1}.add_, lt.tensor{1}, 0.5)
    assert.same({true, false}, lt.tensor{true, true}:logical_and_(lt.tensor{true, false}):totable())
  end)
end)

for _, dtype in ipairs{"float16", "bfloat16"} do
  it("comparisons of " .. dtype .. " write 0 and 1 in any dtype", function()
    for _, n in ipairs{2, 5, 1000} do
      for _, name in ipairs{"eq", "ne", "lt", "le", "gt", "ge"} do
        local x = lt.arange(n):sub(2):to(dtype)
        for _, y in ipairs{1, lt.ones(n):to(dtype)} do
          local expected = lt[name](x:float(), y == 1 and 1 or y:float()):float()
          local out = lt.empty(n)
          lt[name](x, y, {out = out})
          assert.is_true(expected:equal(out))
          local own = x:clone()
          own[name .. "_"](own, y)
          assert.is_true(expected:equal(own:float()))
        end
      end
    end
  end)
end

it("ops that have nothing to do return self", function()
  local x = lt.ones(2)
  for name, result in pairs {zero_ = x:zero_(), contiguous = x:contiguous(), to = x:to("float32"),
    positive = x:positive(), copy_ = x:copy_(lt.ones(2))} do
    assert.is_true(rawequal(x, result), name)
  end
  assert.is_false(rawequal(x, x:clone()))
  raises('positive: expected a number dtype for argument \'self\', got "bool"', lt.positive,
    x:gt(0))
end)
