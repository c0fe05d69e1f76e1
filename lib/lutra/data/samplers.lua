--- The samplers of data: SequentialSampler, RandomSampler, SubsetRandomSampler,
-- WeightedRandomSampler and BatchSampler.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Sampler = require "lutra.data.sampler"
local indices_of = require "lutra.data.indices"
local kinds = require "lutra.data.kinds"

local samplers = {}

-- ---- SequentialSampler

local SequentialSampler = Sampler:extend "SequentialSampler"
samplers.SequentialSampler = SequentialSampler

local parse_sequential = args.signature("SequentialSampler", "table|Tensor data_source")

--- data.SequentialSampler(data_source): the indices 1 to #data_source in order.
function SequentialSampler:init(...) self.data_source = parse_sequential(...) end

--- Returns the indices as an int64 tensor.
function SequentialSampler:order() return lt.arange(#self, {device = "cpu"}) end

function SequentialSampler:__len()
  return kinds.length("SequentialSampler", "data_source", self.data_source)
end

-- ---- RandomSampler

local RandomSampler = Sampler:extend "RandomSampler"
samplers.RandomSampler = RandomSampler

local parse_random = args.signature("RandomSampler", "table|Tensor data_source, "
  .. "bool replacement = false, int(>=1)? num_samples = nil, Generator? generator = nil")

--- data.RandomSampler(data_source, replacement = false, num_samples = nil, generator = nil): random
-- indices of a dataset. Without replacement they are a new permutation in each pass, or several one
-- after the other where `num_samples` is more than #data_source; with replacement each index is
-- drawn from all.
function RandomSampler:init(...)
  self.data_source, self.replacement, self._num_samples, self.generator = parse_random(...)
end

-- Longer passes, such as those of programs that count steps and not passes, are drawn in parts.
local LONGEST_ORDER <const> = 1 << 20

-- Returns at most `left` random indices of n samples as an int64 tensor.
local function draw(self, n, left)
  local options = {generator = self.generator, dtype = "int64", device = "cpu"}
  if self.replacement then
    return lt.randint(1, n, {math.min(left, LONGEST_ORDER)}, options)
  end
  local part = lt.randperm(n, options)
  return left < n and part[{{1, left}}] or part
end

-- Returns the numbers of samples of the dataset and of the pass.
local function sizes(self)
  local n, count = kinds.length("RandomSampler", "data_source", self.data_source), #self
  args.check(n > 0 or count == 0, "RandomSampler: cannot draw %d samples: the dataset is empty",
    count)
  return n, count
end

--- Returns the indices of a new pass as an int64 tensor of shape {num_samples}; nil for a pass that
-- is much longer than the dataset, whose indices iter() draws in parts.
function RandomSampler:order()
  local n, left = sizes(self)
  if left > math.max(n, LONGEST_ORDER) then return nil end
  if left == n and not self.replacement then return draw(self, n, n) end
  local parts = {}
  while left > 0 do
    parts[#parts + 1] = draw(self, n, left)
    left = left - #parts[#parts]
  end
  return #parts > 0 and lt.cat(parts) or lt.empty{0, dtype = "int64", device = "cpu"}
end

--- Returns an iterator over the indices of a new pass.
function RandomSampler:iter()
  local n, left = sizes(self)
  if left <= math.max(n, LONGEST_ORDER) then return Sampler.iter(self) end
  local list, i = {}, 0
  return function()
    i = i + 1
    if i > #list then
      if left == 0 then return nil end
      list, i = draw(self, n, left):totable(), 1
      left = left - #list
    end
    return list[i]
  end
end

--- #sampler: returns num_samples, by default the current length of the dataset.
function RandomSampler:__len()
  return self._num_samples or kinds.length("RandomSampler", "data_source", self.data_source)
end

-- ---- SubsetRandomSampler

local SubsetRandomSampler = Sampler:extend "SubsetRandomSampler"
samplers.SubsetRandomSampler = SubsetRandomSampler

local parse_subset = args.signature("SubsetRandomSampler",
  "list|Tensor indices, Generator? generator = nil")

--- data.SubsetRandomSampler(indices, generator = nil): the given indices, a list or an integer
-- tensor, in a new random order in each pass.
function SubsetRandomSampler:init(...)
  local indices, generator = parse_subset(...)
  self.indices = indices
  self.index = indices_of("SubsetRandomSampler", "indices", indices)
  self.generator = generator
end

--- Returns the indices of a new pass as an int64 tensor.
function SubsetRandomSampler:order()
  return self.index:index_select(1,
    lt.randperm(#self, {generator = self.generator, device = "cpu"}))
end

function SubsetRandomSampler:__len() return self.index:size(1) end

-- ---- WeightedRandomSampler

local WeightedRandomSampler = Sampler:extend "WeightedRandomSampler"
samplers.WeightedRandomSampler = WeightedRandomSampler

local parse_weighted = args.signature("WeightedRandomSampler", "list|Tensor weights, "
  .. "int(>=1) num_samples, bool replacement = true, Generator? generator = nil")

--- data.WeightedRandomSampler(weights, num_samples, replacement = true, generator = nil): draws
-- index i with a probability proportional to weights[i]. Raises an error unless the weights are a
-- list of numbers or a tensor of one dimension.
function WeightedRandomSampler:init(...)
  local weights, count, replacement, generator = parse_weighted(...)
  if not lt.is_tensor(weights) then
    local ok, x = pcall(lt.tensor, weights, {dtype = "float64", device = "cpu"})
    args.expect(ok, "WeightedRandomSampler", "a list of numbers", "weights", weights)
    weights = x
  end
  args.check(weights.ndim == 1, "WeightedRandomSampler: expected a tensor of 1 dimension for "
    .. "argument 'weights', got shape %s", weights.shape)
  self.weights, self.num_samples = weights:to{"cpu", dtype = "float64"}, count
  self.replacement, self.generator = replacement, generator
end

--- Returns the indices of a new pass as an int64 tensor of shape {num_samples}.
function WeightedRandomSampler:order()
  return lt.multinomial(self.weights, self.num_samples, self.replacement,
    {generator = self.generator})
end

function WeightedRandomSampler:__len() return self.num_samples end

-- ---- BatchSampler

local BatchSampler = Sampler:extend "BatchSampler"
samplers.BatchSampler = BatchSampler

local parse_batch = args.signature("BatchSampler",
  "any sampler, int(>=1) batch_size, bool drop_last")

--- data.BatchSampler(sampler, batch_size, drop_last): lists of `batch_size` indices of a sampler (a
-- list, an integer tensor, a sampler, or a function that returns an iterator). With `drop_last`, an
-- incomplete last list is omitted.
function BatchSampler:init(...)
  self.sampler, self.batch_size, self.drop_last = parse_batch(...)
  indices_of.check("BatchSampler", "sampler", self.sampler)
end

--- Returns an iterator over batches, each an integer tensor where the sampler has all its indices
-- at once, else a list.
function BatchSampler:batches()
  local size, drop_last = self.batch_size, self.drop_last
  local order, next_index = indices_of.source("BatchSampler", self.sampler)
  if order then
    local count, first = order:size(1), 1
    return function()
      local last = math.min(first + size - 1, count)
      if last < first or (drop_last and last - first + 1 < size) then return nil end
      local batch = order[{{first, last}}]
      first = last + 1
      return batch
    end
  end
  return function()
    local batch = {}
    while #batch < size do
      local index = next_index()
      if index == nil then break end
      batch[#batch + 1] = index
    end
    if #batch == 0 or (drop_last and #batch < size) then return nil end
    return batch
  end
end

--- Returns an iterator over lists of indices.
function BatchSampler:iter()
  local next_batch = self:batches()
  return function()
    local batch = next_batch()
    return lt.is_tensor(batch) and batch:totable() or batch
  end
end

--- #sampler: returns the number of batches of a pass. Raises an error when the sampler has no
-- length.
function BatchSampler:__len()
  local n = indices_of.count("BatchSampler", self.sampler)
  if self.drop_last then return n // self.batch_size end
  return (n + self.batch_size - 1) // self.batch_size
end

return samplers
