--- Rules of lutra.func.batching: how an op runs once for a batch. A rule gets the arguments of a
-- call by the op's signature, what the op returns for one example (tensors without data), and the
-- level; it returns the physical results, with the batch as first dim, or nil where it has none.
-- Most rules follow from the kind and the parameters of the op's row in lt.ops().

local args = require "lutra.internal.args"
local batching = require "lutra.func.batching"
local core = require "lutra.core"

local rules = {}

local ops = core._ops

local function set(text)
  local result = {}
  for name in text:gmatch "%S+" do result[name] = true end
  return result
end

-- Returns the numbers of the op's parameters by name.
local function positions(op)
  local at = {}
  for i, param in ipairs(op.params) do at[param.name] = i end
  return at
end

local function run(op, v) return ops[op.name](table.unpack(v, 1, v.n)) end

local function copy(v) return table.move(v, 1, v.n, 1, {n = v.n}) end

-- Returns the sizes of an expected tensor behind `first`.
local function sizes(first, t)
  local list = {first}
  for i = 1, t.ndim do list[#list + 1] = t:size(i) end
  return list
end

-- Returns the tensor with the batch in front: its physical tensor, or views of it for each example.
local function full(t, at)
  local physical = batching.physical(t, at)
  return physical or t:unsqueeze(1):expand(sizes(batching.size(at), t))
end

-- Returns the physical tensor with dims of size 1 behind the batch, for `rank` dims of an example;
-- another tensor as it is.
local function aligned(t, rank, at)
  local physical = batching.physical(t, at)
  if not physical or t.ndim >= rank then return physical or t end
  local list = {batching.size(at)}
  for _ = 1, rank - t.ndim do list[#list + 1] = 1 end
  for i = 1, t.ndim do list[#list + 1] = t:size(i) end
  return physical:reshape(list)
end

-- Returns whether any argument but the first is a tensor.
local function has_more(v)
  for i = 2, v.n do
    if core.is_tensor(v[i]) then return true end
  end
  return false
end

-- ---- element by element

local function category(dtype)
  if dtype == "bool" then return 0 end
  if dtype:match "^complex" then return 3 end
  return dtype:match "float" and 2 or 1
end

-- Returns the dtype that the tensors with dims decide, or nil.
local function decided(v)
  local found
  for i = 1, v.n do
    local t = core.is_tensor(v[i]) and v[i].ndim > 0 and v[i].dtype
    if t then found = found and core.promote_types(found, t) or t end
  end
  return found
end

local function elementwise(v, expected, at, op)
  local new, rank, dtype = copy(v), expected[1].ndim, decided(v)
  for i = 1, v.n do
    if core.is_tensor(v[i]) then
      local t = aligned(v[i], rank, at)
      -- A tensor without dims changes the dtype of tensors with dims only by a higher category.
      if v[i].ndim == 0 and dtype and category(v[i].dtype) <= category(dtype)
        and v[i].dtype ~= dtype then
        t = t:to(dtype)
      end
      if rank == 0 and v[i] == t then t = t:unsqueeze(1) end
      new[i] = t
    elseif args.is_plain(v[i]) then
      return nil
    end
  end
  return run(op, new)
end

-- ---- dims

local function shifted(dim) return dim > 0 and dim + 1 or dim end

-- Returns dims of an example as dims of the batch; nil for none.
local function shifted_dims(dim)
  if type(dim) == "number" then return shifted(dim) end
  if not args.is_plain(dim) or #dim == 0 then return nil end
  local list = {}
  for i, d in ipairs(dim) do list[i] = shifted(d) end
  return list
end

local function reduction(v, expected, at, op)
  local where = positions(op)
  local x = batching.physical(v[1], at)
  if not x or has_more(v) or not where.dim then return nil end
  local new = copy(v)
  local dims = shifted_dims(v[where.dim])
  if v[1].ndim == 0 or not dims then
    if v[where.dim] == false or v[where.dim] == true then return nil end
    if where.keepdim then new[where.keepdim] = false end
    x, dims = x:reshape{batching.size(at), -1}, 2
  end
  new[1], new[where.dim] = x, dims
  local results = table.pack(run(op, new))
  for i = 1, expected.n do
    results[i] = results[i]:reshape(sizes(batching.size(at), expected[i]))
  end
  return table.unpack(results, 1, results.n)
end

-- max and min have two results with a dim, and one, or that of maximum, without it.
local function extreme(name)
  return function(v, expected, at, op)
    if type(v[2]) == "number" then return reduction(v, expected, at, op) end
    if v[2] ~= nil then return nil end
    return ops[name](full(v[1], at):reshape{batching.size(at), -1}, 2)
  end
end

local function along_dim(v, _, at, op)
  local where = positions(op)
  local i = where.dim or where.dims or where.axis
  local x = batching.physical(v[1], at)
  local dim = i and v[i] ~= nil and shifted_dims(v[i])
  if not x or v[1].ndim == 0 or not dim or has_more(v) then return nil end
  local new = copy(v)
  new[1], new[i] = x, dim
  return run(op, new)
end

-- ---- views

-- Returns a view of the expected shape.
local function reshaped(name)
  return function(v, expected, at)
    if not batching.physical(v[1], at) then return nil end
    return ops[name](full(v[1], at), sizes(batching.size(at), expected[1]))
  end
end

local function expanded(v, expected, at)
  if not batching.physical(v[1], at) then return nil end
  return aligned(v[1], expected[1].ndim, at):expand(sizes(batching.size(at), expected[1]))
end

local function swapped(v, _, at, op)
  if v[1].ndim == 0 then return nil end
  return ops[op.name](full(v[1], at), shifted(v[2]), shifted(v[3]))
end

local function permuted(v, _, at)
  local order = {1}
  for i, d in ipairs(v[2]) do order[i + 1] = (d < 0 and d + v[1].ndim + 1 or d) + 1 end
  return full(v[1], at):permute(order)
end

local function moved(v, _, at)
  local from, to = shifted_dims(v[2]), shifted_dims(v[3])
  if v[1].ndim == 0 or not from or not to then return nil end
  return ops.movedim(full(v[1], at), from, to)
end

local function transposed(v, _, at)
  local x = full(v[1], at)
  return v[1].ndim < 2 and ops._alias(x) or x:transpose(2, 3)
end

-- ---- products

-- Returns the matrices of a product of examples: vectors become matrices, and both have the same
-- number of dims.
local function product(a, b, expected, at)
  local rank = math.max(a.ndim, b.ndim, 2)
  if not batching.physical(a, at) and not batching.physical(b, at) then return ops.matmul(a, b) end
  local function matrix(t, column)
    local physical = batching.physical(t, at)
    local x = physical or t
    if t.ndim == 1 then x = x:unsqueeze(column and -1 or -2) end
    if not physical then return x end
    local list, own = {batching.size(at)}, math.max(t.ndim, 2)
    for _ = 1, rank - own do list[#list + 1] = 1 end
    for i = 2, own + 1 do list[#list + 1] = x:size(i) end
    return x:reshape(list)
  end
  return ops.matmul(matrix(a, false), matrix(b, true)):reshape(
    sizes(batching.size(at), expected))
end

local function matmul(v, expected, at) return product(v[1], v[2], expected[1], at) end

local function linear(v, expected, at)
  local x, w, bias = v[1], v[2], v[3]
  local whole = batching.physical(x, at)
  if whole and not batching.physical(w, at) and not (bias and batching.physical(bias, at)) then
    return ops.linear(whole, w, bias)
  end
  local y = product(x, ops.transpose(w, -1, -2), expected[1], at)
  return bias and y + aligned(bias, expected[1].ndim, at) or y
end

local function plus_product(v, expected, at)
  local y = product(v[2], v[3], expected[1], at)
  return y * v[5] + aligned(v[1], expected[1].ndim, at) * v[4]
end

local function outer(v, _, at)
  return full(v[1], at):unsqueeze(3) * full(v[2], at):unsqueeze(2)
end

-- ---- lists, indices

local function joined(v, _, at, op)
  local list = {}
  for i, t in ipairs(v[1]) do list[i] = full(t, at) end
  return ops[op.name](list, shifted(v[2]))
end

local function gathered(v, _, at)
  if v[1].ndim == 0 then return nil end
  return ops.gather(full(v[1], at), shifted(v[2]), full(v[3], at))
end

local function picked(v, _, at)
  if batching.physical(v[3], at) or v[1].ndim == 0 then return nil end
  return ops.index_select(full(v[1], at), shifted(v[2]), v[3])
end

local function embedding(v, _, at)
  if batching.physical(v[1], at) then return nil end
  return ops.embedding(v[1], batching.physical(v[2], at), v[3])
end

-- ---- losses, normalization

local function reduced(x, how, expected, at)
  if how == "none" then return x end
  return ops[how == "sum" and "sum" or "mean"](x:reshape{batching.size(at), -1}, 2):reshape(
    sizes(batching.size(at), expected))
end

-- Returns a rule for a loss that is an elementwise function and a reduction.
local function loss(v, expected, at, op)
  local where = positions(op)
  if v[where.size_average] ~= nil or v[where.reduce] ~= nil or v[where.weight] then return nil end
  if where.pos_weight and v[where.pos_weight] then return nil end
  if v[where.reduction] == "batchmean" then return nil end
  for i = 1, v[1].ndim do
    if v[1].ndim ~= v[2].ndim or v[1]:size(i) ~= v[2]:size(i) then return nil end
  end
  local new = copy(v)
  new[1], new[2], new[where.reduction] = full(v[1], at), full(v[2], at), "none"
  return reduced(run(op, new), v[where.reduction], expected[1], at)
end

-- The losses of class numbers; the mean is over the targets that count.
local function class_loss(v, expected, at, op)
  local where = positions(op)
  local x, target = v[1], v[2]
  if v[where.size_average] ~= nil or v[where.reduce] ~= nil or v[where.weight] then return nil end
  if x.ndim > 2 or target.ndim ~= x.ndim - 1 or target:is_floating_point() then return nil end
  if where.label_smoothing and v[where.label_smoothing] ~= 0 then return nil end
  local new, how = copy(v), v[where.reduction]
  local labels = full(target, at):reshape{-1}
  new[1], new[2] = full(x, at):reshape{-1, x:size(-1)}, labels
  new[where.reduction] = "none"
  local each = run(op, new):reshape(sizes(batching.size(at), target))
  if how ~= "mean" then return reduced(each, how, expected[1], at) end
  local counts = labels:ne(v[where.ignore_index]):reshape{batching.size(at), -1}:sum(2)
  return each:reshape{batching.size(at), -1}:sum(2) / counts:to(each.dtype)
end

local function layer_norm(v, expected, at)
  local x = ops.layer_norm(full(v[1], at), v[2], nil, nil, v[5])
  if v[3] then x = x * aligned(v[3], expected[1].ndim, at) end
  return v[4] and x + aligned(v[4], expected[1].ndim, at) or x
end

-- The batch is one more batch dim of query, key, value and mask.
local function attention(v, expected, at)
  if v[5] ~= 0 then return nil end
  local new = copy(v)
  for i = 1, 4 do new[i] = v[i] and aligned(v[i], expected[1].ndim, at) end
  return ops.scaled_dot_product_attention(table.unpack(new, 1, new.n))
end

-- Folds the batch into the first dim, the batch of an op on images; weights have no batch.
local function folded(v, expected, at, op)
  local rank = tonumber(op.name:match "(%d)d")
  local x = batching.physical(v[1], at)
  for i = 2, v.n do
    if core.is_tensor(v[i]) and batching.physical(v[i], at) then return nil end
  end
  if not x or v[1].ndim < rank + 1 then return nil end
  local new = copy(v)
  local list = {-1}
  for i = v[1].ndim - rank, v[1].ndim do list[#list + 1] = v[1]:size(i) end
  new[1] = x:reshape(list)
  local results = table.pack(run(op, new))
  for i = 1, results.n do
    results[i] = results[i]:reshape(sizes(batching.size(at), expected[i]))
  end
  return table.unpack(results, 1, results.n)
end

-- The op changes the last dims only: the batch is one more dim in front.
local function last_dims(v, _, at, op)
  local new = copy(v)
  new[1] = full(v[1], at)
  return run(op, new)
end

-- diag_embed adds dims, which are counted in the result.
local function with_diagonals(v, _, at)
  return ops.diag_embed(full(v[1], at), v[2], shifted(v[3]), shifted(v[4]))
end

-- The batch is part of the first dim, that of the images.
local function by_images(v, expected, at, op)
  local new = copy(v)
  new[1] = full(v[1], at):flatten(1, 2)
  return run(op, new):reshape(sizes(batching.size(at), expected[1]))
end

-- Folds the batch into that of the images and the grids.
local function sampled(v, expected, at, op)
  local new = copy(v)
  for i = 1, 2 do new[i] = full(v[i], at):flatten(1, 2) end
  return run(op, new):reshape(sizes(batching.size(at), expected[1]))
end

-- ---- the table

local named = {
  max = extreme "amax", min = extreme "amin",
  view = reshaped "view", _view = reshaped "view", reshape = reshaped "reshape",
  flatten = reshaped "reshape", unflatten = reshaped "reshape", view_as = reshaped "view",
  reshape_as = reshaped "reshape", squeeze = reshaped "view", unsqueeze = reshaped "view",
  expand = expanded, expand_as = expanded, broadcast_to = expanded,
  transpose = swapped, swapaxes = swapped, permute = permuted, t = transposed,
  movedim = moved,
  matmul = matmul, mm = matmul, bmm = matmul, mv = matmul, dot = matmul, linear = linear,
  addmm = plus_product, baddbmm = plus_product, outer = outer,
  cat = joined, stack = joined, gather = gathered, index_select = picked, embedding = embedding,
  mse_loss = loss, l1_loss = loss, kl_div = loss, binary_cross_entropy_with_logits = loss,
  nll_loss = class_loss, cross_entropy = class_loss, layer_norm = layer_norm,
  scaled_dot_product_attention = attention, _grid_sample = sampled, diag_embed = with_diagonals,
  channel_shuffle = by_images,
}

for name in pairs(set [[round hardtanh gelu div nan_to_num clamp where real imag isclose clone
  contiguous positive zeros_like ones_like full_like _to_copy to detach _alias]]) do
  named[name] = elementwise
end

for name in pairs(set [[cumsum cumprod cummax cummin sort topk argsort softmax log_softmax flip roll
  select narrow _slice split chunk unbind]]) do
  named[name] = along_dim
end

for name in pairs(set "_pad constant_pad_nd pixel_shuffle pixel_unshuffle") do
  named[name] = last_dims
end

for name in pairs(set "var std _norm") do named[name] = reduction end

for name in pairs(set "conv max_pool avg_pool lp_pool adaptive_avg_pool adaptive_max_pool") do
  for rank = 1, 3 do named[name .. rank .. "d"] = folded end
end

local VIEWS = set [[reshape flatten unflatten t swapaxes movedim narrow expand_as view_as reshape_as
  broadcast_to split chunk unbind diagonal]]

--- Returns whether the results of a composite share the memory of its argument.
function rules.is_view(name) return VIEWS[name] or false end

local IMPURE = set "copy fill empty_like"

--- Returns the rule of an op, or nil.
function rules.find(op)
  if named[op.name] then return named[op.name] end
  if IMPURE[op.name] then return nil end
  if op.kind == "elementwise" then return elementwise end
  if op.kind == "reduce" then return reduction end
  return nil
end

return rules
