--- FisherSnedecor: the F-distribution.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local standard_gamma = require "lutra.distributions.standard_gamma"

--- lt.distributions.FisherSnedecor(df1, df2, {validate_args = nil}): ratios of chi-squared numbers
-- with df1 and df2 degrees of freedom, each divided by its degrees.
local FisherSnedecor = Distribution:extend("FisherSnedecor", {
  params = {{"df1", "positive"}, {"df2", "positive"}}, support = "positive", has_rsample = true})

function FisherSnedecor.get:mean()
  return (self.df2 / (self.df2 - 2)):masked_fill(self.df2:le(2), lt.nan)
end
function FisherSnedecor.get:mode()
  local mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
  return mode:masked_fill(self.df1:le(2), lt.nan)
end
function FisherSnedecor.get:variance()
  local m, n = self.df1, self.df2
  return (2 * n ^ 2 * (m + n - 2) / (m * (n - 2) ^ 2 * (n - 4))):masked_fill(n:le(4), lt.nan)
end

function FisherSnedecor:rsample(...)
  local sizes = self:sample_sizes(...)
  local function chi2(df) return standard_gamma((df / 2):expand(sizes)) / df end
  return chi2(self.df1) / chi2(self.df2)
end

function FisherSnedecor:log_prob(value)
  value = self:check_value("log_prob", value)
  local a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
  return (a + b):lgamma() - a:lgamma() - b:lgamma() + a * ratio:log() + (a - 1) * value:log()
    - (a + b) * lt.log1p(ratio * value)
end

return FisherSnedecor
