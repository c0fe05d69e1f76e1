--- nn.LocalResponseNorm and nn.CrossMapLRN2d: normalization by neighbouring channels (Krizhevsky et
-- al. 2012).

local lt = require "lutra"
local layers = require "lutra.nn.layers"
local F = require "lutra.nn.functional"

local response_norms = {}

local OPTIONS = "int(>=1) size, float alpha = 1e-4, float beta = 0.75, float k = 1"

--- nn.LocalResponseNorm(size, {alpha = 1e-4, beta = 0.75, k = 1}): x / (k + alpha * m)^beta, where
-- m is the mean of x^2 over `size` neighbouring channels of {N, C, *}.
response_norms.LocalResponseNorm = layers.define("LocalResponseNorm", OPTIONS, function(self, x)
  return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)
end)

--- nn.CrossMapLRN2d(size, {alpha = 1e-4, beta = 0.75, k = 1}): x / (k + alpha * s / size)^beta,
-- where s is the sum of x^2 over `size` neighbouring channels of {N, C, H, W}, and, as in PyTorch,
-- always over the first channel. Raises an error for another number of dimensions.
response_norms.CrossMapLRN2d = layers.define("CrossMapLRN2d", OPTIONS, function(self, x)
  if x.ndim ~= 4 then self:fail("expected an input of 4 dimensions, got %s", tostring(x.shape)) end
  local count, reach = x:size(2), (self.size - 1) // 2
  local first, last = {}, {} -- of each channel: the sums before and up to the ends of its window
  for c = 1, count do
    first[c], last[c] = math.max(2, c - reach), math.min(count, c + reach) + 1
  end
  local squares = x * x
  local sums = squares:cumsum(2)
  sums = lt.cat({lt.zeros_like(sums:narrow(2, 1, 1)), sums}, 2)
  local function pick(list) return sums:index_select(2, lt.tensor(list, {device = x.device})) end
  local total = pick(last) - pick(first) + squares:narrow(2, 1, 1)
  return x * (total * (self.alpha / self.size) + self.k):pow(-self.beta)
end)

return response_norms
