--- data.Dataset: the base class of datasets: samples by a 1-based index.
--
-- A dataset is a class with get(i), which returns the values of sample i, and __len. One that can
-- fetch many samples at once also has get_batch(indices), which the loader then calls instead of
-- collating single samples. The names of PyTorch's methods, __getitem__ for get and __len__ for
-- __len, are accepted, too.

local args = require "lutra.internal.args"

local Dataset = {__name = "Dataset"}

-- Returns the __index of a class: dataset.name is a method or field; dataset[i] is the list of the
-- values of sample i.
local function index_by(class)
  return function(self, key)
    if math.type(key) == "integer" then return {self:get(key)} end
    return class[key]
  end
end

local function construct(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end

--- Returns a subclass: `local Squares = data.Dataset:extend "Squares"`. Define Squares:init(...),
-- Squares:get(i) and Squares:__len(). Raises an error unless `name` is a string.
function Dataset:extend(name)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  local class = {__name = name, __len = self.__len, __tostring = self.__tostring,
    __add = self.__add}
  class.__index = index_by(class)
  class.__names = class -- where __index looks, for completion
  return setmetatable(class, {
    __index = self, __call = construct, __name = "class " .. name,
    __tostring = function() return "class data." .. name end,
  })
end

--- Initializes an instance; the class calls it with the arguments of the constructor.
function Dataset.init() end

--- Returns the values of sample i; every class defines its own.
function Dataset:get(i)
  local get = self.__getitem__
  if get then return get(self, i) end
  local name = getmetatable(self).__name
  args.fail("%s: cannot read a sample: the class has no method get\nhint: function %s:get(i)", name,
    name)
end

--- #dataset: returns the number of samples; every class defines its own.
function Dataset:__len()
  local length = self.__len__
  if length then return length(self) end
  local name = getmetatable(self).__name
  args.fail("%s: cannot count the samples: the class has no method __len\n"
    .. "hint: function %s:__len()", name, name)
end

--- a + b: returns the data.ConcatDataset of two datasets.
function Dataset.__add(a, b) return require "lutra.data.concat_dataset"({a, b}) end

function Dataset:__tostring()
  return ("%s of %d samples"):format(getmetatable(self).__name, #self)
end

--- Returns the index i as 1 to n; a negative one counts from the end. Raises an error unless i is
-- an integer of -n to -1 or 1 to n.
function Dataset:check_position(i)
  local n, name = #self, getmetatable(self).__name
  args.check(math.type(i) == "integer", "%s: expected an integer index, got %s", name, args.show(i))
  args.check(i ~= 0 and i >= -n and i <= n,
    "%s: expected an index from 1 to %d or from -%d to -1, got %d", name, n, n, i)
  return i > 0 and i or n + 1 + i
end

return Dataset
