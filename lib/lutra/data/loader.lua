--- data.DataLoader: iterates over a dataset in batches.
--
-- A pass is a sequence of batches of sample indices. A dataset with get_batch serves a batch by one
-- gather per tensor, any other by get and a collate function, here or in workers. A loader with a
-- GPU as its device prefetches one batch: the next batch is copied from pinned memory on a separate
-- stream while the program uses the current one.
--
-- Invariants: each call of iter() is an independent pass with its own order. Batch k of a pass
-- draws random numbers from a seed of its own, so that the number of workers does not change a
-- batch. A batch is returned only after the program's stream has been made to wait for its copy.

local core = require "lutra.core"
local lt = require "lutra"
local args = require "lutra.internal.args"
local fetch = require "lutra.data.fetch"
local indices_of = require "lutra.data.indices"
local kinds = require "lutra.data.kinds"
local read_options = require "lutra.data.options"

local DataLoader = {__name = "DataLoader"}
DataLoader.__index = DataLoader

local LARGEST_SEED = (1 << 53) - 1

local parse = args.signature("DataLoader", "table|Tensor dataset, any? batch_size = nil, "
  .. "bool? shuffle = nil, any? sampler = nil, any? batch_sampler = nil, int(>=0) num_workers = 0, "
  .. "function? collate_fn = nil, bool pin_memory = false, bool drop_last = false, "
  .. "float(>=0) timeout = 0, function? worker_init_fn = nil, any? multiprocessing_context = nil, "
  .. "Generator? generator = nil, int(>=1)? prefetch_factor = nil, "
  .. "bool persistent_workers = false, device? pin_memory_device = nil, bool in_order = true, "
  .. "device? device = nil")

--- data.DataLoader(dataset, batch_size = 1, shuffle = false, sampler, batch_sampler, num_workers =
-- 0, collate_fn, pin_memory = false, drop_last = false, timeout = 0, worker_init_fn,
-- multiprocessing_context, generator, prefetch_factor, persistent_workers = false,
-- pin_memory_device, in_order = true, device): a loader, over which `for x, y in loader:iter() do`
-- iterates. `dataset` is an object with get(i) and a length, a list, a tensor, or an iterable
-- dataset.
--
-- `batch_size = false` returns single samples. `shuffle` draws a new order for each pass, from
-- `generator`. `sampler` gives the indices of a pass: a data.Sampler, a list, an integer tensor, or
-- a function that returns an iterator; `batch_sampler` gives the list of indices of each batch.
-- `drop_last` omits an incomplete last batch. `collate_fn` returns the values of a batch from a
-- list of samples: the value that get returned, or the list of several. With `pin_memory`, batches
-- are in page-locked memory when there is an accelerator. `device` is the device that batches are
-- moved to; for a GPU, the next batch is fetched and copied while the current one is used.
-- `multiprocessing_context` and `pin_memory_device` are accepted without an effect.
--
-- With `num_workers` above 0, that many threads fetch batches, each with a Lua state of its own and
-- a copy of the dataset that shares its tensors; `prefetch_factor` (2) is the number of batches
-- that each prepares ahead, `timeout` the number of seconds until a batch must be ready (0: no
-- limit), `worker_init_fn(id)` is called in each worker at its start, `persistent_workers` keeps
-- them for the next pass, and without `in_order` batches come as soon as they are ready. Raises an
-- error for a value that is no dataset and for options that exclude each other.
function DataLoader:init(...)
  for name, value in pairs(read_options(parse(...))) do self[name] = value end
end

--- #loader: returns the number of batches of a pass. Raises an error when the dataset or the
-- sampler has no length.
function DataLoader:__len()
  if self.iterable then
    local n, size = kinds.length("DataLoader", "dataset", self.dataset), self.batch_size
    if not size then return n end
    return self.drop_last and n // size or (n + size - 1) // size
  end
  return indices_of.count("DataLoader", self.batch_sampler or self.sampler)
end

-- Returns a function that returns the indices of the next batch, nil at the end.
local function batches_of(self)
  if self.iterable then
    local count = self.batch_size or 1
    return function() return count end
  end
  local sampler = self.batch_sampler
  if sampler and args.is_callable(sampler.batches) then return sampler:batches() end
  local order, next_index = indices_of.source("DataLoader", sampler or self.sampler)
  if not order then return next_index end
  local list, i = order:totable(), 0
  return function()
    i = i + 1
    return list[i]
  end
end

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

-- Returns the seed of a pass; batch k draws from seed + k. It is drawn for every pass, whatever
-- the number of workers.
local function draw_seed(self)
  local options = {generator = self.generator, dtype = "int64", device = "cpu"}
  return lt.randint(0, LARGEST_SEED, {1}, options):item()
end

-- Returns a function that returns the next batch of a pass as a packed list, nil at the end.
local function local_pass(self, next_indices, seed)
  local fetcher, k = fetch.new(self), 0
  return function()
    local indices = next_indices()
    if indices == nil then return nil end
    k = k + 1
    return fetch.seeded(fetcher, indices, seed + k)
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
  local next_indices, seed = batches_of(self), draw_seed(self)
  local next_batch, closing
  if self.num_workers > 0 then
    next_batch, closing = require("lutra.data.workers").pass(self, next_indices, seed)
  else
    next_batch = local_pass(self, next_indices, seed)
  end
  local ahead = self.device and core._accelerator.has_streams(self.device)
  return (ahead and prefetching_pass or direct_pass)(self, next_batch), nil, nil, closing
end

--- pairs(loader): iterates over the batches of a new pass with their numbers:
-- `for i, x, y in pairs(loader) do`.
function DataLoader:__pairs()
  local next_batch, state, control, closing = self:iter()
  local i = 0
  local function numbered(first, ...)
    if first == nil then return nil end
    i = i + 1
    return i, first, ...
  end
  return function() return numbered(next_batch(state, control)) end, nil, nil, closing
end

-- loader(): the loader as an iterator, `for x, y in loader do`. The pass begins when the loop
-- begins, which passes nil, and one loop runs at a time: a new one ends the pass of the one before.
function DataLoader:__call(_, control)
  if control == nil or not self.running then
    if self.closing then self.closing:close() end
    self.running, _, _, self.closing = self:iter()
  end
  return self.running()
end

function DataLoader:__tostring()
  return ("DataLoader(%s, batch_size=%s, shuffle=%s)"):format(
    lt.is_tensor(self.dataset) and "tensor" or tostring(self.dataset),
    tostring(self.batch_size), tostring(self.shuffle))
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
