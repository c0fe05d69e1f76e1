--- data.IterableDataset: the base class of datasets that are streams of samples.
--
-- An iterable dataset is a class with iter(), which returns an iterator: a function that returns
-- the values of the next sample, nil at the end. __len is optional; `#loader` requires it. With
-- workers, each worker iterates over a copy of its own; data.get_worker_info() tells iter() which
-- part to return.

local args = require "lutra.internal.args"
local Dataset = require "lutra.data.dataset"

local IterableDataset = Dataset:extend "IterableDataset"

--- Returns an iterator over the samples of a new pass; every class defines its own.
function IterableDataset:iter()
  local iter = self.__iter__
  if iter then return iter(self) end
  args.fail("%s: cannot iterate over the samples: the class has no method iter",
    getmetatable(self).__name)
end

--- a + b: returns the data.ChainDataset of two iterable datasets.
function IterableDataset.__add(a, b) return require "lutra.data.chain_dataset"({a, b}) end

function IterableDataset:__tostring() return getmetatable(self).__name end

return IterableDataset
