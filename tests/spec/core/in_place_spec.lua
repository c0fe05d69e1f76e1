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
