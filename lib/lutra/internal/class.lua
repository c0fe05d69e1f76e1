--- Plain classes with inheritance, for objects of the library that are no modules or datasets.

local args = require "lutra.internal.args"

local function construct(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end

--- Returns a new class: calling it makes an instance and calls class:init(...); class:extend(name)
-- returns a subclass. `label` is its full name for users, "lt.tokenizers.Tokenizer".
return function(name, label)
  local class = {__name = name}
  class.__index = class

  -- Returns a subclass with this name; calls of methods that it lacks go to the class.
  function class.extend(self, other)
    args.expect(type(other) == "string", "extend", "a string", "name", other)
    local sub = {__name = other, __tostring = self.__tostring, __gc = self.__gc,
      __close = self.__close}
    sub.__index = sub
    return setmetatable(sub, {__index = self, __call = construct, __name = "class " .. other,
      __tostring = function() return "class " .. other end})
  end

  return setmetatable(class, {__call = construct, __name = "class " .. name,
    __tostring = function() return "class " .. label end})
end
