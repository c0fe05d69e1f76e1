--- nn.utils.parametrizations: weight and spectral normalization, and orthogonal matrices.

local lt = require "lutra"
local args = require "lutra.internal.args"
local norms = require "lutra.nn.utils.norms"
local parametrize = require "lutra.nn.utils.parametrize"
local strict_table = require "lutra.internal.strict_table"
local Module = require "lutra.nn.module"

local parametrizations = {}

-- ---- weight_norm --------------------------------------------------------------------

local WeightNorm = Module:extend "_WeightNorm"

function WeightNorm:init(dim) self.dim = dim end
function WeightNorm:forward(g, v) return norms.weight(g, v, self.dim) end
function WeightNorm:right_inverse(weight) return norms.except(weight, self.dim), weight end

local parse_weight = args.signature("weight_norm",
  "any module, string name = 'weight', any? dim = nil")

--- Parametrizes the tensor `name` of a module by its length original0 and its direction original1:
-- g v / |v|; returns the module. The length is that of each index of dimension `dim`, or with
-- dim = false of the whole tensor. Raises an error when the tensor does not exist (Salimans and
-- Kingma 2016).
function parametrizations.weight_norm(...)
  local module, name, dim = parse_weight(...)
  local weight = norms.tensor_of("weight_norm", module, name)
  if dim == nil then dim = 1 end
  return parametrize.register_parametrization(module, name,
    WeightNorm(norms.dim("weight_norm", dim, weight)), {unsafe = true})
end

-- ---- spectral_norm ------------------------------------------------------------------

local SpectralNorm = Module:extend "_SpectralNorm"

local FIRST_ITERATIONS = 15 -- those that make the first estimate

function SpectralNorm:init(weight, iterations, dim, eps)
  self.n_power_iterations, self.dim, self.eps = iterations, dim, eps
  if weight.ndim < 2 then return end
  local matrix = norms.matrix(weight:detach(), dim)
  self:register_buffer("_u", norms.random_vector(matrix, matrix:size(1), eps))
  self:register_buffer("_v", norms.random_vector(matrix, matrix:size(2), eps))
  norms.iterate(matrix, self._u, self._v, FIRST_ITERATIONS, eps)
end

function SpectralNorm:forward(weight)
  if weight.ndim < 2 then return lt.F.normalize(weight, {dim = 1, eps = self.eps}) end
  local matrix = norms.matrix(weight, self.dim)
  if self.training then
    norms.iterate(matrix, self._u, self._v, self.n_power_iterations, self.eps)
  end
  return weight / norms.spectral(matrix, self._u, self._v)
end

function SpectralNorm.right_inverse(_, value) return value end

local parse_spectral = args.signature("spectral_norm", "any module, string name = 'weight', "
  .. "int(>=1) n_power_iterations = 1, float eps = 1e-12, int? dim = nil")

--- Parametrizes the tensor `name` of a module by division by an estimate of its largest singular
-- value; returns the module. The weight is seen as a matrix whose rows are the indices of `dim`
-- (1, for transposed convolutions 2); a vector is divided by its length. Each time the tensor is
-- computed in training mode, n_power_iterations of the power method improve the estimate. Raises
-- an error when the tensor does not exist (Miyato et al. 2018).
function parametrizations.spectral_norm(...)
  local module, name, iterations, eps, dim = parse_spectral(...)
  local weight = norms.tensor_of("spectral_norm", module, name)
  dim = norms.dim("spectral_norm", dim or norms.default_dim(module), weight)
  return parametrize.register_parametrization(module, name,
    SpectralNorm(weight, iterations, dim, eps))
end

-- ---- orthogonal ---------------------------------------------------------------------

local Orthogonal = Module:extend "_Orthogonal"

-- Returns the factor Q of the QR factorization of a tall matrix, with positive diagonal of R.
local function make_orthogonal(a)
  local reflectors, tau = lt.geqrf(a)
  local q = lt.linalg.householder_product(reflectors, tau)
  return q * reflectors:diagonal(0, -2, -1):sgn():unsqueeze(-2)
end

local epsilon = {float32 = 1.1920928955078125e-07, float64 = 2.220446049250313e-16}

local function is_orthogonal(q)
  local n = q:size(-1)
  local product = q.mT:matmul(q)
  return lt.allclose(product, lt.eye(n, {dtype = q.dtype, device = q.device}):expand_as(product),
    {atol = 10 * n * epsilon[q.dtype]})
end

function Orthogonal:init(weight, map, use_trivialization)
  self.map, self.trivial = map, use_trivialization
  self.shape_text = tostring(weight.shape)
  if use_trivialization then self:register_buffer("base", nil) end
end

-- Returns x with zero columns up to n.
local function square(x, n, k)
  if n == k then return x end
  local shape = table.move(x.shape, 1, x.ndim, 1, {})
  shape[#shape] = n - k
  return lt.cat({x, x:new_zeros(shape)}, -1)
end

local maps = {}

function maps.matrix_exp(x, n, k)
  local a = square(x:tril(), n, k)
  return lt.matrix_exp(a - a.mT):narrow(-1, 1, k)
end

function maps.cayley(x, n, k)
  local a = square(x:tril(), n, k)
  a = (a - a.mT) / 2
  local id = lt.eye(n, {dtype = a.dtype, device = a.device}):expand_as(a)
  return lt.linalg.solve(id - a, id + a):narrow(-1, 1, k)
end

-- A product of reflections; the diagonal of x has the signs of the columns.
function maps.householder(x)
  local a = x:tril(-1)
  local tau = 2 / (1 + (a * a):sum(-2))
  local signs = x:detach():diagonal(0, -2, -1):trunc():unsqueeze(-2)
  return lt.linalg.householder_product(a, tau) * signs
end

function Orthogonal:forward(x)
  local n, k = x:size(-2), x:size(-1)
  local transposed = n < k
  if transposed then x, n, k = x.mT, k, n end
  local q = maps[self.map](x, n, k)
  if self.base then q = self.base:matmul(q) end
  return transposed and q.mT or q
end

-- Returns the original of a householder map without a base.
local function reflectors_of(q)
  local a, tau = lt.geqrf(q)
  local diagonal = a:diagonal(0, -2, -1)
  local signs = diagonal:sign()
  diagonal:copy_(lt.where(tau:eq(0), -signs, signs))
  return a
end

function Orthogonal:right_inverse(value)
  args.check(tostring(value.shape) == self.shape_text, "orthogonal: expected a tensor of shape %s, "
    .. "got %s", self.shape_text, value.shape)
  return lt.no_grad(function()
    local q, n, k = value:detach(), value:size(-2), value:size(-1)
    local transposed = n < k
    if transposed then q, n, k = q.mT, k, n end
    if not self.trivial then
      local a = reflectors_of(q)
      return transposed and a.mT or a
    end
    if n ~= k then
      local shape = table.move(q.shape, 1, q.ndim, 1, {})
      shape[#shape] = n - k
      q = make_orthogonal(lt.cat({q, lt.randn(shape, {dtype = q.dtype, device = q.device})}, -1))
    elseif is_orthogonal(q) then
      q = q:clone()
    else
      q = make_orthogonal(q)
    end
    self.base = q
    local original = lt.zeros_like(value)
    original:diagonal(0, -2, -1):fill_(-1)
    return original
  end)
end

local parse_orthogonal = args.signature("orthogonal", "any module, string name = 'weight', "
  .. "string? orthogonal_map = nil, bool use_trivialization = true")

--- Parametrizes the tensor `name` of a module, a matrix or a batch of them, as orthogonal: with
-- orthonormal columns, or rows when it is wider than tall; returns the module. `orthogonal_map` is
-- "matrix_exp" (the default of square matrices), "cayley", or "householder" (that of others). Its
-- first value is the tensor's own, made orthogonal by a QR factorization when it is not. With
-- use_trivialization the original is a change of that value (Lezcano-Casado 2019). float32 and
-- float64. Raises an error for fewer than 2 dimensions and for another map.
function parametrizations.orthogonal(...)
  local module, name, map, use_trivialization = parse_orthogonal(...)
  local weight = norms.tensor_of("orthogonal", module, name)
  args.check(weight.ndim >= 2,
    "orthogonal: expected a tensor of at least 2 dimensions, got shape %s",
    weight.shape)
  args.check(epsilon[weight.dtype],
    "orthogonal: expected a tensor of dtype float32 or float64, got "
    .. "%s", weight.dtype)
  map = map or (weight:size(-2) == weight:size(-1) and "matrix_exp" or "householder")
  args.check(maps[map], "orthogonal: expected matrix_exp, cayley or householder for argument "
    .. "'orthogonal_map', got %s", args.show(map))
  local parametrization = Orthogonal(weight, map, use_trivialization)
  if not use_trivialization and map ~= "householder" then
    parametrization.right_inverse = false -- the original is the tensor itself
  end
  return parametrize.register_parametrization(module, name, parametrization, {unsafe = true})
end

return strict_table.strict(parametrizations, "nn.utils.parametrizations")
