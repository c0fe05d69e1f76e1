--- Dataset: samples by position, counted from 1.
--
-- Idea: a dataset is a class with get(i), which returns the values of sample i, and a
-- length. One that can fetch many samples at once also has get_batch(positions), which
-- the loader uses instead of collating samples one by one.

local args = require "lutra.internal.args"

local Dataset = {__name = "Dataset"}

-- dataset.name is a method or field; dataset[i] is the list of sample i's values.
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

--- Makes a subclass: `local Squares = data.Dataset:extend "Squares"`. Define
-- Squares:init(...), Squares:get(i) and Squares:__len().
function Dataset:extend(name)
  args.check(type(name) == "string", "extend: the class's name is %s, it wants a string",
    args.show(name))
  local class = {__name = name, __len = self.__len, __tostring = self.__tostring}
  class.__index = index_by(class)
  class.__names = class -- where __index looks, for completion
  return setmetatable(class, {
    __index = self, __call = construct, __name = "class " .. name,
    __tostring = function() return "class data." .. name end,
  })
end

--- Called with the class's arguments.
function Dataset.init() end

--- The values of sample i; every class defines its own.
function Dataset:get()
  args.fail("%s: this class has no get method", getmetatable(self).__name)
end

--- The number of samples; every class defines its own.
function Dataset:__len()
  args.fail("%s: this class has no __len method", getmetatable(self).__name)
end

function Dataset:__tostring()
  return ("%s of %d samples"):format(getmetatable(self).__name, #self)
end

--- Checks that i is a position of the dataset and returns it as 1..n.
function Dataset:check_position(i)
  local n, name = #self, getmetatable(self).__name
  args.check(math.type(i) == "integer", "%s: a position is an integer, got %s", name, args.show(i))
  args.check(i ~= 0, "%s: positions count from 1, got 0", name)
  args.check(i >= -n and i <= n, "%s: there is no sample %d, there are %d", name, i, n)
  return i > 0 and i or n + 1 + i
end

return Dataset
