--- Geometric: the geometric distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local probabilities = require "lutra.distributions.probabilities"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.Geometric(probs, logits, {validate_args = nil}): the number of failures before
-- the first success, of probability `probs` above 0, or sigmoid(logits). Raises an error unless one
-- of them is given.
local Geometric = Distribution:extend("Geometric", {
  params = {{"probs", "unit_interval"}, {"logits", "real"}}, support = "nonnegative_integer"})
probabilities.define(Geometric, true)

function Geometric:init(...)
  local param, given = self:read_probs(0, ...)
  self:set_shapes(param.shape, {}, given[3])
  args.check(not self.validate_args or given[1] == nil or param:gt(0):all():item(),
    "Geometric: expected numbers above 0 for argument 'probs', got 0")
end

function Geometric.get:mean() return 1 / self.probs - 1 end
function Geometric.get:mode() return lt.zeros_like(self.probs) end
function Geometric.get:variance() return (1 / self.probs - 1) / self.probs end

function Geometric:sample(...)
  local u = shapes.uniform(self:sample_sizes(...), self.probs)
  return lt.no_grad(function() return (u:log() / lt.log1p(-self.probs)):floor() end)
end

function Geometric:log_prob(value)
  local p
  value, p = table.unpack(lt.broadcast_tensors{self:check_value("log_prob", value), self.probs})
  local other = p:masked_fill(p:eq(1) & value:eq(0), 0)
  return value * lt.log1p(-other) + p:log()
end

function Geometric:entropy()
  return lt.F.binary_cross_entropy_with_logits(self.logits, self.probs, {reduction = "none"})
    / self.probs
end

return Geometric
