-- DataLoader: PyTorch's options and forms of iteration, without workers.

local lt = require "lutra"
local support = require "nn_support"

local data = lt.data
local fails = support.fails

local Pairs = data.Dataset:extend "Pairs" -- sample i is i and "i"
function Pairs:init(n) self.n = n end
function Pairs:__len() return self.n end
function Pairs.get(_, i) return i, tostring(i) end

local Stream = data.IterableDataset:extend "Stream"
function Stream:init(n) self.n = n end
function Stream:iter()
  local i = 0
  return function()
    i = i + 1
    if i <= self.n then return i end
  end
end

local function lists(loader)
  local list = {}
  for x in loader:iter() do list[#list + 1] = lt.is_tensor(x) and x:totable() or x end
  return list
end

describe("a loader", function()
  it("takes its options in PyTorch's order", function()
    local collate = function(samples) return #samples end
    local loader = data.DataLoader(Pairs(7), 3, nil, {1, 2, 3, 4}, nil, 0, collate, false, true)
    assert.same({3}, lists(loader))
    assert.is_true(loader.drop_last)
    assert.equal(collate, loader.collate_fn)
    assert.equal(0, loader.timeout)
    assert.is_true(loader.in_order)
  end)

  it("refuses batches of indices that are no lists", function()
    for _, set in ipairs{Pairs(3), {1, 2, 3}, lt.rand(3), data.TensorDataset(lt.rand(3))} do
      local step = data.DataLoader(set, {batch_sampler = {1, 2}}):iter()
      fails("expected a list of indices for each batch from argument 'batch_sampler', got 1",
        function() step() end)
    end
  end)

  it("refuses datasets and samplers without a length", function()
    local endless = setmetatable({}, {__index = {iter = function() return Stream(3):iter() end}})
    local bare = setmetatable({}, {__index = {get = function(_, i) return i end}})
    fails("DataLoader: cannot count the samples of argument 'dataset': it has no method __len",
      function() return #data.DataLoader(endless) end)
    fails("cannot count the samples of argument 'data_source': it has no method __len",
      function() return data.DataLoader(bare):iter()() end)
    fails("DataLoader: cannot count the batches: the sampler has no method __len",
      function() return #data.DataLoader(Pairs(3), {sampler = endless, batch_size = false}) end)
    assert.same({{1}, {2}, {3}}, lists(data.DataLoader(endless)))
  end)

  it("loops by call and by pairs", function()
    local loader = data.DataLoader(Pairs(5), {batch_size = 2})
    for _ = 1, 2 do
      local seen = {}
      for x, texts in loader do seen[#seen + 1] = {x:totable(), texts} end
      assert.same({{{1, 2}, {"1", "2"}}, {{3, 4}, {"3", "4"}}, {{5}, {"5"}}}, seen)
      loader() -- the next loop begins anew
    end
    local count = 0
    for i, x, texts in pairs(loader) do
      count = count + 1
      assert.equal(count, i)
      assert.equal(#x, #texts)
    end
    assert.equal(3, count)
  end)

  it("without batches gives samples", function()
    local loader = data.DataLoader(Pairs(3), {batch_size = false})
    assert.equal(3, #loader)
    local seen = {}
    for i, text in loader:iter() do seen[#seen + 1] = {i, text} end
    assert.same({{1, "1"}, {2, "2"}, {3, "3"}}, seen)
    assert.same({4, 8}, lists(data.DataLoader({2, 4}, {batch_size = false,
      collate_fn = function(x) return 2 * x end})))
  end)

  it("reads lists and tensors", function()
    assert.same({{1, 2}, {3}}, lists(data.DataLoader({1, 2, 3}, {batch_size = 2})))
    assert.same({{1, 2}, {3, 4}}, lists(data.DataLoader(lt.arange(4), {batch_size = 2})))
    local x, y = data.DataLoader({{lt.ones(2), 5}, {lt.zeros(2), 6}}, {batch_size = 2}):iter()()
    assert.same({{{1, 1}, {0, 0}}, {5, 6}}, {x:totable(), y:totable()})
    fails("expected an index of the list of 2 samples, got 3",
      function() lists(data.DataLoader({1, 2}, {sampler = {3}})) end)
  end)

  it("gives a collate_fn single values as they are, several as a list", function()
    local function first(set, collate)
      return data.DataLoader(set, {batch_size = 2, collate_fn = collate}):iter()()
    end
    assert.same({{1, 1}, {2, 2}}, first(lt.tensor{{1, 1}, {2, 2}}, lt.stack):totable())
    assert.equal("ab", first({"a", "b"}, table.concat))
    assert.same("12", first(Pairs(2), function(list) return list[1][2] .. list[2][2] end))
    assert.same({1, 2}, first(Pairs(2), data.default_collate):totable())
    fails("expected at least one value of a batch, got nil",
      function() first({1, 2}, function() end) end)
  end)

  it("has PyTorch's samplers as fields", function()
    local loader = data.DataLoader(Pairs(6), {batch_size = 2, shuffle = true})
    assert.equal("RandomSampler", tostring(loader.sampler))
    assert.equal("BatchSampler", tostring(loader.batch_sampler))
    local sampler = data.DistributedSampler(Pairs(6), 2, 1, {shuffle = false})
    assert.same({{2, 4}, {6}},
      lists(data.DataLoader(Pairs(6), {batch_size = 2, sampler = sampler})))
  end)

  it("refuses options that exclude each other", function()
    local set = Pairs(4)
    local function refuse(text, options, other)
      fails(text, function() local _ = data.DataLoader(other or set, options) end)
    end
    refuse("cannot use batch_size, shuffle", {batch_sampler = {{1}}, batch_size = 2})
    refuse("cannot use batch_size, shuffle", {batch_sampler = {{1}}, shuffle = true})
    refuse("cannot drop the last batch", {batch_size = false, drop_last = true})
    refuse("argument 'batch_size', got the string", {batch_size = "x"})
    refuse("prefetch_factor", {prefetch_factor = 2})
    refuse("persistent_workers", {persistent_workers = true})
    refuse("timeout", {timeout = -1})
    refuse("cannot use 'shuffle'", {shuffle = true}, Stream(2))
    refuse("cannot use 'sampler'", {sampler = {1}}, Stream(2))
    refuse("cannot use 'batch_sampler'", {batch_sampler = {{1}}}, Stream(2))
    refuse("argument 'sampler', got 3", {sampler = 3})
  end)
end)

describe("a loader of a stream", function()
  it("gives batches to the end", function()
    assert.same({{1, 2}, {3, 4}, {5}}, lists(data.DataLoader(Stream(5), {batch_size = 2})))
    assert.same({{1, 2}, {3, 4}},
      lists(data.DataLoader(Stream(5), {batch_size = 2, drop_last = true})))
    assert.same({1, 2}, lists(data.DataLoader(Stream(2), {batch_size = false})))
    assert.same({}, lists(data.DataLoader(Stream(0), {batch_size = 2})))
    fails("cannot count the samples", function() local _ = #data.DataLoader(Stream(2)) end)
    function Stream:__len() return self.n end
    assert.equal(3, #data.DataLoader(Stream(5), {batch_size = 2}))
    assert.equal(2, #data.DataLoader(Stream(5), {batch_size = 2, drop_last = true}))
    assert.equal(5, #data.DataLoader(Stream(5), {batch_size = false}))
  end)

  it("may come from a coroutine", function()
    local Lines = data.IterableDataset:extend "Lines"
    function Lines:iter() -- luacheck: ignore 212
      return coroutine.wrap(function()
        for i = 1, 3 do coroutine.yield(i, "line " .. i) end
      end)
    end
    local seen = {}
    for x, text in data.DataLoader(Lines(), {batch_size = 2}):iter() do
      seen[#seen + 1] = {x:totable(), text}
    end
    assert.same({{{1, 2}, {"line 1", "line 2"}}, {{3}, {"line 3"}}}, seen)
  end)
end)

describe("random numbers of a dataset", function()
  local Noise = data.Dataset:extend "Noise"
  function Noise:__len() return 6 end -- luacheck: ignore 212
  function Noise:get() return lt.rand(1), math.random() end -- luacheck: ignore 212

  it("depend on the seed and the batch, and leave the program's sequence alone", function()
    local function pass(seed)
      local g = lt.Generator(seed)
      local list = {}
      for x, y in data.DataLoader(Noise(), {batch_size = 2, generator = g}):iter() do
        list[#list + 1] = tostring(x) .. tostring(y)
      end
      return list
    end
    lt.manual_seed(1)
    local first = pass(4)
    local after = lt.rand(1):item()
    assert.same(first, pass(4))
    assert.not_same(first, pass(5))
    assert.not_equal(first[1], first[2])
    lt.manual_seed(1)
    assert.equal(after, lt.rand(1):item())
  end)
end)

describe("data.default_collate", function()
  -- torch.utils.data.default_collate of the same values, PyTorch 2.15
  it("joins single values", function()
    assert.same({0, 1, 2, 3}, data.default_collate{0, 1, 2, 3}:totable())
    assert.equal("float64", data.default_collate{0.5, 1}.dtype)
    assert.same({"a", "b", "c"}, data.default_collate{"a", "b", "c"})
    local batch = data.default_collate{{A = 0, B = 1}, {A = 100, B = 100}}
    assert.same({{0, 100}, {1, 100}}, {batch.A:totable(), batch.B:totable()})
    local a, b = data.default_collate{{0, 1}, {2, 3}}
    assert.same({{0, 2}, {1, 3}}, {a:totable(), b:totable()})
    assert.equal("{2, 3}", tostring(data.default_collate{lt.ones(3), lt.ones(3)}.shape))
  end)

  it("refuses samples of other lengths and kinds", function()
    fails("expected a list of 2 values in sample 2, as in sample 1, got 3",
      function() data.default_collate{{x = {1, 2}}, {x = {1, 2, 3}}} end)
    fails("expected a string in sample 2", function() data.default_collate{"a", 2} end)
    fails("at least one sample", function() data.default_collate{} end)
  end)

  it("converts nothing in default_convert", function()
    local x = lt.ones(2)
    assert.equal(x, data.default_convert(x))
  end)
end)
