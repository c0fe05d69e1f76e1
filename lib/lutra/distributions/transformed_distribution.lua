--- TransformedDistribution: functions of random values.

local Distribution = require "lutra.distributions.distribution"
local Independent = require "lutra.distributions.independent"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"
local structure = require "lutra.distributions.transform_structure"

--- lt.distributions.TransformedDistribution(base_distribution, transforms, {validate_args = nil}):
-- the distribution of t(x) for x of base_distribution, where t is a transform or a list of
-- transforms that are applied in order (lt.distributions.transforms). Its density needs their
-- inverses.
local Transformed = Distribution:extend("TransformedDistribution")

Transformed.parse = args.signature("TransformedDistribution",
  "any base_distribution, any transforms, bool? validate_args = nil")

function Transformed:init(...)
  local base, transforms, validate_args = self.parse(...)
  args.expect(type(base) == "table" and base.batch_shape ~= nil, self.__name, "a distribution",
    "base_distribution", base)
  args.expect(type(transforms) == "table", self.__name, "a transform or a list of transforms",
    "transforms", transforms)
  if transforms.log_abs_det_jacobian then transforms = {transforms} end
  local all = structure.ComposeTransform(transforms)
  local base_shape, event_dim = shapes.join(base.batch_shape, base.event_shape), #base.event_shape
  args.check(#base_shape >= all.domain.event_dim,
    "%s: expected a base_distribution of at least %d dimensions, got shape %s", self.__name,
    all.domain.event_dim, tostring(shapes.shape(base_shape)))
  local shape = all:forward_shape(base_shape)
  local expanded = all:inverse_shape(shape)
  if tostring(shapes.shape(expanded)) ~= tostring(shapes.shape(base_shape)) then
    base = base:expand(shapes.part(expanded, 1, #expanded - event_dim))
  end
  local more = all.domain.event_dim - event_dim
  if more > 0 then base = Independent(base, more) end
  self.base_dist, self.transforms = base, transforms
  local events = math.max(all.codomain.event_dim,
    event_dim + all.codomain.event_dim - all.domain.event_dim)
  local cut = #shape - events
  self:set_shapes(shapes.part(shape, 1, cut), shapes.part(shape, cut + 1, #shape), validate_args)
end

function Transformed:expand(...)
  local sizes, new = shapes.read("expand", ...), setmetatable({}, getmetatable(self))
  for key, value in pairs(self) do new[key] = value end
  local shape = shapes.join(sizes, self.event_shape)
  for i = #self.transforms, 1, -1 do shape = self.transforms[i]:inverse_shape(shape) end
  new.base_dist = self.base_dist:expand(shapes.part(shape, 1,
    #shape - #self.base_dist.event_shape))
  new.batch_shape = shapes.shape(sizes)
  return new
end

function Transformed.get:has_rsample() return self.base_dist.has_rsample end
function Transformed.get:support()
  local last = self.transforms[#self.transforms]
  if not last then return self.base_dist.support end
  local more = #self.event_shape - last.codomain.event_dim
  return more > 0 and constraints.independent(last.codomain, more) or last.codomain
end

function Transformed:a_tensor() return self.base_dist:a_tensor() end

local function transformed(self, x)
  for _, transform in ipairs(self.transforms) do x = transform(x) end
  return x
end

function Transformed:rsample(...) return transformed(self, self.base_dist:rsample(...)) end
function Transformed:sample(...)
  return require("lutra").no_grad(function(...)
    return transformed(self, self.base_dist:sample(...)):detach()
  end, ...)
end

function Transformed:log_prob(value)
  local y, event_dim, sum = self:check_value("log_prob", value), #self.event_shape, 0
  for i = #self.transforms, 1, -1 do
    local transform = self.transforms[i]
    local x = transform:inverse(y)
    event_dim = event_dim + transform.domain.event_dim - transform.codomain.event_dim
    sum = sum - shapes.sum_last(transform:log_abs_det_jacobian(x, y),
      event_dim - transform.domain.event_dim)
    y = x
  end
  return sum + shapes.sum_last(self.base_dist:log_prob(y), event_dim - #self.base_dist.event_shape)
end

-- Returns p, or 1 - p where the transforms reverse the order.
local function monotonic(self, p)
  local sign = 1
  for _, transform in ipairs(self.transforms) do
    args.check(transform.sign, "%s: cannot compute the distribution function: %s is not monotonic",
      self.__name, tostring(transform))
    sign = sign * transform.sign
  end
  if sign == 1 then return p end
  return sign * (p - 0.5) + 0.5
end

function Transformed:cdf(value)
  value = self:check_value("cdf", value)
  for i = #self.transforms, 1, -1 do value = self.transforms[i]:inverse(value) end
  return monotonic(self, self.base_dist:cdf(value))
end

function Transformed:icdf(value)
  return transformed(self, self.base_dist:icdf(monotonic(self, value)))
end

function Transformed:__tostring()
  local list = {}
  for i, transform in ipairs(self.transforms) do list[i] = tostring(transform) end
  return ("%s(%s, {%s})"):format(self.__name, tostring(self.base_dist), table.concat(list, ", "))
end

return Transformed
