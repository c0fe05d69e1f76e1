--- data.StackDataset: datasets side by side, whose samples are combined.

local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"
local kinds = require "lutra.data.kinds"

local StackDataset = Dataset:extend "StackDataset"

-- Returns the datasets as given: a packed list, or a table of names. Raises an error for both.
local function read(...)
  local given = table.pack(...)
  if given.n ~= 1 or not args.is_plain(given[1]) then return given, true end
  local datasets = given[1]
  local named = false
  for key in pairs(datasets) do named = named or type(key) ~= "number" end
  args.check(not (named and #datasets > 0),
    "StackDataset: expected datasets by position or by name, got both")
  if named then return datasets, false end
  return table.move(datasets, 1, #datasets, 1, {n = #datasets}), true
end

--- data.StackDataset(a, b, ...) or data.StackDataset{image = a, label = b}: the dataset whose
-- sample i has the values a[i], b[i], ... or is the table {image = a[i], label = b[i]}. Where a
-- dataset returns several values for a sample, they become a list. Raises an error unless all
-- datasets have the same length.
function StackDataset:init(...)
  local datasets, by_position = read(...)
  local first
  for key, dataset in pairs(datasets) do
    if key ~= "n" or not by_position then
      local name = ("datasets[%s]"):format(tostring(key))
      kinds.check_map("StackDataset", name, dataset)
      local n = kinds.length("StackDataset", name, dataset)
      first = first or n
      args.check(n == first, "StackDataset: expected datasets of the same length, got %d and %d",
        first, n)
    end
  end
  args.check(first, "StackDataset: expected at least one dataset, got none")
  self.datasets, self.length, self.by_position = datasets, first, by_position
end

function StackDataset:__len() return self.length end

local function single(...)
  if select("#", ...) == 1 then return (...) end
  return {...}
end

--- Returns the values of sample i of each dataset, or a table of them by name.
function StackDataset:get(i)
  i = self:check_position(i)
  local values = {}
  if not self.by_position then
    for name, dataset in pairs(self.datasets) do
      values[name] = single(kinds.sample(dataset, i))
    end
    return values
  end
  for k = 1, self.datasets.n do values[k] = single(kinds.sample(self.datasets[k], i)) end
  return table.unpack(values, 1, self.datasets.n)
end

return StackDataset
