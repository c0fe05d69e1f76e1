--- Multinomial: counts of classes.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"

local Categorical = require "lutra.distributions.categorical"

--- lt.distributions.Multinomial(total_count, probs, logits, {validate_args = nil}): how often each
-- class occurs in total_count draws (1 by default) with the probabilities of a Categorical. Raises
-- an error unless one of probs and logits is given.
local Multinomial = Distribution:extend("Multinomial", {
  params = {{"probs", "simplex"}, {"logits", "real_vector"}}})

Multinomial.parse = args.signature("Multinomial", "int(>=0) total_count = 1, any? probs = nil, "
  .. "any? logits = nil, bool? validate_args = nil")

function Multinomial:init(...)
  local total_count, probs, logits, validate_args = self.parse(...)
  self.total_count = total_count
  self.categorical = Categorical{probs = probs, logits = logits, validate_args = validate_args}
  self:set_shapes(self.categorical.batch_shape, {self.categorical.num_events}, validate_args)
end

function Multinomial:a_tensor() return self.probs end
function Multinomial.get:support() return constraints.multinomial(self.total_count) end
function Multinomial.get:probs() return self.categorical.probs end
function Multinomial.get:logits() return self.categorical.logits end
function Multinomial.get:param_shape() return self.categorical.param_shape end
function Multinomial.get:mean() return self.probs * self.total_count end
function Multinomial.get:variance() return self.total_count * self.probs * (1 - self.probs) end

function Multinomial:sample(...)
  local sizes = shapes.read("Multinomial: sample", ...)
  local draws = self.categorical:sample(shapes.join({self.total_count}, sizes))
  local one_hot = lt.F.one_hot(draws, self.categorical.num_events)
  return one_hot:sum(1):to(self.probs.dtype)
end

function Multinomial:log_prob(value)
  value = self:check_value("log_prob", value)
  local logits = self.logits:masked_fill(value:eq(0) & self.logits:eq(-lt.inf), 0)
  return (value:sum(-1) + 1):lgamma() - (value + 1):lgamma():sum(-1) + (logits * value):sum(-1)
end

function Multinomial:entropy()
  local n = lt.tensor(self.total_count, {dtype = self.probs.dtype, device = self.probs.device})
  local entropy = n * self.categorical:entropy() - (n + 1):lgamma()
  if self.total_count == 0 then return entropy end
  local ones, k = {}, lt.arange(1, self.total_count, {dtype = n.dtype, device = n.device})
  for i = 1, #self.batch_shape + 1 do ones[i] = 1 end
  k = k:reshape(shapes.join({self.total_count}, ones))
  local log_prob = (n + 1):lgamma() - (k + 1):lgamma() - (n - k + 1):lgamma()
    + lt.xlogy(k, self.probs) + lt.xlogy(n - k, 1 - self.probs)
  return entropy + (log_prob:exp() * (k + 1):lgamma()):sum{dim = {1, -1}}
end

return Multinomial
