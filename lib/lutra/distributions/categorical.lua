--- Categorical: classes with probabilities.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local probabilities = require "lutra.distributions.probabilities"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.Categorical(probs, logits, {validate_args = nil}): classes, from 1 to n, with
-- the probabilities along the last dim of `probs`, which are divided by their sum, or
-- softmax(logits). Samples and values are 1-based int64. Raises an error unless one of them is
-- given.
local Categorical = Distribution:extend("Categorical", {
  params = {{"probs", "simplex"}, {"logits", "real_vector"}}, has_enumerate_support = true})
probabilities.define(Categorical, false)

function Categorical:init(...)
  local param, given = self:read_probs(0, ...)
  args.check(param.ndim > 0, "%s: expected at least one dimension for argument '%s', got {}",
    self.__name, given[1] and "probs" or "logits")
  if given[1] then
    self.probs = param / param:sum{dim = -1, keepdim = true}
  else
    self.logits = param - param:logsumexp{dim = -1, keepdim = true}
  end
  self.num_events = param:size(-1)
  self:set_shapes(shapes.part(param.shape, 1, param.ndim - 1), {}, given[3])
end

function Categorical.get:support() return constraints.integer_interval(1, self.num_events) end
function Categorical.get:mean()
  return self.probs:detach():new_full(self:extended_shape{}, lt.nan)
end
function Categorical.get:variance() return self.mean end
function Categorical.get:mode() return self.probs:argmax(-1) end

function Categorical:sample(...)
  local sizes = self:sample_sizes(...)
  local batch = shapes.count(self.batch_shape)
  local rows = self.probs:detach():reshape(batch, self.num_events)
  local count = batch > 0 and shapes.count(sizes) // batch or 0
  if count == 0 then return lt.zeros(sizes, {dtype = "int64", device = rows.device}) end
  return lt.multinomial(rows, count, true):t():reshape(sizes)
end

function Categorical:log_prob(value)
  local index = self:check_value("log_prob", value):to "int64":unsqueeze(-1)
  local sizes = lt.broadcast_shapes(index.shape, self.logits.shape)
  index = index:expand(shapes.join(shapes.part(sizes, 1, #sizes - 1), {1}))
  return self.logits:expand(sizes):gather(-1, index):squeeze(-1)
end

function Categorical:entropy()
  local logits = self.logits:clamp(lt.finfo(self.logits.dtype).min)
  return -(logits * self.probs):sum(-1)
end

function Categorical:enumerate_support(expand)
  return self:enumerated(lt.arange(self.num_events, {device = self.probs.device}), expand)
end

return Categorical
