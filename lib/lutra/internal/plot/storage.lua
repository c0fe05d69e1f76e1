--- The elements of a storage that a tensor covers, as runs and as a row of columns.
--
-- A view is {offset, shape, strides (elements), itemsize}; the views of one storage may differ in
-- all of these.

local texts = require "lutra.internal.text"

local storage = {}

local RUNS = 2000 -- the maximum number of runs

-- Returns the length of one contiguous run of a view, then the sizes and strides of the dimensions
-- outside of it.
local function outer_dims(shape, strides)
  local order = {}
  for i, size in ipairs(shape) do
    if size > 1 and strides[i] > 0 then order[#order + 1] = {size = size, stride = strides[i]} end
  end
  table.sort(order, function(a, b) return a.stride < b.stride end)
  local length = 1
  while order[1] and order[1].stride == length do
    length = length * table.remove(order, 1).size
  end
  return length, order
end

--- Returns the elements of the storage that a tensor covers, as a sorted list of {first, last},
-- 0-based, and whether the list is complete. With too many runs it is one run from the first
-- element to the last.
function storage.runs(offset, shape, strides)
  local last = offset
  for i, size in ipairs(shape) do
    if size == 0 then return {}, true end
    last = last + (size - 1) * strides[i]
  end
  local length, outer = outer_dims(shape, strides)
  local count = 1
  for _, dim in ipairs(outer) do
    count = count * dim.size
    if count > RUNS then return {{offset, last}}, false end
  end
  local starts = {offset}
  for _, dim in ipairs(outer) do
    for i = 1, #starts do
      for k = 1, dim.size - 1 do starts[#starts + 1] = starts[i] + k * dim.stride end
    end
  end
  table.sort(starts)
  local runs = {}
  for _, start in ipairs(starts) do
    local before = runs[#runs]
    if before and start <= before[2] + 1 then
      before[2] = math.max(before[2], start + length - 1)
    else
      runs[#runs + 1] = {start, start + length - 1}
    end
  end
  return runs, true
end

-- Returns the bytes that a view covers as a list of {first, behind the last}, and whether it is
-- complete.
local function spans_of(view)
  local runs, complete = storage.runs(view.offset, view.shape, view.strides)
  for _, run in ipairs(runs) do
    run[1], run[2] = run[1] * view.itemsize, (run[2] + 1) * view.itemsize
  end
  return runs, complete
end

--- Returns the kind of each of `width` columns of a storage of so many bytes: "used", "part"
-- (partly covered by the view) or "free".
function storage.columns(view, bytes, width)
  local spans, complete = spans_of(view)
  local seen, columns = {}, {}
  for i = 1, width do seen[i] = 0 end
  for _, span in ipairs(spans) do
    local first, last = span[1] * width / bytes, span[2] * width / bytes
    for i = math.floor(first) + 1, math.min(math.ceil(last), width) do
      seen[i] = seen[i] + math.min(last, i) - math.max(first, i - 1)
    end
  end
  for i = 1, width do
    columns[i] = seen[i] == 0 and "free" or complete and seen[i] > 1 - 1e-9 and "used" or "part"
  end
  return columns
end

--- Returns the extent of a view in a storage of so many bytes, such as "elements 3 to 11 of 12";
-- nil for an empty view.
function storage.extent(view, bytes)
  local spans = spans_of(view)
  if #spans == 0 then return nil end
  local first, last = spans[1][1] // view.itemsize + 1, spans[#spans][2] // view.itemsize
  local count = bytes // view.itemsize
  if first == last then
    return ("element %s of %s"):format(texts.count(first), texts.count(count))
  end
  return ("elements %s to %s of %s"):format(texts.count(first), texts.count(last),
    texts.count(count))
end

return storage
