--- MultivariateNormal: the normal distribution of vectors.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local matrices = require "lutra.distributions.matrices"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.MultivariateNormal(loc, covariance_matrix, precision_matrix, scale_tril,
-- {validate_args = nil}): mean `loc`, a tensor of at least one dimension, and one of the other
-- three, tensors of matrices: the covariance, its inverse, or its lower triangular factor. Raises
-- an error unless exactly one of them is given.
local MultivariateNormal = Distribution:extend("MultivariateNormal", {
  params = {{"loc", "real_vector"}, {"covariance_matrix", "positive_definite"},
    {"precision_matrix", "positive_definite"}, {"scale_tril", "lower_cholesky"}},
  support = "real_vector", has_rsample = true})
matrices.define_forms(MultivariateNormal)

function MultivariateNormal:init(...)
  local given = table.pack(self.parse(...))
  local loc = given[1]
  args.expect(lt.is_tensor(loc) and loc.ndim > 0, "MultivariateNormal",
    "a tensor of at least one dimension", "loc", loc)
  local name, matrix = matrices.one_of("MultivariateNormal", given)
  local n = loc:size(-1)
  args.expect(lt.is_tensor(matrix) and matrix.ndim >= 2 and matrix:size(-1) == n
    and matrix:size(-2) == n, "MultivariateNormal",
    ("matrices of shape {%d, %d}"):format(n, n), name, matrix)
  local batch = lt.broadcast_shapes(shapes.part(loc.shape, 1, loc.ndim - 1),
    shapes.part(matrix.shape, 1, matrix.ndim - 2))
  self.loc = loc:expand(shapes.join(batch, {n}))
  self[name] = matrix:expand(shapes.join(batch, {n, n}))
  self:set_shapes(batch, {n}, given[5])
  local factor = matrices.factor(name, matrix)
  self.scale_tril = factor:expand(shapes.join(batch, {n, n}))
end

function MultivariateNormal.get:mean() return self.loc end
function MultivariateNormal.get:mode() return self.loc end
function MultivariateNormal.get:variance() return (self.scale_tril ^ 2):sum(-1) end

function MultivariateNormal:rsample(...)
  local options = {dtype = self.loc.dtype, device = self.loc.device}
  local eps = lt.randn(self:sample_sizes(...), options)
  return self.loc + matrices.times(self.scale_tril, eps)
end

function MultivariateNormal:log_prob(value)
  local difference = self:check_value("log_prob", value) - self.loc
  local square = matrices.mahalanobis(self.scale_tril, difference)
  return -0.5 * (self.event_shape[1] * math.log(2 * math.pi) + square)
    - matrices.half_log_det(self.scale_tril)
end

function MultivariateNormal:entropy()
  return 0.5 * self.event_shape[1] * (1 + math.log(2 * math.pi))
    + matrices.half_log_det(self.scale_tril)
end

return MultivariateNormal
