--- Collectives: calls that all ranks of a process group make, in the same order.
--
-- Each takes `group` (nil: all ranks) and `async_op`: true returns a work, whose wait() ends the
-- call. Tensors are contiguous, and have the same shape and dtype on all ranks. Tensors in lists
-- may have any strides. Roots (src, dst) are ranks of the job. Nothing here records gradients;
-- lt.distributed.nn has differentiable collectives.

local lt = require "lutra"
local core = require "lutra.core"
local args = require "lutra.internal.args"
local call = require "lutra.distributed.call"
local groups = require "lutra.distributed.groups"
local texts = require "lutra.internal.text"

local collectives = {}

local run, fault, plural = call.run, call.fault, texts.plural
local TAIL = "any? group = nil, bool async_op = false"

-- Returns the group of an argument, and the rank in it of the root `rank`.
local function with_root(group, rank, title, name)
  group = groups._of(group, title)
  if groups._is_outside(group) then return group, -1 end
  return group, groups._group_rank(group, rank, title, name)
end

local REDUCTIONS = core._communication.reductions()

-- Returns the name of a reduction in lower case; raises an error for any other value.
local function check_op(title, op)
  local name = op:lower()
  args.check(REDUCTIONS[name],
    "%s: expected sum, avg, max, min or product for argument 'op', got %q", title, op)
  return name
end

-- Returns why a dtype has no such reduction, or nil.
local function op_fault(x, reduction)
  if reduction == "avg" and not (x:is_floating_point() or x:is_complex()) then
    return ("expected a floating or complex dtype for the reduction avg, got %s\nhint: sum, then "
      .. "divide"):format(x.dtype)
  end
  if x:is_complex() and reduction ~= "sum" and reduction ~= "avg" then
    return ("the reduction %s is not defined for %s\nhint: sum and avg are"):format(reduction,
      x.dtype)
  end
end

-- Returns why a list has not a tensor for each rank, or nil.
local function tensors_fault(group, name, list)
  if #list ~= #group.ranks then
    return ("expected a list of %s for argument '%s', one for each rank, got %d"):format(
      plural(#group.ranks, "tensor"), name, #list)
  end
  for i = 1, #list do
    if not lt.is_tensor(list[i]) then
      return ("expected tensors in argument '%s', got %s at %d"):format(name, args.show(list[i]), i)
    end
  end
end

-- Returns why a list cannot be the pieces of a call, one for each rank, like the tensor x; or nil.
local function pieces_fault(group, name, list, x)
  local problem = tensors_fault(group, name, list)
  if problem then return problem end
  for i, piece in ipairs(list) do
    if piece.shape ~= x.shape or piece.dtype ~= x.dtype or piece.device ~= x.device then
      return ("expected tensors of shape %s, %s, on %q in argument '%s', got shape %s, %s, on %q "
        .. "at %d"):format(tostring(x.shape), x.dtype, x.device, name, tostring(piece.shape),
        piece.dtype, piece.device, i)
    end
  end
end

-- Returns why the list in the argument `name` is not one of pieces like x on the root, which is the
-- argument `root_name`, or not nil on another rank; or nil.
local function root_fault(group, is_root, root_name, name, list, x)
  if is_root then
    if not list then return ("expected a list for argument '%s', got nil"):format(name) end
    return pieces_fault(group, name, list, x)
  end
  return list and ("expected nil for argument '%s', as this rank is not %s, got a list"):format(
    name, root_name)
end

-- Returns why the tensor `whole` has not a piece like `part` for each rank, or nil.
local function whole_fault(group, name, whole, part)
  local each, size = part:numel(), #group.ranks
  if whole:numel() == each * size then return nil end
  return ("expected %s for argument '%s', %s for each of %s, got %s"):format(
    plural(each * size, "element"), name, texts.count(each), plural(size, "rank"),
    texts.count(whole:numel()))
end

-- Returns a contiguous tensor with a first dimension for the ranks, like x.
local function pieces_like(x, count)
  local shape = {count, table.unpack(x.shape)}
  return lt.empty(shape, {dtype = x.dtype, device = x.device})
end

-- Returns a function that copies the pieces of `whole` to the tensors of a list.
local function to_list(whole, list)
  return function()
    for i, piece in ipairs(list) do piece:detach():copy_(whole[i]) end
  end
end

local parse_broadcast = args.signature("broadcast", "Tensor tensor, int src = 0, " .. TAIL)
--- Copies the tensor of rank src to the tensors of all others.
function collectives.broadcast(...)
  local x, src, group, async = parse_broadcast(...)
  local root
  group, root = with_root(group, src, "broadcast", "src")
  return run(group, {kind = "broadcast", output = x, count = x:numel(), peer = root, shape = x,
    device = x.device, fault = fault(group, {{"tensor", x}})}, async)
end

local parse_all_reduce = args.signature("all_reduce", "Tensor tensor, string op = 'sum', " .. TAIL)
--- Replaces the tensor on each rank by the reduction of the tensors of all ranks: "sum", "avg",
-- "max", "min" or "product". Of bool, sum and max are "or", product and min "and"; complex numbers
-- have sum and avg; avg needs floating or complex numbers. By MPI an element that is NaN on one
-- rank makes max and min NaN, as in lt.maximum; NCCL ignores it, unless it is NaN on all ranks.
-- NCCL does not reduce int16.
function collectives.all_reduce(...)
  local x, op, group, async = parse_all_reduce(...)
  op = check_op("all_reduce", op)
  group = groups._of(group, "all_reduce")
  return run(group, {kind = "all_reduce", reduction = op, output = x, count = x:numel(), shape = x,
    device = x.device, fault = fault(group, {{"tensor", x}}) or op_fault(x, op)}, async)
end

local parse_reduce = args.signature("reduce", "Tensor tensor, int dst = 0, string op = 'sum', "
  .. TAIL)
--- Replaces the tensor on rank dst by the reduction of the tensors of all ranks; the tensors of the
-- others are not changed. Reductions as in all_reduce.
function collectives.reduce(...)
  local x, dst, op, group, async = parse_reduce(...)
  op = check_op("reduce", op)
  local root
  group, root = with_root(group, dst, "reduce", "dst")
  return run(group, {kind = "reduce", reduction = op, output = x, count = x:numel(), peer = root,
    shape = x, device = x.device, fault = fault(group, {{"tensor", x}}) or op_fault(x, op)}, async)
end

local parse_into = args.signature("all_gather_into_tensor",
  "Tensor output_tensor, Tensor input_tensor, " .. TAIL)
--- Writes the tensors of all ranks, in the order of the ranks, to output_tensor: of shape
-- {size * n, ...} or {size, n, ...} for inputs of shape {n, ...}.
function collectives.all_gather_into_tensor(...)
  local out, x, group, async = parse_into(...)
  group = groups._of(group, "all_gather_into_tensor")
  local problem = fault(group, {{"output_tensor", out}, {"input_tensor", x}})
    or whole_fault(group, "output_tensor", out, x)
  return run(group, {kind = "all_gather", title = "all_gather_into_tensor", input = x, output = out,
    count = x:numel(), shape = x, device = x.device, fault = problem}, async)
end

local parse_all_gather = args.signature("all_gather", "list tensor_list, Tensor tensor, " .. TAIL)
--- Copies the tensor of each rank r to tensor_list[r + 1] on all ranks.
function collectives.all_gather(...)
  local list, x, group, async = parse_all_gather(...)
  group = groups._of(group, "all_gather")
  if groups._is_outside(group) then return end
  local problem = fault(group, {{"tensor", x}}) or pieces_fault(group, "tensor_list", list, x)
  local whole = problem == nil and pieces_like(x, #group.ranks) or nil
  return run(group, {kind = "all_gather", input = x, output = whole, count = x:numel(), shape = x,
    device = x.device, fault = problem, finish = whole and to_list(whole, list)}, async)
end

local parse_gather = args.signature("gather",
  "Tensor tensor, list? gather_list = nil, int dst = 0, " .. TAIL)
--- Copies the tensor of each rank r to gather_list[r + 1] on rank dst, the only one with a list.
function collectives.gather(...)
  local x, list, dst, group, async = parse_gather(...)
  local root
  group, root = with_root(group, dst, "gather", "dst")
  if groups._is_outside(group) then return end
  local is_root, whole = group._rank == root, nil
  local problem = fault(group, {{"tensor", x}})
    or root_fault(group, is_root, "dst", "gather_list", list, x)
  if is_root and not problem then whole = pieces_like(x, #group.ranks) end
  return run(group, {kind = "gather", input = x, output = whole, count = x:numel(), peer = root,
    shape = x, device = x.device, fault = problem, finish = whole and to_list(whole, list)}, async)
end

local parse_scatter = args.signature("scatter",
  "Tensor tensor, list? scatter_list = nil, int src = 0, " .. TAIL)
--- Copies scatter_list[r + 1] of rank src, the only one with a list, to the tensor of each rank r.
function collectives.scatter(...)
  local x, list, src, group, async = parse_scatter(...)
  local root
  group, root = with_root(group, src, "scatter", "src")
  if groups._is_outside(group) then return end
  local is_root, whole = group._rank == root, nil
  local problem = fault(group, {{"tensor", x}})
    or root_fault(group, is_root, "src", "scatter_list", list, x)
  if is_root and not problem then whole = lt.no_grad(lt.stack, list) end
  return run(group, {kind = "scatter", input = whole, output = x, count = x:numel(), peer = root,
    shape = x, device = x.device, fault = problem}, async)
end

local parse_scatter_tensor = args.signature("reduce_scatter_tensor",
  "Tensor output, Tensor input, string op = 'sum', " .. TAIL)
--- Reduces `input`, which has a piece like `output` for each rank, over all ranks, and writes piece
-- r to `output` on rank r. Reductions as in all_reduce.
function collectives.reduce_scatter_tensor(...)
  local out, x, op, group, async = parse_scatter_tensor(...)
  op = check_op("reduce_scatter_tensor", op)
  group = groups._of(group, "reduce_scatter_tensor")
  local problem = fault(group, {{"output", out}, {"input", x}}) or op_fault(x, op)
    or whole_fault(group, "input", x, out)
  return run(group, {kind = "reduce_scatter", title = "reduce_scatter_tensor", reduction = op,
    input = x, output = out, count = out:numel(), shape = out, device = out.device,
    fault = problem}, async)
end

local parse_reduce_scatter = args.signature("reduce_scatter",
  "Tensor output, list input_list, string op = 'sum', " .. TAIL)
--- Reduces input_list[r + 1] over all ranks, and writes it to `output` on rank r. Reductions as in
-- all_reduce.
function collectives.reduce_scatter(...)
  local out, list, op, group, async = parse_reduce_scatter(...)
  op = check_op("reduce_scatter", op)
  group = groups._of(group, "reduce_scatter")
  if groups._is_outside(group) then return end
  local problem = fault(group, {{"output", out}}) or op_fault(out, op)
    or pieces_fault(group, "input_list", list, out)
  local whole = problem == nil and lt.no_grad(lt.stack, list) or nil
  return run(group, {kind = "reduce_scatter", reduction = op, input = whole, output = out,
    count = out:numel(), shape = out, device = out.device, fault = problem}, async)
end

-- Returns why the tensor x, the argument `tensor_name`, cannot be divided along its first dimension
-- into pieces of the sizes in the argument `name`, or nil.
local function splits_fault(group, name, splits, tensor_name, x)
  if x.ndim == 0 then
    return ("expected a tensor with a first dimension for argument '%s', got shape {}"):format(
      tensor_name)
  end
  local rows, sum = x.shape[1], 0
  if not splits then
    return rows % #group.ranks ~= 0 and ("expected a first dimension that is divisible by %d "
      .. "ranks, got %d\nhint: give %s"):format(#group.ranks, rows, name) or nil
  end
  for i, n in ipairs(splits) do
    if math.type(n) ~= "integer" or n < 0 then
      return ("expected integers of at least 0 in argument '%s', got %s at %d"):format(name,
        args.show(n), i)
    end
    sum = sum + n
  end
  if #splits ~= #group.ranks or sum ~= rows then
    return ("expected %s with the sum %d for argument '%s', got %d with the sum %d"):format(
      plural(#group.ranks, "size"), rows, name, #splits, sum)
  end
end

-- Returns the elements of each piece of x along the first dimension.
local function counts_of(group, splits, x)
  local rows = x.shape[1]
  local row, counts = rows > 0 and x:numel() // rows or 0, {}
  for i = 1, #group.ranks do
    counts[i] = (splits and splits[i] or rows // #group.ranks) * row
  end
  return counts
end

local parse_single = args.signature("all_to_all_single", "Tensor output, Tensor input, "
  .. "list? output_split_sizes = nil, list? input_split_sizes = nil, " .. TAIL)
--- Sends piece r of `input` to each rank r, and writes what rank r sends to piece r of `output`.
-- The pieces are parts of the first dimension, equal ones or of the given sizes.
function collectives.all_to_all_single(...)
  local out, x, out_splits, in_splits, group, async = parse_single(...)
  group = groups._of(group, "all_to_all_single")
  if groups._is_outside(group) then return end
  local problem = fault(group, {{"output", out}, {"input", x}})
    or splits_fault(group, "output_split_sizes", out_splits, "output", out)
    or splits_fault(group, "input_split_sizes", in_splits, "input", x)
  local equal = not out_splits and not in_splits
  if not problem and equal and out:numel() ~= x:numel() then
    problem = ("expected %s for argument 'output', as the input has, got %s"):format(
      plural(x:numel(), "element"), texts.count(out:numel()))
  end
  local title = "all_to_all_single"
  if problem then return run(group, {kind = "all_to_all", title = title, fault = problem}) end
  return run(group, {kind = "all_to_all", title = title, input = x, output = out,
    count = x:numel() // #group.ranks, device = x.device,
    shape = equal and x or lt.empty{0, dtype = x.dtype, device = "cpu"},
    input_counts = not equal and counts_of(group, in_splits, x) or nil,
    output_counts = not equal and counts_of(group, out_splits, out) or nil}, async)
end

-- Returns why a list of tensors cannot be sent or received, or nil.
local function mixed_fault(group, name, list)
  local problem = tensors_fault(group, name, list)
  if problem then return problem end
  for i, x in ipairs(list) do
    if x.dtype ~= list[1].dtype or x.device ~= list[1].device then
      return ("expected tensors of one dtype and device in argument '%s', got %s, on %q at %d")
        :format(name, x.dtype, x.device, i)
    end
  end
end

-- Returns the elements of the tensors of a list.
local function numels(list)
  local counts, sum = {}, 0
  for i, x in ipairs(list) do
    counts[i] = x:numel()
    sum = sum + counts[i]
  end
  return counts, sum
end

local parse_all_to_all = args.signature("all_to_all",
  "list output_tensor_list, list input_tensor_list, " .. TAIL)
--- Sends input_tensor_list[r + 1] to each rank r, and copies what rank r sends to
-- output_tensor_list[r + 1]. The tensors may have different shapes.
function collectives.all_to_all(...)
  local outs, ins, group, async = parse_all_to_all(...)
  group = groups._of(group, "all_to_all")
  if groups._is_outside(group) then return end
  local problem = mixed_fault(group, "output_tensor_list", outs)
    or mixed_fault(group, "input_tensor_list", ins)
    or fault(group, {{"output_tensor_list", outs[1]:contiguous()},
                     {"input_tensor_list", ins[1]:contiguous()}})
  if problem then return run(group, {kind = "all_to_all", fault = problem}) end
  local dtype, device = outs[1].dtype, outs[1].device
  local out_counts, total = numels(outs)
  local flat = {}
  for i, x in ipairs(ins) do flat[i] = x:detach():reshape{-1} end
  local whole = lt.empty{total, dtype = dtype, device = device}
  local function finish()
    local offset = 0
    for i, x in ipairs(outs) do
      x:detach():copy_(whole:narrow(1, offset + 1, out_counts[i]):view(x.shape))
      offset = offset + out_counts[i]
    end
  end
  return run(group, {kind = "all_to_all", input = lt.no_grad(lt.cat, flat), output = whole,
    count = 0, device = device, shape = lt.empty{0, dtype = dtype, device = "cpu"},
    input_counts = (numels(ins)), output_counts = out_counts, finish = finish}, async)
end

local parse_barrier = args.signature("barrier",
  "any? group = nil, bool async_op = false, list? device_ids = nil")
--- Waits until all ranks have called it.
function collectives.barrier(...)
  local group, async = parse_barrier(...)
  return run(groups._of(group, "barrier"), {kind = "barrier"}, async)
end

local parse_monitored = args.signature("monitored_barrier",
  "any? group = nil, float? timeout = nil, bool wait_all_ranks = false")
--- Waits until all ranks have called it, at most `timeout` seconds (by default the group's); the
-- error names the ranks that have not. wait_all_ranks is PyTorch's; the error always names all.
function collectives.monitored_barrier(...)
  local group, timeout = parse_monitored(...)
  args.expect(timeout == nil or timeout > 0, "monitored_barrier", "a positive number of seconds",
    "timeout", timeout)
  return run(groups._of(group, "monitored_barrier"), {kind = "barrier",
    title = "monitored_barrier", timeout = timeout})
end

return collectives
