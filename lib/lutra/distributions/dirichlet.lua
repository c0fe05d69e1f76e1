--- Dirichlet: the Dirichlet distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local shapes = require "lutra.distributions.shapes"
local standard_gamma = require "lutra.distributions.standard_gamma"

--- lt.distributions.Dirichlet(concentration, {validate_args = nil}): vectors of numbers with sum 1.
-- `concentration` is a tensor of numbers above 0, whose last dim is that of the vectors.
local Dirichlet = Distribution:extend("Dirichlet", {
  params = {{"concentration", "positive"}}, support = "simplex", has_rsample = true})

function Dirichlet:init(...)
  local concentration, validate_args = self.parse(...)
  args.expect(lt.is_tensor(concentration) and concentration.ndim > 0, "Dirichlet",
    "a tensor of at least one dimension", "concentration", concentration)
  self.concentration = concentration
  local n = concentration.ndim
  self:set_shapes(shapes.part(concentration.shape, 1, n - 1), {concentration:size(n)},
    validate_args)
end

local function total(x) return x:sum{dim = -1, keepdim = true} end

function Dirichlet.get:mean() return self.concentration / total(self.concentration) end
function Dirichlet.get:mode()
  local above = (self.concentration - 1):clamp(0)
  local mode = above / total(above)
  local largest = lt.F.one_hot(mode:nan_to_num():argmax(-1), mode:size(-1)):to(mode.dtype)
  return lt.where(self.concentration:lt(1):all(-1, true), largest, mode)
end
function Dirichlet.get:variance()
  local a, sum = self.concentration, total(self.concentration)
  return a * (sum - a) / (sum ^ 2 * (sum + 1))
end

function Dirichlet:rsample(...)
  local z = standard_gamma(self.concentration:expand(self:sample_sizes(...)))
  return z / total(z)
end

function Dirichlet:log_prob(value)
  value = self:check_value("log_prob", value)
  local a = self.concentration
  return lt.xlogy(a - 1, value):sum(-1) + a:sum(-1):lgamma() - a:lgamma():sum(-1)
end

function Dirichlet:entropy()
  local a = self.concentration
  local k, sum = a:size(-1), a:sum(-1)
  return a:lgamma():sum(-1) - sum:lgamma() - (k - sum) * sum:digamma()
    - ((a - 1) * a:digamma()):sum(-1)
end

return Dirichlet
