-- x[key] and x[key] = value in every form: what PyTorch gives, counted from 1.
local lt = require "lutra"
local wide = require "wide_support"

local function fails(f, ...)
  local ok, message = pcall(f, ...)
  if ok then ok, message = pcall(function() lt.zeros(1):item() end) end -- a device tells it later
  assert.is_false(ok)
  return message
end

local function get(x, key) return x[key] end
local function set(x, key, value) x[key] = value end
local function shape(x) return tostring(x.shape) end

-- {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}
local function matrix() return lt.arange(12):view(3, 4) end

describe("reading with positions and ranges", function()
  local x = matrix()

  it("selects", function()
    assert.same({5, 6, 7, 8}, x[2]:totable())
    assert.same({9, 10, 11, 12}, x[-1]:totable())
    assert.same({9, 10, 11, 12}, x[3.0]:totable())
    assert.equal(7, x[{2, 3}]:item())
    assert.equal(12, x[{-1, -1}]:item())
    assert.equal("{}", shape(x[{2, 3}]))
    assert.equal(7, x[2][3]:item())
  end)

  it("takes ranges with both ends", function()
    assert.same({{1, 2, 3, 4}, {5, 6, 7, 8}}, x[{{1, 2}}]:totable())
    assert.same({{2, 3}, {6, 7}}, x[{{1, 2}, {2, 3}}]:totable())
    assert.same({4, 8, 12}, x[{{}, -1}]:totable())
    assert.same({{4}, {8}, {12}}, x[{{}, {4}}]:totable())
    assert.same({{4}, {8}, {12}}, x[{{}, {-1}}]:totable())
    assert.same({1, 3}, x[{1, {1, 4, 2}}]:totable())
    assert.same({1, 3}, x[{1, {1, -1, 2}}]:totable())
    assert.same({{5, 6, 7, 8}, {9, 10, 11, 12}}, x[{{-2, -1}}]:totable())
    assert.same(x:totable(), x[{}]:totable())
  end)

  it("cuts ranges at the ends", function()
    assert.equal("{3, 4}", shape(x[{{1, 100}}]))
    assert.equal("{3, 4}", shape(x[{{-100, 100}}]))
    assert.equal("{0, 4}", shape(x[{{1, 0}}]))
    assert.equal("{0, 4}", shape(x[{{3, 2}}]))
    assert.equal("{0, 4}", shape(x[{{7, 9}}]))
    assert.equal("{0, 4}", shape(x[{{9}}]))
    assert.equal("{0, 4}", shape(x[{{5, 4, 2}}]))
  end)

  it("gives views", function()
    local y = matrix()
    y[{{}, 2}]:zero_()
    assert.same({{1, 0, 3, 4}, {5, 0, 7, 8}, {9, 0, 11, 12}}, y:totable())
    local all = y[{}]
    assert.is_false(rawequal(all, y))
    all:zero_()
    assert.equal(0, y:sum():item())
  end)

  it("knows newaxis and ...", function()
    assert.equal("{1, 3, 4}", shape(x[{lt.newaxis}]))
    assert.equal("{3, 1, 4}", shape(x[{{}, lt.newaxis}]))
    assert.equal("{3, 4, 1}", shape(x[{"...", lt.newaxis}]))
    assert.same({4, 8, 12}, x[{"...", 4}]:totable())
    assert.equal("{1, 4}", shape(x[{lt.newaxis, 1}]))
    assert.equal("{3, 4}", shape(x["..."]))
    local z = lt.zeros(2, 3, 4, 5)
    assert.equal("{3, 4}", shape(z[{1, "...", 1}]))
    assert.equal("{2, 4, 5}", shape(z[{{}, 1, "..."}]))
  end)

  it("reads strings", function()
    assert.same({{2, 3}, {6, 7}}, x["1:2, 2:3"]:totable())
    assert.same({{1, 2, 3, 4}, {9, 10, 11, 12}}, x["::2"]:totable())
    assert.same({4, 8, 12}, x[":, -1"]:totable())
    assert.same({5, 6, 7, 8}, x["2"]:totable())
    assert.same({{5, 6, 7, 8}, {9, 10, 11, 12}}, x["2:"]:totable())
    assert.same({{1, 2, 3, 4}, {5, 6, 7, 8}}, x[":2"]:totable())
    assert.same({2, 4}, x["1, 2:4:2"]:totable())
    assert.equal("{3, 1, 4}", shape(x[":, newaxis"]))
    assert.equal("{3}", shape(x["..., 1"]))
    assert.equal("{0, 4}", shape(x["1:0"]))
  end)
end)

describe("reading with tensors", function()
  local x = matrix()

  it("selects by masks", function()
    assert.same({7, 8, 9, 10, 11, 12}, x[x:gt(6)]:totable())
    assert.same({{1, 2, 3, 4}, {9, 10, 11, 12}}, x[lt.tensor{true, false, true}]:totable())
    assert.same({{1, 4}, {5, 8}, {9, 12}}, x[{{}, lt.tensor{true, false, false, true}}]:totable())
    assert.equal("{0}", shape(x[x:gt(100)]))
  end)

  it("gathers by positions, negative ones from the end", function()
    assert.same({{9, 10, 11, 12}, {1, 2, 3, 4}}, x[lt.tensor{3, 1}]:totable())
    assert.same({{9, 10, 11, 12}, {9, 10, 11, 12}}, x[lt.tensor{-1, 3}]:totable())
    assert.same({{2, 1}, {6, 5}, {10, 9}}, x[{{}, lt.tensor{2, 1}}]:totable())
    assert.same({{{1, 2, 3, 4}}, {{5, 6, 7, 8}}}, x[lt.tensor{{1}, {2}}]:totable())
    assert.same({5, 6, 7, 8}, x[lt.tensor(2)]:totable())
    assert.same({{5, 6, 7, 8}}, x[lt.tensor({2}, {dtype = "int32"})]:totable())
  end)

  it("broadcasts several together", function()
    assert.same({1, 6, 11}, x[{lt.tensor{1, 2, 3}, lt.tensor{1, 2, 3}}]:totable())
    assert.same({{2, 4}, {10, 12}}, x[{lt.tensor{{1}, {3}}, lt.tensor{2, 4}}]:totable())
    assert.same({1, 12}, x[{lt.tensor{true, false, true}, lt.tensor{1, 4}}]:totable())
  end)

  it("orders dimensions as PyTorch does", function()
    local z = lt.arange(120):view(2, 3, 4, 5)
    local i, j = lt.tensor{1, 2}, lt.tensor{2, 3}
    assert.equal("{2, 2, 5}", shape(z[{{}, i, j}]))          -- adjacent: in their place
    assert.equal("{2, 3, 5}", shape(z[{i, {}, j}]))          -- apart: first
    assert.equal("{2, 3, 1, 5}", shape(z[{i, {}, j, lt.newaxis}]))
    assert.equal("{2, 2, 3}", shape(z[{{}, i, {2, 4}, j}]:permute(2, 1, 3)))
    assert.equal("{2, 5}", shape(z[{i, 2, j}]))              -- a position is selected before
    -- z[i[k], :, j[k], :]
    assert.same(z[{2, {}, 3}]:totable(), z[{i, {}, j}][2]:totable())
    assert.same(z[{{}, 2, 3}]:totable(), z[{{}, i, j}][{{}, 2}]:totable())
  end)

  it("gives copies", function()
    local y = matrix()
    y[lt.tensor{1}]:zero_()
    y[y:gt(0)]:zero_()
    assert.equal(78, y:sum():item())
  end)
end)

describe("assignment", function()
  local function assigned(key, value)
    local x = lt.zeros{3, 4, dtype = "int64"}
    x[key] = value
    return x:totable()
  end
  local o = {0, 0, 0, 0}

  it("takes numbers", function()
    assert.same({o, {1, 1, 1, 1}, o}, assigned(2, 1))
    assert.same({o, {0, 0, 1, 0}, o}, assigned({2, 3}, 1))
    assert.same({{1, 1, 1, 1}, {1, 1, 1, 1}, o}, assigned({{1, 2}}, 1))
    assert.same({{0, 0, 0, 1}, {0, 0, 0, 1}, {0, 0, 0, 1}}, assigned(":, -1", 1))
    assert.same({{1, 0, 1, 0}, o, {1, 0, 1, 0}}, assigned("::2, ::2", 1))
    assert.same({{2, 2, 2, 2}, {2, 2, 2, 2}, {2, 2, 2, 2}}, assigned({}, 2.7))
    assert.same({{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1}}, assigned("...", true))
  end)

  it("takes tensors, broadcast and cast", function()
    assert.same({{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, assigned({}, lt.arange(4)))
    assert.same({{1, 1, 1, 1}, {2, 2, 2, 2}, o}, assigned({{1, 2}}, lt.tensor{{1}, {2}}))
    assert.same({{1, 2, 3, 4}, o, o}, assigned(1, lt.tensor{1.9, 2.5, 3, 4}))
    assert.same({{1, 2, 3, 4}, o, o}, assigned(1, lt.tensor{{{1, 2, 3, 4}}}))
    assert.same({{5, 5, 5, 5}, o, o}, assigned(1, lt.tensor(5)))
  end)

  it("takes tables", function()
    assert.same({o, {1, 2, 3, 4}, o}, assigned(2, {1, 2, 3, 4}))
    assert.same({{0, 1, 2, 0}, {0, 3, 4, 0}, o}, assigned({{1, 2}, {2, 3}}, {{1, 2}, {3, 4}}))
  end)

  it("goes through masks", function()
    local x = matrix()
    x[x:gt(6)] = 0
    assert.same({{1, 2, 3, 4}, {5, 6, 0, 0}, o}, x:totable())
    x[x:eq(0)] = lt.arange(6) * 10
    assert.same({{1, 2, 3, 4}, {5, 6, 10, 20}, {30, 40, 50, 60}}, x:totable())
    x[lt.tensor{true, false, true}] = -1
    assert.same({{-1, -1, -1, -1}, {5, 6, 10, 20}, {-1, -1, -1, -1}}, x:totable())
    x[lt.tensor{true, false, false}] = {1, 2, 3, 4}
    assert.same({1, 2, 3, 4}, x[1]:totable())
    x[{{}, lt.tensor{true, false, false, false}}] = 9
    assert.same({9, 9, 9}, x[{{}, 1}]:totable())
  end)

  it("goes through index tensors", function()
    local x = lt.zeros{3, 4, dtype = "int64"}
    x[lt.tensor{1, -1}] = 7
    assert.same({{7, 7, 7, 7}, o, {7, 7, 7, 7}}, x:totable())
    x[{lt.tensor{1, 2}, lt.tensor{1, 4}}] = lt.tensor{1, 2}
    assert.same({{1, 7, 7, 7}, {0, 0, 0, 2}, {7, 7, 7, 7}}, x:totable())
    x[{lt.tensor{1, 2}, lt.tensor{1, 4}}] = {8.5, 9.5}
    assert.same({{8, 7, 7, 7}, {0, 0, 0, 9}, {7, 7, 7, 7}}, x:totable())
    x[{{2, 3}, lt.tensor{1, 2}}] = -1
    assert.same({{8, 7, 7, 7}, {-1, -1, 0, 9}, {-1, -1, 7, 7}}, x:totable())
  end)

  it("writes into a view's memory through any form", function()
    local x = matrix()
    local column = x[{{}, 2}]
    column[lt.tensor{1, 3}] = 0
    assert.same({{1, 0, 3, 4}, {5, 6, 7, 8}, {9, 0, 11, 12}}, x:totable())
    column[column:eq(0)] = 5
    assert.same({5, 6, 5}, x[{{}, 2}]:totable())
  end)

  it("to an empty range does nothing", function()
    local x = matrix()
    x[{{1, 0}}] = 9
    x[x:gt(100)] = 9
    assert.same(matrix():totable(), x:totable())
  end)
end)

describe("gradients", function()
  it("flow through every way of reading", function()
    local x = lt.arange(12):view(3, 4):to("float32"):requires_grad_()
    local y = x[2]:sum() + x[{1, 3}] * 2 + x[{{}, {1, 4, 3}}]:sum() * 3 + x["3, 2:3"]:sum() * 4
      + x[lt.tensor{1, 1}]:sum() * 10 + x[x:gt(11)]:sum() * 100
    y:backward()
    assert.same({{23, 20, 22, 23}, {4, 1, 1, 4}, {3, 4, 4, 103}}, x.grad:totable())
  end)

  it("flow through assignment", function()
    local x = lt.ones{3, requires_grad = true}
    local v = lt.tensor({2, 3}, {dtype = "float32", requires_grad = true})
    local y = x * 2
    y[{{1, 2}}] = v * 5
    y[3] = 0
    y:sum():backward()
    assert.same({0, 0, 0}, x.grad:totable())
    assert.same({5, 5}, v.grad:totable())

    local a = lt.ones{4, requires_grad = true}
    local w = lt.ones{2, requires_grad = true}
    local b = a * 3
    b[lt.tensor{1, 4}] = w * 7
    b[lt.tensor{false, true, false, false}] = 0
    b:sum():backward()
    assert.same({0, 0, 3, 0}, a.grad:totable())
    assert.same({7, 7}, w.grad:totable())
  end)

  it("forbid writing into a leaf", function()
    local x = lt.ones{3, requires_grad = true}
    assert.matches("leaf", fails(set, x, 1, 0), 1, true)
    assert.matches("leaf", fails(set, x, {}, 0), 1, true)
    assert.matches("leaf", fails(set, x, lt.tensor{1}, 0), 1, true)
    assert.same({1, 1, 1}, x:totable())
    lt.no_grad(function() x[1] = 5 end)
    assert.same({5, 1, 1}, x:totable())
  end)
end)

describe("# and ipairs", function()
  it("are the first dimension, and end", function()
    local x, sums = matrix(), {}
    assert.equal(3, #x)
    for i, row in ipairs(x) do sums[i] = row:sum():item() end
    assert.same({10, 26, 42}, sums)
    local n = 0
    for _ in ipairs(lt.zeros(0, 3)) do n = n + 1 end
    assert.equal(0, n)
  end)

  it("leave x[n + 1] an error everywhere else", function()
    assert.matches("index: cannot index dim 1 with 4: the index is out of range, the size is 3",
      fails(get, matrix(), 4),
      1, true)
    for _ in ipairs(matrix()) do
      assert.matches("cannot index dim 1 with 4: the index is out of range, the size is 3",
        fails(get, matrix(), 4), 1, true)
    end
  end)

  it("say that a tensor of 0 dims has none", function()
    assert.matches("0 dims", fails(function() return #lt.tensor(1) end), 1, true)
    assert.matches("0 dims", fails(get, lt.tensor(1), 1), 1, true)
  end)
end)

describe("a bad key", function()
  local x = matrix()
  local function says(key, text) assert.matches(text, fails(get, x, key), 1, true) end

  it("is reported", function()
    says(0, "index: expected a 1-based index, got 0")
    says({1, 0}, "expected a 1-based index, got 0")
    says({{0, 2}}, "expected a 1-based index as the start of a range, got 0")
    says("0:2", "expected a 1-based index as the start of a range, got 0")
    says("0", "expected a 1-based index, got 0")
    says(true, 'index: expected an integer, a range {first, last}, a tensor or a string such '
      .. 'as "2:5, :", got true')
    says(lt.ones(3) == 0, "x:eq(0)")
    says({true}, 'index: expected an integer, a range {first, last}, a tensor or a string such '
      .. 'as "2:5, :", got true')
    says(2.5, "index: expected an integer for an index, got 2.5")
    says({{1.5, 2}}, "expected an integer for a bound of a range, got 1.5")
    says({{1, 3, 0}}, "expected a step of at least 1, got 0")
    says({{1, 3, -1}}, "expected a step of at least 1, got -1")
    says({{1, 2, 3, 4}}, "got a list of 4 entries")
    says(4, "cannot index dim 1 with 4: the index is out of range, the size is 3")
    says(-4, "cannot index dim 1 with -4: the index is out of range, the size is 3")
    says({1, 5}, "cannot index dim 2 with 5: the index is out of range, the size is 4")
    says({1, 1, 1}, "expected at most 2 indices for a tensor of shape {3, 4}, got 3")
    says({"...", "..."}, 'expected at most one "..."')
    says({x = 1}, "a table with a named or missing entry")
    says("1:b", 'separated by commas, got "1:b"')
    says("1,,2", 'separated by commas, got "1,,2"')
    says("2:5 7", 'separated by commas, got "2:5 7"')
    says(print, 'or a string such as "2:5, :", got a function')
    assert.matches('index: expected an integer, a range {first, last}, a tensor or a string '
      .. 'such as "2:5, :", got nil', fails(get, x, nil), 1, true)
    assert.matches('index: expected an integer, a range {first, last}, a tensor or a string '
      .. 'such as "2:5, :", got nil', fails(set, x, nil, 1), 1, true)
  end)

  it("is reported when it is a tensor", function()
    says(lt.ones{3, dtype = "uint8"},
      'expected a tensor of dtype "bool" (a mask) or "int64" (indices), got "uint8"')
    says(lt.ones{3},
      'expected a tensor of dtype "bool" (a mask) or "int64" (indices), got "float32"')
    says(lt.tensor{true, false}, "dim 1 has size 3, the mask's 2")
    says({{}, lt.tensor{true, false}}, "cannot apply a mask of shape {2} to a tensor of shape "
      .. "{3, 4}: dim 2 has size 4, the mask's 2")
    says(lt.tensor{4}, "4")
    says(lt.tensor{0}, "0")
    says(lt.tensor{-4}, "-4")
  end)

  it("changes nothing", function()
    local y = matrix()
    fails(set, y, lt.tensor{1, 2, 4}, 0)
    fails(set, y, {lt.tensor{1, 2}, lt.tensor{1, 9}}, 0)
    fails(set, y, {{1, 2}}, lt.zeros(3))
    fails(set, y, 1, {1, 2})
    assert.same(matrix():totable(), y:totable())
  end)

  it("or value is reported", function()
    assert.matches('index: expected a number, a tensor or a table of numbers as the value, got '
      .. 'the string "a"', fails(set, matrix(), 1, "a"), 1, true)
    assert.matches("index: expected a number, a tensor or a table of numbers as the value, got "
      .. "nil", fails(set, matrix(), 1, nil), 1, true)
    assert.matches("index: ", fails(set, matrix(), 1, 0 / 0), 1, true)
    assert.matches("ragged", fails(set, matrix(), {}, {{1, 2}, {3}}), 1, true)
  end)
end)

describe("meta", function()
  local x = lt.zeros{3, 4, device = "meta"}

  it("is indexed without data", function()
    assert.equal("{4}", shape(x[1]))
    assert.equal("{2, 1}", shape(x[{{1, 2}, {2}}]))
    assert.equal("{5, 4}", shape(x[lt.zeros{5, dtype = "int64", device = "meta"}]))
    x[1] = 0
    x[{{}, {1, 2}}] = lt.zeros{3, 2, device = "meta"}
    x[2] = {1, 2, 3, 4}
  end)

  it("refuses a number that does not fit the dtype, as the CPU does", function()
    for _, device in ipairs{"cpu", "meta"} do
      local bytes = lt.zeros{3, dtype = "uint8", device = device}
      local index = lt.ones{1, dtype = "int64", device = device}
      assert.matches('cannot convert the number -1 to "uint8": it does not fit',
        fails(bytes.scatter, bytes, 1, index, -1), 1, true)
      local message = fails(bytes.index_fill, bytes, 1, index, 300)
      assert.matches('cannot convert the number 300 to "uint8": it does not fit', message, 1, true)
    end
  end)

  it("has no masks", function()
    assert.matches("meta", fails(get, x, x:gt(0)), 1, true)
  end)
end)

describe("scatter", function()
  it("refuses the least and the largest integer as an index", function()
    for _, bad in ipairs{math.mininteger, math.maxinteger, 0, 3} do
      local index = lt.tensor{1, bad}
      for _, name in ipairs{"scatter", "scatter_add", "scatter_", "scatter_add_"} do
        local x = lt.zeros(2)
        assert.matches("index from 1 to 2", fails(x[name], x, 1, index, lt.ones(2)))
        assert.same({0, 0}, x:totable())
      end
    end
  end)
end)

describe("take_along_dim", function()
  it("takes the same with negative indices, and broadcasts", function()
    local x, index = lt.randn(3, 4), lt.randint(1, 4, {3, 2})
    local taken = x:take_along_dim(index, 2)
    for i = 1, 3 do
      for j = 1, 2 do assert.equal(x[{i, index[{i, j}]:item()}]:item(), taken[{i, j}]:item()) end
    end
    assert.is_true(taken:equal(x:take_along_dim(index - 5, -1)))
    local row = index[{{1, 1}}]
    assert.is_true(x:take_along_dim(row, 2):equal(x:take_along_dim(row:expand(3, 2), 2)))
    for _, bad in ipairs{0, 5, -5} do
      assert.matches("index", fails(x.take_along_dim, x, lt.full({3, 1}, bad), 2))
    end
  end)

  it("takes integers of any dtype, and of 0-d tensors", function()
    local x = lt.arange(1, 300)
    assert.equal(300, x:take_along_dim(lt.tensor({-1}, {dtype = "int8"}), 1):item())
    local one = lt.tensor(7.):take_along_dim(lt.tensor(-1), -1)
    assert.equal(0, one.ndim)
    assert.equal(7, one:item())
  end)

  it("names its arguments in errors", function()
    local x, index = lt.randn(2, 3), lt.tensor{{-1}}
    local on_cpu = x:cpu()  -- other devices find the index later, in gather
    for _, bad in ipairs {0, 4, -4} do
      assert.matches(("take_along_dim: expected an index from 1 to 3, or negative from the end, "
        .. "for argument 'indices', got %d"):format(bad),
        fails(x.take_along_dim, on_cpu, lt.tensor({{1, bad}}, {device = "cpu"}), 2), 1, true)
    end
    for _, dim in ipairs {3, -3} do
      assert.matches(("take_along_dim: cannot use dim %d: it is out of range"):format(dim),
        fails(x.take_along_dim, x, index, dim), 1, true)
    end
    assert.matches("take_along_dim: .*integer dtype for argument 'indices', got .bool.",
      fails(x.take_along_dim, x, lt.ones({1, 1}, {dtype = "bool"}), 2))
  end)

  it("has a plan when it is compiled, for negative indices of later calls, too", function()
    local f = function(x, i) return x:take_along_dim(i, 2) end
    local c = lt.compile(f)
    local x = lt.randn(3, 4)
    for _, i in ipairs {lt.tensor{{1}, {2}, {3}}, lt.tensor{{-1}, {2}, {-3}}} do
      assert.is_true(c(x, i):equal(f(x, i)))
      assert.is_nil(c:reason())
    end
  end)
end)

describe("rows selected by an index", function()
  it("are filled and replaced whole, the last of equal indices last", function()
    for _, dtype in ipairs{"uint8", "float16", "float32", "complex64", wide.dtype} do
      for _, width in ipairs{1, 2, 3, 17, 128, 129, 511, 512, 513, 2049} do
        local x = lt.randint(0, 100, {6, width}):to(dtype)
        local index, rows = lt.tensor{2, 5, 2, 6}, lt.randint(0, 100, {4, width}):to(dtype)
        local filled, put = x:index_fill(1, index, 7), x:index_put({index}, rows)
        for i = 1, 6 do
          local row = ({nil, 3, nil, nil, 2, 4})[i]
          assert.is_true(filled[i]:equal(row and lt.full_like(x[i], 7) or x[i]))
          assert.is_true(put[i]:equal(row and rows[row] or x[i]))
        end
        local y = x:t():clone() -- columns
        assert.is_true(y:index_fill(2, index, 7):equal(filled:t()))
        y[{{}, index}] = rows:t()
        assert.is_true(y:equal(put:t()))
        local z = x:reshape(2, 3, width):clone()
        z[{lt.tensor{1, 2, 1, 2}, lt.tensor{2, 2, 2, 3}}] = rows
        assert.is_true(z:reshape(6, width):equal(put))
      end
    end
  end)
end)

-- Against ops of one dim at a time: the selected places of arange, and writes one after the other.
describe("blocks selected by index tensors", function()
  local shapes = {{3, 5, 4}, {7, 40, 30}, {2, 700, 60}, {1, 40000, 2}, {300, 3, 1}, {90, 6, 70}}

  -- An index with repetitions and negative entries.
  local function index_of(size, count)
    local index = lt.arange(count) * 7 % size
    return lt.where((lt.arange(count) % 3):eq(0), index + 1, index - size)
  end

  -- For each way to select: the key, and the places in the flattened tensor, in the key's order.
  local function selections(sizes)
    local n, m, k = table.unpack(sizes)
    local places = lt.arange(n * m * k):view(n, m, k)
    local i, j = index_of(m, 9), index_of(k, 9)
    local function line(index, size) return lt.where(index:lt(0), index + size + 1, index) end
    local a, b, c = line(i, m), line(j, k), line(index_of(n, 9), n)
    return places, {
      {{{}, i}, places:index_select(2, a)},
      {{{}, {}, j}, places:index_select(3, b)},
      {{{}, i:view(3, 3)}, places:index_select(2, a):view(n, 3, 3, k)},
      {{{}, i, j}, places:view(n, m * k):index_select(2, (a - 1) * k + b)},
      {{index_of(n, 9), i}, places:view(n * m, k):index_select(1, (c - 1) * m + a)},
      {{index_of(n, 9), {}, j},
        places:transpose(1, 2):reshape(m, n * k):index_select(2, (c - 1) * k + b):t()},
    }
  end

  it("are read in the order of the index, from views, too", function()
    for _, sizes in ipairs(shapes) do
      local places, list = selections(sizes)
      for _, dtype in ipairs{"int8", "bfloat16", "float32", "int64", "complex64"} do
        local x = (places % 97):to(dtype)
        local wider = lt.stack({x, x}, 3):select(3, 1) -- dense rows, apart
        local across = x:permute(2, 1, 3):contiguous():permute(2, 1, 3)
        for number, case in ipairs(list) do
          local expected = (case[2] % 97):to(dtype)
          for _, t in ipairs{x, wider, across, x:permute(3, 1, 2):contiguous():permute(2, 3, 1)} do
            assert.is_true(expected:equal(t[case[1]]), dtype .. number)
          end
        end
      end
    end
  end)

  it("are written and added to in the order of the index", function()
    for _, sizes in ipairs(shapes) do
      local places, list = selections(sizes)
      for _, dtype in ipairs{"int8", "bfloat16", "float32", "int64", "complex64", wide.dtype} do
        local x = (places % 97):to(dtype)
        for number, case in ipairs(list) do
          local at, what = case[2]:reshape(-1), dtype .. number
          local values = (lt.arange(at:numel()):view(case[2].shape) % 5):to(dtype)
          if dtype == "complex64" and values.is_cpu then values = values * lt.complex(1, 2) end
          local key = case[1]
          for i = 1, #key do key[i] = lt.is_tensor(key[i]) and key[i] end
          local put, filled, expected = x:clone(), x:clone(), x:clone():view(-1)
          put:index_put_(key, values)
          expected = expected:scatter(1, at, values:reshape(-1))
          assert.is_true(expected:view(sizes):equal(put), what)
          filled:index_put_(key, values:new_ones{})
          assert.is_true(x:view(-1):scatter(1, at, 1):view(sizes):equal(filled), what)
          local sums = x:view(-1):index_add(1, at, values:reshape(-1)):view(sizes)
          assert.is_true(sums:equal(x:index_put(key, values, true)), what)
          local ones = x:view(-1):index_add(1, at, lt.ones_like(values:reshape(-1))):view(sizes)
          assert.is_true(ones:equal(x:index_put(key, values:new_ones{}, true)), what)
        end
      end
    end
  end)

  it("are written in place, and only they", function()
    local x = lt.arange(6.)
    assert.equal(x, x:index_put_({lt.arange(5)}, x[{{2, 6}}])) -- from its own elements
    assert.same({2, 3, 4, 5, 6, 6}, x:totable())
    x:index_put_({x:gt(5)}, lt.tensor(-1.), true)
    assert.same({2, 3, 4, 5, 5, 5}, x:totable())
    x[{{2, 3}}]:index_put_({}, lt.tensor{7., 8.})
    x[{{4, 6}}]:index_put_({}, lt.tensor(1.), true)
    assert.same({2, 7, 8, 6, 6, 6}, x:totable())
    local w = lt.ones{3, requires_grad = true}
    local y = w * 2
    y:index_put_({lt.tensor{1, 2}}, lt.tensor{5., 6.})
    y:sum():backward()
    assert.same({0, 0, 2}, w.grad:totable())
    local ok, message = pcall(w.index_put_, w, {lt.tensor{1}}, lt.ones(1))
    assert.is_false(ok)
    assert.matches("index_put_: cannot change a leaf that requires grad", tostring(message))
  end)

  it("are put in place, and only they", function()
    local x = lt.arange(6.):view(2, 3)
    assert.equal(x, x:put_(lt.tensor{{6, 1}, {6, -5}}, lt.tensor{{7., 8.}, {9., -1.}}))
    assert.same({{8, -1, 3}, {4, 5, 9}}, x:totable())
    x:put_(lt.tensor{1, 1}, lt.tensor{0.5, 0.25}, true)
    x:t():put_(lt.tensor{2}, lt.tensor{-3.}) -- not contiguous
    assert.same({{8.75, -1, 3}, {-3, 5, 9}}, x:totable())
    if x.is_cpu then -- others report an index later
      local ok, message = pcall(x.put_, x, lt.tensor{1, 7}, lt.tensor{5., 6.})
      assert.is_false(ok)
      assert.matches(": put_: expected an index from 1 to 6", tostring(message))
    end
    assert.is_false(pcall(x.put_, x, lt.tensor{1}, lt.tensor{1}))
    assert.same({{8.75, -1, 3}, {-3, 5, 9}}, x:totable())
    local w = lt.ones{2, 2, requires_grad = true}
    local y = w * 2
    y:put_(lt.tensor{4}, lt.tensor{5.})
    y:sum():backward()
    assert.same({{2, 2}, {2, 0}}, w.grad:totable())
  end)
end)

describe("reductions by index", function()
  local at, values = lt.tensor{{1, 2}, {2, 1}, {2, 1}}, lt.tensor{{3., 9.}, {-5., 4.}, {1., 7.}}

  it("change self in place", function()
    for name, want in pairs{
      sum = {{4, 12}, {-3, 10}}, amax = {{3, 7}, {1, 9}}, amin = {{1, 1}, {-5, 1}},
      prod = {{3, 28}, {-5, 9}}, mean = {{2, 4}, {-1, 5}},
    } do
      local x = lt.ones(2, 2)
      assert.equal(x, x:scatter_reduce_(1, at, values, name))
      assert.same(want, x:totable())
      local other = lt.full({2, 2}, 100.):scatter_reduce_(1, at, values, name, false)
      assert.same(lt.full({2, 2}, 100.):scatter_reduce(1, at, values, name, false):totable(),
        other:totable())
    end
    local x = lt.ones(2, 2)
    assert.equal(x, x:index_reduce_(-2, lt.tensor{2, 2, 2}, values, "amax"))
    assert.same({{1, 1}, {3, 9}}, x:totable())
    assert.equal(-4, lt.tensor(-4.):index_reduce_(1, lt.tensor{1}, lt.tensor(2.), "amin"):item())
  end)

  it("change nothing when they fail", function()
    local x = lt.ones(2, 2)
    for name in pairs{sum = true, amax = true, prod = true, mean = true} do
      assert.is_false(pcall(x.scatter_reduce_, x, 1, at, values:long(), name, false))
      if x.is_cpu then -- others report an index later
        assert.is_false(pcall(x.scatter_reduce_, x, 1, lt.tensor{{1, 1}, {3, 1}}, values, name))
        assert.is_false(pcall(x.index_reduce_, x, 1, lt.tensor{1, 3, 1}, values, "prod"))
      end
    end
    local ok, message = pcall(x.index_reduce_, x, 1, lt.tensor{1}, values, "prod")
    assert.is_false(ok)
    assert.matches("index_reduce_: expected one index", tostring(message))
    assert.same({{1, 1}, {1, 1}}, x:totable())
  end)

  it("in place have the gradients of those out of place", function()
    for _, name in ipairs{"sum", "amax", "amin", "prod", "mean"} do
      local grads = {}
      for _, method in ipairs{"scatter_reduce", "scatter_reduce_"} do
        local w = lt.tensor({{1., 2.}, {3., 4.}}, {requires_grad = true})
        local v = values:clone():requires_grad_()
        local y = w * 2
        local z = y[method](y, 1, at, v, name)
        ;(z * lt.tensor{{1., 2.}, {3., 5.}}):sum():backward()
        grads[#grads + 1] = {w.grad:totable(), v.grad:totable()}
      end
      assert.same(grads[1], grads[2])
    end
  end)
end)

describe("rows", function()
  -- By a product with a matrix of ones at the places, which is exact for these numbers.
  it("are added to others on one thread or several", function()
    local threads, count = lt.get_num_threads(), lt.ones(1).is_cpu and 3000 or 100
    for _, width in ipairs{1, 3, 4, 16, 40} do
      for _, most in ipairs{300, 3} do -- spread among the rows, or few of them
        local at = lt.randint(1, most, {count})
        local ones = lt.eye(300):index_select(1, at)
        for _, dtype in ipairs{"float32", wide.dtype, "int64", "int32", "float16"} do
          local source = lt.randint(-1, 2, {count, width}):to(dtype)
          local sums = ones:t():matmul(source:float()) * 2
          local x = lt.randint(-9, 9, {300, width}):to(dtype)
          local want = (x:float() + sums):to(dtype)
          for n = 1, 2 do
            lt.set_num_threads(n)
            assert.is_true(x:index_add(1, at, source, 2):equal(want))
            local y = x:clone()
            y:index_add_(1, at, source, 2)
            assert.is_true(y:equal(want))
          end
        end
      end
    end
    lt.set_num_threads(threads)
  end)
end)

describe("bags of equal sizes", function()
  it("are reduced row by row", function()
    local w = lt.tensor{{1., -2.}, {4., 8.}, {0.5, 3.}}
    local i, bag = lt.tensor{{1, 2}, {3, 3}, {2, 1}}, lt.nn.functional.embedding_bag
    assert.same({{5, 6}, {1, 6}, {5, 6}}, bag(i, w, {mode = "sum"}):totable())
    assert.same({{2.5, 3}, {0.5, 3}, {2.5, 3}}, bag(i, w):totable())
    assert.same({{4, 8}, {0.5, 3}, {4, 8}}, bag(i, w, {mode = "max"}):totable())
    local factors = lt.tensor{{1., 0.5}, {2., 2.}, {0., -1.}}
    for _, dtype in ipairs{"float32", "float16", "bfloat16"} do
      local sums = bag(i, w:to(dtype), {mode = "sum", per_sample_weights = factors:to(dtype)})
      assert.equal(dtype, sums.dtype)
      assert.same({{3, 2}, {2, 12}, {-1, 2}}, sums:totable())
    end
    assert.same({{4, 8}, {1, 6}, {4, 8}}, bag(i, w, {mode = "sum", padding_idx = 1}):totable())
    local unused = lt.tensor{{math.huge, 0 / 0}, {2, 4}, {8, 16}}
    assert.same({{2, 4}, {8, 16}, {2, 4}}, bag(i, unused, {padding_idx = 1}):totable())
    unused:requires_grad_(true)
    local scales = lt.tensor{{math.huge, 2}, {3, 4}, {5, 0 / 0}}:requires_grad_(true)
    bag(i, unused, {mode = "sum", padding_idx = 1, per_sample_weights = scales}):sum():backward()
    assert.same({{0, 0}, {7, 7}, {7, 7}}, unused.grad:totable())
    assert.same({{0, 6}, {24, 24}, {6, 0}}, scales.grad:totable())
    local numbers = lt.tensor{{1, -2}, {4, 8}, {0, 3}}
    assert.equal("int32", bag(i, numbers:int(), {mode = "sum"}).dtype)
    assert.same({{2.5, 3}, {0, 3}, {2.5, 3}}, bag(i, numbers):totable())
    for _, mode in ipairs{"sum", "mean", "max"} do
      local none = bag(lt.zeros({2, 0}, {dtype = "int64"}), w, {mode = mode})
      assert.same({{0, 0}, {0, 0}}, none:totable())
      assert.same({0, 2}, {table.unpack(bag(lt.zeros({0, 2}, {dtype = "int64"}), w,
        {mode = mode}).shape)})
      assert.same({3, 0}, {table.unpack(bag(i, w:narrow(2, 1, 0), {mode = mode}).shape)})
    end
  end)
end)
