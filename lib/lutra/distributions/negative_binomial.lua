--- NegativeBinomial: the negative binomial distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local probabilities = require "lutra.distributions.probabilities"
local shapes = require "lutra.distributions.shapes"
local standard_gamma = require "lutra.distributions.standard_gamma"

--- lt.distributions.NegativeBinomial(total_count, probs, logits, {validate_args = nil}): the number
-- of successes, each with probability `probs` below 1 or sigmoid(logits), before total_count
-- failures, a number of at least 0 that need not be an integer. Raises an error unless one of probs
-- and logits is given.
local NegativeBinomial = Distribution:extend("NegativeBinomial", {
  params = {{"total_count", "nonnegative"}, {"probs"}, {"logits", "real"}},
  support = "nonnegative_integer"})
probabilities.define(NegativeBinomial, true)

function NegativeBinomial:constraint_of(param)
  if param[1] == "probs" then return constraints.half_open_interval(0, 1) end
  return Distribution.constraint_of(self, param)
end

function NegativeBinomial:init(...)
  local param, given = self:read_probs(1, ...)
  local name = given[2] and "probs" or "logits"
  args.check(given[1] ~= nil,
    "NegativeBinomial: expected a number or a tensor for argument 'total_count', got nil")
  self.total_count, self[name] = table.unpack(shapes.broadcast{given[1], param})
  self.total_count = self.total_count:to(self[name].dtype)
  self:set_shapes(self[name].shape, {}, given[4])
end

function NegativeBinomial.get:mean() return self.total_count * self.logits:exp() end
function NegativeBinomial.get:mode()
  return ((self.total_count - 1) * self.logits:exp()):floor():clamp(0)
end
function NegativeBinomial.get:variance() return self.mean / (-self.logits):sigmoid() end

function NegativeBinomial:sample(...)
  local sizes = self:sample_sizes(...)
  return lt.no_grad(function()
    return lt.poisson(standard_gamma(self.total_count:expand(sizes)) * self.logits:exp())
  end)
end

function NegativeBinomial:log_prob(value)
  value = self:check_value("log_prob", value)
  local n, logits = self.total_count, self.logits
  local unnormalized = n * lt.F.logsigmoid(-logits) + value * lt.F.logsigmoid(logits)
  local norm = -(n + value):lgamma() + (1 + value):lgamma() + n:lgamma()
  return unnormalized - norm:masked_fill((n + value):eq(0), 0)
end

return NegativeBinomial
