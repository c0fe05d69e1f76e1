--- ExpRelaxedCategorical: the logarithms of RelaxedOneHotCategorical.

local lt = require "lutra"
local Relaxed = require "lutra.distributions.relaxed_one_hot_categorical"
local constraints = require "lutra.distributions.constraints"

--- lt.distributions.ExpRelaxedCategorical(temperature, probs, logits, {validate_args = nil}):
-- vectors whose exponentials are a RelaxedOneHotCategorical; log_prob does not underflow at low
-- temperatures. Raises an error unless one of probs and logits is given.
local Exp = Relaxed:extend("ExpRelaxedCategorical",
  {params = Relaxed.params, support = constraints.real_vector})

function Exp:rsample(...) return self:_scores(...):log_softmax(-1) end

function Exp:log_prob(value)
  value = self:check_value("log_prob", value)
  local n, t = self.categorical.num_events, self.temperature
  local score = self.logits - value * t:unsqueeze(-1)
  score = (score - score:logsumexp{dim = -1, keepdim = true}):sum(-1)
  return score + lt.full_like(t:detach(), n):lgamma() + t:log() * (n - 1)
end

return Exp
