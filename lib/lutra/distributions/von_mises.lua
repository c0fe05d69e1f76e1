--- VonMises: the von Mises distribution of angles.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"

local pi = math.pi

--- lt.distributions.VonMises(loc, concentration, {validate_args = nil}): angles from -pi to pi with
-- density proportional to exp(concentration cos(x - loc)). Samples are drawn by rejection (Best and
-- Fisher 1979), without gradients.
local VonMises = Distribution:extend("VonMises", {
  params = {{"loc", "real"}, {"concentration", "positive"}}, support = "real"})

function VonMises.get:mean() return self.loc end
function VonMises.get:mode() return self.loc end
function VonMises.get:variance()
  return 1 - lt.special.i1e(self.concentration) / lt.special.i0e(self.concentration)
end

function VonMises:log_prob(value)
  value = self:check_value("log_prob", value)
  local k = self.concentration
  return k * ((value - self.loc):cos() - 1) - math.log(2 * pi) - lt.special.i0e(k):log()
end

-- Draws samples around 0 for each element of k.
local function draw(k)
  local tau = 1 + (1 + 4 * k ^ 2):sqrt()
  local rho = (tau - (2 * tau):sqrt()) / (2 * k)
  local r = lt.where(k:lt(1e-4), 1 / k + k, (1 + rho ^ 2) / (2 * rho))
  local x, done = lt.zeros_like(k), lt.zeros_like(k, {dtype = "bool"})
  while not done:all():item() do
    local u1, u2, u3 = lt.rand_like(k), lt.rand_like(k), lt.rand_like(k)
    local z = (pi * u1):cos()
    local f = (1 + r * z) / (r + z)
    local c = k * (r - f)
    local accepted = (c * (2 - c) - u2):gt(0) | ((c / u2):log() + 1 - c):ge(0)
    x = lt.where(accepted & done:logical_not(), (u3 - 0.5):sign() * f:clamp(-1, 1):acos(), x)
    done = done | accepted
  end
  return x
end

function VonMises:sample(...)
  local sizes = self:sample_sizes(...)
  return lt.no_grad(function()
    local k = self.concentration:expand(sizes)
    local wide = k.is_mps and "float32" or "float64"
    local x = draw(k:to(wide)):to(k.dtype)
    return (x + pi + self.loc) % (2 * pi) - pi
  end)
end

return VonMises
