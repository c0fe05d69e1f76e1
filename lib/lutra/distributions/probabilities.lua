--- What classes with the arguments `probs` and `logits` share: each is computed from the other when
-- it is first read.

local lt = require "lutra"
local shapes = require "lutra.distributions.shapes"

local probabilities = {}

--- Defines the fields probs and logits of a class: of two outcomes if `is_binary`, otherwise of
-- those along the last dim.
function probabilities.define(class, is_binary)
  function class.get:logits()
    local p = shapes.clamp_probs(self.probs)
    local logits = is_binary and p:log() - lt.log1p(-p) or p:log()
    rawset(self, "logits", logits)
    return logits
  end

  function class.get:probs()
    local logits = self.logits
    local probs = is_binary and logits:sigmoid() or logits:softmax(-1)
    rawset(self, "probs", probs)
    return probs
  end

  function class.get:param_shape() return (rawget(self, "probs") or self.logits).shape end
end

return probabilities
