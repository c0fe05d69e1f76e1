--- LKJCholesky: random factors of correlation matrices (Lewandowski, Kurowicka and Joe 2009).

local lt = require "lutra"
local Beta = require "lutra.distributions.beta"
local Distribution = require "lutra.distributions.distribution"
local args = require "lutra.internal.args"
local shapes = require "lutra.distributions.shapes"

--- lt.distributions.LKJCholesky(dim, {concentration = 1.0, validate_args = nil}): lower triangular
-- factors L of dim * dim correlation matrices L L^T, whose density is proportional to
-- det(L L^T)^(concentration - 1): all are equally probable for 1. Samples are drawn by the onion
-- method. Raises an error for a dim below 2.
local LKJCholesky = Distribution:extend("LKJCholesky", {
  params = {{"dim"}, {"concentration", "positive"}}, support = "corr_cholesky"})

LKJCholesky.parse = args.signature("LKJCholesky",
  "int(>=2) dim, Tensor|float concentration = 1.0, bool? validate_args = nil")

function LKJCholesky:init(...)
  local dim, concentration, validate_args = self.parse(...)
  self.dim, self.concentration = dim, shapes.broadcast{concentration}[1]
  self:set_shapes(self.concentration.shape, {dim, dim}, validate_args)
  local offset = lt.arange(0, dim - 2, {dtype = self.concentration.dtype,
    device = self.concentration.device})
  offset = lt.cat{offset:new_zeros(1), offset}
  local marginal = self.concentration + 0.5 * (dim - 2)
  self.beta = Beta(offset + 0.5, marginal:unsqueeze(-1) - 0.5 * offset, {validate_args = false})
end

function LKJCholesky:sample(...)
  local sizes = shapes.read("LKJCholesky: sample", ...)
  local y = self.beta:sample(sizes):unsqueeze(-1)
  local normal = lt.randn(self:sample_sizes(sizes), {dtype = y.dtype, device = y.device}):tril(-1)
  local length = (normal ^ 2):sum{dim = -1, keepdim = true}:sqrt()
  local w = y:sqrt() * normal / length:masked_fill(length:eq(0), 1) -- the first row is zero
  local rest = (1 - (w ^ 2):sum(-1)):clamp(lt.finfo(w.dtype).tiny)
  return (w + lt.diag_embed(rest:sqrt())):detach()
end

function LKJCholesky:log_prob(value)
  value = self:check_value("log_prob", value)
  local c, n = self.concentration, self.dim
  local diagonal = value:diagonal(0, -2, -1):narrow(-1, 2, n - 1)
  local order = 2 * (c - 1):unsqueeze(-1) + n - lt.arange(2, n, {dtype = c.dtype,
    device = c.device})
  local alpha = c + 0.5 * (n - 1)
  local log_norm = 0.5 * (n - 1) * math.log(math.pi) + lt.mvlgamma(alpha - 0.5, n - 1)
    - alpha:lgamma() * (n - 1)
  return (order * diagonal:log()):sum(-1) - log_norm
end

return LKJCholesky
