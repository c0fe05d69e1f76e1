--- OneHotCategoricalStraightThrough: one-hot vectors with gradients (Bengio et al. 2013).

local OneHotCategorical = require "lutra.distributions.one_hot_categorical"

--- lt.distributions.OneHotCategoricalStraightThrough(probs, logits, {validate_args = nil}):
-- OneHotCategorical whose rsample passes the gradient of a sample on to probs.
local StraightThrough = OneHotCategorical:extend("OneHotCategoricalStraightThrough", {
  has_rsample = true})

function StraightThrough:rsample(...)
  return self:sample(...) + (self.probs - self.probs:detach())
end

return StraightThrough
