--- The storage of a tensor as an SVG picture, the elements that the tensor sees marked in it.

local svg = require "lutra.plot.svg"
local texts = require "lutra.plot.texts"

local storage_svg = {}

local WIDTH, HEIGHT, MARGIN, LINE = 720, 28, 16, 16
local RUNS = 2000 -- marks of a picture
local CELLS = 90 -- elements that are drawn apart

-- The runs of a view's dimensions that are not contiguous with those inside of them: the length of
-- one run, then lists of sizes and strides.
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

--- Which elements of its storage a tensor sees: a list of {first, last} from 0 on, in order; and
-- whether the list is complete. Of a tensor with too many runs it is one from the first element to
-- the last.
function storage_svg.runs(offset, shape, strides)
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

--- The SVG text of {title, bytes (of the storage), itemsize, offset (elements), shape, strides,
-- lines (texts below it)}.
function storage_svg.text(view)
  local parts, y = {svg.text(MARGIN, MARGIN + 12, view.title, "title")}, MARGIN + 28
  local count = view.bytes // view.itemsize
  local scale = count > 0 and WIDTH / count or 0
  local runs, complete = storage_svg.runs(view.offset, view.shape, view.strides)
  parts[#parts + 1] = svg.box(MARGIN, y, WIDTH, HEIGHT, svg.colors.free,
    ("the storage: %s"):format(texts.bytes(view.bytes)))
  for _, run in ipairs(runs) do
    parts[#parts + 1] = svg.box(MARGIN + run[1] * scale, y, math.max(0.5,
      (run[2] - run[1] + 1) * scale), HEIGHT, svg.colors[complete and "used" or "cached"],
      run[1] == run[2] and "element " .. run[1] or ("elements %d to %d"):format(run[1], run[2]))
  end
  if count <= CELLS then
    for i = 1, count - 1 do
      parts[#parts + 1] = svg.box(MARGIN + i * scale - 0.5, y, 1, HEIGHT, "#ffffff")
    end
  end
  y = y + HEIGHT
  if #runs > 0 then
    local first, last = runs[1][1], runs[#runs][2]
    local x, stop = MARGIN + first * scale, MARGIN + (last + 1) * scale
    parts[#parts + 1] = svg.box(x, y + 4, math.max(1, stop - x), 3, svg.colors.mark,
      ("bytes %d to %d of %d"):format(first * view.itemsize, (last + 1) * view.itemsize - 1,
        view.bytes))
  end
  parts[#parts + 1] = svg.legend(MARGIN, y + 24, {
    {svg.colors[complete and "used" or "cached"], complete and "its elements" or
      "among these are its elements"},
    {svg.colors.free, "the rest of the storage"}, {svg.colors.mark, "from its first to its last"}})
  y = y + 36
  local widest = 0
  for _, line in ipairs(view.lines) do
    y = y + LINE
    parts[#parts + 1] = svg.text(MARGIN, y, line)
    widest = math.max(widest, texts.width(line) * 7.4)
  end
  return svg.picture(math.max(WIDTH, widest) + 2 * MARGIN, y + MARGIN, view.title, parts)
end

return storage_svg
