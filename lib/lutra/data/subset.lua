--- data.Subset and data.random_split: parts of a dataset.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"
local kinds = require "lutra.data.kinds"

local Subset = Dataset:extend "Subset"

local function get_batch(subset, indices)
  return subset.dataset:get_batch(subset.index:index_select(1, indices))
end

--- data.Subset(dataset, indices): the dataset whose sample i is sample indices[i] of `dataset`.
-- `indices` is a list or an integer tensor of values from 1 to #dataset; any other value raises an
-- error.
function Subset:init(dataset, indices)
  args.expect(type(dataset) == "table" or lt.is_tensor(dataset), "Subset", "a dataset", "dataset",
    dataset)
  local n = kinds.length("Subset", "dataset", dataset)
  kinds.check_map("Subset", "dataset", dataset)
  if lt.is_tensor(indices) then indices = indices:totable() end
  args.expect(type(indices) == "table", "Subset", "a list", "indices", indices)
  for i, index in ipairs(indices) do
    args.check(math.type(index) == "integer" and index >= 1 and index <= n,
      "Subset: expected an integer from 1 to %d for argument 'indices[%d]', got %s", n, i,
      args.show(index))
  end
  self.dataset, self.indices = dataset, indices
  if not lt.is_tensor(dataset) and args.is_callable(dataset.get_batch) then
    self.index = lt.tensor(indices, {dtype = "int64", device = "cpu"})
    self.get_batch = get_batch
  end
end

function Subset:__len() return #self.indices end

--- Returns the values of sample i of the subset.
function Subset:get(i) return kinds.sample(self.dataset, self.indices[self:check_position(i)]) end

-- Converts lengths, or fractions that add up to 1, to lengths. Raises an error for other sums.
local function to_lengths(n, parts)
  local sum, whole = 0.0, true -- a float: a sum of integers could wrap around
  for i, part in ipairs(parts) do
    args.check(type(part) == "number" and part >= 0,
      "random_split: expected a number of at least 0 for argument 'lengths[%d]', got %s", i,
      args.show(part))
    sum = sum + part
    whole = whole and math.tointeger(part) ~= nil
  end
  if whole and sum == n then return parts end
  args.check(math.abs(sum - 1) < 1e-6,
    "random_split: expected lengths that add up to %d (the samples) or 1, got %g", n, sum)
  local lengths, total = {}, 0
  for i, part in ipairs(parts) do
    lengths[i] = math.floor(n * part)
    total = total + lengths[i]
  end
  for i = 1, n - total do -- the first parts get the samples that rounding left over
    local k = (i - 1) % #lengths + 1
    lengths[k] = lengths[k] + 1
  end
  return lengths
end

local parse_split = args.signature("random_split",
  "table|Tensor dataset, list lengths, Generator? generator = nil")

--- Returns a list of data.Subset: disjoint random parts of the given lengths, or fractions that add
-- up to 1. Raises an error when they do not add up to #dataset or 1.
local function random_split(...)
  local dataset, parts, generator = parse_split(...)
  local n = kinds.length("random_split", "dataset", dataset)
  local lengths = to_lengths(n, parts)
  local order = lt.randperm(n, {generator = generator, device = "cpu"}):totable()
  local subsets, first = {}, 1
  for i, length in ipairs(lengths) do
    length = math.tointeger(length)
    subsets[i] = Subset(dataset, table.move(order, first, first + length - 1, 1, {}))
    first = first + length
  end
  return subsets
end

return {Subset = Subset, random_split = random_split}
