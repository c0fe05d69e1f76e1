--- LogisticNormal: vectors with sum 1 from normal numbers.

local Normal = require "lutra.distributions.normal"
local Transformed = require "lutra.distributions.transformed_distribution"
local args = require "lutra.internal.args"
local vectors = require "lutra.distributions.vector_transforms"

--- lt.distributions.LogisticNormal(loc, scale, {validate_args = nil}): the StickBreakingTransform
-- of Normal(loc, scale): vectors with one number more than the last dim of loc has.
local LogisticNormal = Transformed:extend("LogisticNormal")

LogisticNormal.parse = args.signature("LogisticNormal",
  "any? loc = nil, any? scale = nil, bool? validate_args = nil")

function LogisticNormal:init(...)
  local loc, scale, validate_args = self.parse(...)
  local base = Normal(loc, scale, {validate_args = validate_args})
  if #base.batch_shape == 0 then base = base:expand{1} end
  self.parse = Transformed.parse
  Transformed.init(self, base, vectors.StickBreakingTransform(), validate_args)
  self.parse = nil
end

function LogisticNormal.get:loc() return self.base_dist.base_dist.loc end
function LogisticNormal.get:scale() return self.base_dist.base_dist.scale end

return LogisticNormal
