--- Batches of matrices and vectors for the normal distributions of vectors.

local lt = require "lutra"
local args = require "lutra.internal.args"
local shapes = require "lutra.distributions.shapes"

local matrices = {}

--- Returns the products of matrices and vectors.
function matrices.times(matrix, vector) return matrix:matmul(vector:unsqueeze(-1)):squeeze(-1) end

--- Returns the solutions of lower triangular systems, broadcast over their batches.
function matrices.solve_lower(L, B)
  local batch = lt.broadcast_shapes(shapes.part(L.shape, 1, L.ndim - 2),
    shapes.part(B.shape, 1, B.ndim - 2))
  local function expanded(x)
    return x:expand(shapes.join(batch, {x:size(-2), x:size(-1)}))
  end
  return lt.linalg.solve_triangular(expanded(L), expanded(B), {upper = false})
end

--- Returns |L^-1 x|^2 for lower triangular matrices L and vectors x.
function matrices.mahalanobis(L, x)
  if L.ndim == 2 then -- one matrix: all vectors at once
    local columns = x:reshape(-1, x:size(-1)):t()
    local y = lt.linalg.solve_triangular(L, columns, {upper = false})
    return (y ^ 2):sum(1):reshape(shapes.part(x.shape, 1, x.ndim - 1))
  end
  return (matrices.solve_lower(L, x:unsqueeze(-1)) ^ 2):sum(-1):sum(-1)
end

--- Returns half the logarithm of the determinants of L L^T.
function matrices.half_log_det(L) return L:diagonal(0, -2, -1):log():sum(-1) end

--- Returns the sums of the squares of matrices' elements.
function matrices.sum_of_squares(x) return (x ^ 2):sum(-1):sum(-1) end

--- Defines the fields covariance_matrix and precision_matrix of a class whose instances have the
-- field scale_tril.
function matrices.define_forms(class)
  function class.get:covariance_matrix()
    return self.scale_tril:matmul(self.scale_tril:transpose(-2, -1))
  end

  function class.get:precision_matrix() return lt.cholesky_inverse(self.scale_tril) end
end

local FORMS = {"covariance_matrix", "precision_matrix", "scale_tril"}

--- Returns the name and the value of the one of covariance_matrix, precision_matrix and scale_tril,
-- the arguments 2 to 4 of a distribution, that is given. Raises an error of `title` unless exactly
-- one of them is given.
function matrices.one_of(title, given)
  local name, matrix
  for i, form in ipairs(FORMS) do
    if given[i + 1] ~= nil then
      args.check(not name, "%s: expected one of the arguments 'covariance_matrix', "
        .. "'precision_matrix' and 'scale_tril', got several", title)
      name, matrix = form, given[i + 1]
    end
  end
  args.check(name, "%s: expected one of the arguments 'covariance_matrix', 'precision_matrix' and "
    .. "'scale_tril', got none", title)
  return name, matrix
end

--- Returns the lower triangular factor of the covariance that one_of returns.
function matrices.factor(name, matrix)
  if name == "scale_tril" then return matrix end
  if name == "covariance_matrix" then return lt.linalg.cholesky(matrix) end
  local L = lt.linalg.cholesky(matrix:flip{-2, -1}):flip{-2, -1}:transpose(-2, -1)
  return lt.linalg.inv(L):tril()
end

return matrices
