--- data.Sampler: the base class of samplers, which choose the samples of a pass and their order.
--
-- A sampler is a class with iter(), which returns an iterator over indices, and __len, the number
-- of indices. One that has all indices of a pass at once also has order(), which returns them as an
-- integer tensor; the loader then cuts that instead of collecting indices.

local args = require "lutra.internal.args"

local Sampler = {__name = "Sampler"}
Sampler.__index = Sampler

local function construct(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end

--- Returns a subclass: `local Every = data.Sampler:extend "Every"`. Define Every:init(...),
-- Every:iter() and Every:__len(). Raises an error unless `name` is a string.
function Sampler:extend(name)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  local class = {__name = name, __len = self.__len, __tostring = self.__tostring}
  class.__index = class
  return setmetatable(class, {
    __index = self, __call = construct, __name = "class " .. name,
    __tostring = function() return "class data." .. name end,
  })
end

--- Initializes an instance; the class calls it with the arguments of the constructor.
function Sampler.init() end

--- Returns an iterator over the indices of a new pass; a class defines this method or order().
function Sampler:iter()
  if self.__iter__ then return self.__iter__(self) end
  if not self.order then
    args.fail("%s: cannot iterate over the indices: the class has no method iter",
      getmetatable(self).__name)
  end
  local indices, i = self:order():totable(), 0
  return function()
    i = i + 1
    return indices[i]
  end
end

--- #sampler: returns the number of indices of a pass; every class defines its own.
function Sampler:__len()
  if self.__len__ then return self.__len__(self) end
  args.fail("%s: cannot count the indices: the class has no method __len",
    getmetatable(self).__name)
end

function Sampler:__tostring() return getmetatable(self).__name end

return Sampler
