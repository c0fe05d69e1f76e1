--- Chi2: the chi-squared distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"

local Gamma = require "lutra.distributions.gamma"

--- lt.distributions.Chi2(df, {validate_args = nil}): sums of the squares of `df` standard normal
-- numbers; a Gamma distribution with concentration df / 2 and rate 1 / 2.
local Chi2 = Gamma:extend("Chi2", {params = {{"df", "positive"}}})

function Chi2:init(...)
  Distribution.init(self, ...)
  self.concentration = self.df / 2
  self.rate = lt.full_like(self.df:detach(), 0.5)
end

return Chi2
