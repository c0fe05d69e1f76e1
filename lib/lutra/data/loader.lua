--- data.DataLoader: iterates over a dataset in batches.
--
-- A pass is a sequence of sample indices that is cut into batches. A dataset with get_batch serves
-- a batch by one gather per tensor, any other by get and a collate function. A loader with a GPU
-- as its device prefetches one batch: the next batch is copied from pinned memory on a separate
-- stream while the program uses the current one.
--
-- Invariants: each call of iter() is an independent pass with its own order. A batch is returned
-- only after the program's stream has been made to wait for its copy.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local collate = require "lutra.data.collate"

local DataLoader = {__name = "DataLoader"}
DataLoader.__index = DataLoader

local parse = args.signature("DataLoader", "table|Tensor dataset, int(>=1) batch_size = 1, "
  .. "bool shuffle = false, any? sampler = nil, int(>=0) num_workers = 0, "
  .. "function? collate_fn = nil, bool pin_memory = false, bool drop_last = false, "
  .. "Generator? generator = nil, device? device = nil")

local function check_dataset(dataset)
  local ok = not args.is_plain(dataset) and not lt.is_tensor(dataset)
    and args.is_callable(dataset.get)
  return args.check(ok and dataset,
    "DataLoader: expected a dataset for argument 'dataset', got %s\n"
    .. "hint: data.DataLoader(data.TensorDataset(X, Y))", args.show(dataset))
end

--- data.DataLoader(dataset, {batch_size = 1, shuffle = false, generator, drop_last = false,
-- collate_fn, sampler, device, pin_memory = false}): a loader, over which `for x, y in
-- loader:iter() do` iterates. `shuffle` draws a new order for each pass, from `generator`.
-- `sampler` gives the indices of a pass: a list, an integer tensor, or a function that returns an
-- iterator. `drop_last` omits an incomplete last batch. `collate_fn` returns the values of a batch
-- from a list of samples, each the list of what get returned. With `pin_memory`, batches are in
-- page-locked memory when there is an accelerator. `device` is the device that batches are moved
-- to; for a GPU, the next batch is fetched and copied while the current one is used. num_workers
-- must be 0. Raises an error for a value that is no dataset.
function DataLoader:init(...)
  local dataset, batch_size, shuffle, sampler, workers, collate_fn, pin, drop_last, generator,
    device = parse(...)
  args.check(not (shuffle and sampler), "DataLoader: cannot shuffle: the sampler gives the order")
  args.check(workers == 0,
    "DataLoader: expected 0 for argument 'num_workers', got %d: batches are made in this process",
    workers)
  self.dataset, self.batch_size, self.shuffle = check_dataset(dataset), batch_size, shuffle
  self.sampler, self.collate_fn, self.pin_memory = sampler, collate_fn, pin
  self.drop_last, self.generator = drop_last, generator
  self.device = device and args.device("DataLoader", device)
end

-- Returns the indices of one pass as an integer tensor.
local function order_of(self)
  local sampler = self.sampler
  if self.shuffle then return lt.randperm(#self.dataset, {generator = self.generator}) end
  if sampler == nil then return lt.arange(#self.dataset) end
  if lt.is_tensor(sampler) then return sampler end
  if args.is_callable(sampler) then
    local list = {}
    for index in sampler() do list[#list + 1] = index end
    sampler = list
  end
  return lt.tensor(sampler, {dtype = "int64"})
end

local function count_samples(self)
  local sampler = self.sampler
  if sampler == nil then return #self.dataset end
  if lt.is_tensor(sampler) then return sampler:numel() end
  if args.is_callable(sampler) then
    args.fail("DataLoader: cannot count the batches: the sampler is a function")
  end
  return #sampler
end

local function count_batches(self, samples)
  if self.drop_last then return samples // self.batch_size end
  return (samples + self.batch_size - 1) // self.batch_size
end

--- #loader: returns the number of batches of a pass. Raises an error when the sampler is a
-- function.
function DataLoader:__len() return count_batches(self, count_samples(self)) end

-- Returns a value with each tensor in it, also in tables, replaced by fn(tensor).
local function map(value, fn)
  if lt.is_tensor(value) then return fn(value) end
  if not args.is_plain(value) then return value end
  local result = {}
  for key, inner in pairs(value) do result[key] = map(inner, fn) end
  return result
end

local function map_all(values, fn)
  for i = 1, values.n do values[i] = map(values[i], fn) end
  return values
end

local function pinned(x) return x.is_cpu and x:pin_memory() or x end

local function fetch(self, indices)
  local dataset = self.dataset
  if args.is_callable(dataset.get_batch) and not self.collate_fn then
    return dataset:get_batch(indices)
  end
  local samples = indices:totable()
  for k, i in ipairs(samples) do samples[k] = table.pack(dataset:get(i)) end
  return (self.collate_fn or collate)(samples)
end

-- Returns a function that returns the next batch of a pass as a packed list, nil at the end.
local function fetcher(self)
  local order = order_of(self)
  local samples, batch = order:numel(), 0
  local batches = count_batches(self, samples)
  return function()
    if batch == batches then return nil end
    local first = batch * self.batch_size + 1
    batch = batch + 1
    local last = math.min(first + self.batch_size - 1, samples)
    return table.pack(fetch(self, order[{{first, last}}]))
  end
end

-- Returns an iterator over batches without prefetching; they are pinned or moved as required.
local function direct_pass(self, next_batch)
  local device = self.device
  local pin = self.pin_memory and lt.accelerator.is_available()
  return function()
    local values = next_batch()
    if not values then return nil end
    if pin then map_all(values, pinned) end
    if device then map_all(values, function(x) return x:to(device) end) end
    return table.unpack(values, 1, values.n)
  end
end

-- Returns an iterator that prefetches one batch. `ahead` is the batch that is being copied,
-- {values, event, moved}, or {failure}: an error while preparing a batch is raised when that batch
-- is due.
local function prefetching_pass(self, next_batch)
  local device = self.device
  local stream = lt.accelerator.Stream(device)
  local ahead

  local function send(values)
    local moved = {}
    local function move(x)
      if not x.is_cpu then return x:to(device) end -- must run on the program's stream
      local source = pinned(x)
      local copy = lt.accelerator.with_stream(stream, function()
        return source:to{device = device, non_blocking = true}
      end)
      moved[#moved + 1] = copy
      return copy
    end
    map_all(values, move)
    return {values = values, moved = moved, event = stream:record_event()}
  end

  local function start()
    local ok, values = pcall(next_batch)
    if not ok then return {failure = values} end
    if not values then return nil end
    local sent, batch = pcall(send, values)
    return sent and batch or {failure = batch}
  end

  return function()
    ahead = ahead or start()
    local batch = ahead
    if not batch then return nil end
    ahead = nil
    if batch.failure then error(batch.failure, 0) end
    local current = lt.accelerator.current_stream(device)
    current:wait_event(batch.event)
    for _, x in ipairs(batch.moved) do x:record_stream(current) end
    ahead = start()
    return table.unpack(batch.values, 1, batch.values.n)
  end
end

--- Returns an iterator over the batches of a new pass: `for x, y in loader:iter() do`.
function DataLoader:iter()
  local next_batch = fetcher(self)
  local ahead = self.device and core._accelerator.has_streams(self.device)
  return (ahead and prefetching_pass or direct_pass)(self, next_batch)
end

function DataLoader:__tostring()
  return ("DataLoader(%s, batch_size=%d, shuffle=%s)"):format(tostring(self.dataset),
    self.batch_size, tostring(self.shuffle))
end

return setmetatable(DataLoader, {
  __name = "class DataLoader",
  __index = function(_, key)
    if math.type(key) ~= "integer" then return nil end
    return args.fail("DataLoader: cannot index batches: they are made one after another\n"
      .. "hint: for x, y in loader:iter() do ... end")
  end,
  __tostring = function() return "class data.DataLoader" end,
  __call = function(class, ...)
    local self = setmetatable({}, class)
    self:init(...)
    return self
  end,
})
