--- LowRankMultivariateNormal: a normal distribution of vectors with a covariance of low rank.

local lt = require "lutra"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local matrices = require "lutra.distributions.matrices"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.LowRankMultivariateNormal(loc, cov_factor, cov_diag, {validate_args = nil}):
-- mean `loc` {..., n} and covariance W W^T + diag(D), with W = cov_factor {..., n, m} and D =
-- cov_diag {..., n}, numbers above 0.
local LowRank = Distribution:extend("LowRankMultivariateNormal", {
  params = {{"loc", "real_vector"}, {"cov_factor", "real"}, {"cov_diag", "positive"}},
  support = "real_vector", has_rsample = true})

function LowRank:init(...)
  local loc, factor, diagonal, validate_args = self.parse(...)
  local function is(x, least) return lt.is_tensor(x) and x.ndim >= least end
  args.expect(is(loc, 1), self.__name, "a tensor of at least one dimension", "loc", loc)
  local n = loc:size(-1)
  args.expect(is(factor, 2) and factor:size(-2) == n, self.__name,
    ("matrices of %d rows"):format(n), "cov_factor", factor)
  args.expect(is(diagonal, 1) and diagonal:size(-1) == n, self.__name,
    ("vectors of %d numbers"):format(n), "cov_diag", diagonal)
  local batch = lt.broadcast_shapes(shapes.part(loc.shape, 1, loc.ndim - 1),
    shapes.part(factor.shape, 1, factor.ndim - 2),
    shapes.part(diagonal.shape, 1, diagonal.ndim - 1))
  self.loc = loc:expand(shapes.join(batch, {n}))
  self.cov_factor = factor:expand(shapes.join(batch, {n, factor:size(-1)}))
  self.cov_diag = diagonal:expand(shapes.join(batch, {n}))
  self:set_shapes(batch, {n}, validate_args)
end

-- Returns W^T D^-1.
local function weighted(self)
  return self.cov_factor:transpose(-2, -1) / self.cov_diag:unsqueeze(-2)
end

--- Returns the lower triangular factor of I + W^T D^-1 W.
function LowRank:capacitance_tril()
  local m = self.cov_factor:size(-1)
  local eye = lt.eye(m, {dtype = self.loc.dtype, device = self.loc.device})
  return lt.linalg.cholesky(weighted(self):matmul(self.cov_factor) + eye)
end

function LowRank.get:covariance_matrix()
  return self.cov_factor:matmul(self.cov_factor:transpose(-2, -1))
    + lt.diag_embed(self.cov_diag)
end
function LowRank.get:scale_tril() return lt.linalg.cholesky(self.covariance_matrix) end
function LowRank.get:precision_matrix() return lt.cholesky_inverse(self.scale_tril) end
function LowRank.get:mean() return self.loc end
function LowRank.get:mode() return self.loc end
function LowRank.get:variance() return (self.cov_factor ^ 2):sum(-1) + self.cov_diag end

function LowRank:rsample(...)
  local sizes = self:sample_sizes(...)
  local options = {dtype = self.loc.dtype, device = self.loc.device}
  local few = shapes.join(shapes.part(sizes, 1, #sizes - 1), {self.cov_factor:size(-1)})
  return self.loc + matrices.times(self.cov_factor, lt.randn(few, options))
    + self.cov_diag:sqrt() * lt.randn(sizes, options)
end

local function log_det(self, capacitance)
  return 2 * matrices.half_log_det(capacitance) + self.cov_diag:log():sum(-1)
end

function LowRank:log_prob(value)
  local x = self:check_value("log_prob", value) - self.loc
  local capacitance = self:capacitance_tril()
  local square = (x ^ 2 / self.cov_diag):sum(-1)
    - matrices.mahalanobis(capacitance, matrices.times(weighted(self), x))
  return -0.5 * (self.event_shape[1] * math.log(2 * math.pi) + log_det(self, capacitance) + square)
end

function LowRank:entropy()
  return 0.5 * (self.event_shape[1] * (1 + math.log(2 * math.pi))
    + log_det(self, self:capacitance_tril()))
end

return LowRank
