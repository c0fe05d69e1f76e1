--- A storage as an SVG picture: a bar for each tensor, with the elements that it covers.

local storage = require "lutra.internal.plot.storage"
local svg = require "lutra.internal.plot.svg"
local texts = require "lutra.internal.text"

local storage_svg = {}

local WIDTH, HEIGHT, GAP, MARGIN, LINE = 720, 28, 8, 16, 16
local COLUMNS = 360
local CELLS = 90 -- the maximum number of elements drawn as single boxes
local LABEL = 24 -- the maximum number of letters of a name

local words = {used = "elements of the tensor", part = "some are elements of the tensor",
  free = "rest of the storage"}

-- Appends the box of the equal columns `first` to `last` of so many.
local function band(first, last, count, kind, place, parts)
  local scale = WIDTH / count
  parts[#parts + 1] = svg.kind_box(place.left + (first - 1) * scale, place.y,
    (last - first + 1) * scale, HEIGHT, kind, words[kind])
end

-- Appends one box per element, with its number when there is room for all numbers.
local function cells(columns, place, parts)
  local scale = WIDTH / #columns
  local numbered = scale > #tostring(#columns) * svg.LETTER + 8
  for i, kind in ipairs(columns) do
    parts[#parts + 1] = svg.kind_box(place.left + (i - 1) * scale + 0.5, place.y, scale - 1, HEIGHT,
      kind, ("element %d: %s"):format(i, words[kind]), numbered and {tostring(i)})
  end
end

local function columns_of(view, picture)
  local count = picture.bytes // picture.itemsize
  return storage.columns(view, picture.bytes, math.min(count, COLUMNS))
end

local function bar(view, picture, place, parts)
  local columns, first = columns_of(view, picture), 1
  if #columns <= CELLS then return cells(columns, place, parts) end
  for i = 1, #columns do
    if columns[i + 1] ~= columns[first] then
      band(first, i, #columns, columns[first], place, parts)
      first = i + 1
    end
  end
end

local function legend(picture, place)
  local list, seen = {}, {}
  for _, view in ipairs(picture.views) do
    for _, kind in ipairs(columns_of(view, picture)) do seen[kind] = true end
  end
  for _, kind in ipairs {"used", "part", "free"} do
    if seen[kind] then list[#list + 1] = {kind, words[kind]} end
  end
  return svg.legend(place.left, place.y, list, WIDTH)
end

--- Returns the SVG of {title, bytes (of the storage), itemsize, views (lutra.internal.plot.storage,
-- with names), lines (texts below)}.
function storage_svg.text(picture)
  local label, widest = 0, 0
  for _, view in ipairs(picture.views) do
    label = math.max(label, math.min(LABEL, texts.width(view.name)))
  end
  for _, line in ipairs(picture.lines) do widest = math.max(widest, texts.width(line)) end
  local place = {left = MARGIN + label * svg.LETTER + 10, y = MARGIN + 28}
  local title = "the storage of " .. texts.cut(picture.title:gsub("%s+", " "), 60)
  local parts = {svg.text(MARGIN, MARGIN + 12, title, "title")}
  local count = picture.bytes // picture.itemsize
  if count > 0 then
    for _, view in ipairs(picture.views) do
      parts[#parts + 1] = svg.text(MARGIN, place.y + HEIGHT - 10, texts.cut(view.name, LABEL))
      bar(view, picture, place, parts)
      place.y = place.y + HEIGHT + GAP
    end
    local last = ("element %s"):format(texts.count(count))
    parts[#parts + 1] = svg.text(place.left, place.y + 6, "element 1", "small")
    parts[#parts + 1] = svg.text(place.left + WIDTH - #last * 6.8, place.y + 6, last, "small")
    place.y = place.y + 30
    parts[#parts + 1] = legend(picture, place)
    place.y = place.y + 12
  end
  for _, line in ipairs(picture.lines) do
    place.y = place.y + LINE
    parts[#parts + 1] = svg.text(MARGIN, place.y, line)
  end
  return svg.picture(math.max(place.left + WIDTH, MARGIN + widest * svg.LETTER) + MARGIN,
    place.y + MARGIN, title, parts)
end

return storage_svg
