--- LogitRelaxedBernoulli: the logits of RelaxedBernoulli.

local lt = require "lutra"
local Relaxed = require "lutra.distributions.relaxed_bernoulli"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.LogitRelaxedBernoulli(temperature, probs, logits, {validate_args = nil}):
-- numbers whose sigmoid is a RelaxedBernoulli. Raises an error unless one of probs and logits is
-- given.
local Logit = Relaxed:extend("LogitRelaxedBernoulli",
  {params = Relaxed.params, support = constraints.real})

function Logit:rsample(...)
  local p = shapes.clamp_probs(self.probs)
  local u = shapes.clamp_probs(lt.rand(self:sample_sizes(...), {dtype = p.dtype,
    device = p.device}))
  return (u:log() - lt.log1p(-u) + p:log() - lt.log1p(-p)) / self.temperature
end

function Logit:log_prob(value)
  local difference = self.logits - self:check_value("log_prob", value) * self.temperature
  return self.temperature:log() + difference - 2 * lt.log1p(difference:exp())
end

return Logit
