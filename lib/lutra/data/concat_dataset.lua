--- data.ConcatDataset: several datasets one after the other.

local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"
local kinds = require "lutra.data.kinds"

local ConcatDataset = Dataset:extend "ConcatDataset"

local parse = args.signature("ConcatDataset", "list datasets")

--- data.ConcatDataset(datasets): the dataset of the samples of a list of datasets, those of the
-- first one first. Raises an error for an empty list and for an iterable dataset (see
-- data.ChainDataset). The field cumulative_sizes has the number of samples up to each dataset.
function ConcatDataset:init(...)
  local datasets = parse(...)
  args.check(#datasets > 0, "ConcatDataset: expected at least one dataset for argument 'datasets'")
  local sizes, total = {}, 0
  for i, dataset in ipairs(datasets) do
    local name = ("datasets[%d]"):format(i)
    args.check(not kinds.is_iterable(dataset), "ConcatDataset: expected a dataset with get for "
      .. "argument '%s', got an iterable dataset\nhint: data.ChainDataset(datasets)", name)
    kinds.check_map("ConcatDataset", name, dataset)
    total = total + kinds.length("ConcatDataset", name, dataset)
    sizes[i] = total
  end
  self.datasets, self.cumulative_sizes = table.move(datasets, 1, #datasets, 1, {}), sizes
end

function ConcatDataset:__len() return self.cumulative_sizes[#self.cumulative_sizes] end

-- Returns the number of the dataset that has sample i: the first whose cumulative size reaches i.
local function find(sizes, i)
  local low, high = 1, #sizes
  while low < high do
    local middle = (low + high) // 2
    if sizes[middle] >= i then high = middle else low = middle + 1 end
  end
  return low
end

--- Returns the values of sample i, counted over all datasets.
function ConcatDataset:get(i)
  i = self:check_position(i)
  local k = find(self.cumulative_sizes, i)
  return kinds.sample(self.datasets[k], i - (self.cumulative_sizes[k - 1] or 0))
end

return ConcatDataset
