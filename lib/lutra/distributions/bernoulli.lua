--- Bernoulli: 1 with a probability, otherwise 0.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local probabilities = require "lutra.distributions.probabilities"

--- lt.distributions.Bernoulli(probs, logits, {validate_args = nil}): 1 with probability `probs`, or
-- sigmoid(logits), and otherwise 0. Raises an error unless one of them is given.
local Bernoulli = Distribution:extend("Bernoulli", {
  params = {{"probs", "unit_interval"}, {"logits", "real"}}, support = "boolean",
  has_enumerate_support = true})
probabilities.define(Bernoulli, true)

function Bernoulli:init(...)
  local param, given = self:read_probs(0, ...)
  self:set_shapes(param.shape, {}, given[3])
end

function Bernoulli.get:mean() return self.probs end
function Bernoulli.get:mode()
  local mode = self.probs:ge(0.5):to(self.probs.dtype)
  return mode:masked_fill(self.probs:eq(0.5), lt.nan)
end
function Bernoulli.get:variance() return self.probs * (1 - self.probs) end

function Bernoulli:sample(...)
  return lt.bernoulli(self.probs:detach():expand(self:sample_sizes(...)))
end

-- Returns the cross entropy of logits and a probability.
local function cross_entropy(logits, p)
  logits, p = table.unpack(lt.broadcast_tensors{logits, p:to(logits.dtype)})
  return lt.F.binary_cross_entropy_with_logits(logits, p, {reduction = "none"})
end

function Bernoulli:log_prob(value)
  return -cross_entropy(self.logits, self:check_value("log_prob", value))
end

function Bernoulli:entropy() return cross_entropy(self.logits, self.probs) end

function Bernoulli:enumerate_support(expand)
  return self:enumerated(lt.tensor({0, 1}, {dtype = self.probs.dtype,
    device = self.probs.device}), expand)
end

return Bernoulli
