--- data.Subset and data.random_split: parts of a dataset.

local lt = require "lutra"
local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"

local Subset = Dataset:extend "Subset"

local function length_of(title, dataset)
  local n = #dataset
  args.check(math.type(n) == "integer" and n >= 0,
    "%s: expected a dataset with a length for argument 'dataset', got one of length %s", title,
    args.show(n))
  return n
end

--- data.Subset(dataset, indices): the dataset whose sample i is sample indices[i] of `dataset`.
-- `indices` is a list or an integer tensor of values from 1 to #dataset; any other value raises an
-- error.
function Subset:init(dataset, positions)
  local is_table = type(dataset) == "table"
  local n = is_table and length_of("Subset", dataset)
  args.check(is_table and args.is_callable(dataset.get),
    "Subset: expected a dataset for argument 'dataset', got %s", args.show(dataset))
  if lt.is_tensor(positions) then positions = positions:totable() end
  args.expect(type(positions) == "table", "Subset", "a list", "positions", positions)
  for i, position in ipairs(positions) do
    args.check(math.type(position) == "integer" and position >= 1 and position <= n,
      "Subset: expected an integer from 1 to %d for argument 'positions[%d]', got %s", n, i,
      args.show(position))
  end
  self.dataset, self.positions = dataset, positions
  if args.is_callable(dataset.get_batch) then
    self.index = lt.tensor(positions, {dtype = "int64"})
    self.get_batch = function(subset, indices)
      return subset.dataset:get_batch(subset.index:index_select(1, indices))
    end
  end
end

function Subset:__len() return #self.positions end

--- Returns the values of sample i of the subset.
function Subset:get(i) return self.dataset:get(self.positions[self:check_position(i)]) end

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
    lengths[i] = math.floor(n * part + 1e-9)
    total = total + lengths[i]
  end
  for i = 1, n - total do -- the first parts get the samples that rounding left over
    local k = (i - 1) % #lengths + 1
    lengths[k] = lengths[k] + 1
  end
  return lengths
end

local parse_split = args.signature("random_split",
  "table dataset, list lengths, Generator? generator = nil")

--- Returns a list of data.Subset: disjoint random parts of the given lengths, or fractions that add
-- up to 1. Raises an error when they do not add up to #dataset or 1.
local function random_split(...)
  local dataset, parts, generator = parse_split(...)
  local n = length_of("random_split", dataset)
  local lengths = to_lengths(n, parts)
  local order = lt.randperm(n, {generator = generator}):totable()
  local subsets, first = {}, 1
  for i, length in ipairs(lengths) do
    length = math.tointeger(length)
    subsets[i] = Subset(dataset, table.move(order, first, first + length - 1, 1, {}))
    first = first + length
  end
  return subsets
end

return {Subset = Subset, random_split = random_split}
