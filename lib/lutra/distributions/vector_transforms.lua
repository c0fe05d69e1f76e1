--- Transforms of vectors and matrices.

local lt = require "lutra"
local Transform = require "lutra.distributions.transform"
local args = require "lutra.internal.args"
local constraints = require "lutra.distributions.constraints"
local shapes = require "lutra.distributions.shapes"

local transforms = {}

local function define(name, options)
  transforms[name] = Transform:extend(name, options)
  return transforms[name]
end

-- Returns a shape whose last size is changed by `more`.
local function longer(shape, more)
  local list = shapes.join(shape)
  list[#list] = list[#list] + more
  return list
end

--- lt.distributions.transforms.SoftmaxTransform(): y = softmax(x) along the last dim; the inverse
-- is log(y).
local Softmax = define("SoftmaxTransform", {domain = constraints.real_vector,
  codomain = constraints.simplex})
function Softmax.forward(_, x) return x:softmax(-1) end
function Softmax.inverse(_, y) return y:log() end

--- lt.distributions.transforms.StickBreakingTransform(): vectors of n numbers to n + 1 numbers
-- above 0 with sum 1 (Stan's reference manual, "Unit simplex").
local StickBreaking = define("StickBreakingTransform", {domain = constraints.real_vector,
  codomain = constraints.simplex, bijective = true})

-- Returns log of n, n - 1, ..., 1, where n is the last size of x.
local function log_counts(x)
  local n = x:size(-1)
  return (n + 1 - lt.arange(n, {dtype = x.dtype, device = x.device})):log()
end
function StickBreaking.forward(_, x)
  local info = lt.finfo(x.dtype)
  local z = (x - log_counts(x)):sigmoid():clamp(info.tiny, 1 - info.eps)
  return lt.F.pad(z, {0, 1}, "constant", 1) * lt.F.pad((1 - z):cumprod(-1), {1, 0}, "constant", 1)
end
function StickBreaking.inverse(_, y)
  local first = y:narrow(-1, 1, y:size(-1) - 1)
  local rest = (1 - first:cumsum(-1)):clamp(lt.finfo(y.dtype).tiny)
  return first:log() - rest:log() + log_counts(first)
end
function StickBreaking.log_abs_det_jacobian(_, x, y)
  x = x - log_counts(x)
  return (-x + lt.F.logsigmoid(x) + y:narrow(-1, 1, y:size(-1) - 1):log()):sum(-1)
end
function StickBreaking.forward_shape(_, shape) return longer(shape, 1) end
function StickBreaking.inverse_shape(_, shape) return longer(shape, -1) end

local matrices = constraints.independent(constraints.real, 2)

--- lt.distributions.transforms.LowerCholeskyTransform(): square matrices to lower triangular ones
-- with a positive diagonal, by exp of the diagonal.
local LowerCholesky = define("LowerCholeskyTransform", {domain = matrices,
  codomain = constraints.lower_cholesky})
function LowerCholesky.forward(_, x)
  return x:tril(-1) + lt.diag_embed(x:diagonal(0, -2, -1):exp())
end
function LowerCholesky.inverse(_, y)
  return y:tril(-1) + lt.diag_embed(y:diagonal(0, -2, -1):log())
end

--- lt.distributions.transforms.PositiveDefiniteTransform(): square matrices to positive definite
-- ones, L L^T of the result L of LowerCholeskyTransform.
local PositiveDefinite = define("PositiveDefiniteTransform", {domain = matrices,
  codomain = constraints.positive_definite})
function PositiveDefinite.forward(_, x)
  local L = LowerCholesky():forward(x)
  return L:matmul(L:transpose(-2, -1))
end
function PositiveDefinite.inverse(_, y) return LowerCholesky():inverse(lt.linalg.cholesky(y)) end

--- lt.distributions.transforms.CorrCholeskyTransform(): vectors of n (n - 1) / 2 numbers to the
-- lower triangular factors of n * n correlation matrices (Stan's reference manual, "Cholesky
-- factors of correlation matrices").
local CorrCholesky = define("CorrCholeskyTransform", {domain = constraints.real_vector,
  codomain = constraints.corr_cholesky, bijective = true})

-- Returns the number n of rows for vectors of n (n - 1) / 2 numbers.
local function rows_of(count)
  local n = math.floor((0.25 + 2 * count) ^ 0.5 + 1)
  args.check(n * (n - 1) // 2 == count,
    "CorrCholeskyTransform: expected a last size of n * (n - 1) / 2 for an integer n, got %d",
    count)
  return n
end

-- Returns the indices of the elements below the diagonal, and `below` further ones, in flattened
-- n * n matrices.
local function indices_below(n, below, device)
  local list = {}
  for i = 2 + below, n do
    for j = 1, i - 1 - below do list[#list + 1] = (i - 1) * n + j end
  end
  return lt.tensor(list, {dtype = "int64", device = device})
end

-- Returns the elements below the diagonal of matrices as vectors, row by row.
local function to_vector(x, below)
  local indices = indices_below(x:size(-1), below, x.device)
  return x:flatten(-2, -1):index_select(-1, indices)
end

function CorrCholesky.forward(_, x)
  local n, eps = rows_of(x:size(-1)), lt.finfo(x.dtype).eps
  local flat = x:new_zeros(shapes.join(shapes.part(x.shape, 1, x.ndim - 1), {n * n}))
  local r = flat:index_add(-1, indices_below(n, 0, x.device), x:tanh():clamp(-1 + eps, 1 - eps))
    :unflatten(-1, {n, n})
  local rest = (1 - r ^ 2):sqrt():cumprod(-1)
  r = r + lt.eye(n, {dtype = x.dtype, device = x.device})
  return r * lt.F.pad(rest:narrow(-1, 1, n - 1), {1, 0}, "constant", 1)
end
function CorrCholesky.inverse(_, y)
  local rest = 1 - (y * y):cumsum(-1)
  rest = lt.F.pad(rest:narrow(-1, 1, y:size(-1) - 1), {1, 0}, "constant", 1)
  local t = to_vector(y, 0) / to_vector(rest, 0):sqrt()
  return (lt.log1p(t) - lt.log1p(-t)) / 2
end
-- Of x and the elements of y below the diagonal.
function CorrCholesky.log_abs_det_jacobian(_, x, y)
  local rest = to_vector(1 - (y * y):cumsum(-1), 1)
  return 0.5 * rest:log():sum(-1) - 2 * (x + lt.F.softplus(-2 * x) - math.log(2)):sum(-1)
end
function CorrCholesky.forward_shape(_, shape)
  local n = rows_of(shape[#shape])
  return shapes.join(shapes.part(shape, 1, #shape - 1), {n, n})
end
function CorrCholesky.inverse_shape(_, shape)
  local n = shape[#shape]
  return shapes.join(shapes.part(shape, 1, #shape - 2), {n * (n - 1) // 2})
end

--- lt.distributions.transforms.ReshapeTransform(in_shape, out_shape): the last dims of shape
-- in_shape to out_shape, lists of sizes. Raises an error when their numbers of elements differ.
local Reshape = define("ReshapeTransform", {bijective = true})
local parse_reshape = args.signature("ReshapeTransform", "ints in_shape, ints out_shape")
function Reshape:init(...)
  local before, after = parse_reshape(...)
  args.check(shapes.count(before) == shapes.count(after), "ReshapeTransform: expected as many "
    .. "elements in 'in_shape' as in 'out_shape', got %d and %d", shapes.count(before),
    shapes.count(after))
  self.in_shape, self.out_shape, self.parameters = before, after, {before, after}
  self.domain = constraints.independent(constraints.real, #before)
  self.codomain = constraints.independent(constraints.real, #after)
end
local function reshaped(shape, before, after)
  return shapes.join(shapes.part(shape, 1, #shape - #before), after)
end
function Reshape:forward_shape(shape) return reshaped(shape, self.in_shape, self.out_shape) end
function Reshape:inverse_shape(shape) return reshaped(shape, self.out_shape, self.in_shape) end
function Reshape:forward(x) return x:reshape(self:forward_shape(x.shape)) end
function Reshape:inverse(y) return y:reshape(self:inverse_shape(y.shape)) end
function Reshape:log_abs_det_jacobian(x)
  return x:detach():new_zeros(shapes.part(x.shape, 1, x.ndim - #self.in_shape))
end

return transforms
