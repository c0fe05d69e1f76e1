-- DataLoader with num_workers: the same batches as without, in order; errors, streams, options.

local lt = require "lutra"
local support = require "nn_support"

local data = lt.data
local fails = support.fails

local Squares = data.Dataset:extend "Squares"
function Squares:init(n) self.n = n end
function Squares:__len() return self.n end
function Squares:get(i)
  if i == self.bad then error "a bad sample" end
  return lt.tensor{i, -i}, i * i
end

local function all(loader)
  local list = {}
  for x, y in loader:iter() do
    list[#list + 1] = tostring(x) .. (y ~= nil and " " .. tostring(y) or "")
  end
  return list
end

local function loader_of(set, workers, options)
  local given = {num_workers = workers}
  for name, value in pairs(options or {}) do given[name] = value end
  return data.DataLoader(set, given)
end

describe("a loader with workers", function()
  it("gives the same batches as one without", function()
    for _, set in ipairs{Squares(11), data.TensorDataset(lt.rand(11, 3), lt.arange(11))} do
      for _, options in ipairs{{}, {batch_size = 4}, {batch_size = 4, drop_last = true},
        {batch_size = 3, shuffle = true}, {batch_size = false}, {batch_size = 99}} do
        local expected
        for workers = 0, 3 do
          lt.manual_seed(5)
          local got = all(loader_of(set, workers, options))
          expected = expected or got
          assert.same(expected, got)
          assert.equal(#expected, #loader_of(set, workers, options))
        end
      end
    end
  end)

  it("draws the same random numbers for any number of workers", function()
    local Noise = data.Dataset:extend "Noise"
    function Noise:__len() return 8 end -- luacheck: ignore 212
    function Noise:get(i) return lt.randn(2) + i, math.random() end -- luacheck: ignore 212
    local expected
    for workers = 0, 2 do
      lt.manual_seed(9)
      math.randomseed(1)
      local got = all(loader_of(Noise(), workers, {batch_size = 3, shuffle = true}))
      got[#got + 1] = tostring(lt.rand(1))
      expected = expected or got
      assert.same(expected, got)
    end
    assert.not_equal(expected[1], expected[2])
  end)

  it("shares the memory of tensors", function()
    local x = lt.zeros(6)
    local View = data.Dataset:extend "View"
    function View:__len() return 6 end -- luacheck: ignore 212
    function View:get(i) return x[{{i}}] end -- luacheck: ignore 212
    for row in loader_of(View(), 1, {batch_size = false}):iter() do row:add_(1) end
    assert.same({1, 1, 1, 1, 1, 1}, x:totable())
  end)

  it("raises an error of a worker when its batch is due, and continues", function()
    local set = Squares(9)
    set.bad = 5
    local next_batch = loader_of(set, 2, {batch_size = 3}):iter()
    assert.same({1, 4, 9}, select(2, next_batch()):totable())
    local ok, message = pcall(next_batch)
    assert.is_false(ok)
    for _, part in ipairs{"DataLoader: worker 2: ", "workers_spec.lua:", "a bad sample",
      "traceback of the worker:", "workers_spec.lua:13: in function"} do
      assert.is_truthy(message:find(part, 1, true), message)
    end
    assert.same({49, 64, 81}, select(2, next_batch()):totable())
    assert.is_nil(next_batch())
  end)

  it("ends when a loop is left, and when the pass is dropped", function()
    local loader = loader_of(Squares(100), 2)
    for _ in loader:iter() do break end -- luacheck: ignore 512
    loader:iter()()
    collectgarbage()
    local step, _, _, closing = loader:iter()
    step()
    closing:close()
    assert.is_nil(step())
    assert.is_nil(step())
  end)

  it("stops code that runs for ever", function()
    local Endless = data.Dataset:extend "Endless"
    function Endless:__len() return 2 end -- luacheck: ignore 212
    function Endless:get() -- luacheck: ignore 212
      while true do pcall(function() for _ = 1, 1e9 do end end) end
    end
    local step, _, _, closing = loader_of(Endless(), 2, {timeout = 0.05}):iter()
    fails("expected a batch within 0.05 seconds (argument 'timeout'), got none",
      function() step() end)
    local begin = os.time()
    closing:close()
    assert.is_true(os.time() - begin < 4)
  end)

  it("keeps persistent workers", function()
    local Counter = data.Dataset:extend "Counter"
    function Counter:__len() return 4 end -- luacheck: ignore 212
    function Counter:get()
      self.count = (self.count or 0) + 1
      return self.count
    end
    for _, persistent in ipairs{false, true} do
      local loader = loader_of(Counter(), 1, {batch_size = 4, persistent_workers = persistent})
      assert.same({1, 2, 3, 4}, loader:iter()():totable())
      local again = loader:iter()
      assert.same(persistent and {5, 6, 7, 8} or {1, 2, 3, 4}, again():totable())
      if persistent then
        local _ = loader:iter()
        fails("have begun another", function() again() end)
      end
    end
  end)

  it("calls worker_init_fn, and get_worker_info tells the worker", function()
    assert.is_nil(data.get_worker_info())
    local Info = data.Dataset:extend "Info"
    function Info:__len() return 4 end -- luacheck: ignore 212
    function Info:get()
      local info = data.get_worker_info()
      assert(info.dataset == self)
      return info.id, info.num_workers, self.started
    end
    local function begin(id) data.get_worker_info().dataset.started = id * 100 end
    local seen = {}
    for id, count, started in loader_of(Info(), 2, {worker_init_fn = begin}):iter() do
      seen[#seen + 1] = {id:item(), count:item(), started:item()}
    end
    assert.same({{1, 2, 100}, {2, 2, 200}, {1, 2, 100}, {2, 2, 200}}, seen)
    fails("no start", function()
      all(loader_of(Info(), 1, {worker_init_fn = function() error "no start" end}))
    end)
  end)

  it("tells each worker a seed of its own, new in each pass", function()
    local loader = loader_of(Squares(4), 2, {persistent_workers = true, collate_fn = function()
      return data.get_worker_info().seed
    end})
    local seen, count = {}, 0
    for _ = 1, 2 do
      local step = loader:iter()
      local first, second = step(), step()
      assert.equal(first + 1, second)
      for _, seed in ipairs{first, second} do
        if not seen[seed] then count = count + 1 end
        seen[seed] = true
      end
    end
    assert.equal(4, count)
    local same = loader_of(Squares(1), 1, {worker_init_fn = function()
      data.get_worker_info().dataset.same = data.get_worker_info().seed == lt.initial_seed()
    end, collate_fn = function() return data.get_worker_info().dataset.same end})
    assert.is_true(same:iter()())
  end)

  it("fetches at most num_workers * prefetch_factor batches ahead", function()
    local drawn = 0
    local function sampler()
      local i = 0
      return function()
        i = i + 1
        if i > 40 then return nil end
        drawn = i
        return i
      end
    end
    local Slow = data.Dataset:extend "Slow"
    function Slow:__len() return 40 end -- luacheck: ignore 212
    function Slow:get(i) -- luacheck: ignore 212
      local finish = os.clock() + (i == 1 and 0.3 or 0)
      repeat until os.clock() >= finish
      return i
    end
    local step = loader_of(Slow(), 2, {sampler = sampler, prefetch_factor = 3}):iter()
    for i = 1, 40 do
      assert.equal(i, step():item())
      assert.equal(math.min(6 + i, 40), drawn)
    end
    assert.is_nil(step())
  end)

  it("raises the error of a sampler in place of its batch", function()
    local function sampler()
      local i = 0
      return function()
        i = i + 1
        if i == 3 then error "no third index" end
        return i
      end
    end
    for workers = 0, 2 do
      local step = loader_of(Squares(9), workers, {sampler = sampler, batch_size = false}):iter()
      assert.same({1, -1}, step():totable())
      assert.same({2, -2}, step():totable())
      fails("no third index", function() step() end)
    end
    local bad = loader_of(Squares(9), 1, {sampler = {coroutine.create(print)}, batch_size = false})
    fails("cannot send 'indices' to a worker: it is a coroutine", function() bad:iter()() end)
  end)

  it("starts new workers after some that could not start", function()
    local flag = lt.zeros(1)
    local loader = loader_of(Squares(4), 2, {persistent_workers = true,
      worker_init_fn = function() assert(flag:item() == 1, "the flag is 0") end})
    for _ = 1, 2 do
      local step = loader:iter()
      fails("the flag is 0", function() step() end)
      assert.is_nil(step())
    end
    flag:fill_(1)
    assert.equal(4, #all(loader))
  end)

  it("reports error objects", function()
    for expected, text in pairs{["code 5"] = function() return "code 5" end,
      ["an error object whose __tostring fails"] = function() error "again" end} do
      local err = setmetatable({}, {__tostring = text})
      local step = loader_of(Squares(1), 1, {collate_fn = function() error(err) end}):iter()
      fails("worker 1: " .. expected, function() step() end)
    end
  end)

  it("ends the workers of a loop by call that was left when the next one begins", function()
    local files = require "lutra.files"
    local threads = "/proc/self/task"
    if not files.list(threads) then return end
    local loader = loader_of(Squares(4), 2)
    collectgarbage()
    collectgarbage "stop"
    local before = #files.list(threads)
    for _ = 1, 3 do loader() end -- as the first step of a loop
    local after = #files.list(threads)
    collectgarbage "restart"
    assert.equal(2, after - before)
  end)

  it("returns batches as they come without in_order", function()
    local Slow = data.Dataset:extend "Slow"
    function Slow:__len() return 4 end -- luacheck: ignore 212
    function Slow:get(i) -- luacheck: ignore 212
      if i == 1 then
        local x = lt.rand(300, 300)
        for _ = 1, 30 do x = x:matmul(x):clamp(-1, 1) end
      end
      return i
    end
    local seen = {}
    for i in loader_of(Slow(), 2, {in_order = false}):iter() do seen[#seen + 1] = i:item() end
    assert.equal(4, #seen)
    table.sort(seen)
    assert.same({1, 2, 3, 4}, seen)
  end)

  it("fetches with a collate_fn, and returns any values", function()
    local step = loader_of(Squares(4), 1, {batch_size = 2, collate_fn = function(samples)
      return {n = #samples, first = samples[1][1], text = "x"}, function() return samples[2][2] end
    end}):iter()
    local batch, f = step()
    assert.same({2, "x", {1, -1}, 4}, {batch.n, batch.text, batch.first:totable(), f()})
    local bad = loader_of(Squares(2), 1, {collate_fn = function() return {file = io.stdout} end})
    fails("cannot send 'batch[1].file' from a worker: it is an open file",
      function() bad:iter()() end)
  end)

  it("computes in workers what the program computes", function()
    local weight = lt.rand(64, 64)
    local Product = data.Dataset:extend "Product"
    function Product:__len() return 6 end -- luacheck: ignore 212
    function Product:get(i) -- luacheck: ignore 212
      return (weight * i):matmul(weight):softmax(-1):sum(2)
    end
    local expected = all(loader_of(Product(), 0, {batch_size = 2}))
    local step = loader_of(Product(), 2, {batch_size = 2}):iter()
    for _ = 1, 20 do weight:matmul(weight) end -- at the same time
    for _, batch in ipairs(expected) do assert.equal(batch, tostring(step())) end
    local threads = loader_of(Product(), 1, {collate_fn = function()
      return lt.get_num_threads()
    end}):iter()()
    assert.equal(1, threads)
  end)

  it("shows a progress bar and moves to a device", function()
    local count = 0
    for x in lt.progress(loader_of(Squares(6), 2, {batch_size = 2}), {disable = true}) do
      count = count + #x
    end
    assert.equal(6, count)
    for x in loader_of(Squares(3), 1, {device = "meta"}):iter() do
      assert.equal("meta", x.device)
    end
  end)
end)

describe("a stream with workers", function()
  local Range = data.IterableDataset:extend "Range"
  function Range:init(n, sharded) self.n, self.sharded = n, sharded end
  function Range:iter()
    local info = data.get_worker_info()
    local step = self.sharded and info and info.num_workers or 1
    local i = (self.sharded and info and info.id or 1) - step
    return function()
      i = i + step
      if i <= self.n then return i end
    end
  end

  local function numbers(loader)
    local list = {}
    for x in loader:iter() do
      for _, i in ipairs(x:totable()) do list[#list + 1] = i end
    end
    table.sort(list)
    return list
  end

  it("is iterated by each worker, or divided by get_worker_info", function()
    assert.same({1, 1, 2, 2, 3, 3}, numbers(loader_of(Range(3), 2, {batch_size = 2})))
    for workers = 0, 3 do
      for _, size in ipairs{1, 2, 5} do
        assert.same({1, 2, 3, 4, 5, 6, 7},
          numbers(loader_of(Range(7, true), workers, {batch_size = size})))
      end
    end
    assert.same({}, numbers(loader_of(Range(0), 2)))
  end)

  it("has the same order in every run, however long a worker needs", function()
    for slow = 1, 3 do
      local Slow = Range:extend "Slow"
      function Slow:iter()
        local step = Range.iter(self)
        return function()
          local finish = os.clock() + (data.get_worker_info().id == slow and 0.05 or 0)
          repeat until os.clock() >= finish
          return step()
        end
      end
      local seen = {}
      for i in loader_of(Slow(11, true), 3, {batch_size = false}):iter() do seen[#seen + 1] = i end
      assert.same({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, seen)
    end
  end)
end)
