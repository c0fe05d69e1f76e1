--- Binomial: the binomial distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local probabilities = require "lutra.distributions.probabilities"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.Binomial(total_count, probs, logits, {validate_args = nil}): the number of
-- successes in total_count trials (1 by default) with probability `probs`, or sigmoid(logits).
-- Raises an error unless one of them is given.
local Binomial = Distribution:extend("Binomial", {
  params = {{"total_count", "nonnegative_integer"}, {"probs", "unit_interval"}, {"logits", "real"}},
  has_enumerate_support = true})
probabilities.define(Binomial, true)

function Binomial:init(...)
  local param, given = self:read_probs(1, ...)
  local name = given[2] and "probs" or "logits"
  self.total_count, self[name] = table.unpack(shapes.broadcast{given[1] or 1, param})
  self.total_count = self.total_count:to(self[name].dtype)
  self:set_shapes(self[name].shape, {}, given[4])
end

function Binomial:a_tensor() return self.probs end
function Binomial.get:support() return constraints.integer_interval(0, self.total_count) end
function Binomial.get:mean() return self.total_count * self.probs end
function Binomial.get:mode()
  return lt.minimum(((self.total_count + 1) * self.probs):floor(), self.total_count)
end
function Binomial.get:variance() return self.total_count * self.probs * (1 - self.probs) end

function Binomial:sample(...)
  local sizes = self:sample_sizes(...)
  return lt.binomial(self.total_count:expand(sizes), self.probs:detach():expand(sizes))
end

function Binomial:log_prob(value)
  value = self:check_value("log_prob", value)
  local n, logits = self.total_count, self.logits
  -- max(logits, 0), whose gradient at 0 is 1 / 2
  local above = (logits:clamp(0) + logits - logits:clamp(nil, 0)) / 2
  local norm = n * above + n * lt.log1p((-logits:abs()):exp()) - (n + 1):lgamma()
  return value * logits - (value + 1):lgamma() - (n - value + 1):lgamma() - norm
end

-- Returns the number of trials, if it is the same everywhere.
local function common_count(self, title)
  local n = self.total_count:max():item()
  args.check(self.total_count:min():item() == n,
    "Binomial: %s: expected one number of trials in total_count, got several", title)
  return math.tointeger(n)
end

function Binomial:enumerate_support(expand)
  local n = common_count(self, "enumerate_support")
  return self:enumerated(lt.arange(0, n, {dtype = self.probs.dtype, device = self.probs.device}),
    expand)
end

function Binomial:entropy()
  common_count(self, "entropy")
  local log_prob = self:log_prob(self:enumerate_support(false))
  return -(log_prob:exp() * log_prob):sum(1)
end

return Binomial
