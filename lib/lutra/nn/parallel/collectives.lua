--- Collectives on lists of tensors, for modules that are the same on all ranks.

local core = require "lutra.core"
local lt = require "lutra"

local collectives = {}

local CHUNK = 250 * 2 ^ 20 -- bytes that are broadcast at once

-- Returns lists of tensors of one dtype and device, each of at most CHUNK bytes or one tensor.
local function chunks(tensors)
  local list, open = {}, {}
  for _, t in ipairs(tensors) do
    local key, bytes = t.dtype .. " " .. t.device, t:numel() * t:element_size()
    local chunk = open[key]
    if not chunk or chunk.bytes + bytes > CHUNK then
      chunk = {bytes = 0}
      open[key], list[#list + 1] = chunk, chunk
    end
    chunk[#chunk + 1], chunk.bytes = t, chunk.bytes + bytes
  end
  return list
end

-- Broadcasts tensors of one dtype and device as one flat tensor.
local function broadcast_chunk(chunk, source, group, is_source)
  local flat = {}
  for i, t in ipairs(chunk) do flat[i] = t:detach():reshape(-1) end
  local joined = #flat == 1 and flat[1]:contiguous():clone() or core._ops.cat(flat)
  if joined:numel() == 0 then return end
  lt.distributed.broadcast(joined, source, group)
  if is_source then return end
  local start = 1
  for _, t in ipairs(chunk) do
    t:copy_(joined:narrow(1, start, t:numel()):view(t.shape))
    start = start + t:numel()
  end
end

--- Copies the values of a list of tensors from rank `from` of the group (by default 0) to the
-- others. Called by all ranks of the group, with tensors of the same shapes and dtypes.
function collectives.broadcast(tensors, group, from)
  local dist = lt.distributed
  if dist.get_world_size(group) == 1 then return end
  from = from or 0
  local source = group and dist.get_global_rank(group, from) or from
  local is_source = dist.get_rank(group) == from
  lt.no_grad(function()
    for _, chunk in ipairs(chunks(tensors)) do broadcast_chunk(chunk, source, group, is_source) end
  end)
end

-- Returns a line about a parameter: its name, shape and dtype.
local function describe(entry)
  if not entry then return "no parameter" end
  return ('%q of shape %s, "%s"'):format(entry[1], entry[2], entry[3])
end

--- Raises an error of `title` on all ranks unless all have parameters of the same names, shapes and
-- dtypes, in the same order. Called by all ranks of the group.
function collectives.check_parameters(title, names, parameters, group)
  local dist, args = lt.distributed, require "lutra.internal.args"
  local own, all = {}, {}
  for i, p in ipairs(parameters) do own[i] = {names[i], tostring(p.shape), p.dtype} end
  dist.all_gather_object(all, own, group)
  for r = 2, dist.get_world_size(group) do
    for i = 1, math.max(#all[1], #all[r]) do
      local a, b = describe(all[1][i]), describe(all[r][i])
      if a ~= b then
        args.fail("%s: expected the same parameters on all ranks, got %d on rank 0 and %d on rank "
          .. "%d; parameter %d is %s on rank 0 and %s on rank %d", title, #all[1], #all[r], r - 1,
          i, a, b, r - 1)
      end
    end
  end
end

return collectives
