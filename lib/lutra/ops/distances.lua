--- Distances between rows, and bilinear forms.

local lt = require "lutra"
local args = require "lutra.internal.args"
local tensors = require "lutra.internal.tensors"
local ops = require("lutra.core")._ops

-- The distances by ops that have gradients of every order. The gradient at distance 0 is 0.
local function composed(x, p)
  local n = x:size(1)
  local pairs_ = lt.ones(n, n, {dtype = "bool", device = x.device}):triu(1):nonzero()
  local a, b = x:index_select(1, pairs_:select(2, 1)), x:index_select(1, pairs_:select(2, 2))
  if x:size(2) == 0 then return (a - b):sum(2) end
  return (a - b):norm{p = p, dim = 2}
end

-- Computes them by the CPU's kernels.
local Pairs = lt.autograd.Function:extend "pdist"

function Pairs.forward(ctx, x, p)
  local distances = ops._pdist(x, p)
  ctx:save_for_backward(x, distances)
  ctx.p = p
  return distances
end

function Pairs.backward(ctx, g)
  local x, distances = ctx:saved()
  local again = lt.is_grad_enabled()
  if ctx.p == 2 and not again then return ops._pdist_backward(g, x, distances) end
  return lt.autograd.enable_grad(function()
    local view = again and x:view_as(x) or x:detach():requires_grad_()
    return (lt.autograd.grad(composed(view, ctx.p), view,
      {grad_outputs = {g}, create_graph = again}))
  end)
end

lt._define{
  signature = "lt.pdist(Tensor input, float(>=0) p = 2)",
  doc = "The p-norms of the differences of all pairs of rows of {N, M}: a vector of the N (N - 1) "
    .. "/ 2 pairs (1, 2), (1, 3), ... .",
  also = {"F"},
  example = "lt.pdist(lt.tensor{{0., 0.}, {3., 4.}})",
  fn = function(x, p)
    args.check(x.ndim == 2, "pdist: expected 2 dimensions for argument 'input', got %d", x.ndim)
    tensors.check_float("pdist", "input", x)
    local n = x:size(1)
    if n < 2 then return x:sum(2):narrow(1, 1, 0) end
    if x.is_meta then return x:new_empty(n * (n - 1) // 2) end
    if tensors.are_batched() or not x.is_cpu or not (p == 1 or p == 2 or p == math.huge) then
      return composed(x, p)
    end
    if x.requires_grad and lt.is_grad_enabled() then return Pairs(x, p) end
    return ops._pdist(x, p)
  end,
}

lt._define{
  signature = "lt.bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias = nil)",
  doc = "x1^T A x2 + bias for each matrix A of weight {out, in1, in2}; input1 {*, in1} and input2 "
    .. "{*, in2} give {*, out}.",
  also = {"F"},
  example = "lt.bilinear(lt.ones(1, 2), lt.ones(1, 3), lt.ones(4, 2, 3))",
  fn = function(a, b, weight, bias)
    args.check(weight.ndim == 3, "bilinear: expected 3 dimensions for argument 'weight', got %d",
      weight.ndim)
    args.check(a.ndim == b.ndim and a.ndim > 0, "bilinear: expected the same number of dimensions "
      .. "for arguments 'input1' and 'input2', got %d and %d", a.ndim, b.ndim)
    local out, n, m = table.unpack(weight.shape)
    local sizes, rows = {}, 1
    for d = 1, a.ndim - 1 do
      args.check(a:size(d) == b:size(d), "bilinear: expected shape %s but for the last size, "
        .. "input1's, for argument 'input2', got %s", a.shape, b.shape)
      sizes[d], rows = a:size(d), rows * a:size(d)
    end
    args.check(a:size(-1) == n, "bilinear: expected last size %d for argument 'input1', got %d", n,
      a:size(-1))
    args.check(b:size(-1) == m, "bilinear: expected last size %d for argument 'input2', got %d", m,
      b:size(-1))
    tensors.check_parameter_dtype("bilinear", "weight", weight, a, "input1")
    tensors.check_parameter_dtype("bilinear", "weight", weight, b, "input2")
    sizes[#sizes + 1] = out
    local half = a:reshape(rows, n):matmul(weight:permute(2, 1, 3):reshape(n, out * m))
    local y = half:reshape(rows, out, m):bmm(b:reshape(rows, m, 1)):reshape(sizes)
    return bias and y + bias or y
  end,
}
