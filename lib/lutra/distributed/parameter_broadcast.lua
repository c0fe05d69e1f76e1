--- Broadcasts the parameters that each rank has updated to the other ranks.
--
-- The parameters of one rank, dtype and device are sent in buckets: one flat buffer for small ones,
-- which are copied into it and out of it, and the tensor itself for a large one. With views, all
-- parameters of a rank, dtype and device are views of one buffer, which is broadcast as it is.
--
-- Invariant: all ranks make the same broadcasts in the same order, and queue all of them before
-- they wait for the first.

local lt = require "lutra"

local parameter_broadcast = {}

local BUCKET = 1 << 20 -- elements of a bucket of small parameters

-- Returns lists of parameters of one dtype and device, from the lists of each rank: {source,
-- params}, where `source` is the index of a rank in `parts`.
local function kinds_of(parts)
  local kinds = {}
  for source, params in ipairs(parts) do
    local by_kind = {}
    for _, p in ipairs(params) do
      local key = p.dtype .. " " .. p.device
      if not by_kind[key] then
        by_kind[key] = {source = source, params = {}}
        kinds[#kinds + 1] = by_kind[key]
      end
      table.insert(by_kind[key].params, p)
    end
  end
  return kinds
end

-- Returns the number of elements of all tensors of a list.
local function count_of(params)
  local count = 0
  for _, p in ipairs(params) do count = count + p:numel() end
  return count
end

-- Calls visit(p, part) for each parameter with its part of a flat buffer.
local function each_part(buffer, params, visit)
  local first = 0
  for _, p in ipairs(params) do
    visit(p, buffer:narrow(1, first + 1, p:numel()):view(p.shape))
    first = first + p:numel()
  end
end

-- Returns the buckets of a list of parameters of one kind: lists of at most BUCKET elements, and
-- larger parameters alone.
local function split(kind)
  local buckets, open, used = {}, nil, 0
  for _, p in ipairs(kind.params) do
    local n = p:numel()
    if n >= BUCKET then
      buckets[#buckets + 1] = {source = kind.source, params = {p}}
    elseif n > 0 then
      if not open or used + n > BUCKET then
        open, used = {source = kind.source, params = {}}, 0
        buckets[#buckets + 1] = open
      end
      table.insert(open.params, p)
      used = used + n
    end
  end
  return buckets
end

--- Returns the plan of the broadcasts of `parts`, for each rank the list of its parameters. With
-- `views`, the parameters become views of one buffer per rank, dtype and device.
function parameter_broadcast.plan(parts, views)
  local plan = {}
  for _, kind in ipairs(kinds_of(parts)) do
    if views then
      local first = kind.params[1]
      local buffer = lt.empty({count_of(kind.params)}, {dtype = first.dtype, device = first.device})
      lt.no_grad(each_part, buffer, kind.params, function(p, part)
        part:copy_(p)
        p:set_data(part)
      end)
      if buffer:numel() > 0 then plan[#plan + 1] = {source = kind.source, buffer = buffer} end
    else
      table.move(split(kind), 1, #kind.params, #plan + 1, plan)
    end
  end
  return plan
end

-- Returns the tensor that is broadcast for a bucket. On the rank that sends, it has the values of
-- the parameters.
local function tensor_of(bucket, rank)
  if bucket.buffer then return bucket.buffer end
  local first = bucket.params[1]
  if #bucket.params == 1 and first:is_contiguous() then return first:detach() end
  local buffer = lt.empty({count_of(bucket.params)}, {dtype = first.dtype, device = first.device})
  if bucket.source == rank + 1 then
    each_part(buffer, bucket.params, function(p, part) part:copy_(p) end)
  end
  return buffer, true
end

--- Makes the broadcasts of a plan, from the rank of each bucket to the others of `group`. Runs
-- under no_grad.
function parameter_broadcast.run(plan, group)
  local dist = lt.distributed
  local rank, works = dist.get_rank(group), {}
  for i, bucket in ipairs(plan) do
    local source = dist.get_process_group_ranks(group)[bucket.source]
    local tensor, is_copy = tensor_of(bucket, rank)
    local work = dist.broadcast(tensor, source, {group = group, async_op = true})
    works[i] = {work = work, tensor = tensor, received = is_copy and bucket.source ~= rank + 1}
  end
  for i, bucket in ipairs(plan) do
    if works[i].work then works[i].work:wait() end
    if works[i].received then
      each_part(works[i].tensor, bucket.params, function(p, part) p:copy_(part) end)
    end
  end
end

return parameter_broadcast
