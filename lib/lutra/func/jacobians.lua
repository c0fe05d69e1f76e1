--- lt.func.jacrev, jacfwd, hessian: matrices of derivatives.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local gradients = require "lutra.func.gradients"
local levels = require "lutra.func.levels"
local tree = require "lutra.internal.tree"

local jacobians = {}

-- Returns a tensor like t with a 1 at element k, 0 elsewhere.
local function unit(t, k)
  local v = core._ops.zeros_like(t):detach():reshape(-1)
  v[k] = 1
  return v:reshape(t.shape)
end

-- Returns the shape {a..., b...}.
local function joined(a, b)
  local shape = {}
  for _, n in ipairs(a) do shape[#shape + 1] = n end
  for _, n in ipairs(b) do shape[#shape + 1] = n end
  return shape
end

local function empty(output, input)
  return core._ops.zeros(joined(output.shape, input.shape),
    {dtype = output.dtype, device = output.device})
end

--- Returns matrix[i][j], the derivative of output i by input j, of shape {outputs[i].shape...,
-- inputs[j].shape...}, one row at a time: a backward pass for each element of the outputs.
function jacobians.by_rows(outputs, inputs, create)
  local matrix = {}
  for i, output in ipairs(outputs) do
    local rows = {}
    for j = 1, #inputs do rows[j] = {} end
    for k = 1, output:numel() do
      local grads = levels.gradients({output}, inputs, {unit(output, k)}, create, true)
      for j, g in ipairs(grads) do rows[j][k] = g end
    end
    matrix[i] = {}
    for j, input in ipairs(inputs) do
      matrix[i][j] = #rows[j] == 0 and empty(output, input)
        or core._ops.stack(rows[j]):reshape(joined(output.shape, input.shape))
    end
  end
  return matrix
end

--- Returns the same matrix, one column at a time: two passes for each element of the inputs.
function jacobians.by_columns(outputs, inputs, create)
  local push = gradients.pushforward(outputs, inputs)
  local matrix = {}
  for i = 1, #outputs do matrix[i] = {} end
  for j, input in ipairs(inputs) do
    local columns = {}
    for i = 1, #outputs do columns[i] = {} end
    for k = 1, input:numel() do
      local tangents = {}
      for l, other in ipairs(inputs) do
        tangents[l] = l == j and unit(other, k) or core._ops.zeros_like(other):detach()
      end
      for i, column in ipairs(push(tangents, create)) do columns[i][k] = column end
    end
    for i, output in ipairs(outputs) do
      matrix[i][j] = #columns[i] == 0 and empty(output, input)
        or core._ops.stack(columns[i], {dim = -1}):reshape(joined(output.shape, input.shape))
    end
  end
  return matrix
end

-- Returns the function that a transform returns.
local function transform(title, func, argnums, has_aux, matrix_of)
  local numbers, one = gradients.numbers(title, argnums)
  return function(...)
    local new, inputs, selected = gradients.replace(title, numbers, table.pack(...))
    local results = table.pack(levels.call(func, table.unpack(new, 1, new.n)))
    local aux
    if has_aux then
      aux, results.n = results[results.n], results.n - 1
    end
    local output = levels.packed(table.unpack(results, 1, results.n))
    local outputs = tree.leaves(output)
    local free = not levels.reaches_others(outputs, inputs)
    local matrix = levels.call(matrix_of, outputs, inputs, not free)
    local result = tree.map(output, function(_, i)
      return {tree.fill(one and selected[1] or selected, matrix[i])}
    end)
    -- Each leaf of the output became a list of one tree.
    local function open(node, shape)
      if core.is_tensor(shape) then return node[1] end
      local copy = {}
      for key, value in pairs(node) do copy[key] = open(value, shape[key]) end
      return copy
    end
    result = levels.finish(open(result, output), free)
    if has_aux then return result, levels.finish(aux, free) end
    return result
  end
end

local parse_jacrev = args.signature("jacrev", "function func, any? argnums = nil, "
  .. "bool has_aux = false, int? chunk_size = nil")
local parse_jacfwd = args.signature("jacfwd", "function func, any? argnums = nil, "
  .. "bool has_aux = false, string randomness = 'error', int? chunk_size = nil")
local parse_hessian = args.signature("hessian", "function func, any? argnums = nil")

--- jacrev(func, {argnums = 1, has_aux = false, chunk_size}): returns a function that returns the
-- Jacobian of func(...) with respect to its argument number `argnums`, of shape {output.shape...,
-- argument.shape...}, by one backward pass for each element of the output. For trees it returns a
-- tree of the output, with a tree of the argument in place of each tensor. With has_aux also aux.
-- chunk_size is accepted without effect.
function jacobians.jacrev(...)
  local func, argnums, has_aux = parse_jacrev(...)
  return transform("jacrev", func, argnums, has_aux, jacobians.by_rows)
end

--- jacfwd(func, {argnums = 1, has_aux = false, randomness = "error", chunk_size}): as jacrev, with
-- one product with the Jacobian for each element of the argument: faster for few inputs and many
-- outputs. The ops of func need second derivatives. randomness and chunk_size have no effect.
function jacobians.jacfwd(...)
  local func, argnums, has_aux = parse_jacfwd(...)
  return transform("jacfwd", func, argnums, has_aux, jacobians.by_columns)
end

--- hessian(func, {argnums = 1}): returns a function that returns the second derivatives of
-- func(...): of shape {argument.shape..., argument.shape...} for a 0-d output.
function jacobians.hessian(...)
  local func, argnums = parse_hessian(...)
  return jacobians.jacrev(jacobians.jacrev(func, {argnums = argnums}), {argnums = argnums})
end

return jacobians
