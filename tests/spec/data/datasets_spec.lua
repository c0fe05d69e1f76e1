-- Datasets: streams, concatenation, chains, stacks, and the names of PyTorch's methods.

local lt = require "lutra"
local support = require "nn_support"

local data = lt.data
local fails = support.fails

local Squares = data.Dataset:extend "Squares"
function Squares:init(n) self.n = n end
function Squares:__len() return self.n end
function Squares:get(i) return self:check_position(i) ^ 2 end

local Count = data.IterableDataset:extend "Count"
function Count:init(first, last) self.first, self.last = first, last end
function Count:__len() return self.last - self.first + 1 end
function Count:iter()
  local i = self.first - 1
  return function()
    i = i + 1
    if i <= self.last then return i, -i end
  end
end

local function all(step, state, control)
  local list = {}
  for x in step, state, control do list[#list + 1] = x end
  return list
end

describe("a dataset with PyTorch's method names", function()
  it("is read by __getitem__ and __len__", function()
    local Named = data.Dataset:extend "Named"
    function Named.__getitem__(_, i) return i * 10 end
    function Named.__len__() return 3 end
    local set = Named()
    assert.equal(3, #set)
    assert.equal(20, set:get(2))
    assert.same({30}, set[3])
    local batch = data.DataLoader(set, {batch_size = 3}):iter()()
    assert.same({10, 20, 30}, batch:totable())
  end)
end)

describe("a dataset without its methods", function()
  it("says which methods to define", function()
    local Bare = data.Dataset:extend "Bare"
    fails("Bare: cannot read a sample: the class has no method get\nhint: function Bare:get(i)",
      function() Bare():get(1) end)
    fails("Bare: cannot count the samples: the class has no method __len\n"
      .. "hint: function Bare:__len()", function() local _ = #Bare() end)
  end)
end)

describe("data.IterableDataset", function()
  it("is a stream of samples", function()
    assert.same({3, 4, 5}, all(Count(3, 5):iter()))
    local Bare = data.IterableDataset:extend "Bare"
    fails("Bare: cannot iterate over the samples", function() Bare():iter() end)
    fails("Bare: cannot count the samples", function() local _ = #Bare() end)
    local Named = data.IterableDataset:extend "Named"
    function Named.__iter__() return Count(1, 2):iter() end
    assert.same({1, 2}, all(Named():iter()))
  end)
end)

describe("data.ConcatDataset", function()
  it("has the samples of all datasets in turn", function()
    local set = data.ConcatDataset{Squares(2), data.TensorDataset(lt.tensor{7, 8, 9}), {5, 6}}
    assert.equal(7, #set)
    assert.same({2, 5, 7}, set.cumulative_sizes)
    local values = {}
    for i = 1, 7 do
      local x = set:get(i)
      values[i] = lt.is_tensor(x) and x:item() or x
    end
    assert.same({1.0, 4.0, 7, 8, 9, 5, 6}, values)
    assert.equal(6, set:get(-1))
    fails("expected an index from 1 to 7", function() set:get(8) end)
  end)

  it("skips empty datasets", function()
    local set = data.ConcatDataset{Squares(0), Squares(1), Squares(0), Squares(2)}
    assert.same({1.0, 1.0, 4.0}, {set:get(1), set:get(2), set:get(3)})
  end)

  it("is the sum of two datasets", function()
    assert.equal(5, #(Squares(2) + Squares(3)))
    assert.equal("ConcatDataset of 5 samples", tostring(Squares(2) + Squares(3)))
  end)

  it("refuses streams and nothing", function()
    fails("expected at least one dataset", function() local _ = data.ConcatDataset({}) end)
    fails({"datasets[2]", "iterable dataset", "ChainDataset"},
      function() local _ = data.ConcatDataset({Squares(1), Count(1, 2)}) end)
    fails("expected a dataset for argument 'datasets[1]', got 3",
      function() local _ = data.ConcatDataset({3}) end)
  end)
end)

describe("data.ChainDataset", function()
  it("has the samples of all streams in turn", function()
    local set = data.ChainDataset{Count(1, 2), Count(5, 4), Count(7, 8)}
    assert.same({1, 2, 7, 8}, all(set:iter()))
    assert.same({1, 2, 7, 8}, all(set:iter()))
    assert.equal(4, #set)
    assert.same({1, 2, 3}, all((Count(1, 2) + Count(3, 3)):iter()))
    fails("expected an iterable dataset for argument 'datasets[1]'",
      function() local _ = data.ChainDataset({Squares(2)}) end)
  end)
end)

describe("data.StackDataset", function()
  it("combines samples by position", function()
    local set = data.StackDataset(Squares(3), data.TensorDataset(lt.tensor{7, 8, 9}),
      {"a", "b", "c"})
    assert.equal(3, #set)
    local a, b, c = set:get(2)
    assert.same({4.0, 8, "b"}, {a, b:item(), c})
    local x, y, z = data.DataLoader(set, {batch_size = 2}):iter()()
    assert.same({{1.0, 4.0}, {7, 8}, {"a", "b"}}, {x:totable(), y:totable(), z})
  end)

  it("combines samples by name", function()
    local set = data.StackDataset{square = Squares(3), text = {"a", "b", "c"}}
    assert.same({square = 9.0, text = "c"}, set:get(3))
    local batch = data.DataLoader(set, {batch_size = 3}):iter()()
    assert.same({"a", "b", "c"}, batch.text)
    assert.same({1.0, 4.0, 9.0}, batch.square:totable())
  end)

  it("makes a list of a sample of several values", function()
    local set = data.StackDataset(data.TensorDataset(lt.arange(2), lt.arange(2)), {5, 6})
    local pair, n = set:get(2)
    assert.same({2, 2, 6}, {pair[1]:item(), pair[2]:item(), n})
  end)

  it("refuses other lengths, both forms, and nothing", function()
    fails("of the same length, got 2 and 3",
      function() local _ = data.StackDataset(Squares(2), Squares(3)) end)
    fails("at least one dataset", function() local _ = data.StackDataset() end)
    fails("by position or by name, got both",
      function() local _ = data.StackDataset{Squares(2), b = Squares(2)} end)
    fails("expected a dataset", function() local _ = data.StackDataset(Squares(2), 3) end)
  end)
end)

describe("data.random_split", function()
  it("rounds fractions as PyTorch does: the first parts get the rest", function()
    local function lengths(n, fractions)
      local list = {}
      for i, part in ipairs(data.random_split(Squares(n), fractions)) do list[i] = #part end
      return list
    end
    -- torch.utils.data.random_split(range(n), fractions), PyTorch 2.15
    assert.same({34, 33, 33}, lengths(100, {1 / 3, 1 / 3, 1 / 3}))
    assert.same({4, 3, 3}, lengths(10, {0.34, 0.33, 0.33}))
    assert.same({9, 9, 12}, lengths(30, {0.3, 0.3, 0.4}))
    assert.same({2, 1, 0}, lengths(3, {0.5, 0.5, 0.0}))
  end)

  it("accepts lists and tensors", function()
    local parts = data.random_split({"a", "b", "c"}, {1, 2}, {generator = lt.Generator(1)})
    assert.equal(2, #parts[2])
    local part = data.Subset(lt.tensor{5, 6, 7}, lt.tensor{3, 1})
    assert.equal(7, part:get(1):item())
  end)
end)

describe("lt.utils.data", function()
  it("is lt.data", function()
    assert.equal(data, lt.utils.data)
    fails('lt.utils has no field "dato"', function() local _ = lt.utils.dato end)
  end)
end)
