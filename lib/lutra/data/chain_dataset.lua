--- data.ChainDataset: several iterable datasets one after the other.

local args = require "lutra.internal.args"
local IterableDataset = require "lutra.data.iterable_dataset"
local kinds = require "lutra.data.kinds"

local ChainDataset = IterableDataset:extend "ChainDataset"

local parse = args.signature("ChainDataset", "list datasets")

--- data.ChainDataset(datasets): the stream of the samples of a list of iterable datasets, those of
-- the first one first. Raises an error for any other dataset.
function ChainDataset:init(...)
  local datasets = parse(...)
  for i, dataset in ipairs(datasets) do
    args.expect(kinds.is_iterable(dataset), "ChainDataset", "an iterable dataset",
      ("datasets[%d]"):format(i), dataset)
  end
  self.datasets = table.move(datasets, 1, #datasets, 1, {})
end

--- #dataset: returns the sum of the lengths. Raises an error when a dataset has none.
function ChainDataset:__len()
  local total = 0
  for _, dataset in ipairs(self.datasets) do total = total + #dataset end
  return total
end

--- Returns an iterator over the samples of all datasets.
function ChainDataset:iter()
  local k, step, state, control = 0, nil, nil, nil
  local next_sample
  -- Passes the values of a sample on; after the last one, goes on to the next dataset.
  local function pass(first, ...)
    if first == nil then
      step = nil
      return next_sample()
    end
    control = first
    return first, ...
  end
  function next_sample()
    if step then return pass(step(state, control)) end
    k = k + 1
    if not self.datasets[k] then return nil end
    step, state, control = self.datasets[k]:iter()
    return next_sample()
  end
  return next_sample
end

return ChainDataset
