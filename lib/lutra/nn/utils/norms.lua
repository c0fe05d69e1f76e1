--- Shared computations of weight and spectral normalization, of both interfaces: nn.utils and
-- nn.utils.parametrizations.

local lt = require "lutra"
local args = require "lutra.internal.args"
local walking = require "lutra.nn.module.walking"

local norms = {}

--- Returns the tensor that a module has registered under a name; raises an error when it has none.
function norms.tensor_of(title, module, name)
  args.expect(lt.nn.is_module(module), title, "a module", "module", module)
  local value, kind = module[name], walking.state_of(module).kinds[name]
  args.check(lt.is_tensor(value) and kind, "%s: expected the name of a parameter or buffer of %s "
    .. "for argument 'name', got %s", title, module:type_name(), args.show(name))
  return value, kind
end

--- Returns `dim`, an index of a dimension of x, counted from the front; nil, for the norm of all
-- elements, when it is false or -1, as in PyTorch. Raises an error for any other value.
function norms.dim(title, dim, x)
  if dim == false or dim == -1 then return nil end
  local index = math.tointeger(dim)
  args.check(index and index >= 1 and index <= math.max(x.ndim, 1), "%s: expected a dimension from "
    .. "1 to %d, or false, for argument 'dim', got %s", title, x.ndim, args.show(dim))
  return index
end

--- Returns the norm of x over all dims but `dim`, which stay with size 1; over all, a tensor of 0
-- dimensions, when dim is nil.
function norms.except(x, dim)
  if not dim or x.ndim == 0 then return lt.linalg.vector_norm(x, 2) end
  local dims = {}
  for i = 1, x.ndim do
    if i ~= dim then dims[#dims + 1] = i end
  end
  if #dims == 0 then return x:abs() end
  return lt.linalg.vector_norm(x, 2, dims, true)
end

--- Returns g v / |v|, with the norms of norms.except (Salimans and Kingma 2016).
function norms.weight(g, v, dim) return v * (g / norms.except(v, dim)) end

--- Returns a weight as a matrix {size(dim), rest}.
function norms.matrix(weight, dim)
  if dim ~= 1 then weight = weight:transpose(1, dim) end
  return weight:reshape(weight:size(1), -1)
end

--- Returns 2 for transposed convolutions, whose second dim is that of the outputs, else 1.
function norms.default_dim(module)
  return module:type_name():find "ConvTranspose%dd$" and 2 or 1
end

local function normalized(x, eps) return lt.F.normalize(x, {dim = 1, eps = eps}) end

--- Returns a random vector of length 1 like the rows, of n elements, of a matrix.
function norms.random_vector(matrix, n, eps)
  return normalized(lt.no_grad(function() return matrix:new_empty(n):normal_(0, 1) end), eps)
end

--- Improves u and v, the estimates of the first singular vectors of a matrix, in place by
-- iterations of the power method, each of which begins with u, or with v.
function norms.iterate(matrix, u, v, iterations, eps, v_first)
  lt.no_grad(function()
    matrix = matrix:detach()
    for _ = 1, iterations do
      if v_first then v:copy_(normalized(matrix:t():mv(u), eps)) end
      u:copy_(normalized(matrix:mv(v), eps))
      if not v_first then v:copy_(normalized(matrix:t():mv(u), eps)) end
    end
  end)
end

--- Returns the estimate of the largest singular value of a matrix. u and v are copied, so that a
-- later iteration does not change what backward needs.
function norms.spectral(matrix, u, v) return u:clone():dot(matrix:mv(v:clone())) end

return norms
