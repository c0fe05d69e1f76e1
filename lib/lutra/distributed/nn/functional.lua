--- lt.distributed.nn.functional: collectives with gradients.
--
-- The gradient is that of the sum of the losses of all ranks: each rank calls backward with its own
-- loss. The gradient of a collective is a collective, so all ranks must run backward through it, in
-- the same order. Gradients can be differentiated again.

local core = require "lutra.core"
local args = require "lutra.internal.args"
local autograd = require "lutra.autograd"
local dist = require "lutra.distributed"

local functional = {}

local function is_linear(reduction) return reduction == "sum" or reduction == "avg" end

-- Raises an error for a reduction for which `allowed` returns false.
local function check_op(title, op, allowed)
  args.check(allowed(op), '%s: cannot differentiate the reduction "%s"\nhint: lt.distributed.%s',
    title, op, title)
end

-- ---- all_reduce ----------------------------------------------------------------------

local AllReduce = autograd.Function:extend "all_reduce"

function AllReduce.forward(ctx, x, reduction, group)
  ctx.reduction, ctx.group = reduction, group
  local result = x:detach():contiguous():clone()
  dist.all_reduce(result, reduction, group)
  if reduction == "max" or reduction == "min" then ctx:save_for_backward(x, result) end
  return result
end

function AllReduce.backward(ctx, grad)
  if is_linear(ctx.reduction) then return AllReduce(grad, ctx.reduction, ctx.group) end
  local x, result = ctx:saved()
  local equal = core._ops.eq(x:detach(), result:detach()):to{dtype = grad.dtype}
  local count = AllReduce(equal, "sum", ctx.group) -- ranks with the same value share the gradient
  return AllReduce(grad, "sum", ctx.group) * equal / count
end

local function has_gradient(reduction) return reduction ~= "product" end
local parse_all_reduce = args.signature("all_reduce", "Tensor tensor, "
  .. "'sum'|'avg'|'max'|'min'|'product' op = 'sum', any? group = nil")

--- all_reduce(tensor, {op = "sum", group}): returns the reduction of the tensors of all ranks; op
-- is "sum", "avg", "max" or "min". The argument is not changed. Raises an error for "product",
-- which has no gradient here.
function functional.all_reduce(...)
  local x, op, group = parse_all_reduce(...)
  check_op("all_reduce", op, has_gradient)
  return AllReduce(x, op, group)
end

-- ---- broadcast -----------------------------------------------------------------------

local Broadcast = autograd.Function:extend "broadcast"

function Broadcast.forward(ctx, x, src, group)
  ctx.src, ctx.group = src, group
  local result = x:detach():contiguous():clone()
  dist.broadcast(result, src, group)
  return result
end

function Broadcast.backward(ctx, grad)
  local sum = AllReduce(grad, "sum", ctx.group)
  if dist.get_rank() == ctx.src then return sum end
  -- Zeros whose gradient is a collective on all ranks, too.
  return core._ops.masked_fill(sum, core._ops.ones_like(sum, {dtype = "bool"}), 0)
end

local parse_broadcast = args.signature("broadcast",
  "Tensor tensor, int(>=0) src, any? group = nil")

--- broadcast(tensor, src, {group}): returns the tensor of rank `src`. The gradients of all ranks
-- are summed there; those of the other ranks' arguments are zero. Raises an error for a rank
-- outside of the group.
function functional.broadcast(...)
  local x, src, group = parse_broadcast(...)
  return Broadcast(x, src, group)
end

-- ---- all_gather and reduce_scatter -----------------------------------------------------

local AllGather = autograd.Function:extend "all_gather"
local ReduceScatter = autograd.Function:extend "reduce_scatter"

function AllGather.forward(ctx, x, group)
  ctx.group = group
  x = x:detach():contiguous()
  local list = {}
  for i = 1, dist.get_world_size(group) do list[i] = core._ops.empty_like(x) end
  dist.all_gather(list, x, group)
  return table.unpack(list)
end

function AllGather.backward(ctx, ...)
  local grads = {...}
  local output = core._ops.empty_like(grads[1], {memory_format = "contiguous_format"})
  return ReduceScatter(output, "sum", ctx.group, ...)
end

-- The result has the memory of `output`.
function ReduceScatter.forward(ctx, output, op, group, ...)
  ctx.op, ctx.group = op, group
  local result, inputs = output:detach(), {...}
  for i, x in ipairs(inputs) do inputs[i] = x:detach():contiguous() end
  dist.reduce_scatter(result, inputs, op, group)
  return result
end

function ReduceScatter.backward(ctx, grad)
  if ctx.op == "avg" then grad = grad / dist.get_world_size(ctx.group) end
  return nil, nil, nil, AllGather(grad, ctx.group)
end

local parse_all_gather = args.signature("all_gather", "Tensor tensor, any? group = nil")

--- all_gather(tensor, {group}): returns the list of the tensors of all ranks, list[rank + 1], which
-- must have the same shape. Raises an error when they have not.
function functional.all_gather(...)
  local x, group = parse_all_gather(...)
  return {AllGather(x, group)}
end

local parse_reduce_scatter = args.signature("reduce_scatter", "Tensor output, Tensor[] input_list, "
  .. "'sum'|'avg'|'max'|'min'|'product' op = 'sum', any? group = nil")

--- reduce_scatter(output, input_list, {op = "sum", group}): returns, in the memory of `output`, the
-- sum (or "avg") over all ranks of their input_list[rank + 1]. Use the result, which has the
-- gradient. Raises an error for other reductions.
function functional.reduce_scatter(...)
  local output, inputs, op, group = parse_reduce_scatter(...)
  check_op("reduce_scatter", op, is_linear)
  return ReduceScatter(output, op, group, table.unpack(inputs))
end

-- ---- all_to_all_single -----------------------------------------------------------------

local AllToAll = autograd.Function:extend "all_to_all_single"

function AllToAll.forward(ctx, output, x, output_sizes, input_sizes, group)
  ctx.output_sizes, ctx.input_sizes, ctx.group, ctx.shape = output_sizes, input_sizes, group,
    x.shape
  local result = output:detach()
  dist.all_to_all_single(result, x:detach():contiguous(), {
    output_split_sizes = output_sizes, input_split_sizes = input_sizes, group = group})
  return result
end

function AllToAll.backward(ctx, grad)
  local empty = core._ops.empty(ctx.shape, {dtype = grad.dtype, device = grad.device})
  return nil, AllToAll(empty, grad, ctx.input_sizes, ctx.output_sizes, ctx.group)
end

local parse_all_to_all = args.signature("all_to_all_single", "Tensor output, Tensor input, "
  .. "list? output_split_sizes = nil, list? input_split_sizes = nil, any? group = nil")

--- all_to_all_single(output, input, {output_split_sizes, input_split_sizes, group}): sends part r
-- of `input`, along its first dimension, to rank r, and returns the parts that this rank gets, in
-- the memory of `output`. Use the result, which has the gradient. Raises an error for sizes that do
-- not add up.
function functional.all_to_all_single(...)
  local output, x, output_sizes, input_sizes, group = parse_all_to_all(...)
  return AllToAll(output, x, output_sizes, input_sizes, group)
end

return require("lutra.internal.strict_table").strict(functional, "distributed.nn.functional")
