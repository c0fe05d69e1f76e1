--- Independent: dims of a batch as dims of an event.

local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.Independent(base_distribution, reinterpreted_batch_ndims, {validate_args =
-- nil}): the distribution in which the last dims of base_distribution's batch belong to one event,
-- so that log_prob is a sum over them. Raises an error for more dims than the batch has.
local Independent = Distribution:extend("Independent")

Independent.parse = args.signature("Independent",
  "any base_distribution, int(>=0) reinterpreted_batch_ndims, bool? validate_args = nil")

function Independent:init(...)
  local base, n, validate_args = self.parse(...)
  args.expect(type(base) == "table" and base.batch_shape ~= nil, "Independent", "a distribution",
    "base_distribution", base)
  local batch = #base.batch_shape
  args.check(n <= batch,
    "Independent: expected at most %d for argument 'reinterpreted_batch_ndims', got %d", batch, n)
  self.base_dist, self.reinterpreted_batch_ndims = base, n
  self:set_shapes(shapes.part(base.batch_shape, 1, batch - n),
    shapes.join(shapes.part(base.batch_shape, batch - n + 1, batch), base.event_shape),
    validate_args)
end

function Independent:expand(...)
  local sizes, new = shapes.read("expand", ...), setmetatable({}, getmetatable(self))
  for key, value in pairs(self) do new[key] = value end
  local n = self.reinterpreted_batch_ndims
  new.base_dist = self.base_dist:expand(shapes.join(sizes, shapes.part(self.event_shape, 1, n)))
  new.batch_shape = shapes.shape(sizes)
  return new
end

function Independent.get:has_rsample() return self.base_dist.has_rsample end
function Independent.get:has_enumerate_support()
  return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support
end
function Independent.get:support()
  local support, n = self.base_dist.support, self.reinterpreted_batch_ndims
  return n > 0 and constraints.independent(support, n) or support
end
function Independent.get:mean() return self.base_dist.mean end
function Independent.get:mode() return self.base_dist.mode end
function Independent.get:variance() return self.base_dist.variance end

function Independent:a_tensor() return self.base_dist:a_tensor() end
function Independent:sample(...) return self.base_dist:sample(...) end
function Independent:rsample(...) return self.base_dist:rsample(...) end
function Independent:log_prob(value)
  return shapes.sum_last(self.base_dist:log_prob(value), self.reinterpreted_batch_ndims)
end
function Independent:entropy()
  return shapes.sum_last(self.base_dist:entropy(), self.reinterpreted_batch_ndims)
end

function Independent:enumerate_support(expand)
  args.check(self.reinterpreted_batch_ndims == 0,
    "Independent: cannot enumerate the products of supports")
  return self.base_dist:enumerate_support(expand)
end

function Independent:__tostring()
  return ("Independent(%s, %d)"):format(tostring(self.base_dist), self.reinterpreted_batch_ndims)
end

return Independent
