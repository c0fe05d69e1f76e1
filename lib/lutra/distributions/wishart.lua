--- Wishart: the distribution of the sums of squares and products of normal vectors.

local lt = require "lutra"
local Chi2 = require "lutra.distributions.chi2"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local matrices = require "lutra.distributions.matrices"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.Wishart(df, covariance_matrix, precision_matrix, scale_tril, {validate_args =
-- nil}): positive definite n * n matrices, the sums of x x^T for `df` normal vectors x with mean 0
-- and the covariance that one of the other three gives: the covariance, its inverse, or its lower
-- triangular factor. Samples are drawn by the decomposition of Bartlett (1933); singular ones are
-- drawn again. Raises an error unless exactly one of the three is given and df is above n - 1.
local Wishart = Distribution:extend("Wishart", {
  params = {{"df", "positive"}, {"covariance_matrix", "positive_definite"},
    {"precision_matrix", "positive_definite"}, {"scale_tril", "lower_cholesky"}},
  support = "positive_definite", has_rsample = true})
matrices.define_forms(Wishart)

function Wishart:init(...)
  local given = table.pack(self.parse(...))
  local df = given[1]
  args.expect(type(df) == "number" or lt.is_tensor(df), "Wishart", "a number or a tensor", "df", df)
  local name, matrix = matrices.one_of("Wishart", given)
  args.expect(lt.is_tensor(matrix) and matrix.ndim >= 2 and matrix:size(-1) == matrix:size(-2),
    "Wishart", "square matrices", name, matrix)
  local n, batch = matrix:size(-1), shapes.part(matrix.shape, 1, matrix.ndim - 2)
  if type(df) == "number" then
    df = lt.tensor(df, {dtype = matrix.dtype, device = matrix.device})
  end
  batch = lt.broadcast_shapes(batch, df.shape)
  args.check(df:gt(n - 1):all():item(),
    "Wishart: expected numbers above %d for argument 'df', got %.6g", n - 1, df:min():item())
  self.df = df:expand(batch)
  self[name] = matrix:expand(shapes.join(batch, {n, n}))
  self:set_shapes(batch, {n, n}, given[5])
  self.scale_tril = matrices.factor(name, matrix):expand(shapes.join(batch, {n, n}))
  local places = lt.arange(0, n - 1, {dtype = self.df.dtype, device = self.df.device})
  self.diagonal = Chi2(self.df:unsqueeze(-1) - places, {validate_args = false})
end

local function as_matrix(x) return x:unsqueeze(-1):unsqueeze(-1) end

function Wishart.get:mean() return as_matrix(self.df) * self.covariance_matrix end
function Wishart.get:mode()
  local factor = self.df - self.event_shape[1] - 1
  return as_matrix(factor:masked_fill(factor:le(0), 0 / 0)) * self.covariance_matrix
end
function Wishart.get:variance()
  local V = self.covariance_matrix
  local diagonal = V:diagonal(0, -2, -1)
  return as_matrix(self.df) * (V ^ 2 + diagonal:unsqueeze(-1) * diagonal:unsqueeze(-2))
end

local function draw(self, sizes)
  local diagonal = self.diagonal:rsample(sizes):sqrt()
  diagonal = diagonal:clamp(lt.finfo(diagonal.dtype).eps)
  local noise = lt.randn(self:sample_sizes(sizes), {dtype = diagonal.dtype,
    device = diagonal.device}):tril(-1)
  local L = self.scale_tril:matmul(noise + lt.diag_embed(diagonal))
  return L:matmul(L:transpose(-2, -1))
end

local TRIES = 10 -- how often singular samples are drawn again

function Wishart:rsample(...)
  local sizes = shapes.read("Wishart: sample", ...)
  local x = draw(self, sizes)
  for _ = 1, TRIES do
    local valid = self.support:check(x:detach())
    if valid:all():item() then break end
    x = lt.where(as_matrix(valid), x, draw(self, sizes))
  end
  return x
end

function Wishart:log_prob(value)
  value = self:check_value("log_prob", value)
  local nu, n = self.df, self.event_shape[1]
  local _, log_det = lt.linalg.slogdet(value)
  local half = matrices.solve_lower(self.scale_tril, value)
  local trace = matrices.solve_lower(self.scale_tril, half:transpose(-2, -1))
    :diagonal(0, -2, -1):sum(-1)
  return -nu * (n * math.log(2) / 2 + matrices.half_log_det(self.scale_tril))
    - lt.mvlgamma(nu / 2, n) + (nu - n - 1) / 2 * log_det - trace / 2
end

-- Returns the multivariate digamma function of df / 2, the derivative of mvlgamma.
function Wishart:_digamma()
  local shifts = lt.arange(0, self.event_shape[1] - 1, {dtype = self.df.dtype,
    device = self.df.device}) / 2
  return ((self.df / 2):unsqueeze(-1) - shifts):digamma():sum(-1)
end

function Wishart:entropy()
  local nu, n = self.df, self.event_shape[1]
  return (n + 1) * (n * math.log(2) / 2 + matrices.half_log_det(self.scale_tril))
    + lt.mvlgamma(nu / 2, n) - (nu - n - 1) / 2 * self:_digamma() + nu * n / 2
end

return Wishart
