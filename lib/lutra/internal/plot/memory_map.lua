--- The segments of a caching allocator and their blocks, as a row of columns.
--
-- A segment is a contiguous piece of memory from the driver; an allocation is served from one
-- block of one segment. For a large tensor, therefore, only the largest cached block counts: the
-- rest is fragmentation.

local map = {}

--- Returns the segments of a snapshot (lt.cuda.memory_snapshot): a list of {size, type, blocks =
-- list of {size, used, where, shape, name}}. A block that is freed but still in use by a stream
-- counts as used. `names` (optional) maps the address of a block to the name of its tensor.
function map.read(snapshot, names)
  local segments = {}
  for i, from in ipairs(snapshot) do
    local blocks = {}
    for k, block in ipairs(from.blocks) do
      blocks[k] = {size = block.size, used = block.state ~= "inactive", where = block.where,
        shape = block.shape and tostring(block.shape), name = names and names[block.address]}
    end
    segments[i] = {size = from.total_size, type = from.segment_type, blocks = blocks}
  end
  return segments
end

--- Returns {segments, used, cached (bytes), blocks (number of cached ones), largest (bytes),
-- fragmentation}: the share of cached memory that is not in the largest block, nil without cached
-- memory.
function map.summary(segments)
  local sum = {segments = #segments, used = 0, cached = 0, blocks = 0, largest = 0}
  for _, segment in ipairs(segments) do
    for _, block in ipairs(segment.blocks) do
      if block.used then
        sum.used = sum.used + block.size
      else
        sum.cached, sum.blocks = sum.cached + block.size, sum.blocks + 1
        sum.largest = math.max(sum.largest, block.size)
      end
    end
  end
  sum.fragmentation = sum.cached > 0 and 1 - sum.largest / sum.cached or nil
  return sum
end

-- Returns the number of columns of each segment, in proportion to its size; at least one.
local function share_out(segments, width)
  local total, left, counts = 0, width, {}
  for _, segment in ipairs(segments) do total = total + segment.size end
  for i, segment in ipairs(segments) do
    counts[i] = math.max(1, math.floor(segment.size / total * width))
    left = left - counts[i]
  end
  while left ~= 0 do
    local step, best, gap = left > 0 and 1 or -1, 1, -math.huge
    for i, segment in ipairs(segments) do
      local missing = (segment.size / total * width - counts[i]) * step
      if missing > gap and counts[i] + step >= 1 then best, gap = i, missing end
    end
    counts[best], left = counts[best] + step, left - step
  end
  return counts
end

-- Appends `count` columns of a segment's blocks.
local function fill(columns, segment, count)
  local used = {}
  for i = 1, count do used[i] = 0 end
  local at = 0
  for _, block in ipairs(segment.blocks) do
    local first, last = at / segment.size * count, (at + block.size) / segment.size * count
    at = at + block.size
    if block.used then
      for i = math.floor(first), math.min(math.ceil(last), count) - 1 do
        used[i + 1] = used[i + 1] + math.min(last, i + 1) - math.max(first, i)
      end
    end
  end
  for i = 1, count do
    columns[#columns + 1] = used[i] == 0 and "cached" or used[i] > 0.999 and "used" or "part"
  end
end

--- Returns the kind of each of `width` columns: "used", "part" (partly used), "cached", or "edge"
-- between two segments. With too many segments the edges are omitted.
function map.columns(segments, width)
  local columns = {}
  local pieces = segments
  if 3 * #segments > width then
    local all = {size = 0, blocks = {}}
    for _, segment in ipairs(segments) do
      all.size = all.size + segment.size
      table.move(segment.blocks, 1, #segment.blocks, #all.blocks + 1, all.blocks)
    end
    pieces = {all}
  end
  local counts = share_out(pieces, width - (#pieces - 1))
  for i, piece in ipairs(pieces) do
    if i > 1 then columns[#columns + 1] = "edge" end
    fill(columns, piece, counts[i])
  end
  return columns
end

return map
