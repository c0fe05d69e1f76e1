--- LogNormal: numbers whose logarithm is normal.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local Normal = require "lutra.distributions.normal"

--- lt.distributions.LogNormal(loc, scale, {validate_args = nil}): exp(x) for x of Normal(loc,
-- scale).
local LogNormal = Distribution:extend("LogNormal", {
  params = {{"loc", "real"}, {"scale", "positive"}}, support = "positive", has_rsample = true})

function LogNormal.get:base_dist()
  return Normal(self.loc, self.scale, {validate_args = false})
end
function LogNormal.get:mean() return (self.loc + self.scale ^ 2 / 2):exp() end
function LogNormal.get:mode() return (self.loc - self.scale ^ 2):exp() end
function LogNormal.get:variance()
  local square = self.scale ^ 2
  return lt.expm1(square) * (2 * self.loc + square):exp()
end

function LogNormal:rsample(...)
  return self.base_dist:rsample(shapes.read("sample", ...)):exp()
end

function LogNormal:log_prob(value)
  local x = self:check_value("log_prob", value):log()
  return self.base_dist:log_prob(x) - x
end

function LogNormal:cdf(value) return self.base_dist:cdf(self:check_value("cdf", value):log()) end
function LogNormal:icdf(value) return self.base_dist:icdf(value):exp() end
function LogNormal:entropy() return self.base_dist:entropy() + self.loc end

return LogNormal
