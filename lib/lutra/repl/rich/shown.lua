--- The elements of a tensor that a table shows: like the text, the first and the last ones of each
-- dimension when there are many. Only these are copied from the device.

local core = require "lutra.core"

local shown = {}

-- The maximum number of elements of a matrix that are shown, and of a tensor of more dimensions.
local CELLS, SLICED = 2500, 1000

local function most(t) return t.ndim <= 2 and CELLS or SLICED end

-- Returns the sizes of the shown part with `edge` elements at both ends of each dimension.
local function sizes(shape, edge)
  local list, count = {}, 1
  for d, size in ipairs(shape) do
    list[d] = edge and math.min(size, 2 * edge) or size
    count = count * list[d]
  end
  return list, count
end

-- Returns the number of elements at both ends of each dimension; nil when all elements are shown.
-- `threshold` is the number of elements up to which all are.
local function edge_of(t, threshold, edgeitems)
  if t:numel() <= math.min(threshold, most(t)) then return nil end
  local edge = edgeitems
  while edge > 1 and select(2, sizes(t.shape, edge)) > most(t) do edge = edge - 1 end
  return edge
end

-- Returns a copy of the shown part in the host's memory.
local function corner(t, edge)
  for d, size in ipairs(t.shape) do
    if edge and size > 2 * edge then
      t = core.cat({t:narrow(d, 1, edge), t:narrow(d, size - edge + 1, edge)}, d)
    end
  end
  return t:to "cpu"
end

-- Calls f with print options, and restores those of the program.
local function with_options(options, f, ...)
  local before = core.get_printoptions()
  local _ <close> = setmetatable({}, {__close = function() core.set_printoptions(before) end})
  if before.profile == "summary" then core.set_printoptions{profile = "default"} end
  core.set_printoptions(options)
  return f(...)
end

-- Returns the texts of the elements of a small tensor, as the text of the tensor has them.
local function element_texts(t)
  local text = with_options({threshold = math.huge, linewidth = 10000}, tostring, t)
  local list = {}
  local last = text:find("%{?%a[%w_]* = ") -- the properties behind the elements
  for element in text:sub(1, (last or #text + 1) - 1):gsub("^tensor", ""):gmatch "[^{}(),%s]+" do
    list[#list + 1] = element
  end
  return list
end

-- Returns the indices of a dimension that are shown; false marks those left out.
local function indices(size, edge)
  local list = {}
  if not edge or size <= 2 * edge then
    for i = 1, size do list[i] = i end
    return list
  end
  for i = 1, edge do list[i] = i end
  list[edge + 1] = false
  for i = 1, edge do list[edge + 1 + i] = size - edge + i end
  return list
end

-- Returns the values of the elements as floats: of complex numbers their absolute values.
local function numbers_of(t)
  if t:is_complex() then t = t:abs() end
  return t:to("float64"):reshape(-1):totable()
end

--- Returns what is shown of a detached tensor with data: {indices (a list for each dimension, in
-- which false stands for those left out), texts, numbers (when `with_numbers`), of the elements in
-- order}. Returns nil when even one element at each end of each dimension would be too many.
-- options: threshold and edgeitems as in set_printoptions, whose values are the defaults.
function shown.read(t, options, with_numbers)
  local print = core.get_printoptions()
  local edge = edge_of(t, options.threshold or print.threshold,
    options.edgeitems or print.edgeitems)
  if select(2, sizes(t.shape, edge)) > most(t) then return nil end
  local part = corner(t, edge)
  local found = {indices = {}, texts = element_texts(part)}
  for d, size in ipairs(t.shape) do found.indices[d] = indices(size, edge) end
  if #found.texts ~= part:numel() then error "the text has another number of elements" end
  if with_numbers then found.numbers = numbers_of(part) end
  return found
end

return shown
