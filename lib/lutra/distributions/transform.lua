--- Transform: the base class of transforms.

local lt = require "lutra"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"

local Transform = {__name = "Transform", domain = constraints.real, codomain = constraints.real,
  bijective = false, sign = nil}

local Inverse

-- Returns the __index of instances: fields of the class, then the inverse.
local function index_by(class)
  return function(self, key)
    local value = class[key]
    if value == nil and key == "inv" then
      value = Inverse(self)
      rawset(self, "inv", value)
    end
    return value
  end
end

-- Applies a transform to a tensor.
local function apply(self, x)
  args.expect(lt.is_tensor(x), self.__name, "a tensor", "x", x)
  return self:forward(x)
end

local function construct(class, ...)
  local self = setmetatable({}, class)
  self:init(...)
  return self
end

--- Returns a subclass: `local Cube = Transform:extend("Cube", {bijective = true})`. `options` may
-- have `domain`, `codomain` (constraints), `bijective`, and `sign`, 1 or -1 for a monotonic
-- function. Define Cube:forward(x), Cube:inverse(y) and Cube:log_abs_det_jacobian(x, y). Raises an
-- error unless `name` is a string.
function Transform:extend(name, options)
  args.expect(type(name) == "string", "extend", "a string", "name", name)
  local class = {__name = name, __call = apply, __tostring = self.__tostring}
  for key, value in pairs(options or {}) do class[key] = value end
  class.__index = index_by(class)
  class.__names = class -- where __index looks, for completion
  return setmetatable(class, {__index = self, __call = construct, __name = "class " .. name,
    __tostring = function() return "class lt.distributions.transforms." .. name end})
end

--- Initializes an instance; the class calls it with the arguments of the constructor.
function Transform.init() end

--- Returns the transform of a tensor; every class defines its own, or _call, PyTorch's name of it.
function Transform:forward(x)
  if self._call then return self:_call(x) end
  args.fail("%s: cannot compute: the class has no method forward", self.__name)
end

--- Returns the tensor whose transform is y; every class that is bijective defines its own, or
-- _inverse, PyTorch's name of it.
function Transform:inverse(y)
  if self._inverse then return self:_inverse(y) end
  args.fail("%s: cannot compute the inverse", self.__name)
end

--- Returns log |det(dy / dx)| for y = t(x); every class that is bijective defines its own.
function Transform:log_abs_det_jacobian()
  args.fail("%s: log_abs_det_jacobian is not available", self.__name)
end

--- Returns the shape of the transform of a tensor of shape `shape`.
function Transform.forward_shape(_, shape) return shape end

--- Returns the shape of a tensor whose transform has shape `shape`.
function Transform.inverse_shape(_, shape) return shape end

--- Returns whether two transforms compute the same function: one without parameters equals any
-- other of its class.
function Transform:equals(other)
  return rawequal(self, other)
    or getmetatable(self) == getmetatable(other) and next(self.parameters or {}) == nil
end

--- Returns the class.
function Transform:__tostring() return self.__name .. "()" end

setmetatable(Transform, {__name = "class Transform",
  __tostring = function() return "class lt.distributions.transforms.Transform" end})

Inverse = Transform:extend "InverseTransform"

function Inverse:init(transform)
  self.inv, self.domain, self.codomain = transform, transform.codomain, transform.domain
  self.bijective, self.sign = transform.bijective, transform.sign
end
function Inverse:forward(x) return self.inv:inverse(x) end
function Inverse:inverse(y) return self.inv:forward(y) end
function Inverse:log_abs_det_jacobian(x, y) return -self.inv:log_abs_det_jacobian(y, x) end
function Inverse:forward_shape(shape) return self.inv:inverse_shape(shape) end
function Inverse:inverse_shape(shape) return self.inv:forward_shape(shape) end
function Inverse:equals(other)
  return getmetatable(other) == Inverse and self.inv:equals(other.inv)
end
function Inverse:__tostring() return ("InverseTransform(%s)"):format(tostring(self.inv)) end

return Transform
