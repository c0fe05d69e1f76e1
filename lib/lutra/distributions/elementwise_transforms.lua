--- Transforms of each element.

local lt = require "lutra"
local Transform = require "lutra.distributions.transform"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"

local transforms = {}

local function define(name, options)
  options.bijective = options.bijective ~= false
  transforms[name] = Transform:extend(name, options)
  return transforms[name]
end

--- lt.distributions.transforms.ExpTransform(): y = exp(x).
local Exp = define("ExpTransform", {codomain = constraints.positive, sign = 1})
function Exp.forward(_, x) return x:exp() end
function Exp.inverse(_, y) return y:log() end
function Exp.log_abs_det_jacobian(_, x) return x end

--- lt.distributions.transforms.SigmoidTransform(): y = 1 / (1 + exp(-x)).
local Sigmoid = define("SigmoidTransform", {codomain = constraints.unit_interval, sign = 1})
function Sigmoid.forward(_, x)
  local info = lt.finfo(x.dtype)
  return x:sigmoid():clamp(info.tiny, 1 - info.eps)
end
function Sigmoid.inverse(_, y)
  local info = lt.finfo(y.dtype)
  y = y:clamp(info.tiny, 1 - info.eps)
  return y:log() - lt.log1p(-y)
end
function Sigmoid.log_abs_det_jacobian(_, x) return -lt.F.softplus(-x) - lt.F.softplus(x) end

--- lt.distributions.transforms.TanhTransform(): y = tanh(x).
local Tanh = define("TanhTransform", {codomain = constraints.interval(-1, 1), sign = 1})
function Tanh.forward(_, x) return x:tanh() end
function Tanh.inverse(_, y) return y:atanh() end
function Tanh.log_abs_det_jacobian(_, x) return 2 * (math.log(2) - x - lt.F.softplus(-2 * x)) end

--- lt.distributions.transforms.SoftplusTransform(): y = log(1 + exp(x)).
local Softplus = define("SoftplusTransform", {codomain = constraints.positive, sign = 1})
function Softplus.forward(_, x) return lt.F.softplus(x) end
function Softplus.inverse(_, y) return lt.log(-lt.expm1(-y)) + y end
function Softplus.log_abs_det_jacobian(_, x) return -lt.F.softplus(-x) end

--- lt.distributions.transforms.AbsTransform(): y = |x|, with inverse y.
local Abs = define("AbsTransform", {codomain = constraints.positive, bijective = false})
function Abs.forward(_, x) return x:abs() end
function Abs.inverse(_, y) return y end

--- lt.distributions.transforms.PowerTransform(exponent): y = x^exponent for x above 0; `exponent`
-- is a number or a tensor other than 0.
local Power = define("PowerTransform", {domain = constraints.positive,
  codomain = constraints.positive})
local parse_power = args.signature("PowerTransform", "Tensor|float exponent")
function Power:init(...)
  self.exponent = shapes.broadcast{parse_power(...)}[1]
  self.parameters = {self.exponent}
  if self.exponent:numel() == 1 then self.sign = self.exponent:item() > 0 and 1 or -1 end
end
function Power:forward(x) return x ^ self.exponent end
function Power:inverse(y) return y ^ (1 / self.exponent) end
function Power:log_abs_det_jacobian(x, y) return (self.exponent * y / x):abs():log() end

--- lt.distributions.transforms.AffineTransform(loc, scale, {event_dim = 0}): y = loc + scale * x,
-- of numbers or tensors. The Jacobian is summed over the last event_dim dims, 0, 1 or 2.
local Affine = define("AffineTransform", {})
local parse_affine = args.signature("AffineTransform",
  "Tensor|float loc, Tensor|float scale, int(>=0) event_dim = 0")
function Affine:init(...)
  local event_dim
  self.loc, self.scale, event_dim = parse_affine(...)
  self.event_dim, self.parameters = event_dim, {self.loc, self.scale}
  if event_dim > 0 then
    self.domain = constraints.independent(constraints.real, event_dim)
    self.codomain = self.domain
  end
  local scale = self.scale
  if lt.is_tensor(scale) then
    self.sign = scale:gt(0):all():item() and 1 or scale:lt(0):all():item() and -1 or scale:sign()
  else
    self.sign = scale > 0 and 1 or -1
  end
end
function Affine:forward(x) return self.loc + self.scale * x end
function Affine:inverse(y) return (y - self.loc) / self.scale end
function Affine:log_abs_det_jacobian(x)
  local scale = lt.is_tensor(self.scale) and self.scale or lt.full_like(x:detach(), self.scale)
  local sum = shapes.sum_last(scale:abs():log():expand_as(x), self.event_dim)
  return sum
end
function Affine:equals(other)
  if rawequal(self, other) then return true end
  if getmetatable(other) ~= Affine then return false end
  local function equal(a, b)
    if lt.is_tensor(a) and lt.is_tensor(b) then return lt.equal(a, b) end
    return a == b
  end
  return equal(self.loc, other.loc) and equal(self.scale, other.scale)
end

--- lt.distributions.transforms.CumulativeDistributionTransform(distribution): y =
-- distribution:cdf(x).
local Cumulative = define("CumulativeDistributionTransform",
  {codomain = constraints.unit_interval, sign = 1})
function Cumulative:init(distribution)
  args.expect(type(distribution) == "table" and distribution.cdf ~= nil,
    "CumulativeDistributionTransform", "a distribution", "distribution", distribution)
  self.distribution, self.domain = distribution, distribution.support
  self.parameters = {distribution}
end
function Cumulative:forward(x) return self.distribution:cdf(x) end
function Cumulative:inverse(y) return self.distribution:icdf(y) end
function Cumulative:log_abs_det_jacobian(x) return self.distribution:log_prob(x) end

return transforms
