--- MixtureSameFamily: a mixture of distributions of one class.

local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.MixtureSameFamily(mixture_distribution, component_distribution, {validate_args
-- = nil}): values of the components, the last dim of component_distribution's batch, each chosen
-- with the probabilities of mixture_distribution, a Categorical. Raises an error when their sizes
-- differ.
local Mixture = Distribution:extend("MixtureSameFamily")

Mixture.parse = args.signature("MixtureSameFamily",
  "any mixture_distribution, any component_distribution, bool? validate_args = nil")

function Mixture:init(...)
  local mixture, component, validate_args = self.parse(...)
  local function is(d) return type(d) == "table" and d.batch_shape ~= nil end
  args.expect(is(mixture) and mixture.num_events, self.__name, "a Categorical",
    "mixture_distribution", mixture)
  args.expect(is(component), self.__name, "a distribution", "component_distribution", component)
  local n = #component.batch_shape
  args.check(n > 0 and component.batch_shape[n] == mixture.num_events,
    "%s: expected a batch of %d components for argument 'component_distribution', got shape %s",
    self.__name, mixture.num_events, tostring(component.batch_shape))
  self.mixture_distribution, self.component_distribution = mixture, component
  self:set_shapes(shapes.part(component.batch_shape, 1, n - 1), component.event_shape,
    validate_args)
end

function Mixture:expand(...)
  local sizes, new = shapes.read("expand", ...), setmetatable({}, getmetatable(self))
  for key, value in pairs(self) do new[key] = value end
  new.component_distribution = self.component_distribution:expand(
    shapes.join(sizes, {self.mixture_distribution.num_events}))
  new.mixture_distribution = self.mixture_distribution:expand(sizes)
  new.batch_shape = shapes.shape(sizes)
  return new
end

-- Returns x with dims of size 1 for the event.
local function beside_event(self, x)
  for _ = 1, #self.event_shape do x = x:unsqueeze(-1) end
  return x
end

-- Returns the dim of the components: -1 without an event.
local function component_dim(self) return -1 - #self.event_shape end

local function mean_of(self, x)
  return (beside_event(self, self.mixture_distribution.probs) * x):sum(component_dim(self))
end

function Mixture.get:support() return self.component_distribution.support end
function Mixture.get:mean() return mean_of(self, self.component_distribution.mean) end
function Mixture.get:variance()
  local inner = self.component_distribution
  local difference = inner.mean - self.mean:unsqueeze(component_dim(self))
  return mean_of(self, inner.variance) + mean_of(self, difference ^ 2)
end

function Mixture:a_tensor() return self.component_distribution:a_tensor() end

-- Returns a value with a dim for the components.
local function padded(self, title, value)
  return self:check_value(title, value):unsqueeze(component_dim(self))
end

function Mixture:cdf(value)
  local cdf = self.component_distribution:cdf(padded(self, "cdf", value))
  return (cdf * self.mixture_distribution.probs):sum(-1)
end

function Mixture:log_prob(value)
  local log_prob = self.component_distribution:log_prob(padded(self, "log_prob", value))
  return (log_prob + self.mixture_distribution.logits:log_softmax(-1)):logsumexp(-1)
end

function Mixture:sample(...)
  local sizes = self:sample_sizes(...)
  local index = beside_event(self, self.mixture_distribution:sample(...):unsqueeze(-1))
  local values = self.component_distribution:sample(...)
  local wide = shapes.join(values.shape)
  wide[values.ndim + 1 + component_dim(self)] = 1
  return values:gather(component_dim(self), index:expand(wide)):reshape(sizes)
end

function Mixture:__tostring()
  return ("MixtureSameFamily(%s, %s)"):format(tostring(self.mixture_distribution),
    tostring(self.component_distribution))
end

return Mixture
