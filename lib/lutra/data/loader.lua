--- DataLoader: a dataset in batches.
--
-- Idea: one pass is an order of positions, cut into runs. A dataset with get_batch
-- serves a run by one gather per tensor; any other by get and a collate function.
-- Invariant: each call of iter() is a pass of its own, with an order of its own.

local lt = require "lutra"
local args = require "lutra.args"
local collate = require "lutra.data.collate"

local DataLoader = {__name = "DataLoader"}
DataLoader.__index = DataLoader

local parse = args.signature("DataLoader", "dataset:table|tensor, batch_size:count=1, "
  .. "shuffle:boolean=false, sampler:any?, num_workers:size=0, collate_fn:callable?, "
  .. "pin_memory:boolean=false, drop_last:boolean=false, generator:any?, device:string?")

local function check_dataset(dataset)
  local ok = not args.is_plain(dataset) and not lt.is_tensor(dataset) and dataset.get ~= nil
  return args.check(ok and dataset,
    "DataLoader: dataset is %s, it wants a dataset such as data.TensorDataset(X, Y)",
    args.show(dataset))
end

--- data.DataLoader(dataset, {batch_size = 1, shuffle = false, generator, drop_last =
-- false, collate_fn, sampler, device, pin_memory = false}).
-- `sampler` gives the positions of a pass: a list, an integer tensor, or a function that
-- returns an iterator. `collate_fn` makes the batch's values from a list of samples,
-- each the list of what get returned. `device` is where batches are moved to.
function DataLoader:init(...)
  local dataset, batch_size, shuffle, sampler, workers, collate_fn, pin, drop_last, generator,
    device = parse(...)
  args.check(not (shuffle and sampler), "DataLoader: shuffle and sampler exclude each other")
  args.check(workers == 0,
    "DataLoader: num_workers is %d, but batches are made in this process: leave it 0", workers)
  self.dataset, self.batch_size, self.shuffle = check_dataset(dataset), batch_size, shuffle
  self.sampler, self.collate_fn, self.pin_memory = sampler, collate_fn, pin
  self.drop_last, self.generator = drop_last, generator
  self.device = device and lt.device(device)
end

-- The positions of one pass, as an int64 tensor.
local function order_of(self)
  local sampler = self.sampler
  if self.shuffle then return lt.randperm(#self.dataset, {generator = self.generator}) end
  if sampler == nil then return lt.arange(#self.dataset) end
  if lt.is_tensor(sampler) then return sampler end
  if args.is_callable(sampler) then
    local list = {}
    for position in sampler() do list[#list + 1] = position end
    sampler = list
  end
  return lt.tensor(sampler, {dtype = "int64"})
end

local function count_samples(self)
  local sampler = self.sampler
  if sampler == nil then return #self.dataset end
  if lt.is_tensor(sampler) then return sampler:numel() end
  if args.is_callable(sampler) then
    args.fail("DataLoader: the length is not known: the sampler is a function")
  end
  return #sampler
end

local function count_batches(self, samples)
  if self.drop_last then return samples // self.batch_size end
  return (samples + self.batch_size - 1) // self.batch_size
end

--- The number of batches of a pass.
function DataLoader:__len() return count_batches(self, count_samples(self)) end

-- Moves the tensors among a batch's values to the loader's device.
local function placed(self, ...)
  if not self.device then return ... end
  local values = table.pack(...)
  for i = 1, values.n do
    if lt.is_tensor(values[i]) then
      values[i] = values[i]:to{device = self.device, non_blocking = self.pin_memory}
    end
  end
  return table.unpack(values, 1, values.n)
end

local function fetch(self, positions)
  local dataset = self.dataset
  if dataset.get_batch and not self.collate_fn then return dataset:get_batch(positions) end
  local samples = positions:totable()
  for k, i in ipairs(samples) do samples[k] = table.pack(dataset:get(i)) end
  return (self.collate_fn or collate)(samples)
end

--- A pass over the data: `for x, y in loader:iter() do`.
function DataLoader:iter()
  local order = order_of(self)
  local samples, batch = order:numel(), 0
  local batches = count_batches(self, samples)
  return function()
    if batch == batches then return nil end
    local first = batch * self.batch_size + 1
    batch = batch + 1
    local last = math.min(first + self.batch_size - 1, samples)
    return placed(self, fetch(self, order[{{first, last}}]))
  end
end

function DataLoader:__tostring()
  return ("DataLoader(%s, batch_size=%d, shuffle=%s)"):format(tostring(self.dataset),
    self.batch_size, tostring(self.shuffle))
end

return setmetatable(DataLoader, {
  __name = "class DataLoader",
  __tostring = function() return "class data.DataLoader" end,
  __call = function(class, ...)
    local self = setmetatable({}, class)
    self:init(...)
    return self
  end,
})
