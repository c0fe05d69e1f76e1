--- RelaxedBernoulli: a continuous relaxation of Bernoulli (Maddison, Mnih and Teh 2017).

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local probabilities = require "lutra.distributions.probabilities"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.RelaxedBernoulli(temperature, probs, logits, {validate_args = nil}): numbers
-- from 0 to 1 that are closer to 0 and 1 for a lower `temperature`. Raises an error unless one of
-- probs and logits is given.
local RelaxedBernoulli = Distribution:extend("RelaxedBernoulli", {
  params = {{"temperature", "positive"}, {"probs", "unit_interval"}, {"logits", "real"}},
  support = "unit_interval", has_rsample = true})
probabilities.define(RelaxedBernoulli, true)

function RelaxedBernoulli:init(...)
  local param, given = self:read_probs(1, ...)
  local name = given[2] and "probs" or "logits"
  args.check(given[1] ~= nil,
    "RelaxedBernoulli: expected a number or a tensor for argument 'temperature', got nil")
  self.temperature, self[name] = table.unpack(shapes.broadcast{given[1], param})
  self:set_shapes(self[name].shape, {}, given[4])
end

function RelaxedBernoulli:rsample(...)
  local p = shapes.clamp_probs(self.probs)
  local u = shapes.clamp_probs(lt.rand(self:sample_sizes(...), {dtype = p.dtype,
    device = p.device}))
  local logit = u:log() - lt.log1p(-u) + p:log() - lt.log1p(-p)
  return shapes.clamp_probs((logit / self.temperature):sigmoid())
end

function RelaxedBernoulli:log_prob(value)
  value = self:check_value("log_prob", value)
  local x = shapes.clamp_probs(value)
  local y = x:log() - lt.log1p(-x)
  local difference = self.logits - y * self.temperature
  return self.temperature:log() + difference - 2 * lt.log1p(difference:exp())
    + lt.F.softplus(-y) + lt.F.softplus(y)
end

return RelaxedBernoulli
