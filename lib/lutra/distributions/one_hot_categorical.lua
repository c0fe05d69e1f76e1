--- OneHotCategorical: classes as one-hot vectors.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local shapes = require "lutra.distributions.shapes"

local Categorical = require "lutra.distributions.categorical"

--- lt.distributions.OneHotCategorical(probs, logits, {validate_args = nil}): Categorical whose
-- values are vectors with one 1, of the dtype of probs.
local OneHotCategorical = Distribution:extend("OneHotCategorical", {
  params = {{"probs", "simplex"}, {"logits", "real_vector"}}, support = "one_hot",
  has_enumerate_support = true})

function OneHotCategorical:init(...)
  local probs, logits, validate_args = self.parse(...)
  self.categorical = Categorical{probs = probs, logits = logits, validate_args = validate_args}
  self:set_shapes(self.categorical.batch_shape, {self.categorical.num_events}, validate_args)
end

function OneHotCategorical.get:probs() return self.categorical.probs end
function OneHotCategorical.get:logits() return self.categorical.logits end
function OneHotCategorical.get:param_shape() return self.categorical.param_shape end
function OneHotCategorical.get:mean() return self.probs end
function OneHotCategorical.get:variance() return self.probs * (1 - self.probs) end
function OneHotCategorical.get:mode()
  return lt.F.one_hot(self.probs:argmax(-1), self.probs:size(-1)):to(self.probs.dtype)
end

function OneHotCategorical:a_tensor() return self.probs end

function OneHotCategorical:sample(...)
  local classes = self.categorical:sample(...)
  return lt.F.one_hot(classes, self.categorical.num_events):to(self.probs.dtype)
end

function OneHotCategorical:log_prob(value)
  return self.categorical:log_prob(self:check_value("log_prob", value):argmax(-1))
end

function OneHotCategorical:entropy() return self.categorical:entropy() end

function OneHotCategorical:enumerate_support(expand)
  local n = self.categorical.num_events
  local values = lt.eye(n, {dtype = self.probs.dtype, device = self.probs.device})
  local ones = {}
  for i = 1, #self.batch_shape do ones[i] = 1 end
  values = values:reshape(shapes.join({n}, ones, {n}))
  if expand == false then return values end
  return values:expand(shapes.join({n}, self.batch_shape, {n}))
end

return OneHotCategorical
