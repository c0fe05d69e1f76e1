--- Ops that only move elements, or generate numbers from their indices, against loops in Lua: every
--- size of an element, sizes around the ends of vectors and tiles, and several threads.

local devices = require "device_support"
devices.elsewhere("core/moved_elements", _ENV) -- and here
local accelerated = os.getenv "LUTRA_EMULATE" or os.getenv "LUTRA_TEST_GPU"
local device = accelerated and "cuda" or "cpu"

local lt = require "lutra"

local DTYPES = {"uint8", "int16", "float32", "int64", "complex128"}
local SHAPES = {{1, 1}, {3, 5}, {9, 17}, {33, 8}, {2, 71}, {70, 3}, {64, 65}}

-- A matrix of different small numbers, dense or the transpose of a dense one.
local function matrix(n, m, dtype, transposed)
  local x = lt.arange(n * m, {device = device}):remainder(127)
  x = transposed and x:view(m, n):t() or x:view(n, m)
  return x:to(dtype)
end

-- Calls f(x, values, n, m) for every dtype, shape and layout.
local function each_matrix(f)
  for _, dtype in ipairs(DTYPES) do
    for _, shape in ipairs(SHAPES) do
      for _, transposed in ipairs{false, true} do
        local x = matrix(shape[1], shape[2], dtype, transposed)
        f(x, (dtype == "complex128" and x.real or x):totable(), shape[1], shape[2])
      end
    end
  end
end

local function numbers(x)
  return (x:is_complex() and x.real or x):totable()
end

-- The matrix whose element at (i, j) is that of `values` at place(i, j).
local function built(values, n, m, place)
  local rows = {}
  for i = 1, n do
    rows[i] = {}
    for j = 1, m do
      local a, b = place(i, j)
      rows[i][j] = values[a][b]
    end
  end
  return rows
end

describe("flip", function()
  it("reverses the order along dims", function()
    each_matrix(function(x, values, n, m)
      assert.same(built(values, n, m, function(i, j) return n + 1 - i, j end), numbers(x:flip(1)))
      assert.same(built(values, n, m, function(i, j) return i, m + 1 - j end), numbers(x:flip(2)))
      assert.same(built(values, n, m, function(i, j) return n + 1 - i, m + 1 - j end),
        numbers(x:flip{1, 2}))
    end)
  end)

  it("reverses the order of a transpose along dims", function()
    each_matrix(function(x, values, n, m)
      local y = x:t()
      assert.same(built(values, m, n, function(i, j) return j, m + 1 - i end), numbers(y:flip(1)))
      assert.same(built(values, m, n, function(i, j) return n + 1 - j, i end), numbers(y:flip(2)))
      assert.same(built(values, m, n, function(i, j) return n + 1 - j, m + 1 - i end),
        numbers(y:flip{1, 2}))
    end)
  end)
end)

describe("roll", function()
  it("leaves a tensor of one element and no dims as it is", function()
    for shift = -2, 2 do
      assert.equal(7, lt.tensor(7):roll(shift, 1):item())
      assert.equal(7, lt.tensor(7):roll({shift, 1}, {1, -1}):item())
      assert.equal(7, lt.tensor(7):roll(shift):item())
    end
    assert.equal(7, lt.tensor(7):flip(1):item())
  end)

  it("moves many elements by a few bytes", function()
    for _, dtype in ipairs{"uint8", "float32", "float64"} do
      local x = lt.arange(10007, {device = device}):remainder(251):to(dtype)
      for _, shift in ipairs{1, 15, 16, 5000} do
        local wanted = lt.cat{x[{{10008 - shift, 10007}}], x[{{1, 10007 - shift}}]}
        assert.is_true(lt.equal(x:roll(shift), wanted))
        local y = x:roll(shift)
        assert.equal(x[10007]:item(), y[shift]:item())
        assert.equal(x[1]:item(), y[shift + 1]:item())
        assert.equal(x[10007 - shift]:item(), y[10007]:item())
      end
    end
  end)

  it("moves elements along a dim, and along the flattened tensor", function()
    each_matrix(function(x, values, n, m)
      for _, shift in ipairs{0, 1, -2, 40} do
        assert.same(built(values, n, m, function(i, j) return (i - 1 - shift) % n + 1, j end),
          numbers(x:roll(shift, 1)))
        assert.same(built(values, n, m, function(i, j) return i, (j - 1 - shift) % m + 1 end),
          numbers(x:roll(shift, 2)))
        assert.same(built(values, n, m, function(i, j)
          local k = ((i - 1) * m + j - 1 - shift) % (n * m)
          return k // m + 1, k % m + 1
        end), numbers(x:roll(shift)))
      end
    end)
  end)
end)

describe("cat of columns", function()
  local WIDTHS = {{1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {1, 1, 1, 1, 1}, {1, 2}, {3, 1, 2}, {0, 1, 1},
    {16, 1}, {70, 3}, lt.ones(17):int():tolist(), (lt.arange(40):int() % 4):tolist()}

  it("puts every input at its place", function()
    for _, dtype in ipairs(DTYPES) do
      for _, widths in ipairs(WIDTHS) do
        for _, n in ipairs{1, 2, 9, 70, 1201} do
          local inputs, expected = {}, {}
          for i = 1, n do expected[i] = {} end
          for k, width in ipairs(widths) do
            inputs[k] = matrix(n, width, dtype, false) + k
            if width > 0 then
              for i, row in ipairs(numbers(inputs[k])) do
                table.move(row, 1, width, #expected[i] + 1, expected[i])
              end
            end
          end
          assert.same(expected, numbers(lt.cat(inputs, 2)))
        end
      end
    end
  end)

  it("is the same for views, more threads and stack", function()
    local x = lt.arange(3 * 70001, {device = device}):view(3, 70001)
    for k = 1, 3 do
      local columns = {}
      for j = 1, k do columns[j] = x[j] end
      assert.is_true(lt.equal(lt.stack(columns, -1), x[{{1, k}}]:t()))
    end
    local rows = lt.arange(300 * 701, {device = device}):view(300, 701)
    assert.is_true(lt.equal(lt.stack(rows:unbind(), 2), rows:t()))
    local all = x:t():contiguous()
    assert.is_true(lt.equal(lt.cat({all[{{}, {1, 2}}], all[{{}, {3, 3}}]}, 2), all))
    assert.is_true(lt.equal(lt.cat({all[{{2, 9}}], all[{{2, 9}}]:long()}, 2):long(),
      all:long()[{{2, 9}}]:tile{1, 2}))
  end)
end)

describe("copies and casts of a transpose", function()
  it("keep every element in its place", function()
    each_matrix(function(x, values, n, m)
      local t = built(values, m, n, function(i, j) return j, i end)
      assert.same(t, numbers(x:t():contiguous()))
      assert.same(t, numbers(x:t():clone()))
      if not x:is_complex() then assert.same(t, numbers(x:t():double())) end
    end)
  end)

  it("are the same for more threads and large tensors", function()
    local x = lt.arange(3 * 257 * 130, {device = device}):view(3, 257, 130)
    local y = x:permute(3, 1, 2):contiguous()
    local i = lt.arange(130, {device = device}):view(130, 1, 1)
    local j = lt.arange(3 * 257, {device = device}):view(1, 3, 257)
    assert.is_true(lt.equal(y, i + (j - 1) * 130))
    assert.is_true(lt.equal(y:flip{1, 3}:flip{1, 3}, y))
    assert.is_true(lt.equal(y:roll({5, -7}, {1, 3}):roll({-5, 7}, {1, 3}), y))
    assert.is_true(lt.equal(lt.cat({y, y}, 3):chunk(2, 3)[2], y))
  end)
end)

describe("numbers generated from an index", function()
  it("are those of the formula", function()
    for _, n in ipairs{1, 2, 511, 512, 513, 1500, 70000} do
      for _, dtype in ipairs{"float32", "float64", "int32", "int64", "bfloat16"} do
        if not (dtype == "bfloat16" and n > 1500) then
          local k = n < 3000 and 1 or 997
          local x = lt.arange(-3, n - 4, {dtype = dtype, device = device}):double():totable()
          assert.equal(n, #x)
          for i = 1, n, k do
            assert.equal(lt.tensor(i - 4, {dtype = dtype}):item() + 0.0, x[i])
          end
        end
      end
      local x = lt.linspace(-1, 2, n, {dtype = "float64", device = device}):totable()
      local step = n > 1 and 3 / (n - 1) or 0
      for i = 1, n do
        local expected = i - 1 < (n + 1) // 2 and -1 + (i - 1) * step or 2 - (n - i) * step
        if x[i] ~= expected then assert.equal(expected, x[i]) end
      end
    end
  end)

  it("form an identity matrix", function()
    for _, shape in ipairs{{1, 1}, {3, 5}, {5, 3}, {300, 301}, {0, 3}} do
      local x = lt.eye(shape[1], shape[2], {device = device})
      assert.equal(math.min(shape[1], shape[2]), x:sum():item())
      assert.equal(math.min(shape[1], shape[2]), x:diagonal():sum():item())
    end
  end)
end)

describe("copies of permuted tensors", function()
  it("keep every element in its place, of few columns, too", function()
    for _, dtype in ipairs(DTYPES) do
      for columns = 1, 5 do
        for _, rows in ipairs{1, 2, 7, 8, 33, 70} do
          local x = matrix(columns, rows, dtype)
          local values = numbers(x)
          assert.same(built(values, rows, columns, function(i, j) return j, i end),
            numbers(x:t():contiguous()))
        end
      end
    end
  end)

  it("keep their place in every tile of several dims", function()
    for _, sizes in ipairs{{3, 2, 2, 5, 7}, {2, 3, 3, 4, 9}, {1, 40, 2, 2, 33}} do
      local n = 1
      for _, size in ipairs(sizes) do n = n * size end
      local x = lt.arange(n, {device = device}):reshape(sizes):permute(1, 4, 2, 5, 3)
      local values, place = x:contiguous():flatten():totable(), 0
      local wrong = 0
      for a = 0, sizes[1] - 1 do
        for b = 0, sizes[4] - 1 do
          for c = 0, sizes[2] - 1 do
            for d = 0, sizes[5] - 1 do
              for e = 0, sizes[3] - 1 do
                local at = (((a * sizes[2] + c) * sizes[3] + e) * sizes[4] + b) * sizes[5] + d
                place = place + 1
                if values[place] ~= at + 1 then wrong = wrong + 1 end
              end
            end
          end
        end
      end
      assert.equal(0, wrong)
    end
  end)
end)

describe("writing by index", function()
  -- The values after those of `written`, by rows, replace the rows or columns at `index`.
  local function replaced(values, n, m, dim, index, written)
    local rows = built(values, n, m, function(i, j) return i, j end)
    for k, at in ipairs(index) do
      for other = 1, dim == 1 and m or n do
        local i, j = dim == 1 and at or other, dim == 1 and other or at
        rows[i][j] = written(dim == 1 and k or other, dim == 1 and other or k)
      end
    end
    return rows
  end

  it("copies and fills rows and columns, and the last of repeated indices remains", function()
    each_matrix(function(x, values, n, m)
      for dim = 1, 2 do
        local last = dim == 1 and n or m
        local index = {last, 1, (last + 1) // 2, last}
        local at = lt.tensor(index, {device = device})
        local rows, columns = dim == 1 and 4 or n, dim == 1 and m or 4
        local source = matrix(rows, columns, x.dtype, false)
        local from = numbers(source)
        assert.same(replaced(values, n, m, dim, index, function(i, j) return from[i][j] end),
          numbers(x:index_copy(dim, at, source)))
        assert.same(replaced(values, n, m, dim, index, function() return 7 end),
          numbers(x:index_fill(dim, at, 7)))
      end
    end)
  end)

  it("copies and fills columns on several threads", function()
    local x, index = matrix(300, 301, "float32", false), lt.randperm(301, {device = device})
    local rows, at = x:clone(), index:totable()
    for k, column in ipairs(at) do rows[{{}, column}] = x[{{}, k}] end
    assert.is_true(x:index_copy(2, index, x):equal(rows))
    assert.is_true(x:index_fill(2, index, 3):equal(lt.full_like(x, 3)))
  end)

  it("puts and adds single elements of a vector, in the order of the index", function()
    for _, dtype in ipairs{"uint8", "int16", "float16", "float32", "float64", "int64",
      "complex128"} do
      if not (device == "cuda" and dtype == "float16") then
        local x = lt.zeros(3, {dtype = dtype, device = device})
        local at = lt.tensor({3, 1, 3, -3}, {device = device})
        local values = lt.tensor({1, 2, 3, 4}, {device = device}):to(dtype)
        assert.same({4, 0, 3}, numbers(x:index_put({at}, values)))
        assert.same({6, 0, 4}, numbers(x:index_put({at}, values, true)))
        assert.same({2, 0, 2}, numbers(x:index_put({at}, values[1], true)))
      end
    end
    local n = 100000
    local at = lt.randint(1, 7, {n}, {device = device})
    local sums = lt.zeros(7, {dtype = "float64", device = device}):index_put({at},
      lt.ones(n, {dtype = "float64", device = device}), true)
    assert.same(lt.bincount(at, {minlength = 7}):totable(), sums:long():totable())
  end)
end)

describe("joined and selected elements", function()
  it("block_diag: every block in its place, 0 elsewhere", function()
    for _, dtype in ipairs(DTYPES) do
      for _, gradient in ipairs{false, dtype == "float32"} do
        local a, b, c = matrix(2, 3, dtype), matrix(4, 1, dtype, true), matrix(0, 2, dtype)
        if gradient then a:requires_grad_() end
        local x = lt.block_diag(a, c, b, a)
        assert.same({8, 9}, x.shape)
        local expected = lt.zeros({8, 9}, {dtype = dtype, device = device})
        for i = 1, 2 do
          for j = 1, 3 do
            expected[{i, j}] = a[{i, j}]
            expected[{i + 6, j + 6}] = a[{i, j}]
          end
        end
        for i = 1, 4 do expected[{i + 2, 6}] = b[{i, 1}] end
        assert.same(numbers(expected), numbers(x))
      end
    end
    assert.equal("float64", lt.block_diag(lt.ones(1, 1), lt.ones(2, 1, {dtype = "float64"})).dtype)
  end)

  it("masked_select: those whose mask is true, on several threads", function()
    for _, dtype in ipairs(DTYPES) do
      for _, n in ipairs{1, 63, 1000, 100001} do
        local x = matrix(1, n, dtype):view(n)
        local mask = lt.arange(n, {device = device}):mul(7):remainder(5):lt(2)
        local expected, at = {}, 0
        local values, taken = numbers(x), mask:totable()
        for i = 1, n do
          if taken[i] then
            at = at + 1
            expected[at] = values[i]
          end
        end
        assert.same(expected, numbers(x:masked_select(mask)))
      end
    end
  end)

  it("unique_consecutive: those that differ from the one before", function()
    for _, values in ipairs{{}, {3}, {1, 1}, {1, 1, 2, 2, 2, 1, 5, 5}} do
      local expected = {}
      for i, v in ipairs(values) do
        if v ~= values[i - 1] then expected[#expected + 1] = v end
      end
      local x = lt.tensor(values, {dtype = "float32", device = device})
      local y = x:unique_consecutive()
      assert.same(expected, y:totable())
      y:fill_(0)
      assert.same(values, x:totable())
    end
  end)
end)
