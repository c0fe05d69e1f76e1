-- Samplers: their orders, lengths, statistics and errors.

local lt = require "lutra"
local support = require "nn_support"

local data = lt.data
local fails = support.fails

local function all(sampler)
  local list = {}
  for i in sampler:iter() do list[#list + 1] = i end
  return list
end

local function sorted(list)
  table.sort(list)
  return list
end

local function numbers(n)
  local list = {}
  for i = 1, n do list[i] = i end
  return list
end

local function generator() return lt.Generator(7) end

describe("data.SequentialSampler", function()
  it("counts the samples", function()
    local sampler = data.SequentialSampler(lt.zeros(3, 2))
    assert.equal(3, #sampler)
    assert.same({1, 2, 3}, all(sampler))
    assert.same({}, all(data.SequentialSampler(lt.zeros(0, 2))))
    fails("data_source", function() local _ = data.SequentialSampler(3) end)
  end)
end)

describe("data.RandomSampler", function()
  it("draws a long pass in parts", function()
    for _, replacement in ipairs{true, false} do
      local sampler = data.RandomSampler(lt.zeros(3), replacement, 10000000000)
      assert.equal(10000000000, #sampler)
      local next_index, counts = sampler:iter(), {0, 0, 0}
      for _ = 1, 300 do
        local i = next_index()
        counts[i] = counts[i] + 1
      end
      for i = 1, 3 do assert.is_true(counts[i] > 60 and counts[i] < 140) end
      local set = data.TensorDataset(lt.arange(3))
      local loader = data.DataLoader(set, {sampler = sampler, batch_size = 4})
      assert.same({4}, {table.unpack(loader:iter()().shape)})
      assert.equal(2500000000, #loader)
    end
    local long = data.RandomSampler(lt.zeros(3), true, (1 << 20) + 1)
    local count = 0
    for _ in long:iter() do count = count + 1 end
    assert.equal((1 << 20) + 1, count)
  end)

  it("permutes the indices anew in each pass", function()
    local sampler = data.RandomSampler(lt.zeros(50), {generator = generator()})
    local first, second = all(sampler), all(sampler)
    assert.not_same(first, second)
    assert.same(numbers(50), sorted(first))
    assert.same(first, sorted(second))
  end)

  it("repeats permutations for more samples", function()
    local sampler = data.RandomSampler(lt.zeros(4), false, 10)
    assert.equal(10, #sampler)
    local list = all(sampler)
    assert.equal(10, #list)
    assert.same({1, 2, 3, 4}, sorted{table.unpack(list, 1, 4)})
    assert.same({1, 2, 3, 4}, sorted{table.unpack(list, 5, 8)})
    local seen = sorted{table.unpack(list, 9, 10)}
    assert.is_true(seen[1] < seen[2])
    assert.equal(2, #all(data.RandomSampler(lt.zeros(4), {num_samples = 2})))
  end)

  it("draws uniformly with replacement", function()
    local sampler = data.RandomSampler(lt.zeros(4), true, 4000, generator())
    local counts = {0, 0, 0, 0}
    for _, i in ipairs(all(sampler)) do counts[i] = counts[i] + 1 end
    for i = 1, 4 do assert.is_true(math.abs(counts[i] - 1000) < 150, counts[i]) end -- 5 sigma
  end)

  it("gives the same order from the same seed", function()
    local function order()
      return all(data.RandomSampler(lt.zeros(9), {generator = generator()}))
    end
    assert.same(order(), order())
    lt.manual_seed(3)
    local first = all(data.RandomSampler(lt.zeros(9)))
    lt.manual_seed(3)
    assert.same(first, all(data.RandomSampler(lt.zeros(9))))
  end)

  it("refuses wrong arguments", function()
    fails("num_samples", function() local _ = data.RandomSampler(lt.zeros(2), false, 0) end)
    fails("replacement", function() local _ = data.RandomSampler(lt.zeros(2), 3) end)
    fails("the dataset is empty", function() all(data.RandomSampler(lt.zeros(0), true, 2)) end)
  end)
end)

describe("data.SubsetRandomSampler", function()
  it("permutes the given indices", function()
    for _, indices in ipairs{{5, 2, 9}, lt.tensor{5, 2, 9}} do
      local sampler = data.SubsetRandomSampler(indices, generator())
      assert.equal(3, #sampler)
      assert.same({2, 5, 9}, sorted(all(sampler)))
    end
    fails("indices[2]", function() local _ = data.SubsetRandomSampler({1, "x"}) end)
  end)
end)

describe("data.WeightedRandomSampler", function()
  it("draws by weight", function()
    local sampler = data.WeightedRandomSampler({1, 0, 3}, 4000, {generator = generator()})
    local counts = {0, 0, 0}
    for _, i in ipairs(all(sampler)) do counts[i] = counts[i] + 1 end
    assert.equal(0, counts[2])
    assert.is_true(math.abs(counts[1] - 1000) < 140, counts[1]) -- 5 sigma
    assert.same({1, 2, 3}, sorted(all(data.WeightedRandomSampler(lt.ones(3), 3, false))))
  end)

  it("refuses wrong arguments", function()
    fails("num_samples", function() local _ = data.WeightedRandomSampler({1}, 0) end)
    fails("1 dimension", function() local _ = data.WeightedRandomSampler(lt.ones(2, 2), 1) end)
    fails("a list of numbers", function() local _ = data.WeightedRandomSampler({"x"}, 1) end)
  end)
end)

describe("data.BatchSampler", function()
  -- torch.utils.data.BatchSampler(range(1, 11), 3, ...), PyTorch 2.15
  it("cuts the indices of any source", function()
    local list = numbers(10)
    for _, source in ipairs{data.SequentialSampler(lt.zeros(10)), list, lt.arange(10)} do
      local sampler = data.BatchSampler(source, 3, false)
      assert.same({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10}}, all(sampler))
      assert.equal(4, #sampler)
      local dropping = data.BatchSampler(source, 3, true)
      assert.same({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}, all(dropping))
      assert.equal(3, #dropping)
    end
    fails("batch_size", function() local _ = data.BatchSampler(list, 0, false) end)
    fails("sampler", function() local _ = data.BatchSampler(3, 1, false) end)
  end)
end)

describe("data.Sampler", function()
  local Even = data.Sampler:extend "Even"
  function Even:init(n) self.n = n end
  function Even:__len() return self.n // 2 end
  function Even:iter()
    local i = 0
    return function()
      i = i + 2
      return i <= self.n and i or nil
    end
  end

  it("is the base of samplers of your own", function()
    local loader = data.DataLoader(lt.arange(7), {batch_size = 2, sampler = Even(7)})
    assert.equal(2, #loader)
    local batches = {}
    for x in loader:iter() do batches[#batches + 1] = x:totable() end
    assert.same({{2, 4}, {6}}, batches)
    local Bare = data.Sampler:extend "Bare"
    fails("Bare: cannot iterate", function() Bare():iter() end)
    fails("Bare: cannot count", function() local _ = #Bare() end)
  end)

  it("gives batches as a batch_sampler", function()
    local loader = data.DataLoader(lt.arange(5), {batch_sampler = {{1, 5}, {2}, {3, 4, 4}}})
    assert.equal(3, #loader)
    local batches = {}
    for x in loader:iter() do batches[#batches + 1] = x:totable() end
    assert.same({{1, 5}, {2}, {3, 4, 4}}, batches)
  end)
end)

describe("data.DistributedSampler", function()
  local function parts(n, replicas, options)
    local list = {}
    for rank = 0, replicas - 1 do
      options.num_replicas, options.rank = replicas, rank
      list[rank + 1] = all(data.DistributedSampler(lt.zeros(n), options))
    end
    return list
  end

  it("gives each process every n-th index, repeated at the end", function()
    -- torch.utils.data.DistributedSampler(range(n), r, k, shuffle=False), PyTorch 2.15, plus 1
    assert.same({{1, 4, 7, 10}, {2, 5, 8, 1}, {3, 6, 9, 2}}, parts(10, 3, {shuffle = false}))
    assert.same({{1, 4, 7}, {2, 5, 8}, {3, 6, 9}},
      parts(10, 3, {shuffle = false, drop_last = true}))
    assert.same({{1}, {2}, {1}, {2}, {1}}, parts(2, 5, {shuffle = false}))
    assert.same({{}, {}, {}}, parts(2, 3, {shuffle = false, drop_last = true}))
  end)

  it("shuffles by seed and epoch, the same in all processes", function()
    local function order(seed, epoch)
      local list = {}
      for rank = 0, 1 do
        local sampler = data.distributed.DistributedSampler(lt.zeros(20), 2, rank, true, seed)
        sampler:set_epoch(epoch)
        assert.equal(10, #sampler)
        for _, i in ipairs(all(sampler)) do list[#list + 1] = i end
      end
      return list
    end
    assert.same(order(1, 2), order(1, 2))
    assert.not_same(order(1, 2), order(1, 3))
    assert.same(numbers(20), sorted(order(5, 0)))
  end)

  it("refuses wrong arguments", function()
    fails("expected an integer from 0 to 1 for argument 'rank', got 2",
      function() local _ = data.DistributedSampler(lt.zeros(4), 2, 2) end)
    fails("WORLD_SIZE", function() local _ = data.DistributedSampler(lt.zeros(4)) end)
    fails("epoch", function() data.DistributedSampler(lt.zeros(4), 2, 1):set_epoch "x" end)
  end)
end)
