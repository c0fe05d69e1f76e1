--- RelaxedOneHotCategorical: a continuous relaxation of OneHotCategorical, the Gumbel-softmax
-- distribution (Jang, Gu and Poole 2017; Maddison, Mnih and Teh 2017).

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local shapes = require "lutra.distributions.shapes"

local Categorical = require "lutra.distributions.categorical"

--- lt.distributions.RelaxedOneHotCategorical(temperature, probs, logits, {validate_args = nil}):
-- vectors with sum 1 that are closer to one-hot for a lower `temperature`. Raises an error unless
-- one of probs and logits is given.
local Relaxed = Distribution:extend("RelaxedOneHotCategorical", {
  params = {{"temperature", "positive"}, {"probs", "simplex"}, {"logits", "real_vector"}},
  support = "simplex", has_rsample = true})

function Relaxed:init(...)
  local temperature, probs, logits, validate_args = self.parse(...)
  args.expect(type(temperature) == "number" or lt.is_tensor(temperature), self.__name,
    "a number or a tensor", "temperature", temperature)
  self.categorical = Categorical{probs = probs, logits = logits, validate_args = validate_args}
  local like = self.categorical.logits
  if type(temperature) == "number" then
    temperature = lt.tensor(temperature, {dtype = like.dtype, device = like.device})
  end
  self.temperature = temperature:expand(self.categorical.batch_shape)
  self:set_shapes(self.categorical.batch_shape, {self.categorical.num_events}, validate_args)
end

function Relaxed:a_tensor() return self.logits end
function Relaxed.get:probs() return self.categorical.probs end
function Relaxed.get:logits() return self.categorical.logits end
function Relaxed.get:param_shape() return self.categorical.param_shape end

-- Returns the random logits of samples.
function Relaxed:_scores(...)
  local u = shapes.clamp_probs(lt.rand(self:sample_sizes(...), {dtype = self.logits.dtype,
    device = self.logits.device}))
  return (self.logits - (-u:log()):log()) / self.temperature:unsqueeze(-1)
end

function Relaxed:rsample(...) return self:_scores(...):softmax(-1) end

function Relaxed:log_prob(value)
  local y = self:check_value("log_prob", value):log()
  local n, t = self.categorical.num_events, self.temperature
  local score = self.logits - y * t:unsqueeze(-1)
  score = (score - score:logsumexp{dim = -1, keepdim = true}):sum(-1)
  return score + lt.full_like(t, n):lgamma() + t:log() * (n - 1) - y:sum(-1)
end

return Relaxed
